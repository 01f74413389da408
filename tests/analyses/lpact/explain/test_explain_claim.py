"""Explanations of claims: every number that is shown makes the number that decides."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from explained_tables import (
    CLAIM,
    criterion,
    decided,
    explained,
    made,
    passing_tables,
    rows_of,
    sound,
    with_names,
)

import lpact
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.explain import claim_rows, explain_claim
from lpact.analyses.lpact.gates import decide
from lpact.errors import LPactError
from lpact.stats import draw_p_value
from lpact.study import Run
from lpact.tables import CLAIM_KEY

PROFILES = ("paper", "calibrated")
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
    "mechanisms": {"include": ["surprisal", "context_update"]},
    "lpact": {
        "audit": {"required_controls": ["circular_shift", "random_matched_dim"]},
        "relational": {"alignments": ["linear"], "profiles": ["pearson", "cosine"]},
        "stripping": {
            "methods": ["feature_residualization", "feature_zeroing"],
            "mismatch_draws": 2,
        },
        "assay": {"enabled": False},
    },
}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    folder = tmp_path_factory.mktemp("story") / "run"
    return lpact.load_study(STUDY).run(folder, progress=False)


def explain(run, claim, profile, rows=None):
    config = LPactConfig.of(run.config)
    return explain_claim(config, rows or run.rows, claim, profile)


@pytest.fixture(scope="module")
def stories(run):
    decisions = run.table("decisions/lpact_decision_table")
    claims = decisions.select(CLAIM_KEY).unique().sort(pl.all())
    return [explain(run, claim, profile) for profile in PROFILES for claim in claims.iter_rows(named=True)]


def criteria_of(stories):
    return [(s, g, c) for s in stories for g in s.gates for c in g.criteria]


# --- numbers of a real run ---------------------------------------------------------------------


def remade(distribution, direction_fraction=0.6):
    """The criterion's number from the distribution alone; for a block test, the p-value that is shown."""
    d = np.array(distribution.values)
    match distribution.gives:
        case claim_rows.MEAN | claim_rows.BOOTSTRAP:
            return float(d.mean())
        case claim_rows.MEDIAN:
            return float(np.median(d))
        case claim_rows.SMALLEST:
            return float(d.min())
        case claim_rows.SHARE_ABOVE:
            return float((d > distribution.bound).mean())
        case claim_rows.SHARE_AT_LEAST:
            return float((d >= distribution.bound).sum() / (d.size + distribution.n_missing))
        case claim_rows.RANK:
            return draw_p_value(distribution.observed, d)
        case claim_rows.BEHIND:
            return 1.0
        case claim_rows.CONJUNCTION:
            needed = math.ceil(direction_fraction * d.size)
            return min(1.0, (d.size - needed + 1) * float(np.sort(d)[needed - 1]))
        case claim_rows.BLOCK_TEST:
            assert distribution.observed == pytest.approx(d.mean())
            return distribution.p_value
    raise AssertionError(distribution.gives)


def test_every_number_follows_from_what_is_shown_behind_it(run, stories):
    seen = set()
    for story, _, found in criteria_of(stories):
        giving = [d for d in found.distributions if d.gives]
        unrivalled = found.relation == "<=" and found.n == 0 and found.passed
        if found.name in NO_DRAWS or found.value is None or unrivalled:
            assert not found.distributions
            continue
        assert giving, (story.claim, found.name)
        for distribution in giving:
            assert len(distribution.labels) == len(distribution.values)
            assert np.isfinite(distribution.values).all()
            value = remade(distribution)
            if distribution.gives in (claim_rows.RANK, claim_rows.BEHIND, claim_rows.BLOCK_TEST):
                assert value == pytest.approx(distribution.p_value)
            elif distribution.gives == claim_rows.BOOTSTRAP:
                assert value == pytest.approx(distribution.observed)
            elif (distribution.gives, found.name) != (claim_rows.MEDIAN, "summaries_passing"):
                assert value == pytest.approx(found.value, abs=1e-12), found.name
                assert distribution.observed in (None, pytest.approx(found.value, abs=1e-12))
            seen.add(distribution.gives)
        p_values = [d.p_value for d in giving if d.p_value is not None]
        if p_values:
            # The hardest test comes first, and all of them must hold.
            assert giving[0].p_value == max(p_values) == pytest.approx(found.value)
    assert seen >= {
        claim_rows.MEAN,
        claim_rows.MEDIAN,
        claim_rows.SMALLEST,
        claim_rows.SHARE_ABOVE,
        claim_rows.SHARE_AT_LEAST,
        claim_rows.RANK,
        claim_rows.BLOCK_TEST,
        claim_rows.CONJUNCTION,
        claim_rows.BOOTSTRAP,
    }


