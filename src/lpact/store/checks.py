"""A frame against its declaration: columns, types, missing values and the key."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from lpact.errors import TableError
from lpact.store._values import SCALAR_TYPES, element_kind, is_list
from lpact.store.frames import check_names, column_type, empty
from lpact.tables import Column, Table


def validate(frame: pl.DataFrame, table: Table, *, where: str | None = None) -> pl.DataFrame:
    """Check a frame and return it in its canonical form: declared column order, sorted by key.

    Text sorts by code point. The key must be unique, nulls may stand only in nullable columns and
    inside ``list[float]``, and every float is finite. ``where`` names the frame in errors.
    """
    where = where or f"table '{table.name}'"
    _check_types(frame, table, where)
    _check_values(frame, table, where)
    _check_key(frame, table, where)
    return frame.select(table.column_names).sort(table.key)


def concat(table: Table, frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Join frames of one table, in any order, into one valid frame."""
    parts = [empty(table)]
    for index, part in enumerate(frames):
        _check_types(part, table, f"table '{table.name}', frame {index}")
        parts.append(part.select(table.column_names))
    return validate(pl.concat(parts), table)


def _check_types(frame: pl.DataFrame, table: Table, where: str) -> None:
    schema = frame.schema
    check_names(table, schema, where=where)
    for column in table.columns:
        found, expected = schema[column.name], column_type(column)
        if found != expected:
            raise TableError(
                "a column has the wrong type",
                where=f"{where}, column '{column.name}'",
                got=found,
                expected=expected,
                remedy=f"cast it: frame.cast({{'{column.name}': {_type_code(column)}}})",
            )


def _type_code(column: Column) -> str:
    element = f"pl.{SCALAR_TYPES[element_kind(column)].__name__}"
    return f"pl.List({element})" if is_list(column) else element


def _check_values(frame: pl.DataFrame, table: Table, where: str) -> None:
    """Missing and non-finite values; all columns are looked at together, since most frames are sound."""
    problems = [(column, *problem) for column in table.columns for problem in _problems(column)]
    found = frame.select(
        unfit.any().alias(str(place)) for place, (_, unfit, _, _) in enumerate(problems)
    )
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
    """What can be wrong with a column's values: where it is, what is expected, and what to do.

    A list column is unfit where any of its elements is.
    """
    values, kind = pl.col(column.name), element_kind(column)
    problems = []
    if not column.nullable:
        problems.append((values.is_null(), "a value in every row", "fill the value in"))
    if is_list(column) and kind != "float":
        no_null = "no null inside the list"
        unfit = values.list.eval(pl.element().is_null()).list.any()
        problems.append((unfit, no_null, "leave the element out"))
    if kind == "float":
        finite = "finite floats, or null"
        unfit = ~values.is_finite()
        if is_list(column):
            unfit = values.list.eval(~pl.element().is_finite()).list.any()
        problems.append((unfit, finite, "use null, and say why in the row's reason column"))
    return [
        (unfit.fill_null(value=False), expected, remedy) for unfit, expected, remedy in problems
    ]


def _check_key(frame: pl.DataFrame, table: Table, where: str) -> None:
    repeated = frame.filter(frame.select(table.key).is_duplicated()).sort(table.key)
    if repeated.height:
        raise TableError(
            "a key occurs more than once",
            where=f"{where}, key ({', '.join(table.key)})",
            got=_first_key(repeated, table),
            expected="one row per key",
            remedy="find out why the row was made twice; rows are never dropped",
        )


def _first_key(frame: pl.DataFrame, table: Table) -> str:
    row = frame.select(table.key).row(0, named=True)
    return ", ".join(f"{name}={value!r}" for name, value in row.items())
