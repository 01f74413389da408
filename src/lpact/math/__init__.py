"""Numerics: arrays in, arrays out; no ids, files or configuration."""
