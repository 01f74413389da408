from __future__ import annotations

import math
from enum import StrEnum

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from store_examples import EVERY_TYPE, ROWS, row

from lpact.errors import TableError
from lpact.store import empty, frame, frame_from_columns, polars_schema
from lpact.tables import declared_tables


class Colour(StrEnum):
    RED = "red"


def columns(n_rows: int = 3, **changes: object) -> dict[str, object]:
    plain: dict[str, object] = {
        "name": [f"n{i}" for i in range(n_rows)],
        "draw": np.arange(n_rows),
        "score": np.linspace(0.0, 1.0, n_rows),
        "delta": None,
        "passed": np.ones(n_rows, dtype=bool),
        "best": "b",
        "pattern": np.zeros((n_rows, 2)),
        "layers": [[1]] * n_rows,
        "units": None,
    }
    return plain | changes


def test_schema_follows_the_declaration() -> None:
    assert polars_schema(EVERY_TYPE) == pl.Schema(
        {
            "name": pl.String,
            "draw": pl.Int64,
            "score": pl.Float64,
            "delta": pl.Float64,
            "passed": pl.Boolean,
            "best": pl.String,
            "pattern": pl.List(pl.Float64),
            "layers": pl.List(pl.Int64),
            "units": pl.List(pl.String),
        }
    )


@pytest.mark.parametrize("table", declared_tables().values(), ids=lambda table: table.name)
def test_empty_has_the_declared_schema(table) -> None:
    assert empty(table).schema == polars_schema(table)
    assert empty(table).height == 0
    assert frame(table, []).schema == polars_schema(table)


@settings(deadline=None)
@given(ROWS)
def test_frame_keeps_every_cell_in_order(rows) -> None:
    assert frame(EVERY_TYPE, rows).to_dicts() == rows


@settings(deadline=None)
@given(ROWS)
def test_columns_and_rows_build_the_same_frame(rows) -> None:
    by_column = {name: [cells[name] for cells in rows] for name in EVERY_TYPE.column_names}
    assert frame_from_columns(EVERY_TYPE, by_column).equals(frame(EVERY_TYPE, rows))


def test_numpy_scalars_enums_and_whole_numbers_are_accepted() -> None:
    built = frame(
        EVERY_TYPE,
        [
            row(
                name=Colour.RED,
                draw=np.int32(7),
                score=3,
                delta=np.float32(0.5),
                passed=np.bool_(False),
                best=np.str_("x"),
                pattern=np.array([1, 2]),
                layers=(np.uint8(4),),
                units=np.array(["u"]),
            )
        ],
    )
    assert built.row(0) == ("red", 7, 3.0, 0.5, False, "x", [1.0, 2.0], [4], ["u"])


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("name", 1),
        ("name", b"a"),
        ("name", "\ud800"),
        ("draw", 1.0),
        ("draw", True),
        ("draw", "1"),
        ("draw", 2**63),
        ("score", "0.5"),
        ("score", False),
        ("score", 2**53 + 1),
        ("score", 1j),
        ("score", None),
        ("passed", 1),
        ("passed", "true"),
        ("best", 0),
        ("pattern", 0.5),
        ("pattern", "ab"),
        ("pattern", None),
        ("pattern", [math.inf]),
        ("pattern", np.zeros((2, 2))),
        ("layers", [1, None]),
        ("layers", [1.5]),
        ("units", "ab"),
        ("units", [None]),
    ],
)
def test_unfit_values_are_named(column, value) -> None:
    with pytest.raises(TableError, match="does not fit") as caught:
        frame(EVERY_TYPE, [row(), row(**{column: value})])
    assert caught.value.where == f"table 'audits/every_type', column '{column}', row 1"
    assert caught.value.got is not None
    assert caught.value.expected
    assert caught.value.remedy


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan")])
@pytest.mark.parametrize("column", ["score", "delta"])
def test_rows_with_non_finite_floats_are_told_to_use_none(column, value) -> None:
    with pytest.raises(TableError, match="use None, and say why"):
        frame(EVERY_TYPE, [row(**{column: value})])


def test_missing_and_unknown_cells_are_named_with_the_nearest_column() -> None:
    misspelt = row()
    misspelt["scor"] = misspelt.pop("score")
    with pytest.raises(TableError, match="did you mean 'score'") as caught:
        frame(EVERY_TYPE, [row(), misspelt])
    assert caught.value.where == "table 'audits/every_type', row 1, column 'scor'"
    short = row()
    del short["units"]
    with pytest.raises(TableError, match="'units' is missing") as caught:
        frame(EVERY_TYPE, [short])
    assert caught.value.where == "table 'audits/every_type', row 0, column 'units'"
    with pytest.raises(TableError, match="did you mean 'passed'"):
        frame_from_columns(EVERY_TYPE, columns(pased=True))


def test_scalars_are_broadcast() -> None:
    built = frame_from_columns(EVERY_TYPE, columns(delta=np.float64(2), best=np.array("z")))
    assert built["delta"].to_list() == [2.0] * 3
    assert built["best"].to_list() == ["z"] * 3
    assert built["units"].to_list() == [None] * 3
    assert built.schema == polars_schema(EVERY_TYPE)


