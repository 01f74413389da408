"""Alignment measures: one file each."""
