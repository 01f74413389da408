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
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import (
    LAYER,
    PROFILE_LOOKS,
    PROFILES,
    SUBJECT_RUN,
    layer_name,
    marked,
)
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.analyses.lpact.tables.levels import SPECIFICITY, STRIPPING_DELTAS
from lpact.report import panels
from lpact.report.figure import Drawing, figure
from lpact.report.values import short, signed
from lpact.wording import counted

MIN_TARGETS = 2
MAX_PANELS = 9
_CELL = (40, 27)


def rows_of(material: Material) -> pl.DataFrame:
    """One row per layer, stripped and target mechanism: drop, its n, whether it is matching, and why it is missing."""
    strip = [*LAYER, *SUBJECT_RUN, "method", "stripped"]
    deltas = material.table(STRIPPING_DELTAS.name).sort([*strip, "target"])
    known = pl.all_horizontal(pl.col("matching_drop", "margin", "mismatch_margin").is_finite())
    used = material.table(SPECIFICITY.name).filter(
        known, pl.col("reason") == "ok", pl.col("n_targets") >= MIN_TARGETS
    )
    usable = deltas.join(used, on=strip, how="semi", maintain_order="left")
    usable = usable.filter(pl.col("drop").is_finite(), pl.col("reason") == "ok")
    keys, drop = [*LAYER, "stripped", "target"], pl.col("drop").median()
    methods = usable.group_by([*keys, "method"], maintain_order=True).agg(
        drop, runs=pl.struct(SUBJECT_RUN).n_unique()
    )
    drops = methods.group_by(keys, maintain_order=True).agg(
        drop,
        n_methods=pl.len().cast(pl.Int64),
        n_subject_runs=pl.col("runs").max().cast(pl.Int64),
    )
    cells = deltas.group_by(keys, maintain_order=True).agg(
        pl.col("matching").first(),
        why=pl.coalesce(
            pl.col("reason").filter(pl.col("reason") != "ok").mode().sort().first(),
            pl.col("label").mode().sort().first(),
            pl.lit("not_computed"),
        ),
    )
    return cells.join(drops, on=keys, how="left", maintain_order="left").with_columns(
        pl.col("n_methods", "n_subject_runs").fill_null(0),
        why=pl.when(pl.col("drop").is_null()).then("why"),
    )


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
    layers = common.chosen_layers(material, scores, MAX_PANELS)
    order = common.mechanism_order(material, pl.concat([rows["stripped"], rows["target"]]))
    drawn = rows.join(layers, on=LAYER, how="semi", maintain_order="left")
    missing = drawn.filter(pl.col("drop").is_null())
    why = ", ".join(missing["why"].unique().sort().to_list())
    if missing.height == drawn.height:
        return f"no drop could be computed ({why})"
    classes = panels.diverging(drawn["drop"])
    decimals = 3 if classes.bounds[-1] < 0.5 else 2
    numbers = {name: str(i) for i, name in enumerate(order, 1)}
    matching = pl.when("matching").then(pl.lit("matching")).otherwise(pl.lit("other target"))
    number = pl.col("stripped", "target").replace_strict(numbers, return_dtype=pl.String)
    drawn = drawn.with_columns(
        number.name.prefix("n_"),
        kind=matching,
        shown=pl.Series([signed(value, decimals) for value in drawn["drop"]], dtype=pl.String),
    ).with_columns(row=pl.format("{} {}", "n_stripped", "stripped"))
    cells = classes.paint(marked(drawn, _tooltip, "drop"), "drop")
    gates = _passed(material, cells)
    n = layers.height
    columns = n if n < 4 else 2 if n == 4 else 3
    parts = [
        _panel(layer, cells, gates, order, first=i % columns == 0)
        for i, layer in enumerate(layers.iter_rows(named=True))
    ]
    title = f"drop in held-out {common.metric_name(material)}, real − stripped"
    entries = [panels.class_entry(title, classes), *common.profile_entries(gate="M")]
    if missing.height:
        entries.append(common.MISSING_BOX)
    caption = [
        "Drop of the held-out score, real − stripped, by stripped mechanism (rows) and the mechanism whose target "
        "units are predicted (columns, by the number before its name): median over subject-runs, then over stripping "
        "methods.",
        "Outlined: the matching target. Gate M requires that this cell is above zero, above the others of its row, "
        "and above strips of something else.",
        common.chosen_note(n, rows.select(LAYER).n_unique(), STRIPPING_DELTAS),
        f"A dash: {counted(missing.height, 'cell')} not computed or not used by the gate ({why})."
        if missing.height
        else "",
    ]
    chart = panels.stacked(panels.key(*entries), panels.grid(parts, columns))
    return chart, caption, _summary(cells, gates)


