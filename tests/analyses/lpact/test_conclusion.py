"""The verdict in one sentence, and why: every outcome, one claim and many, none, diagnostic ones."""

from __future__ import annotations

import pytest

from lpact.analyses.lpact.conclusion import verdict_sentence, why_sentences
from lpact.analyses.lpact.tables.assay import (
    IMPLANT,
)
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.analyses.lpact.tables.decisions import DECISIONS, STUDY_OUTCOME
from lpact.codes import Outcome
from lpact.store import empty, frame

GATES = ("predictive", "relational", "mechanism_specific", "ceiling", "replication")
TESTED = "with tests at every gate and corrected over claims"


def claim(profile: str = "paper", **changes):
    label = changes.get("label", "control_explained")
    passed = label == "integrated_candidate"
    return {
        "dataset": "d",
        "model": "m",
        "layer": 1,
        "mechanism": "surprisal",
        "gate_profile": profile,
        "role": "primary",
        "n_subject_runs": 4,
        "raw_score": 0.2,
        "raw_positive": True,
        **dict.fromkeys(GATES, passed),
        "severe_control_level1": passed,
        "severe_control_level2": passed,
        "severe_control": passed,
        "integrated": passed,
        "p_value": None,
        "q_value": None,
        "label": label,
        "first_failed_gate": "none" if passed else "predictive",
        "beaten_by": "none" if passed else "nuisance",
        "reason": "because",
        **changes,
    }


def decided(*claims):
    return frame(DECISIONS, claims)


def outcomes(paper: str | None, calibrated: str | None):
    given = {"paper": paper, "calibrated": calibrated}
    rows = [
        {
            "gate_profile": profile,
            "outcome": letter,
            "meaning": Outcome[letter].explanation,
            "n_claims": 1,
            "n_confirmatory_claims": 1,
            "n_integrated": 0,
        }
        for profile, letter in given.items()
        if letter
    ]
    return frame(STUDY_OUTCOME, rows)


def both(**changes):
    return [claim("paper", **changes), claim("calibrated", **changes)]


WON = {"label": "integrated_candidate"}


def test_one_claim_passes_point_rules_and_none_the_tests():
    table = decided(claim(**WON), claim("calibrated", label="predictive_only"), *both(mechanism="other"))
    assert verdict_sentence(table, outcomes("A", "C")) == (
        "Of 2 confirmatory claims, 1 passes every gate under the point rules (d, model m, layer 1, surprisal); "
        f"{TESTED} none does, so the study supports predictive evidence only (outcome C; A under the point rules)."
    )


def test_one_claim_passes_both():
    assert verdict_sentence(decided(*both(**WON)), outcomes("A", "A")) == (
        "Of 1 confirmatory claim, 1 passes every gate under the point rules (d, model m, layer 1, surprisal); "
        f"{TESTED} it does, too, so the study has an integrated candidate (outcome A)."
    )


def test_many_claims_are_counted_and_not_named():
    rows = [row for layer in range(5) for row in both(layer=layer, **WON)]
    other = [row for layer in range(5) for row in both(layer=layer, model="n", dataset="e", **WON)]
    assert verdict_sentence(decided(*rows, *other), outcomes("A", "A")) == (
        "Of 10 confirmatory claims, 10 pass every gate under the point rules (2 models on 2 datasets); "
        f"{TESTED} the same ones do, so the study has 10 integrated candidates (outcome A)."
    )


def test_other_claims_pass_the_tests_than_the_point_rules():
    lost = {"label": "relational_candidate"}
    table = decided(
        claim(layer=1, **WON),
        claim("calibrated", layer=1, **lost),
        claim(layer=2, mechanism="none", **lost),
        claim("calibrated", layer=2, mechanism="none", **WON),
    )
    assert verdict_sentence(table, outcomes("A", "A")) == (
        "Of 2 confirmatory claims, 1 passes every gate under the point rules (d, model m, layer 1, surprisal); "
        f"{TESTED} 1 does (d, model m, layer 2), so the study has an integrated candidate (outcome A)."
    )


