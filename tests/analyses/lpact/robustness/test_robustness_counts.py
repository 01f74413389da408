from __future__ import annotations

import polars as pl
import pytest
from robustness_tables import (
    ABLATION,
    BRAIN_CEILING,
    CONTRAST,
    INVENTORY,
    THRESHOLDS,
    analysed,
    decider,
    passing_study,
    row,
    with_control,
)
from synthetic_tables import CEILING, CONTROL_DELTAS, DISSOCIATIONS, NULLS, put, stack

from lpact.analyses.lpact.robustness import (
    conventional_contrast,
    integrated_counts,
    model_summary,
    sensitivities,
)
from lpact.analyses.lpact.robustness.changes import threshold_sensitivity
from lpact.analyses.lpact.robustness.controls import Ablation
from lpact.analyses.lpact.robustness.uncertainty import level_quantities, uncertainty_by_level
from lpact.errors import TableError
from lpact.store import frame
from lpact.tables import find_table

# 5 runs; 2 metrics; 5 units x 4 summaries; 4 methods x 2 mechanisms x 2 targets; 1 pair of mechanisms.
RAW = {
    "raw_predictive_pearson": 5,
    "nuisance_only_improvement": 10,
    "raw_relational_similarity": 100,
    "raw_stripping_drop": 80,
    "pairwise_double_dissociation": 5,
    "raw_ceiling_fraction": 100,
    "integrated_decision": 2,
}


@pytest.fixture(scope="module")
def passing():
    return analysed(passing_study())


@pytest.fixture(scope="module")
def beaten():
    """Circular shift beats the model at both levels; the other control stays weak."""
    return analysed(with_control(passing_study(), "circular_shift", score=0.15, similarity=0.7))


def test_weaker_rules_beside_passes(passing):
    passes = RAW | {"raw_stripping_drop": 40, "pairwise_double_dissociation": 0}
    for analysis, n in RAW.items():
        found = row(passing[CONTRAST], analysis=analysis, gate_profile="paper")
        assert (found["n_positive"], found["n_total"]) == (n, n)
        assert found["n_lpact_pass"] == passes[analysis]
        assert found["n_claims_pass"] == found["n_claims"] == 2


def test_weaker_rules_stay_positive_where_nothing_passes(beaten):
    for analysis, n in RAW.items():
        found = row(beaten[CONTRAST], analysis=analysis, gate_profile="paper")
        assert found["n_positive"] == n
        assert found["n_lpact_pass"] == 0
        # Drops stay selective; a claim needs more than that.
        assert found["n_claims_pass"] == (2 if found["gate"] == "mechanism_specific" else 0)


def test_weaker_rules_count_rows_with_their_sign():
    """One run loses to nuisance, has a negative score, and one pair does not dissociate."""
    tables = passing_study()
    first = (pl.col("run") == "1") & (pl.col("metric") == "pearson")
    tables = put(tables, CONTROL_DELTAS, first, delta_nuisance=-0.1)
    tables = put(tables, DISSOCIATIONS, pl.col("run") == "1", drop_ab=0.04)
    tables = put(tables, CEILING, pl.col("run") == "1", fraction_of_ceiling=0.2)
    found = conventional_contrast(decider(tables))
    assert row(found, analysis="nuisance_only_improvement", gate_profile="paper")["n_positive"] == 9
    pairs = row(found, analysis="pairwise_double_dissociation", gate_profile="paper")
    assert (pairs["n_positive"], pairs["n_total"]) == (4, 5)
    ceiling = row(found, analysis="raw_ceiling_fraction", gate_profile="paper")
    assert (ceiling["n_positive"], ceiling["n_total"]) == (80, 100)


def thresholds(tables, **gates):
    """The one table, without the others."""
    of = decider(tables, **gates)
    datasets = ["demo"]
    uncertainty = uncertainty_by_level(level_quantities(of), datasets, seed=0)
    return threshold_sensitivity(of, Ablation(of), uncertainty)


def threshold(tables, family, profile="all"):
    rows = tables[THRESHOLDS].filter(family=family, gate_profile=profile)
    return {r: (n, total) for r, n, total in rows.select("rule", "n_pass", "n_eligible").iter_rows()}


