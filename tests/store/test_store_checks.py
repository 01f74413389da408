from __future__ import annotations

import math
import random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_examples import EVERY_TYPE, ROWS, row

from lpact.errors import TableError
from lpact.store import concat, empty, frame, validate

TWO = frame(EVERY_TYPE, [row(name="a"), row(name="b")])


@settings(deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_validate_sorts_by_key_whatever_the_order(rows, rng: random.Random) -> None:
    shuffled = list(rows)
    rng.shuffle(shuffled)
    names = list(EVERY_TYPE.column_names)
    rng.shuffle(names)
    valid = validate(frame(EVERY_TYPE, shuffled).select(names), EVERY_TYPE)
    assert valid.to_dicts() == sorted(rows, key=lambda cells: (cells["name"], cells["draw"]))
    assert tuple(valid.columns) == EVERY_TYPE.column_names


def test_text_sorts_by_code_point() -> None:
    names = ["é", "z", "Z", "\U0001f600", "\uffee", "a", "B", "10", "9", ""]
    valid = validate(frame(EVERY_TYPE, [row(name=name) for name in names]), EVERY_TYPE)
    assert valid["name"].to_list() == [
        "",
        "10",
        "9",
        "B",
        "Z",
        "a",
        "z",
        "é",
        "\uffee",
        "\U0001f600",
    ]


def test_a_repeated_key_is_shown() -> None:
    rows = [row(name=name, draw=2) for name in ("c", "b", "a", "c", "b")]
    with pytest.raises(TableError, match="more than once") as caught:
        validate(frame(EVERY_TYPE, rows), EVERY_TYPE)
    assert caught.value.got == "name='b', draw=2"


@pytest.mark.parametrize(
    ("wrong", "column", "mend"),
    [
        (pl.UInt32, "draw", "pl.Int64"),
        (pl.Float32, "score", "pl.Float64"),
        (pl.Null, "delta", "pl.Float64"),
        (pl.Categorical, "name", "pl.String"),
        (pl.List(pl.Float32), "pattern", "pl.List(pl.Float64)"),
    ],
)
def test_a_wrong_type_is_named_with_the_cast_that_mends_it(wrong, column, mend) -> None:
    with pytest.raises(TableError, match="wrong type") as caught:
        validate(TWO.cast({column: wrong}), EVERY_TYPE)
    assert caught.value.where == f"table 'audits/every_type', column '{column}'"
    assert caught.value.remedy == f"cast it: frame.cast({{'{column}': {mend}}})"


@pytest.mark.parametrize(
    ("change", "column"),
    [
        (pl.lit(None, pl.Float64).alias("score"), "score"),
        (pl.lit(math.nan).alias("score"), "score"),
        (pl.lit(math.nan).alias("delta"), "delta"),
        (pl.lit(-math.inf).alias("delta"), "delta"),
        (pl.lit(None, pl.List(pl.Float64)).alias("pattern"), "pattern"),
        (pl.lit([1.0, math.nan], pl.List(pl.Float64)).alias("pattern"), "pattern"),
        (pl.lit([1.0, math.inf], pl.List(pl.Float64)).alias("pattern"), "pattern"),
        (pl.lit([1, None], pl.List(pl.Int64)).alias("layers"), "layers"),
        (pl.lit(["u", None], pl.List(pl.String)).alias("units"), "units"),
    ],
)
def test_unfit_values_are_named_with_their_row(change, column) -> None:
    changed = TWO.with_columns(pl.when(pl.col("name") == "b").then(change).otherwise(pl.col(column)).alias(column))
    with pytest.raises(TableError, match="does not fit") as caught:
        validate(changed, EVERY_TYPE)
    assert caught.value.where == f"table 'audits/every_type', column '{column}'"
    assert "name='b', draw=0" in str(caught.value.got)


def test_nulls_are_kept_where_they_are_declared() -> None:
    rows = [row(delta=None, best=None, units=None, pattern=[None, 1.0, None])]
    assert validate(frame(EVERY_TYPE, rows), EVERY_TYPE).to_dicts() == rows


def test_missing_and_unknown_columns_are_named() -> None:
    with pytest.raises(TableError, match="did you mean 'units'"):
        validate(TWO.rename({"units": "unit"}), EVERY_TYPE)
    with pytest.raises(TableError, match="'units' is missing"):
        validate(TWO.drop("units"), EVERY_TYPE, where="over there")


def test_measured_tables_validate_without_the_decided_columns() -> None:
    decided = EVERY_TYPE.columns[-1].__class__("label", "str", "Label.", decided=True)
    table = EVERY_TYPE.__class__("audits/x", "m", ("name",), (*EVERY_TYPE.columns, decided))
    assert validate(TWO, table.measured()).height == 2
    with pytest.raises(TableError, match="'label' is missing"):
        validate(TWO, table)


@settings(deadline=None)
@given(ROWS, st.integers(0, 6))
def test_concat_does_not_depend_on_the_order_of_the_parts(rows, cut) -> None:
    first, second = frame(EVERY_TYPE, rows[:cut]), frame(EVERY_TYPE, rows[cut:])
    joined = concat(EVERY_TYPE, [first, second])
    assert joined.equals(concat(EVERY_TYPE, iter([second, first])))
    assert joined.equals(validate(frame(EVERY_TYPE, rows), EVERY_TYPE))


def test_concat_of_nothing_is_empty_and_a_bad_part_is_named() -> None:
    assert concat(EVERY_TYPE, []).equals(empty(EVERY_TYPE))
    with pytest.raises(TableError, match="frame 1, column 'units'"):
        concat(EVERY_TYPE, [TWO, TWO.drop("units")])
    with pytest.raises(TableError, match="more than once"):
        concat(EVERY_TYPE, [TWO, TWO])
