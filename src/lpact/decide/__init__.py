"""Verdicts from tables alone: gates, labels, the decision table and its explanation."""

from __future__ import annotations

from lpact.decide.decision import CALIBRATED, NEEDED, PAPER, decide
from lpact.decide.explain import explain

__all__ = ["CALIBRATED", "NEEDED", "PAPER", "decide", "explain"]
