"""The stages of a run, in their order, as progress, plans, logs and `lpact status` name them."""

from __future__ import annotations

AUDIT = "source audit"
FEATURES = "features"
BRAINS = "brain patterns"
LEVELS = "levels 1 to 3"
CEILINGS = "ceilings"
CONTROLS = "positive controls"
DECISION = "decision"
TABLES = "tables"
REPORT = "report"
CALIBRATION = "calibration of the plan"
"""Comes after the audit where the cost of a run is told first; no plan speaks of it."""

STAGES = (AUDIT, FEATURES, BRAINS, LEVELS, CEILINGS, CONTROLS, DECISION, TABLES, REPORT)
