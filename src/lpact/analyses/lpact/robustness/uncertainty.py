"""How certain the contrasts are: bootstrap intervals over aggregation units, and means without one subject-run.

Rows within a unit are not independent, so only units are resampled (`lpact.stats.bootstrap_interval`). With one unit
every resample is that unit: the interval is a point and says nothing about precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from lpact.analyses.lpact.gates.keys import SUBJECT_RUN_KEY, most_frequent
from lpact.analyses.lpact.robustness.decide_again import DecidedRun, Tables
from lpact.analyses.lpact.tables import levels
from lpact.analyses.lpact.tables import robustness as results
from lpact.analyses.lpact.tables.assay import BRAIN_AS_MODEL
from lpact.codes import Reason, RowLabel
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.stats import bootstrap_interval
from lpact.store import empty, frame, validate

LEVEL = 0.95
DRAWS = 2000
_PAIR = ("source", "target")
_SUMMARY = ("dataset", "comparison", "alignment", "profile")
_OK = pl.col("reason") == Reason.OK.value


class Interval(NamedTuple):
    """Mean over units with its interval; None without units."""

    mean: float | None
    low: float | None
    high: float | None
    reason: Reason


def bootstrap_mean(units: FloatArray, *, seed: int, key: tuple[str, ...], draws: int = DRAWS) -> Interval:
    """Expanded percentile interval of the mean over ``units`` [n]; draws depend on ``seed`` and ``key`` alone."""
    if not units.size:
        return Interval(None, None, None, Reason.NOTHING_MEASURED)
    mean = float(units.mean())
    if units.size == 1:
        return Interval(mean, mean, mean, Reason.SINGLE_AGGREGATION_UNIT)
    rng = keyed_rng(seed, "robustness", "bootstrap", *key)
    low, high = bootstrap_interval(units, rng, n_draws=draws, confidence=LEVEL)
    return Interval(mean, low, high, Reason.OK)


class Quantity(NamedTuple):
    """Rows of one contrast: dataset, unit, ``value`` (null if unusable), ``passed`` (row rule) and ``best_control``."""

    name: str
    rows: pl.DataFrame
    unit: tuple[str, ...] = SUBJECT_RUN_KEY


def level_quantities(run: DecidedRun) -> list[Quantity]:
    """One contrast per level, under the conditions by which the gates use a row."""
    base = run.base
    same_order = pl.col("model_unit_order_hash") == pl.col("brain_unit_order_hash")
    bounded = pl.col("reliability") >= run.gates.min_reliability
    level1 = base[levels.CONTROL_DELTAS.name].filter(metric=run.primary_metric)
    return [
        _quantity("predictive_delta", level1, "delta_control"),
        _quantity("relational_delta", base[levels.PROFILE_DELTAS.name], "delta_rel", same_order),
        _quantity("stripping_drop", base[levels.STRIPPING_DELTAS.name], "drop"),
        _quantity("ceiling_delta", base[levels.NORMALIZED_SCORES.name], "delta_fraction", bounded),
    ]


def mechanism_quantities(base: Tables) -> list[Quantity]:
    """Drops and margins of level 3, with the stripped mechanism in the column ``stripped``."""
    specificity = base[levels.SPECIFICITY.name].with_columns(gate_pass=pl.col("label") == RowLabel.PASS.value)
    margins = ("matching_drop", "margin", "mismatch_margin")
    drops = _quantity("drop", base[levels.STRIPPING_DELTAS.name], "drop")
    return [drops, *(_quantity(name, specificity, name) for name in margins)]


def _quantity(name: str, table: pl.DataFrame, column: str, usable: pl.Expr | None = None) -> Quantity:
    kept = [c for c in ("dataset", *SUBJECT_RUN_KEY, "stripped") if c in table.columns]
    known = "best_control" in table.columns
    rows = table.select(
        *kept,
        value=pl.when(_OK if usable is None else _OK & usable).then(pl.col(column)),
        passed=pl.col("gate_pass"),
        best_control=pl.col("best_control") if known else pl.lit(None, pl.String),
    )
    return Quantity(name, rows)


def _brain_as_model(tables: Tables) -> pl.DataFrame:
    """Rows of the positive control that puts a brain in a model's place; none if the run did not make it."""
    rows = tables.get(BRAIN_AS_MODEL.name, empty(BRAIN_AS_MODEL))
    return rows.sort(BRAIN_AS_MODEL.key).with_columns(value=pl.when(_OK).then("delta"))


def brain_as_model_quantities(tables: Tables) -> list[Quantity]:
    """The contrast with shuffled unit orders, one for each kind of pair; pairs are the aggregation units."""
    columns = ["dataset", *_PAIR, "value", "passed", "best_control"]
    rows = _brain_as_model(tables).with_columns(passed="gate_pass", best_control=pl.lit(None, pl.String))
    return [
        Quantity(f"brain_as_model_{comparison}", own.select(columns), _PAIR)
        for (comparison,), own in rows.group_by(["comparison"], maintain_order=True)
    ]


