"""ROBUSTNESS: what the verdicts hang on, from stored tables alone."""

from __future__ import annotations

from lpact.analyses.lpact.robustness.analysis import (
    READS,
    READS_DECIDED,
    READS_IF_THERE,
    robustness,
    uncertainty_tables,
)
from lpact.analyses.lpact.robustness.cost import RobustnessCost, robustness_cost
from lpact.analyses.lpact.robustness.verdict import Finding, findings, integrated_counts

__all__ = [
    "READS",
    "READS_DECIDED",
    "READS_IF_THERE",
    "Finding",
    "RobustnessCost",
    "findings",
    "integrated_counts",
    "robustness",
    "robustness_cost",
    "uncertainty_tables",
]
