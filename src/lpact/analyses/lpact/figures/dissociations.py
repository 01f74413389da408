"""Double dissociations: pairs of mechanisms whose strips each cost their own target more than the other's.

For a pair (a, b) and a subject-run, with drops that are medians over stripping methods,

    dissociated ⇔ min(drop_aa, drop_bb) > 0 and min(drop_aa, drop_bb) > max(drop_ab, drop_ba),
    interaction = (drop_aa − drop_ab + drop_bb − drop_ba) / 2.

They are diagnostic and enter no gate.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.figures.common import (
    LAYER,
    SUBJECT_RUN,
    ShortLayerNames,
    chosen_layers,
    chosen_note,
    layer_name,
    mechanism_order,
    metric_name,
    run_name,
)
from lpact.analyses.lpact.tables.levels import DISSOCIATIONS
from lpact.report import panels
from lpact.report.figure import Drawing, figure, with_marks
from lpact.report.panels import BOX, Classes, Look
from lpact.report.theme import RAMP
from lpact.report.wording import counted, short, signed, span

MAX_PANELS = 8
STRONGEST = 4
"""Pairs whose crossed drops are drawn."""
_DROPS = ("drop_aa", "drop_ab", "drop_ba", "drop_bb")
_SHARES = Classes(RAMP, (0.001, 0.2, 0.4, 0.6, 0.8, 0.999))
_CELL, _COLUMNS = (32, 23), 4
_STRIPS = {"a": Look("circle", "real", "real"), "b": Look("square", "winner", "winner")}


def pair_tests(material: Material) -> pl.DataFrame:
    """The tests, sorted; every pair in the order of the study file, with ``known`` and ``interaction``."""
    table = material.table(DISSOCIATIONS.name).sort(
        [*LAYER, *SUBJECT_RUN, "mechanism_a", "mechanism_b"]
    )
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
        interaction=(pl.col("drop_aa") - pl.col("drop_ab") + pl.col("drop_bb") - pl.col("drop_ba"))
        / 2,
    )


def rows_of(material: Material) -> pl.DataFrame:
    """One row per layer and pair: in how many subject-runs of how many the pair dissociates, and median drops."""
    tests = pair_tests(material)
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


def strongest_pairs(rows: pl.DataFrame, enough: int) -> pl.DataFrame:
    """Pairs that dissociate in the largest share of subject-runs; ties go to the larger interaction.

    Pairs with fewer than ``enough`` subject-runs come last.
    """
    known = rows.filter(pl.col("n_known") > 0).with_columns(few=pl.col("n_known") < enough)
    return known.sort(
        ["few", "share", "interaction", *LAYER, "a", "b"],
        descending=[False, True, True, False, False, False, False, False],
    ).head(STRONGEST)


def crossed_rows(pair: dict[str, Any], tests: pl.DataFrame) -> pl.DataFrame:
    """The four drops of a pair: one row per subject-run (``level`` run), strip and target, and their medians."""
    same = [pl.col(name) == pair[name] for name in (*LAYER, "a", "b")]
    own = tests.filter(*same, pl.col("known"))
    long = pl.concat(
        own.select(
            *LAYER,
            *SUBJECT_RUN,
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
    return both.sort(["level", *SUBJECT_RUN, "strip", "at"], nulls_last=True)


@figure("dissociations", "Double dissociations between mechanisms", DISSOCIATIONS)
def make(material: Material) -> Drawing | str:
    """Draw counts of double dissociations, and the crossed drops of the strongest pairs."""
    rows = rows_of(material)
    if rows.is_empty():
        return "no pair of mechanisms was stripped in this run"
    if not rows["n_known"].sum():
        why = ", ".join(rows["why"].drop_nulls().unique().sort().to_list()) or "not_computed"
        return f"no pair has all four drops ({why})"
    scores = rows.group_by(LAYER, maintain_order=True).agg(
        share=pl.col("n_dissociated").sum() / pl.col("n_known").sum(),
        strength=pl.col("interaction").max(),
    )
    layers = chosen_layers(
        material, scores.with_columns(pl.col("share").fill_nan(None)), MAX_PANELS
    )
    enough = LPactConfig.of(material.config).gates.min_subject_runs
    strongest = strongest_pairs(rows, enough)
    drawn = rows.join(layers.select(LAYER), on=LAYER, how="semi", maintain_order="left")
    names = ShortLayerNames(pl.concat([layers.select(LAYER), strongest.select(LAYER)]))
    both = (drawn.select(i=side, name=f"mechanism_{side}") for side in "ab")
    labels = {i: f"{i + 1} {name}" for i, name in pl.concat(both).unique().sort("i").iter_rows()}
    counts = [
        f"{row['n_dissociated']}/{row['n_known']}" if row["n_known"] else "–"
        for row in drawn.iter_rows(named=True)
    ]
    cells = _SHARES.paint(with_marks(drawn, _cell_tooltip, "n_dissociated"), "share").with_columns(
        pl.Series("shown", counts, dtype=pl.String),
        row=pl.col("b").replace_strict(labels, return_dtype=pl.String),
        column=(pl.col("a") + 1).cast(pl.String),
    )
    shares = ["0", "< 20", "< 40", "< 60", "< 80", "< 100", "100"]
    entries: list[Any] = [("subject-runs with a double dissociation, %", _SHARES, shares)]
    if cells["share"].null_count():
        entries.append(("not computed", Look(BOX, "missing", "missing", 160)))
    triangles = [
        _triangle(layer, cells, labels, names, first=i % _COLUMNS == 0)
        for i, layer in enumerate(layers.iter_rows(named=True))
    ]
    metric, tests = metric_name(material.config.readout.primary_metric), pair_tests(material)
    crossed = [
        _crossed(pair, tests, f"drop in held-out {metric}", names, first=i == 0)
        for i, pair in enumerate(strongest.iter_rows(named=True))
    ]
    chart = panels.stacked(
        panels.key(*entries),
        panels.grid(triangles, _COLUMNS, spacing={"row": 22, "column": 24}),
        panels.key(*((f"strip {name}", look) for name, look in _STRIPS.items())),
        panels.grid(crossed, _COLUMNS),
        spacing=18,
    )
    return chart, _caption(drawn, layers, rows, enough), _summary(rows, strongest)


def _cell_tooltip(row: dict[str, Any]) -> str:
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
) -> alt.LayerChart:
    """One layer: the pairs below the diagonal."""
    own = cells.filter(pl.col(name) == layer[name] for name in LAYER)
    places = sorted(labels)
    x = panels.lanes("column", [str(i + 1) for i in places[:-1]])
    y = panels.lanes("row", [labels[i] for i in places], limit=150)
    if not first:
        y["axis"]["labelExpr"] = "split(datum.label, ' ')[0]"
    total, of = (int(own[name].sum()) for name in ("n_dissociated", "n_known"))
    counts = f"{total} of {of} tests dissociate"
    return panels.overlay(
        *panels.cells(own, x, y, label="shown"),
        width=_CELL[0] * (len(places) - 1),
        height=_CELL[1] * len(places),
        title=panels.panel_title(list(names.in_two_lines(layer, 24)), 150, subtitle=counts),
    )


def _crossed(
    pair: dict[str, Any], tests: pl.DataFrame, title: str, names: ShortLayerNames, *, first: bool
) -> alt.LayerChart:
    """Two lines over the targets of both mechanisms, one per strip, that cross where the strips dissociate."""
    rows = with_marks(crossed_rows(pair, tests), _crossed_tooltip, "drop").with_columns(
        line=pl.concat_str([*SUBJECT_RUN, "strip"], separator="/", ignore_nulls=True)
    )
    x = panels.lanes("at", ["a", "b"], title="target units of mechanism")
    y = panels.axis("drop", title if first else None, panels.domain(rows["drop"]), ticks=5)
    layers = [panels.reference(0, "y", "ink")]
    for level, thick, size, opacity in (("run", 1, 22, 0.4), ("median", 2.5, 80, 1)):
        own = panels.with_looks(rows.filter(level=level), "strip", _STRIPS).with_columns(
            size=pl.lit(float(size)), opacity=pl.lit(float(opacity))
        )
        for strip, look in _STRIPS.items():
            style: dict[str, Any] = {"color": look.edge, "strokeWidth": thick, "opacity": opacity}
            if strip == "b":
                style["strokeDash"] = [5, 3]
            line = own.filter(strip=strip).drop("mark")
            layers.append(panels.layer(line, "line", style, x=x, y=y, detail="line"))
        layers.append(panels.points(own, x, y))
    below = [f"{side}  {short(pair[f'mechanism_{side}'], 24)}" for side in "ab"]
    below.append(f"{pair['n_dissociated']} of {counted(pair['n_known'], 'subject-run')} dissociate")
    name = panels.panel_title(list(names.in_two_lines(pair, 24)), 150, subtitle=below)
    return panels.overlay(*layers, width=132, height=130, title=name)


def _crossed_tooltip(row: dict[str, Any]) -> str:
    what = f"{layer_name(row)}: strip {row['stripped']}, target {row['target']}: drop {signed(row['drop'], 4)}"
    if row["level"] == "median":
        return f"{what} (median of {counted(row['n'], 'subject-run')})"
    return f"{what} ({run_name(row)})"


def _caption(drawn: pl.DataFrame, layers: pl.DataFrame, rows: pl.DataFrame, enough: int) -> str:
    n_layers = rows.select(LAYER).n_unique()
    parts = [
        "Above: for every pair of mechanisms (by the number before the name), in how many subject-runs "
        f"({span(drawn['n_known'])} per layer) stripping either costs its own target units something, and more than "
        "the crossed strip and target; drops are medians over stripping methods.",
        "Below: the pairs that dissociate in the largest share of subject-runs (ties: the larger interaction; pairs "
        f"with fewer than {enough} subject-runs last); large marks are medians over subject-runs, faint ones single "
        "subject-runs.",
        "A pair dissociates where the circle at a and the square at b lie above zero and above the other two; this is "
        "diagnostic and enters no gate.",
        *chosen_note(layers.height, n_layers, MAX_PANELS, DISSOCIATIONS.name),
    ]
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
