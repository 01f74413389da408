"""What pictures of operating characteristics share: which gates are drawn, and what they are called."""

from __future__ import annotations

import polars as pl

GATES: dict[str, str] = {
    "predictive": "predictive",
    "severe_control": "severe controls",
    "relational": "relational",
    "mechanism_specific": "mechanism",
    "ceiling": "ceiling",
    "replication": "replication",
    "integrated": "all gates",
    "other_mechanism_specific": "mechanism, others",
    "other_integrated": "all gates, others",
}
"""Gates that are drawn, in the order of the chain, with their names; "others" are mechanisms that were not planted."""


def drawn(rates: pl.DataFrame, role: str) -> pl.DataFrame:
    """Rates of one role and of the gates above, with the gate's name and its place in the chain."""
    place = {gate: i for i, gate in enumerate(GATES)}
    return rates.filter(pl.col("role") == role, pl.col("gate").is_in(list(GATES))).with_columns(
        gate_name=pl.col("gate").replace_strict(GATES, return_dtype=pl.String),
        place=pl.col("gate").replace_strict(place, return_dtype=pl.Int64),
    )


def span(numbers: pl.Series) -> str:
    """One number, or the smallest and the largest of several."""
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
