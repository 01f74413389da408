"""What pictures of operating characteristics share: which gates are drawn, and what they are called."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from lpact.analyses.lpact.figures.common import GATE_NAMES, GATES
from lpact.report.figure import Figure, Missing

DRAWN_GATES: dict[str, str] = {
    **{column: GATE_NAMES[letter] for letter, column in GATES.items()},
    "integrated": "all gates",
    "other_mechanism_specific": "mechanism, others",
    "other_integrated": "all gates, others",
}
"""Gates that are drawn, in the order of the chain, with their names; "others" are mechanisms that were not planted."""


def drawn(rates: pl.DataFrame, role: str) -> pl.DataFrame:
    """Rates of one role and of the gates above, with the gate's name and its place in the chain."""
    place = {gate: i for i, gate in enumerate(DRAWN_GATES)}
    return rates.filter(
        pl.col("role") == role, pl.col("gate").is_in(list(DRAWN_GATES))
    ).with_columns(
        gate_name=pl.col("gate").replace_strict(DRAWN_GATES, return_dtype=pl.String),
        place=pl.col("gate").replace_strict(place, return_dtype=pl.Int64),
    )


def of_reference(made: Figure | Missing) -> Figure | Missing:
    """The figure of the calibration that ships with lpact; its caption says that these studies are not the reader's."""
    if isinstance(made, Missing):
        return made
    note = "From reference studies that lpact simulated, not from this study or its design."
    return replace(made, caption=f"{note} {made.caption}")
