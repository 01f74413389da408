"""DuckDB, locked: it reads the tables of the given runs, and nothing else on the machine.

The connection is in memory, loads no extension, spills nothing to disk, and may open only the listed Parquet files;
then its configuration is locked. Statements are made of fixed text and declared column names (`lpact.web.query`);
what a request says is a parameter.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import duckdb
import polars as pl
import pyarrow as pa

from lpact.errors import RunError

BATCH_ROWS = 50_000
CACHED_ANSWERS = 512
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
        self._paths = frozenset(map(str, paths))
        allowed = ", ".join(_literal(str(path)) for path in paths)
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
        with self._errors(parameters):
            return self._connection.cursor().execute(sql, parameters).fetchall()

    def frame(self, sql: str, parameters: dict[str, Any]) -> pl.DataFrame:
        """All rows of an answer, as a Polars data frame."""
        with self._errors(parameters):
            table = self._connection.cursor().sql(sql, params=parameters).to_arrow_table()
            return cast(pl.DataFrame, pl.from_arrow(table))

    def batches(self, sql: str, parameters: dict[str, Any]) -> Iterator[pl.DataFrame]:
        """The rows of an answer, in pieces; the first piece is made before this returns."""
        with self._errors(parameters):
            cursor = self._connection.cursor()
            reader = cursor.sql(sql, params=parameters).to_arrow_reader(BATCH_ROWS)
            first = next(iter(reader), None)

        def pieces() -> Iterator[pl.DataFrame]:
            batch = first
            while batch is not None:
                yield cast(pl.DataFrame, pl.from_arrow(batch))
                with self._errors(parameters):
                    batch = next(iter(reader), None)

        return pieces()

    @contextmanager
    def _errors(self, parameters: dict[str, Any]) -> Iterator[None]:
        """Turn errors of DuckDB, or of Arrow while it reads from DuckDB, into a `RunError` about the files."""
        files = [own for own in parameters.values() if isinstance(own, str) and own in self._paths]
        try:
            yield
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            memory = isinstance(error, duckdb.OutOfMemoryException)
            raise RunError(
                "the query needs too much memory" if memory else "a table cannot be read",
                where=", ".join(dict.fromkeys(files)) or None,
                got=(str(error).splitlines() or [type(error).__name__])[0],
                expected="a query that fits into memory" if memory else "a Parquet file of lpact",
                remedy="filter to fewer rows"
                if memory
                else "restore the file from a copy, or run the study again",
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


def _literal(text: str) -> str:
    """A text as SQL; used for paths of runs alone, in the one setting that takes no parameter."""
    return "'" + text.replace("'", "''") + "'"
