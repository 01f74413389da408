"""Overview of level 2: layers down, alignment × profile summaries across, advantage over the nearest rival inside."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.canvas import DASH, Canvas
from lpact.analyses.lpact.figures.cell_colours import class_of, ink_on
from lpact.analyses.lpact.figures.common import LAYER, PROFILES, ShortLayerNames, layer_name
from lpact.analyses.lpact.figures.profile_marks import draw_passed
from lpact.analyses.lpact.figures.similarities import SUMMARIES
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.report.figure import Spec, with_marks
from lpact.report.theme import DIVERGING
from lpact.report.wording import counted, short, signed

_LABELS = 218
_ROW = 18
_HEAD = 34
_RIVAL = 200


def reasons_of(material: Material) -> dict[tuple[Any, ...], str]:
    """Why a layer's summary has no numbers: the most frequent reason, by layer and summary."""
    if not material.has(SUMMARIES):
        return {}
    keys = [*LAYER, "alignment", "profile"]
    table = material.table(SUMMARIES).filter(pl.col("reason") != "ok").sort(keys)
    own = table.group_by(keys, maintain_order=True).agg(pl.col("reason").mode().sort().first())
    return {tuple(row[:-1]): str(row[-1]) for row in own.iter_rows()}


def matrix(
    material: Material,
    nearest: pl.DataFrame,
    shown: pl.DataFrame,
    order: list[tuple[str, str]],
    breaks: list[float],
) -> Spec:
    """Layers down, summaries across; then the marks of gate R and the most frequent nearest rival."""
    cell = max(24.0, min(46.0, 430 / len(order)))
    gates = _LABELS + 8 + cell * len(order) + 8
    canvas = Canvas(gates + 44 + _RIVAL, _HEAD + _ROW * shown.height + 2)
    cells = _cells(material, nearest, shown, order, breaks, cell)
    for place, role in [*enumerate(DIVERGING), (None, "missing")]:
        own = cells.filter(pl.col("place").eq_missing(place))
        canvas.boxes(own, fill=role, edge="paper")
    for ink in ("on_light", "on_strong"):
        text = cells.filter(pl.col("ink") == ink).select(
            x=(pl.col("x") + pl.col("x2")) / 2, y=(pl.col("y") + pl.col("y2")) / 2, text="shown"
        )
        canvas.words(text, size=10, align="center", ink=ink)
    _heads(canvas, order, cell, gates)
    _sides(canvas, shown, gates)
    return canvas.spec()


def _cells(
    material: Material,
    nearest: pl.DataFrame,
    shown: pl.DataFrame,
    order: list[tuple[str, str]],
    breaks: list[float],
    cell: float,
) -> pl.DataFrame:
    known = {
        tuple(row[name] for name in (*LAYER, "alignment", "profile")): row
        for row in nearest.iter_rows(named=True)
    }
    reasons = reasons_of(material)
    made = []
    for down, layer in enumerate(shown.select(LAYER).iter_rows()):
        for across, summary in enumerate(order):
            row = known.get((*layer, *summary))
            value = None if row is None else float(row["advantage"])
            place = class_of(value, breaks)
            made.append(
                {
                    **dict(zip(LAYER, layer, strict=True)),
                    "alignment": summary[0],
                    "profile": summary[1],
                    "advantage": value,
                    "rival": None if row is None else row["condition"],
                    "counted": None if row is None else row["counted"],
                    "n_subject_runs": 0 if row is None else row["n_subject_runs"],
                    "why": reasons.get((*layer, *summary), "not_computed"),
                    "place": place,
                    "ink": ink_on(DIVERGING, place),
                    "shown": signed(value, 2),
                    "x": _LABELS + 8 + across * cell,
                    "x2": _LABELS + 8 + (across + 1) * cell,
                    "y": float(_HEAD + down * _ROW),
                    "y2": float(_HEAD + (down + 1) * _ROW),
                }
            )
    frame = pl.DataFrame(made, infer_schema_length=None)
    return with_marks(frame, _cell_text, "advantage")


def _cell_text(row: dict[str, Any]) -> str:
    what = f"{layer_name(row)}: {row['alignment']} alignment, {row['profile']} profile similarity"
    if row["advantage"] is None:
        return f"{what}: not computed ({row['why']})"
    counts = "" if row["counted"] else ", not counted by point rules"
    return (
        f"{what}: real − nearest rival {signed(row['advantage'])} ({row['rival']}{counts}; "
        f"mean over units, then over {counted(row['n_subject_runs'], 'subject-run')})"
    )


def _heads(canvas: Canvas, order: list[tuple[str, str]], cell: float, gates: float) -> None:
    """Alignment measures above profile similarities; what stands at the right."""
    left = _LABELS + 8
    profiles = [
        {"x": left + (i + 0.5) * cell, "y": 22.0, "text": profile}
        for i, (_, profile) in enumerate(order)
    ]
    canvas.words(profiles, size=9, align="center", limit=cell, ink="muted")
    for alignment in dict.fromkeys(a for a, _ in order):
        at = [i for i, (a, _) in enumerate(order) if a == alignment]
        middle = left + (at[0] + at[-1] + 1) / 2 * cell
        canvas.words(
            [{"x": middle, "y": 7.0, "text": alignment}],
            align="center",
            limit=len(at) * cell - 4,
            bold=True,
        )
    canvas.words([{"x": gates + 16, "y": 22.0, "text": "R"}], align="center", bold=True)
    canvas.words(
        [{"x": gates + 44, "y": 22.0, "text": "nearest rival (in how many summaries)"}], bold=True
    )


def _sides(canvas: Canvas, shown: pl.DataFrame, gates: float) -> None:
    """Names at the left; passed gates and the nearest rival at the right; lines between datasets."""
    names = ShortLayerNames(shown)
    rows = shown.with_columns(y=_HEAD + _ROW * (pl.int_range(pl.len()) + 0.5)).to_dicts()
    canvas.words(
        [{"x": float(_LABELS), "y": row["y"], "text": names.of(row, 38)} for row in rows],
        align="right",
    )
    for profile, at in ((PAPER, 8), (CALIBRATED, 24)):
        marks = pl.DataFrame(
            [{**row, "x": gates + at, "gate_profile": profile} for row in rows],
            infer_schema_length=None,
        )
        held = pl.col(profile)
        words = PROFILES[profile]
        passed = with_marks(
            marks.filter(held),
            lambda row, w=words: f"{layer_name(row)}: R passed, {w}",  # type: ignore[misc]
        )
        failed = with_marks(
            marks.filter(~held),
            lambda row, w=words: f"{layer_name(row)}: R not passed, {w}",  # type: ignore[misc]
        )
        draw_passed(canvas, passed, profile)
        canvas.symbols(failed, DASH, radius=4, edge="line", thick=1)
    rivals = [
        {
            "x": gates + 44,
            "y": row["y"],
            "text": f"{short(row['rival'], 30)} ({row['times']} of {row['n_summaries']})"
            if row["rival"]
            else "–",
        }
        for row in rows
    ]
    canvas.words(rivals, ink="muted", size=10)
    changes = [
        {"x": 0.0, "x2": gates + 44 + _RIVAL, "y": now["y"] - _ROW / 2, "y2": now["y"] - _ROW / 2}
        for before, now in pairwise(rows)
        if before["dataset"] != now["dataset"]
    ]
    canvas.lines(changes, ink="line")
