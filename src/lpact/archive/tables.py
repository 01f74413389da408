"""The tables of a run: schema, row order, the CSV file against the Parquet file, and which rows and columns changed."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from polars.exceptions import PanicException, PolarsError

from lpact.archive.lockfile import TableFacts, table_facts
from lpact.archive.problems import Problem, frame_problems
from lpact.errors import LPactError, RunError
from lpact.store import polars_schema, table_path, validate
from lpact.store.files import write_csv
from lpact.tables import Table

SUFFIXES = (".parquet", ".csv")
_UNREADABLE = (
    pa.ArrowException,
    PolarsError,
    PanicException,  # Polars panics on some damaged files
    OSError,
    ValueError,
    LookupError,
    TypeError,
    RecursionError,
)


def read_file(path: Path, table: Table) -> pl.DataFrame:
    """The Parquet or CSV file of a table, with the declared columns; rows are in the order of the file.

    Raises `RunError` if the file cannot be read or has other columns or types.
    """
    if path.is_symlink() or not path.is_file():
        raise _unreadable(path, "no such file")
    try:
        return _read_csv(path, table) if path.suffix == ".csv" else _read_parquet(path, table)
    except _UNREADABLE as error:
        raise _unreadable(path, (str(error) or type(error).__name__).splitlines()[0]) from None


def _read_parquet(path: Path, table: Table) -> pl.DataFrame:
    with path.open("rb") as handle:
        stored = pq.ParquetFile(handle, page_checksum_verification=True)
        # Before the data are read: columns of other types can end the process.
        empty = cast(pl.DataFrame, pl.from_arrow(stored.schema_arrow.empty_table()))
        _check_columns(path, table, dict(empty.schema))
        return cast(pl.DataFrame, pl.from_arrow(stored.read()))


def _read_csv(path: Path, table: Table) -> pl.DataFrame:
    text = pl.read_csv(path, infer_schema=False, raise_if_empty=False)
    schema = polars_schema(table)
    _check_columns(path, table, {name: schema.get(name, pl.String()) for name in text.columns})
    return text.select(_typed(text[name], dtype) for name, dtype in schema.items())


def _typed(column: pl.Series, dtype: pl.DataType) -> pl.Series:
    """A column of CSV text in its declared type; null is an empty field, empty text is ``""``."""
    if isinstance(dtype, pl.List):
        lists = [None if cell is None else json.loads(cell) for cell in column.to_list()]
        return pl.Series(column.name, lists, dtype=dtype)
    if dtype == pl.Boolean:
        values = [None if cell is None else {"true": True, "false": False}[cell] for cell in column]
        return pl.Series(column.name, values, dtype=dtype)
    return column.cast(dtype)


def _check_columns(path: Path, table: Table, found: Mapping[str, pl.DataType]) -> None:
    expected = polars_schema(table)
    faults = [f"no column '{name}'" for name in expected if name not in found]
    faults += [f"an additional column '{name}'" for name in found if name not in expected]
    faults += [
        f"column '{name}' of type {found[name]} instead of {dtype}"
        for name, dtype in expected.items()
        if name in found and found[name] != dtype
    ]
    if not faults and list(found) != list(expected):
        faults = ["the columns in another order"]
    if faults:
        raise _unreadable(path, "; ".join(faults))


def _unreadable(path: Path, got: str) -> RunError:
    return RunError(
        "the table file cannot be read",
        where=str(path),
        got=got,
        expected="a file as lpact writes it",
        remedy="restore the file from a copy",
    )


class CheckedTables(Mapping[str, pl.DataFrame]):
    """The tables of a run that can be read, by name.

    Parameters
    ----------
    root, tables
        Folder of the run, and the declarations of its tables.
    intact
        Files that are as the lock (or the manifest) lists them. A table is read from such a file if there is one.
    facts
        What the lock says of the tables, for those of which both files have changed.
    """

    def __init__(
        self,
        root: Path,
        tables: Collection[Table],
        intact: Collection[str],
        facts: Mapping[str, TableFacts],
    ) -> None:
        self.problems: list[Problem] = []
        self.rewritten: list[str] = []
        """CSV files with the values of the Parquet file, but other bytes than lpact writes here."""
        self._root, self._intact = root, intact
        self._sources: dict[str, tuple[Table, Path]] = {}
        self._frames: dict[str, pl.DataFrame] = {}
        for table in tables:
            source = self._check(table, facts.get(table.name))
            if source is not None:
                self._sources[table.name] = (table, table_path(root, table, source))

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name not in self._frames:
            table, path = self._sources[name]
            self._frames[name] = validate(read_file(path, table), table)
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

    def rows(self, name: str, **equals: Any) -> pl.DataFrame:
        """Rows of a table by equality, in the order of the key."""
        if name not in self:
            raise RunError(
                f"the run has no readable table '{name}'",
                where=str(self._root),
                expected="a table that the run wrote",
                remedy="restore the run from a copy",
            )
        return self[name].filter(**equals) if equals else self[name]

    def _check(self, table: Table, facts: TableFacts | None) -> str | None:
        """Check one table; return the file that it can be read from."""
        frames: dict[str, pl.DataFrame] = {}
        intact = [own for own in SUFFIXES if f"{table.name}{own}" in self._intact]
        # The CSV file of an intact pair is compared by its bytes first, which is faster than parsing it.
        for suffix in SUFFIXES[:1] if len(intact) == len(SUFFIXES) else SUFFIXES:
            path = table_path(self._root, table, suffix)
            if path.is_symlink() or not path.is_file():
                continue
            try:
                frames[suffix] = read_file(path, table)
            except RunError as error:
                self._add(table, suffix, f"cannot be read: {error.got}")
        changed = [own for own in frames if own not in intact]
        if len(frames) == len(SUFFIXES) and len(changed) == 1:
            self._compare_twins(table, frames, changed[0])
        elif changed and facts is not None:
            for suffix in changed:
                found = _facts_problems(table, frames[suffix], facts)
                self.problems += [own for own in found if own not in self.problems]
        for suffix in (own for own in (*intact, *changed) if own in frames):
            valid = self._valid(table, suffix, frames[suffix])
            if valid is not None:
                if len(intact) == len(SUFFIXES):
                    self._check_twin(table, valid)
                return suffix
        return None

    def _add(self, table: Table, suffix: str, what: str) -> None:
        self.problems.append(Problem("table", f"{table.name}{suffix}", what))

    def _valid(self, table: Table, suffix: str, frame: pl.DataFrame) -> pl.DataFrame | None:
        try:
            valid = validate(frame, table)
        except LPactError as error:
            what = f"does not match its declared schema: {error.what}: {error.where}: {error.got}"
            self._add(table, suffix, what)
            return None
        if f"{table.name}{suffix}" in self._intact and not valid.equals(frame):
            self._add(table, suffix, "the rows are in another order")
        return valid

    def _check_twin(self, table: Table, frame: pl.DataFrame) -> None:
        """Compare the CSV file of an intact pair with the Parquet file."""
        path, where = table_path(self._root, table, ".csv"), f"{table.name}.csv"
        with path.open("rb") as handle:
            again = _Comparing(handle)
            write_csv(frame, table, cast(BinaryIO, again))
            if again.same and not handle.read(1):
                return
        try:
            csv = read_file(path, table)
        except RunError as error:
            self._add(table, ".csv", f"cannot be read: {error.got}")
            return
        found = frame_problems(table, frame, csv, kind="table", where=where)
        self.problems += found
        if not found:
            self.rewritten.append(where)

    def _compare_twins(
        self, table: Table, frames: Mapping[str, pl.DataFrame], changed: str
    ) -> None:
        """Compare the changed file of a table with the intact one."""
        where = f"{table.name}{changed}"
        (kept,) = (own for own in SUFFIXES if own != changed)
        found = frame_problems(table, frames[kept], frames[changed], kind="table", where=where)
        self.problems += found
        if not found:
            self._add(table, changed, "has the same rows and values: only the bytes differ")


class _Comparing(io.RawIOBase):
    """A file to write to that compares what is written with another file."""

    def __init__(self, stored: BinaryIO) -> None:
        self.stored, self.same = stored, True

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self.same = self.same and self.stored.read(len(content)) == content
        return len(content)


def _facts_problems(table: Table, frame: pl.DataFrame, then: TableFacts) -> Iterator[Problem]:
    """A table of which both files have changed, against the row count and digests of the lock."""
    if more := frame.height - then.n_rows:
        rows = f"{abs(more)} row{'s' if abs(more) > 1 else ''} {'more' if more > 0 else 'fewer'}"
        what = f"{rows}: {frame.height}, not {then.n_rows}"
        yield Problem("table", table.name, what, old=then.n_rows, new=frame.height)
        return
    for name, new in table_facts(table, frame).columns.items():
        if (old := then.columns.get(name)) != new:
            what = "the values, or their order, have changed"
            yield Problem("table", table.name, what, column=name, old=old, new=new)
