"""Which control wins, where: how often each rival is the strongest one, and whether the real features beat it."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.canvas import Canvas
from lpact.analyses.lpact.figures.common import LAYER, ShortLayerNames, metric_name, primary_deltas
from lpact.analyses.lpact.figures.control_winner_rows import (
    LEVEL1,
    LEVEL2,
    NOT_COMPUTED,
    NUISANCE,
    n_other_order,
    rivals_of,
    rows_of,
)
from lpact.analyses.lpact.tables.predictive import CONTROL_DELTAS
from lpact.analyses.lpact.tables.relational import PROFILE_DELTAS
from lpact.report.figure import Figure, Missing, Spec, with_marks
from lpact.report.theme import DIVERGING
from lpact.report.wording import counted, letters_in, short, short_forms

NAME = "control_winners"
TITLE = "Which control is the strongest rival, and whether it wins"
MOST_ROWS = 60
"""With more rows than this, the layers of a model are added up."""
_ROW, _HALF, _NAMES, _GAP, _BESIDE = 18, 20, 160, 24, 10
_HEADING = 20
"""Height of the line with the name of a dataset."""
_WINS, _BEATEN = DIVERGING[2::-1], DIVERGING[4:]
"""Shades for up to a fifth, up to half and more of a row's comparisons."""
_UNIT = {LEVEL1: "subject-run", LEVEL2: "unit and summary comparison"}
_HEAD = {
    LEVEL1: ("Level 1, predictive:", "subject-runs"),
    LEVEL2: ("Level 2, relational:", "units × summaries"),
}


def make(material: Material) -> Figure | Missing:
    """Counts of strongest rivals at levels 1 and 2."""
    if not material.has(CONTROL_DELTAS.name):
        return Missing(NAME, TITLE, f"the run has no table {CONTROL_DELTAS.name}")
    if primary_deltas(material).is_empty():
        return Missing(NAME, TITLE, "level 1 has no row at the primary metric")
    rows, by_layer = grouped(rows_of(material))
    columns = rivals_of(material, rows)
    return Figure(
        NAME,
        TITLE,
        _caption(rows, material, by_layer=by_layer),
        _summary(rows),
        _spec(rows, columns, by_layer=by_layer),
    )


