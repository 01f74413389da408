"""Python and NumPy values → one column of a declared type. Nothing is rounded or guessed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from lpact.errors import TableError
from lpact.tables import Column, Table

SCALAR_TYPES: dict[str, type[pl.DataType]] = {
    "str": pl.String,
    "int": pl.Int64,
    "float": pl.Float64,
    "bool": pl.Boolean,
}
_PLAIN: dict[str, set[type]] = {
    "str": {str, type(None)},
    "int": {int, type(None)},
    "float": {float, type(None)},
    "bool": {bool, type(None)},
}
"""Types of values that Polars takes as they are."""
_EXACT_IN_FLOAT = 2**53
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
_USE_NONE = "use None, and say why in the row's reason column"


class _Rejected(ValueError):
    """A value that does not fit: its place in the sequence, what would fit, and what to do."""

    def __init__(self, index: int, got: object, expected: str, remedy: str) -> None:
        super().__init__(expected)
        self.index, self.got, self.expected, self.remedy = index, got, expected, remedy


def element_kind(column: Column) -> str:
    """``str``, ``int``, ``float`` or ``bool``: type of the values, or of the lists' elements."""
    return column.dtype.removeprefix("list[").removesuffix("]")


def is_list(column: Column) -> bool:
    """Whether each row of the column holds a list."""
    return column.dtype.startswith("list[")


def column_series(
    table: Table, column: Column, values: Sequence[Any] | np.ndarray[Any, Any], *, nan_to_null: bool
) -> pl.Series:
    """Return ``values`` (one a row) as the declared column.

    Integers are accepted for float columns where they are exact (up to 2⁵³). Infinite values are
    always errors. A NaN becomes null if ``nan_to_null`` and the column is nullable, and is an
    error otherwise. Elements of ``list[float]`` have no reason of their own: there a NaN always
    becomes null.
    """
    kind = element_kind(column)
    try:
        if is_list(column):
            return _list_series(column, kind, values)
        return _scalar_series(column.name, kind, values, column.nullable, nan_to_null)
    except _Rejected as fault:
        raise TableError(
            "a value does not fit its column",
            where=f"table '{table.name}', column '{column.name}', row {fault.index}",
            got=f"{fault.got!r} ({type(fault.got).__name__})",
            expected=fault.expected,
            remedy=fault.remedy,
        ) from None


def _scalar_series(
    name: str, kind: str, values: Any, nullable: bool, nan_to_null: bool
) -> pl.Series:
    dtype = SCALAR_TYPES[kind]
    if isinstance(values, np.ndarray) and values.ndim == 1:
        fast = _clean_array(kind, values, nullable and nan_to_null)
        if fast is not None:
            return pl.Series(name, fast, dtype=dtype, nan_to_null=True)
    elif isinstance(values, list):
        plain = _clean_list(name, kind, values, nullable, nan_to_null)
        if plain is not None:
            return plain
    convert = _CONVERTERS[kind]
    out: list[object] = []
    for index, value in enumerate(values):
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        if (
            nan_to_null
            and nullable
            and isinstance(value, float | np.floating)
            and math.isnan(value)
        ):
            value = None
        if value is None:
            if not nullable:
                raise _Rejected(index, None, f"a {kind} in every row", "fill the value in")
            out.append(None)
        else:
            out.append(convert(index, value))
    return pl.Series(name, out, dtype=dtype)


def _clean_array(
    kind: str, array: np.ndarray[Any, Any], nan_allowed: bool
) -> np.ndarray[Any, Any] | None:
    """The array in its column's type, or None: the slow path then names the value that is unfit."""
    source = array.dtype.kind
    if kind == "bool" and source == "b":
        return array
    if kind == "float" and source == "f":
        wide = array.astype(np.float64)
        unfit = np.isinf(wide) if nan_allowed else ~np.isfinite(wide)
        return None if unfit.any() else wide
    if kind in ("int", "float") and source in "iu":
        limit = _INT_MAX if kind == "int" else _EXACT_IN_FLOAT
        if array.size and (
            int(array.max()) > limit or (kind == "float" and int(array.min()) < -limit)
        ):
            return None
        return array.astype(np.int64 if kind == "int" else np.float64)
    return None


