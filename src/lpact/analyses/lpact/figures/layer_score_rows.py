"""Numbers of the figure of scores by layer: every condition's mean over subject-runs, at the primary metric."""

from __future__ import annotations

import numpy as np
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import (
    LAYER,
    SUBJECT_RUN,
    primary_deltas,
    response_reliability,
)
from lpact.analyses.lpact.robustness.intervals import DRAWS, bootstrap_mean
from lpact.analyses.lpact.tables.audit import CONTROL_AVAILABILITY
from lpact.analyses.lpact.tables.predictive import CONTROL_NULLS
from lpact.codes import Reason

REAL, NUISANCE, BOTH = "real features", "nuisance", "nuisance plus model"
BEST, COUNTED, NOT_COUNTED = (
    "strongest counted control",
    "other counted control",
    "not counted by point rules",
)
NO_PAIR = "no_subject_run_with_both"
KINDS = (REAL, NUISANCE, BOTH, BEST, COUNTED, NOT_COUNTED)


def rows_of(material: Material) -> pl.DataFrame:
    """One row a dataset, model, layer and condition.

    ``mean`` runs over the ``n`` subject-runs with a score, of ``n_all``; ``low`` and ``high`` are the bootstrap
    interval over them (real features only, from two subject-runs on); ``delta`` is the mean of real − condition over
    the ``n_both`` subject-runs that have both. ``place`` is where a condition is drawn:

        place = mean of the real features (over its own ``n_real`` subject-runs) − delta

    which is the condition's mean where no subject-run is missing. So the order of the marks is that of the paired
    differences, which the gates use. ``kind`` is one of `KINDS`: the strongest counted control has the smallest
    ``delta``, as the severe-control gate reads it. A condition without a place has a ``reason``.
    """
    deltas = primary_deltas(material)
    own = [_plain(deltas, column, name) for column, name in _COLUMNS.items()]
    rows = pl.concat([*own, _controls(material)], how="diagonal")
    grid = deltas.select(LAYER).unique(maintain_order=True)
    conditions = pl.DataFrame({"condition": sorted(rows["condition"].unique())})
    n_all = deltas.group_by(LAYER, maintain_order=True).agg(n_all=pl.len().cast(pl.Int64))
    key = [*LAYER, "condition"]
    rows = grid.join(conditions, how="cross").join(rows, on=key, how="left", maintain_order="left")
    rows = rows.join(n_all, on=LAYER, how="left", maintain_order="left")
    rows = _with_reasons(_with_places(rows), material)
    strongest = pl.col("delta") == pl.col("delta").filter(pl.col("counted")).min().over(LAYER)
    first = pl.col("condition").filter(strongest & pl.col("counted")).min().over(LAYER)
    kind = (
        pl.when(pl.col("condition").is_in([REAL, NUISANCE, BOTH]))
        .then(pl.col("condition"))
        .when(pl.col("condition") == first)
        .then(pl.lit(BEST))
        .when(pl.col("counted"))
        .then(pl.lit(COUNTED))
        .otherwise(pl.lit(NOT_COUNTED))
    )
    return _with_intervals(rows.with_columns(kind=kind), deltas, material.config.seed).sort(key)


def dots_of(material: Material) -> pl.DataFrame:
    """Held-out score of the real features in every subject-run."""
    rows = primary_deltas(material).drop_nulls("real_score")
    return rows.select(*LAYER, *SUBJECT_RUN, score="real_score")


def ceilings_of(material: Material) -> pl.DataFrame:
    """Mean response reliability of a dataset over recordings, by the strictest valid mode; Pearson only."""
    reliable = response_reliability(material)
    if material.config.readout.primary_metric != "pearson":
        reliable = reliable.clear()
    return reliable.group_by("dataset", maintain_order=True).agg(
        pl.col("reliability").mean(),
        pl.col("mode").unique().sort().alias("modes"),
        n=pl.len().cast(pl.Int64),
    )


_COLUMNS = {"real_score": REAL, "nuisance_score": NUISANCE, "nuisance_plus_model_score": BOTH}


