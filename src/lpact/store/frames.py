"""Declared tables as Polars frames, built from rows or columns with strict types and checked; and as files.

`frame` and `frame_from_columns` check types and missing values and keep the order of rows; `validate` also checks the
key and sorts by it. Nothing is rounded or guessed. On disk a table is a Parquet file and its CSV copy, the same bytes
for the same rows: they are written in the order of the key, with fixed compression and row groups, so that neither the
order of the work nor the chunks of a frame show in the bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from polars.exceptions import PanicException, PolarsError

from lpact.errors import RunError, TableError, did_you_mean
from lpact.store.disk import atomic_write, storage_errors
from lpact.tables import Column, Table

SCALAR_TYPES: dict[str, type[pl.DataType]] = {
    "str": pl.String,
    "int": pl.Int64,
    "float": pl.Float64,
    "bool": pl.Boolean,
}
_EXACT_IN_FLOAT = 2**53
_INT_MAX = 2**63 - 1
_USE_NONE = "use None, and say why in the row's reason column"


def element_kind(column: Column) -> str:
    """``str``, ``int``, ``float`` or ``bool``: type of the values, or of the lists' elements."""
    return column.dtype.removeprefix("list[").removesuffix("]")


def is_list(column: Column) -> bool:
    """Whether the column's values are lists."""
    return column.dtype.startswith("list[")


def column_type(column: Column) -> pl.DataType:
    """The Polars type of a declared column."""
    element = SCALAR_TYPES[element_kind(column)]()
    return pl.List(element) if is_list(column) else element


def polars_schema(table: Table) -> pl.Schema:
    """The Polars types of a declared table, in its column order."""
    return pl.Schema({column.name: column_type(column) for column in table.columns})


def empty(table: Table) -> pl.DataFrame:
    """The table without rows."""
    return pl.DataFrame(schema=polars_schema(table))


def frame(table: Table, rows: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """Build a frame from rows with exactly the declared columns.

    NumPy scalars are accepted, and integers for float columns. A number that could not be computed is None in a
    nullable column, with a reason; NaN and infinite values are errors. Inside ``list[float]`` a NaN becomes null.
    """
    expected = set(table.column_names)
    columns: dict[str, list[Any]] = {name: [] for name in table.column_names}
    for index, row in enumerate(rows):
        if row.keys() != expected:
            _check_names(table, row, where=f"table '{table.name}', row {index}")
        for name, cells in columns.items():
            cells.append(row[name])
    return pl.DataFrame([_series(table, c, columns[c.name], nan_to_null=False) for c in table.columns])


def frame_from_columns(table: Table, columns: Mapping[str, object]) -> pl.DataFrame:
    """Build a frame from whole columns, which is faster than `frame`.

    A column is a sequence or array with one value per row, or one scalar for every row (one row if all are scalars).
    List columns take a 2-D array, or one list or 1-D array per row. NaN becomes null in nullable float columns and
    inside ``list[float]``, and is an error elsewhere; infinite values are errors.
    """
    check = f"table '{table.name}'"
    _check_names(table, columns, where=check)
    cells = {c.name: _cells(table, c, columns[c.name]) for c in table.columns}
    lengths = {name: len(own) for name, own in cells.items() if own is not None}
    n_rows = next(iter(lengths.values()), 1)
    for name, length in lengths.items():
        if length != n_rows:
            raise TableError(
                "columns differ in length",
                where=f"{check}, column '{name}'",
                got=f"{length} rows",
                expected=f"{n_rows} rows, as in column '{next(iter(lengths))}'",
                remedy="give every column one value per row, or a scalar",
            )
    made = []
    for column in table.columns:
        own = cells[column.name]
        if own is not None:
            made.append(_series(table, column, own, nan_to_null=True))
        else:
            one = _series(table, column, [columns[column.name]], nan_to_null=True)
            made.append(one.new_from_index(0, n_rows) if n_rows else one.clear())
    return pl.DataFrame(made)


Cells = Sequence[Any] | np.ndarray[Any, Any]


def _cells(table: Table, column: Column, values: object) -> Cells | None:
    """The values of a column, or None for a scalar."""
    cells = _plain_sequence(values)
    scalar = isinstance(values, np.generic | str | int | float | None)
    if cells is None and not scalar and not (isinstance(values, np.ndarray) and values.ndim == 0):
        raise TableError(
            "a column is neither a sequence nor a scalar",
            where=f"table '{table.name}', column '{column.name}'",
            got=type(values).__name__,
            expected="a list, tuple, plain array or Polars series with one value per row, or a scalar",
            remedy="convert it, for instance with list(…) (or .filled(np.nan) for a masked array)",
        )
    return cells


def _plain_sequence(values: object) -> Cells | None:
    """``values`` as a sequence or array, or None if it is neither; a masked array would lose its mask."""
    if isinstance(values, pl.Series):
        numeric = values.dtype.is_numeric() and not values.null_count()
        return values.to_numpy() if numeric else values.to_list()
    if isinstance(values, np.ndarray):
        return values if values.ndim > 0 and not isinstance(values, np.ma.MaskedArray) else None
    if isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray):
        return values
    return None


