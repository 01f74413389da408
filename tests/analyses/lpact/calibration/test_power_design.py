"""Designs read from studies: sizes, autocorrelation and ceilings, without a readout."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from power_studies import design_of, small_study

from lpact.analyses.lpact.calibration.power import Question, closed_rows
from lpact.analyses.lpact.calibration.power_design import (
    Ceiling,
    ModelDesign,
    best_ceiling,
    read_design,
)
from lpact.analyses.lpact.config import GatesConfig
from lpact.codes import Reason
from lpact.errors import InputError
from lpact.inputs.workspace import Workspace
from lpact.run.progress import Reporter
from lpact.stats import autocorrelation
from lpact.study import Study


def design(study: Study):
    (found,) = read_design(Workspace(study.config, study.run_config), Reporter())
    return found


@pytest.fixture(scope="module")
def small():
    return design(small_study())


def test_sizes_are_those_of_the_prepared_grids(small):
    study = small_study()
    workspace = Workspace(study.config, study.run_config)
    audit = study.audit()
    recordings = audit.of["lpact"].detail["sim"].recordings
    prepared = [workspace.prepared("sim", r.id) for r in recordings]
    assert (small.n_subjects, small.n_subject_runs, small.n_measured) == (3, 3, 3)
    assert (small.n_units, small.n_folds, small.n_lags) == (8, 3, 1)
    assert small.n_events == np.median([p.n_events for p in prepared])
    lag1 = [np.median(autocorrelation(p.reference, p.grid.story)[1]) for p in prepared]
    assert small.response_autocorrelation == pytest.approx(np.median(lag1))
    features = workspace.model("integrated", prepared[0]).load(2)
    own = np.median(autocorrelation(features, prepared[0].grid.story)[1])
    (model,) = small.models
    assert model.layer == 2
    assert model.reason is Reason.OK
    # One stimulus, and so the same features in all three.
    assert model.feature_autocorrelation == pytest.approx(own)
    assert model.n_effective_events == pytest.approx(small.n_events / model.variance_inflation)
    # Three controls with two draws each, and nuisance.
    assert (model.n_rivals, model.random_draws, model.surrogate_draws) == (4, (1, 2, 2, 2), 2)


def test_slower_responses_are_worth_fewer_events(small):
    slow = design(small_study(noise_autocorrelation=0.995))
    assert slow.response_autocorrelation > small.response_autocorrelation + 0.1
    share = slow.limiting.n_effective_events / slow.n_events
    assert share < small.limiting.n_effective_events / small.n_events
    assert small.limiting.n_effective_events <= small.n_events


def test_a_larger_study_has_a_smaller_detectable_effect(small):
    large = design(small_study(n_subjects=6, n_stories=6, sentences_per_story=12))
    gates = GatesConfig()
    for before, after in zip(
        closed_rows(small, Question(gates, 0.8), small.ceiling),
        closed_rows(large, Question(gates, 0.8), large.ceiling),
        strict=True,
    ):
        assert before["gate_profile"] == after["gate_profile"]
        assert after["delta"] < 0.7 * before["delta"]


def test_the_ceiling_is_the_root_of_the_most_lenient_reliability():
    rows = pl.DataFrame(
        {
            "subject": ["1", "2", "1", "1"],
            "session": ["1"] * 4,
            "run": ["1"] * 4,
            "kind": ["response", "response", "response", "profile"],
            "mode": ["subject_to_subject"] * 2 + ["run_to_run", "run_to_run"],
            "valid": [True] * 4,
            "reliability": [0.05, 0.13, 0.16, 0.9],
        }
    )
    assert best_ceiling(rows) == Ceiling("run_to_run", pytest.approx(0.4))
    only_subjects = best_ceiling(rows.filter(mode="subject_to_subject"))
    assert only_subjects == Ceiling("subject_to_subject", pytest.approx(0.3))
    assert best_ceiling(rows.with_columns(valid=pl.lit(False))) is None
    assert best_ceiling(rows.with_columns(reliability=-pl.col("reliability"))) is None


def test_responses_without_signal_have_no_ceiling_or_a_low_one(small):
    assert small.ceiling is not None
    assert small.ceiling.mode == "subject_to_subject"
    nothing = design(small_study(truths=[]))
    assert nothing.ceiling is None or nothing.ceiling.score < 0.6 * small.ceiling.score


def test_subject_runs_that_agree_are_worth_fewer():
    """Five that agree by r = 0.09: 5 / (1 + 4 · 0.0081); by 1: one; not known: five."""
    assert design_of().n_effective_subject_runs == pytest.approx(5 / (1 + 4 * 0.0081))
    one = design_of(ceiling=Ceiling("run_to_run", 1.0))
    assert one.n_effective_subject_runs == pytest.approx(1.0)
    assert design_of(ceiling=None).n_effective_subject_runs == 5.0


def test_chance_scores_of_subject_runs_that_agree_have_the_predicted_variance():
    """The mean over R of corr(x, y_i) of chance predictions x_i, both with a common part: variance 1 / (n R_eff)."""
    rng = np.random.default_rng(0)
    n, runs, studies, r = 150, 4, 1500, 0.6

    def with_common():
        own, common = rng.standard_normal((n, runs, studies)), rng.standard_normal((n, 1, studies))
        return math.sqrt(r) * common + math.sqrt(1 - r) * own

    means = (with_common() * with_common()).mean(axis=0).mean(axis=0)
    worth = design_of(n_subject_runs=runs, ceiling=Ceiling("x", r**0.5)).n_effective_subject_runs
    assert means.var() == pytest.approx(1 / (n * worth), rel=0.1)


def test_the_model_with_the_fewest_effective_events_limits():
    many = ModelDesign("a", 1, 2, (1,), 2, 0.1, 1.1, 500.0, Reason.OK)
    few = ModelDesign("b", 1, 2, (1,), 2, 0.9, 3.0, 200.0, Reason.OK)
    none = ModelDesign("c", None, 0, (), 0, None, None, None, Reason.MODEL_OFFERS_NOTHING)
    assert design_of(models=(many, few, none)).limiting is few
    assert design_of(models=(none,)).limiting is None


def test_a_study_with_nothing_usable_says_so():
    study = small_study(sentences_per_story=4, n_stories=1)
    with pytest.raises(InputError, match="power cannot be estimated for any dataset") as told:
        design(study)
    assert "sim: " in str(told.value)
    assert "see `lpact audit` for what is missing" in str(told.value)


def test_a_dataset_that_is_not_confirmatory_detects_nothing():
    rows = closed_rows(
        design_of(confirmatory=False, reason=Reason.CHAIN_INCOMPLETE),
        Question(GatesConfig(), 0.8),
        None,
    )
    assert [row["reason"] for row in rows] == [Reason.CHAIN_INCOMPLETE] * 2
    assert [row["delta"] for row in rows] == [None, None]
    assert all(row["sentence"].startswith("This design could not have found it") for row in rows)
    assert [row["delta"] > 0 for row in closed_rows(design_of(), Question(GatesConfig(), 0.8), None)] == [
        True,
        True,
    ]