def grouped(rows: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
    """The rows, by layer where there is room for that, else with the layers of a model added up."""
    if rows.select(LAYER).unique().height <= MOST_ROWS:
        return rows, True
    by = ["level", "dataset", "model"]
    added = (
        rows.group_by([*by, "rival"])
        .agg(pl.col("n_wins", "n_beaten").sum())
        .with_columns(n_all=(pl.col("n_wins") + pl.col("n_beaten")).sum().over(by))
    )
    return added.sort([*by, "rival"]), False


def _spec(rows: pl.DataFrame, columns: list[str], *, by_layer: bool) -> Spec:
    key = list(LAYER) if by_layer else ["dataset", "model"]
    lines = rows.select(key).unique().sort(key)
    levels = [level for level in (LEVEL1, LEVEL2) if level in set(rows["level"])]
    panels = {level: _columns(rows, columns, level) for level in levels}
    both = sum(map(len, panels.values())) <= 2 * _BESIDE
    width = [len(own) * 2 * _HALF for own in panels.values()]
    head = 14 + _head_height(columns)
    body = len(lines) * _ROW + _HEADING * lines["dataset"].n_unique()
    total = _NAMES + (sum(width) + _GAP * (len(width) - 1) if both else max(width))
    height = (head + body) if both else (head + body + 24) * len(panels)
    canvas = Canvas(max(total, 660), height + 34)
    _legend(canvas)
    x, y = float(_NAMES), 34.0
    for own_width, (level, own) in zip(width, panels.items(), strict=True):
        _panel(canvas, rows.filter(pl.col("level") == level), lines, own, (x, y), head, level)
        if x == _NAMES:
            _names(canvas, lines, y + head, by_layer=by_layer)
        if both:
            x += own_width + _GAP
        else:
            y += head + body + 24
    return canvas.spec()


def _columns(rows: pl.DataFrame, columns: list[str], level: str) -> list[str]:
    own = rows.filter(pl.col("level") == level)
    shown = [name for name in columns if level == LEVEL1 or name != NUISANCE]
    return [*shown, NOT_COMPUTED] if NOT_COMPUTED in set(own["rival"]) else shown


def _head_height(columns: list[str]) -> float:
    """Room for the slanted names of controls."""
    return 0.74 * 5.2 * min(28, max(len(name) for name in columns))


def _tops(lines: pl.DataFrame, top: float) -> list[float]:
    """Upper edge of every line; each dataset has its name above."""
    datasets = lines["dataset"].to_list()
    tops, y = [], top
    for i, dataset in enumerate(datasets):
        y += _HEADING if not i or datasets[i - 1] != dataset else 0
        tops.append(y)
        y += _ROW
    return tops


def _names(canvas: Canvas, lines: pl.DataFrame, top: float, *, by_layer: bool) -> None:
    letters = letters_in(_NAMES - 8)
    names, models = ShortLayerNames(lines), short_forms(lines["model"], letters)
    heads = short_forms(lines["dataset"], letters)
    datasets, shown, previous = [], [], None
    for y, row in zip(_tops(lines, top), lines.iter_rows(named=True), strict=True):
        if row["dataset"] != previous:
            datasets.append({"x": 0, "y": y - _HEADING / 2 + 2, "text": heads[row["dataset"]]})
        previous = row["dataset"]
        name = (
            names.of_model(row["model"], row["layer"], letters)
            if by_layer
            else models[row["model"]]
        )
        shown.append({"x": _NAMES - 6, "y": y + _ROW / 2, "text": name})
    canvas.words(datasets, bold=True)
    canvas.words(shown, align="right")


def _panel(
    canvas: Canvas,
    rows: pl.DataFrame,
    lines: pl.DataFrame,
    columns: list[str],
    corner: tuple[float, float],
    head: float,
    level: str,
) -> None:
    left, top = corner
    canvas.words(
        [{"x": left, "y": top - 2 + 14 * i, "text": text} for i, text in enumerate(_HEAD[level])],
        bold=True,
    )
    _column_heads(canvas, columns, left, top + head)
    tops = dict(zip(lines.rows(), _tops(lines, top + head), strict=True))
    wide = len(columns) * 2 * _HALF
    canvas.boxes(
        [{"x": left, "x2": left + wide, "y": y, "y2": y + _ROW} for y in tops.values()],
        fill="band",
    )
    canvas.lines(
        [
            {"x": left + i * 2 * _HALF, "x2": left + i * 2 * _HALF, "y": y, "y2": y + _ROW}
            for i in range(len(columns) + 1)
            for y in tops.values()
        ],
        ink="paper",
        thick=2,
    )
    _cells(canvas, rows, columns, tops, left, level)
    canvas.lines(
        [
            {"x": left, "x2": left + wide, "y": y + _ROW, "y2": y + _ROW}
            for y in list(tops.values())[:-1]
        ],
        ink="paper",
    )


def _cells(
    canvas: Canvas,
    rows: pl.DataFrame,
    columns: list[str],
    tops: dict[tuple[Any, ...], float],
    left: float,
    level: str,
) -> None:
    place = {name: i for i, name in enumerate(columns)}
    key = list(LAYER) if "layer" in rows.columns else ["dataset", "model"]
    for side, (column, shades) in enumerate((("n_wins", _WINS), ("n_beaten", _BEATEN))):
        drawn = with_marks(
            rows.filter(pl.col(column) > 0),
            lambda row, column=column: _told(row, column, level),  # type: ignore[misc]
            column,
        )
        cells = []
        for row in drawn.iter_rows(named=True):
            x = left + place[row["rival"]] * 2 * _HALF + side * _HALF + (1 - side)
            y = tops[tuple(row[name] for name in key)]
            shade = sum(row[column] > part * row["n_all"] for part in (0.2, 0.5))
            wide = 2 * _HALF - 2 if row["rival"] == NOT_COMPUTED else _HALF - 1
            fill = "missing" if row["rival"] == NOT_COMPUTED else shades[shade]
            box = {"x": x, "x2": x + wide, "y": y + 1, "y2": y + _ROW - 1, "mark": row["mark"]}
            middle = {"tx": x + wide / 2, "ty": y + _ROW / 2, "text": short_count(row[column])}
            cells.append({**box, **middle, "fill": fill})
        for fill in ("missing", *shades):
            own = [cell for cell in cells if cell["fill"] == fill]
            if own:
                canvas.boxes(own, fill=fill)
                canvas.words(
                    [
                        {"x": c["tx"], "y": c["ty"], "text": c["text"], "mark": c["mark"]}
                        for c in own
                    ],
                    size=9,
                    align="center",
                    ink="on_strong" if fill in shades[1:] else "on_light",
                    bold=fill in shades[1:],
                )


def short_count(n: int) -> str:
    """A count in at most four characters."""
    if n < 1000:
        return str(n)
    return f"{n / 1000:.1f}k" if n < 9950 else f"{n / 1000:.0f}k"


def _told(row: dict[str, Any], column: str, level: str) -> str:
    where = f"{row['dataset']}, {row['model']}"
    where += f", layer {row['layer']}" if "layer" in row else ", all layers"
    of = f"{row[column]:,} of {counted(row['n_all'], _UNIT[level])}"
    if row["rival"] == NOT_COMPUTED:
        return f"{where}, {level}: {of} not computed"
    ends = "is not beaten by" if column == "n_wins" else "is beaten by"
    return f"{where}, {level}: {row['rival']} is the strongest rival and {ends} the real features in {of}"


def _column_heads(canvas: Canvas, columns: list[str], left: float, top: float) -> None:
    canvas.words(
        [
            {"x": left + i * 2 * _HALF + _HALF, "y": top + _HEADING - 8, "text": short(name, 27)}
            for i, name in enumerate(columns)
        ],
        size=10,
    )
    canvas.layers[-1]["mark"]["angle"] = 312


def _legend(canvas: Canvas) -> None:
    x = 0.0
    for shades, words in (
        (_WINS, "left half: comparisons in which the rival is not beaten"),
        (_BEATEN, "right half: comparisons in which the real features beat it"),
    ):
        for i, shade in enumerate(shades):
            at = {"x": x + 16 * i, "x2": x + 16 * i + 15, "y": 2, "y2": 14}
            canvas.boxes([at], fill=shade)
        canvas.words([{"x": x + 54, "y": 8, "text": words}])
        x += 54 + 5.6 * len(words)


def _caption(rows: pl.DataFrame, material: Material, *, by_layer: bool) -> str:
    metric, other_order = material.config.readout.primary_metric, n_other_order(material)
    n1 = rows.filter(pl.col("level") == LEVEL1)
    n_first = int((n1["n_wins"] + n1["n_beaten"]).sum())
    said = [
        "Each comparison has one strongest rival; a cell counts how often it is this one: left where real minus rival "
        "is zero or less, right where it is above zero. The darker, the more of the row's comparisons (up to a fifth, "
        "up to half, more); an empty cell is never the strongest.",
        f"Level 1 ({metric_name(metric)}) compares {counted(n_first, 'subject-run row')} "
        "with the better of nuisance and the best counted control.",
    ]
    if LEVEL2 in set(rows["level"]):
        n2 = rows.filter(pl.col("level") == LEVEL2)
        said.append(
            f"Level 2 compares {int((n2['n_wins'] + n2['n_beaten']).sum()):,} combinations of subject-run, unit, "
            "alignment measure and profile similarity with the best counted control; nuisance is no rival there under "
            "the point rules, but it is one in the tests of gates R and T."
        )
    else:
        why = (
            "no comparison to draw" if material.has(PROFILE_DELTAS.name) else "no table in this run"
        )
        said.append(f"Level 2 has {why}.")
    if other_order:
        said.append(
            f"{counted(other_order, 'level-2 comparison')} of different unit orders left out, as in the decision."
        )
    if not by_layer:
        said.append("Layers of a model are added up for room; each layer is in the tables.")
    absent = rows.filter(pl.col("rival") == NOT_COMPUTED)
    if absent.height:
        said.append(f"{int(absent['n_wins'].sum()):,} comparisons were not computed.")
    return " ".join(said)


def _summary(rows: pl.DataFrame) -> str:
    said = []
    for level in (LEVEL1, LEVEL2):
        own = rows.filter((pl.col("level") == level) & (pl.col("rival") != NOT_COMPUTED))
        if own.is_empty():
            continue
        total = int((own["n_wins"] + own["n_beaten"]).sum())
        wins = int(own["n_wins"].sum())
        first = (
            own.group_by("rival")
            .agg(pl.col("n_wins").sum())
            .sort(["n_wins", "rival"], descending=[True, False])
            .row(0)
        )
        text = f"At {level}, the strongest rival is not beaten in {wins:,} of {counted(total, 'comparison')}"
        said.append(f"{text}; most often {first[0]} ({first[1]:,})." if wins else f"{text}.")
    return " ".join(said) or "No comparison was computed."
