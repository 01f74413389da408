"""What the figures of levels 2 and 3 share: layers and their names, which gates they pass, and colours of cells.

A layer is (dataset, model, layer): what a claim is about before its mechanism is named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from lpact.decide import CALIBRATED, PAPER
from lpact.report.figure import Material, Spec
from lpact.report.theme import DIVERGING, RAMP, colour, colours

LAYER = ["dataset", "model", "layer"]
RUN = ["subject", "session", "run"]
DECISIONS = "decisions/lpact_decision_table"
REAL, NUISANCE = "real", "nuisance"

PASS_SHAPES = {PAPER: "circle", CALIBRATED: "diamond"}
"""Shape of the mark for a passed gate, by gate profile."""

MINUS = "\N{MINUS SIGN}"


def layer_name(row: dict[str, Any]) -> str:
    """A layer in words."""
    return f"{row['dataset']} · {row['model']} · layer {row['layer']}"


def run_name(row: dict[str, Any]) -> str:
    """A subject-run in words."""
    return f"subject {row['subject']}, session {row['session']}, run {row['run']}"


def number(value: float | None, decimals: int = 3, *, sign: bool = True) -> str:
    """A number with a true minus sign; zero has no sign, and what is missing is a dash."""
    if value is None or not math.isfinite(value):
        return "–"
    rounded = round(value, decimals)
    if rounded == 0:
        return f"{0:.{decimals}f}"
    return f"{rounded:{'+' if sign else ''}.{decimals}f}".replace("-", MINUS)


def counted(n: int, one: str, many: str = "") -> str:
    """A count with its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def passes(material: Material, gate: str) -> pl.DataFrame:
    """Which layers pass a gate (for any mechanism), one row a layer, one column a gate profile."""
    if not material.has(DECISIONS):
        return pl.DataFrame(
            schema={
                "dataset": pl.String,
                "model": pl.String,
                "layer": pl.Int64,
                PAPER: pl.Boolean,
                CALIBRATED: pl.Boolean,
            }
        )
    held = [
        (pl.col(gate) & (pl.col("gate_profile") == profile)).any().alias(profile)
        for profile in (PAPER, CALIBRATED)
    ]
    return material.table(DECISIONS).sort(LAYER).group_by(LAYER, maintain_order=True).agg(held)


def mechanism_order(material: Material, found: pl.Series) -> list[str]:
    """Mechanisms as the study file names them, then others that the tables hold, by name."""
    known = [name for name in material.config.stripping.mechanisms if (found == name).any()]
    return [*known, *sorted(set(found.to_list()) - set(known))]


def round_up(value: float) -> float:
    """The next of 1, 2, 3, 5, 7 times a power of ten."""
    if not math.isfinite(value) or value <= 0:
        return 0.001
    power = 10.0 ** math.floor(math.log10(value))
    return float(next(m * power for m in (1, 2, 3, 5, 7, 10) if m * power >= value * (1 - 1e-9)))


def diverging_breaks(largest: float) -> list[float]:
    """Six bounds of seven classes around zero, the outer ones open: ±u, ±3u, ±5u, with 5u below the largest value."""
    unit = round_up(largest / 7)
    return [round(k * unit, 12) for k in (-5, -3, -1, 1, 3, 5)]


def class_of(value: float | None, breaks: Sequence[float]) -> int | None:
    """Index of the class that a value is in, as a threshold scale counts."""
    if value is None or not math.isfinite(value):
        return None
    return sum(value >= bound for bound in breaks)


def ink_on(roles: tuple[str, ...], place: int | None) -> str:
    """Colour of text over a cell: of the diverging or the rising scale, or of a missing one."""
    strong = {DIVERGING: (0, 1, 5, 6), RAMP: (4, 5, 6)}[roles]
    return colour("on_strong" if place in strong else "on_light")


def threshold_scale(roles: tuple[str, ...], breaks: Sequence[float]) -> Spec:
    """Colours in classes."""
    return {"type": "threshold", "domain": list(breaks), "range": colours(roles)}


def pass_shape_scale(labels: dict[str, str]) -> Spec:
    """Shapes of passed gates, by the name of the gate profile in pictures."""
    return {"domain": [labels[p] for p in PASS_SHAPES], "range": list(PASS_SHAPES.values())}


def own_colour(field: str) -> Spec:
    """A colour that the data bring along."""
    return {"field": field, "type": "nominal", "scale": None}
