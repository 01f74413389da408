"""Stages that every run has, as progress, plans, logs and `lpact status` name them; analyses add their own between."""

from __future__ import annotations

AUDIT = "source audit"
FEATURES = "features"
DECISION = "decision"
TABLES = "tables"
REPORT = "report"

FIRST = (AUDIT, FEATURES)
LAST = (DECISION, TABLES, REPORT)