@pytest.mark.parametrize(
    ("letter", "label", "supports"),
    [
        (
            "B",
            "relational_candidate",
            "the study supports relational evidence, but no integrated claim",
        ),
        (
            "B",
            "mechanism_specific_candidate",
            "the study supports mechanism-specific evidence, but no integrated claim",
        ),
        ("C", "predictive_only", "the study supports predictive evidence only"),
        (
            "D",
            "control_explained",
            "the study shows no robust predictive or structural alignment under its controls",
        ),
        ("I", "control_explained", "the study is inconclusive"),
    ],
)
def test_no_claim_passes(letter, label, supports):
    assert verdict_sentence(decided(*both(label=label)), outcomes(letter, letter)) == (
        f"Of 1 confirmatory claim, none passes every gate, neither under the point rules nor {TESTED}, so {supports} "
        f"(outcome {letter})."
    )


def test_lack_of_coverage_is_no_evidence_of_absence():
    thin = {"label": "insufficient_coverage"}
    some = verdict_sentence(decided(*both(**thin), *both(layer=2)), outcomes("D", "D"))
    assert some.startswith("Of 2 confirmatory claims (1 of which lacks coverage), none passes")
    assert "shows no robust" in some
    every = verdict_sentence(decided(*both(**thin), *both(layer=2, **thin)), outcomes("D", "D"))
    assert every.startswith("Of 2 confirmatory claims (2 of which lack coverage), none passes")
    assert every.endswith("so the study has too little coverage to show any alignment, or its absence (outcome D).")


def test_diagnostic_claims_are_no_confirmatory_ones():
    aside = {"label": "diagnostic_only", "role": "diagnostic"}
    mixed = verdict_sentence(decided(*both(**aside), *both(layer=2)), outcomes("D", "D"))
    assert mixed.startswith("Of 1 confirmatory claim, none passes")
    one = verdict_sentence(decided(*both(**aside)), outcomes("I", "I"))
    assert one == (
        "The study's only claim is not about a confirmatory dataset: it is diagnostic, and the study is inconclusive "
        "(outcome I)."
    )
    two = verdict_sentence(decided(*both(**aside), *both(layer=2, **aside)), outcomes("I", "I"))
    assert two.startswith("None of the study's 2 claims is about a confirmatory dataset: they are")


def test_no_claim_at_all():
    sentence = verdict_sentence(empty(DECISIONS), outcomes("I", "I"))
    assert sentence.startswith("The study makes no claim, because no model layer was scored")
    assert sentence.endswith("(outcome I).")


def test_one_profile_alone():
    assert verdict_sentence(decided(claim(**WON)), outcomes("A", None)) == (
        "Of 1 confirmatory claim, 1 passes every gate under the point rules (d, model m, layer 1, surprisal), so the "
        "study has an integrated candidate (outcome A)."
    )
    tested = verdict_sentence(decided(claim("calibrated")), outcomes(None, "D"))
    assert tested.startswith(f"Of 1 confirmatory claim, none passes every gate {TESTED}, so")


def test_names_stay_on_their_line_and_order_does_not_matter():
    rows = [*both(dataset="a\nb", **WON), *both(dataset="a\tc", **WON)]
    sentence = verdict_sentence(decided(*rows), outcomes("A", "A"))
    assert "(a b, model m, layer 1, surprisal; a c, model m" in sentence or (
        "(a c, model m, layer 1, surprisal; a b, model m" in sentence
    )
    assert sentence == verdict_sentence(decided(*rows[::-1]), outcomes("A", "A"))


def implant(arm: str, profile: str, **changes):
    return {
        "arm": arm,
        "gate_profile": profile,
        "quantity": "integrated",
        "quantity_order": 9,
        "gate": "integrated",
        "value": 1.0,
        "gate_pass": True,
        "interpretation": "",
        "reason": "ok",
        **changes,
    }


