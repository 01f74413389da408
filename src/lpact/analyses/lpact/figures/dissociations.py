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
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import LAYER, layer_name, marked
from lpact.analyses.lpact.tables.levels import DISSOCIATIONS
from lpact.report import panels
from lpact.report.figure import Drawing, figure
from lpact.report.panels import Classes
from lpact.report.theme import RAMP
from lpact.report.values import short, signed, span
from lpact.wording import counted

MAX_PANELS = 8
_DROPS = ("drop_aa", "drop_ab", "drop_ba", "drop_bb")
_SHARES = Classes(RAMP, (0.001, 0.2, 0.4, 0.6, 0.8, 0.999))
_CELL, _COLUMNS = (32, 23), 4


def rows_of(material: Material) -> pl.DataFrame:
    """One row per layer and pair: in how many subject-runs of how many it dissociates, and its median interaction.

    Pairs are in the order of the study file; ``a`` and ``b`` are places of the mechanisms in it.
    """
    tests = material.table(DISSOCIATIONS.name)
    order = common.mechanism_order(
        material, pl.concat([tests["mechanism_a"], tests["mechanism_b"]])
    )
    place = pl.col("mechanism_a", "mechanism_b").cast(pl.Enum(order)).to_physical().cast(pl.Int64)
    named = pl.DataFrame(
        {"i": range(len(order)), "name": order}, schema={"i": pl.Int64, "name": pl.String}
    )
    aa, ab, ba, bb = (pl.col(name).fill_nan(None) for name in _DROPS)
    interaction = (aa - ab + bb - ba) / 2
    # The interaction is missing where one of the four drops is.
    known = interaction.is_not_null() & (pl.col("reason") == "ok")
    rows = (
        tests.with_columns(a=pl.min_horizontal(place), b=pl.max_horizontal(place))
        .group_by(*LAYER, "a", "b")
        .agg(
            n_dissociated=(pl.col("double_dissociation") & known).sum().cast(pl.Int64),
            n_known=known.sum().cast(pl.Int64),
            n_subject_runs=pl.len().cast(pl.Int64),
            interaction=interaction.filter(known).median(),
            why=pl.col("reason").filter(pl.col("reason") != "ok").mode().sort().first(),
        )
        .with_columns(
            share=pl.when(pl.col("n_known") > 0).then(pl.col("n_dissociated") / pl.col("n_known"))
        )
        .sort([*LAYER, "a", "b"])
    )
    for side in "ab":
        names = named.rename({"i": side, "name": f"mechanism_{side}"})
        rows = rows.join(names, on=side, how="left", maintain_order="left")
    return rows


@figure("dissociations", "Double dissociations between mechanisms", DISSOCIATIONS)
def make(material: Material) -> Drawing | str:
    """Draw counts of double dissociations."""
    rows = rows_of(material)
    if rows.is_empty():
        return "no pair of mechanisms was stripped in this run"
    why = ", ".join(rows["why"].drop_nulls().unique().sort().to_list()) or "not_computed"
    if not rows["n_known"].sum():
        return f"no pair has all four drops ({why})"
    scores = rows.group_by(LAYER, maintain_order=True).agg(
        share=(pl.col("n_dissociated").sum() / pl.col("n_known").sum()).fill_nan(None),
        strength=pl.col("interaction").max(),
    )
    layers = common.chosen_layers(material, scores, MAX_PANELS)
    drawn = rows.join(layers, on=LAYER, how="semi", maintain_order="left")
    sides = (drawn.select(i=side, name=f"mechanism_{side}") for side in "ab")
    labels = {i: f"{i + 1} {name}" for i, name in pl.concat(sides).unique().sort("i").iter_rows()}
    count = pl.format("{}/{}", "n_dissociated", "n_known")
    cells = _SHARES.paint(marked(drawn, _tooltip, "n_dissociated"), "share").with_columns(
        shown=pl.when(pl.col("n_known") > 0).then(count).otherwise(pl.lit("–")),
        row=pl.col("b").replace_strict(labels, return_dtype=pl.String),
        column=(pl.col("a") + 1).cast(pl.String),
    )
    shares = ["0", "< 20", "< 40", "< 60", "< 80", "< 100", "100"]
    key = panels.key(
        ("subject-runs with a double dissociation, %", _SHARES, shares), common.MISSING_BOX
    )
    triangles = [
        _triangle(layer, cells, labels, first=i % _COLUMNS == 0)
        for i, layer in enumerate(layers.iter_rows(named=True))
    ]
    spacing = {"row": 22, "column": 24}
    chart = panels.stacked(key, panels.grid(triangles, _COLUMNS, spacing=spacing), spacing=18)
    n_tests, n_known = (int(rows[name].sum()) for name in ("n_subject_runs", "n_known"))
    lost = n_tests - n_known
    caption = [
        "For every pair of mechanisms (by the number before the name), in how many subject-runs "
        f"({span(drawn['n_known'])} per layer) stripping either costs its own target units something, and more than "
        "the crossed strip and target; drops are medians over stripping methods. Diagnostic, in no gate.",
        common.chosen_note(layers.height, rows.select(LAYER).n_unique(), DISSOCIATIONS),
        f"{counted(lost, 'test')} could not be computed ({why})." if lost else "",
    ]
    order = ["share", "interaction", *LAYER, "a", "b"]
    known = rows.filter(pl.col("n_known") > 0)
    best = known.sort(order, descending=[i < 2 for i in range(len(order))]).row(0, named=True)
    summary = (
        f"{rows['n_dissociated'].sum():,} of {counted(n_known, 'test')} (subject-run and pair) show a "
        f"double dissociation. Most often: {best['mechanism_a']} and {best['mechanism_b']} in {layer_name(best)}, "
        f"{best['n_dissociated']} of {counted(best['n_known'], 'subject-run')}."
    )
    return chart, caption, summary


def _tooltip(row: dict[str, Any]) -> str:
    what = f"{row['at']}: {row['mechanism_a']} and {row['mechanism_b']}"
    if not row["n_known"]:
        return f"{what}: not computed ({row['why'] or 'not_computed'})"
    return (
        f"{what}: double dissociation in {row['n_dissociated']} of {counted(row['n_known'], 'subject-run')}; "
        f"median interaction {signed(row['interaction'])}"
    )


def _triangle(
    layer: dict[str, Any], cells: pl.DataFrame, labels: dict[int, str], *, first: bool
) -> alt.LayerChart:
    """One layer: the pairs below the diagonal."""
    own = cells.filter(common.of_layer(layer))
    x = panels.lanes("column", [str(i + 1) for i in labels][:-1])
    y = panels.lanes("row", labels.values(), limit=150)
    if not first:
        y["axis"]["labelExpr"] = "split(datum.label, ' ')[0]"
    counts = f"{own['n_dissociated'].sum()} of {own['n_known'].sum()} tests dissociate"
    named = [short(layer["dataset"], 24), short(f"{layer['model']} · layer {layer['layer']}", 24)]
    return panels.overlay(
        *panels.cells(own, x, y, label="shown"),
        width=_CELL[0] * (len(labels) - 1),
        height=_CELL[1] * len(labels),
        title=panels.panel_title(named, 150, subtitle=counts),
    )
