"""Crossed drops of one pair of mechanisms: two lines, one a strip, over the targets of both."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.lpact.figures.common import SUBJECT_RUN, layer_name, run_name
from lpact.analyses.lpact.figures.dissociation_rows import crossed_rows
from lpact.report.figure import DESCRIPTION, Spec, values, with_marks
from lpact.report.theme import colour
from lpact.report.wording import counted, short, signed


def pair_title(names: tuple[str, str], below: str | list[str]) -> Spec:
    """Title of a panel in two lines, with what stands beneath it."""
    return {
        "text": list(names),
        "subtitle": below,
        "fontSize": 11,
        "limit": 150,
        "frame": "group",
        "offset": 5,
    }


def _by_strip(range_: list[Any]) -> Spec:
    """A look that tells strip a from strip b."""
    scale = {"domain": ["a", "b"], "range": range_}
    return {"field": "strip", "type": "nominal", "scale": scale, "legend": None}


def crossed(
    pair: dict[str, Any], tests: pl.DataFrame, metric: str, names: tuple[str, str], *, first: bool
) -> Spec:
    """Two lines that cross where the strips dissociate."""
    rows = with_marks(crossed_rows(pair, tests), _crossed_text, "drop")
    rows = rows.with_columns(
        one=pl.concat_str([*SUBJECT_RUN, "strip"], separator="/", ignore_nulls=True)
    )
    below = [
        f"a  {short(pair['mechanism_a'], 24)}",
        f"b  {short(pair['mechanism_b'], 24)}",
        f"{pair['n_dissociated']} of {counted(pair['n_known'], 'subject-run')} dissociate",
    ]
    medians, runs = (rows.filter(pl.col("level") == level) for level in ("median", "run"))
    ink = {"color": _by_strip([colour("real"), colour("winner")])}
    lines = {**ink, "strokeDash": _by_strip([[1, 0], [5, 3]])}
    points = {**ink, "shape": _by_strip(["circle", "square"]), "description": DESCRIPTION}
    faint_lines = {"type": "line", "strokeWidth": 1, "opacity": 0.3, "aria": False}
    zero = {
        "data": {"values": [{"drop": 0}]},
        "mark": {"type": "rule", "color": colour("ink"), "aria": False},
        "encoding": {"x": {"value": 0}, "x2": {"value": "width"}},
    }
    return {
        "title": pair_title(names, below),
        "width": 132,
        "height": 130,
        "encoding": {
            "x": {
                "field": "at",
                "type": "nominal",
                "scale": {"domain": ["a", "b"], "padding": 0.6},
                "axis": {"title": "target units of mechanism", "labelAngle": 0},
            },
            "y": {
                "field": "drop",
                "type": "quantitative",
                "scale": {"nice": 5},
                "axis": {
                    "title": f"drop in {metric}" if first else None,
                    "tickCount": 5,
                    "format": ".2~g",
                },
            },
        },
        "layer": [
            zero,
            _layer(runs, faint_lines, {"detail": {"field": "one"}, **lines}),
            _layer(runs, {"type": "point", "size": 22, "opacity": 0.45}, points),
            _layer(medians, {"type": "line", "strokeWidth": 2.5, "aria": False}, lines),
            _layer(medians, {"type": "point", "size": 80}, points),
        ],
    }


def _layer(rows: pl.DataFrame, mark: Spec, encoding: Spec) -> Spec:
    return {"data": values(rows), "mark": mark, "encoding": encoding}


def _crossed_text(row: dict[str, Any]) -> str:
    what = f"{layer_name(row)}: strip {row['stripped']}, target {row['target']}: drop {signed(row['drop'], 4)}"
    if row["level"] == "median":
        return f"{what} (median of {counted(row['n'], 'subject-run')})"
    return f"{what} ({run_name(row)})"
