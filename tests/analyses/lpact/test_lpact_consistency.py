"""Tables of a run that disagree on the order of units are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import polars as pl
import pytest

from lpact.analyses.lpact.consistency import unit_order_faults
from lpact.errors import RunError

if TYPE_CHECKING:
    from lpact.study import Run

INDEX = "relational/brain_unit_index"
PATTERNS = "relational/brain_alignment_patterns"
Edit = Callable[[pl.DataFrame], pl.DataFrame]


def faults(run: Run, name: str = "", edit: Edit | None = None) -> list[str]:
    def rows(table: str) -> pl.DataFrame:
        frame = run.table(table)
        return edit(frame) if edit is not None and table == name else frame

    return list(unit_order_faults(rows))


def test_a_run_as_it_was_written_has_no_fault(small_run: Run) -> None:
    assert faults(small_run) == []


def _reverse_first(frame: pl.DataFrame) -> pl.DataFrame:
    """The units of the first recording in reverse order."""
    first = frame.row(0, named=True)
    own = pl.all_horizontal(pl.col(k) == first[k] for k in ("dataset", "subject", "session", "run"))
    last = frame.filter(own).height - 1
    place = pl.col("unit_index")
    return frame.with_columns(unit_index=pl.when(own).then(last - place).otherwise(place))


def _repeat_place(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(unit_index=pl.lit(0, dtype=pl.Int64))


def _shift(frame: pl.DataFrame) -> pl.DataFrame:
    """Every pattern moved by one unit."""
    turned = [[*p[1:], p[0]] if p else p for p in frame["pattern"].to_list()]
    return frame.with_columns(pl.Series("pattern", turned, dtype=pl.List(pl.Float64)))


def _cut(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("pattern").list.head(3))


def _rename(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(unit=pl.lit("nobody"))


def _move(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("unit_index") + 1)


@pytest.mark.parametrize(
    ("name", "edit", "what"),
    [
        (INDEX, _reverse_first, "unit_order_hash is"),
        (INDEX, _repeat_place, "unit_index does not count 0, 1, 2"),
        (PATTERNS, _shift, "a number at the unit itself: units are in another order"),
        (PATTERNS, _cut, "another number of elements than units"),
        (PATTERNS, _rename, f"{INDEX} has no such unit"),
        (PATTERNS, _move, f"unit_index is not that of {INDEX}"),
    ],
)
def test_another_order_is_named_with_table_and_recording(name: str, edit: Edit, what: str, small_run: Run) -> None:
    found = faults(small_run, name, edit)
    assert any(what in fault for fault in found)
    first = small_run.table(name).row(0, named=True)
    recording = f"dataset={first['dataset']!r}, subject={first['subject']!r}"
    assert any(fault.startswith(f"{name}, {recording}") and what in fault for fault in found)


def test_long_lists_are_cut_with_a_count(small_run: Run) -> None:
    found = [f for f in faults(small_run, PATTERNS, _shift) if f.startswith(PATTERNS)]
    n_rows = small_run.table(PATTERNS).filter(pl.col("pattern").list.len() > 0).height
    assert n_rows > len(found)
    assert found[-1].endswith(f"in {n_rows - len(found) + 1} more rows")


def test_tables_that_the_run_does_not_have_are_left_out(small_run: Run) -> None:
    def rows(table: str) -> pl.DataFrame:
        if table != INDEX:
            raise RunError(f"the run has no table '{table}'")
        return _repeat_place(small_run.table(table))

    assert all("does not count" in fault for fault in unit_order_faults(rows))
    assert list(unit_order_faults(rows))
