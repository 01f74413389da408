"""The calibrated profile on a layer that passes every test, broken one number at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from scipy import stats
from synthetic_tables import (
    BLOCK_DROPS,
    BLOCKS,
    CEILING,
    DECISIONS,
    EVIDENCE,
    N_BLOCKS,
    NULLS,
    OUTCOME,
    PROFILE_DELTAS,
    RANDOM,
    RELATIONAL_NULLS,
    RUNS,
    SCORES,
    Tables,
    claim_row,
    decided,
    make_diagnostic,
    passing_tables,
    put,
    stack,
)

CONDITION, AGAINST = pl.col("condition"), pl.col("against")
STATIC_BLOCKS = CONDITION == "static_embedding"


def blocks(*values: float) -> pl.Expr:
    return pl.lit(list(values))


def sound(**options: Any) -> Tables:
    """The passing study, in which static embeddings are no better than elsewhere: calibrated gates count them."""
    tables = passing_tables(**options)
    tables = put(tables, BLOCKS, STATIC_BLOCKS, scores=blocks(*[0.02] * N_BLOCKS))
    return put(tables, RELATIONAL_NULLS, AGAINST == "static_embedding", advantage=0.3)


def calibrated_row(tables: Tables, **gates: Any) -> dict[str, Any]:
    return claim_row(tables, profile="calibrated", **gates)


def criterion(tables: Tables, name: str, mechanism: str = "surprisal") -> dict[str, Any]:
    rows = decided(tables, "calibrated")[EVIDENCE].filter(criterion=name, mechanism=mechanism)
    return rows.row(0, named=True)


def test_a_sound_layer_is_an_integrated_candidate():
    row = calibrated_row(sound())
    assert row["label"] == "integrated_candidate"
    assert row["integrated"]
    assert row["first_failed_gate"] == row["beaten_by"] == "none"
    assert 0.0 < row["p_value"] <= row["q_value"] <= 0.05


def test_static_embeddings_count_here_and_not_in_the_paper():
    tables = passing_tables()
    assert claim_row(tables)["label"] == "integrated_candidate"
    row = calibrated_row(tables)
    assert (row["label"], row["first_failed_gate"]) == ("control_explained", "predictive")
    assert row["beaten_by"] == "static_embedding"


CASES: list[tuple[str, Callable[[Tables], Tables], str, str]] = [
    (
        "nuisance is as good in half of the blocks",
        lambda t: put(t, BLOCKS, CONDITION == "nuisance", scores=blocks(0.05, 0.18, 0.07, 0.18)),
        "predictive",
        "nuisance",
    ),
    (
        "draws of a surrogate reach the model",
        lambda t: put(t, SCORES, (CONDITION == "circular_shift") & (pl.col("draw") < 2), score_median=0.11),
        "predictive",
        "circular_shift",
    ),
    (
        "a rival wins as often as it loses",
        lambda t: put(t, BLOCKS, STATIC_BLOCKS, scores=blocks(0.02, 0.21, 0.21, 0.02)),
        "predictive",
        "static_embedding",
    ),
    (
        "another unit order does as well",
        lambda t: put(t, RELATIONAL_NULLS, AGAINST == "unit_order", draws=pl.lit([0.6] * 3 + [0.0] * 17)),
        "relational",
        "unit_order",
    ),
    (
        "nuisance resembles the brain more",
        lambda t: put(t, RELATIONAL_NULLS, AGAINST == "nuisance", advantage=-0.1),
        "relational",
        "nuisance",
    ),
    (
        "brain patterns are not reliable",
        lambda t: put(t, PROFILE_DELTAS, split_half_reliability=0.05),
        "relational",
        "split_half_reliability",
    ),
    (
        "another target drops as much",
        lambda t: put(
            t,
            BLOCK_DROPS,
            (pl.col("stripped") == "surprisal") & (pl.col("target") == "context_update"),
            drops=blocks(0.03, 0.05, 0.01, 0.03),
        ),
        "mechanism",
        "context_update",
    ),
    (
        "with nuisance features nothing is lost",
        lambda t: put(t, BLOCK_DROPS, pl.col("beside") == "nuisance", drops=blocks(0.01, -0.01, 0.0, 0.001)),
        "mechanism",
        "context_update",
    ),
    (
        "random directions cost as much",
        lambda t: put(
            t,
            BLOCK_DROPS,
            (pl.col("stripped") == RANDOM) & (pl.col("target") == "surprisal"),
            drops=blocks(0.03, 0.05, 0.01, 0.03),
        ),
        "mechanism",
        "random direction",
    ),
    (
        "fractions spread around the threshold",
        lambda t: put(
            t,
            CEILING,
            fraction_of_ceiling=pl.col("run").replace_strict(dict(zip(RUNS, (0.05, 0.2, 0.3, 0.4, 0.6), strict=True))),
        ),
        "ceiling",
        "run_to_run",
    ),
    (
        "three of five subject-runs show nothing",
        lambda t: put(
            t,
            BLOCKS,
            (CONDITION == "nuisance") & pl.col("run").is_in(["3", "4", "5"]),
            scores=blocks(0.08, 0.13, 0.10, 0.14),
        ),
        "replication",
        "2 of 5 subject-runs",
    ),
]


@pytest.mark.parametrize(("change", "gate", "beaten_by"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_each_gate_is_broken_by_its_own_numbers(change, gate, beaten_by):
    found = decided(change(sound()), "calibrated")
    row = found[DECISIONS].row(by_predicate=pl.col("mechanism") == "surprisal", named=True)
    assert (row["first_failed_gate"], row["beaten_by"]) == (gate, beaten_by)
    assert not row["integrated"]
    assert_gates_follow_criteria(found)


def assert_gates_follow_criteria(found):
    """A gate passes exactly if all of its criteria hold."""
    for claim in found[DECISIONS].iter_rows(named=True):
        own = found[EVIDENCE].filter(mechanism=claim["mechanism"])
        columns = {"mechanism": "mechanism_specific"}
        for (gate,), rows in own.group_by("gate"):
            assert claim[columns.get(gate, gate)] == rows["passed"].all(), gate


def test_a_control_that_level_1_does_not_list_is_not_asked():
    """Families are taken out by their level-1 rows, as the ablation does."""
    tables = passing_tables()
    without = {**tables, NULLS: tables[NULLS].filter(pl.col("control") != "static_embedding")}
    assert calibrated_row(tables)["beaten_by"] == "static_embedding"
    assert calibrated_row(without)["label"] == "integrated_candidate"


def test_p_values_by_hand():
    tables = sound()
    # Blocks are ahead by 0.05, 0.06, 0.07 and 0.08 in everybody: Student's t over four means is the harder test.
    ahead = [0.05, 0.06, 0.07, 0.08]
    expected = stats.ttest_1samp(ahead, 0.0, alternative="greater").pvalue
    assert criterion(tables, "p_nuisance")["value"] == pytest.approx(expected)
    assert criterion(tables, "p_nuisance")["n"] == len(RUNS) * N_BLOCKS
    # Draws that reach the model count, plus the model itself.
    reached = put(tables, SCORES, (CONDITION == "circular_shift") & (pl.col("draw") < 3), score_median=0.1)
    assert criterion(reached, "p_surrogates")["value"] == pytest.approx(4 / 21)


def test_too_few_draws_cannot_pass():
    tables = sound()
    few = {
        **tables,
        SCORES: tables[SCORES].filter((CONDITION == "real") | (pl.col("draw") < 2)),
    }
    assert criterion(few, "p_surrogates")["value"] == pytest.approx(1 / 3)
    assert calibrated_row(few)["first_failed_gate"] == "predictive"


def test_two_subject_runs_are_no_replication():
    row = calibrated_row(sound(runs=RUNS[:2]))
    assert row["label"] == "insufficient_coverage"
    assert not row["replication"]


def nothing_in(tables: Tables) -> Tables:
    """A layer that nothing speaks for."""
    return put(tables, BLOCKS, CONDITION == "real", scores=blocks(*[-0.1] * N_BLOCKS))


def test_labels_are_corrected_over_the_claims():
    """Alone the layer passes; among four others that show nothing its p-value is too large, and no gate is to blame."""
    weak = put(sound(), BLOCK_DROPS, pl.col("stripped") == RANDOM, drops=blocks(0.012, 0.03, 0.01, 0.025))
    alone = calibrated_row(weak, fdr=0.05)
    assert alone["label"] == "integrated_candidate"
    assert 0.01 < alone["p_value"] <= 0.05
    crowd = [nothing_in(sound(layer=layer)) for layer in range(20, 24)]
    rows = decided(stack(weak, *crowd), "calibrated")[DECISIONS]
    row = rows.filter(layer=8, mechanism="surprisal").row(0, named=True)
    gates = ("predictive", "relational", "mechanism_specific", "ceiling", "severe_control")
    assert all(row[gate] for gate in gates)
    assert not row["integrated"]
    assert row["q_value"] > 0.05
    assert row["label"] == "relational_candidate"  # rests on the layer alone, whose p-value is small
    assert (row["first_failed_gate"], row["beaten_by"]) == ("none", "false_discovery_rate")
    assert "after multiple-testing correction over 10 claims" in row["reason"]


def test_claims_of_diagnostic_datasets_are_not_counted_in_the_correction():
    crowd = [make_diagnostic(nothing_in(sound(dataset="other", layer=layer))) for layer in range(9)]
    rows = decided(stack(sound(), *crowd), "calibrated")[DECISIONS]
    own = rows.filter(dataset="demo", mechanism="surprisal").row(0, named=True)
    assert own["q_value"] == pytest.approx(calibrated_row(sound())["q_value"])
    others = rows.filter(dataset="other")
    assert set(others["label"]) == {"diagnostic_only"}
    assert others["p_value"].null_count() == others.height == 18


def test_both_profiles_have_an_outcome():
    from lpact.analyses.lpact.config import GatesConfig
    from lpact.analyses.lpact.gates import decide

    found = decide(passing_tables(), gates=GatesConfig(), primary_metric="pearson")[OUTCOME]
    assert dict(found.select("gate_profile", "outcome").iter_rows()) == {
        "paper": "A",
        "calibrated": "D",
    }


def test_every_gate_of_a_sound_layer_follows_its_criteria():
    assert_gates_follow_criteria(decided(sound(), "calibrated"))


def test_a_draw_that_is_missing_somewhere_is_left_out_everywhere():
    """Draws are paired by their number: the third draw of one subject-run is not another one's fourth."""
    tables = sound()
    lost = (pl.col("run") == "2") & (pl.col("draw") == 2) & (CONDITION == "circular_shift")
    without = put(tables, SCORES, lost, score_median=None)
    found = criterion(without, "p_controls_level1")
    assert found["passed"]
    surrogate = decided(without, "calibrated")[EVIDENCE].filter(criterion="p_surrogates")
    assert set(surrogate["n"]) <= {19, 20}


def test_what_could_not_be_fitted_beside_nuisance_counts_against_the_claim():
    tables = sound()
    alone = {**tables, BLOCK_DROPS: tables[BLOCK_DROPS].filter(pl.col("beside") == "nothing")}
    row = calibrated_row(alone)
    assert (row["first_failed_gate"], row["mechanism_specific"]) == ("mechanism", False)
    no_nuisance = {**alone, BLOCKS: alone[BLOCKS].filter(CONDITION != "nuisance")}
    assert criterion(no_nuisance, "p_beyond_nuisance")["passed"]


def test_a_failed_test_is_not_worded_as_a_fact():
    tables = put(sound(), BLOCKS, CONDITION == "nuisance", scores=blocks(0.2, 0.2, 0.2, 0.2))
    sentence = criterion(tables, "p_nuisance")["sentence"]
    assert sentence.startswith("It is not shown that the score is above that of nuisance")
    assert criterion(sound(), "p_nuisance")["sentence"].startswith("The score is above that of")
