"""ROBUSTNESS: what the verdicts hang on, from stored tables alone."""
