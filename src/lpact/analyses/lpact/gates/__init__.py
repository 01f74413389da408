"""Verdicts from tables alone: gates, labels, the decision table and its explanation."""

from __future__ import annotations

from lpact.analyses.lpact.gates.decision import CALIBRATED, NEEDED, PAPER, decide
from lpact.analyses.lpact.gates.explain import explain

__all__ = ["CALIBRATED", "NEEDED", "PAPER", "decide", "explain"]
