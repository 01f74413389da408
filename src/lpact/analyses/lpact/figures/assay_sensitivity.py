"""Could the assay have said yes? Positive controls by dataset: which pass, which do not, which are not available."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.assays.lines import SIMULATED, Finding, findings
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.figures.canvas import CROSS, DASH, Canvas
from lpact.analyses.lpact.figures.common import PROFILES
from lpact.analyses.lpact.gates.wording import words
from lpact.report.figure import MARK, Figure, Missing, mark
from lpact.report.wording import counted, letters_in

NAME = "assay_sensitivity"
TITLE = "Assay sensitivity: could the assay have said yes?"

_LEFT, _WIDTH, _ROW, _HEAD, _GROUP = 236, 960, 18, 30, 24
_WIDEST, _NARROWEST, _ROOM = 176, 26, 84


def rows_of(material: Material) -> pl.DataFrame:
    """One row a finding, in the order of the controls; ``fits``: whether it is as expected (null: not available)."""
    found = findings(material.tables, LPactConfig.of(material.config).gates)
    whats: dict[str, set[str]] = {}
    for own in found:
        whats.setdefault(own.control, set()).add(own.what)
    return pl.DataFrame(
        [
            {
                "control": own.control,
                "what": own.what,
                "group": _line(own, whats)[0],
                "line": _line(own, whats)[1],
                "dataset": own.dataset,
                "passes": own.passes,
                "expected": own.expected,
                "fits": None if own.passes is None else own.passes == own.expected,
                "result": own.result,
                "detail": own.detail,
                "reason": own.reason,
                "number": own.number,
            }
            for own in found
        ],
        schema_overrides={"passes": pl.Boolean, "fits": pl.Boolean},
        infer_schema_length=None,
    )


def _line(finding: Finding, whats: dict[str, set[str]]) -> tuple[str, str]:
    """Heading and name of a finding's line; controls with one line each share the heading before their comma."""
    heading, _, rest = finding.control.partition(", ")
    if len(whats[finding.control]) == 1 and rest:
        return heading, rest
    profile = finding.what.rpartition("gate profile ")[2]
    if profile in PROFILES:
        return finding.control, finding.what.replace(f"gate profile {profile}", PROFILES[profile])
    return finding.control, finding.what


def make(material: Material) -> Figure | Missing:
    """Draw the matrix of positive controls."""
    rows = rows_of(material)
    if rows.is_empty():
        switched = (
            "" if LPactConfig.of(material.config).assay.enabled else " ([assay] enabled = false)"
        )
        return Missing(NAME, TITLE, f"the run has no positive controls{switched}")
    return Figure(NAME, TITLE, _caption(rows), _summary(rows), _draw(rows))


def _draw(rows: pl.DataFrame) -> dict[str, Any]:
    datasets, step = _columns(rows)
    columns = {name: _LEFT + i * step for i, name in enumerate(datasets)} | {SIMULATED: _LEFT}
    width = max(_LEFT + max(len(datasets), 1) * step, 560)
    lines = rows.select("group", "line").unique(maintain_order=True)
    at, heads, bottom = _places(lines)
    canvas = Canvas(width, bottom)
    _legend(canvas)
    _names(canvas, at, heads, width)
    _dataset_names(canvas, columns, heads, rows, step)
    cells = pl.DataFrame(
        [_cell(row, columns, at) for row in rows.iter_rows(named=True)], infer_schema_length=None
    )
    _symbols(canvas, cells)
    _texts(canvas, cells, step, width)
    return canvas.spec()


def _columns(rows: pl.DataFrame) -> tuple[list[str], float]:
    """Datasets in order, and the width of their columns."""
    datasets = sorted(set(rows["dataset"]) - {SIMULATED})
    return datasets, max(_NARROWEST, min(_WIDEST, (_WIDTH - _LEFT) / max(len(datasets), 1)))


def _numbered(datasets: list[str], step: float) -> bool:
    """Whether names are too long for their columns, which then have numbers."""
    return max((len(name) for name in datasets), default=0) > letters_in(step - 8)


def _places(lines: pl.DataFrame) -> tuple[dict[tuple[str, str], float], dict[str, float], float]:
    """Middle of every line and of every control's heading, from the top; and the bottom."""
    at: dict[tuple[str, str], float] = {}
    heads: dict[str, float] = {}
    y = float(_HEAD)
    for group, line in lines.iter_rows():
        if group not in heads:
            y += 6 if heads else 0
            heads[group] = y + _GROUP / 2
            y += _GROUP
        at[(group, line)] = y + _ROW / 2
        y += _ROW
    return at, heads, y


def _cell(
    row: dict[str, Any], columns: dict[str, float], at: dict[tuple[str, str], float]
) -> dict[str, Any]:
    x, y = columns[row["dataset"]] + 12, at[(row["group"], row["line"])]
    wanted = "" if row["expected"] else "; it should not pass"
    return {
        "x": x,
        "y": y,
        "passes": row["passes"],
        "fits": row["fits"],
        "alone": row["dataset"] == SIMULATED,
        "text": _beside(row),
        MARK: mark(
            f"{row['control']}, {row['what']}; {row['dataset']}: {row['result']}{wanted}. {row['detail']}",
            dataset=None if row["dataset"] == SIMULATED else row["dataset"],
            value=None if row["passes"] is None else float(row["passes"]),
        ),
    }


