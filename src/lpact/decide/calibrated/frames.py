"""Measured tables of the calibrated tests, split by layer once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from lpact.decide._frames import LAYER_KEY, SUBJECT_RUN_KEY, Layer
from lpact.math.types import FloatArray

SubjectRun = tuple[str, str, str]


def by_layer(frame: pl.DataFrame) -> dict[Layer, pl.DataFrame]:
    """Rows of every layer, in the order they have."""
    parts = frame.partition_by(LAYER_KEY, as_dict=True, maintain_order=True)
    return {_layer(key): part for key, part in parts.items()}


def _layer(key: tuple[Any, ...]) -> Layer:
    dataset, model, layer = key
    return str(dataset), str(model), int(layer)


def numbers(values: Sequence[float | None]) -> FloatArray:
    """A list cell as an array, NaN for null."""
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def subject_run(row: Mapping[str, Any]) -> SubjectRun:
    """Subject, session and run of a row."""
    subject, session, run = (str(row[name]) for name in SUBJECT_RUN_KEY)
    return subject, session, run


@dataclass
class Level1:
    """Level 1 of one layer at the primary metric, by subject-run.

    ``real`` holds the score, ``draws`` the scores of every draw of each surrogate control, ``blocks`` the scores in
    every outer block of each condition.
    """

    real: dict[SubjectRun, float] = field(default_factory=dict)
    draws: dict[str, dict[SubjectRun, FloatArray]] = field(default_factory=dict)
    blocks: dict[str, dict[SubjectRun, FloatArray]] = field(default_factory=dict)


def read_level1(
    scores: pl.DataFrame | None,
    blocks: pl.DataFrame | None,
    nulls: pl.DataFrame | None,
    metric: str,
) -> Level1:
    """Gather one layer's level 1; a control without a row in ``nulls`` (the control nulls) is left out."""
    level = Level1()
    if scores is None or blocks is None or nulls is None:
        return level
    of_metric = nulls.filter(pl.col("metric") == metric)
    surrogates = set(of_metric.filter("surrogate")["control"])
    known = {*of_metric["control"], "real", "nuisance"}
    kept = scores.filter(pl.col("metric") == metric).drop_nulls("score_median").sort("draw")
    for row in kept.filter(pl.col("condition") == "real").iter_rows(named=True):
        level.real[subject_run(row)] = row["score_median"]
    surrogate_rows = kept.filter(pl.col("condition").is_in(list(surrogates)))
    for (condition, *place), rows in surrogate_rows.group_by(
        "condition", *SUBJECT_RUN_KEY, maintain_order=True
    ):
        run = subject_run(dict(zip(SUBJECT_RUN_KEY, place, strict=True)))
        level.draws.setdefault(str(condition), {})[run] = rows["score_median"].to_numpy()
    for row in blocks.filter(pl.col("condition").is_in(list(known))).iter_rows(named=True):
        level.blocks.setdefault(row["condition"], {})[subject_run(row)] = numbers(row["scores"])
    return level


def mean_over_runs(by_run: Mapping[SubjectRun, FloatArray]) -> FloatArray:
    """Mean over subject-runs, draw by draw, over the draws that all of them have."""
    n_draws = min((len(values) for values in by_run.values()), default=0)
    stacked = np.stack([by_run[run][:n_draws] for run in sorted(by_run)])
    mean: FloatArray = stacked.mean(axis=0)
    return mean
