"""What a decision table supports and forbids."""

from __future__ import annotations

import polars as pl
import pytest
from synthetic_tables import (
    CEILING,
    CONTROL_DELTAS,
    DECISIONS,
    OUTCOME,
    PROFILE_DELTAS,
    RUNS,
    SPECIFICITY,
    Tables,
    decided,
    make_diagnostic,
    passing_tables,
    put,
    stack,
)

from lpact.analyses.lpact.claims import Verdicts
from lpact.claim_audit import Statement, check_text, tabulate
from lpact.codes import FinalLabel
from lpact.errors import LPactError

NEVER = {
    "brain_like",
    "equivalence",
    "explanation",
    "homology",
    "biological_causation",
    "universal",
    "universal_negative",
}
LADDER = [
    "prediction_beyond_controls",
    "relational_alignment",
    "mechanism_specific",
    "reliability_bounded",
    "alignment",
]


def supported_statements(decisions: pl.DataFrame, outcome: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    return tabulate([Verdicts.of_tables(decisions, outcome, profile) for profile in outcome["gate_profile"]])


def allowed(tables: Tables, scope: str = "study", profile: str = "paper") -> set[str]:
    out = decided(tables)
    claims, study = supported_statements(out[DECISIONS], out[OUTCOME])
    frame = study if scope == "study" else claims.filter(pl.col("mechanism") == "surprisal")
    return set(frame.filter(pl.col("allowed") & (pl.col("gate_profile") == profile))["statement"])


def without_ceiling(tables: Tables) -> Tables:
    return put(tables, CEILING, fraction_of_ceiling=0.1)


def without_mechanism(tables: Tables) -> Tables:
    return put(tables, SPECIFICITY, margin=-0.01)


def without_relations(tables: Tables) -> Tables:
    return put(tables, PROFILE_DELTAS, delta_rel=-0.1)


def without_prediction(tables: Tables) -> Tables:
    return put(tables, CONTROL_DELTAS, delta_control=-0.01)


@pytest.mark.parametrize("scope", ["study", "claim"])
def test_each_verdict_supports_what_its_gates_say(scope: str) -> None:
    whole = passing_tables()
    assert allowed(whole, scope) == {"correspondence", *LADDER}
    assert allowed(without_ceiling(whole), scope) == {"correspondence", *LADDER[:3], "not_shown"}
    # The ceiling has a gate of its own: a relational candidate can pass it.
    assert allowed(without_mechanism(whole), scope) == {
        "correspondence",
        *LADDER[:2],
        LADDER[3],
        "not_shown",
    }
    assert allowed(without_relations(whole), scope) == {"correspondence", LADDER[0], "not_shown"}
    assert allowed(without_prediction(whole), scope) == {"correspondence", "not_shown"}


def test_some_statements_are_forbidden_whatever_the_table_says() -> None:
    out = decided(passing_tables())
    for frame in supported_statements(out[DECISIONS], out[OUTCOME]):
        rows = frame.filter(pl.col("gates_needed") == "never")
        assert set(rows["statement"]) == NEVER
        assert not rows["allowed"].any()


def test_diagnostic_and_uncovered_claims_support_neither_side() -> None:
    assert allowed(make_diagnostic(passing_tables())) == set()
    assert allowed(make_diagnostic(passing_tables()), "claim") == set()
    few = passing_tables(runs=RUNS[:2])
    assert decided(few)[DECISIONS]["label"].unique().to_list() == ["insufficient_coverage"]
    assert allowed(few) == set()
    assert allowed(few, "claim") == set()


def test_the_study_speaks_for_its_best_confirmatory_claim() -> None:
    both = stack(
        without_prediction(passing_tables(dataset="weak")),
        without_mechanism(passing_tables(dataset="better")),
        make_diagnostic(passing_tables(dataset="other")),
    )
    out = decided(both)
    _, study = supported_statements(out[DECISIONS], out[OUTCOME])
    row = study.filter(pl.col("statement") == "relational_alignment").row(0, named=True)
    assert row["allowed"]
    assert row["best_label"] == "relational_candidate"
    assert row["n_supporting"] == 2  # both mechanisms of the better dataset
    assert row["n_claims"] == 4  # the diagnostic dataset's two are left out
    alignment = study.filter(pl.col("statement") == "alignment").row(0, named=True)
    assert not alignment["allowed"]
    assert alignment["missing_gate"] == "mechanism"


def test_a_reason_names_the_gate_and_what_beat_it() -> None:
    out = decided(without_prediction(passing_tables()))
    claims, _ = supported_statements(out[DECISIONS], out[OUTCOME])
    row = claims.filter(pl.col("statement") == "alignment").row(0, named=True)
    assert "control_explained" in row["reason"]
    assert "predictive gate" in row["reason"]
    assert "circular_shift" in row["reason"]
    assert row["gates_needed"].split(", ")[0] == "predictive"


def test_both_profiles_are_judged_apart() -> None:
    strict = decided(without_relations(passing_tables()))
    lenient = decided(passing_tables())
    both = {
        name: pl.concat(
            [
                lenient[name],
                strict[name].with_columns(gate_profile=pl.lit("calibrated")),
            ]
        )
        for name in (DECISIONS, OUTCOME)
    }
    _, study = supported_statements(both[DECISIONS], both[OUTCOME])
    supported = study.filter(pl.col("allowed")).group_by("gate_profile").agg("statement")
    by_profile = {name: set(found) for name, found in supported.iter_rows()}
    assert "alignment" in by_profile["paper"]
    assert by_profile["calibrated"] == {"correspondence", LADDER[0], "not_shown"}
    text = "GPT-2 is aligned with the brain in this study."
    paper, calibrated = (
        check_text(text, "text", Verdicts.of_tables(both[DECISIONS], both[OUTCOME], profile))
        for profile in ("paper", "calibrated")
    )
    assert paper == []
    assert [o.statement for o in calibrated] == [Statement.ALIGNMENT]


def test_an_unknown_profile_is_named() -> None:
    out = decided(passing_tables())
    with pytest.raises(LPactError, match="strict") as caught:
        Verdicts.of_tables(out[DECISIONS], out[OUTCOME], "strict")
    assert "paper" in str(caught.value)


@pytest.mark.parametrize("label", list(FinalLabel), ids=str)
def test_the_supported_wording_passes_the_check_itself(label: FinalLabel) -> None:
    verdicts = Verdicts.of_label(label)
    sentence = verdicts.claims[0].wording
    assert sentence.endswith(".")
    assert check_text(sentence, "text", verdicts) == []


def test_wordings_of_stronger_verdicts_do_not_pass_under_weaker_ones() -> None:
    weak = Verdicts.of_label("control_explained")
    for label in (
        "predictive_only",
        "relational_candidate",
        "mechanism_specific_candidate",
        "integrated_candidate",
    ):
        sentence = Verdicts.of_label(label).claims[0].wording
        assert check_text(sentence, "text", weak), sentence
