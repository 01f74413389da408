"""Keys of layers, claims and subject-runs; how frames of rows are attached and averaged.

Sums of floats depend on the order of their terms. Every frame is therefore sorted by its key first, and aggregated
eagerly with ``maintain_order``: Polars' lazy ``group_by`` adds in an order that differs from run to run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import polars as pl

from lpact.codes import Reason, RowLabel
from lpact.errors import TableError, require_known
from lpact.store import validate
from lpact.tables import Table

LAYER_KEY = ("dataset", "model", "layer")
"""A claim without its mechanism: all gates but one are evaluated by layer."""
SUBJECT_RUN_KEY = ("subject", "session", "run")

Layer: TypeAlias = tuple[str, str, int]
Claim: TypeAlias = tuple[str, str, int, str]
Row: TypeAlias = dict[str, Any]

OK = pl.col("reason") == Reason.OK.value


def read_measured(tables: Mapping[str, pl.DataFrame], table: Table) -> pl.DataFrame:
    """Return the measured columns of a table, validated and sorted by key; decided columns are dropped."""
    where = "tables given to lpact.analyses.lpact.gates.decide"
    require_known(table.name, tables, "table", where=where, error=TableError)
    decided = [c.name for c in table.columns if c.decided]
    return validate(tables[table.name].drop(decided, strict=False), table.measured())


def most_frequent(frame: pl.DataFrame, by: Sequence[str], column: str) -> pl.DataFrame:
    """Return the most frequent value of ``column`` in each group; ties go to the first in the alphabet.

    Nulls are not counted; a group without any value is absent.
    """
    counts = frame.drop_nulls(column).group_by([*by, column], maintain_order=True).len("_count")
    ranked = counts.sort([*by, "_count", column], descending=[*[False] * len(by), True, False]).select(*by, column)
    return ranked.unique(by, keep="first", maintain_order=True)


def mean_over_subject_runs(frame: pl.DataFrame, by: Sequence[str], columns: Sequence[str]) -> pl.DataFrame:
    """Mean over subject-runs of the mean within each, per group of ``by``; nulls are left out.

    ``n_subject_runs`` counts the subject-runs in which the first of ``columns`` has a value.
    """
    within = frame.group_by([*by, *SUBJECT_RUN_KEY], maintain_order=True).agg(pl.col(columns).mean())
    return within.group_by(by, maintain_order=True).agg(
        pl.col(columns).mean(), pl.col(columns[0]).count().cast(pl.Int64).alias("n_subject_runs")
    )


def attach(left: pl.DataFrame, right: pl.DataFrame, on: Sequence[str]) -> pl.DataFrame:
    """Add the columns of ``right`` to ``left``, whose rows and order stay as they are."""
    return left.join(right, on=on, how="left", maintain_order="left")


def attach_all(left: pl.DataFrame, parts: Sequence[pl.DataFrame], on: Sequence[str]) -> dict[tuple[Any, ...], Row]:
    """Attach several frames; return the rows by key."""
    for part in parts:
        left = attach(left, part, on)
    return rows_by_key(left, on)


def rows_by_key(frame: pl.DataFrame, key: Sequence[str]) -> dict[tuple[Any, ...], Row]:
    """Return the rows of a small frame by key."""
    return {tuple(row[name] for name in key): row for row in frame.iter_rows(named=True)}


def is_label(column: str, code: RowLabel) -> pl.Expr:
    """Whether a column holds a label."""
    return pl.col(column) == code.value


def missing(*columns: str) -> pl.Expr:
    """Whether any of the numbers is missing."""
    return pl.any_horizontal(pl.col(columns).is_null())
