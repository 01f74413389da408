"""Tables of a run: which rows and columns differ where a file does, and the best copy of each that there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from lpact.errors import LPactError
from lpact.sealed.digests import column_digest, key_digest
from lpact.sealed.frames import frame_problems
from lpact.sealed.lockfile import Lock, SealedTable
from lpact.sealed.model import Problem
from lpact.sealed.twins import (
    SwollenError,
    UnreadableError,
    read_csv,
    read_parquet,
    refuse_swollen,
)
from lpact.store import table_path, validate
from lpact.tables import ALL_TABLES, Table

_SUFFIXES = (".parquet", ".csv")


class SealedTables:
    """The tables of a run, each from the file that is as it was; from Parquet where both or neither are.

    A table that cannot be read, or does not match its declaration, is None.
    """

    def __init__(self, root: Path, names: list[str], intact: frozenset[str]) -> None:
        self.root = root
        self.names = names
        self._intact = intact
        self._frames: dict[str, pl.DataFrame | None] = {}

    def __call__(self, name: str) -> pl.DataFrame | None:
        """The table, or None."""
        if name not in self._frames:
            self._frames[name] = self._read(ALL_TABLES[name])
        return self._frames[name]

    def is_intact(self, name: str, suffix: str) -> bool:
        """Whether a file of the table is as it was."""
        return f"{name}{suffix}" in self._intact

    def forget(self) -> None:
        """Let go of what was read."""
        self._frames.clear()

    def _read(self, table: Table) -> pl.DataFrame | None:
        of_csv = self.is_intact(table.name, ".csv") and not self.is_intact(table.name, ".parquet")
        try:
            return validate(self.raw(table, ".csv" if of_csv else ".parquet"), table)
        except LPactError:
            return None

    def raw(self, table: Table, suffix: str) -> pl.DataFrame:
        """One file of the table as it is; raises `UnreadableError`."""
        path = table_path(self.root, table, suffix)
        if path.is_symlink() or not path.is_file():
            raise UnreadableError("there is no such file", where=str(path))
        if suffix == ".csv":
            return read_csv(path, table)
        return read_parquet(path, table_path(self.root, table, ".csv"))


def check_sizes(root: Path) -> list[Problem]:
    """Parquet files that would give more than their CSV twins hold; whoever reads one of them may run out of memory."""
    problems = []
    for table in ALL_TABLES.values():
        path = table_path(root, table)
        if path.is_symlink() or not path.is_file():
            continue
        try:
            refuse_swollen(path, table_path(root, table, ".csv"))
        except SwollenError as error:
            what = f"{error.what}: {error.got}"
            problems.append(Problem("table", f"{table.name}.parquet", what))
        except UnreadableError:
            # It is named where it is compared.
            continue
    return problems


def check_tables(tables: SealedTables, lock: Lock | None) -> list[Problem]:
    """Rows, columns and values of every table of which a file has changed."""
    problems: list[Problem] = []
    for name in tables.names:
        parquet, csv = (tables.is_intact(name, suffix) for suffix in _SUFFIXES)
        if parquet and csv:
            continue
        table = ALL_TABLES[name]
        if parquet or csv:
            problems += _against_twin(tables, table, changed=".csv" if parquet else ".parquet")
        elif lock is not None and name in lock.sealed.tables:
            problems += _against_lock(tables, table, lock.sealed.tables[name])
    return problems


def _against_twin(tables: SealedTables, table: Table, *, changed: str) -> Iterator[Problem]:
    """The file that has changed, against its twin that has not."""
    where = f"{table.name}{changed}"
    path = table_path(tables.root, table, changed)
    if not path.is_file():
        return
    kept = ".csv" if changed == ".parquet" else ".parquet"
    try:
        old = tables.raw(table, kept)
        new = tables.raw(table, changed)
    except UnreadableError as error:
        yield Problem(
            "table", where, f"cannot be compared with its twin: {error.what}: {error.got}"
        )
        return
    found = frame_problems(table, old, new, kind="table", where=where)
    if not found:
        what = "rows and values are those of its twin: only the bytes of the file differ"
        found = [Problem("table", where, what)]
    yield from found


def _against_lock(tables: SealedTables, table: Table, then: SealedTable) -> Iterator[Problem]:
    """Both files have changed: what the lock's counts and digests tell."""
    seen: list[Problem] = []
    for suffix in _SUFFIXES:
        try:
            frame = tables.raw(table, suffix)
        except UnreadableError as error:
            if table_path(tables.root, table, suffix).is_file():
                what = f"cannot be read: {error.what}: {error.got}"
                yield Problem("table", f"{table.name}{suffix}", what)
            continue
        seen = list(_facts(table, frame, then))
        break
    yield from seen


def _facts(table: Table, frame: pl.DataFrame, then: SealedTable) -> Iterator[Problem]:
    if frame.height != then.n_rows:
        more = frame.height - then.n_rows
        rows = f"{abs(more)} row{'s' if abs(more) > 1 else ''} {'more' if more > 0 else 'fewer'}"
        what = f"{rows}: {frame.height}, not {then.n_rows}"
        yield Problem("table", table.name, what, old=then.n_rows, new=frame.height)
    now = {column.name: column_digest(column) for column in frame.get_columns()}
    if key_digest(now, then.key) != then.key_sha256:
        yield Problem("table", table.name, "the keys of the rows have changed, or their order")
    if frame.height != then.n_rows:
        return
    for name in then.columns.keys() | now.keys():
        old, new = then.columns.get(name), now.get(name)
        if old != new:
            what = "the values have changed" if old and new else "the column is missing"
            what = "the column was added" if old is None else what
            yield Problem("table", table.name, what, column=name, old=old, new=new)
