"""Profile similarities: one file each."""
