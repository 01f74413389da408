"""How the two gate profiles look: an open disc for point rules, a filled square where every gate is a test."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.report.figure import Spec
from lpact.report.figures.common import PROFILES
from lpact.report.theme import colour

PROFILE = "profile_name"
"""Column with the profile's name in pictures."""

_SHAPES = ("circle", "square")


def profile_names(profiles: list[str]) -> list[str]:
    """Names of gate profiles in pictures, point rules first; one that is not known keeps its own name."""
    known = [name for name in PROFILES if name in profiles]
    return [PROFILES.get(name, name) for name in [*known, *sorted(set(profiles) - set(known))]]


def with_profile(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the profile's name in pictures."""
    named = pl.col("gate_profile").replace_strict(
        PROFILES, default=pl.col("gate_profile"), return_dtype=pl.String
    )
    return rows.with_columns(named.alias(PROFILE))


def looks(names: list[str], *, legend: bool = True) -> Spec:
    """Encodings of shape, fill and line by profile; one legend for all three."""
    shown = {"title": "gate profile", "symbolSize": 60} if legend else None
    strong, paper = colour("real"), colour("paper")
    ink = [colour("ink") if i % 2 == 0 else strong for i in range(len(names))]
    fill = [paper if i % 2 == 0 else strong for i in range(len(names))]
    shapes = [_SHAPES[i % 2] for i in range(len(names))]

    def channel(range_: list[str]) -> dict[str, Any]:
        scale = {"domain": names, "range": range_}
        return {"field": PROFILE, "type": "nominal", "scale": scale, "legend": shown}

    return {"shape": channel(shapes), "fill": channel(fill), "stroke": channel(ink)}
