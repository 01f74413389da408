"""Makes helper modules of this folder importable for tests in its subfolders."""
