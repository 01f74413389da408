from __future__ import annotations

import polars as pl
import pytest
from robustness_tables import (
    BY_MECHANISM,
    RUN_DECISIONS,
    THRESHOLDS,
    UNCERTAINTY,
    WITHOUT_DATASET,
    WITHOUT_RUN,
    analysed,
    contrasted,
    decider,
    passing_study,
    row,
    with_control,
)
from synthetic_tables import CONTROL_DELTAS, SPECIFICITY, STRIPPING_DELTAS, put, stack

from lpact.analyses.lpact.robustness import sensitivities
from lpact.analyses.lpact.robustness.changes import (
    leave_one_dataset_out,
    leave_one_subject_run_out_decisions,
)
from lpact.analyses.lpact.robustness.uncertainty import (
    leave_one_subject_run_out,
    level_quantities,
    uncertainty_by_level,
)
from lpact.store import frame
from lpact.tables import find_table

BRAIN_AS_MODEL = "controls/brain_as_model_relational_gate"


def with_real_scores(tables, scores):
    """The study with another real score in each run; the best control scores 0.06."""
    for run, score in scores.items():
        tables = put(tables, CONTROL_DELTAS, pl.col("run") == run, real_score=score)
    return contrasted(tables)


@pytest.fixture(scope="module")
def uneven():
    """Contrasts with the best control: 0.5 in the first run, −0.1 in the others."""
    scores = {"1": 0.56, "2": -0.04, "3": -0.04, "4": -0.04, "5": -0.04}
    return analysed(with_real_scores(passing_study(), scores))


def test_one_subject_run_can_carry_the_sign(uneven):
    found = row(uneven[WITHOUT_RUN], level="predictive_delta")
    assert found["full_mean"] == pytest.approx((0.5 - 4 * 0.1) / 5)
    assert found["leave_one_min"] == pytest.approx(-0.1)
    assert found["leave_one_max"] == pytest.approx((0.5 - 3 * 0.1) / 4)
    assert found["sign_flip"]
    assert found["positive_rate"] == pytest.approx(0.2)
    assert found["most_influential"] == "01/a/1"
    steady = row(uneven[WITHOUT_RUN], level="stripping_drop")
    assert not steady["sign_flip"]
    by_kind = {f.kind: f for f in sensitivities(uneven) if f.gate_profile == "paper"}
    assert by_kind["omitted datasets (outcome)"].tried == 0
    assert steady["leave_one_min"] == steady["leave_one_max"] == pytest.approx(0.02)


def test_intervals_of_levels(uneven):
    found = row(uneven[UNCERTAINTY], level="predictive_delta")
    assert (found["n_rows"], found["n_units"], found["n_rows_missing"]) == (5, 5, 0)
    assert found["mean"] == pytest.approx(0.02)
    # All resamples without the first run, a third of them, have the mean −0.1.
    assert found["ci_low"] == pytest.approx(-0.1)
    assert found["ci_high"] > 0.1
    assert found["best_control"] == "circular_shift"
    drops = row(uneven[UNCERTAINTY], level="stripping_drop")
    assert (drops["n_rows"], drops["best_control"]) == (80, "not_applicable")
    assert drops["mean"] == pytest.approx((0.03 + 0.01) / 2)
    ceiling = row(uneven[UNCERTAINTY], level="ceiling_delta")
    assert ceiling["mean"] == pytest.approx(0.2 / 0.8)


def test_intervals_of_mechanisms(uneven):
    means = {"drop": 0.02, "matching_drop": 0.03, "margin": 0.02, "mismatch_margin": 0.025}
    for mechanism in ("context_update", "surprisal"):
        for quantity, mean in means.items():
            found = row(uneven[BY_MECHANISM], mechanism=mechanism, quantity=quantity)
            assert found["mean"] == pytest.approx(mean)
            assert found["n_units"] == 5
    assert uneven[BY_MECHANISM].height == 8


def test_rows_without_a_number_are_counted_and_left_out():
    tables = put(
        passing_study(),
        STRIPPING_DELTAS,
        pl.col("run") == "1",
        reason="undefined_score",
        drop=None,
    )
    tables = put(tables, SPECIFICITY, pl.col("run") == "1", reason="undefined_score")
    found = row(uncertainty(tables), level="stripping_drop")
    assert (found["n_rows"], found["n_rows_missing"], found["n_units"]) == (64, 16, 4)


def test_one_subject_run_is_a_limit_of_coverage():
    tables = passing_study(runs=("1",))
    interval = row(uncertainty(tables), level="relational_delta")
    assert interval["degenerate"]
    assert interval["reason"] == "single_aggregation_unit"
    assert interval["ci_low"] == interval["mean"] == interval["ci_high"] == pytest.approx(0.2)
    quantities = level_quantities(decider(tables))
    left = row(leave_one_subject_run_out(quantities, ["demo"]), level="relational_delta")
    assert (left["leave_one_min"], left["reason"]) == (None, "single_aggregation_unit")
    assert not left["sign_flip"]


def uncertainty(tables):
    """The one table, without the others."""
    quantities = level_quantities(decider(tables))
    return uncertainty_by_level(quantities, ["demo"], seed=0)


