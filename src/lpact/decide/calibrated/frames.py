"""Measured tables of the calibrated tests, split by layer once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from lpact.decide._frames import LAYER_KEY, SUBJECT_RUN_KEY, Layer
from lpact.math.randomization import one_sample_p_value, sign_flip_p_value
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

    ``real`` holds the score, ``draws`` the scores of every draw of each surrogate control (NaN where undefined),
    ``blocks`` the scores in every outer block of each condition, ``stimulus`` what was presented.
    """

    real: dict[SubjectRun, float] = field(default_factory=dict)
    stimulus: dict[SubjectRun, str] = field(default_factory=dict)
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
        by_number = np.full(int(rows["draw"].max()) + 1, np.nan)  # type: ignore[arg-type]
        by_number[rows["draw"].to_numpy()] = rows["score_median"].to_numpy()
        level.draws.setdefault(str(condition), {})[run] = by_number
    for row in blocks.filter(pl.col("condition").is_in(list(known))).iter_rows(named=True):
        level.blocks.setdefault(row["condition"], {})[subject_run(row)] = numbers(row["scores"])
        level.stimulus[subject_run(row)] = row["stimulus"]
    return level


def mean_over_runs(by_run: Mapping[SubjectRun, FloatArray]) -> FloatArray:
    """Mean over subject-runs, draw by draw, over the draws that all of them have."""
    n_draws = min((len(values) for values in by_run.values()), default=0)
    stacked = np.stack([by_run[run][:n_draws] for run in sorted(by_run)])
    mean: FloatArray = stacked.mean(axis=0)
    return mean


def typical(stacked: Sequence[FloatArray]) -> FloatArray:
    """Median over the first axis, entry by entry, of what is finite; NaN where nothing is."""
    length = min(len(values) for values in stacked)
    table = np.stack([values[:length] for values in stacked])
    finite = np.isfinite(table)
    if finite.all():
        return np.asarray(np.median(table, axis=0))
    columns = zip(table.T, finite.T, strict=True)
    return np.array([np.median(column[ok]) if ok.any() else np.nan for column, ok in columns])


def block_p_value(
    contrasts: Mapping[SubjectRun, FloatArray],
    stimulus: Mapping[SubjectRun, str],
    rng: np.random.Generator,
) -> float:
    """P-value of a mean contrast above 0, from its values in the outer blocks of every subject-run.

    The larger of two: signs of all blocks flipped one by one, and Student's t over the blocks of the stimuli after
    averaging over the subject-runs that share them. People who hear the same story share what is easy or hard about
    its parts, so that their blocks are not independent; the parts are.
    """
    values = [contrasts[run] for run in sorted(contrasts)]
    if not values:
        return 1.0
    by_stimulus: dict[str, list[FloatArray]] = {}
    for run in sorted(contrasts):
        by_stimulus.setdefault(stimulus[run], []).append(contrasts[run])
    means = np.concatenate([_mean_of_finite(parts) for parts in by_stimulus.values()])
    flipped = sign_flip_p_value(np.concatenate(values), rng)
    return max(flipped, one_sample_p_value(means))


def _mean_of_finite(parts: Sequence[FloatArray]) -> FloatArray:
    length = min(len(values) for values in parts)
    table = np.stack([values[:length] for values in parts])
    finite = np.isfinite(table)
    total = np.where(finite, table, 0.0).sum(axis=0)
    count = finite.sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
