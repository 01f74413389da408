"""Bars of the weaker rules beside what passes."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import polars as pl

from lpact.analyses.lpact.figures.canvas import Canvas
from lpact.analyses.lpact.figures.common import PROFILES
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.gates.wording import words
from lpact.report.figure import Spec, with_marks

WEAKER, ROWS = "weaker rule", "rows that pass"
_FAR, _LEFT, _SCALE, _BAR, _TOP, _BETWEEN = -52, 196, 500, 13, 40, 14
_LOOKS: dict[str, tuple[str, str | None]] = {
    WEAKER: ("nuisance", None),
    ROWS: ("missing", "control"),
    PAPER: ("paper", "pass"),
    CALIBRATED: ("pass", None),
}
"""Fill and edge of each kind of bar, in the order in which they stand."""

_KEYS = {
    WEAKER: "positive by the weaker rule alone",
    ROWS: "rows that pass their rule",
    PAPER: f"claims that pass the gate, {PROFILES[PAPER]}",
    CALIBRATED: f"the same, {PROFILES[CALIBRATED]}",
}


_NAMES = {"raw_predictive_pearson": "raw predictive score"}
"""Names of analyses that are not their keys in words."""


def analysis_name(analysis: str) -> str:
    """An analysis in words."""
    return _NAMES.get(analysis) or words(analysis)


def bars_of(rows: pl.DataFrame) -> pl.DataFrame:
    """One row a bar: ``n`` of ``total``; rows are the same for both profiles and are shown once.

    Where ``n_lpact_pass`` is null no rule for rows exists, and there is no bar of rows that pass.
    """
    made: list[dict[str, Any]] = []
    for (analysis,), own in rows.group_by("analysis", maintain_order=True):
        first = own.row(0, named=True)
        base = {"analysis": str(analysis), "rule": first["rule"]}
        weaker = {"kind": WEAKER, "n": first["n_positive"], "total": first["n_total"]}
        made.append({**base, **weaker, "what": first["counted"]})
        if first["counted"] == "rows" and first["n_lpact_pass"] is not None:
            passed = {"kind": ROWS, "n": first["n_lpact_pass"], "total": first["n_total"]}
            made.append({**base, **passed, "what": "rows"})
        made += [
            {
                **base,
                "kind": row["gate_profile"],
                "n": row["n_claims_pass"],
                "total": row["n_claims"],
                "what": "claims",
                "gate_profile": row["gate_profile"],
                "gate": row["gate"],
            }
            for row in own.iter_rows(named=True)
        ]
    return pl.DataFrame(made, infer_schema_length=None)


def bars_spec(rows: pl.DataFrame) -> Spec:
    """Groups of bars, one group an analysis; a share of 100 % is as long as the scale."""
    bars = bars_of(rows)
    at, tops, bottom = _places(bars)
    canvas = Canvas(_LEFT + _SCALE + 110, bottom + 34)
    _legend(canvas, [kind for kind in _LOOKS if kind in set(bars["kind"])])
    _scale(canvas, bottom)
    share = pl.col("n") / pl.col("total").clip(1)
    placed = with_marks(bars.with_columns(share=share), _told, value="n").with_columns(
        pl.Series("y", at, dtype=pl.Float64),
        x=pl.lit(float(_LEFT)),
        x2=_LEFT + pl.col("share") * _SCALE,
    )
    placed = placed.with_columns(y2=pl.col("y") + _BAR - 2)
    for kind, (fill, edge) in _LOOKS.items():
        canvas.boxes(placed.filter(kind=kind), fill=fill, edge=edge, edge_width=1.2)
    canvas.lines([{"x": _LEFT, "x2": _LEFT, "y": _TOP, "y2": bottom}])
    numbers = placed.select(
        x=pl.col("x2") + 5,
        y=pl.col("y") + _BAR / 2 - 0.5,
        text=pl.Series([_counts(row) for row in placed.iter_rows(named=True)], dtype=pl.String),
    )
    canvas.words(numbers, size=10)
    first = bars.unique("analysis", keep="first", maintain_order=True)
    for (analysis, rule), y in zip(first.select("analysis", "rule").iter_rows(), tops, strict=True):
        canvas.words(
            [{"x": _FAR, "y": y + 8, "text": analysis_name(analysis)}],
            bold=True,
            limit=_LEFT - _FAR - 10,
        )
        lines = wrap(rule, 46)[:2]
        told = [{"x": _FAR, "y": y + 23 + 13 * i, "text": own} for i, own in enumerate(lines)]
        canvas.words(told, size=10, ink="muted", limit=_LEFT - _FAR - 10)
    return canvas.spec()


def _places(bars: pl.DataFrame) -> tuple[list[float], list[float], float]:
    """Top of every bar and of every group, and the bottom."""
    at, tops, y, before = [], [], float(_TOP + 6), ""
    for analysis in bars["analysis"]:
        if analysis != before:
            y += _BETWEEN if before else 0
            tops.append(y)
        at.append(y)
        y, before = y + _BAR, analysis
    return at, tops, y + 6


def _legend(canvas: Canvas, kinds: list[str]) -> None:
    x = float(_FAR)
    for kind in kinds:
        fill, edge = _LOOKS[kind]
        canvas.boxes(
            [{"x": x, "x2": x + 18, "y": 3, "y2": 14}], fill=fill, edge=edge, edge_width=1.2
        )
        canvas.words([{"x": x + 24, "y": 8.5, "text": _KEYS[kind]}])
        x += 44 + 5.1 * len(_KEYS[kind])


def _scale(canvas: Canvas, bottom: float) -> None:
    ticks = [{"x": _LEFT + _SCALE * i / 4, "text": f"{25 * i} %"} for i in range(5)]
    canvas.lines(
        [{"x": t["x"], "x2": t["x"], "y": _TOP, "y2": bottom} for t in ticks[1:]], ink="grid"
    )
    canvas.words([{**t, "y": bottom + 10} for t in ticks], size=10, align="center")
    middle = {"x": _LEFT + _SCALE / 2, "y": bottom + 27, "text": "share of rows or claims"}
    canvas.words([middle], align="center")


def _counts(row: dict[str, Any]) -> str:
    return f"{row['n']:,} of {row['total']:,} {row['what']}"


def _told(row: dict[str, Any]) -> str:
    share = f"{_counts(row)} ({100 * row['share']:.3g} %)"
    if row["kind"] == WEAKER:
        return f"{analysis_name(row['analysis'])}, weaker rule ({row['rule']}): {share} positive"
    if row["kind"] == ROWS:
        return f"{analysis_name(row['analysis'])}: {share} pass their row rule"
    return f"{analysis_name(row['analysis'])}, gate {words(row['gate'])}, {PROFILES[row['kind']]}: {share} pass"
