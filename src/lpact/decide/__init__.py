"""Verdicts from tables alone: gates, labels, the decision table and its explanation."""

from __future__ import annotations

from lpact.decide.decision import GATE_PROFILE, NEEDED, decide
from lpact.decide.explain import explain

__all__ = ["GATE_PROFILE", "NEEDED", "decide", "explain"]
