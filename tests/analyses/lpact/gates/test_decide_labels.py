"""Row labels of levels 1 to 4, and the numbers that the decision adds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import polars as pl
import pytest
from synthetic_tables import (
    CEILING,
    CONTROL_DELTAS,
    DISSOCIATIONS,
    FAILURE_MODES,
    MECHANISMS,
    PROFILE_DELTAS,
    RELATIONAL_SUMMARY,
    SPECIFICITY,
    STRIPPING_DELTAS,
    SUBJECT_RUNS,
    Tables,
    decided,
    make_diagnostic,
    passing_tables,
    put,
    stack,
)

from lpact.codes import RowLabel
from lpact.store import validate
from lpact.tables import run_tables

FIRST_RUN = pl.col("run") == "1"
MATCHING = pl.col("matching")
LEVELS = (CONTROL_DELTAS, PROFILE_DELTAS, STRIPPING_DELTAS, SPECIFICITY, CEILING)

# (table, changed columns of the first run, label of those rows)
NUMBERS: list[tuple[str, dict[str, Any], RowLabel]] = [
    (CONTROL_DELTAS, {"delta_nuisance": 0.0}, RowLabel.NUISANCE_EXPLAINED),
    (
        CONTROL_DELTAS,
        {"delta_nuisance": -1.0, "delta_control": -1.0},
        RowLabel.NUISANCE_EXPLAINED,
    ),
    (CONTROL_DELTAS, {"delta_control": 0.0}, RowLabel.SEVERE_CONTROL_EXPLAINED),
    (CONTROL_DELTAS, {"delta_control": None}, RowLabel.NOT_COMPUTED),
    (CONTROL_DELTAS, {"reason": "too_few_events"}, RowLabel.NOT_COMPUTED),
    (PROFILE_DELTAS, {"reason": "too_few_units"}, RowLabel.INSUFFICIENT_COVERAGE),
    (PROFILE_DELTAS, {"reason": "no_partner_pattern"}, RowLabel.NOT_COMPUTED),
    (PROFILE_DELTAS, {"delta_rel": None}, RowLabel.NOT_COMPUTED),
    (PROFILE_DELTAS, {"split_half_reliability": None}, RowLabel.UNRELIABLE_BRAIN_PATTERN),
    (PROFILE_DELTAS, {"split_half_reliability": 0.09}, RowLabel.UNRELIABLE_BRAIN_PATTERN),
    (PROFILE_DELTAS, {"split_half_reliability": 0.1}, RowLabel.PASS),
    (PROFILE_DELTAS, {"brain_unit_order_hash": "x"}, RowLabel.NOT_COMPUTED),
    (PROFILE_DELTAS, {"delta_rel": 0.0}, RowLabel.SEVERE_CONTROL_EXPLAINED),
    (SPECIFICITY, {"n_targets": 1, "margin": None}, RowLabel.INSUFFICIENT_TARGETS),
    (SPECIFICITY, {"reason": "degenerate_direction"}, RowLabel.NOT_COMPUTED),
    (SPECIFICITY, {"mismatch_margin": None}, RowLabel.NOT_COMPUTED),
    (SPECIFICITY, {"matching_drop": 0.0}, RowLabel.STRIPPING_NO_EFFECT),
    (SPECIFICITY, {"mismatch_margin": 0.0}, RowLabel.NONSPECIFIC_FEATURE_DEGRADATION),
    (
        SPECIFICITY,
        {"mismatch_margin": -1.0, "margin": -1.0},
        RowLabel.NONSPECIFIC_FEATURE_DEGRADATION,
    ),
    (SPECIFICITY, {"margin": 0.0}, RowLabel.DIAGONAL_NOT_DOMINANT),
    (CEILING, {"reason": "undefined_score"}, RowLabel.NOT_COMPUTED),
    (CEILING, {"fraction_of_ceiling": None}, RowLabel.NOT_COMPUTED),
    (CEILING, {"reason": "nonpositive_reliability"}, RowLabel.INSUFFICIENT_BRAIN_CEILING),
    (CEILING, {"reliability": None}, RowLabel.INSUFFICIENT_BRAIN_CEILING),
    (CEILING, {"reliability": 0.09}, RowLabel.INSUFFICIENT_BRAIN_CEILING),
    (CEILING, {"reliability": 0.1}, RowLabel.PASS),
    (CEILING, {"delta_fraction": 0.0}, RowLabel.CONTROL_EXPLAINED),
    (CEILING, {"fraction_of_ceiling": 0.24}, RowLabel.BELOW_CEILING_FRACTION),
    (CEILING, {"fraction_of_ceiling": 0.25}, RowLabel.PASS),
]


@cache
def changed_layers() -> Tables:
    """One layer a change, decided together: rows of different layers do not touch each other."""
    layers = [put(passing_tables(layer=i), table, FIRST_RUN, **values) for i, (table, values, _) in enumerate(NUMBERS)]
    return decided(stack(*layers))


@pytest.mark.parametrize("index", range(len(NUMBERS)))
def test_label_of_a_changed_row(index: int) -> None:
    table, _, label = NUMBERS[index]
    out = changed_layers()[table].filter(pl.col("layer") == index)
    assert set(out.filter(FIRST_RUN)["label"]) == {label}
    assert set(out.filter(~FIRST_RUN)["label"]) == {RowLabel.PASS}
    if "gate_pass" in out.columns:
        assert set(out.filter(FIRST_RUN)["gate_pass"]) == {label is RowLabel.PASS}


def stripping_labels(tables: Tables, where: pl.Expr) -> set[str]:
    out = decided(tables)[STRIPPING_DELTAS].filter(where)
    assert out["gate_pass"].equals(out["label"] == RowLabel.PASS.value)
    return set(out["label"])


def test_matching_deltas_take_the_label_of_their_specificity_row() -> None:
    tables = put(passing_tables(), SPECIFICITY, FIRST_RUN, margin=-0.1)
    assert stripping_labels(tables, MATCHING & FIRST_RUN) == {RowLabel.DIAGONAL_NOT_DOMINANT}
    assert stripping_labels(tables, MATCHING & ~FIRST_RUN) == {RowLabel.PASS}


def test_a_matching_delta_without_specificity_row_is_not_computed() -> None:
    tables = passing_tables()
    tables[SPECIFICITY] = tables[SPECIFICITY].filter(~FIRST_RUN)
    assert stripping_labels(tables, MATCHING & FIRST_RUN) == {RowLabel.NOT_COMPUTED}


@pytest.mark.parametrize(
    ("values", "label"),
    [
        ({}, RowLabel.NOT_A_MATCHING_TARGET),
        ({"drop": 0.0}, RowLabel.STRIPPING_NO_EFFECT),
        ({"drop": 0.03}, RowLabel.DIAGONAL_NOT_DOMINANT),
        ({"drop": None}, RowLabel.NOT_COMPUTED),
        ({"reason": "undefined_score"}, RowLabel.NOT_COMPUTED),
    ],
)
def test_other_targets_are_comparisons_that_never_pass(values: dict[str, Any], label: RowLabel) -> None:
    tables = put(passing_tables(), STRIPPING_DELTAS, ~MATCHING, **values)
    assert stripping_labels(tables, ~MATCHING) == {label}


def level3_labels(tables: Tables) -> set[str]:
    out = decided(tables)
    return {*out[SPECIFICITY]["label"], *out[STRIPPING_DELTAS]["label"]}


@pytest.mark.parametrize(
    ("change", "label"),
    [
        (
            lambda t: put(t, CONTROL_DELTAS, delta_control=-1.0),
            RowLabel.NO_PREDICTIVE_CANDIDATE,
        ),
        (lambda t: put(t, PROFILE_DELTAS, delta_rel=-1.0), RowLabel.NO_RELATIONAL_CANDIDATE),
        (
            lambda t: put(put(t, CONTROL_DELTAS, delta_control=-1.0), PROFILE_DELTAS, delta_rel=-1.0),
            RowLabel.NO_PREDICTIVE_CANDIDATE,
        ),
        (lambda t: put(t, SPECIFICITY, n_targets=1), RowLabel.INSUFFICIENT_TARGETS),
        (
            lambda t: put(make_diagnostic(t), CONTROL_DELTAS, delta_control=-1.0),
            RowLabel.DIAGNOSTIC_ONLY,
        ),
    ],
)
def test_level_3_depends_on_what_comes_before_it(change: Callable[[Tables], Tables], label: RowLabel) -> None:
    assert level3_labels(change(passing_tables())) == {label}


def test_upstream_gates_of_diagnostic_data_are_judged_on_their_evidence() -> None:
    """Rows stay diagnostic whatever the evidence; only one dataset's rows are concerned."""
    out = decided(make_diagnostic(passing_tables()))
    for table in LEVELS:
        assert set(out[table]["label"]) == {RowLabel.DIAGNOSTIC_ONLY}
        if "gate_pass" in out[table].columns:
            assert not out[table]["gate_pass"].any()