def test_every_criterion_of_the_evidence_is_shown_once_and_in_order(run, stories):
    evidence = run.table("decisions/lpact_gate_evidence").sort(
        "dataset", "model", "layer", "mechanism", "gate_order", "criterion_order"
    )
    shown = {
        profile: [
            (*s.claim.values(), g.name, c.name, c.value, c.passed, c.sentence)
            for s in stories
            if s.profile == profile
            for g in s.gates
            for c in g.criteria
        ]
        for profile in PROFILES
    }
    columns = [*made.find_table(made.DECISIONS).key[:4], "gate", "criterion", "value", "passed"]
    for profile in PROFILES:
        rows = evidence.filter(gate_profile=profile).select(*columns, "sentence").rows()
        assert shown[profile] == rows
    decisions = run.table(made.DECISIONS)
    for story in stories:
        own = decisions.filter(
            **story.claim,
            gate_profile=story.profile,
        ).row(0, named=True)
        assert (story.label, story.reason) == (own["label"], own["reason"])
        by_letter = {
            g.letter: bool(g.criteria) and all(c.passed for c in g.criteria if c.decisive) for g in story.gates
        }
        assert by_letter == {g.letter: g.passed for g in story.gates}
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
        dataset, model, layer, _ = story.claim.values()
        own = scores.filter(dataset=dataset, model=model, layer=layer)
        name = "smallest_control_delta" if story.profile == "paper" else "p_surrogates"
        found = criterion(story, name)
        control = own.filter(condition=found.compared_with)
        real = own.filter(condition="real")
        draws = [d for d in found.distributions if d.kind == "draw"]
        pooled = next(d for d in draws if d.where.startswith("mean over"))
        by_draw = control.group_by("draw").agg(pl.col("score_median").mean()).sort("draw")
        assert pooled.values == pytest.approx(by_draw["score_median"].to_list())
        assert pooled.observed == pytest.approx(real["score_median"].mean())
        nuisance = own.filter(condition="nuisance")["score_median"].mean()
        assert dict(pooled.marks) == {"nuisance": pytest.approx(nuisance)}
        alone = [d for d in draws if d.where.startswith("subject ") and d.compared_with == pooled.compared_with]
        assert len(alone) == real.height == 3
        for row, distribution in zip(real.sort("subject").iter_rows(named=True), alone, strict=True):
            assert row["subject"] in distribution.where
            assert distribution.observed == row["score_median"]
            its = control.filter(subject=row["subject"]).sort("draw")["score_median"]
            assert distribution.values == tuple(its)
            checked += 1
    assert checked


def test_level_2_draws_are_medians_over_summaries_of_the_stored_ones(run, stories):
    nulls = run.table(made.RELATIONAL_NULLS).filter(reason="ok", test="unit_order")
    story = next(s for s in stories if s.profile == "calibrated")
    dataset, model, layer, _ = story.claim.values()
    own = nulls.filter(dataset=dataset, model=model, layer=layer)
    found = criterion(story, "p_unit_order").distributions
    pooled, alone = found[0], found[1:]
    assert len(alone) == own["subject"].n_unique() == 3
    expected = []
    for subject, distribution in zip(own["subject"].unique().sort(), alone, strict=True):
        rows = own.filter(subject=subject)
        draws = np.median(np.array(rows["draws"].to_list()), axis=0)
        assert distribution.values == pytest.approx(draws)
        assert distribution.observed == pytest.approx(rows["observed"].median())
        expected.append(draws)
    assert pooled.values == pytest.approx(np.mean(expected, axis=0))


def test_the_order_of_rows_and_who_was_asked_before_do_not_matter(run, stories):
    tables = {t.name: run.table(t.name) for t in run.tables()}
    backwards = rows_of({name: frame.reverse() for name, frame in tables.items()})
    for story in stories[::3]:
        alone = explain(run, story.claim, story.profile, backwards)
        assert alone == story


def test_only_rows_of_the_claim_are_asked_for(run, stories):
    asked = []

    def spied(table, /, **equals):
        asked.append((table, equals))
        return run.rows(table, **equals)

    story = stories[0]
    assert explain(run, story.claim, story.profile, spied) == story
    own = story.claim
    for table, equals in asked:
        columns = set(run.table(table).columns)
        assert equals.items() >= {k: v for k, v in own.items() if k in columns}.items()
    assert len({table for table, _ in asked}) > 8


def test_the_rows_behind_a_claim_are_in_its_tables(run, stories):
    for story in stories:
        for table, equals in story.rows:
            assert run.rows(table, **equals).height, (table, equals)


# --- edges -------------------------------------------------------------------------------------


def test_bounds_are_those_of_the_configuration():
    gates = made.GATES.model_copy(update={"min_reliability": 0.75, "min_ceiling_fraction": 0.3})
    tables = decided(sound(), min_reliability=0.75, min_ceiling_fraction=0.3)
    known = explained(tables, CLAIM, "calibrated", gates)
    assert {d.bound for d in criterion(known, "reliable_units").distributions} == {0.75}
    assert {d.bound for d in criterion(known, "p_fraction").distributions} == {0.3}


