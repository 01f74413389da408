"""Mechanisms: one file a family."""
