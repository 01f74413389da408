"""The four levels of evidence: they measure; `gates` decides."""
