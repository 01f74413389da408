"""Contrasts with their intervals, as rows of the figure of uncertainty."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import SUBJECT_RUN, mechanism_order
from lpact.analyses.lpact.tables.causal import SPECIFICITY
from lpact.analyses.lpact.tables.robustness import (
    CAUSAL_UNCERTAINTY,
    LEAVE_SUBJECT_RUN_OUT,
    UNCERTAINTY,
)
from lpact.codes import Reason
from lpact.report.figure import with_marks
from lpact.report.wording import counted

FEWEST = 5
"""Units that an interval needs: bootstrap intervals over fewer hold far less often than they say."""

LEVELS: dict[str, tuple[str, str]] = {
    "predictive_delta": ("Level 1, predictive", "real − best control, held-out {metric}"),
    "relational_delta": ("Level 2, relational", "real − best control, profile similarity"),
    "stripping_drop": ("Level 3, stripping, any target", "drop in held-out {metric}, all targets"),
    "ceiling_delta": ("Level 4, ceiling", "real − best control, fraction of the ceiling"),
}
"""Title and axis of each level's panel, in the order of the chain."""

_BRAIN = "brain_as_model_"
_BRAIN_AXIS = "real − shuffled units, profile similarity"

QUANTITIES: dict[str, str] = {
    "matching_drop": "drop of the matching target",
    "margin": "its margin over other targets",
    "mismatch_margin": "its margin over mismatch controls",
}
"""Quantities of level 3 that are drawn by mechanism; row rules ask all three to be positive."""

_LEFT_OUT: dict[str, type[pl.DataType]] = {
    "dataset": pl.String,
    "level": pl.String,
    "leave_one_min": pl.Float64,
    "leave_one_max": pl.Float64,
    "sign_flip": pl.Boolean,
    "most_influential": pl.String,
}
_UNITS = {"subject_run": "subject-runs", "source_target_pair": "pairs of recordings"}


def is_brain(level: str) -> bool:
    """Whether a level has brains in the model's place."""
    return level.startswith(_BRAIN)


def level_words(level: str, metric: str) -> tuple[str, str]:
    """Title and axis of a level's panel."""
    if is_brain(level):
        return f"Brain as model, {level.removeprefix(_BRAIN).replace('_', ' ')}", _BRAIN_AXIS
    title, axis = LEVELS.get(level, (level.replace("_", " "), "contrast"))
    return title, axis.format(metric=metric)


def level_rows(material: Material) -> pl.DataFrame:
    """A row a level and dataset, levels in the order of the chain.

    A pair that the table has no row for is there without numbers, so that every panel has the same lanes.
    """
    table = material.table(UNCERTAINTY.name)
    left_out = [*_LEFT_OUT]
    if material.has(LEAVE_SUBJECT_RUN_OUT.name):
        one_out = material.table(LEAVE_SUBJECT_RUN_OUT.name).select(left_out)
    else:
        one_out = pl.DataFrame(schema=_LEFT_OUT)
    levels = sorted(set(table["level"]), key=_place)
    grid = pl.DataFrame({"level": levels, "place": range(len(levels))}).join(
        table.select("dataset").unique(), how="cross"
    )
    rows = grid.join(table, on=["dataset", "level"], how="left").join(
        one_out, on=["dataset", "level"], how="left"
    )
    rows = rows.with_columns(
        pl.col("degenerate", "sign_flip").fill_null(value=False), **_range_of_units()
    ).sort("place", "dataset")
    return with_marks(rows, _level_text, value="mean")


def _range_of_units() -> dict[str, pl.Expr]:
    """Ends of the n units, from the mean and the means without one: x_i = n · mean − (n − 1) · mean_{−i}."""
    n = pl.col("n_units")
    return {
        name: n * pl.col("mean") - (n - 1) * pl.col(f"leave_one_{end}")
        for name, end in (("unit_min", "max"), ("unit_max", "min"))
    }


def _place(level: str) -> tuple[int, str]:
    known = list(LEVELS)
    return (known.index(level) if level in LEVELS else len(known), level)


