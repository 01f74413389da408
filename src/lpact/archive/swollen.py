"""How much a Parquet file gives when it is read, found out before it is: a few bytes must not fill the memory.

Every value of a table takes at least one byte of its CSV twin, and every byte of text one. A Parquet file that would
give more than that is not read. Where there is no twin, the file's own size is the measure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lpact.archive.page_headers import DELTA_BYTE_ARRAY, DICTIONARY_PAGE, pages
from lpact.archive.zip_layout import MOST_RATIO, SMALL

MOST_ALONE = 4 * 2**30
"""Bytes that are read of a file without a twin."""
MOST_COLUMNS = 1000
MOST_HEADER = 2**20
"""Bytes of the first line of a CSV file."""
_PER_VALUE = 64
"""Bytes that pages may take a value: the value itself, its length, where it is missing, and a share of dictionaries."""
_NUMBER = 8
_TEXT = "BYTE_ARRAY"


@dataclass(frozen=True)
class Limit:
    """What a Parquet file may give: so many values, and so many bytes of text."""

    n_values: int
    n_text: int
    meaning: str


def limit_of(path: Path, csv: Path | None) -> Limit:
    """The limit for a Parquet file: from its CSV twin, or from its own size where there is none."""
    if csv is not None and csv.is_file() and not csv.is_symlink():
        n_bytes = csv.stat().st_size
        return Limit(n_bytes, n_bytes, "the bytes of the CSV file")
    n_bytes = min(MOST_ALONE, max(SMALL, MOST_RATIO * path.stat().st_size))
    return Limit(n_bytes // _NUMBER, n_bytes, "by its own size, because it has no CSV twin")


def parquet_fault(handle: BinaryIO, limit: Limit) -> str | None:
    """Why a Parquet file is not read, or None; a `ValueError` or `pa.ArrowException` where it is damaged.

    Nothing is unpacked that is larger than the limit allows.
    """
    stored = pq.ParquetFile(handle, page_checksum_verification=True)
    found = _Sizes(limit)
    fault = found.of_footer(stored.metadata) or found.of_pages(handle, stored.metadata)
    if fault is None and found.most_text > limit.n_text:
        # The estimate is too large; each text is counted as often as it stands in the table.
        return _text_fault(handle, stored.metadata, limit)
    return fault


class _Sizes:
    """What a file says to hold, added up."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self.most_text = 0
        """Bytes of text at most."""

    def of_footer(self, metadata: pq.FileMetaData) -> str | None:
        """What the footer says; a reader makes room for it before it looks at a page."""
        if metadata.num_columns > MOST_COLUMNS:
            return f"{metadata.num_columns} columns; at most {MOST_COLUMNS} are read"
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        n_values = sum(column.num_values for group in groups for column in _columns(group))
        n_rows = max(metadata.num_rows, sum(group.num_rows for group in groups))
        n_most = max(n_values, n_rows * metadata.num_columns)
        if n_most > self.limit.n_values:
            return _fault(n_most, "values", self.limit.n_values, self.limit)
        if any(
            column.num_values < group.num_rows for group in groups for column in _columns(group)
        ):
            return "a column with fewer values than rows"
        return None

    def of_pages(self, handle: BinaryIO, metadata: pq.FileMetaData) -> str | None:
        """What every page says."""
        n_values = n_bytes = n_fixed = 0
        most_bytes = _PER_VALUE * self.limit.n_values + SMALL // 16
        for i in range(metadata.num_row_groups):
            for j, column in enumerate(_columns(metadata.row_group(i))):
                # The length of a value, for those that all have one; 0 for others.
                length = metadata.schema.column(j).length
                of_column = of_dictionary = in_pages = 0
                for page in pages(handle, column):
                    n_bytes += page.n_bytes
                    of_column += page.n_values
                    if page.encoding == DELTA_BYTE_ARRAY:
                        return "an encoding of texts that lpact does not write"
                    if page.kind == DICTIONARY_PAGE:
                        of_dictionary += page.n_bytes
                    else:
                        in_pages += page.n_bytes
                n_values += of_column
                n_fixed += max(length, _NUMBER) * of_column
                if column.physical_type == _TEXT:
                    self.most_text += in_pages + of_column * of_dictionary
                if n_values > self.limit.n_values:
                    return _fault(n_values, "values", self.limit.n_values, self.limit)
                if max(n_bytes, n_fixed) > most_bytes:
                    return f"pages of {max(n_bytes, n_fixed)} bytes; at most {most_bytes} are read"
        return None


def _columns(group: pq.RowGroupMetaData) -> Iterator[pq.ColumnChunkMetaData]:
    return (group.column(i) for i in range(group.num_columns))


def _text_fault(handle: BinaryIO, metadata: pq.FileMetaData, limit: Limit) -> str | None:
    """Count text exactly: columns are read as dictionaries, in which every text stands once."""
    columns = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    paths = [own.path for own in columns if own.physical_type == _TEXT]
    handle.seek(0)
    stored = pq.ParquetFile(handle, read_dictionary=paths, page_checksum_verification=True)
    for path in paths:
        if not _is_dictionary(stored.schema_arrow, path):
            return "a column of a type that no table has"
    n_bytes = 0
    for i in range(metadata.num_row_groups):
        for path in paths:
            read = stored.read_row_group(i, columns=[path], use_threads=False)
            n_bytes += sum(_text_bytes(part) for column in read.columns for part in column.chunks)
            if n_bytes > limit.n_text:
                return _fault(n_bytes, "bytes of text or more", limit.n_text, limit)
    return None


def _is_dictionary(schema: pa.Schema, path: str) -> bool:
    """Whether the column at this path will be read as a dictionary; a name may hold dots."""
    named = [name for name in schema.names if path == name or path.startswith(f"{name}.")]
    kinds = [schema.field(i).type for name in named for i in schema.get_all_field_indices(name)]
    return bool(kinds) and all(pa.types.is_dictionary(_element(kind)) for kind in kinds)


def _element(kind: pa.DataType) -> pa.DataType:
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return kind


def _text_bytes(column: pa.Array) -> int:
    while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column = column.flatten()
    if not isinstance(column, pa.DictionaryArray):
        return 0
    lengths = pc.binary_length(column.dictionary).cast(pa.int64())
    return int(pc.sum(lengths.take(column.indices)).as_py() or 0)


def _fault(n: int, noun: str, most: int, limit: Limit) -> str:
    return f"{n} {noun}; at most {most}, {limit.meaning}"


def csv_fault(handle: BinaryIO) -> str | None:
    """Why a CSV file is not read, or None: its first line has a column a comma, and a reader makes room for each."""
    first = handle.readline(MOST_HEADER + 1)
    handle.seek(0)
    if len(first) > MOST_HEADER or first.count(b",") >= MOST_COLUMNS:
        return f"a first line of more than {MOST_COLUMNS} columns"
    return None
