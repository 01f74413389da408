"""Analyses: each asks one question of a study. `lpact.analyses.base` is what they share."""