def planted(paper: bool, calibrated: bool, *, sham: bool = False):
    rows = [
        implant("implant", "paper", gate_pass=paper),
        implant("implant", "calibrated", gate_pass=calibrated),
        implant("sham", "paper", gate_pass=sham),
        implant("sham", "calibrated", gate_pass=False),
        # A single gate of the sham may pass by chance; it says nothing of the whole.
        implant("sham", "paper", quantity="mean_delta", gate="predictive"),
    ]
    return {IMPLANT.name: frame(IMPLANT, rows)}


def why(*claims, **more):
    tables = {
        DECISIONS.name: decided(*claims),
        STUDY_OUTCOME.name: outcomes("D", "D"),
        **more.pop("tables", {}),
    }
    return why_sentences(tables)


LAYERS = "(of a model on a dataset, with {} confirmatory claim{})"


def test_what_explains_positive_scores_is_counted():
    rows = [
        *both(layer=1),
        *both(layer=2, predictive=True, beaten_by="circular_shift", first_failed_gate="severe_control"),
        *both(layer=3, beaten_by="circular_shift"),
        *both(layer=4, raw_score=-0.1, beaten_by="static_embedding"),
        *both(layer=5, raw_score=None, beaten_by="undefined_score"),
        *both(layer=6, beaten_by="undefined_score"),
        *both(layer=7, predictive=True, severe_control_level1=True, first_failed_gate="mechanism"),
        *both(layer=8, label="diagnostic_only"),
    ]
    raw, failures, assay = why(*rows)
    assert raw == (
        f"5 of 7 layers {LAYERS.format(7, 's')} have a positive mean score; under the point rules 3 of them score no "
        "higher than nuisance or a severe control at level 1, most often the control circular_shift (2), then nuisance "
        "features (1)."
    )
    assert failures == (
        "5 of 7 layers fail first at the predictive gate and 1 of 1 claim about layers that pass P, S and R fails "
        "first at the mechanism gate under the point rules and as tests."
    )
    assert assay.startswith("Positive controls were not computed")


AT_LEVEL_2 = {
    "label": "predictive_only",
    "predictive": True,
    "severe_control_level1": True,
    "first_failed_gate": "severe_control",
}


@pytest.mark.parametrize("rival", ["circular_shift", "unit_order", "split_half_reliability"])
def test_a_control_that_wins_at_level_2_explains_no_score(rival):
    raw = why(*both(**AT_LEVEL_2, beaten_by=rival), *both(layer=2))[0]
    assert "under the point rules 1 of them scores no higher than" in raw
    assert raw.endswith("always nuisance features (1).")
    # Whatever the label: level 2 is not what a score is held against.
    other = both(**AT_LEVEL_2 | {"label": "control_explained"}, beaten_by=rival)
    assert why(*other)[0].endswith("none of them fails against nuisance or a severe control at level 1.")


@pytest.mark.parametrize("rival", ["unit_order", "split_half_reliability"])
def test_faults_of_the_recording_are_no_rivals(rival):
    raw = why(*both(beaten_by=rival), *both(layer=2, beaten_by="circular_shift"))[0]
    assert "1 of them scores no higher" in raw
    assert rival not in raw


def test_a_score_that_a_control_explains_counts_whatever_the_label():
    thin = why(*both(label="insufficient_coverage"), *both(layer=2))[0]
    assert thin.startswith("2 of 2 layers")
    assert thin.endswith(
        "2 of them score no higher than nuisance or a severe control at level 1, always nuisance features (2)."
    )
    assert "control-explained" not in thin


def test_a_test_that_does_not_reject_explains_nothing():
    tables = {DECISIONS.name: decided(claim("calibrated")), STUDY_OUTCOME.name: outcomes(None, "D")}
    assert why_sentences(tables)[0] == (
        f"1 of 1 layer {LAYERS.format(1, '')} has a positive mean score; as tests 1 of them is not shown to "
        "exceed nuisance or a severe control at level 1, always nuisance features (1)."
    )