class _Rejected(ValueError):
    """A value that does not fit: its index, what would fit, and the fix."""

    def __init__(self, index: int, got: object, expected: str, remedy: str) -> None:
        super().__init__(expected)
        self.index, self.got, self.expected, self.remedy = index, got, expected, remedy


def _series(table: Table, column: Column, values: Cells, *, nan_to_null: bool) -> pl.Series:
    """``values`` as the declared column. Inside ``list[float]``, NaN always becomes null."""
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


def _scalar_series(name: str, kind: str, values: Cells, nullable: bool, nan_to_null: bool) -> pl.Series:
    """A column of plain values: at once if they are of one type, else one by one."""
    nan_allowed = nullable and nan_to_null
    dtype, clean = SCALAR_TYPES[kind], None
    if isinstance(values, np.ndarray) and values.ndim == 1:
        clean = _clean_array(name, kind, values, nan_allowed)
    elif isinstance(values, list):
        clean = _clean_list(name, kind, values, nullable, nan_allowed)
    if clean is not None:
        return clean
    out: list[object] = []
    for index, value in enumerate(values):
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        if nan_allowed and isinstance(value, float | np.floating) and math.isnan(value):
            value = None
        if value is None and not nullable:
            raise _Rejected(index, None, f"a {kind} in every row", "fill the value in")
        python, expected, fits, remedy = _KINDS[kind]
        if value is not None and not fits(value):
            raise _Rejected(index, value, expected, remedy)
        convert = str.__str__ if python is str else python  # the text of an enum, not its name
        out.append(value if value is None else convert(value))
    return pl.Series(name, out, dtype=dtype)


def _fits_int(value: object) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and -_INT_MAX - 1 <= int(value) <= _INT_MAX  # type: ignore[call-overload]


def _fits_float(value: object) -> bool:
    if isinstance(value, float | np.floating):
        return math.isfinite(value)
    return _fits_int(value) and abs(int(value)) <= _EXACT_IN_FLOAT  # type: ignore[call-overload]


_KINDS: dict[str, tuple[type, str, Callable[[Any], bool], str]] = {
    "str": (
        str,
        "text that UTF-8 can encode",
        lambda value: isinstance(value, str) and value == value.encode(errors="replace").decode(),
        "convert the value to text",
    ),
    "int": (int, "an int of 64 bits", _fits_int, "convert the value with int()"),
    "float": (float, "a finite float, or an int of at most 2**53", _fits_float, _USE_NONE),
    "bool": (
        bool,
        "a bool",
        lambda value: isinstance(value, bool | np.bool_),
        "compare explicitly, such as `count > 0`",
    ),
}
"""Python type, what is expected in words, whether a value fits, and the fix."""


def _clean_array(name: str, kind: str, array: np.ndarray[Any, Any], nan_allowed: bool) -> pl.Series | None:
    """The array as a column, or None if a value does not fit."""
    source, limit = array.dtype.kind, _INT_MAX if kind == "int" else _EXACT_IN_FLOAT
    if kind == "float" and source == "f":
        array = array.astype(np.float64)
        unfit = (np.isinf(array) if nan_allowed else ~np.isfinite(array)).any()
    elif kind in ("int", "float") and source in "iu":
        low = -limit if kind == "float" else -limit - 1
        unfit = array.size and (int(array.max()) > limit or int(array.min()) < low)
    else:
        unfit = kind != "bool" or source != "b"
    return None if unfit else pl.Series(name, array, dtype=SCALAR_TYPES[kind], nan_to_null=True)


