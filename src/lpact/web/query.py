"""Queries on tables: conditions, search, order and page, as SQL with parameters for DuckDB, which is locked.

Text of a request only ever becomes a parameter. Names in statements are those of declared columns. The connection is in
memory, loads no extension, spills nothing to disk, and may open only the Parquet files of the given runs; then its
configuration is locked.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import duckdb
import polars as pl
import pyarrow as pa

from lpact.errors import RunError
from lpact.store.frames import is_list
from lpact.tables import Column, Table
from lpact.web.runs import TableFile

BATCH_ROWS = 50_000
CACHED_ANSWERS = 512
PATTERN = frozenset("*?[")
"""Characters that DuckDB reads as patterns in paths."""
FILE = "file"
"""Beginning of the names of parameters that are paths."""
Value = TypeVar("Value")


class Database:
    """One connection; every request uses a cursor of its own."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._connection = duckdb.connect(
            ":memory:",
            config={
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "allow_community_extensions": "false",
            },
        )
        # DuckDB takes every path for a pattern: `run[1]` would be `run1`. Such files are read through a link.
        self._places = {str(path): str(path) for path in paths}
        if patterns := [path for path in self._places if PATTERN & set(path)]:
            links = tempfile.mkdtemp(prefix="lpact-explore-")
            weakref.finalize(self, shutil.rmtree, links, ignore_errors=True)
            for number, path in enumerate(patterns):
                self._places[path] = str(Path(links, f"{number}.parquet"))
                Path(self._places[path]).symlink_to(path)
        # The one setting that takes no parameter.
        allowed = ", ".join("'" + own.replace("'", "''") + "'" for own in self._places.values())
        for statement in (
            "SET temp_directory = ''",
            f"SET allowed_paths = [{allowed}]",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            self._connection.execute(statement)
        self.answers = Cache(CACHED_ANSWERS)

    def rows(self, sql: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        """All rows of an answer."""
        with self._bound(parameters) as values:
            return self._connection.cursor().execute(sql, values).fetchall()

    def frame(self, sql: str, parameters: dict[str, Any]) -> pl.DataFrame:
        """All rows of an answer, as a Polars data frame."""
        with self._bound(parameters) as values:
            table = self._connection.cursor().sql(sql, params=values).to_arrow_table()
            return cast(pl.DataFrame, pl.from_arrow(table))

    def batches(self, sql: str, parameters: dict[str, Any]) -> Iterator[pl.DataFrame]:
        """The rows of an answer, in pieces; the first piece is made before this returns."""
        with self._bound(parameters) as values:
            cursor = self._connection.cursor()
            reader = cursor.sql(sql, params=values).to_arrow_reader(BATCH_ROWS)
            first = next(iter(reader), None)

        def pieces() -> Iterator[pl.DataFrame]:
            batch = first
            while batch is not None:
                yield cast(pl.DataFrame, pl.from_arrow(batch))
                with self._bound(parameters):
                    batch = next(iter(reader), None)

        return pieces()

    @contextmanager
    def _bound(self, parameters: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Parameters with files where DuckDB reads them; errors, also Arrow's, become a `RunError` about the files."""
        files = {name: own for name, own in parameters.items() if name.startswith(FILE)}
        try:
            yield parameters | {n: self._places.get(own, own) for n, own in files.items()}
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            memory = isinstance(error, duckdb.OutOfMemoryException | MemoryError)
            raise RunError(
                "the query needs too much memory" if memory else "a table cannot be read",
                where=", ".join(dict.fromkeys(files.values())) or None,
                got=(str(error).splitlines() or [type(error).__name__])[0],
                expected="a query that fits into memory" if memory else "a Parquet file of lpact",
                remedy="filter to fewer rows" if memory else "restore the file from a copy, or run the study again",
            ) from error

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Cache:
    """The latest answers by key; safe to use from many threads."""

    def __init__(self, limit: int) -> None:
        self._limit, self._lock = limit, threading.Lock()
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The answer to ``key``, made if it is not kept. Two threads may both make it; one is kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return cast(Value, self._kept[key])
        value = make()
        with self._lock:
            self._kept[key] = value
            while len(self._kept) > self._limit:
                self._kept.popitem(last=False)
        return value


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
_SQL = {
    "is": "{} = {}",
    "not": "{} IS DISTINCT FROM {}",
    "has": "contains(lower({}), lower({}))",
    "ge": "{} >= {}",
    "le": "{} <= {}",
    "null": "{} IS NULL",
    "some": "{} IS NOT NULL",
}
_PLACE = "file_row_number"
"""Column of DuckDB that holds a row's place in its file."""


@dataclass(frozen=True)
class Source:
    """Rows to query: one table of one run, or the same table of several runs with the column `RUN` before it."""

    table: Table
    files: tuple[TableFile, ...]
    runs: tuple[str, ...] = ()

    @property
    def key(self) -> Hashable:
        """Key of cached answers, which changes with the files."""
        return self.table.name, self.runs, tuple((f.path, f.fingerprint) for f in self.files)


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


@dataclass
class _Statement:
    """A query as parts of SQL, and the values of its parameters."""

    query: Query
    values: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        source, self.order = self.query.source, ""
        if not source.runs:
            self.source = self._scan(source.files[0], f", {_PLACE} = true")
        else:
            columns = ", ".join(quoted(c) for c in source.table.columns if c.name != RUN)
            parts = [
                _select(f'{self._add(run)}::VARCHAR AS "{RUN}", {columns}', self._scan(file))
                for run, file in zip(source.runs, source.files, strict=True)
            ]
            self.source = f"({' UNION ALL '.join(parts)})"
        wanted = [self._condition(own) for own in self.query.conditions]
        if self.query.search:
            text = self._add(self.query.search.lower())
            names = [quoted(column) for column in source.table.columns if column.dtype == "str"]
            found = " OR ".join(f"contains(lower({name}), {text})" for name in names)
            wanted.append(f"({found or 'false'})")
        self.where = f"WHERE {' AND '.join(wanted)}" if wanted else ""
        # Ties follow run and key, or the place in the file, which has the order of the key.
        order = [f'"{name}"' for name in (RUN, *source.table.key)] if source.runs else []
        if self.query.sort is not None:
            way = "DESC" if self.query.descending else "ASC"
            first = f"{quoted(self.query.sort)} {way} NULLS LAST"
            order = [first, *(order or [_PLACE])]
        self.order = f"ORDER BY {', '.join(order)}" if order else ""

    def sql(self, shown: str, *rest: str) -> str:
        """The statement that selects ``shown``, with further clauses."""
        return _select(shown, self.source, *rest)

    def _add(self, value: object, kind: str = "p") -> str:
        name = f"{kind}{len(self.values)}"
        self.values[name] = value
        return f"${name}"

    def _scan(self, file: TableFile, options: str = "") -> str:
        path = self._add(str(file.path), FILE)
        return f"read_parquet({path}, hive_partitioning = false{options})"

    def _condition(self, own: Condition) -> str:
        value = "" if own.operator in ("null", "some") else self._add(own.value)
        return _SQL[own.operator].format(quoted(own.column), value)


def _select(shown: str, source: str, *rest: str) -> str:
    return " ".join(part for part in ("SELECT", shown, "FROM", source, *rest) if part)


def quoted(column: Column) -> str:
    """A declared column in a statement."""
    return f'"{column.name}"'


def count(database: Database, query: Query) -> int:
    """How many rows there are."""
    return int(_answer(database, query, "count(*)")[0][0])


def value_counts(database: Database, query: Query, column: Column) -> dict[Any, int]:
    """How many rows every value of a column has."""
    shown = f"{quoted(column)}, count(*)"
    return dict(_answer(database, query, shown, "GROUP BY 1 ORDER BY 1"))


def values(database: Database, source: Source, column: Column) -> list[Any] | None:
    """Distinct values of a column, sorted; None where they are more than `MOST_VALUES`."""
    query = Query(source, (Condition(column, "some"),))
    limit = f"LIMIT {MOST_VALUES + 1}"
    found = sorted(row[0] for row in _answer(database, query, f"DISTINCT {quoted(column)}", limit))
    return found if len(found) <= MOST_VALUES else None


def _answer(database: Database, query: Query, shown: str, rest: str = "") -> list[tuple[Any, ...]]:
    """What a query selects; looked up once for every filter."""

    def look() -> list[tuple[Any, ...]]:
        made = _Statement(query)
        return database.rows(made.sql(shown, made.where, rest), made.values)

    return database.answers.get((query.filter_key, shown, rest), look)


def page(database: Database, query: Query, offset: int, limit: int) -> list[dict[str, Any]]:
    """One page of rows by column name; a list is cut to its head, with its length as ``(head, length)``."""
    columns, made = query.source.table.columns, _Statement(query)
    shown = ", ".join(
        f"{quoted(own)}[1:{LIST_HEAD}], len({quoted(own)})" if is_list(own) else quoted(own) for own in columns
    )
    where, part = made.where, f"LIMIT {limit:d} OFFSET {offset:d}"
    if query.sort is not None and not query.source.runs:
        # Sorting places alone is much quicker than sorting whole rows.
        where, part = f"WHERE {_PLACE} IN ({made.sql(_PLACE, where, made.order, part)})", ""
    rows = []
    for row in database.rows(made.sql(shown, where, made.order, part), made.values):
        cells: Iterator[Any] = iter(row)
        rows.append({own.name: (next(cells), next(cells)) if is_list(own) else next(cells) for own in columns})
    return rows


def head(database: Database, file: TableFile) -> pl.DataFrame:
    """The declared columns of a file without rows; an error where one is missing."""
    made = _Statement(Query(Source(file.table, (file,))))
    return database.frame(made.sql(_every(file.table), "LIMIT 0"), made.values)


def select(query: Query) -> tuple[str, dict[str, Any]]:
    """All rows of a query, whole, as a statement with its parameters."""
    made = _Statement(query)
    return made.sql(_every(query.source.table), made.where, made.order), made.values


def _every(table: Table) -> str:
    return ", ".join(quoted(column) for column in table.columns)