def test_every_row_label_is_reached() -> None:
    reached = {label for _, _, label in NUMBERS} | {
        RowLabel.NOT_A_MATCHING_TARGET,
        RowLabel.NO_PREDICTIVE_CANDIDATE,
        RowLabel.NO_RELATIONAL_CANDIDATE,
        RowLabel.DIAGNOSTIC_ONLY,
    }
    assert reached == set(RowLabel)


def test_selective_is_the_sign_of_the_margin() -> None:
    tables = put(passing_tables(), SPECIFICITY, FIRST_RUN, margin=0.0)
    tables = put(tables, SPECIFICITY, pl.col("run") == "2", margin=None)
    out = decided(tables)[SPECIFICITY]
    assert not out.filter(pl.col("run").is_in(["1", "2"]))["selective"].any()
    assert out.filter(~pl.col("run").is_in(["1", "2"]))["selective"].all()


@pytest.mark.parametrize(
    ("drops", "expected"),
    [
        ({}, True),
        ({"drop_aa": 0.0}, False),
        ({"drop_bb": -0.1}, False),
        ({"drop_ab": 0.03}, False),
        ({"drop_ba": 0.03}, False),
        ({"drop_ab": -0.5, "drop_ba": -0.5}, True),
        ({"drop_ab": None}, False),
        ({"drop_aa": None}, False),
    ],
)
def test_double_dissociation(drops: dict[str, Any], expected: bool) -> None:
    out = decided(put(passing_tables(), DISSOCIATIONS, **drops))[DISSOCIATIONS]
    assert set(out["double_dissociation"]) == {expected}