def without_runs(tables):
    decided = leave_one_subject_run_out_decisions(decider(tables))
    return decided.filter(gate_profile="paper")


def test_a_level_without_rows_says_so():
    tables = passing_study()
    for name in (STRIPPING_DELTAS, SPECIFICITY):
        tables[name] = tables[name].clear()
    found = row(uncertainty(tables), level="stripping_drop")
    assert (found["mean"], found["n_units"], found["reason"]) == (None, 0, "nothing_measured")


def test_losing_a_subject_run_can_lose_coverage():
    """Three subject-runs are needed: none of three can be spared, any of five can."""
    three = analysed(passing_study(runs=("1", "2", "3")))[RUN_DECISIONS].filter(gate_profile="paper")
    assert three["n_lost"].to_list() == [2, 2, 2]
    assert three["n_lost_coverage"].to_list() == [2, 2, 2]
    five = without_runs(passing_study())
    assert five["n_integrated"].to_list() == [2] * 5
    assert five["n_lost"].sum() == 0


def test_a_subject_run_can_stand_in_the_way():
    """One run far below its controls pulls the mean down; without it both claims pass."""
    scores = dict.fromkeys("2345", 0.1) | {"1": -0.5}
    found = analysed(with_real_scores(passing_study(), scores))
    rows = found[RUN_DECISIONS].filter(gate_profile="paper")
    gained = dict(rows.select("run", "n_gained").iter_rows())
    assert gained == {"1": 2, "2": 0, "3": 0, "4": 0, "5": 0}
    by_kind = {f.kind: f for f in sensitivities(found) if f.gate_profile == "paper"}
    assert by_kind["omitted subject-runs"].changes == ("without demo/01/a/1: 2 of 2 integrated (+2, -0)",)


def test_datasets_one_at_a_time():
    good = passing_study(dataset="good")
    bad = with_control(passing_study(dataset="bad"), "circular_shift", score=0.2, similarity=0.8)
    found = analysed(stack(good, bad))
    table = found[WITHOUT_DATASET].filter(gate_profile="paper")
    without_good = row(table, omitted="good")
    assert (without_good["remaining"], without_good["n_claims"]) == (["bad"], 2)
    assert (without_good["n_integrated"], without_good["n_control_explained"]) == (0, 2)
    assert (without_good["outcome"], without_good["outcome_of_run"]) == ("D", "A")
    without_bad = row(table, omitted="bad")
    assert (without_bad["n_integrated"], without_bad["outcome"]) == (2, "A")
    assert (without_bad["n_predictive"], without_bad["n_mechanism"]) == (2, 2)
    by_kind = {f.kind: f for f in sensitivities(found) if f.gate_profile == "paper"}
    assert by_kind["omitted datasets (outcome)"].changes == ("without good: outcome D instead of A",)


def test_a_study_of_one_dataset_has_nothing_left():
    only = row(leave_one_dataset_out(decider(passing_study())), omitted="demo", gate_profile="paper")
    assert (only["n_claims"], only["remaining"], only["outcome"]) == (0, [], "I")


def brain_rows(deltas, passed):
    """One row a pair of recordings and unit."""
    return frame(
        find_table(BRAIN_AS_MODEL),
        [
            {
                "dataset": "demo",
                "comparison": "run_to_run",
                "source": source,
                "target": "9",
                "unit": unit,
                "alignment": "linear",
                "profile": "pearson",
                "n_units_shared": 5,
                "split_half_reliability": 0.7,
                "similarity": 0.4,
                "shuffled_similarity": 0.4 - delta,
                "delta": delta,
                "p_value": 0.1,
                "n_permutations": 9,
                "gate_pass": unit in passed,
                "reason": "ok",
            }
            for source, delta in deltas.items()
            for unit in ("u1", "u2", "u3", "u4", "u5")
        ],
    )


def test_brains_as_models_are_shown_where_a_run_has_them():
    tables = passing_study(runs=("1", "2"))
    assert "brain_as_model_run_to_run" not in uncertainty(tables)["level"].to_list()
    tables[BRAIN_AS_MODEL] = brain_rows({"1": 0.1, "2": 0.3}, passed={"u1", "u2", "u3"})
    found = analysed(tables)
    level = row(found[UNCERTAINTY], level="brain_as_model_run_to_run")
    assert (level["unit"], level["n_units"], level["n_rows"]) == ("source_target_pair", 2, 10)
    assert (level["mean"], level["n_gate_rows"]) == (pytest.approx(0.2), 6)
    assert (level["ci_low"], level["ci_high"]) == (pytest.approx(0.1), pytest.approx(0.3))
    assert "brain_as_model_run_to_run" not in found[WITHOUT_RUN]["level"].to_list()
    counts = found[THRESHOLDS].filter(family="brain_as_model_pass_fraction")
    passing = dict(counts.select("rule", "n_pass").iter_rows())
    assert passing == {"0.5": 1, "0.6": 1, "0.7": 0}
    assert counts["n_eligible"].to_list() == [1, 1, 1]
