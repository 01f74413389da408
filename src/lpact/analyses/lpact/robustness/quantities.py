"""The contrasts of every level, row by row, with the unit that each row belongs to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from lpact.analyses.lpact.robustness.decided import DecidedRun, Tables
from lpact.analyses.lpact.tables.levels import (
    CONTROL_DELTAS,
    NORMALIZED_SCORES,
    PROFILE_DELTAS,
    SPECIFICITY,
    STRIPPING_DELTAS,
)
from lpact.codes import Reason, RowLabel
from lpact.math.types import FloatArray

PREDICTIVE = "predictive_delta"
RELATIONAL = "relational_delta"
STRIPPING = "stripping_drop"
CEILING = "ceiling_delta"

SUBJECT_RUN = ("subject", "session", "run")
_OK = pl.col("reason") == Reason.OK.value


@dataclass(frozen=True)
class Quantity:
    """Rows of one contrast: ``dataset``, the columns of ``unit``, and

    ``value`` (null where the row has no usable number), ``passed`` (the row rule) and ``best_control`` (or null).
    """

    name: str
    rows: pl.DataFrame
    unit: tuple[str, ...] = SUBJECT_RUN

    def of(self, dataset: str) -> pl.DataFrame:
        """Rows of one dataset."""
        return self.rows.filter(pl.col("dataset") == dataset)


def unit_means(rows: pl.DataFrame, unit: tuple[str, ...]) -> tuple[list[str], FloatArray]:
    """Names ``a/b/c`` and means of the units with a number, in the order of their keys."""
    means = (
        rows.drop_nulls("value")
        .group_by(unit, maintain_order=True)
        .agg(pl.col("value").mean())
        .sort(unit)
    )
    names = ["/".join(str(part) for part in key) for key in means.select(unit).iter_rows()]
    return names, np.asarray(means["value"].to_numpy(), dtype=np.float64)


def level_quantities(run: DecidedRun) -> list[Quantity]:
    """One contrast a level, under the conditions by which the gates use a row.

    Level 1 is the contrast with the best control at the primary metric, level 2 that of rows in the same unit order,
    level 3 the drop over all targets, level 4 the contrast as a share of a reliability that reaches its minimum.
    """
    base = run.base
    same_order = pl.col("model_unit_order_hash") == pl.col("brain_unit_order_hash")
    bounded = pl.col("reliability") >= run.gates.min_reliability
    level1 = base[CONTROL_DELTAS.name].filter(pl.col("metric") == run.primary_metric)
    nobody = pl.lit(None, pl.String)
    return [
        _quantity(PREDICTIVE, level1, "delta_control", _OK, pl.col("best_control")),
        _quantity(
            RELATIONAL,
            base[PROFILE_DELTAS.name],
            "delta_rel",
            _OK & same_order,
            pl.col("best_control"),
        ),
        _quantity(STRIPPING, base[STRIPPING_DELTAS.name], "drop", _OK, nobody),
        _quantity(CEILING, base[NORMALIZED_SCORES.name], "delta_fraction", _OK & bounded, nobody),
    ]


def mechanism_quantities(base: Tables) -> list[Quantity]:
    """Drops and margins of level 3, with the stripped mechanism in the column ``stripped``."""
    specificity = base[SPECIFICITY.name].with_columns(
        gate_pass=pl.col("label") == RowLabel.PASS.value
    )
    nobody = pl.lit(None, pl.String)
    return [
        _quantity("drop", base[STRIPPING_DELTAS.name], "drop", _OK, nobody),
        *(
            _quantity(name, specificity, name, _OK, nobody)
            for name in ("matching_drop", "margin", "mismatch_margin")
        ),
    ]


def _quantity(
    name: str, table: pl.DataFrame, column: str, usable: pl.Expr, best_control: pl.Expr
) -> Quantity:
    kept = [c for c in ("dataset", *SUBJECT_RUN, "stripped") if c in table.columns]
    rows = table.select(
        *kept,
        value=pl.when(usable).then(pl.col(column)),
        passed=pl.col("gate_pass"),
        best_control=best_control,
    )
    return Quantity(name, rows)