def test_thresholds_by_hand(passing):
    """Every fraction is 0.625 and every reliability 0.8."""
    fractions = {"0.1": (100, 100), "0.25": (100, 100), "0.5": (100, 100), "0.75": (0, 100)}
    assert threshold(passing, "raw_fraction_of_ceiling") == fractions
    assert threshold(passing, "control_surviving_fraction_of_ceiling") == fractions
    assert threshold(passing, "integrated_fraction_of_ceiling", "paper") == {
        "0.1": (2, 2),
        "0.25": (2, 2),
        "0.5": (2, 2),
        "0.75": (0, 2),
    }
    reliable = {"0.05": (5, 5), "0.1": (5, 5), "0.2": (5, 5)}
    assert threshold(passing, "brain_reliability_minimum") == reliable
    # Four dataset and level summaries, all positive in every run.
    directions = {"0.5": (4, 4), "0.6": (4, 4), "0.7": (4, 4)}
    assert threshold(passing, "direction_only") == directions
    assert threshold(passing, "direction_gate_qualified") == directions


def test_control_survival_is_not_a_matter_of_thresholds(beaten):
    assert threshold(beaten, "raw_fraction_of_ceiling")["0.1"] == (100, 100)
    assert threshold(beaten, "control_surviving_fraction_of_ceiling")["0.1"] == (0, 100)
    assert threshold(beaten, "integrated_fraction_of_ceiling", "paper")["0.1"] == (0, 2)
    # The drops stay positive; the three other contrasts do not.
    assert threshold(beaten, "direction_only")["0.5"] == (1, 4)
    assert threshold(beaten, "direction_gate_qualified")["0.5"] == (0, 4)


def test_the_runs_own_threshold_is_among_those_tried():
    found = thresholds(passing_study(), min_ceiling_fraction=0.3, direction_fraction=0.8)
    own = found.filter("configured").select("family", "rule").rows()
    assert ("raw_fraction_of_ceiling", "0.3") in own
    assert ("integrated_direction", "0.8") in own
    assert ("predictive_best_control_rule", "max") in own


def test_reliability_threshold_counts_valid_profiles():
    tables = put(passing_study(), BRAIN_CEILING, pl.col("run") == "1", reliability=0.07)
    tables = put(tables, BRAIN_CEILING, pl.col("run") == "2", valid=False)
    found = {THRESHOLDS: thresholds(tables)}
    assert threshold(found, "brain_reliability_minimum") == {
        "0.05": (4, 4),
        "0.1": (3, 4),
        "0.2": (3, 4),
    }


def choice(tables, scenario, stage="predictive", profile="paper"):
    return row(tables[ABLATION], scenario=scenario, stage=stage, gate_profile=profile)


def test_one_strong_control_explains_everything(beaten):
    """Without circular shift the contrasts are 0.1 − 0.01 and 0.5 − 0.05, and both claims are integrated."""
    every = choice(beaten, "all_controls")
    assert (every["n_positive"], every["n_stage_pass"], every["n_rows"]) == (0, 0, 10)
    assert every["median_delta"] == pytest.approx(0.1 - 0.15)
    assert every["n_integrated"] == 0
    without = choice(beaten, "without_circular_shift")
    assert (without["n_positive"], without["n_stage_pass"]) == (10, 10)
    assert without["median_delta"] == pytest.approx(0.09)
    assert (without["n_integrated"], without["n_gained"], without["n_lost"]) == (2, 2, 0)
    relational = choice(beaten, "without_circular_shift", "relational")
    assert (relational["n_positive"], relational["n_rows"]) == (100, 100)
    assert relational["median_delta"] == pytest.approx(0.45)
    assert choice(beaten, "without_random_matched_dim")["n_integrated"] == 0
    assert choice(beaten, "only_temporal_controls")["n_integrated"] == 0


def test_the_mean_of_the_top_three_weakens_rows_and_not_survival(beaten):
    """Two controls: (0.15 + 0.01) / 2 = 0.08 is below 0.1, but circular shift is still ahead of the model."""
    found = choice(beaten, "all_controls_mean_top_3")
    assert found["median_delta"] == pytest.approx(0.02)
    assert (found["n_positive"], found["n_stage_pass"]) == (10, 10)
    assert found["n_integrated"] == 0
    assert threshold(beaten, "predictive_best_control_rule") == {
        "max": (0, 10),
        "mean_top_3": (10, 10),
    }


