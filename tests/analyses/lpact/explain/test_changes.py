"""What would have to change for a claim: every sentence is worked out by hand, and every bound is tried out."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from explained_tables import criterion, fact, made, passing_tables, sound
from explained_tables import decided_and_explained as explained_after

from lpact.analyses.lpact.explain.changes import (
    above_draws,
    p_that_is_enough,
    rounded,
)
from lpact.stats import benjamini_hochberg, draw_p_value

# --- what would change -------------------------------------------------------------------------


def test_a_rival_that_scores_higher_by_a_hair():
    tables = made.put(passing_tables(), made.CONTROL_DELTAS, nuisance_score=0.112, delta_nuisance=-0.012)
    story = explained_after(tables)
    assert story.what_would_change[0] == (
        "Predictive gate: the mean advantage over nuisance would have to rise from -0.012 to above 0."
    )
    shown = criterion(story, "mean_delta_nuisance").distributions[0]
    assert (shown.kind, shown.values) == ("subject-run", (-0.012,) * 5)
    assert fact(story, "beaten by") == "nuisance"


def test_the_strongest_control_is_named():
    tables = made.put(passing_tables(), made.NULLS, control_score=0.13, delta=-0.03)
    story = explained_after(tables)
    assert fact(story, "first failed gate") == "severe control"
    (sentence,) = story.what_would_change
    assert sentence == (
        "Severe-control gate: the mean advantage over circular_shift would have to rise from -0.03 to above 0."
    )
    means = criterion(story, "smallest_control_delta").distributions[1]
    # Static embeddings are not counted.
    assert set(means.labels) == {"circular_shift", "random_matched_dim"}


def test_a_control_that_reaches_the_model_too_often_is_named():
    everywhere = pl.col("condition").is_in(["circular_shift", "random_matched_dim"])
    tables = made.put(passing_tables(), made.SIMILARITIES, everywhere, similarity=0.9)
    near = (pl.col("condition") == "random_matched_dim") & (pl.col("alignment") == "rsa")
    few = near & (pl.col("profile") == "cosine")
    tables = made.put(tables, made.SIMILARITIES, few, similarity=0.1)
    story = explained_after(tables)
    (sentence,) = [s for s in story.what_would_change if s.startswith("Severe-control gate")]
    assert sentence == (
        "Severe-control gate: the share of relational summaries in which the model is ahead of circular_shift would "
        "have to rise from 0 to at least 0.5."
    )
    # Deciding again: the one alone is not enough, and neither is the other; both are.
    ahead = pl.col("alignment") == "rsa"
    first = ahead & (pl.col("condition") == "circular_shift")
    second = ahead & (pl.col("condition") == "random_matched_dim")
    passed = [
        criterion(
            explained_after(made.put(tables, made.SIMILARITIES, where, similarity=0.1)),
            "summaries_not_reached",
        ).passed
        for where in (first, second, first | second)
    ]
    assert passed == [False, False, True]


def test_votes_are_shares_of_summaries():
    low = (pl.col("alignment") == "rsa") | (pl.col("profile") == "cosine")
    tables = made.put(passing_tables(), made.PROFILE_DELTAS, low, delta_rel=-0.1)
    near = low & (pl.col("profile") == "cosine") & (pl.col("alignment") == "linear")
    few = near & pl.col("unit").is_in(["u1", "u2"])
    tables = made.put(tables, made.PROFILE_DELTAS, few, delta_rel=0.05)
    sentences = [s for s in explained_after(tables).what_would_change if s.startswith("Relational gate")]
    assert sentences == [
        "Relational gate: the share of relational summaries that pass would have to rise from 0.25 to above 0.5."
    ]


def test_stripping_methods_name_what_is_short():
    few = pl.col("method").is_in(["feature_zeroing", "layer_ablation", "context_reset"])
    tables = made.put(passing_tables(), made.SPECIFICITY, few, margin=-0.01)
    tables = made.put(tables, made.SPECIFICITY, pl.col("method") == "context_reset", margin=-0.002)
    (sentence,) = explained_after(tables).what_would_change
    assert sentence == (
        "Mechanism gate: the share of stripping methods with a selective drop would have to rise from 0.25 to at least "
        "0.5."
    )


def test_few_subject_runs_and_directions():
    tables = passing_tables(runs=("1", "2"))
    story = explained_after(tables)
    assert (
        "Replication gate: the number of subject-runs with a level-1 score would have to rise from 2 to at least 3."
        in (story.what_would_change)
    )
    late = pl.col("run").is_in(["1", "2", "3"])
    tables = made.put(passing_tables(), made.CONTROL_DELTAS, late, delta_control=-0.001)
    tables = made.put(tables, made.CONTROL_DELTAS, pl.col("run") == "2", delta_control=-0.0005)
    sentences = explained_after(tables).what_would_change
    assert sentences[-1] == (
        "Replication gate: the share of subject-runs with both contrasts above 0 would have to rise from 0.4 to at "
        "least 0.6."
    )


def test_a_weak_ceiling_is_put_down_to_the_recordings():
    tables = made.put(passing_tables(), made.CEILING, reliability=0.05)
    sentences = explained_after(tables).what_would_change
    assert sentences[0].startswith(
        "Ceiling gate: mean brain–brain reliability would have to rise from 0.05 to at least 0.1. That takes more, "
        "longer or less noisy recordings, not another model."
    )
    low = made.put(passing_tables(), made.CEILING, fraction_of_ceiling=0.1)
    assert (
        "Ceiling gate: the mean fraction of the run_to_run ceiling would have to rise from 0.1 to at least 0.25."
    ) in explained_after(low).what_would_change


def test_what_is_missing_is_counted_and_asked_for_first():
    gone = pl.col("run").is_in(["1", "2"])
    tables = made.put(
        passing_tables(),
        made.CONTROL_DELTAS,
        gone,
        delta_control=None,
        reason="undefined_score",
    )
    shown = criterion(explained_after(tables), "mean_delta_control").distributions[0]
    assert (len(shown.values), shown.n_missing) == (3, 2)
    assert "undefined_score" in shown.note
    none = made.put(passing_tables(), made.CONTROL_DELTAS, delta_control=None, reason="undefined_score")
    story = explained_after(none)
    assert story.what_would_change[0].startswith(
        "Predictive gate: there would have to be a number first. No subject-run has"
    )
    assert criterion(story, "mean_delta_control").distributions == ()


@pytest.mark.parametrize(
    ("table", "gate"),
    [
        (made.NULLS, "Severe-control"),
        (made.SIMILARITIES, "Severe-control"),
        (made.PROFILE_DELTAS, "Relational"),
        (made.SPECIFICITY, "Mechanism"),
        (made.CEILING, "Ceiling"),
    ],
)
def test_a_level_without_rows_asks_for_numbers_and_shows_none(table, gate):
    tables = {**passing_tables(), table: passing_tables()[table].clear()}
    mechanism = "none" if table == made.SPECIFICITY else "surprisal"
    story = explained_after(tables, mechanism=mechanism)
    first = f"{gate} gate: there would have to be a number first."
    assert [s for s in story.what_would_change if s.startswith(first)]
    assert len(set(story.what_would_change)) == len(story.what_would_change)
    missing = [c for g in story.gates for c in g.criteria if c.value is None]
    assert missing
    assert all(c.distributions == () for c in missing)


def test_a_dataset_that_is_not_confirmatory_is_said_once():
    sentences = explained_after(made.make_diagnostic(passing_tables())).what_would_change
    assert len(sentences) == 1
    assert sentences[0].startswith("The dataset would have to be confirmatory. The dataset is not")


def test_the_nearest_to_failing_of_a_claim_that_passes():
    tables = made.put(passing_tables(), made.CONTROL_DELTAS, best_control_score=0.07, delta_control=0.03)
    story = explained_after(tables)
    assert story.label == "integrated_candidate"
    assert story.what_would_change == (
        "Every gate passes. Nearest to failing is the predictive gate: mean_delta_control against circular_shift is "
        "0.03 (above 0 is needed; 30 % of the real score could be lost).",
    )


def test_the_nearest_p_value_is_named_as_a_share_of_its_level():
    order = pl.col("test") == "unit_order"
    story = explained_after(made.put(sound(), made.RELATIONAL_NULLS, order, observed=0.101), "calibrated")
    assert story.label == "integrated_candidate"
    # Above all of 20 draws, which end at 0.1: 1 / 21 of at most 0.05.
    assert story.what_would_change == (
        "Every gate passes. Nearest to failing is the relational gate: p_unit_order against unit_order is 0.0476 "
        "(0.05 or less is needed; it is 95.2 % of the level).",
    )


# --- tests and their smallest p-values ---------------------------------------------------------


def kept_draws(tables, n):
    """The study with the first ``n`` draws of every surrogate."""
    scores = tables[made.SCORES].filter(pl.col("draw") < n)
    return {**tables, made.SCORES: scores}


def test_two_draws_can_show_nothing():
    story = explained_after(kept_draws(sound(), 2), "calibrated")
    found = criterion(story, "p_surrogates")
    assert found.value == pytest.approx(1 / 3)
    sentence = story.what_would_change[0]
    assert (
        "would have to fall from 0.333 to 0.05 or less; with 2 draws the smallest possible p-value is 0.333, so no "
        "score could pass: at least 3 different draws are needed, and 19 for a p-value that is a rank."
    ) in sentence


def test_the_score_that_would_do_among_twenty_draws():
    real = pl.col("condition") == "real"
    tables = made.put(sound(), made.SCORES, real, score_median=0.0621)
    story = explained_after(tables, "calibrated")
    found = criterion(story, "p_surrogates")
    draws = [0.06 + 0.01 * (i / 19 - 0.5) for i in range(20)]
    reaching = sum(d >= 0.0621 for d in draws)
    assert found.value == pytest.approx((1 + reaching) / 21)
    assert found.distributions[0].values == pytest.approx(draws)
    # The largest of twenty draws has rank 1 / 21 < 0.05: it is enough to be above it.
    assert story.what_would_change[0].startswith(
        "Predictive gate: the p-value against circular_shift would have to fall from 0.333 to 0.05 or less: the mean "
        "real score would have to rise from 0.0621 to above 0.065."
    )


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_the_statistic_that_is_needed_is_the_least_that_passes(alpha):
    rng = np.random.default_rng(0)
    for m in (3, 4, 5, 9, 18, 19, 20, 40, 99):
        draws = rng.normal(size=m)
        needed = above_draws(draws, alpha)
        assert needed is not None
        assert draw_p_value(needed + 1e-9, draws) <= alpha < draw_p_value(needed - 1e-9, draws)


def test_too_few_or_equal_draws_need_no_number():
    assert above_draws(np.array([0.1, 0.2]), 0.05) is None
    assert above_draws(np.full(5, 0.1), 0.05) is None


def test_four_blocks_cannot_show_anything_by_flipping_signs():
    one_run = passing_tables(runs=("1",))
    sentences = " ".join(explained_after(one_run, "calibrated").what_would_change)
    assert "with 4 held-out blocks the smallest possible p-value is 0.0625, so no score could pass" in sentences


def test_a_promise_about_level_2_keeps_the_draws():
    order = pl.col("test") == "unit_order"
    tables = made.put(sound(), made.RELATIONAL_NULLS, order, observed=0.05)
    story = explained_after(tables, "calibrated")
    (sentence,) = [s for s in story.what_would_change if "other unit orders" in s]
    assert "the relational statistic would have to rise from 0.05 to above" in sentence
    assert sentence.endswith(", with the same draws.")


def test_level_2_must_first_be_ahead():
    behind = pl.col("against") == "static_embedding"
    tables = made.put(sound(), made.RELATIONAL_NULLS, behind, advantage=-0.25)
    story = explained_after(tables, "calibrated")
    found = criterion(story, "p_relational_rivals")
    assert found.value == 1.0
    assert "Mean advantage in similarity -0.25, and so p = 1" in found.distributions[0].note
    first, second, third = story.what_would_change
    assert first.startswith("Severe-control gate: the p-value against static_embedding would have")
    assert (
        "the mean similarity would first have to be above the rival's (it is 0.25 below, and p is 1 until then)."
        in first
    )
    assert second == "Relational gate: the same as in the severe-control gate."
    assert third == "Ceiling gate: the same as in the severe-control gate."


def test_one_subject_run_bounds_no_fraction():
    one_run = passing_tables(runs=("1",))
    sentences = explained_after(one_run, "calibrated").what_would_change
    assert any("at least 2 subject-runs, so no score could pass" in s for s in sentences)


# --- correction over claims --------------------------------------------------------------------


def test_the_p_value_that_is_enough_after_correction():
    rng = np.random.default_rng(2)
    for _ in range(50):
        others = (rng.random(rng.integers(0, 12)) ** 2).tolist()
        level = float(rng.choice([0.05, 0.2]))
        enough = p_that_is_enough(others, level)
        q = [float(benjamini_hochberg(np.array([p, *others]))[0]) for p in (enough, enough + 1e-6)]
        assert q[0] <= level * (1 + 1e-12)
        assert q[1] > level


def test_a_bound_that_is_shown_is_one_that_is_enough():
    rng = np.random.default_rng(4)
    for value in [0.05 / 90, 0.05 / 3, 0.05, 1.0, 0.99999, *(rng.random(200) ** 4)]:
        down, up = float(rounded(value, up=False)), float(rounded(value, up=True))
        assert down <= value <= up
        assert up - down <= 0.011 * value
    assert rounded(0.05 / 90, up=False) == "0.000555"
    assert (rounded(0.05, up=False), rounded(0.05, up=True)) == ("0.05", "0.05")
    assert (rounded(-0.12345, up=False), rounded(-0.12345, up=True)) == ("-0.124", "-0.123")
    # Ninety claims, of which only this one is small: rounded to the nearest, the bound would not be enough.
    others = [0.9] * 89
    q = [float(benjamini_hochberg(np.array([p, *others]))[0]) for p in (0.000555, 0.000556)]
    assert q[0] <= 0.05 < q[1]


def test_the_correction_names_a_p_value_that_is_enough():
    start = explained_after(sound(), "calibrated")
    fdr = 0.001 / 0.9
    p_value = fact(start, "p")
    assert p_value > fdr
    (sentence,) = explained_after(sound(), "calibrated", fdr=fdr).what_would_change
    # Of two claims, half of the rate: 0.00055555…
    assert sentence.endswith(" to 0.000555 or less.")
    named = float(sentence.split(" to ")[-1].split(" ")[0])
    assert float(benjamini_hochberg(np.array([named, p_value]))[0]) <= fdr


def test_a_claim_that_only_the_correction_stops():
    row = explained_after(sound(), "calibrated")
    p_value = fact(row, "p")
    assert row.label == "integrated_candidate"
    strict = explained_after(sound(), "calibrated", fdr=p_value / 2)
    assert fact(strict, "beaten by") == "false_discovery_rate"
    (sentence,) = strict.what_would_change
    assert sentence.startswith("Multiple-testing correction over 2 claims: q would have to fall from ")
    assert "with the other claims as they are, p would have to fall from" in sentence
