"""What is found out about the files of one table, in a process of its own (`lpact.archive.apart`).

Both files of a table are held against what lpact writes from the values in the Parquet file. The same bytes are the
same table. Where bytes differ, values, their order, types and descriptions decide: another version of Polars or
pyarrow packs the same table otherwise, and that is no fault. Only where the run was made by this very code, and the
file by this very version, is another packing named as one.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl
import pyarrow.parquet as pq

from lpact.archive.digests import column_digest, key_digest
from lpact.archive.frames import frame_problems
from lpact.archive.model import Problem
from lpact.archive.twins import UnreadableError, read_csv, read_parquet
from lpact.errors import LPactError
from lpact.store import table_path, validate
from lpact.store.files import write_csv, write_parquet
from lpact.tables import Table, declared_tables

_CHUNK = 2**20
_OF_ARROW = b"ARROW:schema"
_PACKED = ("total_compressed_size", "total_byte_size", "total_uncompressed_size", "serialized_size")
_PLACES = ("file_offset", "data_page_offset", "dictionary_page_offset", "index_page_offset")


@dataclass
class Examined:
    """What was found: problems, files that are only packed otherwise, and how much the table is in memory."""

    problems: list[Problem] = field(default_factory=list)
    packed_otherwise: list[str] = field(default_factory=list)
    readable: bool = False
    """Whether the table can be read and is as declared."""
    n_rows: int = 0
    n_bytes: int = 0

    def measure(self, frame: pl.DataFrame) -> None:
        """Note that the table can be read, and how large it is."""
        self.readable, self.n_rows = True, frame.height
        self.n_bytes = int(frame.estimated_size())


def raw(root: Path, table: Table, suffix: str) -> pl.DataFrame:
    """One file of the table as it is; raises `UnreadableError`."""
    path = table_path(root, table, suffix)
    if path.is_symlink() or not path.is_file():
        raise UnreadableError("there is no such file", where=str(path))
    if suffix == ".csv":
        return read_csv(path, table)
    return read_parquet(path, table_path(root, table, ".csv"))


def take(root: Path, table: Table, suffix: str, handed: Path | None) -> Examined:
    """Read and validate one file; the table is written again to ``handed``, for others to read."""
    found = Examined()
    frame = raw(root, table, suffix)
    try:
        valid = validate(frame, table)
    except LPactError:
        return found
    found.measure(valid)
    if handed is not None:
        with handed.open("xb") as handle:
            write_parquet(valid, table, handle)
    return found


def compare_twins(root: Path, table: Table, changed: str) -> Examined:
    """The file that has changed, against its twin that has not."""
    where = f"{table.name}{changed}"
    old = raw(root, table, ".csv" if changed == ".parquet" else ".parquet")
    new = raw(root, table, changed)
    problems = frame_problems(table, old, new, kind="table", where=where)
    if not problems:
        what = "rows and values are those of its twin: only the bytes of the file differ"
        problems = [Problem("table", where, what)]
    return Examined(problems)


def compare_facts(root: Path, table: Table, suffix: str, then: Mapping[str, Any]) -> Examined:
    """A file that has changed with its twin, against the counts and digests of the lock."""
    return Examined(list(_facts(table, raw(root, table, suffix), then)))


def _facts(table: Table, frame: pl.DataFrame, then: Mapping[str, Any]) -> Iterator[Problem]:
    n_rows, columns = then["n_rows"], then["columns"]
    if frame.height != n_rows:
        more = frame.height - n_rows
        rows = f"{abs(more)} row{'s' if abs(more) > 1 else ''} {'more' if more > 0 else 'fewer'}"
        what = f"{rows}: {frame.height}, not {n_rows}"
        yield Problem("table", table.name, what, old=n_rows, new=frame.height)
    now = {column.name: column_digest(column) for column in frame.get_columns()}
    if key_digest(now, then["key"]) != then["key_sha256"]:
        yield Problem("table", table.name, "the keys of the rows have changed, or their order")
    if frame.height != n_rows:
        return
    for name in sorted(columns.keys() | now.keys()):
        old, new = columns.get(name), now.get(name)
        if old != new:
            what = "the values have changed" if old and new else "the column is missing"
            what = "the column was added" if old is None else what
            yield Problem("table", table.name, what, column=name, old=old, new=new)


def write_again(root: Path, table: Table, *, same_code: bool, same_polars: bool) -> Examined:
    """Both files, against what lpact writes from the Parquet file.

    ``same_code`` says whether the run was made by this very code, ``same_polars`` whether by this version of Polars.
    """
    found, where = Examined(), f"{table.name}.parquet"
    frame = raw(root, table, ".parquet")
    try:
        valid = validate(frame, table)
    except LPactError as error:
        what = f"is not the table that lpact declares: {error.what}: {error.where}: {error.got}"
        found.problems.append(Problem("table", where, what))
        return found
    found.measure(valid)
    found.problems += _in_order(table, valid, frame, where)
    if not found.problems:
        _same_parquet(root, table, valid, found, same_code=same_code)
    _same_csv(root, table, valid, found, strict=same_code and same_polars)
    return found


def _in_order(
    table: Table, valid: pl.DataFrame, frame: pl.DataFrame, where: str
) -> Iterator[Problem]:
    """Columns and rows must stand as lpact writes them."""
    if frame.columns != valid.columns:
        if set(frame.columns) == set(valid.columns):
            yield Problem("table", where, "the columns stand in another order")
        frame = frame.select(name for name in valid.columns if name in frame.columns)
    yield from frame_problems(table, valid, frame, kind="table", where=where)


def _same_parquet(
    root: Path, table: Table, valid: pl.DataFrame, found: Examined, *, same_code: bool
) -> None:
    where, again = f"{table.name}.parquet", io.BytesIO()
    write_parquet(valid, table, again)
    path = table_path(root, table)
    if path.stat().st_size == len(again.getbuffer()) and path.read_bytes() == again.getbuffer():
        return
    with path.open("rb") as handle:
        stored, own = pq.ParquetFile(handle), pq.ParquetFile(again)
        described = stored.schema_arrow.equals(own.schema_arrow, check_metadata=True)
        described = described and _notes(stored) == _notes(own)
        by_this = stored.metadata.created_by == own.metadata.created_by
        packed = by_this and _footer(stored.metadata) != _footer(own.metadata)
    if same_code and not described:
        what = "its columns or its file carry other descriptions than lpact writes"
        found.problems.append(Problem("table", where, what))
    elif same_code and packed:
        what = (
            "is packed otherwise than lpact packs it: other groups of rows, encodings or statistics"
        )
        found.problems.append(Problem("table", where, what))
    else:
        found.packed_otherwise.append(where)


def _notes(stored: pq.ParquetFile) -> dict[bytes, bytes]:
    """What a file says of itself, without the copy of its schema that Arrow adds."""
    return {
        name: text for name, text in (stored.metadata.metadata or {}).items() if name != _OF_ARROW
    }


def _footer(metadata: pq.FileMetaData) -> Any:
    """A footer without sizes and places of packed pages, which depend on the build of the packer."""
    left_out = {*_PACKED, *_PLACES}

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: kept(own) for name, own in value.items() if name not in left_out}
        return [kept(own) for own in value] if isinstance(value, list | tuple) else value

    return kept(metadata.to_dict())


class _Comparing(io.RawIOBase):
    """A file to write to that only compares what is written with what another file holds."""

    def __init__(self, stored: BinaryIO) -> None:
        self.stored = stored
        self.same = True

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        for start in range(0, len(content), _CHUNK):
            part = content[start : start + _CHUNK]
            self.same = self.same and self.stored.read(len(part)) == part
        return len(content)


def _same_csv(
    root: Path, table: Table, valid: pl.DataFrame, found: Examined, *, strict: bool
) -> None:
    where, path = f"{table.name}.csv", table_path(root, table, ".csv")
    with path.open("rb") as handle:
        again = _Comparing(handle)
        write_csv(valid, table, again)  # type: ignore[arg-type]
        if again.same and not handle.read(1):
            return
    try:
        frame = read_csv(path, table)
    except UnreadableError as error:
        found.problems.append(Problem("table", where, f"cannot be read: {error.what}: {error.got}"))
        return
    problems = list(_in_order(table, valid, frame, where))
    if not problems and strict:
        what = "values are those of its Parquet file, but it is not written as lpact writes it"
        problems = [Problem("table", where, what)]
    elif not problems:
        found.packed_otherwise.append(where)
    found.problems += problems


def examine(order: Mapping[str, Any]) -> Examined:
    """Do what an order says; see `lpact.archive.apart`."""
    root, table = Path(order["root"]), declared_tables()[order["table"]]
    task, suffix = order["task"], order.get("suffix", ".parquet")
    if task == "write again":
        return write_again(
            root, table, same_code=order["same_code"], same_polars=order["same_polars"]
        )
    if task == "compare twins":
        return compare_twins(root, table, suffix)
    if task == "compare facts":
        return compare_facts(root, table, suffix, order["then"])
    handed = order.get("handed")
    return take(root, table, suffix, None if handed is None else Path(handed))
