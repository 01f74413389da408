"""The order of units: of every recording by hash, and whether all tables agree with it.

Patterns are vectors over the units of a recording. If units change places in the index, or in the patterns, every
number that is made from them later goes to another unit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl

from lpact.analyses.lpact.tables.relational import (
    BRAIN_PATTERNS,
    BRAIN_UNIT_INDEX,
    HALF_PATTERNS,
    MODEL_PATTERNS,
)
from lpact.archive.lockfile import UnitOrder
from lpact.archive.model import Problem
from lpact.tables import RECORDING_KEY, Table, declared_tables

MOST_ROWS = 1000
"""Rows of one table that are named."""
HASHES = ("unit_order_hash", "model_unit_order_hash")
"""Columns that hold the hash of a recording's own unit order."""
_NONE = "none"
"""What the inventory holds for a recording that could not be prepared."""
_KEY = list(RECORDING_KEY)
_COUNT, _PLACE, _ITSELF = "\x00count", "\x00place", "\x00itself"
Recording = tuple[str, ...]


def unit_order_hash(units: list[str]) -> str:
    """Hash of units in their order, as tables hold it."""
    return hashlib.sha256("\x1f".join(units).encode()).hexdigest()[:16]


def unit_orders(index: pl.DataFrame) -> tuple[UnitOrder, ...]:
    """The unit order of every recording, from the index of units."""
    return tuple(
        UnitOrder(
            **dict(zip(RECORDING_KEY, recording, strict=True)),
            n_units=len(units),
            unit_order_hash=unit_order_hash(units),
        )
        for recording, units in sorted(_units(index).items())
    )


def _units(index: pl.DataFrame) -> dict[Recording, list[str]]:
    units: dict[Recording, list[str]] = {}
    for *recording, unit in index.sort([*_KEY, "unit_index"]).select([*_KEY, "unit"]).iter_rows():
        units.setdefault(tuple(recording), []).append(unit)
    return units


def order_problems(index: pl.DataFrame, locked: tuple[UnitOrder, ...]) -> list[Problem]:
    """Recordings whose units are not those of the lock, or not in its order."""
    now = {_recording(order): order for order in unit_orders(index)}
    problems = []
    for then in locked:
        found = now.get(_recording(then))
        if found is None or found.unit_order_hash == then.unit_order_hash:
            continue
        what = "the units stand in another order, or are other units"
        if found.n_units != then.n_units:
            what = f"there are {found.n_units} units, not {then.n_units}"
        old, new = then.unit_order_hash, found.unit_order_hash
        problems.append(_problem(BRAIN_UNIT_INDEX, _recording(then), f"{what} ({old} → {new})"))
    return problems


def consistency_problems(
    names: list[str], table: Callable[[str], pl.DataFrame | None]
) -> list[Problem]:
    """Where tables of one run disagree about the order of units; ``table`` gives one by name, or None."""
    index = table(BRAIN_UNIT_INDEX.name) if BRAIN_UNIT_INDEX.name in names else None
    if index is None:
        return []
    units = _units(index)
    problems = list(_places(index))
    for name in names:
        declared = declared_tables()[name]
        hashes = [column for column in HASHES if column in declared.column_names]
        if not hashes or not set(RECORDING_KEY) <= set(declared.column_names):
            continue
        found = table(name)
        if found is not None:
            problems += _hashes(declared, found, hashes, units)
            if declared in (BRAIN_PATTERNS, HALF_PATTERNS, MODEL_PATTERNS):
                problems += _patterns(declared, found, index)
    return problems


def _places(index: pl.DataFrame) -> Iterator[Problem]:
    """Places must count from 0, each once."""
    rows = index.group_by(_KEY).agg(pl.col("unit_index").sort()).sort(_KEY)
    for *recording, places in rows.iter_rows():
        if places != list(range(len(places))):
            what = "the places of its units are not 0, 1, 2 …, each once"
            yield _problem(BRAIN_UNIT_INDEX, tuple(recording), what)


def _hashes(
    declared: Table, frame: pl.DataFrame, columns: list[str], units: Mapping[Recording, list[str]]
) -> Iterator[Problem]:
    expected = {recording: unit_order_hash(own) for recording, own in units.items()}
    for column in columns:
        stated = frame.select([*_KEY, column]).unique().sort([*_KEY, column])
        for *recording, value in stated.iter_rows():
            order = expected.get(tuple(recording))
            if order is not None and value not in (order, _NONE):
                what = f"the unit order is {value} here, but {order} by the index of units"
                yield _problem(declared, tuple(recording), what, column=column)


def _patterns(declared: Table, frame: pl.DataFrame, index: pl.DataFrame) -> Iterator[Problem]:
    """A pattern has one element a unit, and none at the unit itself."""
    counts = index.group_by(_KEY).agg(pl.len().cast(pl.Int64).alias(_COUNT))
    rows = frame.filter(pl.col("pattern").list.len() > 0).join(counts, on=_KEY, how="inner")
    length = pl.col("pattern").list.len().cast(pl.Int64)
    other = rows.filter(length != pl.col(_COUNT)).with_columns(length.alias(_PLACE))
    for row in other.drop("pattern").head(MOST_ROWS).iter_rows(named=True):
        what = f"the pattern has {row[_PLACE]} elements for {row[_COUNT]} units"
        yield _row_problem(declared, row, what, "pattern")
    if "unit" not in declared.column_names:
        return
    places = index.select([*_KEY, "unit", pl.col("unit_index").alias(_PLACE)])
    rows = rows.filter(length == pl.col(_COUNT)).join(places, on=[*_KEY, "unit"], how="left")
    itself = pl.col("pattern").list.get(pl.col(_PLACE), null_on_oob=True).alias(_ITSELF)
    rows = rows.with_columns(itself).drop("pattern")
    unknown = pl.col(_PLACE).is_null()
    moved = pl.lit(value=False)
    if "unit_index" in declared.column_names:
        moved = pl.col("unit_index") != pl.col(_PLACE)
    wrong = rows.filter(unknown | moved.fill_null(value=False) | pl.col(_ITSELF).is_not_null())
    for row in wrong.head(MOST_ROWS).iter_rows(named=True):
        place = row[_PLACE]
        if place is None:
            yield _row_problem(declared, row, "the index of units has no such unit", "unit")
        elif row.get("unit_index", place) != place:
            what = f"the unit is at place {row['unit_index']} here, but at {place} by the index of units"
            yield _row_problem(declared, row, what, "unit_index")
        else:
            what = (
                f"there is a number at the unit itself (place {place}): units are in another order"
            )
            yield _row_problem(declared, row, what, "pattern")
    if wrong.height > MOST_ROWS:
        what = f"the same in {wrong.height - MOST_ROWS} more rows"
        yield Problem("units", declared.name, what, column="pattern")


def _row_problem(declared: Table, row: Mapping[str, Any], what: str, column: str) -> Problem:
    key = {name: row[name] for name in declared.key}
    return Problem("units", declared.name, what, row=key, column=column)


def _recording(order: UnitOrder) -> Recording:
    return (order.dataset, order.subject, order.session, order.run)


def _problem(
    declared: Table, recording: Recording, what: str, *, column: str | None = None
) -> Problem:
    row = dict(zip(RECORDING_KEY, recording, strict=True))
    return Problem("units", declared.name, what, row=row, column=column)