def test_claims_about_mechanisms_of_a_layer_are_one_score_and_one_failure():
    rows = [
        row
        for mechanism in ("surprisal", "syntax", "discourse")
        for row in (
            *both(mechanism=mechanism),
            *both(mechanism=mechanism, layer=2, beaten_by="circular_shift"),
            *both(mechanism=mechanism, layer=3, raw_score=-0.1, first_failed_gate="relational"),
            *both(mechanism=mechanism, layer=3, model="n", first_failed_gate="mechanism"),
        )
    ]
    raw, failures, _ = why(*rows)
    assert raw.startswith(f"3 of 4 layers {LAYERS.format(12, 's')} have a positive mean score;")
    assert "2 of them score no higher" in raw
    assert raw.endswith("most often the control circular_shift (1), then nuisance features (1).")
    assert failures == (
        "2 of 4 layers fail first at the predictive gate and 3 of 3 claims about layers that pass P, S and R fail "
        "first at the mechanism gate under the point rules and as tests."
    )


def test_profiles_that_fail_elsewhere_are_told_apart():
    rows = [
        claim(first_failed_gate="ceiling"),
        claim("calibrated", first_failed_gate="none", beaten_by="false_discovery_rate"),
        claim(layer=2, first_failed_gate="ceiling"),
        claim("calibrated", layer=2, first_failed_gate="severe_control"),
    ]
    assert why(*rows)[1] == (
        "2 of 2 claims fail first at the ceiling gate under the point rules; 1 of 2 layers fails first at the "
        "severe-control gate as tests; 1 claim passes every test, but not the multiple-testing correction over claims."
    )


def test_nothing_to_explain():
    assert why(*both(raw_score=-0.2))[0] == f"None of 1 layer {LAYERS.format(1, '')} has a positive mean score."
    raw, failures, _ = why(*both(**WON))
    assert raw == (
        f"1 of 1 layer {LAYERS.format(1, '')} has a positive mean score; under the point rules none of them "
        "fails against nuisance or a severe control at level 1."
    )
    assert failures == "No claim fails a gate under the point rules and as tests."


ELSEWHERE = "In a separate small simulated study (signal-to-noise ratio 1.5), a planted signal "


@pytest.mark.parametrize(
    ("paper", "calibrated", "sham", "said"),
    [
        (
            True,
            True,
            False,
            f"{ELSEWHERE}passes every gate under the point rules and as tests, and the sham without signal does not",
        ),
        (
            True,
            False,
            False,
            f"{ELSEWHERE}passes every gate under the point rules, but not as tests",
        ),
        (False, False, False, f"{ELSEWHERE}does not pass every gate with these settings"),
        (
            True,
            True,
            True,
            "A small simulated study without any signal passes every gate under the point rules: these gates cannot",
        ),
    ],
)
def test_planted_signals(paper, calibrated, sham, said):
    tables = {
        DECISIONS.name: decided(*both()),
        STUDY_OUTCOME.name: outcomes("D", "D"),
        **planted(paper, calibrated, sham=sham),
    }
    (sentence,) = [s for s in why_sentences(tables, 1.5) if "signal" in s]
    assert sentence.startswith(said)
    # Without the option the ratio is not made up.
    assert "ratio" not in " ".join(why_sentences(tables))


def test_a_study_without_confirmatory_data_says_why():
    row = {c.name: {"str": "x", "int": 3, "float": 0.5, "bool": False}[c.dtype] for c in EVIDENCE_FEASIBILITY.columns}
    rows = [
        row | {"dataset": "b", "role_detail": "no\nsound"},
        row | {"dataset": "a", "role_detail": "", "role_reason": "chain_incomplete"},
        row | {"dataset": "c", "confirmatory": True},
    ]
    tables = {EVIDENCE_FEASIBILITY.name: frame(EVIDENCE_FEASIBILITY, rows)}
    said = why(*both(label="diagnostic_only"), tables=tables)
    assert said[0] == "Not confirmatory: a (chain_incomplete); b (no sound)."
    assert len(said) == 2
    assert why(tables=tables)[0] == said[0]
