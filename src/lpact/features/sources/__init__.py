"""Model sources: one file each."""
