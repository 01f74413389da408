"""ROBUSTNESS: what the verdicts hang on, from stored tables alone."""

from __future__ import annotations

from lpact.robustness.analysis import READS, READS_IF_THERE, robustness
from lpact.robustness.verdict import Finding, findings, integrated_counts

__all__ = [
    "READS",
    "READS_IF_THERE",
    "Finding",
    "findings",
    "integrated_counts",
    "robustness",
]
