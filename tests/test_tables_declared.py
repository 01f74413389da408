from __future__ import annotations

import re

import pytest

from lpact.analyses.deconstruct.analysis import Deconstruct
from lpact.analyses.lpact.analysis import LPact
from lpact.analyses.patterns.analysis import Patterns
from lpact.analyses.turing.analysis import Turing
from lpact.errors import TableError
from lpact.tables import (
    CLAIM,
    CLAIM_KEY,
    CONTEXT,
    CONTEXT_KEY,
    ENGINE_TABLES,
    RECORDING_KEY,
    SHARED,
    Column,
    Table,
    declared_tables,
    find_table,
)

FOLDERS = {
    "audits",
    "predictive",
    "relational",
    "causal",
    "ceilings",
    "decisions",
    "controls",
    "calibration",
    "deconstruct",
    "turing",
    "patterns",
}
UNIT_SUFFIXES = {"Hz": "_hz", "mm": "_mm", "bytes": "_bytes", "ms": "_ms", "s": "_s"}

# Tables whose numbers may be missing without a reason column of their own, and where the reason stands instead.
REASON_ELSEWHERE = {
    "relational/brain_unit_index": "a dataset without coordinates has none",
    "deconstruct/units": "a dataset without coordinates has none",
    "relational/profile_similarity_scores": "relational/profile_similarity_deltas, same context and unit",
    "predictive/predictive_subject_run_summary": "predictive/predictive_control_deltas, same key",
    "predictive/predictive_failure_modes": "the label that the row counts",
    "decisions/lpact_gate_evidence": "the row's sentence",
    "calibration/trials": "the gate profile: point rules have no tests",
    "calibration/rates": "the gate profile: point rules have no nominal rate",
    "calibration/truth_rates": "the gate profile: point rules have no nominal rate",
}

every_table = pytest.mark.parametrize("table", declared_tables().values(), ids=lambda table: table.name)


def nullable_numbers(table: Table) -> list[str]:
    numeric = ("int", "float", "list[int]", "list[float]")
    return [c.name for c in table.columns if c.nullable and c.dtype in numeric]


def test_tables_of_engine_and_analyses_are_found() -> None:
    names = {table.name for table in (*ENGINE_TABLES, *LPact.tables, *LPact.other_tables)}
    names |= {table.name for table in (*Deconstruct.tables, *Turing.tables, *Patterns.tables)}
    assert names == set(declared_tables())
    assert len(names) >= 30


@every_table
def test_names_are_folder_and_name(table) -> None:
    folder, name = table.name.split("/")
    assert folder in FOLDERS
    assert re.fullmatch(r"[a-z][a-z0-9_]*", name)


@pytest.mark.parametrize("analysis", [LPact, Deconstruct, Turing])
def test_short_names_are_unambiguous_in_a_run_of_one_analysis(analysis) -> None:
    own = (*ENGINE_TABLES, *analysis.tables, *analysis.other_tables)
    short = [table.name.split("/")[1] for table in own]
    assert len(set(short)) == len(short)
    for table in own:
        among = [other.name for other in own]
        assert find_table(table.name.split("/")[1], among) is table


@every_table
def test_columns_are_unique_named_plainly_and_explained(table) -> None:
    assert len(set(table.column_names)) == len(table.columns)
    assert table.meaning.strip()
    for column in table.columns:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", column.name)
        assert column.meaning.strip()
        assert column.meaning.endswith(".")


@every_table
def test_units_show_in_names(table) -> None:
    for column in table.columns:
        if column.unit:
            assert column.name.endswith(UNIT_SUFFIXES[column.unit])
        for unit, suffix in UNIT_SUFFIXES.items():
            if column.name.endswith(suffix) and column.dtype == "float":
                assert column.unit == unit


@every_table
def test_the_key_is_plain_and_measured(table) -> None:
    assert table.key
    assert len(set(table.key)) == len(table.key)
    by_name = {column.name: column for column in table.columns}
    for name in table.key:
        assert by_name[name].dtype in ("str", "int", "bool")
        assert not by_name[name].nullable
        assert not by_name[name].decided


@every_table
def test_missing_numbers_have_a_reason(table) -> None:
    if nullable_numbers(table) and table.name not in REASON_ELSEWHERE:
        reason = next((c for c in table.columns if c.name == "reason"), None)
        assert reason is not None
        assert (reason.dtype, reason.nullable) == ("str", False)


def test_exceptions_are_needed() -> None:
    for name in REASON_ELSEWHERE:
        table = declared_tables()[name]
        assert nullable_numbers(table)
        assert "reason" not in table.column_names


@every_table
def test_shared_columns_are_declared_alike(table) -> None:
    shared = {c.name: c for c in (*CONTEXT, *CLAIM)}
    for column in table.columns:
        if column.name in shared and column.name in table.key:
            assert column.dtype == shared[column.name].dtype


@every_table
def test_measured_leaves_out_what_the_decision_fills(table) -> None:
    measured = table.measured()
    assert measured.name == table.name
    assert measured.key == table.key
    assert measured.columns == tuple(c for c in table.columns if not c.decided)


def test_some_columns_are_decided() -> None:
    assert any(column.decided for table in declared_tables().values() for column in table.columns)


def test_shared_keys() -> None:
    assert RECORDING_KEY == ("dataset", "subject", "session", "run")
    assert CONTEXT_KEY[:4] == RECORDING_KEY
    assert CONTEXT_KEY[4:] == ("model", "layer")
    assert CLAIM_KEY == ("dataset", "model", "layer", "mechanism")


def test_find_table_by_full_and_short_name() -> None:
    for name, table in declared_tables().items():
        assert find_table(name) is table
    assert find_table("predictive_scores").name == "predictive/predictive_scores"
    with pytest.raises(TableError, match="deconstruct/claims or turing/claims"):
        find_table("claims")


def test_an_unknown_table_gets_a_suggestion() -> None:
    with pytest.raises(TableError, match="did you mean 'predictive_scores'"):
        find_table("predictive_score")


def test_a_declaration_is_text() -> None:
    words = SHARED.add("unit  str  Brain unit.", both="dataset unit")
    table = words.table("""
        audits/x
        One row per dataset
        and unit.
        key: both

        lag_ms  float?! (ms)  A meaning on \
                              two lines.
        reason
    """)
    assert (table.name, table.meaning) == ("audits/x", "One row per dataset and unit.")
    assert table.key == ("dataset", "unit")
    assert table.column_names == ("dataset", "unit", "lag_ms", "reason")
    expected = Column("lag_ms", "float", "A meaning on two lines.", "ms", True, True)
    assert table.columns[2] == expected
    assert words.tables == [table]


def test_a_bad_declaration_cannot_be_made() -> None:
    column = Column("a", "str", "A.")
    with pytest.raises(ValueError, match="declared twice"):
        Table("audits/x", "X.", ("a",), (column, column))
    with pytest.raises(ValueError, match="key column b"):
        Table("audits/x", "X.", ("b",), (column,))
    with pytest.raises(ValueError, match="no type flaot"):
        SHARED.table("audits/x X.\nkey: a\na  flaot  A number.")
