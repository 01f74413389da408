"""Tables of a run: which rows and columns differ, whether both files hold the same, and a copy that can be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import polars as pl
import pyarrow.parquet as pq

from lpact.archive.apart import NO_MEMORY, SHARE, Apart, FailedError, ShortError
from lpact.archive.lockfile import Lock
from lpact.archive.memory import free_memory
from lpact.archive.model import Problem
from lpact.errors import LPactError, RunError
from lpact.store import Manifest, StoredRun, code_digest, read_table, table_path, validate
from lpact.tables import Table, declared_tables

_SUFFIXES = (".parquet", ".csv")
_MOST_KEPT = 10_000
ALWAYS_HELD = 2**28
"""Bytes of a table that is read however little memory seems to be free."""
_right: dict[tuple[object, ...], dict[str, Any]] = {}
"""What was found about tables in which nothing is wrong, by the checksums of their files: lock, verify and export look
at the same bytes one after the other."""


@dataclass
class _Known:
    """A table that can be read: from which file, how many rows it has, and bytes in memory."""

    path: Path
    n_rows: int
    n_bytes: int


@dataclass
class SealedTables:
    """The tables of a run. Each was read by another process before (`lpact.archive.apart`), or it is None here.

    A table of which both files are as they were is read from Parquet. Of every other there is a copy in ``scratch``,
    made by that process from the file that is as it was, or from one that can be read.
    """

    root: Path
    names: list[str]
    intact: Mapping[str, str]
    """SHA-256 of the files that are as they were, by their path."""
    scratch: Path
    problems: list[Problem] = field(default_factory=list)
    short: dict[str, Problem] = field(default_factory=dict)
    """Tables for which there is not enough memory or time here, which is no fault of theirs."""
    packed_otherwise: list[str] = field(default_factory=list)
    _known: dict[str, _Known] = field(default_factory=dict)
    _frames: dict[str, pl.DataFrame | None] = field(default_factory=dict)

    def __call__(self, name: str) -> pl.DataFrame | None:
        """The table, or None."""
        if name not in self._frames:
            self._frames[name] = self._read(declared_tables()[name])
        return self._frames[name]

    def is_intact(self, name: str, suffix: str) -> bool:
        """Whether a file of the table is as it was."""
        return f"{name}{suffix}" in self.intact

    def forget(self) -> None:
        """Let go of what was read."""
        self._frames.clear()

    def n_rows(self, name: str) -> int:
        """Rows of a table that can be read."""
        return self._known[name].n_rows

    def is_safe(self, name: str) -> bool:
        """Whether the Parquet file is as it was, and can be read."""
        return name in self._known and self.is_intact(name, ".parquet")

    def _read(self, table: Table) -> pl.DataFrame | None:
        known = self._known.get(table.name)
        if known is None or not self._has_room(table, known.n_bytes):
            return None
        try:
            if known.path == table_path(self.root, table):
                return read_table(self.root, table)
            with known.path.open("rb") as handle:
                stored = pq.ParquetFile(handle).read()
            return validate(cast(pl.DataFrame, pl.from_arrow(stored)), table)
        except LPactError:
            return None

    def _has_room(self, table: Table, n_bytes: int) -> bool:
        """Whether the table fits beside those that are held; they are let go of where it does not."""
        if n_bytes <= ALWAYS_HELD or _fits(n_bytes):
            return True
        self.forget()
        if _fits(n_bytes):
            return True
        what = f"is not read: {NO_MEMORY}: it takes {n_bytes} bytes, beside others that are needed"
        self.short[table.name] = Problem("limit", f"{table.name}.parquet", what)
        return False

    def examine(self, reader: Apart, lock: Lock | None, manifest: Manifest | None) -> None:
        """Have every table that is there read by ``reader``; what is wrong is in ``problems`` then."""
        for table in declared_tables().values():
            files = [table_path(self.root, table, suffix) for suffix in _SUFFIXES]
            there = [path for path in files if path.is_file() and not path.is_symlink()]
            if there:
                ask = _Asking(self, reader, table, sum(path.stat().st_size for path in there))
                if all(self.is_intact(table.name, suffix) for suffix in _SUFFIXES):
                    ask.whole(manifest)
                else:
                    then = None if lock is None else lock.sealed.tables.get(table.name)
                    ask.changed(None if then is None else then.model_dump(mode="json"))

    def add(self, table: Table, path: Path, found: dict[str, Any]) -> None:
        """Note what was found."""
        self.packed_otherwise += found["packed_otherwise"]
        if found["readable"]:
            self._known[table.name] = _Known(path, found["n_rows"], found["n_bytes"])


def _fits(n_bytes: int) -> bool:
    free = free_memory()
    return free is None or n_bytes <= SHARE * free


class _Asking:
    """Orders about one table."""

    def __init__(self, tables: SealedTables, reader: Apart, table: Table, n_bytes: int) -> None:
        self.tables, self.reader, self.table, self.n_bytes = tables, reader, table, n_bytes

    def _ask(self, task: str, **more: Any) -> dict[str, Any]:
        order = {"task": task, "root": str(self.tables.root), "table": self.table.name, **more}
        found = self.reader.ask(order, n_bytes=self.n_bytes)
        self.tables.problems += [Problem(**problem) for problem in found["problems"]]
        return found

    def whole(self, manifest: Manifest | None) -> None:
        """Both files are as they were: are they what lpact writes?"""
        same_code = manifest is not None and manifest.lpact_code == code_digest()
        same_polars = manifest is not None and manifest.versions.get("polars") == pl.__version__
        sums = (self.tables.intact[f"{self.table.name}{suffix}"] for suffix in _SUFFIXES)
        same = (self.table.name, *sums, same_code, same_polars)
        try:
            found = _right.get(same) or self._ask(
                "write again", same_code=same_code, same_polars=same_polars
            )
        except FailedError as error:
            self._unreadable(".parquet", error)
            return
        if not found["problems"] and len(_right) < _MOST_KEPT:
            _right[same] = found
        self.tables.add(self.table, table_path(self.tables.root, self.table), found)

    def changed(self, then: dict[str, Any] | None) -> None:
        """A file has changed, or both."""
        kept = [own for own in _SUFFIXES if self.tables.is_intact(self.table.name, own)]
        for suffix in _SUFFIXES:
            path = table_path(self.tables.root, self.table, suffix)
            if suffix not in kept and path.is_file() and not path.is_symlink():
                self._describe(suffix, then, twin=bool(kept))
        for suffix in kept or _SUFFIXES:
            if self._take(suffix, say=bool(kept) or then is None):
                break

    def _describe(self, suffix: str, then: dict[str, Any] | None, *, twin: bool) -> None:
        try:
            if twin:
                self._ask("compare twins", suffix=suffix)
            elif then is not None:
                before = len(self.tables.problems)
                self._ask("compare facts", suffix=suffix, then=then)
                found = self.tables.problems[before:]
                # Both files say the same, most often.
                self.tables.problems[before:] = [
                    p for p in found if p not in self.tables.problems[:before]
                ]
        except FailedError as error:
            self._unreadable(suffix, error, twin=twin)

    def _take(self, suffix: str, *, say: bool) -> bool:
        """Have a copy of the table made from one of its files, for this process to read."""
        path = table_path(self.tables.root, self.table, suffix)
        if not path.is_file() or path.is_symlink():
            return False
        handed = self.tables.scratch / f"{list(declared_tables()).index(self.table.name)}{suffix}"
        handed.unlink(missing_ok=True)
        try:
            found = self._ask("take", suffix=suffix, handed=str(handed))
        except FailedError as error:
            if say:
                self._unreadable(suffix, error)
            return False
        self.tables.add(self.table, handed, found)
        return bool(found["readable"])

    def _unreadable(self, suffix: str, error: FailedError, *, twin: bool = False) -> None:
        what = "cannot be compared with its twin" if twin else "cannot be read"
        where = f"{self.table.name}{suffix}"
        if isinstance(error, ShortError):
            self.tables.short[self.table.name] = Problem("limit", where, f"{what}: {error.what}")
        else:
            self.tables.problems.append(Problem("table", where, f"{what}: {error.what}"))


class ExaminedRun(StoredRun):
    """A run of which only tables are read that another process has read before."""

    def __init__(self, tables: SealedTables) -> None:
        super().__init__(tables.root)
        self._tables = tables

    def n_rows(self, name: str) -> int:
        """Rows of a table, as the other process has counted them."""
        self._refuse_unsafe(name)
        return self._tables.n_rows(name)

    def _read(self, table: Table) -> pl.DataFrame:
        self._refuse_unsafe(table.name)
        return super()._read(table)

    def _refuse_unsafe(self, name: str) -> None:
        if name in self._tables.short:
            raise ShortError(
                f"the table '{name}' was not read, for want of memory or time",
                where=str(self.root),
                got=self._tables.short[name].what,
                expected="memory and time to read every table",
                remedy="free memory, or try on a machine that has more",
            )
        if not self._tables.is_safe(name):
            raise RunError(
                f"the table '{name}' has changed, or cannot be read",
                where=str(self.root),
                got="a file that is not as it was",
                expected="the table as it was published",
                remedy="restore the file from a copy, or run the study again",
            )


def unreadable_tables(root: Path, reader: Apart) -> list[str]:
    """Sentences about tables that cannot be read; whoever reads one of them may crash or run out of memory.

    One for which there is not enough memory or time here is a `ShortError`.
    """
    found: list[str] = []
    for table in declared_tables().values():
        files = [table_path(root, table, suffix) for suffix in _SUFFIXES]
        if files[0].is_file():
            n_bytes = sum(path.stat().st_size for path in files if path.is_file())
            order = {"task": "take", "root": str(root), "table": table.name}
            try:
                reader.ask(order, n_bytes=n_bytes)
            except ShortError:
                raise
            except FailedError as error:
                found.append(f"{table.name}.parquet: {error.what}")
    return found
