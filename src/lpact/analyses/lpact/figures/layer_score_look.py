"""How conditions of level 1 look: one shape, colour and size each, in strips and along layers alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from lpact.analyses.lpact.figures.canvas import Canvas
from lpact.analyses.lpact.figures.layer_score_rows import (
    ABSENT,
    BEST,
    BOTH,
    CEILING,
    COUNTED,
    KINDS,
    NOT_COUNTED,
    NUISANCE,
    ONE_RUN,
    REAL,
)
from lpact.analyses.lpact.figures.predictive_rows import n_subject_runs
from lpact.analyses.lpact.figures.wording import counted, mode_names, number
from lpact.report.figure import DESCRIPTION, Spec, values, with_marks
from lpact.report.theme import colour

_BROKEN = "M-1,0L-0.3,0M0.3,0L1,0"
"""Outline of a broken line."""

_IN_STRIPS = {
    # kind: shape, fill, edge, size
    REAL: ("circle", "real", "real", 46),
    NUISANCE: ("diamond", "nuisance", "nuisance", 54),
    BOTH: ("square", "paper", "nuisance", 40),
    BEST: ("triangle-up", "winner", "winner", 80),
    COUNTED: ("triangle-up", "control", "control", 20),
    NOT_COUNTED: ("triangle-up", "paper", "control", 20),
    ONE_RUN: ("circle", "real", "paper", 16),
    CEILING: (_BROKEN, "brain", "brain", 120),
    ABSENT: ("cross", "muted", "paper", 40),
}
_ON_LINES = _IN_STRIPS | {
    REAL: ("circle", "real", "real", 26),
    NUISANCE: ("diamond", "nuisance", "nuisance", 22),
    BOTH: ("square", "paper", "nuisance", 18),
    BEST: ("triangle-up", "winner", "winner", 34),
    COUNTED: ("circle", "control", "control", 3),
    NOT_COUNTED: ("circle", "paper", "control", 3),
}
_IN_LEGEND = {COUNTED: "stroke", NOT_COUNTED: _BROKEN}
"""Controls along layers are lines; their points are only there to be hovered over."""


def kind_channels(*, on_lines: bool = False) -> Spec:
    """Shape, colour and size by kind of condition."""
    look = {
        kind: own for kind, own in (_ON_LINES if on_lines else _IN_STRIPS).items() if kind in KINDS
    }
    ranges: dict[str, list[Any]] = {
        "shape": [own[0] for own in look.values()],
        "fill": [colour(own[1]) for own in look.values()],
        "stroke": [colour(own[2]) for own in look.values()],
        "size": [own[3] for own in look.values()],
    }
    return {
        channel: {
            "field": "kind",
            "type": "nominal",
            "scale": {"type": "ordinal", "domain": list(look), "range": own},
            "legend": None,
        }
        for channel, own in ranges.items()
    }


def legend(
    rows: pl.DataFrame, ceilings: pl.DataFrame, width: float, *, on_lines: bool = False
) -> Spec:
    """What the shapes of the conditions that occur mean, in columns."""
    kinds = [REAL, ONE_RUN, *(kind for kind in KINDS[1:] if kind in set(rows["kind"]))]
    kinds += [CEILING] if ceilings.height else []
    kinds += [ABSENT] if on_lines and rows["place"].null_count() else []
    n_columns = min(4, max(2, int(width // 170)))
    canvas = Canvas(width, 16 * -(-len(kinds) // n_columns))
    for place, kind in enumerate(kinds):
        shape, fill, edge, size = _IN_STRIPS[kind]
        if on_lines and kind in _IN_LEGEND:
            shape, size = _IN_LEGEND[kind], 120
        x, y = (place % n_columns) * (width / n_columns), 8 + 16 * (place // n_columns)
        at = [{"x": x + 7, "y": y}]
        outline = shape in ("stroke", _BROKEN)
        canvas.symbols(
            at,
            shape,
            radius=size**0.5 / 2,
            fill=None if outline else fill,
            edge=edge,
            opacity=0.5 if kind == ONE_RUN else 1,
            thick=1.6 if outline else 1.2,
        )
        canvas.words([{"x": x + 18, "y": y, "text": kind}])
    return canvas.spec()


def told(row: dict[str, Any], metric: str) -> str:
    """What a reader sees of a condition on hovering."""
    where = f"{row['dataset']}, {row['model']}, layer {row['layer']}"
    if row["place"] is None:
        return f"{where}: {row['condition']} was not computed ({row['reason']})"
    text = f"{where}: {row['condition']}, mean {metric} {number(row['mean'])}"
    if row["low"] is not None:
        text += f" [{number(row['low'])}, {number(row['high'])}]"
    text += f" over {counted(row['n'], 'subject-run')}"
    if row["n"] < row["n_all"]:
        text += f" of {row['n_all']}"
    if row["delta"] is not None:
        text += f"; real minus {'control' if row['kind'] not in (NUISANCE, BOTH) else 'this'} {number(row['delta'])}"
        if row["n_both"] < max(row["n"], row["n_real"]):
            text += (
                f" over the {counted(row['n_both'], 'subject-run')} with both (the real features have "
                f"{row['n_real']}), so drawn at {number(row['place'])}"
            )
    if row["kind"] == BEST:
        text += "; the strongest counted control here"
    if row["kind"] == NOT_COUNTED:
        text += "; not counted by the point rules"
    return text


def told_run(row: dict[str, Any], metric: str) -> str:
    """What a reader sees of the real features in one subject-run on hovering."""
    return (
        f"{row['dataset']}, {row['model']}, layer {row['layer']}, subject {row['subject']}, session {row['session']}, "
        f"run {row['run']}: {metric} of the real features {number(row['score'])}"
    )


def panel_title(text: str, width: int) -> Spec:
    """Title of a panel, flush with its left edge."""
    return {"text": text, "fontSize": 11, "limit": width, "offset": 4, "frame": "group"}


def domain_of(rows: pl.DataFrame, dots: pl.DataFrame, ceiling: float | None) -> tuple[float, float]:
    """Range of scores that a row of panels shows: everything that is drawn, zero, and a little room."""
    drawn: list[float] = [0.0] if ceiling is None else [0.0, ceiling]
    for column in (rows["place"], rows["low"], rows["high"], dots["score"]):
        drawn += [value for value in column.to_list() if value is not None and math.isfinite(value)]
    low, high = min(drawn), max(drawn)
    room = 0.05 * (high - low) or 0.01
    return (low - room if low < 0 else low, high + room)


def about(rows: pl.DataFrame, ceiling: pl.DataFrame) -> str:
    """How many subject-runs a dataset has, and their response reliability."""
    text = n_subject_runs(rows)
    if not ceiling.height:
        return f"{text}; no response reliability"
    reliability, modes = number(ceiling["reliability"][0], 2), mode_names(ceiling["modes"][0])
    return f"{text}; response reliability {reliability}, {modes}"


def ceiling_rule(ceiling: pl.DataFrame, channel: str, axis: Spec) -> Spec:
    """A broken line at the response reliability, across ``channel``."""
    rows = with_marks(
        ceiling.select("dataset", "modes", "n", mean="reliability"),
        lambda row: (
            f"{row['dataset']}: {CEILING} {number(row['mean'])}, {mode_names(row['modes'])}, "
            f"mean over {counted(row['n'], 'recording')}"
        ),
        "mean",
    )
    dashed = {"type": "rule", "color": colour("brain"), "strokeDash": [4, 3], "strokeWidth": 1.5}
    return {
        "data": values(rows.select("mean", "mark")),
        "mark": dashed,
        "encoding": {channel: axis, "description": dict(DESCRIPTION)},
    }


def chunks(items: Sequence[Any], size: int) -> list[list[Any]]:
    """Consecutive parts of at most ``size`` items, of about equal length."""
    n_parts = max(1, -(-len(items) // size))
    each = -(-len(items) // n_parts)
    return [list(items[i : i + each]) for i in range(0, len(items), each)]
