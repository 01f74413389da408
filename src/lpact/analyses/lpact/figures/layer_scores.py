"""Scores by layer, with the controls drawn in: the real features against nuisance and every severe control."""

from __future__ import annotations

import polars as pl

from lpact.analyses.lpact.figures.layer_score_lines import lines
from lpact.analyses.lpact.figures.layer_score_rows import (
    BEST,
    REAL,
    ceilings_of,
    dots_of,
    rows_of,
)
from lpact.analyses.lpact.figures.layer_score_strips import strips
from lpact.analyses.lpact.figures.layers import LAYER
from lpact.analyses.lpact.figures.predictive_rows import largest, primary_deltas
from lpact.analyses.lpact.figures.wording import counted, metric_name, number
from lpact.analyses.lpact.tables.predictive import CONTROL_DELTAS, CONTROL_NULLS
from lpact.report.figure import Figure, Material, Missing

NAME = "layer_scores"
TITLE = "Held-out score of the real features, with nuisance and every severe control"
FEW_LAYERS = 2
"""Up to so many layers of a model stand beside each other as strips; more become a line."""


def make(material: Material) -> Figure | Missing:
    """The layer-wise brain score, and what it has to beat."""
    lacking = material.lacks(CONTROL_DELTAS.name, CONTROL_NULLS.name)
    if lacking:
        return Missing(NAME, TITLE, f"the run has no table {', '.join(lacking)}")
    metric = material.config.readout.primary_metric
    if primary_deltas(material).drop_nulls("real_score").is_empty():
        return Missing(NAME, TITLE, f"no held-out {metric_name(metric)} was computed at level 1")
    rows, dots, ceilings = rows_of(material), dots_of(material), ceilings_of(material)
    n_layers = rows.group_by("dataset", "model").agg(pl.col("layer").n_unique())["layer"]
    as_strips = largest(n_layers) <= FEW_LAYERS
    draw = strips if as_strips else lines
    return Figure(
        NAME,
        TITLE,
        _caption(rows, ceilings, metric, as_strips=as_strips),
        draw(rows, dots, ceilings, metric_name(metric)),
        _summary(rows, metric_name(metric)),
    )


def _caption(rows: pl.DataFrame, ceilings: pl.DataFrame, metric: str, *, as_strips: bool) -> str:
    panels = rows.select(LAYER).unique().height
    pairs = rows.select("dataset", "model").unique().height
    said = [
        f"Held-out {metric_name(metric)}, median over units and mean over subject-runs, in "
        f"{counted(panels, 'layer')} of "
        f"{counted(pairs, 'dataset and model pair')}; the bar is the 95 % bootstrap interval over subject-runs, which "
        "for two or three of them is no more than their range; a single subject-run has none.",
        "Conditions run from the highest to the lowest mean over all panels; the thin line marks the real features."
        if as_strips
        else "Each severe control is a grey line with its number in the key below the panels.",
        "The strongest counted control has the smallest mean difference from the real features; those that are not "
        "counted by the point rules are counted by the tests.",
    ]
    apart = rows.filter(pl.col("n_both") < pl.max_horizontal("n", "n_real")).drop_nulls("place")
    if apart.height:
        said.append(
            f"{apart.height} of {counted(rows.height, 'condition')} have other subject-runs than the real features; "
            "each is drawn at the mean of the real features minus the mean difference over the subject-runs with "
            "both, which the gates use; hovering gives its own mean and both numbers."
        )
    if ceilings.height:
        said.append(
            "Response reliability (strictest valid mode, mean over recordings) correlates one noisy recording with "
            "another; a model without noise could reach its square root."
        )
    elif metric != "pearson":
        said.append(
            "Response reliability is a Pearson correlation and is not drawn for this metric."
        )
    absent = rows["place"].null_count()
    if absent:
        where = "" if as_strips else " over the crosses above the panels"
        said.append(
            f"{absent} of {counted(rows.height, 'condition')} were not computed; hovering{where} says why."
        )
    return " ".join(said)


def _summary(rows: pl.DataFrame, metric: str) -> str:
    real = rows.filter((pl.col("condition") == REAL) & pl.col("mean").is_not_null())
    best = real.sort(["mean", *LAYER], descending=[True, False, False, False]).row(0, named=True)
    rivals = rows.filter(pl.col("kind") == BEST)
    beaten = rivals.filter(pl.col("delta") > 0).height
    return (
        f"The highest mean {metric} of real features is {number(best['mean'])} ({best['dataset']}, {best['model']}, "
        f"layer {best['layer']}). In {beaten} of {counted(rivals.height, 'layer')} "
        "the real features score above every counted control on average."
    )