def test_pass_fraction_disregards_the_role_and_rows_without_contrast() -> None:
    unit = pl.col("unit")
    tables = put(passing_tables(), PROFILE_DELTAS, unit == "u1", delta_rel=-0.1)
    tables = put(tables, PROFILE_DELTAS, unit == "u2", delta_rel=None, reason="undefined_score")
    tables = put(tables, PROFILE_DELTAS, unit == "u3", split_half_reliability=0.0)
    tables = put(tables, PROFILE_DELTAS, FIRST_RUN, reason="too_few_units")
    for role in (tables, make_diagnostic(tables)):
        out = decided(role)[RELATIONAL_SUMMARY]
        assert set(out.filter(~FIRST_RUN)["pass_fraction"]) == {2 / 4}
        assert set(out.filter(FIRST_RUN)["pass_fraction"]) == {None}


def test_positive_direction_needs_both_deltas() -> None:
    tables = put(passing_tables(), SUBJECT_RUNS, FIRST_RUN, delta_nuisance=0.0)
    tables = put(tables, SUBJECT_RUNS, pl.col("run") == "2", delta_control=None)
    out = decided(tables)[SUBJECT_RUNS]
    positive = dict(out.filter(pl.col("metric") == "pearson").select("run", "positive_direction").rows())
    assert positive == {"1": False, "2": False, "3": True, "4": True, "5": True}


def test_failure_modes_count_rows_that_did_not_pass() -> None:
    tables = put(passing_tables(), CONTROL_DELTAS, FIRST_RUN, delta_control=-0.2)
    two = pl.col("run").is_in(["2", "3"])
    tables = put(tables, CONTROL_DELTAS, two, best_control=None, delta_control=None, reason="undefined_score")
    out = decided(tables)[FAILURE_MODES].filter(pl.col("metric") == "pearson")
    rows = {row["label"]: row for row in out.iter_rows(named=True)}
    assert set(rows) == {RowLabel.SEVERE_CONTROL_EXPLAINED, RowLabel.NOT_COMPUTED}
    control = rows[RowLabel.SEVERE_CONTROL_EXPLAINED]
    assert (control["n_rows"], control["best_control"]) == (1, "circular_shift")
    assert control["mean_delta_control"] == pytest.approx(-0.2)
    missing = rows[RowLabel.NOT_COMPUTED]
    assert (missing["n_rows"], missing["best_control"]) == (2, "none")
    assert missing["mean_delta_control"] is None
    assert missing["mean_delta_nuisance"] == pytest.approx(0.05)


def test_all_tables_match_their_declarations() -> None:
    tables = passing_tables()
    out = decided(tables)
    made = {name for name, table in run_tables(["lpact"]).items() if any(c.decided for c in table.columns)}
    assert set(out) == made | {FAILURE_MODES} | {n for n in run_tables(["lpact"]) if n.startswith("decisions/")}
    for name, frame in out.items():
        assert frame.equals(validate(frame, run_tables(["lpact"])[name]))
        if name in tables:
            measured = run_tables(["lpact"])[name].measured()
            assert frame.select(measured.column_names).equals(validate(tables[name], measured))


def test_empty_tables_give_an_inconclusive_study() -> None:
    out = decided({name: table.clear() for name, table in passing_tables().items()})
    assert out["decisions/lpact_decision_table"].is_empty()
    assert out["decisions/lpact_study_outcome"]["outcome"].to_list() == ["I"]


def test_helper_study_has_both_mechanisms() -> None:
    assert set(passing_tables()[SPECIFICITY]["stripped"]) == set(MECHANISMS)
