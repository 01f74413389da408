"""Source audit and the four levels of evidence: they measure; `gates` decides."""