def _plain(deltas: pl.DataFrame, column: str, name: str) -> pl.DataFrame:
    return deltas.group_by(LAYER, maintain_order=True).agg(
        condition=pl.lit(name),
        counted=pl.lit(value=False),
        delta=(pl.col("real_score") - pl.col(column)).mean(),
        n_both=(pl.col("real_score") - pl.col(column)).count().cast(pl.Int64),
        mean=pl.col(column).mean(),
        n=pl.col(column).count().cast(pl.Int64),
    )


def _controls(material: Material) -> pl.DataFrame:
    metric = material.config.readout.primary_metric
    nulls = material.table(CONTROL_NULLS.name).filter(pl.col("metric") == metric)
    usable = (pl.col("reason") == Reason.OK.value) & pl.col("control_score").is_not_null()
    delta = pl.col("delta").filter(usable)
    return (
        nulls.sort([*LAYER, "control", *SUBJECT_RUN])
        .group_by([*LAYER, "control"], maintain_order=True)
        .agg(
            pl.col("counted").any(),
            delta=delta.mean(),
            n_both=delta.count().cast(pl.Int64),
            mean=pl.col("control_score").mean(),
            n=pl.col("control_score").count().cast(pl.Int64),
            why=pl.col("reason").filter(pl.col("reason") != Reason.OK.value).first(),
        )
        .rename({"control": "condition"})
    )


def _with_places(rows: pl.DataFrame) -> pl.DataFrame:
    """Where each condition is drawn beside the real features; its own mean where these have no score."""
    is_real = pl.col("condition") == REAL
    real = pl.col("mean").filter(is_real).first().over(LAYER)
    place = pl.when(is_real | real.is_null()).then("mean").otherwise(real - pl.col("delta"))
    return rows.with_columns(
        place=place,
        n_real=pl.col("n").filter(is_real).first().over(LAYER),
        n_both=pl.col("n_both").fill_null(0),
        delta=pl.when(~is_real).then("delta"),
    )


def _with_reasons(rows: pl.DataFrame, material: Material) -> pl.DataFrame:
    """A reason for every condition without a score: that of its rows, of the audit, or that there is no row."""
    key = [*LAYER, "condition"]
    if material.has(CONTROL_AVAILABILITY.name):
        audit = material.table(CONTROL_AVAILABILITY.name)
        audit = audit.filter(~pl.col("available")).select(
            *LAYER, condition="control", audit_reason="reason"
        )
        rows = rows.join(audit, on=key, how="left", maintain_order="left")
    else:
        rows = rows.with_columns(audit_reason=pl.lit(None, pl.String))
    unpaired = pl.when(pl.col("mean").is_not_null()).then(pl.lit(NO_PAIR))
    why = pl.coalesce("why", "audit_reason", unpaired, pl.lit("not_computed"))
    counted = pl.col("counted").fill_null(
        pl.col("counted").fill_null(value=False).any().over("condition")
    )
    return rows.with_columns(
        counted=counted,
        n=pl.col("n").fill_null(0),
        reason=pl.when(pl.col("place").is_null()).then(why).otherwise(pl.lit(Reason.OK.value)),
    ).drop("why", "audit_reason")


def _with_intervals(rows: pl.DataFrame, deltas: pl.DataFrame, seed: int) -> pl.DataFrame:
    known = deltas.drop_nulls("real_score").group_by(LAYER, maintain_order=True)
    found = []
    for key, own in known:
        if own.height < 2:
            continue  # One number has no spread.
        dataset, model, layer = (str(part) for part in key)
        made = bootstrap_mean(
            own["real_score"].to_numpy().astype(np.float64),
            seed=seed,
            draws=DRAWS,
            key=("layer_scores", dataset, model, layer),
        )
        found.append((*key, REAL, made.low, made.high))
    names = {name: rows.schema[name] for name in (*LAYER, "condition")}
    intervals = pl.DataFrame(
        found, schema={**names, "low": pl.Float64, "high": pl.Float64}, orient="row"
    )
    return rows.join(intervals, on=[*LAYER, "condition"], how="left", maintain_order="left")
