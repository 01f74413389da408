"""Numbers: arrays in, arrays out. No ids, no files, no configuration."""