def _clean_list(
    name: str, kind: str, values: list[Any], nullable: bool, nan_to_null: bool
) -> pl.Series | None:
    """Plain Python values as a column at once, or None: the slow path then converts them or names the unfit one."""
    if not set(map(type, values)) <= _PLAIN[kind]:
        return None
    try:
        series = pl.Series(name, values, dtype=SCALAR_TYPES[kind])
    except (OverflowError, TypeError, UnicodeEncodeError):
        return None
    if kind == "float" and nan_to_null and nullable:
        series = series.fill_nan(None)
    unfit = (not nullable and series.null_count()) or (
        kind == "float" and not series.is_finite().all()
    )
    return None if unfit else series


def _list_series(column: Column, kind: str, rows: Any) -> pl.Series:
    lengths = np.zeros(len(rows), dtype=np.int64)
    missing = np.zeros(len(rows), dtype=np.bool_)
    parts: list[Any] = []
    for index, row in enumerate(rows):
        if row is None:
            if not column.nullable:
                raise _Rejected(index, None, f"a list of {kind} in every row", "fill the list in")
            missing[index] = True
            continue
        row = plain_sequence(row)
        if row is None or (isinstance(row, np.ndarray) and row.ndim != 1):
            raise _Rejected(
                index,
                rows[index],
                f"a list or 1-D array of {kind}",
                "give every row a list of its own",
            )
        lengths[index] = len(row)
        parts.append(row)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    try:
        flat = _scalar_series("item", kind, _flatten(parts), kind == "float", nan_to_null=True)
    except _Rejected as fault:
        row_index = int(np.searchsorted(offsets, fault.index, side="right")) - 1
        raise _Rejected(row_index, fault.got, fault.expected, fault.remedy) from None
    # From a buffer: `pa.array` would import pandas.
    buffers = [None, pa.py_buffer(offsets.astype(np.int64))]
    arrow = pa.LargeListArray.from_arrays(
        pa.Array.from_buffers(pa.int64(), len(offsets), buffers),
        flat.to_arrow(compat_level=pl.CompatLevel.oldest()),
        mask=pa.array(missing) if missing.any() else None,
    )
    return pl.Series(column.name, arrow, dtype=pl.List(SCALAR_TYPES[kind]))


def _flatten(parts: list[Any]) -> Any:
    dtypes = {part.dtype if isinstance(part, np.ndarray) else None for part in parts}
    if len(dtypes) == 1 and None not in dtypes:
        return np.concatenate(parts)
    return [value for part in parts for value in part]


def plain_sequence(values: object) -> Sequence[Any] | np.ndarray[Any, Any] | None:
    """Return ``values`` as a sequence or array, or None if it is neither (a string is a value).

    A masked array is refused: its mask would be lost.
    """
    if isinstance(values, pl.Series):
        numeric = values.dtype.is_numeric() and not values.null_count()
        return values.to_numpy() if numeric else values.to_list()
    if isinstance(values, np.ma.MaskedArray):
        return None
    if isinstance(values, np.ndarray):
        return values if values.ndim > 0 else None
    if isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray):
        return values
    return None


def _to_str(index: int, value: object) -> str:
    if not isinstance(value, str):
        raise _Rejected(index, value, "a str", "convert the value to text")
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        remedy = "replace the lone surrogates in the text"
        raise _Rejected(index, value, "text that UTF-8 can hold", remedy) from None
    return text


def _to_int(index: int, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise _Rejected(index, value, "an int", "convert the value with int()")
    if not _INT_MIN <= int(value) <= _INT_MAX:
        raise _Rejected(index, value, "an int of 64 bits", "store it as text, or in a larger unit")
    return int(value)


def _to_float(index: int, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise _Rejected(index, value, "a float", "convert the value with float()")
    if isinstance(value, int | np.integer):
        if abs(int(value)) > _EXACT_IN_FLOAT:
            raise _Rejected(index, value, "an int of at most 2**53", "convert it with float()")
    elif not math.isfinite(value):
        raise _Rejected(index, value, "a finite float", _USE_NONE)
    return float(value)


def _to_bool(index: int, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise _Rejected(index, value, "a bool", "compare explicitly, such as `count > 0`")
    return bool(value)


_CONVERTERS: dict[str, Callable[[int, object], object]] = {
    "str": _to_str,
    "int": _to_int,
    "float": _to_float,
    "bool": _to_bool,
}
