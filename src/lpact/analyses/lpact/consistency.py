"""Whether all tables of a run agree on the order of units, and have no more draws than the study asks for.

Patterns are vectors over the units of a recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from lpact.analyses.base import Rows
from lpact.analyses.lpact.tables import assay, audit, levels
from lpact.datasets.base import Units
from lpact.errors import RunError
from lpact.tables import RECORDING_KEY, Table

INDEX = levels.BRAIN_UNIT_INDEX
PATTERNS = (levels.BRAIN_PATTERNS, levels.HALF_PATTERNS, levels.MODEL_PATTERNS)
HASHES = ("unit_order_hash", "model_unit_order_hash")
"""Columns with the hash of a recording's own unit order."""
MOST_NAMED = 20
"""Rows of one table that are named."""
_NONE = "none"
"""What the inventory has for a recording that could not be prepared."""
_KEY = list(RECORDING_KEY)
_HASHED = tuple(
    table
    for table in (*audit.TABLES, *levels.TABLES, *assay.TABLES)
    if set(HASHES) & set(table.column_names) and set(RECORDING_KEY) <= set(table.column_names)
)


def unit_order_faults(rows: Rows) -> Iterator[str]:
    """Where the tables of a run disagree on the order of units, one sentence each.

    Places count from 0, every table has the hash of that order, and a pattern has one element per other unit.
    """
    index = _table(rows, INDEX)
    if index is None:
        return
    yield from _places(index)
    units = index.sort([*_KEY, "unit_index"]).group_by(_KEY, maintain_order=True).agg("unit")
    orders = {tuple(place): Units(own, own).order_hash() for *place, own in units.iter_rows()}
    for table in _HASHED:
        frame = _table(rows, table)
        if frame is not None:
            yield from _hashes(table, frame, orders)
            if table in PATTERNS:
                yield from _patterns(table, frame, index)


def _table(rows: Rows, table: Table) -> pl.DataFrame | None:
    try:
        return rows(table.name)
    except (RunError, KeyError):
        return None


def draw_faults(n_draws: int, n_permutations: int, rows: Rows) -> Iterator[str]:
    """Rows with more draws than the configuration asks for: more of them make any p-value smaller."""
    column, listed = pl.col("draw") + 1, pl.col("draws").list.len()
    allowed = pl.when(pl.col("test") == "surrogate").then(n_draws).otherwise(n_permutations)
    for table, wrong in (
        (levels.PREDICTIVE_SCORES, column > n_draws),
        (levels.UNIT_SCORES, column > n_draws),
        (levels.MODEL_PATTERNS, column > n_draws),
        (levels.CONTROL_NULLS, pl.col("n_draws") > n_draws),
        (levels.PROFILE_SCORES, pl.col("n_draws") > n_draws),
        (levels.RELATIONAL_NULLS, listed > allowed),
    ):
        frame = _table(rows, table)
        if frame is not None:
            yield from _listed(table, frame.filter(wrong), "more draws than the study asks for")


def _places(index: pl.DataFrame) -> Iterator[str]:
    orders = index.group_by(_KEY).agg(pl.col("unit_index").sort()).sort(_KEY)
    for *recording, places in orders.iter_rows():
        if places != list(range(len(places))):
            yield f"{INDEX.name}, {_named(_KEY, recording)}: unit_index does not count 0, 1, 2 …"


def _hashes(table: Table, frame: pl.DataFrame, orders: Mapping[tuple[str, ...], str]) -> Iterator[str]:
    for column in (own for own in HASHES if own in frame.columns):
        stated = frame.select([*_KEY, column]).unique().sort([*_KEY, column])
        for *recording, value in stated.iter_rows():
            order = orders.get(tuple(recording))
            if order is not None and value not in (order, _NONE):
                place = f"{table.name}, {_named(_KEY, recording)}"
                yield f"{place}: {column} is {value}, but the units of {INDEX.name} have {order}"


def _patterns(table: Table, frame: pl.DataFrame, index: pl.DataFrame) -> Iterator[str]:
    """Patterns of another length, and patterns with a number at the unit itself."""
    counts = index.group_by(_KEY).agg(pl.len().cast(pl.Int64).alias("n_own_units"))
    length = pl.col("pattern").list.len().cast(pl.Int64).alias("length")
    rows = frame.with_columns(length).filter(pl.col("length") > 0).join(counts, on=_KEY)
    wrong = rows.filter(pl.col("length") != pl.col("n_own_units"))
    yield from _listed(table, wrong, "the pattern has another number of elements than units")
    if "unit" not in table.column_names:
        return
    places = index.select([*_KEY, "unit", pl.col("unit_index").alias("place")])
    rows = rows.filter(pl.col("length") == pl.col("n_own_units"))
    rows = rows.join(places, on=[*_KEY, "unit"], how="left")
    itself = pl.col("pattern").list.get(pl.col("place"), null_on_oob=True).alias("itself")
    rows = rows.with_columns(itself)
    unknown = rows.filter(pl.col("place").is_null())
    yield from _listed(table, unknown, f"{INDEX.name} has no such unit")
    if "unit_index" in table.column_names:
        moved = rows.filter(pl.col("unit_index") != pl.col("place"))
        yield from _listed(table, moved, f"unit_index is not that of {INDEX.name}")
    wrong = rows.filter(pl.col("itself").is_not_null())
    yield from _listed(table, wrong, "a number at the unit itself: units are in another order")


def _listed(table: Table, wrong: pl.DataFrame, what: str) -> Iterator[str]:
    for row in wrong.head(MOST_NAMED).select(table.key).iter_rows():
        yield f"{table.name}, {_named(table.key, row)}: {what}"
    if wrong.height > MOST_NAMED:
        yield f"{table.name}: {what}, in {wrong.height - MOST_NAMED} more rows"


def _named(columns: Sequence[str], values: Sequence[object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in zip(columns, values, strict=True))
