"""A table on disk: a Parquet file and its CSV copy, the same bytes for the same rows.

Rows are written in the order of the key, with fixed compression and row groups, so that neither
the order of the work nor the chunks of a frame show in the bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from polars.exceptions import PanicException, PolarsError

from lpact.errors import RunError
from lpact.store.disk import atomic_write, storage_errors
from lpact.store.frames import check_types, element_kind, is_list, validate
from lpact.tables import Column, Table

ROWS_PER_GROUP = 131_072
ROWS_PER_CSV_SLICE = 50_000
ZSTD_LEVEL = 3
_ARROW_TYPES = {
    "str": pa.large_string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
}


def table_path(root: Path, table: Table, suffix: str = ".parquet") -> Path:
    """Return where a table's Parquet file (or its ``.csv`` copy) lies under ``root``."""
    return root / f"{table.name}{suffix}"


def write_table(frame: pl.DataFrame, table: Table, root: Path) -> list[Path]:
    """Validate a frame; write ``root/<name>.parquet`` and ``root/<name>.csv``, each atomically."""
    valid = validate(frame, table)
    parquet, csv = table_path(root, table), table_path(root, table, ".csv")
    atomic_write(parquet, lambda handle: write_parquet(valid, table, handle))
    atomic_write(csv, lambda handle: write_csv(valid, table, handle))
    return [parquet, csv]


def write_parquet(valid: pl.DataFrame, table: Table, handle: BinaryIO) -> None:
    """Write a frame that `validate` gave as the bytes of a table's Parquet file."""
    plain = valid.to_arrow(compat_level=pl.CompatLevel.oldest()).combine_chunks()
    pq.write_table(
        pa.Table.from_arrays(plain.columns, schema=arrow_schema(table)),
        handle,
        version="2.6",
        compression="zstd",
        compression_level=ZSTD_LEVEL,
        row_group_size=ROWS_PER_GROUP,
        write_page_checksum=True,
    )


def write_csv(valid: pl.DataFrame, table: Table, handle: BinaryIO) -> None:
    """Write a frame that `validate` gave as the bytes of a table's CSV copy."""
    header = valid.clear().select(pl.col(table.column_names).cast(pl.String)).write_csv()
    handle.write(header.encode())
    for text in csv_rows(valid, table):
        handle.write(text.encode())


def read_table(root: Path, table: Table) -> pl.DataFrame:
    """Read ``root/<name>.parquet`` and check it against the declaration."""
    path = table_path(root, table)
    if not path.is_file():
        raise RunError(
            f"the table '{table.name}' is missing",
            where=str(path),
            got="no such file",
            expected="a Parquet file that lpact wrote",
            remedy="check that the folder is a run directory, or run the study again",
        )
    with storage_errors(path, "a table cannot be read"), path.open("rb") as handle:
        try:
            stored = pq.ParquetFile(handle, page_checksum_verification=True)
            # Before the data are read: columns of other types can end the process. (`empty_table` would import pandas.)
            columns = cast(
                pl.DataFrame, pl.from_arrow(pa.Table.from_batches([], stored.schema_arrow))
            )
            check_types(columns, table, str(path))
            frame = cast(pl.DataFrame, pl.from_arrow(stored.read()))
        except (pa.ArrowException, PolarsError, PanicException, OSError, ValueError) as error:
            raise RunError(
                f"the table '{table.name}' is damaged",
                where=str(path),
                got=(str(error) or type(error).__name__).splitlines()[0],
                expected="a Parquet file that lpact wrote",
                remedy="restore the file from a copy, or run the study again",
            ) from error
    return validate(frame, table, where=str(path))


def arrow_schema(table: Table) -> pa.Schema:
    """The schema of the Parquet file, with meanings, units and the key as metadata."""
    fields = []
    for column in table.columns:
        element = _ARROW_TYPES[element_kind(column)]
        dtype = pa.large_list(element) if is_list(column) else element
        about = {"meaning": column.meaning, "unit": column.unit}
        fields.append(pa.field(column.name, dtype, nullable=column.nullable, metadata=about))
    metadata = {"table": table.name, "meaning": table.meaning, "key": json.dumps(table.key)}
    return pa.schema(fields, metadata=metadata)


def csv_rows(frame: pl.DataFrame, table: Table) -> Iterator[str]:
    """Rows as CSV text: null is an empty field, empty text is ``""``, lists are JSON, floats round-trip."""
    lists = [column for column in table.columns if is_list(column)]
    for part in frame.iter_slices(ROWS_PER_CSV_SLICE):
        text = part.with_columns(_json_text(part[column.name], column) for column in lists)
        yield text.write_csv(include_header=False)


def _json_text(lists: pl.Series, column: Column) -> pl.Series:
    if element_kind(column) == "str":
        texts = [
            None if row is None else json.dumps(row, ensure_ascii=False, separators=(",", ":"))
            for row in lists.to_list()
        ]
        return pl.Series(column.name, texts, dtype=pl.String)
    element = pl.element().cast(pl.String).fill_null("null")
    joined = pl.col(column.name).list.eval(element).list.join(",")
    return lists.to_frame().select(pl.format("[{}]", joined).alias(column.name)).to_series()
