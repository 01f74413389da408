"""What the report takes. It is not calibrated: figures are drawn for every study alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FIGURES_S = 8.0
"""To draw the figures and lay out the page, on one core; a round figure, not timed on this machine."""

CLAIM_S = 0.03
"""For every claim more: it is decided again under other thresholds."""

FIGURES_BYTES = 12_000_000
"""Figures as pictures and as vector graphics, and the page that holds them."""

AS_TEXT = 1.75
"""Tables as CSV and LaTeX, over the same as Parquet and CSV."""

DRAWING_BYTES = 150_000_000
"""What the drawing library holds."""


@dataclass(frozen=True)
class ReportCost:
    """Seconds, bytes of memory above the tables', bytes on disk."""

    seconds: float
    peak_bytes: int
    disk_bytes: int


def report_cost(table_bytes: Mapping[str, int], n_claims: int) -> ReportCost:
    """Rough cost of a report: its tables are written as CSV and LaTeX again."""
    return ReportCost(
        FIGURES_S + CLAIM_S * n_claims,
        DRAWING_BYTES,
        FIGURES_BYTES + int(AS_TEXT * sum(table_bytes.values())),
    )
