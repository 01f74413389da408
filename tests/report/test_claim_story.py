"""Stories of claims: every number that is shown makes the number that decides, and what would change is true."""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[1] / "decide"))

import synthetic_tables as made

import lpact
from lpact.decide import decide
from lpact.errors import LPactError
from lpact.math.multiple_testing import benjamini_hochberg
from lpact.math.randomization import draw_p_value, one_sample_p_value, sign_flip_p_value
from lpact.report.claim_story import claim_stories, claim_story, rows_of, rows_of_run
from lpact.report.claim_story.changes import p_that_is_enough
from lpact.report.claim_story.needed import above_blocks, above_draws, fewest_draws
from lpact.study import Run

passing_tables = functools.cache(made.passing_tables)
PROFILES = ("paper", "calibrated")
CLAIM = ("demo", "gpt2", 8, "surprisal")
SCORES = "predictive/predictive_scores"
NO_DRAWS = {"confirmatory", "n_targets", "n_subject_runs"}
STUDY = {
    "name": "story",
    "seed": 5,
    "datasets": [
        {
            "name": "planted",
            "reader": "simulated",
            "grid": {"lags_ms": [100.0]},
            "options": {
                "n_subjects": 3,
                "n_runs": 1,
                "n_stories": 4,
                "sentences_per_story": 6,
                "n_units": 8,
                "snr": 2.0,
                "truths": ["lexical", "relational", "mechanism"],
            },
        }
    ],
    "audit": {"required_controls": ["circular_shift", "random_matched_dim"]},
    "models": [{"name": "integrated", "layers": [1, 2]}],
    "readout": {"alphas": [10.0, 1000.0], "folds": 3, "gap_events": 2, "min_train_events": 30},
    "controls": {
        "include": [
            "random_matched_dim",
            "circular_shift",
            "token_order_shuffle",
            "static_embedding",
        ],
        "draws": 3,
    },
    "relational": {"alignments": ["linear"], "profiles": ["pearson", "cosine"]},
    "stripping": {
        "mechanisms": ["surprisal", "context_update"],
        "methods": ["feature_residualization", "feature_zeroing"],
        "mismatch_draws": 2,
    },
    "assay": {"enabled": False},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    folder = tmp_path_factory.mktemp("story") / "run"
    return lpact.load_study(STUDY).run(folder, progress=False)


@pytest.fixture(scope="module")
def stories(run):
    rows = rows_of_run(run)
    decisions = run.table("decisions/lpact_decision_table")
    claims = (
        decisions.select("dataset", "model", "layer", "mechanism").unique().sort(pl.all()).rows()
    )
    return [s for profile in PROFILES for s in claim_stories(rows, claims, profile)]


def criteria_of(stories):
    return [(s, g, c) for s in stories for g in s.gates for c in g.criteria]


def decided(tables, **gates):
    found = decide(tables, gates=made.GATES.model_copy(update=gates), primary_metric="pearson")
    return {**tables, **found}


def story_of(tables, profile="paper", *, mechanism="surprisal", **gates):
    options = made.GATES.model_copy(update=gates)
    claim = (*CLAIM[:3], mechanism)
    return claim_story(rows_of(decided(tables, **gates)), claim, profile, gates=options)


def sound():
    """Passes every gate of both profiles."""
    tables = passing_tables()
    static = pl.col("condition") == "static_embedding"
    tables = made.put(tables, made.BLOCKS, static, scores=pl.lit([0.02] * made.N_BLOCKS))
    return made.put(
        tables, made.RELATIONAL_NULLS, pl.col("against") == "static_embedding", advantage=0.3
    )


def criterion(story, name):
    return next(c for g in story.gates for c in g.criteria if c.criterion == name)


def with_names(tables, **names):
    return {
        table: frame.with_columns(
            [pl.lit(new).alias(column) for column, new in names.items() if column in frame.columns]
        )
        for table, frame in tables.items()
    }


# --- numbers of a real run ---------------------------------------------------------------------


def remade(distribution, story_criterion, direction_fraction=0.6):
    """The criterion's number from the distribution alone; None where the shown p-value is all there is."""
    d = np.array(distribution.draws)
    match distribution.gives:
        case "mean" | "bootstrap":
            return float(d.mean())
        case "median":
            return float(np.median(d))
        case "smallest":
            return float(d.min())
        case "share_above":
            return float((d > distribution.bound).mean())
        case "share_at_least":
            return float((d >= distribution.bound).sum() / (d.size + distribution.n_missing))
        case "rank":
            ahead = distribution.advantage is None or distribution.advantage > 0
            return draw_p_value(distribution.observed, d) if ahead else 1.0
        case "partial_conjunction":
            needed = math.ceil(direction_fraction * d.size)
            return min(1.0, (d.size - needed + 1) * float(np.sort(d)[needed - 1]))
        case "block_test":
            assert distribution.observed == pytest.approx(d.mean())
            return distribution.p_value
    raise AssertionError(distribution.gives)


def test_every_number_follows_from_what_is_shown_behind_it(run, stories):
    seen = set()
    for story, _, found in criteria_of(stories):
        giving = [d for d in found.distributions if d.gives]
        unrivalled = found.relation == "<=" and found.n == 0 and found.passed
        if found.criterion in NO_DRAWS or found.value is None or unrivalled:
            assert not found.distributions
            continue
        assert giving, (story.claim, found.criterion)
        for distribution in giving:
            assert len(distribution.labels) == len(distribution.draws)
            assert np.isfinite(distribution.draws).all()
            value = remade(distribution, found)
            if distribution.gives in ("rank", "block_test"):
                assert value == pytest.approx(distribution.p_value)
            elif distribution.gives == "bootstrap":
                assert value == pytest.approx(distribution.observed)
            elif (distribution.gives, found.criterion) != ("median", "summaries_passing"):
                assert value == pytest.approx(found.value, abs=1e-12), found.criterion
                assert distribution.observed in (None, pytest.approx(found.value, abs=1e-12))
            seen.add(distribution.gives)
        p_values = [d.p_value for d in giving if d.p_value is not None]
        if p_values:
            # The hardest test comes first, and all of them must hold.
            assert giving[0].p_value == max(p_values) == pytest.approx(found.value)
    assert seen == {
        "mean",
        "median",
        "smallest",
        "share_above",
        "share_at_least",
        "rank",
        "block_test",
        "partial_conjunction",
        "bootstrap",
    }


def test_every_criterion_of_the_evidence_is_told_once_and_in_order(run, stories):
    evidence = run.table("decisions/lpact_gate_evidence").sort(
        "dataset", "model", "layer", "mechanism", "gate_order", "criterion_order"
    )
    told = {
        profile: [
            (*s.claim, g.gate, c.criterion, c.value, c.passed, c.sentence)
            for s in stories
            if s.gate_profile == profile
            for g in s.gates
            for c in g.criteria
        ]
        for profile in PROFILES
    }
    columns = [*made.find_table(made.DECISIONS).key[:4], "gate", "criterion", "value", "passed"]
    for profile in PROFILES:
        rows = evidence.filter(gate_profile=profile).select(*columns, "sentence").rows()
        assert told[profile] == rows
    decisions = run.table(made.DECISIONS)
    for story in stories:
        own = decisions.filter(
            dataset=story.claim[0],
            model=story.claim[1],
            layer=story.claim[2],
            mechanism=story.claim[3],
            gate_profile=story.gate_profile,
        ).row(0, named=True)
        by_letter = {g.letter: g.passed for g in story.gates}
        assert by_letter == {
            "P": own["predictive"],
            "S": own["severe_control"],
            "R": own["relational"],
            "M": own["mechanism_specific"],
            "T": own["ceiling"],
            "Rep": own["replication"],
        }


def test_draws_are_those_of_the_score_table(run, stories):
    """Another way to the same numbers: straight from the table of scores."""
    checked = 0
    scores = run.table(SCORES).filter(metric="pearson")
    for story in stories:
        dataset, model, layer, _ = story.claim
        own = scores.filter(dataset=dataset, model=model, layer=layer)
        name = "smallest_control_delta" if story.gate_profile == "paper" else "p_surrogates"
        found = criterion(story, name)
        control = own.filter(condition=found.compared_with)
        real = own.filter(condition="real")
        draws = [d for d in found.distributions if d.kind == "draws"]
        pooled = next(d for d in draws if d.where.startswith("mean over"))
        by_draw = control.group_by("draw").agg(pl.col("score_median").mean()).sort("draw")
        assert pooled.draws == pytest.approx(by_draw["score_median"].to_list())
        assert pooled.observed == pytest.approx(real["score_median"].mean())
        nuisance = own.filter(condition="nuisance")["score_median"].mean()
        assert dict(pooled.marks) == {"nuisance": pytest.approx(nuisance)}
        alone = [
            d for d in draws if d.where.startswith("subject ") and d.reference == pooled.reference
        ]
        assert len(alone) == real.height == 3
        for row, distribution in zip(
            real.sort("subject").iter_rows(named=True), alone, strict=True
        ):
            assert row["subject"] in distribution.where
            assert distribution.observed == row["score_median"]
            its = control.filter(subject=row["subject"]).sort("draw")["score_median"]
            assert distribution.draws == tuple(its)
            checked += 1
    assert checked


def test_level_2_draws_are_medians_over_summaries_of_the_stored_ones(run, stories):
    nulls = run.table(made.RELATIONAL_NULLS).filter(reason="ok", test="unit_order")
    story = next(s for s in stories if s.gate_profile == "calibrated")
    dataset, model, layer, _ = story.claim
    own = nulls.filter(dataset=dataset, model=model, layer=layer)
    found = criterion(story, "p_unit_order").distributions
    pooled, alone = found[0], found[1:]
    assert len(alone) == own["subject"].n_unique() == 3
    expected = []
    for subject, distribution in zip(own["subject"].unique().sort(), alone, strict=True):
        rows = own.filter(subject=subject)
        draws = np.median(np.array(rows["draws"].to_list()), axis=0)
        assert distribution.draws == pytest.approx(draws)
        assert distribution.observed == pytest.approx(rows["observed"].median())
        expected.append(draws)
    assert pooled.draws == pytest.approx(np.mean(expected, axis=0))


def test_the_order_of_rows_and_who_was_asked_before_do_not_matter(run, stories):
    tables = {t.name: run.table(t.name) for t in run.tables()}
    backwards = rows_of({name: frame.reverse() for name, frame in tables.items()})
    for story in stories[::3]:
        alone = claim_story(backwards, story.claim, story.gate_profile)
        assert alone == story


def test_only_rows_of_the_claim_are_asked_for(run, stories):
    asked = []
    rows = rows_of_run(run)

    def spied(table, /, **equals):
        asked.append((table, equals))
        return rows(table, **equals)

    story = stories[0]
    assert claim_story(spied, story.claim, story.gate_profile) == story
    dataset, model, layer, mechanism = story.claim
    own = {"dataset": dataset, "model": model, "layer": layer, "mechanism": mechanism}
    for table, equals in asked:
        columns = set(run.table(table).columns)
        assert equals.items() >= {k: v for k, v in own.items() if k in columns}.items()
    assert len({table for table, _ in asked}) > 8


# --- what would change -------------------------------------------------------------------------


def test_a_rival_that_scores_higher_by_a_hair():
    tables = made.put(
        passing_tables(), made.CONTROL_DELTAS, nuisance_score=0.112, delta_nuisance=-0.012
    )
    story = story_of(tables)
    assert story.what_would_change[0] == (
        "Predictive gate: the mean advantage over nuisance would have to rise from -0.012 to above 0: the real "
        "score by more than 0.012 (from 0.1 to above 0.112), or that of the rival would have to fall to below 0.1."
    )
    shown = criterion(story, "mean_delta_nuisance").distributions[0]
    assert (shown.kind, shown.draws) == ("subject_runs", (-0.012,) * 5)
    assert story.rival is not None
    assert (story.rival.name, story.beaten_by) == ("nuisance", "nuisance")
    assert (story.rival.score, story.rival.model_score) == pytest.approx((0.112, 0.1))


def test_a_tie_with_the_best_control_is_said_to_be_one():
    tables = made.put(
        passing_tables(), made.CONTROL_DELTAS, best_control_score=0.1, delta_control=0.0
    )
    story = story_of(tables)
    assert "both score 0.1, so that any rise of the real score" in story.what_would_change[0]
    assert "most often circular_shift" in story.what_would_change[0]
    assert story.rival is not None
    assert (story.rival.score, story.rival.model_score) == (0.1, 0.1)


def test_the_strongest_control_is_named_with_those_that_do_as_well():
    tables = made.put(passing_tables(), made.NULLS, control_score=0.13, delta=-0.03)
    story = story_of(tables)
    assert story.first_failed_gate == "severe_control"
    (sentence,) = story.what_would_change
    assert (
        "from -0.03 to above 0: the real score by more than 0.03 (from 0.1 to above 0.13)"
        in sentence
    )
    assert sentence.endswith("random_matched_dim does at least as well too.")
    means = criterion(story, "smallest_control_delta").distributions[1]
    # Static embeddings are not counted.
    assert set(means.labels) == {"circular_shift", "random_matched_dim"}


def test_votes_name_how_many_are_short_and_the_nearest():
    low = (pl.col("alignment") == "rsa") | (pl.col("profile") == "cosine")
    tables = made.put(passing_tables(), made.PROFILE_DELTAS, low, delta_rel=-0.1)
    near = low & (pl.col("profile") == "cosine") & (pl.col("alignment") == "linear")
    few = near & pl.col("unit").is_in(["u1", "u2"])
    tables = made.put(tables, made.PROFILE_DELTAS, few, delta_rel=0.05)
    sentences = [s for s in story_of(tables).what_would_change if s.startswith("Relational gate")]
    assert sentences == [
        "Relational gate: at least 3 of 4 relational summaries would have to pass, and 1 does; the nearest is "
        "linear × cosine, in which 40 % of unit rows pass (60 % are needed) and the mean contrast is -0.04 (it must be "
        "above 0)."
    ]


def test_stripping_methods_name_what_is_short():
    few = pl.col("method").is_in(["feature_zeroing", "layer_ablation", "context_reset"])
    tables = made.put(passing_tables(), made.SPECIFICITY, few, margin=-0.01)
    tables = made.put(tables, made.SPECIFICITY, pl.col("method") == "context_reset", margin=-0.002)
    (sentence,) = story_of(tables).what_would_change
    assert sentence == (
        "Mechanism gate: at least 2 of 4 stripping methods would have to show a selective drop, and 1 does; the "
        "nearest is context_reset: its margin over other targets is -0.002 (it must be above 0)."
    )


def test_few_subject_runs_and_directions():
    tables = passing_tables(runs=("1", "2"))
    story = story_of(tables)
    assert (
        "Replication gate: 1 more subject-run with a level-1 score would be needed (2 of 3)."
        in (story.what_would_change)
    )
    late = pl.col("run").is_in(["1", "2", "3"])
    tables = made.put(passing_tables(), made.CONTROL_DELTAS, late, delta_control=-0.001)
    tables = made.put(tables, made.CONTROL_DELTAS, pl.col("run") == "2", delta_control=-0.0005)
    sentences = story_of(tables).what_would_change
    assert sentences[-1] == (
        "Replication gate: both contrasts would have to be above 0 in at least 3 of 5 subject-runs, and are in 2; the "
        "nearest is subject 01, session a, run 2, where the smaller one is -0.0005."
    )


def test_a_weak_ceiling_is_put_down_to_the_recordings():
    tables = made.put(passing_tables(), made.CEILING, reliability=0.05)
    sentences = story_of(tables).what_would_change
    assert sentences[0].startswith(
        "Ceiling gate: mean brain–brain reliability would have to rise from 0.05 to at least 0.1. No other model"
    )
    low = made.put(passing_tables(), made.CEILING, fraction_of_ceiling=0.1)
    assert (
        "Ceiling gate: the mean fraction of the run_to_run ceiling would have to rise from 0.1 to at least 0.25: the "
        "similarity would have to be 2.5 times as large."
    ) in story_of(low).what_would_change


def test_what_is_missing_is_counted_and_asked_for_first():
    gone = pl.col("run").is_in(["1", "2"])
    tables = made.put(
        passing_tables(),
        made.CONTROL_DELTAS,
        gone,
        delta_control=None,
        reason="undefined_score",
    )
    shown = criterion(story_of(tables), "mean_delta_control").distributions[0]
    assert (len(shown.draws), shown.n_missing) == (3, 2)
    assert "undefined_score" in shown.note
    none = made.put(
        passing_tables(), made.CONTROL_DELTAS, delta_control=None, reason="undefined_score"
    )
    story = story_of(none)
    assert story.what_would_change[0].startswith(
        "Predictive gate: there would have to be a number first. No subject-run has"
    )
    assert criterion(story, "mean_delta_control").distributions == ()


def test_a_dataset_that_is_not_confirmatory_is_said_once():
    sentences = story_of(made.make_diagnostic(passing_tables())).what_would_change
    assert len(sentences) == 1
    assert sentences[0].startswith("The dataset would have to be confirmatory. The dataset is not")


def test_the_nearest_to_failing_of_a_claim_that_passes():
    tables = made.put(
        passing_tables(), made.CONTROL_DELTAS, best_control_score=0.07, delta_control=0.03
    )
    story = story_of(tables)
    assert story.label == "integrated_candidate"
    assert story.rival is None
    assert story.what_would_change == (
        "Every gate passes. Nearest to failing is the predictive gate: mean_delta_control against circular_shift is "
        "0.03 (above 0 is needed; 30 % of the real score could be lost).",
    )


def test_the_nearest_p_value_is_told_as_a_share_of_its_level():
    order = pl.col("test") == "unit_order"
    story = story_of(made.put(sound(), made.RELATIONAL_NULLS, order, observed=0.101), "calibrated")
    assert story.label == "integrated_candidate"
    # Above all of 20 draws, which end at 0.1: 1 / 21 of at most 0.05.
    assert story.what_would_change == (
        "Every gate passes. Nearest to failing is the relational gate: p_unit_order against unit_order is 0.0476 "
        "(0.05 or less is needed; it is 95.2 % of the level).",
    )


# --- what it was beaten by ---------------------------------------------------------------------


def test_rivals_of_a_real_run_have_the_scores_of_the_tables(run, stories):
    scores = run.table(SCORES).filter(metric="pearson")
    by_label = {(s.gate_profile, *s.claim[2:]): s for s in stories}
    first = by_label["calibrated", 1, "surprisal"]
    assert first.first_failed_gate == "predictive"
    own = scores.filter(layer=1, condition=first.beaten_by)
    assert first.rival is not None
    means = own.group_by("subject").agg(pl.col("score_median").mean())
    assert first.rival.score == pytest.approx(means["score_median"].mean())
    assert first.rival.model_score == pytest.approx(first.raw_score)
    assert by_label["paper", 2, "surprisal"].label == "integrated_candidate"
    assert by_label["paper", 2, "surprisal"].rival is None


def test_rivals_of_levels_2_and_3():
    tables = made.put(
        passing_tables(),
        made.PROFILE_DELTAS,
        pl.col("unit") != "u5",
        delta_rel=-0.1,
        best_control_similarity=0.6,
    )
    rival = story_of(tables).rival
    assert rival is not None
    assert (rival.name, rival.score, rival.model_score) == (
        "circular_shift",
        pytest.approx(0.6),
        pytest.approx(0.5),
    )
    assert "not behind in 80 of 100 unit rows" in rival.sentence
    other = (pl.col("stripped") == "surprisal") & (pl.col("target") == "context_update")
    tables = made.put(passing_tables(), made.SPECIFICITY, margin=-0.02)
    tables = made.put(tables, made.STRIPPING_DELTAS, other, drop=0.05)
    rival = story_of(tables).rival
    assert rival is not None
    assert (rival.name, rival.score, rival.model_score) == ("context_update", 0.05, 0.03)


# --- tests and their smallest p-values ---------------------------------------------------------


def kept_draws(tables, n):
    """The study with the first ``n`` draws of every surrogate."""
    scores = tables[made.SCORES].filter(pl.col("draw") < n)
    return {**tables, made.SCORES: scores}


def test_two_draws_can_show_nothing():
    story = story_of(kept_draws(sound(), 2), "calibrated")
    found = criterion(story, "p_surrogates")
    assert found.value == pytest.approx(1 / 3)
    sentence = story.what_would_change[0]
    assert (
        "would have to fall from 0.333 to 0.05 or less; with 2 draws the smallest p-value that this test can give is "
        "0.333, so that no score could pass: at least 3 draws are needed, and 19 for a p-value that rests on ranks "
        "alone."
    ) in sentence


def test_the_score_that_would_do_among_twenty_draws():
    real = pl.col("condition") == "real"
    tables = made.put(sound(), made.SCORES, real, score_median=0.0621)
    story = story_of(tables, "calibrated")
    found = criterion(story, "p_surrogates")
    draws = [0.06 + 0.01 * (i / 19 - 0.5) for i in range(20)]
    reaching = sum(d >= 0.0621 for d in draws)
    assert found.value == pytest.approx((1 + reaching) / 21)
    assert found.distributions[0].draws == pytest.approx(draws)
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
        needed = above_draws(draws, alpha).value
        assert needed is not None
        assert draw_p_value(needed + 1e-9, draws) <= alpha < draw_p_value(needed - 1e-9, draws)


def test_too_few_or_equal_draws_have_a_smallest_p_value():
    assert above_draws(np.array([0.1, 0.2]), 0.05).smallest_p == pytest.approx(1 / 3)
    assert above_draws(np.array([0.1, 0.2]), 0.05).value is None
    same = above_draws(np.full(5, 0.1), 0.05)
    assert same.value is None
    assert same.why == "they are all the same"
    assert same.smallest_p == draw_p_value(9.0, np.full(5, 0.1))
    assert [fewest_draws(a) for a in (0.05, 0.01, 0.1, 0.3)] == [19, 99, 9, 3]


def test_the_mean_contrast_that_is_needed_is_the_least_that_passes():
    rng = np.random.default_rng(1)
    for n_runs, n_blocks in ((1, 5), (2, 4), (3, 4), (4, 8)):
        contrasts = {
            (str(i), "a", "1"): rng.normal(-0.5, 1.0, size=n_blocks) for i in range(n_runs)
        }
        stimulus = dict.fromkeys(contrasts, "story")
        needed = above_blocks(contrasts, stimulus, lambda: np.random.default_rng(3), 0.05)
        pooled = np.concatenate(list(contrasts.values()))
        shared = np.mean(list(contrasts.values()), axis=0)

        def p_at(mean, pooled=pooled, shared=shared):
            shift = mean - pooled.mean()
            flipped = sign_flip_p_value(pooled + shift, np.random.default_rng(3))
            return max(flipped, one_sample_p_value(shared + shift))

        assert needed.value is not None
        assert p_at(needed.value + 1e-6) <= 0.05 < p_at(needed.value - 0.02)


def test_four_blocks_cannot_show_anything_by_flipping_signs():
    contrasts = {("1", "a", "1"): np.array([0.1, 0.2, 0.3, 0.4])}
    needed = above_blocks(
        contrasts, {("1", "a", "1"): "story"}, lambda: np.random.default_rng(0), 0.05
    )
    assert needed.value is None
    assert needed.smallest_p == 1 / 16
    one_run = passing_tables(runs=("1",))
    sentences = " ".join(story_of(one_run, "calibrated").what_would_change)
    assert (
        "with 4 held-out blocks the smallest p-value that this test can give is 0.0625, so that no score could pass"
        in sentences
    )


def test_level_2_must_first_be_ahead():
    behind = pl.col("against") == "static_embedding"
    tables = made.put(sound(), made.RELATIONAL_NULLS, behind, advantage=-0.25)
    story = story_of(tables, "calibrated")
    found = criterion(story, "p_relational_rivals")
    assert found.value == 1.0
    assert found.distributions[0].advantage == pytest.approx(-0.25)
    first, second, third = story.what_would_change
    assert first.startswith("Severe-control gate: the p-value against static_embedding would have")
    assert (
        "the mean similarity would first have to be above the rival's (it is 0.25 below, and p is 1 until then)."
        in first
    )
    assert second == "Relational gate: the same test as in the severe-control gate."
    assert third == "Ceiling gate: the same test as in the severe-control gate."


def test_one_subject_run_bounds_no_fraction():
    one_run = passing_tables(runs=("1",))
    sentences = story_of(one_run, "calibrated").what_would_change
    assert any("with 1 subject-run there is no bound" in s and "at least 2" in s for s in sentences)


def test_a_fraction_near_the_bound_says_how_far_the_mean_must_rise():
    unit = pl.col("unit").str.strip_prefix("u").cast(pl.Float64) - 3
    spread = (pl.col("run").cast(pl.Float64) - 3) * 0.1 + 0.3 + unit * 0.05
    tables = made.put(sound(), made.CEILING, fraction_of_ceiling=spread)
    story = story_of(tables, "calibrated")
    found = criterion(story, "p_fraction")
    assert found.value > 0.05
    assert found.distributions[0].draws == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    (sentence,) = [s for s in story.what_would_change if "fraction of the ceiling is above" in s]
    target = float(sentence.split("to about ")[1].split(",")[0])
    risen = made.put(tables, made.CEILING, fraction_of_ceiling=spread + (target - 0.3) + 0.01)
    assert criterion(story_of(risen, "calibrated"), "p_fraction").passed
    short = made.put(tables, made.CEILING, fraction_of_ceiling=spread + (target - 0.3) - 0.01)
    assert not criterion(story_of(short, "calibrated"), "p_fraction").passed


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


def test_a_claim_that_only_the_correction_stops():
    row = story_of(sound(), "calibrated")
    assert row.p_value is not None
    assert row.label == "integrated_candidate"
    strict = story_of(sound(), "calibrated", fdr=row.p_value / 2)
    assert strict.beaten_by == "false_discovery_rate"
    (sentence,) = strict.what_would_change
    assert sentence.startswith("Correction over 2 claims: q would have to fall from ")
    assert "with the other claims as they are, p would have to fall from" in sentence
    # Without the thresholds the rate is not known, and not made up.
    tables = decided(sound(), fdr=row.p_value / 2)
    (alone,) = claim_story(rows_of(tables), CLAIM, "calibrated").what_would_change
    assert alone == f"{sentence.split(' to ')[0]} to fall from {alone.split('from ')[1]}"


# --- edges -------------------------------------------------------------------------------------


def test_thresholds_of_the_run_are_read_from_its_evidence():
    tables = decided(sound(), min_reliability=0.75, min_ceiling_fraction=0.3, alpha=0.01)
    for profile in PROFILES:
        known = claim_story(
            rows_of(tables),
            CLAIM,
            profile,
            gates=made.GATES.model_copy(
                update={"min_reliability": 0.75, "min_ceiling_fraction": 0.3, "alpha": 0.01}
            ),
        )
        assert claim_story(rows_of(tables), CLAIM, profile) == known
    bounds = {d.bound for d in criterion(known, "reliable_units").distributions}
    assert bounds == {0.75}


def test_names_from_data_stay_as_they_are():
    odd = {
        "dataset": "<script>alert(1)</script>",
        "model": "a\"b'c\n& д",
        "subject": "</td>\t0/1",
    }
    tables = decided(with_names(passing_tables(), **odd))
    plain = claim_story(rows_of(decided(passing_tables())), CLAIM, "paper")
    claim = (odd["dataset"], odd["model"], 8, "surprisal")
    story = claim_story(rows_of(tables), claim, "paper")
    assert story.claim == claim
    assert (story.label, len(story.gates)) == (plain.label, 6)
    shown = criterion(story, "mean_delta_nuisance").distributions[0]
    assert shown.labels[0] == f"subject {odd['subject']}, session a, run 1"
    assert shown.draws == criterion(plain, "mean_delta_nuisance").distributions[0].draws


def test_a_claim_that_is_not_there_is_refused():
    tables = decided(passing_tables())
    assert claim_story(rows_of(tables), CLAIM, "paper").claim == CLAIM
    with pytest.raises(LPactError, match="no claim 'demo/gpt2/9/surprisal'"):
        claim_story(rows_of(tables), ("demo", "gpt2", 9, "surprisal"), "paper")
    with pytest.raises(LPactError, match="gate profile 'strict'"):
        claim_story(rows_of(tables), CLAIM, "strict")


def test_a_table_that_is_not_there_leaves_its_pictures_out():
    tables = decided(sound())
    whole = claim_story(rows_of(tables), CLAIM, "calibrated")
    without = {n: t for n, t in tables.items() if n not in (made.SCORES, made.BLOCKS)}
    story = claim_story(rows_of(without), CLAIM, "calibrated")
    assert criterion(whole, "p_surrogates").distributions
    assert criterion(story, "p_surrogates").distributions == ()
    assert replace(criterion(whole, "p_surrogates"), distributions=()) == criterion(
        story, "p_surrogates"
    )
    assert criterion(story, "p_unit_order") == criterion(whole, "p_unit_order")


def test_the_primary_metric_is_that_of_the_blocks_or_the_given_one():
    tables = made.put(passing_tables(), made.BLOCKS, metric="r2")
    other = pl.col("metric") == "r2"
    tables = made.put(tables, made.CONTROL_DELTAS, other, real_score=0.2, delta_nuisance=0.15)
    found = decide(tables, gates=made.GATES, primary_metric="r2")
    story = claim_story(rows_of({**tables, **found}), CLAIM, "paper")
    assert story.primary_metric == "r2"
    shown = criterion(story, "mean_delta_nuisance")
    assert shown.value == pytest.approx(0.15)
    assert shown.distributions[0].draws == (0.15,) * 5
    assert shown.distributions[0].unit_of_value == "difference in R²"
    given = claim_story(rows_of({**tables, **found}), CLAIM, "paper", primary_metric="pearson")
    assert criterion(given, "mean_delta_nuisance").distributions[0].draws == (0.05,) * 5
