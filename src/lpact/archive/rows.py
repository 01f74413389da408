"""Rows that only one of two runs has: why a claim, or a number behind it, may be missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lpact.store import StoredRun
from lpact.tables import declared_tables


@dataclass(frozen=True)
class RowChange:
    """Rows of a table in two runs, and how many keys only one of them has."""

    table: str
    rows_before: int
    rows_after: int
    only_before: int
    only_after: int


def row_changes(before: StoredRun, after: StoredRun, tables: Iterable[str]) -> list[RowChange]:
    """Of these tables, those whose keys differ; tables that only one run has are left out."""
    names = [{table.name for table in run.tables()} for run in (before, after)]
    found = []
    for name in tables:
        if name not in names[0] or name not in names[1]:
            continue
        key = list(declared_tables()[name].key)
        first, second = before.table(name).select(key), after.table(name).select(key)
        lost = first.join(second, on=key, how="anti", nulls_equal=True).height
        gained = second.join(first, on=key, how="anti", nulls_equal=True).height
        if lost or gained:
            found.append(RowChange(name, first.height, second.height, lost, gained))
    return found
