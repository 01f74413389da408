"""Explanations of a verdict, as a reader sees them."""

from __future__ import annotations

import polars as pl
import pytest
from synthetic_tables import (
    CONTROL_DELTAS,
    DECISIONS,
    EVIDENCE,
    SPECIFICITY,
    Tables,
    decided,
    make_diagnostic,
    passing_tables,
    put,
    stack,
)

from lpact.analyses.lpact.gates import explain
from lpact.codes import Gate
from lpact.errors import LPactError

CLAIM = "demo/gpt2/8/surprisal"


def explained(tables: Tables, claim: str | tuple[str | int, ...] = CLAIM) -> str:
    out = decided(tables)
    return explain(claim, out[DECISIONS], out[EVIDENCE])


def test_a_passing_claim_shows_every_gate_with_its_numbers() -> None:
    text = explained(passing_tables())
    assert text.splitlines()[0] == "demo/gpt2/8/surprisal (paper gates)"
    assert "Verdict: integrated_candidate." in text
    for gate in Gate:
        assert f"[pass] {gate.value}: {gate.explanation}" in text
    assert (
        "    [pass] mean_delta_control: 0.04 (needs > 0, compared with circular_shift; n = 5)\n"
        "           The model scores 0.1, the best severe control (most often circular_shift) 0.06: "
        "a difference of 0.04 (mean over 5 subject-runs)."
    ) in text
    assert "[fail]" not in text
    assert text.endswith("What would have to change\n  Nothing: every gate passes.")


def test_gates_appear_in_their_order() -> None:
    text = explained(passing_tables())
    places = [text.index(f"] {gate.value}: ") for gate in Gate]
    assert places == sorted(places)


def test_a_failed_claim_says_how_much_is_missing() -> None:
    text = explained(put(passing_tables(), CONTROL_DELTAS, delta_control=-0.007))
    assert "[fail] predictive: " in text
    assert "    [pass] mean_delta_nuisance: 0.05" in text
    assert "    [fail] mean_delta_control: -0.007 (needs > 0" in text
    wanted = "  predictive, mean_delta_control: -0.007 must rise by more than 0.007 to be > 0."
    assert wanted in text.split("What would have to change\n")[1].splitlines()


def test_every_failed_gate_is_asked_to_change_in_their_order() -> None:
    tables = put(passing_tables(), CONTROL_DELTAS, delta_control=-0.007)
    change = explained(put(tables, SPECIFICITY, margin=-1.0)).split("What would have to change\n")[
        1
    ]
    gates = [line.split(",")[0].strip() for line in change.splitlines()]
    assert gates == ["predictive", "mechanism", "replication"]


def test_a_number_that_is_missing_is_said_to_be_missing() -> None:
    tables = put(passing_tables(), SPECIFICITY, margin=None, reason="degenerate_direction")
    text = explained(tables)
    assert "[fail] methods_agreeing: not computed (needs >= 0.5; n = 0)" in text
    assert "methods_agreeing: there must be a number first. No stripping method" in text


def test_typical_values_are_information_not_failures() -> None:
    methods = pl.col("method").is_in(["feature_zeroing", "layer_ablation"])
    text = explained(put(passing_tables(), SPECIFICITY, methods, margin=-1.0))
    assert "[info] typical_margin: -0.49" in text
    assert "[pass] mechanism: " in text


def test_a_diagnostic_claim_says_what_holds_it_back() -> None:
    text = explained(make_diagnostic(passing_tables()))
    assert (
        text.count("    [fail] confirmatory: The dataset is not confirmatory (role secondary: ")
        == 6
    )
    assert "    [pass] mean_delta_control" in text
    change = text.split("What would have to change\n")[1].splitlines()
    assert len(change) == 1
    assert change[0].startswith("  The dataset is not confirmatory")


def test_a_tuple_and_outer_slashes_name_the_same_claim() -> None:
    tables = passing_tables()
    assert explained(tables, ("demo", "gpt2", 8, "surprisal")) == explained(tables, f"/{CLAIM}/")


def test_without_a_mechanism_all_are_listed() -> None:
    tables = stack(passing_tables(), passing_tables(layer=9))
    mechanism = (pl.col("stripped") == "surprisal") & (pl.col("layer") == 8)
    lines = explained(put(tables, SPECIFICITY, mechanism, margin=-1.0), "demo/gpt2/8").splitlines()
    assert lines[0] == "demo/gpt2/8"
    assert lines[2] == "context_update: integrated_candidate"
    assert lines[4] == "surprisal: relational_candidate"
    assert lines[5].startswith("  Relational candidate: 0 of 4 stripping methods")
    assert "9" not in lines[0] + lines[2] + lines[4]


def test_an_unknown_claim_lists_claims_and_the_nearest() -> None:
    with pytest.raises(LPactError) as caught:
        explained(passing_tables(), "demo/gpt2/8/suprisal")
    assert caught.value.remedy == "did you mean 'demo/gpt2/8/surprisal'?"
    assert "demo/gpt2/8/context_update, demo/gpt2/8/surprisal" in str(caught.value.expected)


def test_ten_claims_are_listed_at_most() -> None:
    tables = stack(*(passing_tables(layer=layer) for layer in range(6)))
    with pytest.raises(LPactError) as caught:
        explained(tables, "nowhere")
    assert str(caught.value.expected).count("demo/gpt2/") == 10
    assert str(caught.value.expected).endswith("and 2 more")
    assert caught.value.remedy == "choose one of the listed claims"
