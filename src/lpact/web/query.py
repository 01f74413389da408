"""Queries on tables: conditions, search, order and page, as SQL with parameters.

Text of a request only ever becomes a parameter. Names in statements are those of declared columns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from lpact.tables import Column, Table
from lpact.web.database import Database
from lpact.web.runs import TableFile

MOST_VALUES = 2_000
"""Distinct values of a column up to which they are listed."""
LIST_HEAD = 4
"""First values of a list that a page shows."""

RUN = "run_slug"
"""Column and address parameter for a run of the explorer; tables may have a column ``run`` of their own."""

OPERATORS = {
    "is": "is",
    "not": "is not",
    "has": "contains",
    "ge": "at least",
    "le": "at most",
    "null": "is missing",
    "some": "is not missing",
}
"""Relations of a condition: their code in addresses, and in words."""
_COMPARE = {"is": "=", "not": "IS DISTINCT FROM", "ge": ">=", "le": "<="}


@dataclass(frozen=True)
class Source:
    """Rows to query: one table of one run, or the same table of several runs with the column `RUN` before it."""

    table: Table
    files: tuple[TableFile, ...]
    runs: tuple[str, ...] = ()

    @property
    def key(self) -> Hashable:
        """What answers may be kept for: the files as they are now."""
        return self.table.name, self.runs, tuple((f.path, f.fingerprint) for f in self.files)

    @property
    def position(self) -> str:
        """Column that holds a row's place in the file; a source of several runs has none."""
        return "" if self.runs else "file_row_number"

    def sql(self, given: _Parameters) -> str:
        """The rows as something to select from."""
        if not self.runs:
            return _scan(given, self.files[0], ", file_row_number = true")
        columns = ", ".join(quoted(c) for c in self.table.columns if c.name != RUN)
        parts = [
            _select(f'{given.add(run)}::VARCHAR AS "{RUN}", {columns}', _scan(given, file))
            for run, file in zip(self.runs, self.files, strict=True)
        ]
        return f"({' UNION ALL '.join(parts)})"


@dataclass(frozen=True)
class Condition:
    """One column compared with one value of its own type."""

    column: Column
    operator: str
    value: str | int | float | bool | None = None


@dataclass(frozen=True)
class Query:
    """Which rows of a source, in which order; without ``sort`` the order of the key."""

    source: Source
    conditions: tuple[Condition, ...] = ()
    search: str = ""
    sort: Column | None = None
    descending: bool = False

    @property
    def filter_key(self) -> Hashable:
        """What the number of rows depends on."""
        return self.source.key, self.conditions, self.search.lower()


