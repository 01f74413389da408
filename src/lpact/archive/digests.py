"""Digests: of JSON values, and of the columns of a table.

A column's digest is SHA-256 over its declared type, the number of rows, which rows are missing (one byte a row), and
the values: eight little-endian bytes a number, one byte a truth value, for text the length of each in bytes (eight
little-endian bytes) and then all of them as UTF-8. A missing value counts as zero or as empty text. A list column is
the same over the lengths of the lists and over their elements. Rows are in the order of the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray


def canonical(values: Any) -> bytes:
    """JSON with sorted keys and no spaces, as UTF-8: the same values, the same bytes."""
    text = json.dumps(
        values, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def digest_of(values: Any) -> str:
    """SHA-256 of JSON values."""
    return hashlib.sha256(canonical(values)).hexdigest()


def column_digest(column: pl.Series) -> str:
    """SHA-256 of a column: its type and its values, in their order."""
    digest = hashlib.sha256(f"{column.dtype}\n{len(column)}\n".encode())
    _feed(digest, column)
    return digest.hexdigest()


def key_digest(columns: Mapping[str, str], key: Sequence[str]) -> str:
    """SHA-256 of a table's key columns, from the digests of each."""
    return digest_of([[name, columns.get(name)] for name in key])


def _feed(digest: Any, column: pl.Series) -> None:
    digest.update(column.is_null().to_numpy().astype(np.uint8).tobytes())
    if isinstance(column.dtype, pl.List):
        _feed_numbers(digest, column.list.len().fill_null(0).to_numpy())
        elements = column.drop_nulls().explode(empty_as_null=False)
        digest.update(f"{len(elements)}\n".encode())
        _feed(digest, elements)
    elif column.dtype == pl.String:
        filled = column.fill_null("")
        _feed_numbers(digest, filled.str.len_bytes().to_numpy())
        for part in filled.to_frame().iter_slices(100_000):
            digest.update("".join(part.to_series()).encode())
    elif column.dtype == pl.Boolean:
        digest.update(column.fill_null(value=False).to_numpy().astype(np.uint8).tobytes())
    elif column.dtype == pl.Float64:
        digest.update(column.fill_null(0.0).to_numpy().astype("<f8").tobytes())
    elif column.dtype.is_integer():
        _feed_numbers(digest, column.fill_null(0).to_numpy())
    else:  # a type that no declared table has
        digest.update(canonical([str(value) for value in column.to_list()]))


def _feed_numbers(digest: Any, numbers: NDArray[Any]) -> None:
    digest.update(numbers.astype("<i8").tobytes())
