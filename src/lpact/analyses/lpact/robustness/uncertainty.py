"""How sure the contrasts are: bootstrap intervals, and means without one subject-run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.lpact.robustness.intervals import Interval, bootstrap_mean
from lpact.analyses.lpact.robustness.quantities import SUBJECT_RUN, Quantity, unit_means
from lpact.analyses.lpact.tables.robustness import (
    CAUSAL_UNCERTAINTY,
    LEAVE_SUBJECT_RUN_OUT,
    UNCERTAINTY,
)
from lpact.codes import Reason
from lpact.math.types import FloatArray
from lpact.store import frame, validate

NOT_APPLICABLE = "not_applicable"


def uncertainty_by_level(
    quantities: Sequence[Quantity], datasets: Sequence[str], *, seed: int, draws: int
) -> pl.DataFrame:
    """Every contrast in every dataset. A contrast over pairs of recordings has rows only where there are pairs."""
    rows = []
    for quantity in quantities:
        own = quantity.unit == SUBJECT_RUN
        for dataset in datasets if own else quantity.rows["dataset"].unique().sort().to_list():
            mine = quantity.of(dataset)
            key = (dataset, quantity.name)
            rows.append(
                {
                    "dataset": dataset,
                    "level": quantity.name,
                    "unit": "subject_run" if own else "source_target_pair",
                    **_summary(mine, quantity.unit, seed=seed, draws=draws, key=key),
                    "best_control": _most_frequent(mine),
                }
            )
    return validate(frame(UNCERTAINTY, rows), UNCERTAINTY)


def uncertainty_by_mechanism(
    quantities: Sequence[Quantity], *, seed: int, draws: int
) -> pl.DataFrame:
    """Drops and margins by dataset and stripped mechanism."""
    rows = []
    for quantity in quantities:
        groups = quantity.rows.group_by("dataset", "stripped", maintain_order=True)
        for (dataset, mechanism), mine in groups:
            key = (str(dataset), str(mechanism), quantity.name)
            rows.append(
                {
                    "dataset": dataset,
                    "mechanism": mechanism,
                    "quantity": quantity.name,
                    **_summary(mine, quantity.unit, seed=seed, draws=draws, key=key),
                }
            )
    return validate(frame(CAUSAL_UNCERTAINTY, rows), CAUSAL_UNCERTAINTY)


def _summary(
    rows: pl.DataFrame, unit: tuple[str, ...], *, seed: int, draws: int, key: tuple[str, ...]
) -> dict[str, Any]:
    _, means = unit_means(rows, unit)
    interval: Interval = bootstrap_mean(means, seed=seed, draws=draws, key=key)
    n_rows = int(rows["value"].count())
    return {
        "n_rows": n_rows,
        "n_rows_missing": rows.height - n_rows,
        "n_units": means.size,
        "mean": interval.mean,
        "ci_low": interval.low,
        "ci_high": interval.high,
        "n_draws": draws,
        "degenerate": interval.degenerate,
        "positive_rate": _positive_rate(means),
        "n_gate_rows": int(rows["passed"].sum()),
        "reason": interval.reason,
    }


def _positive_rate(means: FloatArray) -> float | None:
    return float((means > 0).mean()) if means.size else None


def _most_frequent(rows: pl.DataFrame) -> str:
    """Best control of most rows with a number; ties go to the first in the alphabet."""
    counts = rows.drop_nulls(["value", "best_control"]).group_by("best_control").len("n")
    ranked = counts.sort("n", "best_control", descending=[True, False])
    return str(ranked["best_control"][0]) if ranked.height else NOT_APPLICABLE


def leave_one_subject_run_out(
    quantities: Sequence[Quantity], datasets: Sequence[str]
) -> pl.DataFrame:
    """Means without each subject-run: (n · mean − x_i) / (n − 1), taken over the others one by one."""
    rows = [
        {
            "dataset": dataset,
            "level": quantity.name,
            **_leave_one(*unit_means(quantity.of(dataset), quantity.unit)),
        }
        for quantity in quantities
        if quantity.unit == SUBJECT_RUN
        for dataset in datasets
    ]
    return validate(frame(LEAVE_SUBJECT_RUN_OUT, rows), LEAVE_SUBJECT_RUN_OUT)


def _leave_one(names: Sequence[str], means: FloatArray) -> dict[str, Any]:
    n = means.size
    row: dict[str, Any] = {
        "n_units": n,
        "full_mean": float(means.mean()) if n else None,
        "leave_one_min": None,
        "leave_one_max": None,
        "sign_flip": False,
        "positive_rate": _positive_rate(means),
        "most_influential": "",
        "reason": Reason.SINGLE_AGGREGATION_UNIT if n else Reason.NOTHING_MEASURED,
    }
    if n < 2:
        return row
    full = means.mean()
    without = np.array([np.delete(means, i).mean() for i in range(n)])
    return row | {
        "leave_one_min": float(without.min()),
        "leave_one_max": float(without.max()),
        "sign_flip": bool(((without > 0) != (full > 0)).any()),
        "most_influential": names[int(np.abs(without - full).argmax())],
        "reason": Reason.OK,
    }
