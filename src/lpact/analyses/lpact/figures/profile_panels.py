"""Drawing of one profile heat map: a square, strips under it, and region names at its edges."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.lpact.figures.canvas import Canvas
from lpact.analyses.lpact.figures.common import LAYER, layer_name
from lpact.analyses.lpact.figures.profile_blocks import Block, Panel
from lpact.report.figure import MARK, Spec, mark, with_marks
from lpact.report.theme import RAMP
from lpact.report.wording import counted, number, short

_CLASSES: list[tuple[int | None, str]] = [*enumerate(RAMP), (None, "missing")]
_SIDE = 300.0
_LEFT = 84.0
_STRIP = 16.0
_LINE = 16.0
_SMALLEST_LABEL = 11.0
_ONE_BY_ONE = 40
"""Up to so many units, every cell of the square can be pointed at; beyond, only the strips' cells."""


def drawn_panel(panel: Panel, title: str) -> Spec:
    """The panel as a picture."""
    square, *strips = panel.blocks
    step = _SIDE / len(panel.places)
    canvas = Canvas(_LEFT + _SIDE, _LINE + _SIDE + len(strips) * (_STRIP + _LINE) + 22)
    rows = _cells(panel, square, _LINE, step, step)
    if len(panel.places) > _ONE_BY_ONE:
        _outlines(canvas, panel, rows)
        rows = []
    canvas.words([_heading(panel, square, 8.0)], size=10)
    top = _LINE + _SIDE
    for strip in strips:
        canvas.words([_heading(panel, strip, top + _LINE / 2)], size=10)
        rows.extend(_cells(panel, strip, top + _LINE, step, _STRIP))
        top += _LINE + _STRIP
    cells = with_marks(
        pl.DataFrame(rows, infer_schema_length=None), lambda row: str(row["words"]), "value"
    )
    for place, role in _CLASSES:
        own = cells.filter(pl.col("place").eq_missing(place))
        canvas.boxes(own, fill=role, edge=role, edge_width=0.5)
    _regions(canvas, panel, step, top)
    n = f"{counted(panel.n_subject_runs, 'subject-run')}, {counted(len(panel.places), _kind(panel))}"
    return {
        "title": {
            "text": title,
            "subtitle": f"{panel.alignment} alignment; mean over {n}",
            "fontSize": 12,
            "limit": 370,
            "offset": 4,
        },
        **canvas.spec(),
    }


def _outlines(canvas: Canvas, panel: Panel, rows: list[dict[str, Any]]) -> None:
    """The cells of a large square: one outline a class, since a mark a cell would make the picture heavy."""
    words = f"{layer_name(panel.layer)}: brain, unit with unit, {panel.alignment} alignment"
    for place, role in _CLASSES:
        own = [row for row in rows if row["place"] == place]
        path = "".join(
            f"M{row['x']:.2f},{row['y']:.2f}h{row['x2'] - row['x']:.2f}v{row['y2'] - row['y']:.2f}"
            f"h{row['x'] - row['x2']:.2f}z"
            for row in own
        )
        if path:
            told = mark(
                f"{words}: {len(own):,} of {counted(len(rows), 'cell')} in this class",
                **_where(panel),
            )
            canvas.symbols([{"x": 0.0, "y": 0.0, MARK: told}], path, radius=1, fill=role)


def _kind(panel: Panel) -> str:
    return "region" if panel.of_regions else "unit"


def _where(panel: Panel) -> dict[str, Any]:
    return {name: panel.layer[name] for name in LAYER}


def _heading(panel: Panel, block: Block, y: float) -> dict[str, Any]:
    """Name, similarity and ends of a block, above it."""
    kind = _kind(panel)
    words = short(block.name, 38) if block.strip else f"brain, {kind} with {kind}"
    if block.similarity is not None:
        words += f": {number(block.similarity, 2)}"
        if block.n_similar != panel.n_subject_runs:
            words += f" in {block.n_similar} of {counted(panel.n_subject_runs, 'subject-run')}"
    if block.ends is not None:
        low, high = (number(end, 2) for end in block.ends)
        words += f" ({low} to {high})"
    return {"x": _LEFT, "y": y, "text": words}


def _cells(
    panel: Panel, block: Block, top: float, width: float, height: float
) -> list[dict[str, Any]]:
    made = []
    for down, row in enumerate(block.numbers.tolist()):
        for across, value in enumerate(row):
            known = bool(np.isfinite(value))
            made.append(
                {
                    **_where(panel),
                    "value": value if known else None,
                    "place": _class(value, block) if known else None,
                    "words": _words(panel, block, None if block.strip else down, across, value),
                    "x": _LEFT + across * width,
                    "x2": _LEFT + (across + 1) * width,
                    "y": top + down * height,
                    "y2": top + (down + 1) * height,
                }
            )
    return made


def _class(value: float, block: Block) -> int:
    """Seventh of the block's own range that the value lies in, from 0."""
    low, high = block.ends or (0.0, 0.0)
    if high <= low:
        return 0
    return min(len(RAMP) - 1, int((value - low) / (high - low) * len(RAMP)))


def _words(panel: Panel, block: Block, down: int | None, across: int, value: float) -> str:
    at = _named(panel, across)
    who = block.name if down is None else f"brain, {_named(panel, down)}"
    shown = number(value, 3) if np.isfinite(value) else "undefined"
    return f"{layer_name(panel.layer)}: {who} with {at}: {panel.alignment} alignment {shown}"


def _named(panel: Panel, place: int) -> str:
    name, region = panel.places[place], panel.regions[place]
    return name if not region or region == name else f"{name} ({region})"


def _regions(canvas: Canvas, panel: Panel, step: float, bottom: float) -> None:
    """Lines between regions, and their names where there is room."""
    spans: list[tuple[str, int, int]] = []
    for name, group in groupby(enumerate(panel.regions), key=lambda pair: pair[1]):
        places = [i for i, _ in group]
        spans.append((name, places[0], places[-1] + 1))
    if len(spans) < 2:
        return
    if not panel.of_regions:
        starts = [start * step for _, start, _ in spans[1:]]
        right, end = _LEFT + _SIDE, _LINE + _SIDE
        lines = [{"x": _LEFT, "x2": right, "y": _LINE + at, "y2": _LINE + at} for at in starts]
        lines += [{"x": _LEFT + at, "x2": _LEFT + at, "y": _LINE, "y2": end} for at in starts]
        lines += [
            {"x": _LEFT + at, "x2": _LEFT + at, "y": top + _LINE, "y2": top + _LINE + _STRIP}
            for at in starts
            for top in np.arange(end, bottom, _LINE + _STRIP).tolist()
        ]
        canvas.lines(lines, ink="paper", thick=2)
    wide = [(name, (a + b) / 2 * step, (b - a) * step) for name, a, b in spans]
    down = [
        {"x": _LEFT - 5, "y": _LINE + middle, "text": name}
        for name, middle, room in wide
        if room >= _SMALLEST_LABEL
    ]
    canvas.words(down, size=10, align="right", limit=_LEFT - 8)
    for name, middle, room in wide:
        if room >= 5.4 * len(name):
            label = {"x": _LEFT + middle, "y": bottom + 10, "text": name}
            canvas.words([label], size=10, align="center")
