"""Two frames of one table: which rows and cells differ."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from lpact.archive.model import Kind, Problem, change
from lpact.tables import Table

MOST_CELLS = 1000
"""Cells of one column, or rows of one kind, that are named; how many more there are is said."""
_NTH, _OLD, _NEW = "\x00nth", "\x00old", "\x00new"


def frame_problems(
    table: Table, old: pl.DataFrame, new: pl.DataFrame, *, kind: Kind, where: str | None = None
) -> list[Problem]:
    """Everything in which ``new`` differs from ``old``, by key; an empty list where nothing does.

    The frames may be damaged: columns may be missing, of other types, and keys may repeat.
    """
    if old.equals(new) and old.schema == new.schema:
        return []
    place = where or table.name
    problems = list(_columns(old, new, kind, place))
    common = [name for name in old.columns if new.schema.get(name) == old.schema[name]]
    if not set(table.key) <= set(common):
        return problems
    key = list(table.key)
    joined = _numbered(old.select(common), key, _OLD).join(
        _numbered(new.select(common), key, _NEW),
        on=[*key, _NTH],
        how="full",
        coalesce=True,
        nulls_equal=True,
        suffix=_NEW,
    )
    joined = joined.sort([*key, _NTH])
    for missing, what in ((_NEW, "the row is missing"), (_OLD, "the row was added")):
        rows = joined.filter(pl.col(missing).is_null())
        problems += _listed(
            rows.height,
            (Problem(kind, place, what, row=row) for row in _keys(rows, key)),
            Problem(kind, place, f"{what}, in {rows.height - MOST_CELLS} more rows"),
        )
    both = joined.filter(pl.col(_NEW).is_not_null() & pl.col(_OLD).is_not_null())
    for name in (own for own in common if own not in key):
        problems += _cells(both, name, key, kind, place)
    if not problems:
        same = old.select(key).equals(new.select(key))
        what = "a number differs in its sign of zero" if same else "the rows stand in another order"
        problems.append(Problem(kind, place, what))
    return problems


def _numbered(frame: pl.DataFrame, key: list[str], mark: str) -> pl.DataFrame:
    """The frame with the number of each row among those of its key."""
    nth = pl.int_range(pl.len()).over(key).alias(_NTH)
    return frame.with_columns(nth, pl.lit(value=True).alias(mark))


def _columns(old: pl.DataFrame, new: pl.DataFrame, kind: Kind, place: str) -> Iterator[Problem]:
    for name, dtype in old.schema.items():
        found = new.schema.get(name)
        if found is None:
            yield Problem(kind, place, "the column is missing", column=name)
        elif found != dtype:
            what = f"the type went from {dtype} to {found}"
            yield Problem(kind, place, what, column=name, old=str(dtype), new=str(found))
    for name in new.columns:
        if name not in old.schema:
            yield Problem(kind, place, "the column was added", column=name)


def _cells(
    both: pl.DataFrame, name: str, key: list[str], kind: Kind, place: str
) -> Iterator[Problem]:
    changed = both.filter(pl.col(name).ne_missing(pl.col(f"{name}{_NEW}")))
    shown = changed.head(MOST_CELLS)
    pairs = zip(shown[name].to_list(), shown[f"{name}{_NEW}"].to_list(), strict=True)
    found = (
        Problem(kind, place, change(a, b), row=row, column=name, old=a, new=b)
        for row, (a, b) in zip(_keys(shown, key), pairs, strict=True)
    )
    more = f"{changed.height - MOST_CELLS} more cells differ"
    yield from _listed(changed.height, found, Problem(kind, place, more, column=name))


def _keys(rows: pl.DataFrame, key: list[str]) -> Iterator[dict[str, object]]:
    return rows.select(key).head(MOST_CELLS).iter_rows(named=True)


def _listed(n: int, found: Iterator[Problem], more: Problem) -> list[Problem]:
    return [*found, *([more] if n > MOST_CELLS else [])]