def _clean_list(name: str, kind: str, values: list[Any], nullable: bool, nan_allowed: bool) -> pl.Series | None:
    """Plain Python values as a column, or None if one does not fit or has another type."""
    if not set(map(type, values)) <= {_KINDS[kind][0], type(None)}:
        return None
    try:
        series = pl.Series(name, values, dtype=SCALAR_TYPES[kind])
    except (OverflowError, TypeError, UnicodeEncodeError):
        return None
    if kind == "float" and nan_allowed:
        series = series.fill_nan(None)
    unfit = series.null_count() and not nullable
    return None if unfit or (kind == "float" and not series.is_finite().all()) else series


def _list_series(column: Column, kind: str, rows: Cells) -> pl.Series:
    lengths = np.zeros(len(rows), dtype=np.int64)
    missing = np.zeros(len(rows), dtype=np.bool_)
    parts: list[Any] = []
    for index, row in enumerate(rows):
        if row is None and column.nullable:
            missing[index] = True
            continue
        cells = _plain_sequence(row)
        if cells is None or (isinstance(cells, np.ndarray) and cells.ndim != 1):
            expected = f"a list or 1-D array of {kind}"
            raise _Rejected(index, row, expected, "give every row its own list")
        lengths[index] = len(cells)
        parts.append(cells)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    dtypes = {part.dtype if isinstance(part, np.ndarray) else None for part in parts}
    one_type = len(dtypes) == 1 and None not in dtypes
    flat: Cells = np.concatenate(parts) if one_type else [v for part in parts for v in part]
    try:
        elements = _scalar_series("item", kind, flat, kind == "float", nan_to_null=True)
    except _Rejected as fault:
        row_index = int(np.searchsorted(offsets, fault.index, side="right")) - 1
        raise _Rejected(row_index, fault.got, fault.expected, fault.remedy) from None
    # From a buffer: `pa.array` would import pandas.
    buffers = [None, pa.py_buffer(offsets.astype(np.int64))]
    arrow = pa.LargeListArray.from_arrays(
        pa.Array.from_buffers(pa.int64(), len(offsets), buffers),
        elements.to_arrow(compat_level=pl.CompatLevel.oldest()),
        mask=pa.array(missing) if missing.any() else None,
    )
    return pl.Series(column.name, arrow, dtype=pl.List(SCALAR_TYPES[kind]))


def validate(frame: pl.DataFrame, table: Table, *, where: str | None = None) -> pl.DataFrame:
    """Check a frame and return it in its canonical form: declared column order, sorted by key.

    Text sorts by code point. The key must be unique, nulls are allowed only in nullable columns and inside
    ``list[float]``, and every float is finite. ``where`` names the frame in errors.
    """
    where = where or f"table '{table.name}'"
    check_types(frame, table, where)
    _check_values(frame, table, where)
    repeated = frame.filter(frame.select(table.key).is_duplicated()).sort(table.key)
    if repeated.height:
        raise TableError(
            "a key occurs more than once",
            where=f"{where}, key ({', '.join(table.key)})",
            got=_first_key(repeated, table),
            expected="one row per key",
            remedy="find out why the row was made twice; rows are never dropped",
        )
    return frame.select(table.column_names).sort(table.key)