def mechanism_rows(material: Material) -> pl.DataFrame:
    """A row a dataset, stripped mechanism and drawn quantity; none where the table is missing."""
    if not material.has(CAUSAL_UNCERTAINTY.name):
        return pl.DataFrame()
    place = {name: i for i, name in enumerate(QUANTITIES)}
    rows = (
        material.table(CAUSAL_UNCERTAINTY.name)
        .filter(pl.col("quantity").is_in(list(QUANTITIES)))
        .with_columns(
            quantity_name=pl.col("quantity").replace_strict(QUANTITIES, return_dtype=pl.String),
            place=pl.col("quantity").replace_strict(place, return_dtype=pl.Int64),
        )
    )
    rows = rows.join(
        _mechanism_ranges(material), on=["dataset", "mechanism", "quantity"], how="left"
    )
    order = mechanism_order(material, rows["mechanism"])
    at = {name: i for i, name in enumerate(order)}
    turn = pl.col("mechanism").replace_strict(at, return_dtype=pl.Int64)
    rows = rows.sort("dataset", turn, "place")
    return with_marks(rows, _mechanism_text, value="mean")


def _mechanism_ranges(material: Material) -> pl.DataFrame:
    """Smallest and largest mean of a subject-run, one row a dataset, mechanism and quantity."""
    key = ["dataset", "mechanism", "quantity"]
    if not material.has(SPECIFICITY.name):
        kinds = dict.fromkeys(key, pl.String)
        return pl.DataFrame(schema={**kinds, "unit_min": pl.Float64, "unit_max": pl.Float64})
    units = (
        material.table(SPECIFICITY.name)
        .filter(pl.col("reason") == Reason.OK.value)
        .rename({"stripped": "mechanism"})
        .group_by("dataset", "mechanism", *SUBJECT_RUN)
        .agg(pl.col(*QUANTITIES).mean())
        .unpivot(list(QUANTITIES), index=key[:2], variable_name="quantity")
    )
    return units.group_by(key).agg(unit_min=pl.col("value").min(), unit_max=pl.col("value").max())


def has_interval(row: dict[str, Any]) -> bool:
    """Whether there is an interval to draw: a mean over enough units."""
    return row["mean"] is not None and row["ci_low"] is not None and row["n_units"] >= FEWEST


def has_range(row: dict[str, Any]) -> bool:
    """Whether the range of the units is drawn in an interval's place: a few units, and more than one."""
    few = row["mean"] is not None and 1 < row["n_units"] < FEWEST
    return few and row["unit_min"] is not None


def _numbers(row: dict[str, Any], unit: str) -> str:
    if row["mean"] is None:
        why = f" ({row['reason'].replace('_', ' ')})" if row["reason"] else ""
        return f"not measured{why}"
    told = f"{row['mean']:.4f}"
    if has_interval(row):
        told += f", 95 % interval {row['ci_low']:.4f} to {row['ci_high']:.4f}"
    elif row["n_units"] == 1:
        told += ", one unit only, so no interval"
    else:
        told += f", {counted(row['n_units'], 'unit')}, too few for an interval"
    if has_range(row):
        told += f", from {row['unit_min']:.4f} to {row['unit_max']:.4f}"
    share = "" if row["positive_rate"] is None else f"; positive in {row['positive_rate']:.0%}"
    missing = f"; {row['n_rows_missing']:,} rows without a number" if row["n_rows_missing"] else ""
    return f"{told}; n = {row['n_units']} {unit}{share}{missing}"


def _level_text(row: dict[str, Any]) -> str:
    unit = _UNITS.get(row["unit"] or "", "units")
    told = f"{row['dataset']}, {row['level'].replace('_', ' ')}: {_numbers(row, unit)}"
    if is_brain(row["level"]) and has_interval(row):
        told += "; pairs share recordings, so that this interval is too narrow"
    if row["leave_one_min"] is not None:
        flip = ", the sign flips" if row["sign_flip"] else ""
        told += (
            f"; without one subject-run {row['leave_one_min']:.4f} to {row['leave_one_max']:.4f}{flip} "
            f"(most by {row['most_influential']})"
        )
    return f"{told}."


def _mechanism_text(row: dict[str, Any]) -> str:
    return f"{row['dataset']}, {row['mechanism']} stripped, {row['quantity_name']}: {_numbers(row, 'subject-runs')}."
