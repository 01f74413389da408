"""Analyses: each asks one question of a study. `lpact.analyses.base` is what they share."""

BUILT_IN = {"lpact": "lpact.analysis:LPact"}
