"""Writers of small datasets with the layouts of published ones; each returns what it planted."""