def test_nuisance_alone_is_a_weak_rival(beaten):
    """Level 2 keeps its controls, so that only level 1 is let off."""
    found = choice(beaten, "only_nuisance")
    assert (found["n_positive"], found["n_stage_pass"]) == (10, 10)
    assert found["median_delta"] == pytest.approx(0.05)
    assert found["n_integrated"] == 0
    tables = with_control(passing_study(), "circular_shift", score=0.15)
    one_level = {ABLATION: Ablation(decider(tables)).table()}
    assert choice(one_level, "all_controls")["n_integrated"] == 0
    assert choice(one_level, "only_nuisance")["n_gained"] == 2


def test_uncounted_controls_matter_to_the_profile_that_counts_them(passing):
    """Static embeddings are ahead of the model: they stop the calibrated profile and no other."""
    assert choice(passing, "all_controls", profile="calibrated")["n_integrated"] == 0
    without = choice(passing, "without_static_embedding", profile="calibrated")
    assert without["n_gained"] == 2
    assert choice(passing, "without_static_embedding")["n_gained"] == 0


def test_a_choice_without_controls_says_so():
    """No temporal control in the study: nothing to compare with."""
    tables = passing_study()
    for name in (NULLS, "relational/profile_similarity_scores"):
        column = "control" if name == NULLS else "condition"
        tables[name] = tables[name].with_columns(pl.col(column).replace("circular_shift", "sentence_reset_fresh"))
    for name in (CONTROL_DELTAS, "relational/profile_similarity_deltas"):
        tables[name] = tables[name].with_columns(best_control=pl.lit("sentence_reset_fresh"))
    found = {ABLATION: Ablation(decider(tables)).table()}
    empty = choice(found, "only_temporal_controls")
    assert (empty["median_delta"], empty["reason"]) == (None, "no_control_left")
    assert (empty["n_positive"], empty["n_integrated"], empty["n_lost"]) == (0, 0, 2)
    assert choice(found, "all_controls")["n_integrated"] == 2


def test_what_alters_the_result_is_named(passing, beaten):
    assert integrated_counts(passing)["paper"] == (2, 2)
    by_kind = {f.kind: f for f in sensitivities(passing) if f.gate_profile == "paper"}
    thresholds = by_kind["thresholds and rules"]
    assert thresholds.changes == ("fraction_of_ceiling 0.75: 0 of 2 integrated instead of 2",)
    assert by_kind["choices of controls"].stable
    shaken = {f.kind: f for f in sensitivities(beaten) if f.gate_profile == "paper"}
    assert shaken["choices of controls"].changes == ("without_circular_shift: 2 of 2 integrated (+2, -0)",)
    assert shaken["thresholds and rules"].stable


def test_models_with_and_without_claims():
    tables = passing_study()
    left_out = {
        "model": "gpt3",
        "dataset": "demo",
        "source": "precomputed",
        "layers_offered": [],
        "layers_claimed": [4],
        "contexts_offered": [],
        "n_features": [],
        "included": False,
        "reason": "model_offers_nothing",
    }
    rows = [*tables[INVENTORY].to_dicts(), left_out]
    tables[INVENTORY] = frame(find_table(INVENTORY), rows)
    found = model_summary(decider(tables))
    entered = row(found, model="gpt2")
    assert entered["included"]
    assert (entered["datasets"], entered["layers"], entered["n_claims"]) == (["demo"], [8], 2)
    assert entered["controls_available"] == [
        "circular_shift",
        "random_matched_dim",
        "static_embedding",
    ]
    excluded = row(found, model="gpt3")
    assert not excluded["included"]
    assert (excluded["reason"], excluded["n_claims"]) == ("model_offers_nothing", 0)
    assert excluded["datasets_without"] == ["demo"]


def test_tables_of_different_runs_are_refused():
    tables = put(passing_study(), NULLS, pl.col("control") == "circular_shift", control_score=0.09)
    with pytest.raises(TableError, match="not those of the stored control scores"):
        Ablation(decider(tables))


def test_a_missing_table_is_named():
    tables = passing_study()
    del tables[BRAIN_CEILING]
    with pytest.raises(TableError, match=BRAIN_CEILING):
        analysed(tables)


def test_row_order_changes_nothing():
    tables = stack(passing_study(dataset="one", runs=("1", "2")), passing_study(dataset="two", runs=("1",)))
    shuffled = {name: t.sample(fraction=1.0, shuffle=True, seed=3) for name, t in tables.items()}
    first, second = analysed(tables), analysed(shuffled)
    assert first.keys() == second.keys()
    for name, table in first.items():
        assert table.equals(second[name]), name
