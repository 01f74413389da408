"""Double dissociations: each of two strips costs its own target units something, and more than the crossed drops."""

from __future__ import annotations

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import LAYER, layer_name, marked
from lpact.analyses.lpact.figures.stripping_matrix import MAX_PANELS, mechanism_lanes, panel_grid
from lpact.analyses.lpact.gates.keys import OK
from lpact.analyses.lpact.tables.levels import DISSOCIATIONS
from lpact.report import panels
from lpact.report.figure import Drawing, figure
from lpact.report.theme import RAMP
from lpact.wording import counted

_SHARES = panels.Classes(RAMP, (0.001, 0.2, 0.4, 0.6, 0.8, 0.999))
_WORDS = ["0", "< 20", "< 40", "< 60", "< 80", "< 100", "100"]


def rows_of(material: Material) -> pl.DataFrame:
    """One row per layer and pair: in how many subject-runs, of ``n`` with all four drops, it is a dissociation."""
    keys = [*LAYER, "mechanism_a", "mechanism_b"]
    rows = material.table(DISSOCIATIONS.name).sort(LAYER, maintain_order=True)
    rows = rows.group_by(keys, maintain_order=True).agg(
        n_dissociated=(pl.col("double_dissociation") & OK).sum().cast(pl.Int64),
        n=OK.sum().cast(pl.Int64),
        why=pl.col("reason").filter(~OK).mode().sort().first(),
    )
    return rows.with_columns(share=(pl.col("n_dissociated") / pl.col("n")).fill_nan(None))


@figure("dissociations", "Double dissociations between mechanisms", DISSOCIATIONS)
def make(material: Material) -> Drawing | str:
    """Draw, for the best layers, how often each pair of mechanisms dissociates."""
    rows = rows_of(material)
    n, why = int(rows["n"].sum()), ", ".join(rows["why"].drop_nulls().unique().sort())
    if not n:
        return f"no pair of mechanisms has all four drops{f' ({why})' if why else ''}"
    known = rows.filter(pl.col("n") > 0)
    layers, left_out = common.shown(material, known, MAX_PANELS, DISSOCIATIONS)
    order = common.mechanism_order(material, pl.concat([rows["mechanism_a"], rows["mechanism_b"]]))
    count = pl.format("{} of {}", "n_dissociated", "n")
    found = pl.format("double dissociation in {} subject-runs", count)
    absent = pl.format("not computed ({})", "why")
    drawn = rows.join(layers, on=LAYER, how="semi", maintain_order="left")
    cells = mechanism_lanes(drawn, "mechanism_b", "mechanism_a", order).with_columns(
        shown=pl.when(pl.col("n") > 0).then(count).otherwise(pl.lit("–")),
        text=pl.when(pl.col("n") > 0).then(found).otherwise(absent),
    )
    cells = marked(cells, "{at}: {mechanism_a} and {mechanism_b}: {text}", "n_dissociated")
    cells = _SHARES.paint(cells, "share")
    grid = panel_grid(layers, cells, order, ("mechanism", "with mechanism"), _subtitle)
    entries: list[panels.Entry] = [("subject-runs with a double dissociation, %", _SHARES, _WORDS)]
    if drawn["share"].null_count():
        entries.append(common.MISSING_BOX)
    lost = material.table(DISSOCIATIONS.name).height - n
    caption = {
        "For every pair of mechanisms (columns by the number before the name), in how many subject-runs stripping "
        "each costs its own target units something, and more than either crossed drop; drops are medians over "
        "stripping methods. Diagnostic: no gate uses it.": True,
        left_out: left_out,
        f"{counted(lost, 'test')} could not be computed ({why}).": lost,
    }
    best = common.top(drawn, "share", "n", then=[*LAYER, "mechanism_a", "mechanism_b"])
    summary = (
        f"{rows['n_dissociated'].sum():,} of {counted(n, 'test')} (subject-run and pair) show a double dissociation. "
        f"Most often among those drawn: {best['mechanism_a']} and {best['mechanism_b']} in {layer_name(best)}, "
        f"{best['n_dissociated']} of {counted(best['n'], 'subject-run')}."
    )
    return panels.stacked(panels.key(*entries), grid), caption, summary


def _subtitle(cells: pl.DataFrame) -> str:
    return f"{cells['n_dissociated'].sum()} of {counted(int(cells['n'].sum()), 'test')}"
