"""Verdicts from tables alone: gates, labels and the decision table."""

from __future__ import annotations

from lpact.analyses.lpact.gates.decision import CALIBRATED, NEEDED, PAPER, decide

__all__ = ["CALIBRATED", "NEEDED", "PAPER", "decide"]
