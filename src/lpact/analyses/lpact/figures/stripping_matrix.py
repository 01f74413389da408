"""Stripping matrix: what stripping each mechanism costs the target units of each mechanism.

Over the rows that gate M uses (all three numbers are known, at least two targets),

    drop(k → t) = median over stripping methods of the median over subject-runs of (s_real(t) − s_stripped k(t)),

so that drop(k → k) is the ``typical_drop`` of the gate evidence.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import (
    LAYER,
    PROFILE_LOOKS,
    PROFILES,
    SUBJECT_RUN,
    ShortLayerNames,
    chosen_layers,
    chosen_note,
    largest,
    layer_name,
    mechanism_order,
    metric_name,
    passed_under,
)
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.analyses.lpact.tables.levels import SPECIFICITY, STRIPPING_DELTAS
from lpact.report import panels
from lpact.report.figure import Drawing, figure, with_marks
from lpact.report.panels import BOX, Look
from lpact.report.wording import bound, counted, signed

MIN_TARGETS = 2
MAX_PANELS = 9
_CELL = (40, 27)
_CONTEXT = [*LAYER, *SUBJECT_RUN]


def usable_strips(specificity: pl.DataFrame) -> pl.DataFrame:
    """Context, method and mechanism of the rows that gate M uses."""
    three = ("matching_drop", "margin", "mismatch_margin")
    return specificity.filter(
        (pl.col("reason") == "ok")
        & pl.all_horizontal(
            pl.col(name).is_not_null() & pl.col(name).is_not_nan() for name in three
        )
        & (pl.col("n_targets") >= MIN_TARGETS)
    ).select(*_CONTEXT, "method", "stripped")


def rows_of(material: Material) -> pl.DataFrame:
    """One row per layer, stripped and target mechanism: drop, its n, whether it is matching, and why it is missing."""
    deltas = material.table(STRIPPING_DELTAS.name).sort([*_CONTEXT, "method", "stripped", "target"])
    keys = [*LAYER, "stripped", "target"]
    usable = deltas.join(
        usable_strips(material.table(SPECIFICITY.name)),
        on=[*_CONTEXT, "method", "stripped"],
        how="semi",
        maintain_order="left",
    ).filter(
        (pl.col("reason") == "ok") & pl.col("drop").is_not_null() & pl.col("drop").is_not_nan()
    )
    drops = (
        usable.group_by([*keys, "method"], maintain_order=True)
        .agg(pl.col("drop").median(), runs=pl.struct(SUBJECT_RUN).n_unique())
        .group_by(keys, maintain_order=True)
        .agg(
            pl.col("drop").median(),
            n_methods=pl.len().cast(pl.Int64),
            n_subject_runs=pl.col("runs").max().cast(pl.Int64),
        )
    )
    cells = deltas.group_by(keys, maintain_order=True).agg(
        pl.col("matching").first(),
        reason=pl.col("reason").filter(pl.col("reason") != "ok").mode().sort().first(),
        label=pl.col("label").mode().sort().first(),
    )
    out = cells.join(drops, on=keys, how="left", maintain_order="left")
    why = pl.coalesce("reason", "label", pl.lit("not_computed"))
    return out.with_columns(
        why=pl.when(pl.col("drop").is_null()).then(why),
        n_methods=pl.col("n_methods").fill_null(0),
        n_subject_runs=pl.col("n_subject_runs").fill_null(0),
    ).drop("reason", "label")


@figure(
    "stripping_matrix",
    "What stripping a mechanism costs: matching targets on the diagonal",
    STRIPPING_DELTAS,
    SPECIFICITY,
)
def make(material: Material) -> Drawing | str:
    """Draw the stripping matrix of the layers that matter."""
    rows = rows_of(material)
    if rows.is_empty():
        return "no mechanism was stripped in this run"
    best = pl.col("drop").filter("matching").max()
    scores = rows.group_by(LAYER, maintain_order=True).agg(best=best)
    layers = chosen_layers(material, scores, MAX_PANELS)
    order = mechanism_order(material, pl.concat([rows["stripped"], rows["target"]]))
    drawn = rows.join(layers.select(LAYER), on=LAYER, how="semi", maintain_order="left")
    if not drawn["drop"].count():
        why = ", ".join(drawn["why"].drop_nulls().unique().sort().to_list())
        return f"no drop could be computed ({why})"
    classes = panels.diverging(largest(drawn["drop"].abs()))
    decimals = 3 if classes.bounds[-1] < 0.5 else 2
    numbers = {name: str(i) for i, name in enumerate(order, 1)}
    cells = classes.paint(with_marks(drawn, _tooltip, "drop"), "drop").with_columns(
        pl.Series("shown", [signed(value, decimals) for value in drawn["drop"]], dtype=pl.String),
        row=pl.col("stripped").replace_strict(
            {name: f"{i} {name}" for i, name in enumerate(order, 1)}, return_dtype=pl.String
        ),
        column=pl.col("target").replace_strict(numbers, return_dtype=pl.String),
    )
    gates = _passed(material, cells)
    n = layers.height
    columns, names = n if n < 4 else 2 if n == 4 else 3, ShortLayerNames(layers)
    parts = [
        _panel(layer, cells, gates, order, names, first=i % columns == 0)
        for i, layer in enumerate(layers.iter_rows(named=True))
    ]
    metric = metric_name(material.config.readout.primary_metric)
    title = f"drop in held-out {metric}, real − stripped"
    entries: list[Any] = [(title, classes, [bound(own) for own in classes.bounds])]
    if cells["drop"].null_count():
        entries.append(("not computed", Look(BOX, "missing", "missing", 160)))
    entries += [(f"M passed, {PROFILES[name]}", look) for name, look in PROFILE_LOOKS.items()]
    chart = panels.stacked(panels.key(*entries), panels.grid(parts, columns))
    n_layers = rows.select(LAYER).n_unique()
    return chart, _caption(cells, layers, n_layers), _summary(cells, gates)


def _tooltip(row: dict[str, Any]) -> str:
    what = f"{layer_name(row)}: strip {row['stripped']}, target {row['target']}"
    if row["drop"] is None:
        return f"{what}: not computed ({row['why']})"
    kind = "matching" if row["matching"] else "other target"
    n = f"{counted(row['n_methods'], 'method')}, {counted(row['n_subject_runs'], 'subject-run')}"
    return f"{what} ({kind}): drop {signed(row['drop'], 4)} (median over {n})"


def _passed(material: Material, cells: pl.DataFrame) -> pl.DataFrame:
    """Matching cells whose claim passes gate M, one row per gate profile."""
    diagonal = cells.filter("matching").select(*LAYER, "stripped", "row", "column")
    if not material.has(DECISIONS.name):
        return diagonal.clear().with_columns(gate_profile=pl.lit(""), mark=pl.lit(""))
    claims = material.table(DECISIONS.name).filter("mechanism_specific")
    passed = claims.select(*LAYER, "gate_profile", stripped="mechanism")
    found = diagonal.join(passed, on=[*LAYER, "stripped"], maintain_order="left")
    return with_marks(
        found.sort([*LAYER, "stripped", "gate_profile"]),
        lambda row: (
            f"{layer_name(row)}: gate M passes for {row['stripped']}, {PROFILES[row['gate_profile']]}"
        ),
    )


def _panel(
    layer: dict[str, Any],
    cells: pl.DataFrame,
    gates: pl.DataFrame,
    order: list[str],
    names: ShortLayerNames,
    *,
    first: bool,
) -> alt.LayerChart:
    """One layer: stripped mechanisms down, targets across; the first panel of a line names the mechanisms."""
    same = [pl.col(name) == layer[name] for name in LAYER]
    shown = [str(i) for i in range(1, len(order) + 1)]
    x = panels.lanes("column", shown, title="target units of mechanism")
    y = panels.lanes("row", [f"{i} {name}" for i, name in enumerate(order, 1)], limit=150)
    if not first:
        y["axis"]["labelExpr"] = "split(datum.label, ' ')[0]"
    head = panels.heading("stripped mechanism" if first else " ", -8, align="right")
    own, passed = cells.filter(same), gates.filter(same)
    outline = {"filled": False, "stroke": "ink", "strokeWidth": 2}
    marks = [
        panels.points(
            panels.with_looks(passed.filter(gate_profile=name), "gate_profile", PROFILE_LOOKS),
            x,
            y,
            shift=(shift, 9),
        )
        for name, shift in ((PAPER, -14), (CALIBRATED, 14))
    ]
    n = f"{counted(int(largest(own['n_subject_runs'])), 'subject-run')}, "
    n += counted(int(largest(own["n_methods"])), "method")
    title = panels.panel_title(
        list(names.in_two_lines(layer, 38)),
        250,
        offset=6,
        subtitle=f"{n} · P: {passed_under(layer)}",
    )
    width, height = (side * len(order) for side in _CELL)
    return panels.overlay(
        *panels.cells(own, x, y, label="shown"),
        panels.layer(own.filter("matching").drop("mark"), "rect", outline, x=x, y=y),
        *marks,
        head,
        width=width,
        height=height,
        title=title,
    )


def _caption(cells: pl.DataFrame, layers: pl.DataFrame, n_layers: int) -> str:
    missing = cells.filter(pl.col("drop").is_null())
    parts = [
        "Drop of the held-out score, real − stripped, by stripped mechanism (rows) and the mechanism whose target "
        "units are predicted (columns, by the number before its name): median over subject-runs, then over stripping "
        "methods.",
        "Outlined: the matching target. Gate M requires that this cell is above zero, above the others of its row, "
        "and above strips of something else.",
        *chosen_note(layers.height, n_layers, MAX_PANELS, STRIPPING_DELTAS.name),
    ]
    if missing.height:
        why = ", ".join(missing["why"].unique().sort().to_list())
        parts.append(
            f"A dash: {counted(missing.height, 'cell')} not computed or not used by the gate ({why})."
        )
    return " ".join(parts)


def _summary(cells: pl.DataFrame, gates: pl.DataFrame) -> str:
    matching = cells.filter("matching")
    top = matching.drop_nulls("drop").sort(
        ["drop", *LAYER, "stripped"], descending=[True, False, False, False, False]
    )
    parts = []
    if top.height:
        best = top.row(0, named=True)
        parts.append(
            f"The largest matching drop is {signed(best['drop'])}, of {best['stripped']} in {layer_name(best)}."
        )
    passed = " and ".join(
        f"{gates.filter(gate_profile=name).height} under {words}"
        for name, words in PROFILES.items()
    )
    parts.append(f"Of {counted(matching.height, 'matching cell')} drawn, gate M passes {passed}.")
    return " ".join(parts)
