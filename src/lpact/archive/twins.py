"""A table's two files, read as they are: nothing is refused that can be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from lpact.archive.swollen import csv_fault, limit_of, parquet_fault
from lpact.errors import RunError
from lpact.store import polars_schema
from lpact.tables import Table


class UnreadableError(RunError):
    """A table file that cannot be read."""


class SwollenError(UnreadableError):
    """A table file that is small and would give far more than it should."""


def read_parquet(path: Path, csv: Path | None = None) -> pl.DataFrame:
    """Read a Parquet file without checking it against its declaration; not one that swells (`lpact.archive.swollen`)."""
    refuse_swollen(path, csv)
    try:
        with path.open("rb") as handle:
            stored = pq.ParquetFile(handle, page_checksum_verification=True)
            return cast(pl.DataFrame, pl.from_arrow(stored.read()))
    except MemoryError:  # one of Arrow's own errors, too
        raise
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def refuse_swollen(path: Path, csv: Path | None) -> None:
    """Raise `SwollenError` for a Parquet file that would give more than its CSV twin holds."""
    try:
        limit = limit_of(path, csv)
        with path.open("rb") as handle:
            fault = parquet_fault(handle, limit)
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if fault is not None:
        raise _swollen(path, fault)


def _swollen(path: Path, fault: str) -> SwollenError:
    return SwollenError(
        "a table file says to hold more than it can, and is not read",
        where=str(path),
        got=fault,
        expected="a file that lpact wrote",
        remedy="take the run from whoever made it again",
    )


def read_csv(path: Path, table: Table) -> pl.DataFrame:
    """Read a CSV twin in the declared types; null is an empty field, empty text is ``""``."""
    try:
        with path.open("rb") as handle:
            fault = csv_fault(handle)
        if fault is not None:
            raise _swollen(path, fault)
        text = pl.read_csv(path, infer_schema=False, raise_if_empty=False)
        schema = polars_schema(table)
        return text.select(
            _typed(text[name], schema[name]) if name in schema else text[name]
            for name in text.columns
        )
    except UnreadableError:
        raise
    except (
        pl.exceptions.PolarsError,
        OSError,
        ValueError,
        KeyError,
        TypeError,
        RecursionError,
    ) as error:
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