def _beside(row: dict[str, Any]) -> str:
    """The finding's own words for the simulated study, which has the line to itself; else a number or a reason."""
    if row["dataset"] == SIMULATED:
        return str(row["detail"])
    return str(row["number"]) if row["passes"] is not None else words(row["reason"])


def _names(
    canvas: Canvas, at: dict[tuple[str, str], float], heads: dict[str, float], width: float
) -> None:
    bands = [
        {"x": 0, "x2": width, "y": y - _GROUP / 2 + 2, "y2": y + _GROUP / 2 - 2}
        for y in heads.values()
    ]
    canvas.boxes(bands, fill="band")
    shown = [{"x": 4, "y": y, "text": control} for control, y in heads.items()]
    canvas.words(shown, bold=True, limit=_LEFT - 8)
    lines = [{"x": 14, "y": y, "text": what} for (_, what), y in at.items()]
    canvas.words(lines, limit=_LEFT - 22)


def _dataset_names(
    canvas: Canvas,
    columns: dict[str, float],
    heads: dict[str, float],
    rows: pl.DataFrame,
    step: float,
) -> None:
    """Datasets beside every control's heading, so that no column is far from its name."""
    by_group = rows.group_by("group", maintain_order=True).agg(pl.col("dataset").unique())
    datasets = [name for name in columns if name != SIMULATED]
    numbered = _numbered(datasets, step)
    shown, alone = [], []
    for group, own in by_group.iter_rows():
        if own == [SIMULATED]:
            alone.append({"x": _LEFT + 6, "y": heads[group], "text": "simulated study"})
            continue
        shown += [
            {
                "x": columns[name] + 6,
                "y": heads[group],
                "text": str(place + 1) if numbered else name,
            }
            for place, name in enumerate(datasets)
        ]
    canvas.words([*shown, *alone], ink="muted")


def _symbols(canvas: Canvas, cells: pl.DataFrame) -> None:
    """Disc: passes; cross: does not; dash: not available. A frame where it should be the other way."""
    passes, fits = pl.col("passes"), pl.col("fits")
    for right, ink in ((True, "pass"), (False, "fail")):
        own = cells.filter(fits == right)
        canvas.symbols(own.filter(passes), "circle", radius=5, fill=ink)
        canvas.symbols(own.filter(~passes), CROSS, radius=5, edge=ink)
    canvas.symbols(cells.filter(passes.is_null()), DASH, radius=5, edge="line", thick=1.5)
    wrong = cells.filter(~fits).drop(MARK)
    canvas.symbols(wrong, "square", radius=7.5, edge="fail", thick=1)


def _texts(canvas: Canvas, cells: pl.DataFrame, step: float, width: float) -> None:
    beside = cells.drop(MARK).with_columns(x=pl.col("x") + 12)
    alone, known = pl.col("alone"), pl.col("passes").is_not_null()
    canvas.words(beside.filter(alone), size=10, limit=width - _LEFT - 30)
    if step < _ROOM:
        return
    beside = beside.filter(~alone)
    canvas.words(beside.filter(known), size=10, limit=step - 26)
    canvas.words(beside.filter(~known), size=10, ink="muted", limit=step - 26)


def _legend(canvas: Canvas) -> None:
    y = 12
    places = {"passes": 10, "does not pass": 90, "not available": 200}
    canvas.symbols([{"x": 10, "y": y}], "circle", radius=5, fill="pass")
    canvas.symbols([{"x": 90, "y": y}], CROSS, radius=5, edge="pass")
    canvas.symbols([{"x": 200, "y": y}], DASH, radius=5, edge="line", thick=1.5)
    canvas.symbols([{"x": 310, "y": y}], "square", radius=7.5, edge="fail", thick=1)
    canvas.symbols([{"x": 310, "y": y}], CROSS, radius=5, edge="fail")
    places["framed: not as expected"] = 310
    canvas.words([{"x": x + 13, "y": y, "text": text} for text, x in places.items()])


def _caption(rows: pl.DataFrame) -> str:
    known = rows.filter(pl.col("fits").is_not_null())
    datasets, step = _columns(rows)
    columns = "; ".join(f"{i + 1} {name}" for i, name in enumerate(datasets))
    listed = f" Columns: {columns}." if _numbered(datasets, step) else ""
    numbers = (
        "Numbers: recordings, rows, summaries or measures that pass, or the median reliability; "
        if step >= _ROOM
        else "Numbers and reasons show on hovering, and in the tables of positive controls; "
    )
    return (
        f"Positive controls: {counted(rows.height, 'finding')} in {counted(len(datasets), 'dataset')}. A negative "
        "verdict is worth something only where controls that should pass do: "
        f"{known.filter('fits').height} of {known.height} findings that could be computed are as expected, "
        f"{rows.height - known.height} are not available. A frame marks what is not: a control that should pass and "
        f"does not, or a sham that passes. {numbers}blank: not asked there.{listed}"
    )


def _summary(rows: pl.DataFrame) -> str:
    told = []
    for (control,), own in rows.group_by("control", maintain_order=True):
        known = own.filter(pl.col("fits").is_not_null())
        if known.is_empty():
            told.append(f"{control}: not available.")
            continue
        part = f"{control}: {known.filter('fits').height} of {known.height} as expected"
        absent = own.height - known.height
        told.append(f"{part}, {absent} not available." if absent else f"{part}.")
    return " ".join(told)
