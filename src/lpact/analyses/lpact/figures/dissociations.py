"""Double dissociations: pairs of mechanisms whose strips each cost their own target more than the other's.

For a pair (a, b) and a subject-run, with drops that are medians over stripping methods,

    dissociated ⇔ min(drop_aa, drop_bb) > 0 and min(drop_aa, drop_bb) > max(drop_ab, drop_ba),
    interaction = (drop_aa − drop_ab + drop_bb − drop_ba) / 2.

It is diagnostic and enters no gate.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.figures.cell_colours import class_of, fill_of, ink_on, own_colour, painted
from lpact.analyses.lpact.figures.common import LAYER, ShortLayerNames, layer_name, metric_name
from lpact.analyses.lpact.figures.dissociation_lines import crossed, pair_title
from lpact.analyses.lpact.figures.dissociation_rows import (
    MAX_PANELS,
    TABLE,
    chosen_layers,
    pair_tests,
    rows_of,
    strongest_pairs,
)
from lpact.analyses.lpact.figures.key import Key
from lpact.report.figure import DESCRIPTION, Figure, Missing, Spec, values, with_marks
from lpact.report.theme import RAMP, colour
from lpact.report.wording import counted, signed, span

NAME = "dissociations"
TITLE = "Double dissociations between mechanisms"
_SHARES = [0.001, 0.2, 0.4, 0.6, 0.8, 0.999]
_CELL = (32, 23)
_COLUMNS = 4


def make(material: Material) -> Figure | Missing:
    """Draw counts of double dissociations, and the crossed drops of the strongest pairs."""
    if not material.has(TABLE):
        return Missing(NAME, TITLE, f"The run has no table {TABLE}.")
    rows = rows_of(material)
    if not rows.height:
        return Missing(NAME, TITLE, "No pair of mechanisms was stripped in this run.")
    if not rows["n_known"].sum():
        why = ", ".join(rows["why"].drop_nulls().unique().sort().to_list()) or "not_computed"
        return Missing(NAME, TITLE, f"No pair has all four drops ({why}).")
    layers = chosen_layers(material, rows)
    strongest = strongest_pairs(rows, LPactConfig.of(material.config).gates.min_subject_runs)
    drawn = rows.join(layers.select(LAYER), on=LAYER, how="semi", maintain_order="left")
    metric = f"held-out {metric_name(material.config.readout.primary_metric)}"
    spec = _spec(drawn, layers, strongest, pair_tests(material), metric)
    caption = _caption(drawn, layers, rows, LPactConfig.of(material.config).gates.min_subject_runs)
    return Figure(NAME, TITLE, caption, _summary(rows, strongest), spec)


def _labels(rows: pl.DataFrame) -> dict[int, str]:
    """Number and name of every mechanism, by its place."""
    both = [rows.select(i=side, name=f"mechanism_{side}") for side in "ab"]
    found = pl.concat(both).unique().sort("i")
    return {i: f"{i + 1} {name}" for i, name in found.iter_rows()}


def _cells(drawn: pl.DataFrame, labels: dict[int, str]) -> pl.DataFrame:
    shown = [
        f"{row['n_dissociated']}/{row['n_known']}" if row["n_known"] else "–"
        for row in drawn.iter_rows(named=True)
    ]
    classes = [class_of(share, _SHARES) for share in drawn["share"]]
    cells = drawn.with_columns(
        row=pl.col("b").replace_strict(labels, return_dtype=pl.String),
        column=(pl.col("a") + 1).cast(pl.String),
        shown=pl.Series(shown, dtype=pl.String),
        ink=pl.Series(painted([ink_on(RAMP, place) for place in classes]), dtype=pl.String),
        fill=pl.Series(painted([fill_of(RAMP, place) for place in classes]), dtype=pl.String),
    )
    return with_marks(cells, _cell_text, "n_dissociated")


def _cell_text(row: dict[str, Any]) -> str:
    what = f"{layer_name(row)}: {row['mechanism_a']} and {row['mechanism_b']}"
    if not row["n_known"]:
        return f"{what}: not computed ({row['why'] or 'not_computed'})"
    return (
        f"{what}: double dissociation in {row['n_dissociated']} of {counted(row['n_known'], 'subject-run')}; "
        f"median interaction {signed(row['interaction'])}"
    )


def _triangle(
    layer: dict[str, Any],
    cells: pl.DataFrame,
    labels: dict[int, str],
    names: ShortLayerNames,
    *,
    first: bool,
) -> Spec:
    """One layer: the pairs below the diagonal."""
    own = cells.filter(pl.col(name) == layer[name] for name in LAYER)
    plain = {"ticks": False, "domain": False}
    y_axis = {
        **plain,
        "title": None,
        "labelLimit": 150,
        **({} if first else {"labelExpr": "split(datum.label, ' ')[0]"}),
    }
    places = sorted(labels)
    return {
        "title": pair_title(
            names.in_two_lines(layer, 24), f"{layer['total']} of {layer['of']} tests dissociate"
        ),
        "data": values(own),
        "width": {"step": _CELL[0]},
        "height": {"step": _CELL[1]},
        "encoding": {
            "x": {
                "field": "column",
                "type": "nominal",
                "scale": {"domain": [str(i + 1) for i in places[:-1]]},
                "axis": {**plain, "title": None, "labelAngle": 0},
            },
            "y": {
                "field": "row",
                "type": "nominal",
                "scale": {"domain": [labels[i] for i in places]},
                "axis": y_axis,
            },
        },
        "layer": [
            {
                "mark": {"type": "rect", "stroke": colour("paper"), "strokeWidth": 1},
                "encoding": {"fill": own_colour("fill"), "description": DESCRIPTION},
            },
            {
                "mark": {"type": "text", "fontSize": 10, "aria": False},
                "encoding": {"text": {"field": "shown"}, "color": own_colour("ink")},
            },
        ],
    }


def _spec(
    drawn: pl.DataFrame,
    layers: pl.DataFrame,
    strongest: pl.DataFrame,
    tests: pl.DataFrame,
    metric: str,
) -> Spec:
    labels, names = (
        _labels(drawn),
        ShortLayerNames(pl.concat([layers.select(LAYER), strongest.select(LAYER)])),
    )
    cells = _cells(drawn, labels)
    key = Key(640).classes(
        "subject-runs with a double dissociation, %",
        RAMP,
        ["0", "< 20", "< 40", "< 60", "< 80", "< 100", "100"],
    )
    if cells["share"].null_count():
        key.box("not computed", "missing")
    triangles = [
        _triangle(layer, cells, labels, names, first=i % _COLUMNS == 0)
        for i, layer in enumerate(layers.iter_rows(named=True))
    ]
    lines = Key(640).line("strip a (circles)", role="real")
    lines.line("strip b (squares)", role="winner", dash=(5, 3))
    pairs = [
        crossed(pair, tests, metric, names.in_two_lines(pair, 24), first=i == 0)
        for i, pair in enumerate(strongest.iter_rows(named=True))
    ]
    space = {"align": "each", "spacing": {"row": 22, "column": 24}}
    return {
        "vconcat": [
            key.spec(),
            {"concat": triangles, "columns": _COLUMNS, **space},
            lines.spec(),
            {"concat": pairs, "columns": _COLUMNS, **space},
        ],
        "spacing": 18,
    }


def _caption(drawn: pl.DataFrame, layers: pl.DataFrame, rows: pl.DataFrame, enough: int) -> str:
    n_layers = rows.select(LAYER).n_unique()
    parts = [
        "Above: for every pair of mechanisms (by the number before the name), in how many subject-runs "
        f"({span(drawn['n_known'])} a layer) stripping either costs its own target units something, and more than the "
        "crossed strip and target; drops are medians over stripping methods.",
        "Below: the pairs that dissociate in the largest share of subject-runs (ties: the larger "
        "interaction; pairs with "
        f"fewer than {enough} subject-runs last); large marks are medians over subject-runs, faint ones single "
        "subject-runs.",
        "A pair dissociates where the circle at a and the square at b lie above zero and above the other two; this is "
        "diagnostic and enters no gate.",
    ]
    if layers.height < n_layers:
        parts.append(
            f"Drawn are {layers.height} of {n_layers} layers: those that pass P or M, then of every dataset the one "
            f"with the largest share of dissociations (at most {MAX_PANELS}); the others are in {TABLE}."
        )
    lost = int(rows["n_subject_runs"].sum()) - int(rows["n_known"].sum())
    if lost:
        why = ", ".join(rows["why"].drop_nulls().unique().sort().to_list())
        parts.append(f"{counted(lost, 'test')} could not be computed ({why or 'not_computed'}).")
    return " ".join(parts)


def _summary(rows: pl.DataFrame, strongest: pl.DataFrame) -> str:
    total, of = int(rows["n_dissociated"].sum()), int(rows["n_known"].sum())
    best = strongest.row(0, named=True)
    return (
        f"{total:,} of {counted(of, 'test')} (subject-run and pair) show a double dissociation. Most often: "
        f"{best['mechanism_a']} and {best['mechanism_b']} in {layer_name(best)}, {best['n_dissociated']} of "
        f"{counted(best['n_known'], 'subject-run')}."
    )
