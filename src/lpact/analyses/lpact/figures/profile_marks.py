"""How the gate profiles look everywhere: an open disc for point rules, a filled square where every gate is a test."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.lpact.figures.canvas import Canvas, Rows
from lpact.analyses.lpact.figures.common import PROFILES
from lpact.analyses.lpact.figures.key import Key
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.report.figure import Spec
from lpact.report.theme import colour

PROFILE = "profile_name"
"""Column with the profile's name in pictures."""

PROFILE_SHAPES = {PAPER: "circle", CALIBRATED: "square"}
_SHAPES = tuple(PROFILE_SHAPES.values())
_THICK = 1.4


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
    ink, paper = colour("ink"), colour("paper")
    fill = [paper if i % 2 == 0 else ink for i in range(len(names))]
    shapes = [_SHAPES[i % 2] for i in range(len(names))]

    def channel(range_: list[str]) -> dict[str, Any]:
        scale = {"domain": names, "range": range_}
        return {"field": PROFILE, "type": "nominal", "scale": scale, "legend": shown}

    return {
        "shape": channel(shapes),
        "fill": channel(fill),
        "stroke": channel([ink] * len(names)),
    }


def draw_passed(canvas: Canvas, rows: Rows, profile: str) -> None:
    """Marks of a passed gate on a canvas."""
    if profile == PAPER:
        canvas.symbols(rows, "circle", radius=4, fill="paper", edge="ink", thick=_THICK)
    else:
        canvas.symbols(rows, "square", radius=4, fill="ink")


def explain_passed(key: Key, gate: str) -> Key:
    """The marks of a passed gate in a key."""
    ink = colour("ink")
    for profile, shape in PROFILE_SHAPES.items():
        if profile == PAPER:
            look: Spec = {"filled": False, "stroke": ink, "strokeWidth": _THICK}
        else:
            look = {"filled": True, "color": ink}
        key.symbol(f"{gate} passed, {PROFILES[profile]}", shape=shape, size=44, **look)
    return key
