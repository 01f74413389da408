"""Relational profiles: is the real pattern more like the brain's than that of nuisance and of every control?

For every layer and alignment × profile summary, the advantage over the nearest rival:

    s(c)         = mean over subject-runs of the mean over units of ρ(b_i, q_c)
    advantage(c) = the same of ρ(b_i, q_real) − ρ(b_i, q_c), over the unit rows that have both

A rival is nuisance or a control; the nearest one has the smallest advantage. Unit rows whose unit orders differ compare
different units and are left out.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import LANE, LAYER, REAL, SUBJECT_RUN, layer_name, marked
from lpact.analyses.lpact.gates.keys import mean_over_subject_runs
from lpact.analyses.lpact.tables.levels import PROFILE_DELTAS, PROFILE_SCORES, RELATIONAL_SUMMARY
from lpact.report import panels
from lpact.report.figure import Drawing, Spec, figure
from lpact.wording import counted, fixed, span

MAX_ROWS = 40
_TOOLTIP = (
    "{at}: {alignment} alignment, {profile} profile similarity: [real − nearest rival {advantage:+} ({nearest}]"
    "[, not counted by point rules{loose}][; mean over units, then over {n_subject_runs:subject-run})]"
    "[not computed ({why})]"
)
Summaries = list[tuple[str, str]]
SUMMARY = ["alignment", "profile"]
_UNIT_ROW = [*LAYER, *SUBJECT_RUN, "unit", *SUMMARY]


def unit_similarities(material: Material) -> tuple[pl.DataFrame, int]:
    """Similarity and advantage of every unit row and condition; and how many unit rows were left out."""
    scores = material.table(PROFILE_SCORES.name).sort([*_UNIT_ROW, "condition"])
    other = pl.col("model_unit_order_hash") != pl.col("brain_unit_order_hash")
    mixed = common.table_of(material, PROFILE_DELTAS).filter(other).select(_UNIT_ROW)
    scores = scores.join(mixed, on=_UNIT_ROW, how="anti", maintain_order="left")
    scores = scores.filter(pl.col("similarity").is_finite())
    real = scores.filter(pl.col("condition") == REAL).select(*_UNIT_ROW, own="similarity")
    paired = scores.join(real, on=_UNIT_ROW, how="left", maintain_order="left").with_columns(
        advantage=pl.col("own") - pl.col("similarity")
    )
    return paired, mixed.height


def similarities(material: Material) -> tuple[pl.DataFrame, int]:
    """One row per layer, summary and condition, mean over subject-runs; and how many unit rows were left out."""
    paired, n_left_out = unit_similarities(material)
    # A control is counted everywhere or nowhere.
    keys = [*LAYER, *SUMMARY, "condition", "counted"]
    paired = paired.sort([*keys, *SUBJECT_RUN], maintain_order=True)
    rows = mean_over_subject_runs(paired, keys, ["similarity", "advantage"])
    return rows, n_left_out


def nearest_rivals(rows: pl.DataFrame) -> pl.DataFrame:
    """The rival with the smallest advantage of the real features, one row per layer and summary; ties by name."""
    rivals = rows.filter((pl.col("condition") != REAL) & pl.col("advantage").is_not_null())
    return rivals.sort([*LAYER, *SUMMARY, "advantage", "condition"]).unique(
        [*LAYER, *SUMMARY], keep="first", maintain_order=True
    )


def layers_of(material: Material, nearest: pl.DataFrame) -> pl.DataFrame:
    """One row per layer of level 2.

    ``typical`` is the median over summaries of the advantage over the nearest rival, ``n_ahead`` the summaries in which
    it is positive, ``rival`` the most frequent nearest rival.
    """
    summaries = common.table_of(material, RELATIONAL_SUMMARY)
    found = pl.concat([nearest.select(LAYER), summaries.select(LAYER)])
    counts = nearest.group_by([*LAYER, "condition"], maintain_order=True).len("times")
    order = [*LAYER, "times", "condition"]
    frequent = counts.sort(order, descending=[name == "times" for name in order])
    frequent = frequent.unique(LAYER, keep="first", maintain_order=True)
    typical = nearest.group_by(LAYER, maintain_order=True).agg(
        typical=pl.col("advantage").median(),
        n_ahead=(pl.col("advantage") > 0).sum().cast(pl.Int64),
        n_summaries=pl.len().cast(pl.Int64),
    )
    out = found.unique().sort(LAYER)
    for part in (typical, frequent.rename({"condition": "rival"})):
        out = out.join(part, on=LAYER, how="left", maintain_order="left")
    return out.with_columns(pl.col("n_ahead", "n_summaries", "times").fill_null(0))


def summary_order(material: Material, found: pl.DataFrame) -> list[tuple[str, str]]:
    """Alignment × profile summaries, in the order of the study file, then others by name."""
    both = {(str(a), str(p)) for a, p in found.select(SUMMARY).unique().iter_rows()}
    config = LPactConfig.of(material.config).relational
    known = [(a, p) for a in config.alignments for p in config.profiles if (a, p) in both]
    return [*known, *sorted(both - set(known))]


@figure(
    "relational_profiles",
    "Relational profiles: the real pattern against nuisance and every control",
    PROFILE_SCORES,
)
def make(material: Material) -> Drawing | str:
    """The advantage over the nearest rival."""
    rows, n_left_out = similarities(material)
    nearest, reasons = nearest_rivals(rows), _reasons(material)
    if nearest.is_empty():
        why = ", ".join(sorted(set(reasons["why"]))) or "not_computed"
        return f"no profile similarity could be compared with a rival ({why})"
    layers, order = layers_of(material, nearest), summary_order(material, nearest)
    best, left_out = common.shown(material, layers, MAX_ROWS, PROFILE_SCORES)
    shown = layers.join(best, on=LAYER, how="semi", maintain_order="left")
    cells = advantage_cells(nearest, reasons, shown, order)
    classes = panels.diverging(nearest["advantage"])
    entries = [panels.class_entry("real − nearest rival, profile similarity", classes)]
    if cells["advantage"].null_count():
        entries.append(common.MISSING_BOX)
    painted = classes.paint(cells, "advantage")
    chart = panels.stacked(
        panels.key(*entries, width=900),
        *common.blocks(shown, lambda own, first: _block(painted, own, order, first), 10),
    )
    rivals = rows.filter(pl.col("condition") != REAL)["condition"].n_unique()
    caption = {
        "Profile similarity is how much a model's alignment with all units resembles a brain unit's own; mean over "
        f"units, then over subject-runs ({span(rows['n_subject_runs'])} per layer).": True,
        f"Cells: real features minus the nearest of {counted(rivals, 'rival')} (nuisance and every control) for every "
        "alignment measure and profile similarity; on the right, which rival is nearest most often.": True,
        left_out: left_out,
        f"{counted(n_left_out, 'unit row')} left out: the unit orders of model and brain differ.": n_left_out,
    }
    return chart, caption, _summary(layers)


def _reasons(material: Material) -> pl.DataFrame:
    """The most frequent reason, ``why``, for a layer's summary without numbers."""
    keys = [*LAYER, *SUMMARY]
    rows = common.table_of(material, RELATIONAL_SUMMARY).filter(pl.col("reason") != "ok").sort(keys)
    return rows.group_by(keys, maintain_order=True).agg(why=pl.col("reason").mode().sort().first())


