"""Verdicts from tables alone: gates, labels and the decision table."""

from __future__ import annotations

from lpact.analyses.lpact.gates.criteria import CALIBRATED, PAPER
from lpact.analyses.lpact.gates.decision import NEEDED, decide

__all__ = ["CALIBRATED", "NEEDED", "PAPER", "decide"]
