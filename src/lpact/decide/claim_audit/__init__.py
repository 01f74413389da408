"""CLAIM AUDIT: what a decision table supports and forbids, and a check of a text against it."""
