"""Drops by stripped and target mechanism, as gate M sees them, and the layers whose matrix is drawn.

Over the rows that gate M uses (all three numbers there, at least two targets),

    drop(k → t) = median over stripping methods of the median over subject-runs of (s_real(t) − s_stripped k(t)),

so that drop(k → k) is the ``typical_drop`` of the gate evidence.
"""

from __future__ import annotations

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import LAYER, SUBJECT_RUN, passes
from lpact.analyses.lpact.gates import CALIBRATED, PAPER

DELTAS = "causal/causal_stripping_deltas"
SPECIFICITY = "causal/mechanism_specificity_summary"
MIN_TARGETS = 2
MAX_PANELS = 9
FEW = 6
"""So many layers are all drawn."""

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
    """One row a layer, stripped and target mechanism: drop, its n, whether it is matching, and why it is missing."""
    deltas = material.table(DELTAS).sort([*_CONTEXT, "method", "stripped", "target"])
    keys = [*LAYER, "stripped", "target"]
    usable = deltas.join(
        usable_strips(material.table(SPECIFICITY)),
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


def chosen_layers(material: Material, rows: pl.DataFrame) -> pl.DataFrame:
    """Layers to draw: all if they are few; else those that pass P or M, and the best one of each other dataset.

    Flags by gate profile say whether the layer passes P.
    """
    best = rows.group_by(LAYER, maintain_order=True).agg(
        best=pl.col("drop").filter("matching").max().fill_null(-float("inf"))
    )
    layers = best.join(passes(material, "predictive"), on=LAYER, how="left", maintain_order="left")
    layers = layers.with_columns(pl.col(PAPER, CALIBRATED).fill_null(value=False))
    if layers.height <= FEW:
        return layers.sort(LAYER)
    specific = passes(material, "mechanism_specific").filter(pl.col(PAPER) | pl.col(CALIBRATED))
    named = layers.join(
        specific.select(*LAYER, specific=pl.lit(value=True)),
        on=LAYER,
        how="left",
        maintain_order="left",
    )
    held = pl.col(PAPER) | pl.col(CALIBRATED) | pl.col("specific").fill_null(value=False)
    order = named.with_columns(held=held).sort(
        ["dataset", "held", "best", "model", "layer"], descending=[False, True, True, False, False]
    )
    place = pl.int_range(pl.len()).over("dataset")
    kept = order.with_columns(place=place).filter(pl.col("held") | (pl.col("place") == 0))
    first = kept.sort(["place", "dataset"]).head(MAX_PANELS)
    return first.drop("held", "place", "specific").sort(LAYER)
