"""Declared tables as Polars frames: build them from rows or columns, with strict types.

Builders check types and missing values and keep the order of the rows; `lpact.store.validate`
checks the key and sorts by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from lpact.errors import TableError, did_you_mean
from lpact.store._values import SCALAR_TYPES, column_series, element_kind, is_list, plain_sequence
from lpact.tables import Column, Table


def polars_schema(table: Table) -> pl.Schema:
    """Return the Polars types of a declared table, in its column order."""
    return pl.Schema({column.name: column_type(column) for column in table.columns})


def column_type(column: Column) -> pl.DataType:
    """Return the Polars type of a declared column."""
    element = SCALAR_TYPES[element_kind(column)]()
    return pl.List(element) if is_list(column) else element


def empty(table: Table) -> pl.DataFrame:
    """Return the table without rows."""
    return pl.DataFrame(schema=polars_schema(table))


def frame(table: Table, rows: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """Build a frame from rows that hold exactly the declared columns.

    NumPy scalars are accepted, and integers for float columns. A number that could not be
    computed is None in a nullable column, with a reason; NaN and infinite values are errors.
    Inside ``list[float]`` a NaN becomes null.
    """
    expected = set(table.column_names)
    columns: dict[str, list[Any]] = {name: [] for name in table.column_names}
    for index, row in enumerate(rows):
        if row.keys() != expected:
            check_names(table, row, where=f"table '{table.name}', row {index}")
        for name, cells in columns.items():
            cells.append(row[name])
    return pl.DataFrame(
        [column_series(table, c, columns[c.name], nan_to_null=False) for c in table.columns]
    )


def frame_from_columns(table: Table, columns: Mapping[str, object]) -> pl.DataFrame:
    """Build a frame from whole columns: the fast twin of `frame`.

    A column is a sequence or array with one value per row, or one scalar for every row (at least
    one row results when all are scalars). List columns take a 2-D array or one list or 1-D array
    a row. NaN becomes null in nullable float columns and inside ``list[float]``, and is an error
    elsewhere; infinite values are always errors.
    """
    check_names(table, columns, where=f"table '{table.name}'")
    lengths = {c.name: _length(table, c, columns[c.name]) for c in table.columns}
    known = {name: length for name, length in lengths.items() if length is not None}
    n_rows = next(iter(known.values()), 1)
    for name, length in known.items():
        if length != n_rows:
            first = next(iter(known))
            raise TableError(
                "columns differ in length",
                where=f"table '{table.name}', column '{name}'",
                got=f"{length} rows",
                expected=f"{n_rows} rows, as in column '{first}'",
                remedy="give every column one value per row, or a scalar",
            )
    return pl.DataFrame([_column(table, c, columns[c.name], n_rows) for c in table.columns])


def _column(table: Table, column: Column, values: object, n_rows: int) -> pl.Series:
    cells = plain_sequence(values)
    if cells is not None:
        return column_series(table, column, cells, nan_to_null=True)
    one = column_series(table, column, [values], nan_to_null=True)
    return one.new_from_index(0, n_rows) if n_rows else one.clear()


def _length(table: Table, column: Column, values: object) -> int | None:
    """Number of rows of a column, or None for a scalar."""
    cells = plain_sequence(values)
    if cells is not None:
        return len(cells)
    scalar = isinstance(values, np.generic | str | int | float | None)
    if scalar or (isinstance(values, np.ndarray) and values.ndim == 0):
        return None
    raise TableError(
        "a column is neither a sequence nor a scalar",
        where=f"table '{table.name}', column '{column.name}'",
        got=type(values).__name__,
        expected="a list, tuple, plain array or Polars series with one value per row, or a scalar",
        remedy="convert it, for instance with list(…) (or .filled(np.nan) for a masked array)",
    )


def check_names(table: Table, names: Iterable[str], *, where: str) -> None:
    """Raise `TableError` unless ``names`` are exactly the declared columns, in any order."""
    found = set(names)
    for name in sorted(found - set(table.column_names), key=str):
        raise TableError(
            f"the table has no column '{name}'",
            where=f"{where}, column '{name}'",
            got=name,
            expected="the declared columns: " + ", ".join(table.column_names),
            remedy=did_you_mean(str(name), set(table.column_names) - found or table.column_names),
        )
    for name in table.column_names:
        if name not in found:
            raise TableError(
                f"the column '{name}' is missing",
                where=f"{where}, column '{name}'",
                got=", ".join(sorted(found)) or "no column",
                expected="the declared columns: " + ", ".join(table.column_names),
                remedy=f"add '{name}' (None where it is nullable and not known)",
            )
