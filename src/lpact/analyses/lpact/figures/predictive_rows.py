"""Rows of level 1 and of response reliability that several figures start from."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from lpact.analyses.lpact.figures.layers import LAYER, SUBJECT_RUN
from lpact.analyses.lpact.figures.wording import MODES, span
from lpact.analyses.lpact.tables.ceilings import NORMALIZED_PREDICTIVE
from lpact.analyses.lpact.tables.predictive import CONTROL_DELTAS
from lpact.report.figure import Material
from lpact.tables import RECORDING_KEY


def primary_deltas(material: Material) -> pl.DataFrame:
    """Level 1 at the primary metric, sorted by key: one row a subject-run, model and layer."""
    metric = material.config.readout.primary_metric
    table = material.table(CONTROL_DELTAS.name)
    return table.filter(pl.col("metric") == metric).sort([*LAYER, *SUBJECT_RUN])


def strictest(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Of the rows of a group that have a reliability, those of the strictest mode; ``mode`` must be a column."""
    order = {mode: place for place, mode in enumerate(MODES)}
    ranked = rows.drop_nulls("reliability").with_columns(
        _rank=pl.col("mode").replace_strict(order, default=len(order), return_dtype=pl.Int64)
    )
    best = pl.col("_rank") == pl.col("_rank").min().over(list(by))
    return ranked.filter(best).drop("_rank")


def response_reliability(material: Material) -> pl.DataFrame:
    """Response reliability of each recording by its strictest valid mode."""
    key = list(RECORDING_KEY)
    if not material.has(NORMALIZED_PREDICTIVE.name):
        kinds = dict.fromkeys([*key, "mode"], pl.String) | {"reliability": pl.Float64}
        return pl.DataFrame(schema=kinds)
    table = material.table(NORMALIZED_PREDICTIVE.name)
    own = table.select([*key, "mode", "reliability"]).unique(maintain_order=True)
    return strictest(own, key).sort(key)


def largest(numbers: pl.Series) -> float:
    """The largest of some numbers, 0 where there is none."""
    return max((float(own) for own in numbers.drop_nulls()), default=0.0)


def n_subject_runs(rows: pl.DataFrame) -> str:
    """How many subject-runs the panels of a dataset rest on (column ``n_all``), in words."""
    counts = [int(n) for n in rows["n_all"]]
    return f"{span(counts)} subject-run{'' if max(counts) == 1 else 's'}"
