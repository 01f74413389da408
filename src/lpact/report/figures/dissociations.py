"""Double dissociations: pairs of mechanisms whose strips each cost their own target more than the other's.

For a pair (a, b) and a subject-run, with drops that are medians over stripping methods,

    dissociated ⇔ min(drop_aa, drop_bb) > 0 and min(drop_aa, drop_bb) > max(drop_ab, drop_ba),
    interaction = (drop_aa − drop_ab + drop_bb − drop_ba) / 2.

It is diagnostic and enters no gate.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.report.figure import DESCRIPTION, Figure, Material, Missing, Spec, values, with_marks
from lpact.report.figures._key import Key
from lpact.report.figures._layers import (
    LAYER,
    RUN,
    class_of,
    counted,
    ink_on,
    layer_name,
    mechanism_order,
    number,
    own_colour,
    run_name,
    threshold_scale,
)
from lpact.report.figures.level_rows import metric_name
from lpact.report.theme import RAMP, colour

NAME = "dissociations"
TITLE = "Double dissociations between mechanisms"
TABLE = "causal/double_dissociation_tests"
MAX_PANELS = 8
FEW = 6
STRONGEST = 4
"""Pairs whose crossed drops are drawn."""

_DROPS = ("drop_aa", "drop_ab", "drop_ba", "drop_bb")
_SHARES = [0.001, 0.2, 0.4, 0.6, 0.8, 0.999]
_CELL = (32, 23)
_COLUMNS = 4


def tests_of(material: Material) -> pl.DataFrame:
    """The tests, sorted; every pair in the order of the study file, with ``known`` and ``interaction``."""
    table = material.table(TABLE).sort([*LAYER, *RUN, "mechanism_a", "mechanism_b"])
    order = mechanism_order(material, pl.concat([table["mechanism_a"], table["mechanism_b"]]))
    place = {name: i for i, name in enumerate(order)}
    place_of = {
        side: pl.col(f"mechanism_{side}").replace_strict(place, return_dtype=pl.Int64)
        for side in "ab"
    }
    turned = place_of["a"] > place_of["b"]
    swap = {
        "mechanism_a": "mechanism_b",
        "mechanism_b": "mechanism_a",
        "drop_aa": "drop_bb",
        "drop_ab": "drop_ba",
        "drop_ba": "drop_ab",
        "drop_bb": "drop_aa",
    }
    table = table.with_columns(
        pl.when(turned).then(pl.col(other)).otherwise(pl.col(own)).alias(own)
        for own, other in swap.items()
    ).with_columns(pl.col(name).fill_nan(None) for name in _DROPS)
    return table.with_columns(
        a=place_of["a"],
        b=place_of["b"],
        known=pl.all_horizontal(pl.col(name).is_not_null() for name in _DROPS)
        & (pl.col("reason") == "ok"),
        interaction=(
            pl.col("drop_aa") - pl.col("drop_ab") + pl.col("drop_bb") - pl.col("drop_ba")
        )
        / 2,
    )


def rows_of(material: Material) -> pl.DataFrame:
    """One row a layer and pair: in how many subject-runs of how many the pair dissociates, and median drops."""
    tests = tests_of(material)
    keys = [*LAYER, "a", "b", "mechanism_a", "mechanism_b"]
    return (
        tests.group_by(keys, maintain_order=True)
        .agg(
            n_dissociated=(pl.col("double_dissociation") & pl.col("known")).sum().cast(pl.Int64),
            n_known=pl.col("known").sum().cast(pl.Int64),
            n_subject_runs=pl.len().cast(pl.Int64),
            interaction=pl.col("interaction").filter("known").median(),
            why=pl.col("reason").filter(pl.col("reason") != "ok").mode().sort().first(),
            **{name: pl.col(name).filter("known").median() for name in _DROPS},
        )
        .with_columns(
            share=pl.when(pl.col("n_known") > 0).then(pl.col("n_dissociated") / pl.col("n_known"))
        )
        .sort([*LAYER, "a", "b"])
    )


def chosen_layers(rows: pl.DataFrame) -> pl.DataFrame:
    """Layers to draw: all if they are few; else those with most dissociations, the best one of each dataset first."""
    counts = rows.group_by(LAYER, maintain_order=True).agg(
        total=pl.col("n_dissociated").sum(),
        of=pl.col("n_known").sum(),
        n_runs=pl.col("n_known").max(),
        strength=pl.col("interaction").max().fill_null(-float("inf")),
    )
    if counts.height <= FEW:
        return counts.sort(LAYER)
    ranked = counts.with_columns(part=(pl.col("total") / pl.col("of")).fill_nan(0.0)).sort(
        ["dataset", "part", "strength", "model", "layer"],
        descending=[False, True, True, False, False],
    )
    ranked = ranked.with_columns(place=pl.int_range(pl.len()).over("dataset"))
    best = ranked.with_columns(first=pl.col("place") == 0).sort(
        ["first", "part", "strength", *LAYER], descending=[True, True, True, False, False, False]
    )
    return best.head(MAX_PANELS).drop("part", "place", "first").sort(LAYER)


def strongest_pairs(rows: pl.DataFrame, enough: int) -> pl.DataFrame:
    """Pairs that dissociate in the largest share of subject-runs; ties go to the larger interaction.

    Pairs with fewer than ``enough`` subject-runs come last.
    """
    known = rows.filter(pl.col("n_known") > 0).with_columns(few=pl.col("n_known") < enough)
    return known.sort(
        ["few", "share", "interaction", *LAYER, "a", "b"],
        descending=[False, True, True, False, False, False, False, False],
    ).head(STRONGEST)


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
    layers = chosen_layers(rows)
    strongest = strongest_pairs(rows, material.config.gates.min_subject_runs)
    drawn = rows.join(layers.select(LAYER), on=LAYER, how="semi", maintain_order="left")
    metric = f"held-out {metric_name(material.config.readout.primary_metric)}"
    spec = _spec(drawn, layers, strongest, tests_of(material), metric)
    caption = _caption(drawn, layers, rows, material.config.gates.min_subject_runs)
    return Figure(NAME, TITLE, caption, spec, _summary(rows, strongest))


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
        ink=pl.Series([ink_on(RAMP, place) for place in classes], dtype=pl.String),
    )
    return with_marks(cells, _cell_text, "n_dissociated")


def _cell_text(row: dict[str, Any]) -> str:
    what = f"{layer_name(row)}: {row['mechanism_a']} and {row['mechanism_b']}"
    if not row["n_known"]:
        return f"{what}: not computed ({row['why'] or 'not_computed'})"
    return (
        f"{what}: double dissociation in {row['n_dissociated']} of {counted(row['n_known'], 'subject-run')}; "
        f"median interaction {number(row['interaction'])}"
    )


def _triangle(
    layer: dict[str, Any], cells: pl.DataFrame, labels: dict[int, str], *, first: bool
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
    fill: Spec = {
        "condition": {"test": "!isValid(datum.share)", "value": colour("missing")},
        "field": "share",
        "type": "quantitative",
        "scale": threshold_scale(RAMP, _SHARES),
        "legend": None,
    }
    return {
        "title": _title(layer, f"{layer['total']} of {layer['of']} tests dissociate"),
        "data": values(own.drop("interaction", *_DROPS)),
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
                "encoding": {"fill": fill, "description": DESCRIPTION},
            },
            {
                "mark": {"type": "text", "fontSize": 10, "aria": False},
                "encoding": {"text": {"field": "shown"}, "color": own_colour("ink")},
            },
        ],
    }


def _title(layer: dict[str, Any], below: str | list[str]) -> Spec:
    return {
        "text": [f"{layer['dataset']}", f"{layer['model']} · layer {layer['layer']}"],
        "subtitle": below,
        "fontSize": 11,
        "limit": 170,
        "frame": "group",
        "offset": 5,
    }


def crossed_rows(pair: dict[str, Any], tests: pl.DataFrame) -> pl.DataFrame:
    """The four drops of a pair: one row a subject-run (``level`` run) and strip × target, and their medians."""
    same = [pl.col(name) == pair[name] for name in (*LAYER, "a", "b")]
    own = tests.filter(*same, pl.col("known"))
    long = pl.concat(
        own.select(
            *LAYER,
            *RUN,
            stripped=f"mechanism_{strip}",
            target=f"mechanism_{target}",
            strip=pl.lit(strip),
            at=pl.lit(target),
            drop=f"drop_{strip}{target}",
        )
        for strip in "ab"
        for target in "ab"
    )
    keys = [*LAYER, "stripped", "target", "strip", "at"]
    typical = long.group_by(keys, maintain_order=True).agg(
        pl.col("drop").median(), n=pl.len().cast(pl.Int64)
    )
    runs = long.with_columns(n=pl.lit(1, dtype=pl.Int64), level=pl.lit("run"))
    both = pl.concat([typical.with_columns(level=pl.lit("median")), runs], how="diagonal")
    return both.sort(["level", *RUN, "strip", "at"], nulls_last=True)


def _by_strip(range_: list[Any]) -> Spec:
    """A look that tells strip a from strip b."""
    scale = {"domain": ["a", "b"], "range": range_}
    return {"field": "strip", "type": "nominal", "scale": scale, "legend": None}


def _crossed(pair: dict[str, Any], tests: pl.DataFrame, metric: str, *, first: bool) -> Spec:
    """Two lines that cross where the strips dissociate."""
    rows = with_marks(crossed_rows(pair, tests), _crossed_text, "drop")
    rows = rows.with_columns(one=pl.concat_str([*RUN, "strip"], separator="/", ignore_nulls=True))
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
        "title": _title(pair, [f"a  {pair['mechanism_a']}", f"b  {pair['mechanism_b']}"]),
        "width": 132,
        "height": 130,
        "encoding": {
            "x": {
                "field": "at",
                "type": "nominal",
                "scale": {"domain": ["a", "b"], "padding": 0.6},
                "axis": {"title": "target units of", "labelAngle": 0},
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
    what = f"{layer_name(row)}: strip {row['stripped']}, target {row['target']}: drop {number(row['drop'], 4)}"
    if row["level"] == "median":
        return f"{what} (median of {counted(row['n'], 'subject-run')})"
    return f"{what} ({run_name(row)})"


def _spec(
    drawn: pl.DataFrame,
    layers: pl.DataFrame,
    strongest: pl.DataFrame,
    tests: pl.DataFrame,
    metric: str,
) -> Spec:
    labels = _labels(drawn)
    cells = _cells(drawn, labels)
    key = Key(640).classes(
        "subject-runs with a double dissociation, %",
        RAMP,
        ["0", "< 20", "< 40", "< 60", "< 80", "< 100", "100"],
    )
    if cells["share"].null_count():
        key.box("not computed", "missing")
    triangles = [
        _triangle(layer, cells, labels, first=i % _COLUMNS == 0)
        for i, layer in enumerate(layers.iter_rows(named=True))
    ]
    lines = Key(640).line("strip a (circles)", role="real")
    lines.line("strip b (squares)", role="winner", dash=(5, 3))
    crossed = [
        _crossed(pair, tests, metric, first=i == 0)
        for i, pair in enumerate(strongest.iter_rows(named=True))
    ]
    space = {"align": "each", "spacing": {"row": 22, "column": 24}}
    return {
        "vconcat": [
            key.spec(),
            {"concat": triangles, "columns": _COLUMNS, **space},
            lines.spec(),
            {"concat": crossed, "columns": _COLUMNS, **space},
        ],
        "spacing": 18,
    }


def _caption(drawn: pl.DataFrame, layers: pl.DataFrame, rows: pl.DataFrame, enough: int) -> str:
    n_layers = rows.select(LAYER).n_unique()
    runs = drawn["n_known"]
    parts = [
        "Above: for every pair of mechanisms (numbers beside the names) in how many subject-runs stripping each costs "
        "its own target units more than the other strip and the other target do, and more than nothing. Drops are "
        f"medians over stripping methods; {runs.min()} to {runs.max()} subject-runs a layer. "
        "Below: the pairs that dissociate in the largest share of subject-runs (ties: the larger interaction; pairs with "
        f"fewer than {enough} subject-runs last), with the drop of "
        "both targets after either strip; large marks are medians over subject-runs, faint ones single subject-runs. In a double "
        "dissociation the circle at a and the square at b lie above zero and above the other two. It is diagnostic and "
        "enters no gate."
    ]
    if layers.height < n_layers:
        parts.append(
            f"Drawn are {layers.height} of {n_layers} layers: the one with the largest share of dissociations of every dataset, then the "
            f"largest over all (at most {MAX_PANELS}); the others are in {TABLE}."
        )
    lost = rows["n_subject_runs"].sum() - rows["n_known"].sum()
    if lost:
        why = ", ".join(rows["why"].drop_nulls().unique().sort().to_list())
        parts.append(f"{counted(int(lost), 'test')} could not be computed ({why or 'not_computed'}).")
    return " ".join(parts)


def _summary(rows: pl.DataFrame, strongest: pl.DataFrame) -> str:
    total, of = int(rows["n_dissociated"].sum()), int(rows["n_known"].sum())
    best = strongest.row(0, named=True)
    return (
        f"{total:,} of {counted(of, 'test')} (subject-run and pair) show a double dissociation. Most often: "
        f"{best['mechanism_a']} and {best['mechanism_b']} in {layer_name(best)}, {best['n_dissociated']} of "
        f"{counted(best['n_known'], 'subject-run')}."
    )