class _Parameters:
    """Values of a statement, by made names."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def add(self, value: object) -> str:
        name = f"p{len(self.values)}"
        self.values[name] = value
        return f"${name}"


def quoted(column: Column) -> str:
    """A declared column in a statement."""
    return f'"{column.name}"'


def is_list(column: Column) -> bool:
    """Whether a column holds lists."""
    return column.dtype.startswith("list")


def count(database: Database, query: Query) -> int:
    """How many rows there are; counted once for every filter."""

    def look() -> int:
        given = _Parameters()
        source = query.source.sql(given)
        sql = _select("count(*)", source, _where(query, given))
        return int(database.rows(sql, given.values)[0][0])

    return database.answers.get(("count", query.filter_key), look)


def value_counts(database: Database, query: Query, column: Column) -> dict[Any, int]:
    """How many rows every value of a column has."""

    def look() -> dict[Any, int]:
        given = _Parameters()
        source = query.source.sql(given)
        where = _where(query, given)
        sql = _select(f"{quoted(column)}, count(*)", source, where, "GROUP BY 1 ORDER BY 1")
        return dict(database.rows(sql, given.values))

    return database.answers.get(("value_counts", query.filter_key, column.name), look)


def values(database: Database, source: Source, column: Column) -> list[Any] | None:
    """Distinct values of a column, sorted; None where they are more than `MOST_VALUES`."""

    def look() -> list[Any] | None:
        given = _Parameters()
        name = quoted(column)
        there = f"WHERE {name} IS NOT NULL"
        sql = _select(f"DISTINCT {name}", source.sql(given), there, f"LIMIT {MOST_VALUES + 1}")
        found = sorted(row[0] for row in database.rows(sql, given.values))
        return found if len(found) <= MOST_VALUES else None

    return database.answers.get(("values", source.key, column.name), look)


def page(database: Database, query: Query, offset: int, limit: int) -> list[dict[str, Any]]:
    """One page of rows by column name; a list is cut to its head, with its length as ``(head, length)``."""
    columns = query.source.table.columns
    shown = ", ".join(_shortened(column) for column in columns)
    part = f"LIMIT {limit:d} OFFSET {offset:d}"
    given = _Parameters()
    source = query.source.sql(given)
    where = _where(query, given)
    if query.source.position and query.sort is not None:
        # Sorting places alone is quicker than sorting whole rows.
        position = query.source.position
        sql = _select(position, source, where, _order(query), part)
        places = [row[0] for row in database.rows(sql, given.values)]
        given = _Parameters()
        source = query.source.sql(given)
        where = f"WHERE {position} IN {given.add(places)}"
        found = database.rows(_select(f"{position}, {shown}", source, where), given.values)
        by_place = {row[0]: row[1:] for row in found}
        found = [by_place[place] for place in places]
    else:
        found = database.rows(_select(shown, source, where, _order(query), part), given.values)
    return [_named(columns, row) for row in found]


def head(database: Database, file: TableFile) -> pl.DataFrame:
    """The declared columns of a file without rows; an error where one is missing."""
    given = _Parameters()
    shown = ", ".join(quoted(column) for column in file.table.columns)
    return database.frame(_select(shown, _scan(given, file), "LIMIT 0"), given.values)


def select(query: Query) -> tuple[str, dict[str, Any]]:
    """All rows of a query, whole, as a statement with its parameters."""
    given = _Parameters()
    source = query.source.sql(given)
    shown = ", ".join(quoted(column) for column in query.source.table.columns)
    where = _where(query, given)
    return _select(shown, source, where, _order(query)), given.values


def with_condition(query: Query, column: Column, value: Any) -> Query:
    """The query with one more column that must have one value."""
    return replace(query, conditions=(*query.conditions, Condition(column, "is", value)))


def _select(shown: str, source: str, *rest: str) -> str:
    """A statement of parts that hold fixed text, declared names and names of parameters."""
    return " ".join(part for part in ("SELECT", shown, "FROM", source, *rest) if part)


def _scan(given: _Parameters, file: TableFile, options: str = "") -> str:
    return f"read_parquet({given.add(str(file.path))}, hive_partitioning = false{options})"


def _shortened(column: Column) -> str:
    name = quoted(column)
    return f"{name}[1:{LIST_HEAD}], len({name})" if is_list(column) else name


def _named(columns: Sequence[Column], row: Sequence[Any]) -> dict[str, Any]:
    cells: Iterator[Any] = iter(row)
    made: dict[str, Any] = {}
    for column in columns:
        cell = next(cells)
        made[column.name] = (cell, next(cells)) if is_list(column) else cell
    return made


def _order(query: Query) -> str:
    """Ties and rows without an own order follow run and key, or the place in the file."""
    parts = []
    if query.sort is not None:
        way = "DESC" if query.descending else "ASC"
        parts.append(f"{quoted(query.sort)} {way} NULLS LAST")
    if query.source.position:
        parts += [query.source.position] if parts else []
    else:
        parts += [f'"{RUN}"', *(f'"{name}"' for name in query.source.table.key)]
    return f"ORDER BY {', '.join(parts)}" if parts else ""


def _where(query: Query, given: _Parameters) -> str:
    parts = [_condition(condition, given) for condition in query.conditions]
    if query.search:
        parts.append(_search(query, given))
    return f"WHERE {' AND '.join(parts)}" if parts else ""


def _condition(condition: Condition, given: _Parameters) -> str:
    name = quoted(condition.column)
    if condition.operator == "null":
        return f"{name} IS NULL"
    if condition.operator == "some":
        return f"{name} IS NOT NULL"
    value = given.add(condition.value)
    if condition.operator == "has":
        return f"contains(lower({name}), lower({value}))"
    return f"{name} {_COMPARE[condition.operator]} {value}"


def _search(query: Query, given: _Parameters) -> str:
    """Rows with the text in any text column, whatever its case."""
    wanted = given.add(query.search.lower())
    names = [quoted(column) for column in query.source.table.columns if column.dtype == "str"]
    return f"({' OR '.join(f'contains(lower({name}), {wanted})' for name in names) or 'false'})"