def brain_as_model_passing(tables: Tables, fraction: float) -> tuple[int, int] | None:
    """Summaries with a positive mean contrast whose share of passing rows reaches ``fraction``, and all of them.

    Means are over the units of a pair first, then over pairs. None: no pairs.
    """
    rows = _brain_as_model(tables)
    if rows.is_empty():
        return None
    known = rows.drop_nulls("value")
    shares = known.group_by(_SUMMARY, maintain_order=True).agg(share=pl.col("gate_pass").mean())
    pairs = known.group_by(*_SUMMARY, *_PAIR, maintain_order=True).agg(pl.col("value").mean())
    means = pairs.group_by(_SUMMARY, maintain_order=True).agg(pl.col("value").mean())
    both = shares.join(means, on=_SUMMARY)
    passes = both.filter((pl.col("share") >= fraction) & (pl.col("value") > 0))
    return passes.height, both.height


def _unit_means(rows: pl.DataFrame, unit: tuple[str, ...]) -> tuple[list[str], FloatArray]:
    """Names ``a/b/c`` and means of the units with a number, in the order of their keys."""
    known = rows.drop_nulls("value").group_by(unit, maintain_order=True)
    means = known.agg(pl.col("value").mean()).sort(unit)
    names = ["/".join(map(str, key)) for key in means.select(unit).iter_rows()]
    return names, np.asarray(means["value"].to_numpy(), dtype=np.float64)


def uncertainty_by_level(quantities: Sequence[Quantity], datasets: Sequence[str], *, seed: int) -> pl.DataFrame:
    """Every contrast in every dataset. A contrast over pairs of recordings has rows only if there are pairs."""
    rows = []
    for quantity in quantities:
        own = quantity.unit == SUBJECT_RUN_KEY
        for dataset in datasets if own else quantity.rows["dataset"].unique().sort().to_list():
            mine = quantity.rows.filter(dataset=dataset)
            rows.append(
                {
                    "dataset": dataset,
                    "level": quantity.name,
                    "unit": "subject_run" if own else "source_target_pair",
                    **_summary(mine, quantity.unit, seed, (dataset, quantity.name)),
                    "best_control": _most_frequent(mine),
                }
            )
    return validate(frame(results.UNCERTAINTY, rows), results.UNCERTAINTY)


def uncertainty_by_mechanism(quantities: Sequence[Quantity], *, seed: int) -> pl.DataFrame:
    """Drops and margins by dataset and stripped mechanism."""
    rows = [
        {
            "dataset": dataset,
            "mechanism": mechanism,
            "quantity": quantity.name,
            **_summary(mine, quantity.unit, seed, (str(dataset), str(mechanism), quantity.name)),
        }
        for quantity in quantities
        for (dataset, mechanism), mine in quantity.rows.group_by("dataset", "stripped", maintain_order=True)
    ]
    return validate(frame(results.CAUSAL_UNCERTAINTY, rows), results.CAUSAL_UNCERTAINTY)


def _summary(rows: pl.DataFrame, unit: tuple[str, ...], seed: int, key: tuple[str, ...]) -> dict[str, Any]:
    _, means = _unit_means(rows, unit)
    interval = bootstrap_mean(means, seed=seed, key=key)
    n_rows = int(rows["value"].count())
    return {
        "n_rows": n_rows,
        "n_rows_missing": rows.height - n_rows,
        "n_units": means.size,
        "mean": interval.mean,
        "ci_low": interval.low,
        "ci_high": interval.high,
        "n_draws": DRAWS,
        "degenerate": interval.reason is Reason.SINGLE_AGGREGATION_UNIT,
        "positive_rate": float((means > 0).mean()) if means.size else None,
        "n_gate_rows": int(rows["passed"].sum()),
        "reason": interval.reason,
    }


def _most_frequent(rows: pl.DataFrame) -> str:
    """Best control of most rows with a number; of ties, the first in alphabetical order."""
    found = most_frequent(rows.drop_nulls("value"), ["dataset"], "best_control")
    return str(found["best_control"][0]) if found.height else "not_applicable"


def leave_one_subject_run_out(quantities: Sequence[Quantity], datasets: Sequence[str]) -> pl.DataFrame:
    """Means without each subject-run: (n · mean − x_i) / (n − 1), taken over the others one by one."""
    rows = [
        {
            "dataset": dataset,
            "level": quantity.name,
            **_leave_one(*_unit_means(quantity.rows.filter(dataset=dataset), quantity.unit)),
        }
        for quantity in quantities
        if quantity.unit == SUBJECT_RUN_KEY
        for dataset in datasets
    ]
    return validate(frame(results.LEAVE_SUBJECT_RUN_OUT, rows), results.LEAVE_SUBJECT_RUN_OUT)


def _leave_one(names: Sequence[str], means: FloatArray) -> dict[str, Any]:
    n = means.size
    full = float(means.mean()) if n else float("nan")
    without = np.array([np.delete(means, i).mean() for i in range(n)]) if n > 1 else np.empty(0)
    reason = Reason.SINGLE_AGGREGATION_UNIT if n else Reason.NOTHING_MEASURED
    return {
        "n_units": n,
        "full_mean": full if n else None,
        "leave_one_min": float(without.min()) if n > 1 else None,
        "leave_one_max": float(without.max()) if n > 1 else None,
        "sign_flip": bool(((without > 0) != (full > 0)).any()),
        "positive_rate": float((means > 0).mean()) if n else None,
        "most_influential": names[int(np.abs(without - full).argmax())] if n > 1 else "",
        "reason": Reason.OK if n > 1 else reason,
    }
