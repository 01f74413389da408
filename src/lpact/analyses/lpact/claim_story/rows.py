"""Rows of tables by equality of columns: all that the story of a claim asks of a run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol

import polars as pl

from lpact.store import RunTables, StoredRun, empty
from lpact.tables import find_table

_KEPT = 256
"""Answers that are kept: claims of one layer ask for the same rows."""


class Rows(Protocol):
    """``rows(table_name, column=value, …)`` gives the rows whose columns have these values, in any order."""

    def __call__(self, table: str, /, **equals: str | int) -> pl.DataFrame:
        """Return the rows of a table, named in full (``folder/name``)."""
        ...


def rows_of(tables: Mapping[str, pl.DataFrame]) -> Rows:
    """Rows from frames by full table name; a table that is not among them has no rows."""

    @lru_cache(maxsize=_KEPT)
    def selected(table: str, equals: tuple[tuple[str, str | int], ...]) -> pl.DataFrame:
        frame = tables.get(table)
        if frame is None:
            return empty(find_table(table))
        return frame.filter([pl.col(name) == value for name, value in equals])

    def rows(table: str, /, **equals: str | int) -> pl.DataFrame:
        return selected(table, tuple(sorted(equals.items())))

    return rows


def rows_of_run(run: StoredRun) -> Rows:
    """Rows from a stored run; a table that it does not have has no rows."""
    return rows_of(RunTables(run))