def _tooltip(row: dict[str, Any]) -> str:
    what = f"{row['at']}: strip {row['stripped']}, target {row['target']}"
    if row["drop"] is None:
        return f"{what}: not computed ({row['why']})"
    n = f"{counted(row['n_methods'], 'method')}, {counted(row['n_subject_runs'], 'subject-run')}"
    return f"{what} ({row['kind']}): drop {signed(row['drop'], 4)} (median over {n})"


def _passed(material: Material, cells: pl.DataFrame) -> pl.DataFrame:
    """Matching cells whose claim passes gate M, one row per gate profile."""
    claims = common.table(material, DECISIONS).filter("mechanism_specific")
    passed = claims.select(*LAYER, "gate_profile", stripped="mechanism")
    diagonal = cells.filter("matching").select(*LAYER, "stripped", "row", "n_target")
    found = diagonal.join(passed, on=[*LAYER, "stripped"], maintain_order="left")
    return marked(found, "{at}: gate M passes for {stripped}, {rules}")


def _panel(
    layer: dict[str, Any],
    cells: pl.DataFrame,
    gates: pl.DataFrame,
    order: list[str],
    *,
    first: bool,
) -> alt.LayerChart:
    """One layer: stripped mechanisms down, targets across; the first panel of a line names the mechanisms."""
    same, numbers = common.of_layer(layer), range(1, len(order) + 1)
    own, passed = cells.filter(same), gates.filter(same)
    x = panels.lanes("n_target", map(str, numbers), title="target units of mechanism")
    lanes = [f"{i} {name}" for i, name in zip(numbers, order, strict=True)]
    y = panels.lanes("row", lanes, limit=150)
    if not first:
        y["axis"]["labelExpr"] = "split(datum.label, ' ')[0]"
    outline = {"filled": False, "stroke": "ink", "strokeWidth": 2}
    under = [PROFILES[name] for name in PROFILES if layer[name]]
    passed_under = (
        "both profiles" if len(under) == len(PROFILES) else "".join(under) or "not passed"
    )
    largest: dict[str, int] = own.select(pl.col("n_subject_runs", "n_methods").max()).row(
        0, named=True
    )
    subtitle = (
        f"{counted(largest['n_subject_runs'], 'subject-run')}, {counted(largest['n_methods'], 'method')} · "
        f"P: {passed_under}"
    )
    named = [short(layer["dataset"], 38), short(f"{layer['model']} · layer {layer['layer']}", 38)]
    return panels.overlay(
        *panels.cells(own, x, y, label="shown"),
        panels.layer(own.filter("matching").drop("mark"), "rect", outline, x=x, y=y),
        *(
            panels.points(
                passed.filter(gate_profile=name), x, y, PROFILE_LOOKS[name], shift=(shift, 9)
            )
            for name, shift in ((PAPER, -14), (CALIBRATED, 14))
        ),
        panels.heading("stripped mechanism" if first else " ", -8, align="right"),
        width=_CELL[0] * len(order),
        height=_CELL[1] * len(order),
        title=panels.panel_title(named, 250, offset=6, subtitle=subtitle),
    )


def _summary(cells: pl.DataFrame, gates: pl.DataFrame) -> str:
    matching = cells.filter("matching")
    passed = " and ".join(
        f"{gates.filter(gate_profile=name).height} under {words}"
        for name, words in PROFILES.items()
    )
    text = f"Of {counted(matching.height, 'matching cell')} drawn, gate M passes {passed}."
    order = ["drop", *LAYER, "stripped"]
    top = matching.drop_nulls("drop").sort(order, descending=[name == "drop" for name in order])
    if top.is_empty():
        return text
    best = top.row(0, named=True)
    largest = f"{signed(best['drop'])}, of {best['stripped']} in {layer_name(best)}"
    return f"The largest matching drop is {largest}. {text}"
