"""One claim layer that passes everything, broken one number at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import polars as pl
import pytest
from synthetic_tables import (
    CEILING,
    CONTROL_DELTAS,
    DECISIONS,
    EVIDENCE,
    EXPLAINED,
    FEASIBILITY,
    MECHANISMS,
    METHODS,
    NULLS,
    OUTCOME,
    PROFILE_DELTAS,
    RELATIONAL_SUMMARY,
    SIMILARITIES,
    SPECIFICITY,
    SUMMARY,
    Tables,
    claim_row,
    decided,
    make_diagnostic,
    passing_tables,
    put,
    stack,
)

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates import NEEDED, decide
from lpact.codes import FinalLabel, Gate, Outcome
from lpact.errors import TableError

GATE_COLUMNS = {
    Gate.PREDICTIVE: "predictive",
    Gate.SEVERE_CONTROL: "severe_control",
    Gate.RELATIONAL: "relational",
    Gate.MECHANISM: "mechanism_specific",
    Gate.CEILING: "ceiling",
    Gate.REPLICATION: "replication",
}
RUN = pl.col("run")
FIRST_SUMMARIES = pl.col("alignment") == "linear"  # two of the four summaries
ONE_SUMMARY = FIRST_SUMMARIES & (pl.col("profile") == "pearson")
SHIFTED = pl.col("condition") == "circular_shift"


@dataclass(frozen=True)
class Case:
    name: str
    change: Callable[[Tables], Tables]
    label: FinalLabel
    failed: Gate | None
    beaten_by: str
    gates: dict[str, Any] = field(default_factory=dict)


def change(table: str, where: pl.Expr | None = None, **values: Any) -> Callable[[Tables], Tables]:
    return lambda tables: put(tables, table, where, **values)


def both(*changes: Callable[[Tables], Tables]) -> Callable[[Tables], Tables]:
    def apply(tables: Tables) -> Tables:
        for one in changes:
            tables = one(tables)
        return tables

    return apply


NO_RAW_POSITIVE = both(
    change(CONTROL_DELTAS, real_score=-0.01, delta_nuisance=-0.05, delta_control=-0.05),
    change(PROFILE_DELTAS, real_similarity=-0.1, delta_rel=-0.3),
    change(SPECIFICITY, matching_drop=-0.01),
    change(CEILING, fraction_of_ceiling=-0.1, delta_fraction=-0.3),
)
LABELS, GATES_ = FinalLabel, Gate

CASES = [
    Case("nothing", lambda t: t, LABELS.INTEGRATED_CANDIDATE, None, "none"),
    Case(
        "nuisance ties",
        change(CONTROL_DELTAS, delta_nuisance=0.0),
        LABELS.CONTROL_EXPLAINED,
        GATES_.PREDICTIVE,
        "nuisance",
    ),
    Case(
        "best control ties",
        change(CONTROL_DELTAS, delta_control=0.0),
        LABELS.CONTROL_EXPLAINED,
        GATES_.PREDICTIVE,
        "circular_shift",
    ),
    Case(
        "most frequent best control is named, ties by alphabet",
        both(
            change(CONTROL_DELTAS, delta_control=-0.1),
            change(CONTROL_DELTAS, RUN.is_in(["1", "2"]), best_control="b"),
            change(CONTROL_DELTAS, RUN.is_in(["3", "4"]), best_control="a"),
        ),
        LABELS.CONTROL_EXPLAINED,
        GATES_.PREDICTIVE,
        "a",
    ),
    Case(
        "another metric does not matter",
        change(CONTROL_DELTAS, pl.col("metric") == "r2", delta_control=-1.0, delta_nuisance=-1.0),
        LABELS.INTEGRATED_CANDIDATE,
        None,
        "none",
    ),
    Case(
        "a counted control ties at level 1",
        change(NULLS, pl.col("control") == "random_matched_dim", delta=0.0),
        LABELS.CONTROL_EXPLAINED,
        GATES_.SEVERE_CONTROL,
        "random_matched_dim",
    ),
    Case(
        "no counted control at level 1",
        change(NULLS, counted=False),
        LABELS.CONTROL_EXPLAINED,
        GATES_.SEVERE_CONTROL,
        "not_computed",
    ),
    Case(
        "a control ties in three of four summaries, level 1 alone claimed",
        change(SIMILARITIES, SHIFTED & ~ONE_SUMMARY, similarity=0.5),
        LABELS.PREDICTIVE_ONLY,
        GATES_.SEVERE_CONTROL,
        "circular_shift",
    ),
    Case(
        "a control ties in three of four summaries, all levels asked for",
        change(SIMILARITIES, SHIFTED & ~ONE_SUMMARY, similarity=0.5),
        LABELS.CONTROL_EXPLAINED,
        GATES_.SEVERE_CONTROL,
        "circular_shift",
        {"severe_scope": "all_levels"},
    ),
    Case(
        "a control reaches exactly half of the summaries",
        change(SIMILARITIES, SHIFTED & FIRST_SUMMARIES, similarity=0.9),
        LABELS.INTEGRATED_CANDIDATE,
        None,
        "none",
    ),
    Case(
        "a control beats the relational pattern",
        change(PROFILE_DELTAS, delta_rel=0.0),
        LABELS.PREDICTIVE_ONLY,
        GATES_.RELATIONAL,
        "circular_shift",
    ),
    Case(
        "the same, all levels asked for",
        change(PROFILE_DELTAS, delta_rel=0.0),
        LABELS.PREDICTIVE_ONLY,
        GATES_.RELATIONAL,
        "circular_shift",
        {"severe_scope": "all_levels"},
    ),
    Case(
        "brain patterns are unreliable",
        change(PROFILE_DELTAS, split_half_reliability=0.09),
        LABELS.PREDICTIVE_ONLY,
        GATES_.RELATIONAL,
        "split_half_reliability",
    ),
    Case(
        "reliability of brain patterns is missing",
        change(PROFILE_DELTAS, split_half_reliability=None),
        LABELS.PREDICTIVE_ONLY,
        GATES_.RELATIONAL,
        "split_half_reliability",
    ),
    Case(
        "reliability at the minimum is enough",
        change(PROFILE_DELTAS, split_half_reliability=0.1),
        LABELS.INTEGRATED_CANDIDATE,
        None,
        "none",
    ),
    Case(
        "unit orders differ in most runs",
        change(PROFILE_DELTAS, RUN != "1", brain_unit_order_hash="other"),
        LABELS.PREDICTIVE_ONLY,
        GATES_.RELATIONAL,
        "unit_order",
    ),
    Case(
        "unit orders differ everywhere",
        change(PROFILE_DELTAS, brain_unit_order_hash="other"),
        LABELS.PREDICTIVE_ONLY,
        GATES_.SEVERE_CONTROL,
        "unit_order",
    ),
    Case(
        "exactly half of the summaries pass",
        change(PROFILE_DELTAS, FIRST_SUMMARIES, delta_rel=-0.1),
        LABELS.PREDICTIVE_ONLY,
        GATES_.RELATIONAL,
        "circular_shift",
    ),
    Case(
        "three of four summaries pass",
        change(PROFILE_DELTAS, ONE_SUMMARY, delta_rel=-0.1),
        LABELS.INTEGRATED_CANDIDATE,
        None,
        "none",
    ),
    Case(
        "exactly 60 % of unit rows pass",
        change(PROFILE_DELTAS, pl.col("unit").is_in(["u1", "u2"]), delta_rel=-0.1),
        LABELS.INTEGRATED_CANDIDATE,
        None,
        "none",
    ),
    Case(
        "40 % of unit rows pass, with a positive mean",
        change(PROFILE_DELTAS, pl.col("unit").is_in(["u1", "u2", "u3"]), delta_rel=-0.01),
        LABELS.PREDICTIVE_ONLY,
        GATES_.RELATIONAL,
        "circular_shift",
    ),
    Case(
        "80 % of unit rows pass, with a negative mean",
        change(PROFILE_DELTAS, pl.col("unit") == "u1", delta_rel=-5.0),
        LABELS.PREDICTIVE_ONLY,
        GATES_.RELATIONAL,
        "circular_shift",
    ),
    Case(
        "numbers of a wrong unit order do not enter the mean",
        change(PROFILE_DELTAS, RUN == "1", brain_unit_order_hash="other", delta_rel=-99.0),
        LABELS.INTEGRATED_CANDIDATE,
        None,
        "none",
    ),
    Case(
        "another target drops as much",
        change(SPECIFICITY, margin=0.0),
        LABELS.RELATIONAL_CANDIDATE,
        GATES_.MECHANISM,
        "context_update",
    ),
    Case(
        "a mismatched strip costs as much",
        change(SPECIFICITY, mismatch_margin=0.0),
        LABELS.RELATIONAL_CANDIDATE,
        GATES_.MECHANISM,
        "random_direction",
    ),
    Case(
        "stripping costs nothing",
        change(SPECIFICITY, matching_drop=0.0),
        LABELS.RELATIONAL_CANDIDATE,
        GATES_.MECHANISM,
        "stripping_no_effect",
    ),
    Case(
        "one target only",
        change(SPECIFICITY, n_targets=1, margin=None, reason="mechanism_not_offered"),
        LABELS.RELATIONAL_CANDIDATE,
        GATES_.MECHANISM,
        "mechanism_not_offered",
    ),
    Case(
        "one target only, and a method is not possible either",
        change(SPECIFICITY, n_targets=1, margin=None, reason="context_not_offered"),
        LABELS.RELATIONAL_CANDIDATE,
        GATES_.MECHANISM,
        "insufficient_targets",
    ),
    Case(
        "one target only, and this mechanism is it",
        change(SPECIFICITY, n_targets=1, margin=None),
        LABELS.RELATIONAL_CANDIDATE,
        GATES_.MECHANISM,
        "insufficient_targets",
    ),
    Case(
        "no method is applicable",
        change(SPECIFICITY, matching_drop=None, margin=None, reason="degenerate_direction"),
        LABELS.RELATIONAL_CANDIDATE,
        GATES_.MECHANISM,
        "degenerate_direction",
    ),
    Case(
        "exactly half of the methods agree",
        change(SPECIFICITY, pl.col("method").is_in(METHODS[:2]), margin=-0.1),
        LABELS.INTEGRATED_CANDIDATE,
        None,
        "none",
    ),
    Case(
        "a quarter of the methods agrees",
        change(SPECIFICITY, pl.col("method").is_in(METHODS[:3]), margin=-0.1),
        LABELS.RELATIONAL_CANDIDATE,
        GATES_.MECHANISM,
        "context_update",
    ),
    Case(
        "methods that do not apply have no vote",
        both(
            change(
                SPECIFICITY,
                pl.col("method").is_in(METHODS[:2]),
                margin=None,
                reason="undefined_score",
            ),
            change(SPECIFICITY, pl.col("method") == METHODS[2], margin=-0.1),
        ),
        LABELS.INTEGRATED_CANDIDATE,
        None,
        "none",
    ),
    Case(
        "the median over subject-runs decides, not the mean",
        change(SPECIFICITY, RUN.is_in(["1", "2"]), matching_drop=-9.0, margin=-9.0),
        LABELS.INTEGRATED_CANDIDATE,
        None,
        "none",
    ),
    Case(
        "below the fraction of the ceiling",
        change(CEILING, fraction_of_ceiling=0.249),
        LABELS.MECHANISM_SPECIFIC_CANDIDATE,
        GATES_.CEILING,
        "run_to_run",
    ),
    Case(
        "exactly the fraction of the ceiling",
        change(CEILING, fraction_of_ceiling=0.25),
        LABELS.INTEGRATED_CANDIDATE,
        None,
        "none",
    ),
    Case(
        "no normalised contrast",
        change(CEILING, delta_fraction=0.0),
        LABELS.MECHANISM_SPECIFIC_CANDIDATE,
        GATES_.CEILING,
        "circular_shift",
    ),
    Case(
        "reliability below the minimum",
        change(CEILING, reliability=0.09),
        LABELS.MECHANISM_SPECIFIC_CANDIDATE,
        GATES_.CEILING,
        "run_to_run",
    ),
    Case(
        "no ceiling",
        change(
            CEILING,
            mode=None,
            reliability=None,
            fraction_of_ceiling=None,
            delta_fraction=None,
            reason="no_valid_ceiling",
        ),
        LABELS.MECHANISM_SPECIFIC_CANDIDATE,
        GATES_.CEILING,
        "no_valid_ceiling",
    ),
    Case(
        "a tiny reliability cannot lift the mean fraction",
        both(
            change(CEILING, fraction_of_ceiling=0.1),
            change(CEILING, RUN == "1", reliability=0.01, fraction_of_ceiling=50.0),
        ),
        LABELS.MECHANISM_SPECIFIC_CANDIDATE,
        GATES_.CEILING,
        "run_to_run",
    ),
    Case(
        "exactly 60 % of subject-runs are positive",
        change(CONTROL_DELTAS, RUN.is_in(["1", "2"]), delta_control=-0.01),
        LABELS.INTEGRATED_CANDIDATE,
        None,
        "none",
    ),
    Case(
        "two of the three subject-runs that could be computed are positive",
        both(
            change(CONTROL_DELTAS, RUN.is_in(["1", "2"]), reason="undefined_score"),
            change(CONTROL_DELTAS, RUN == "3", delta_control=-0.01),
        ),
        LABELS.INTEGRATED_CANDIDATE,
        None,
        "none",
    ),
    Case(
        "40 % of subject-runs are positive",
        change(CONTROL_DELTAS, RUN.is_in(["1", "2", "3"]), delta_control=-0.01),
        LABELS.CONTROL_EXPLAINED,
        GATES_.REPLICATION,
        "2 of 5 subject-runs",
    ),
    Case(
        "two subject-runs could be computed",
        change(CONTROL_DELTAS, RUN.is_in(["1", "2", "3"]), delta_control=None, reason="undefined_score"),
        LABELS.INSUFFICIENT_COVERAGE,
        GATES_.REPLICATION,
        "2 subject-runs",
    ),
    Case(
        "no subject-run could be computed",
        change(CONTROL_DELTAS, delta_control=None, reason="too_few_events"),
        LABELS.INSUFFICIENT_COVERAGE,
        GATES_.PREDICTIVE,
        "too_few_events",
    ),
    Case(
        "numbers of a row with a reason are not used",
        change(CONTROL_DELTAS, RUN == "1", delta_control=-99.0, reason="too_few_events"),
        LABELS.INTEGRATED_CANDIDATE,
        None,
        "none",
    ),
    Case(
        "too few units",
        change(PROFILE_DELTAS, reason="too_few_units"),
        LABELS.INSUFFICIENT_COVERAGE,
        GATES_.SEVERE_CONTROL,
        "too_few_units",
    ),
    Case(
        "too few units in one of five runs",
        change(PROFILE_DELTAS, RUN == "1", reason="too_few_units", delta_rel=-99.0),
        LABELS.INTEGRATED_CANDIDATE,
        None,
        "none",
    ),
    Case(
        "no partner pattern is a failure, not a lack of units",
        change(PROFILE_DELTAS, reason="no_partner_pattern", delta_rel=None),
        LABELS.PREDICTIVE_ONLY,
        GATES_.SEVERE_CONTROL,
        "no_partner_pattern",
    ),
    Case(
        "no ceiling and no prediction",
        both(
            change(CONTROL_DELTAS, delta_control=-0.1),
            change(CEILING, reliability=0.05),
        ),
        LABELS.INSUFFICIENT_BRAIN_CEILING,
        GATES_.PREDICTIVE,
        "circular_shift",
    ),
    Case("null", NO_RAW_POSITIVE, LABELS.NULL, GATES_.PREDICTIVE, "nuisance"),
    Case(
        "diagnostic dataset, evidence complete",
        make_diagnostic,
        LABELS.DIAGNOSTIC_ONLY,
        GATES_.PREDICTIVE,
        "role_not_confirmatory",
    ),
    Case(
        "diagnostic dataset, evidence broken at the mechanism",
        both(make_diagnostic, change(SPECIFICITY, margin=-0.1)),
        LABELS.DIAGNOSTIC_ONLY,
        GATES_.MECHANISM,
        "context_update",
    ),
]


@cache
def decided_cases(severe_scope: str) -> Tables:
    """All cases as datasets of one study: claims of different datasets do not touch each other."""
    studies = [
        case.change(passing_tables(dataset=str(i)))
        for i, case in enumerate(CASES)
        if case.gates.get("severe_scope", "claimed_levels") == severe_scope
    ]
    return decided(stack(*studies), severe_scope=severe_scope)


def decided_case(case: Case) -> Tables:
    out = decided_cases(case.gates.get("severe_scope", "claimed_levels"))
    own = pl.col("dataset") == str(CASES.index(case))
    return {name: out[name].filter(own) for name in (DECISIONS, EVIDENCE)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_break_gives_the_expected_verdict(case: Case) -> None:
    decisions = decided_case(case)[DECISIONS]
    row = decisions.filter(pl.col("mechanism") == "surprisal").row(0, named=True)
    assert row["label"] == case.label
    assert row["first_failed_gate"] == (case.failed or "none")
    assert row["beaten_by"] == case.beaten_by
    assert row["integrated"] == (case.label is FinalLabel.INTEGRATED_CANDIDATE)


def test_every_final_label_is_reached() -> None:
    assert {case.label for case in CASES} == set(FinalLabel)


def test_every_gate_is_the_first_to_fail_somewhere() -> None:
    assert {case.failed for case in CASES} == {*Gate, None}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_gates_equal_their_criteria_and_the_first_failure(case: Case) -> None:
    out = decided_case(case)
    shown = {"typical_pass_share", "typical_delta_rel"} | {
        f"typical_{name}" for name in ("drop", "margin", "mismatch_margin")
    }
    by_gate = (
        out[EVIDENCE]
        .filter(~pl.col("criterion").is_in(list(shown)))
        .group_by("mechanism", "gate")
        .agg(pl.col("passed").all())
    )
    for mechanism, gate, passed in by_gate.iter_rows():
        row = out[DECISIONS].filter(pl.col("mechanism") == mechanism).row(0, named=True)
        assert row[GATE_COLUMNS[Gate[gate.upper()]]] == passed
    for row in out[DECISIONS].iter_rows(named=True):
        failed = [gate.value for gate in Gate if not row[GATE_COLUMNS[gate]]]
        if row["role"] == "primary":
            assert row["first_failed_gate"] == (failed[0] if failed else "none")
        else:
            assert len(failed) == len(Gate)


@pytest.mark.parametrize(
    "change_one",
    [
        change(NULLS, RUN == "1", control_score=None, delta=None, reason="undefined_score"),
        change(SIMILARITIES, SHIFTED & (RUN == "1"), similarity=None),
    ],
)
def test_a_control_that_is_missing_in_one_run_is_compared_in_the_others(
    change_one: Callable[[Tables], Tables],
) -> None:
    assert claim_row(change_one(passing_tables()))["label"] == FinalLabel.INTEGRATED_CANDIDATE


def test_a_control_is_compared_on_the_unit_rows_where_it_exists() -> None:
    """The control beats the model wherever both exist; the model is better elsewhere, which must not help it."""
    tables = passing_tables()
    weak = pl.col("unit") == "u1"
    tables = put(tables, PROFILE_DELTAS, weak, real_similarity=0.1)
    tables = put(tables, SIMILARITIES, SHIFTED & ~weak, similarity=None)
    tables = put(tables, SIMILARITIES, SHIFTED & weak, similarity=0.15)
    row = claim_row(tables)
    assert not row["severe_control_level2"]
    assert row["beaten_by"] == "circular_shift"


def test_sentence_names_numbers_control_and_runs() -> None:
    tables = put(passing_tables(), CONTROL_DELTAS, real_score=0.074, best_control_score=0.081)
    tables = put(tables, CONTROL_DELTAS, delta_control=-0.007)
    tables = put(tables, CONTROL_DELTAS, RUN == "5", delta_control=None, reason="undefined_score")
    assert claim_row(tables)["reason"] == (
        "Control-explained: the model scores 0.074, the best severe control (most often circular_shift) "
        "0.081: a difference of -0.007 (mean over 4 subject-runs; 1 more not computed)."
    )


def test_diagnostic_sentence_says_why_and_what_the_evidence_shows() -> None:
    tables = make_diagnostic(passing_tables())
    reason = claim_row(tables)["reason"]
    assert reason.startswith("Diagnostic only: the dataset is not confirmatory (role secondary: ")
    assert reason.endswith("on the evidence: every gate would pass.")
    detailed = put(tables, FEASIBILITY, role_reason="chain_incomplete", role_detail="no controls")
    row = claim_row(detailed)
    assert "role secondary: no controls" in row["reason"]
    assert row["beaten_by"] == "chain_incomplete"


def test_diagnostic_evidence_keeps_its_own_truth() -> None:
    out = decided(make_diagnostic(passing_tables()))
    confirmatory = pl.col("criterion") == "confirmatory"
    assert not out[EVIDENCE].filter(confirmatory)["passed"].any()
    assert out[EVIDENCE].filter(~confirmatory)["passed"].all()
    assert not out[DECISIONS].select(list(GATE_COLUMNS.values())).to_numpy().any()


def test_claims_are_layers_times_mechanisms_of_the_study() -> None:
    second = passing_tables(dataset="other")
    tables = stack(passing_tables(), passing_tables(layer=9), second)
    tables[SPECIFICITY] = tables[SPECIFICITY].filter(
        (pl.col("dataset") == "demo") | (pl.col("stripped") == "surprisal")
    )
    decisions = decided(tables)[DECISIONS]
    assert decisions.height == 3 * len(MECHANISMS)
    lacking = decisions.filter((pl.col("dataset") == "other") & (pl.col("mechanism") == "context_update")).row(
        0, named=True
    )
    assert lacking["label"] == FinalLabel.RELATIONAL_CANDIDATE
    assert lacking["beaten_by"] == "not_computed"
    assert "context_update was not stripped here" in lacking["reason"].lower()


def test_without_any_mechanism_the_layer_is_still_judged() -> None:
    tables = passing_tables()
    for name in (SPECIFICITY, "causal/causal_stripping_deltas", "causal/double_dissociation_tests"):
        tables[name] = tables[name].clear()
    decisions = decided(tables)[DECISIONS]
    assert decisions["mechanism"].to_list() == ["none"]
    assert decisions["label"].to_list() == [FinalLabel.RELATIONAL_CANDIDATE]
    assert decisions["reason"][0] == "Relational candidate: no mechanism was stripped here."


def test_too_few_units_may_be_told_by_the_summary_alone() -> None:
    tables = put(passing_tables(), RELATIONAL_SUMMARY, reason="too_few_units")
    tables[PROFILE_DELTAS] = tables[PROFILE_DELTAS].clear()
    assert claim_row(tables)["label"] == FinalLabel.INSUFFICIENT_COVERAGE


def test_raw_positive_at_any_level_alone() -> None:
    nothing = NO_RAW_POSITIVE(passing_tables())
    assert not claim_row(nothing)["raw_positive"]
    raised = [
        put(nothing, CONTROL_DELTAS, real_score=0.01),
        put(nothing, CONTROL_DELTAS, delta_nuisance=0.01),
        put(nothing, PROFILE_DELTAS, real_similarity=0.01),
        put(nothing, SPECIFICITY, pl.col("method") == METHODS[0], matching_drop=0.01),
        put(nothing, CEILING, fraction_of_ceiling=0.25),
    ]
    for tables in raised:
        row = claim_row(tables)
        assert row["raw_positive"]
        assert row["label"] == FinalLabel.CONTROL_EXPLAINED
    # One summary of several is not enough: a cosine is positive of itself.
    assert not claim_row(put(nothing, PROFILE_DELTAS, ONE_SUMMARY, real_similarity=0.01))["raw_positive"]


def test_one_summary_alone_does_not_reach_the_ceiling() -> None:
    tables = put(passing_tables(), CEILING, fraction_of_ceiling=0.0)
    tables = put(tables, CEILING, ONE_SUMMARY, fraction_of_ceiling=50.0)
    row = claim_row(tables)
    assert row["label"] == FinalLabel.MECHANISM_SPECIFIC_CANDIDATE
    assert row["first_failed_gate"] == Gate.CEILING


def test_raw_drop_counts_for_its_own_mechanism_only() -> None:
    tables = put(
        NO_RAW_POSITIVE(passing_tables()),
        SPECIFICITY,
        pl.col("stripped") == "surprisal",
        matching_drop=0.01,
    )
    assert claim_row(tables, "surprisal")["label"] == FinalLabel.CONTROL_EXPLAINED
    assert claim_row(tables, "context_update")["label"] == FinalLabel.NULL


def outcome_tables(outcome: Outcome) -> Tables:
    tables = passing_tables()
    if outcome is Outcome.B:
        return put(tables, SPECIFICITY, margin=-0.1)
    if outcome is Outcome.C:
        return put(tables, PROFILE_DELTAS, delta_rel=-0.1)
    if outcome is Outcome.D:
        return put(tables, CONTROL_DELTAS, delta_control=-0.1)
    if outcome is Outcome.I:
        return make_diagnostic(tables)
    return tables


@pytest.mark.parametrize("outcome", Outcome)
def test_outcome(outcome: Outcome) -> None:
    row = decided(outcome_tables(outcome))[OUTCOME].row(0, named=True)
    assert row["outcome"] == outcome
    assert row["meaning"] == outcome.explanation
    assert row["n_claims"] == len(MECHANISMS)
    assert row["n_confirmatory_claims"] == (0 if outcome is Outcome.I else len(MECHANISMS))
    assert row["n_integrated"] == (len(MECHANISMS) if outcome is Outcome.A else 0)


def test_mechanism_specific_candidate_is_outcome_b() -> None:
    tables = put(passing_tables(), CEILING, fraction_of_ceiling=0.1)
    assert decided(tables)[OUTCOME]["outcome"][0] == Outcome.B


def test_outcome_ignores_diagnostic_datasets() -> None:
    diagnostic = make_diagnostic(passing_tables(dataset="other"))
    failing = put(passing_tables(), CONTROL_DELTAS, delta_control=-0.1)
    assert decided(stack(failing, diagnostic))[OUTCOME]["outcome"][0] == Outcome.D


def test_outcome_is_inconclusive_without_a_complete_chain() -> None:
    tables = put(passing_tables(), FEASIBILITY, chain_complete=False)
    assert decided(tables)[OUTCOME]["outcome"][0] == Outcome.I


def test_outcome_names_lack_of_coverage() -> None:
    row = decided(passing_tables(runs=("1", "2")))[OUTCOME].row(0, named=True)
    assert row["outcome"] == Outcome.D
    assert "2 of 2 confirmatory claims lack coverage" in row["meaning"]


def test_summary_and_explained_claims() -> None:
    failing = put(passing_tables(layer=9), CONTROL_DELTAS, delta_control=-0.1)
    out = decided(stack(passing_tables(), failing))
    explained = out[EXPLAINED]
    assert explained["layer"].to_list() == [9, 9]
    assert set(explained["beaten_by"]) == {"circular_shift"}
    summary = {row["label"]: row for row in out[SUMMARY].iter_rows(named=True)}
    assert summary["integrated_candidate"]["n_claims"] == 2
    assert summary["integrated_candidate"]["n_ceiling"] == 2
    assert summary["control_explained"]["n_predictive"] == 0
    assert summary["control_explained"]["n_relational"] == 2


def test_thresholds_are_read() -> None:
    tables = passing_tables()
    for gates, column in [
        ({"direction_fraction": 1.0}, "replication"),
        ({"min_subject_runs": 5}, "replication"),
        ({"min_reliability": 0.8}, "ceiling"),
        ({"min_ceiling_fraction": 0.625}, "ceiling"),
        ({"method_majority": 1.0}, "mechanism_specific"),
    ]:
        assert claim_row(tables, **gates)[column]
    for gates, column in [
        ({"min_subject_runs": 6}, "replication"),
        ({"min_reliability": 0.81}, "ceiling"),
        ({"min_ceiling_fraction": 0.63}, "ceiling"),
        ({"summary_majority": 1.0}, "relational"),
    ]:
        assert not claim_row(tables, **gates)[column]


@pytest.mark.parametrize("table", NEEDED, ids=lambda table: table.name)
def test_a_missing_table_is_named(table: Any) -> None:
    tables = passing_tables()
    del tables[table.name]
    with pytest.raises(TableError, match=table.name):
        decided(tables)


def test_a_dataset_without_audit_is_an_error() -> None:
    tables = passing_tables()
    tables[FEASIBILITY] = tables[FEASIBILITY].clear()
    with pytest.raises(TableError, match="no audited dataset 'demo'"):
        decided(tables)


def test_an_unknown_primary_metric_is_an_error() -> None:
    with pytest.raises(TableError, match="did you mean 'pearson'"):
        decide(passing_tables(), gates=GatesConfig(), primary_metric="pearsn")


def test_a_repeated_row_is_an_error() -> None:
    tables = passing_tables()
    tables[NULLS] = pl.concat([tables[NULLS], tables[NULLS].head(1)])
    with pytest.raises(TableError, match="more than once"):
        decided(tables)