def test_scalars_alone_make_one_row_and_empty_columns_none() -> None:
    table = EVERY_TYPE.__class__("audits/flat", "m", ("name",), EVERY_TYPE.columns[:6])
    cells = {k: v for k, v in row().items() if k in table.column_names}
    assert frame_from_columns(table, cells).to_dicts() == [cells]
    nothing = frame_from_columns(EVERY_TYPE, columns(0))
    assert nothing.equals(empty(EVERY_TYPE))


def test_nan_becomes_null_only_in_nullable_columns() -> None:
    holes = np.array([0.5, np.nan, 1.5])
    assert frame_from_columns(EVERY_TYPE, columns(delta=holes))["delta"].to_list() == [
        0.5,
        None,
        1.5,
    ]
    assert frame_from_columns(EVERY_TYPE, columns(delta=list(holes)))["delta"].null_count() == 1
    assert frame_from_columns(EVERY_TYPE, columns(delta=np.nan))["delta"].null_count() == 3
    for values in (holes, list(holes), np.nan):
        with pytest.raises(TableError, match="finite float"):
            frame_from_columns(EVERY_TYPE, columns(score=values))


@pytest.mark.parametrize("column", ["score", "delta"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinite_values_are_errors_that_name_the_row(column, dtype) -> None:
    with pytest.raises(TableError, match=f"column '{column}', row 2"):
        frame_from_columns(EVERY_TYPE, columns(**{column: np.array([0, 1, -np.inf], dtype)}))


def test_array_types_are_as_strict_as_scalars() -> None:
    for changes in (
        {"draw": np.array([0.0, 1.0, 2.0])},
        {"draw": np.array([0, 1, 2**64 - 1], dtype=np.uint64)},
        {"draw": np.array([True, False, True])},
        {"score": np.array([True, False, True])},
        {"score": np.array([0, 1, 2**53 + 1])},
        {"score": np.array([0, 1, -(2**53) - 1])},
        {"passed": np.array([0, 1, 1])},
        {"name": np.arange(3)},
        {"draw": np.array(["2020-01-01"] * 3, dtype="datetime64[D]")},
        {"score": np.zeros((3, 2))},
    ):
        with pytest.raises(TableError, match="does not fit"):
            frame_from_columns(EVERY_TYPE, columns(**changes))
    fine = frame_from_columns(EVERY_TYPE, columns(draw=np.arange(3, dtype=np.uint8), score=np.array([0, 1, 2**53])))
    assert fine["score"].to_list() == [0.0, 1.0, 2.0**53]


def test_list_columns_take_matrices_and_ragged_arrays_with_nan_as_null() -> None:
    matrix = np.array([[0.0, np.nan], [1.0, 2.0], [3.0, 4.0]])
    built = frame_from_columns(EVERY_TYPE, columns(pattern=matrix))
    assert built["pattern"].to_list() == [[0.0, None], [1.0, 2.0], [3.0, 4.0]]
    ragged = [np.array([np.nan]), np.array([]), [1, None, 2.5]]
    units = [("a",), None, []]
    built = frame_from_columns(EVERY_TYPE, columns(pattern=ragged, units=units))
    assert built["pattern"].to_list() == [[None], [], [1.0, None, 2.5]]
    assert built["units"].to_list() == [["a"], None, []]
    assert frame(EVERY_TYPE, [row(pattern=matrix[0])])["pattern"].to_list() == [[0.0, None]]


def test_an_unfit_element_of_a_list_names_its_row() -> None:
    with pytest.raises(TableError, match="column 'pattern', row 2"):
        frame_from_columns(EVERY_TYPE, columns(pattern=[[1.0, 2.0], [], [3.0, math.inf]]))
    with pytest.raises(TableError, match="column 'pattern', row 0"):
        frame_from_columns(EVERY_TYPE, columns(pattern=np.zeros(3)))


def test_polars_series_are_accepted() -> None:
    built = frame_from_columns(
        EVERY_TYPE,
        columns(
            draw=pl.Series([1, 2, 3], dtype=pl.UInt32),
            delta=pl.Series([1.0, None, 2.0]),
            pattern=pl.Series([[1.0], [None], []], dtype=pl.List(pl.Float64)),
        ),
    )
    assert built["draw"].to_list() == [1, 2, 3]
    assert built["delta"].to_list() == [1.0, None, 2.0]
    assert built["pattern"].to_list() == [[1.0], [None], []]


def test_columns_of_different_length_are_named() -> None:
    with pytest.raises(TableError, match="differ in length") as caught:
        frame_from_columns(EVERY_TYPE, columns(score=np.zeros(2)))
    assert caught.value.where == "table 'audits/every_type', column 'score'"
    assert caught.value.got == "2 rows"


@pytest.mark.parametrize("values", [{1, 2, 3}, (i for i in range(3)), np.ma.array([1, 2, 3])])
def test_columns_that_are_no_sequence_are_refused(values) -> None:
    with pytest.raises(TableError, match="neither a sequence nor a scalar"):
        frame_from_columns(EVERY_TYPE, columns(draw=values))