def advantage_cells(
    nearest: pl.DataFrame, reasons: pl.DataFrame, shown: pl.DataFrame, order: Summaries
) -> pl.DataFrame:
    """One row per layer and summary: advantage over the nearest rival, or why there is none."""
    keys = [*LAYER, *SUMMARY]
    cells = shown.select(LAYER).join(pl.DataFrame(order, schema=SUMMARY, orient="row"), how="cross")
    for part in (nearest.rename({"condition": "nearest"}), reasons):
        cells = cells.join(part, on=keys, how="left", maintain_order="left")
    lost = pl.col("advantage").is_null()
    texts = [fixed(value, 2, sign=True) for value in cells["advantage"]]
    cells = cells.with_columns(
        why=pl.when(lost).then(pl.col("why").fill_null("not_computed")),
        summary=pl.concat_str(SUMMARY, separator="\n"),
        shown=pl.Series(texts, dtype=pl.String),
        loose=~lost & ~pl.col("counted"),
    )
    return marked(cells, _TOOLTIP, "advantage")


def _block(cells: pl.DataFrame, layers: pl.DataFrame, order: Summaries, first: bool) -> list[Any]:
    """One dataset: advantages, and the most frequent nearest rival."""
    width = max(30.0, min(52.0, 430 / len(order))) * len(order)
    rival = pl.format("{} ({} of {})", "rival", "times", "n_summaries").fill_null("–")
    layers = layers.with_columns(LANE, rival_text=rival)
    y = panels.lanes("lane", layers["lane"], shown=False)
    labels: Spec = {"labelFontSize": 9, "labelExpr": "split(datum.label, '\\n')"}
    names = [f"{a}\n{p}" for a, p in order]
    x = panels.lanes("summary", names, orient="top", labels=first, labelPadding=16, **labels)
    inside = cells.join(layers.select(*LAYER, "lane"), on=LAYER, maintain_order="left")
    title = "nearest rival (in how many summaries)" if first else ""
    look: Spec = {"size": 10, "ink": "muted", "title": title}
    return [
        panels.column(layers, "lane", y, 170, align="right", step=18),
        panels.overlay(*panels.cells(inside, x, y, label="shown"), width=width, step=18),
        panels.column(layers, "rival_text", y, 210, step=18, **look),
    ]


def _summary(layers: pl.DataFrame) -> str:
    known = layers.filter(pl.col("n_summaries") > 0)
    ahead = known.filter(pl.col("n_ahead") == pl.col("n_summaries"))
    top = common.top(known, "typical")
    return (
        f"In {ahead.height} of {counted(known.height, 'layer')} the real pattern is above every rival in every "
        f"summary. Furthest ahead: {layer_name(top)}, median advantage {fixed(top['typical'], sign=True)} over the "
        f"nearest rival (above it in {top['n_ahead']} of {counted(top['n_summaries'], 'summary')})."
    )
