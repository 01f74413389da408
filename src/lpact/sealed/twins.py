"""A table's two files, read as they are: nothing is refused that can be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from lpact.errors import RunError
from lpact.store import polars_schema
from lpact.tables import Table


class UnreadableError(RunError):
    """A table file that cannot be read."""


def read_parquet(path: Path, csv: Path | None = None) -> pl.DataFrame:
    """Read a Parquet file without checking it against its declaration.

    Every value takes at least one byte of the CSV twin: a file that says to hold more values than that is not read, so
    that a few bytes cannot fill the memory.
    """
    try:
        with path.open("rb") as handle:
            stored = pq.ParquetFile(handle, page_checksum_verification=True)
            if csv is not None and csv.is_file():
                _refuse_swollen(stored.metadata, path, csv.stat().st_size)
            return cast(pl.DataFrame, pl.from_arrow(stored.read()))
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _refuse_swollen(metadata: pq.FileMetaData, path: Path, n_bytes: int) -> None:
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    n_values = sum(group.column(i).num_values for group in groups for i in range(group.num_columns))
    if max(n_values, metadata.num_rows * metadata.num_columns) > n_bytes:
        raise UnreadableError(
            "a table file says to hold more than its CSV twin can",
            where=str(path),
            got=f"{n_values} values",
            expected=f"at most {n_bytes}, the bytes of the CSV file",
            remedy="take the run from whoever made it again",
        )


def read_csv(path: Path, table: Table) -> pl.DataFrame:
    """Read a CSV twin in the declared types; null is an empty field, empty text is ``""``."""
    try:
        text = pl.read_csv(path, infer_schema=False, raise_if_empty=False)
        schema = polars_schema(table)
        return text.select(
            _typed(text[name], schema[name]) if name in schema else text[name]
            for name in text.columns
        )
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _typed(column: pl.Series, dtype: pl.DataType) -> pl.Series:
    if isinstance(dtype, pl.List):
        lists = [None if cell is None else json.loads(cell) for cell in column.to_list()]
        return pl.Series(column.name, lists, dtype=dtype)
    if dtype == pl.Boolean:
        values = [None if cell is None else {"true": True, "false": False}[cell] for cell in column]
        return pl.Series(column.name, values, dtype=dtype)
    return column.cast(dtype)


def _unreadable(path: Path, error: Exception) -> UnreadableError:
    return UnreadableError(
        "a table file cannot be read",
        where=str(path),
        got=(str(error) or type(error).__name__).splitlines()[0],
        expected="a file that lpact wrote",
        remedy="restore the file from a copy",
    )