def concat(table: Table, frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Join frames of one table, in any order, into one valid frame."""
    parts = [empty(table)]
    for index, part in enumerate(frames):
        check_types(part, table, f"table '{table.name}', frame {index}")
        parts.append(part.select(table.column_names))
    return validate(pl.concat(parts), table)


def _check_names(table: Table, names: Iterable[str], *, where: str) -> None:
    """Raise `TableError` unless ``names`` are exactly the declared columns, in any order."""
    found, expected = set(names), set(table.column_names)
    for name in (*sorted(found - expected, key=str), *(n for n in table.column_names if n not in found)):
        unknown = name not in expected
        nearest = did_you_mean(str(name), expected - found or expected)
        raise TableError(
            f"the table has no column '{name}'" if unknown else f"the column '{name}' is missing",
            where=f"{where}, column '{name}'",
            got=name if unknown else ", ".join(sorted(found)) or "no column",
            expected="the declared columns: " + ", ".join(table.column_names),
            remedy=nearest if unknown else f"add '{name}' (None if it is nullable and unknown)",
        )


def check_types(frame: pl.DataFrame, table: Table, where: str) -> None:
    """Raise `TableError` unless a frame has the declared columns and types."""
    schema = frame.schema
    _check_names(table, schema, where=where)
    for column in table.columns:
        found, expected = schema[column.name], column_type(column)
        if found != expected:
            element = f"pl.{SCALAR_TYPES[element_kind(column)].__name__}"
            code = f"pl.List({element})" if is_list(column) else element
            raise TableError(
                "a column has the wrong type",
                where=f"{where}, column '{column.name}'",
                got=found,
                expected=expected,
                remedy=f"cast it: frame.cast({{'{column.name}': {code}}})",
            )


def _check_values(frame: pl.DataFrame, table: Table, where: str) -> None:
    """Missing and non-finite values; all columns are checked together, since most frames are sound."""
    problems = [(column, *problem) for column in table.columns for problem in _problems(column)]
    found = frame.select(unfit.any().alias(str(place)) for place, (_, unfit, _, _) in enumerate(problems))
    if not found.height or not any(found.row(0)):
        return
    column, unfit, expected, remedy = problems[found.row(0).index(True)]
    bad = frame.filter(unfit).sort(table.key)
    raise TableError(
        "a value does not fit its column",
        where=f"{where}, column '{column.name}'",
        got=f"{bad.row(0, named=True)[column.name]!r} in the row {_first_key(bad, table)}",
        expected=expected,
        remedy=remedy,
    )


def _problems(column: Column) -> list[tuple[pl.Expr, str, str]]:
    """What can be wrong with a column's values: which rows, what is expected, and the fix."""
    values, kind, lists = pl.col(column.name), element_kind(column), is_list(column)
    problems = []
    if not column.nullable:
        problems.append((values.is_null(), "a value in every row", "fill the value in"))
    if lists and kind != "float":
        unfit = values.list.eval(pl.element().is_null()).list.any()
        problems.append((unfit, "no null inside the list", "leave the element out"))
    if kind == "float":
        in_list = values.list.eval(~pl.element().is_finite()).list.any() if lists else None
        unfit = ~values.is_finite() if in_list is None else in_list
        remedy = "use null, and say why in the row's reason column"
        problems.append((unfit, "finite floats, or null", remedy))
    return [(unfit.fill_null(value=False), expected, fix) for unfit, expected, fix in problems]


def _first_key(frame: pl.DataFrame, table: Table) -> str:
    row = frame.select(table.key).row(0, named=True)
    return ", ".join(f"{name}={value!r}" for name, value in row.items())


ROWS_PER_GROUP = 131_072
ROWS_PER_CSV_SLICE, ITEMS_PER_CSV_SLICE = 50_000, 500_000
"""Rows, and items of their lists, whose text is in memory at a time."""
ZSTD_LEVEL = 3


def table_path(root: Path, table: Table, suffix: str = ".parquet") -> Path:
    """Return where a table's Parquet file (or its ``.csv`` copy) is under ``root``."""
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
            columns = cast(pl.DataFrame, pl.from_arrow(pa.Table.from_batches([], stored.schema_arrow)))
            check_types(columns, table, str(path))
            frame = cast(pl.DataFrame, pl.from_arrow(stored.read()))
        except MemoryError:  # also that of Arrow
            raise
        except (pa.ArrowException, PolarsError, PanicException, OSError, ValueError) as error:
            if getattr(error, "errno", None) is not None:
                raise  # the disk's, not the file's
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
    types = empty(table).to_arrow(compat_level=pl.CompatLevel.oldest()).schema
    fields = []
    for column in table.columns:
        dtype = types.field(column.name).type
        about = {"meaning": column.meaning, "unit": column.unit}
        fields.append(pa.field(column.name, dtype, nullable=column.nullable, metadata=about))
    metadata = {"table": table.name, "meaning": table.meaning, "key": json.dumps(table.key)}
    return pa.schema(fields, metadata=metadata)


def csv_rows(frame: pl.DataFrame, table: Table) -> Iterator[str]:
    """Rows as CSV text: null is an empty field, empty text is ``""``, lists are JSON, floats round-trip."""
    lists = [column for column in table.columns if is_list(column)]
    n_items = sum(int(frame[column.name].list.len().sum()) for column in lists)
    most = ITEMS_PER_CSV_SLICE * frame.height // max(1, n_items)
    for part in frame.iter_slices(max(1, min(ROWS_PER_CSV_SLICE, most))):
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
