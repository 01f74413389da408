"""Preregistration: what a study will do, frozen before its outcomes are known; and whether a run then did it."""
