"""Rows of tables by equality of columns: all that the story of a claim asks of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Protocol

import polars as pl

from lpact.store import StoredRun, empty
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


class _Lazy(Mapping[str, pl.DataFrame]):
    """Tables of a run, each read when it is asked for."""

    def __init__(self, run: StoredRun) -> None:
        self._run = run
        self._names = [table.name for table in run.tables()]

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name not in self._names:
            raise KeyError(name)
        return self._run.table(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def rows_of_run(run: StoredRun) -> Rows:
    """Rows from a stored run; a table that it does not have has no rows."""
    return rows_of(_Lazy(run))