def test_names_from_data_stay_as_they_are():
    odd = {
        "dataset": "<script>alert(1)</script>",
        "model": "a\"b'c\n& д",
        "subject": "</td>\t0/1",
    }
    tables = decided(with_names(passing_tables(), **odd))
    plain = explained(decided(passing_tables()), CLAIM, "paper")
    claim = (odd["dataset"], odd["model"], 8, "surprisal")
    story = explained(tables, claim, "paper")
    assert tuple(story.claim.values()) == claim
    assert (story.label, len(story.gates)) == (plain.label, 6)
    shown = criterion(story, "mean_delta_nuisance").distributions[0]
    assert shown.labels[0] == f"subject {odd['subject']}, session a, run 1"
    assert shown.values == criterion(plain, "mean_delta_nuisance").distributions[0].values


def test_a_claim_that_is_not_there_is_refused():
    tables = decided(passing_tables())
    assert explained(tables, CLAIM, "paper").claim == dict(zip(CLAIM_KEY, CLAIM, strict=True))
    with pytest.raises(LPactError, match="no claim 'demo/gpt2/9/surprisal'"):
        explained(tables, ("demo", "gpt2", 9, "surprisal"), "paper")
    with pytest.raises(LPactError, match="gate profile 'strict'"):
        explained(tables, CLAIM, "strict")


def test_a_table_that_is_not_there_leaves_its_pictures_out():
    tables = decided(sound())
    whole = explained(tables, CLAIM, "calibrated")
    without = {n: t for n, t in tables.items() if n not in (made.SCORES, made.BLOCKS)}
    story = explained(without, CLAIM, "calibrated")
    assert criterion(whole, "p_surrogates").distributions
    assert criterion(story, "p_surrogates").distributions == ()
    assert replace(criterion(whole, "p_surrogates"), distributions=()) == criterion(story, "p_surrogates")
    assert criterion(story, "p_unit_order") == criterion(whole, "p_unit_order")


def test_controls_that_the_study_does_not_have_are_not_shown():
    whole = sound()
    shown = criterion(explained(decided(whole), CLAIM, "calibrated"), "p_contrast")
    assert "static_embedding" in {d.compared_with for d in shown.distributions}
    without = whole[made.NULLS].filter(pl.col("control") != "static_embedding")
    tables = decided({**whole, made.NULLS: without})
    shown = criterion(explained(tables, CLAIM, "calibrated"), "p_contrast")
    assert {d.compared_with for d in shown.distributions} == {
        "circular_shift",
        "random_matched_dim",
        "nuisance",
    }


def test_fractions_on_a_weak_reliability_do_not_enter():
    weak = pl.col("run") == "1"
    tables = made.put(sound(), made.CEILING, weak, reliability=0.05, fraction_of_ceiling=9.0)
    for profile, name in (
        ("paper", "mean_fraction_of_ceiling"),
        ("paper", "median_fraction_of_ceiling"),
        ("calibrated", "p_fraction"),
    ):
        found = criterion(explained(decided(tables), CLAIM, profile), name)
        (shown,) = found.distributions
        assert set(shown.values) == {0.625}
        if shown.kind == "subject-run":
            assert len(shown.values) == 4


def test_typical_values_do_not_shut_a_gate():
    half = pl.col("method").is_in(["feature_zeroing", "layer_ablation"])
    tables = made.put(passing_tables(), made.SPECIFICITY, half, margin=-0.05)
    story = explained(decided(tables), CLAIM, "paper")
    typical = criterion(story, "typical_margin")
    assert typical.value == pytest.approx(-0.015)
    assert (typical.passed, typical.decisive) == (False, False)
    assert all(g.passed for g in story.gates)


def test_draws_that_not_every_subject_run_has_are_left_out_and_counted():
    whole = sound()
    short = (pl.col("draw") < 7) | (pl.col("run") != "2")
    tables = decided({**whole, made.SCORES: whole[made.SCORES].filter(short)})
    found = criterion(explained(tables, CLAIM, "calibrated"), "p_surrogates")
    assert len(found.distributions[0].values) == found.n == 7
    assert found.distributions[0].note.endswith("13 draws left out that not every subject-run has.")
    assert found.value == pytest.approx(found.distributions[0].p_value)
    missing = made.put(whole, made.SCORES, pl.col("draw") == 3, score_median=None)
    found = criterion(explained(decided(missing), CLAIM, "calibrated"), "p_surrogates")
    assert (len(found.distributions[0].values), found.distributions[0].n_missing) == (19, 1)


def test_the_primary_metric_is_that_of_the_readout():
    tables = made.put(passing_tables(), made.BLOCKS, metric="r2")
    other = pl.col("metric") == "r2"
    tables = made.put(tables, made.CONTROL_DELTAS, other, real_score=0.2, delta_nuisance=0.15)
    tables |= decide(tables, gates=made.GATES, primary_metric="r2")
    shown = criterion(explained(tables, primary_metric="r2"), "mean_delta_nuisance")
    assert shown.value == pytest.approx(0.15)
    assert shown.distributions[0].values == (0.15,) * 5
    assert shown.distributions[0].unit == "difference in R²"
