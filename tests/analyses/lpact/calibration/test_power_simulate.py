"""Simulated studies of a design: how they are matched, and what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from power_studies import SMALL, design_of, small_study

from lpact.analyses.lpact.calibration.power import Question, planned_claims, simulated_rows
from lpact.analyses.lpact.calibration.power_design import Ceiling, ModelDesign
from lpact.analyses.lpact.calibration.power_simulate import (
    FEWEST_EVENTS,
    LARGER,
    MIXED,
    MOST_EVENTS,
    MOST_SUBJECT_RUNS,
    MOST_UNITS,
    SAME,
    SMALLER,
    Simulated,
    collect,
    matched_design,
    noise_coefficient,
    simulate,
    trial_jobs,
)
from lpact.analyses.lpact.calibration.trial import GATES
from lpact.analyses.lpact.config import GatesConfig, LPactConfig
from lpact.analyses.lpact.tables.calibration import TRIALS
from lpact.codes import Reason
from lpact.inputs.workspace import Workspace
from lpact.run.progress import Reporter
from lpact.stats import autocorrelation


def model_worth(n_effective: float) -> ModelDesign:
    return ModelDesign("m", 1, 2, (1,), 20, 0.5, 1.5, n_effective, Reason.OK)


def test_a_design_within_the_caps_is_matched_in_size():
    study = small_study()
    design = design_of(models=(model_worth(400.0),))
    matched = matched_design(design, LPactConfig.of(study.config))
    # Context features have 0.2, responses 0.4: inflation (1 + 0.08) / (1 − 0.08), nearly.
    assert matched.cell.n_events == pytest.approx(400 * 1.08 / 0.92, abs=2)
    assert (matched.cell.n_subjects, matched.cell.n_units) == (5, 12)
    assert (matched.caps, matched.size) == ((), SAME)
    assert matched.rules[0] == LPactConfig.of(study.config).gates
    assert matched.effort.controls == study.config.controls.include
    assert matched.effort.draws == 2


def test_every_cap_is_told():
    design = design_of(n_subject_runs=40, n_units=200.0, models=(model_worth(9000.0),))
    matched = matched_design(design, LPactConfig.of(small_study().config))
    cell = matched.cell
    assert (cell.n_events, cell.n_subjects) == (MOST_EVENTS, MOST_SUBJECT_RUNS)
    assert cell.n_units == MOST_UNITS
    assert [cap.split(",")[0] for cap in matched.caps[1:]] == [
        f"{MOST_SUBJECT_RUNS} subject-runs instead of 40",
        f"{MOST_UNITS} units instead of 200",
    ]
    assert matched.size == SMALLER
    tiny = matched_design(design_of(models=(model_worth(30.0),)), LPactConfig.of(small_study().config))
    assert tiny.cell.n_events == FEWEST_EVENTS
    assert "finds only larger effects" in tiny.caps[0]
    assert tiny.size == LARGER
    both = matched_design(
        design_of(n_units=200.0, models=(model_worth(30.0),)),
        LPactConfig.of(small_study(draws=50).config),
    )
    assert both.size == MIXED
    assert both.caps[-1].startswith("20 draws of controls instead of 50")
    with pytest.raises(ValueError, match="no design to match"):
        matched_design(design_of(models=()), LPactConfig.of(small_study().config))


@pytest.mark.parametrize("lag1", [0.2, 0.5, 0.8])
def test_noise_has_the_autocorrelation_of_the_responses(lag1):
    """Noise of a simulated study with nothing planted, on its own event grid."""
    study = small_study(
        truths=[],
        noise_autocorrelation=noise_coefficient(lag1),
        n_stories=4,
        sentences_per_story=25,
        n_subjects=2,
    )
    workspace = Workspace(study.config, study.run_config)
    recording = workspace.dataset("sim").recording_ids()[0]
    grid = workspace.prepared("sim", recording).grid
    found = autocorrelation(grid.responses[0], grid.story)[1].mean()
    assert found == pytest.approx(lag1, abs=0.07)
    assert noise_coefficient(0.0) == 0.0
    assert noise_coefficient(0.999) < 1.0


def frames(passed: bool, score: float | None) -> dict[str, pl.DataFrame]:
    gates = dict.fromkeys(GATES, passed)
    rows = [{"gate_profile": "paper", "p_ceiling": None, **gates}]
    effect = {"score": score, "delta": score, "fraction_of_ceiling": None}
    schema = dict.fromkeys(effect, pl.Float64)
    return {TRIALS.name: pl.DataFrame(rows), "effect": pl.DataFrame([effect], schema=schema)}


def made_up(threshold: float) -> Simulated:
    """Studies that pass above a ratio, and score a tenth of it."""
    ratios = [0.1, 0.2, 0.4, 0.8]
    return collect([(r, frames(r > threshold, 0.1 * r)) for r in ratios for _ in range(5)])


def test_effects_are_read_off_between_the_simulated_ratios():
    simulated = made_up(0.3)
    assert simulated.ratios.tolist() == [0.1, 0.2, 0.4, 0.8]
    assert simulated.effect_at("score", 0.4) == pytest.approx(0.04)
    assert simulated.effect_at("score", 0.2 * np.sqrt(2)) == pytest.approx(0.03)
    assert simulated.effect_at("fraction_of_ceiling", 0.2) is None


def test_rows_of_simulated_studies():
    rows = simulated_rows(design_of(), made_up(0.3), Question(GatesConfig(), 0.8), Ceiling("x", 0.01))
    row = next(r for r in rows if r["gate"] == "predictive")
    assert (row["n_trials"], row["n_passed"], row["reason"]) == (20, 10, Reason.OK)
    assert 0.2 < row["snr_half"] < row["snr"] < 0.8
    assert row["snr_low"] < row["snr"] < row["snr_high"]
    assert row["score"] == pytest.approx(0.1 * row["snr"], rel=0.1)
    # The score at the smallest effect, about 0.035, is above a ceiling of 0.01 and below one of 0.2.
    assert row["attainable"] is False
    assert "This design could not have found it." in row["sentence"]
    above = simulated_rows(design_of(), made_up(0.3), Question(GatesConfig(), 0.8), Ceiling("x", 0.2))
    assert {r["attainable"] for r in above} == {True}
    assert not any("could not" in r["sentence"] for r in above)


@pytest.mark.parametrize(
    ("threshold", "reason", "words"),
    [
        (9.0, Reason.NEVER_DETECTED, "No simulated effect, however strong"),
        (0.01, Reason.ALWAYS_DETECTED, "Even the weakest simulated effect"),
    ],
)
def test_a_ratio_outside_the_simulated_ones_is_not_guessed(threshold, reason, words):
    rows = simulated_rows(design_of(), made_up(threshold), Question(GatesConfig(), 0.8), None)
    assert {(r["reason"], r["snr"], r["score"]) for r in rows} == {(reason, None, None)}
    assert all(r["sentence"].startswith(words) for r in rows)


def test_with_capped_sizes_nothing_is_said_to_be_out_of_reach():
    """The same trials, of studies as large as the design and of smaller ones."""
    for threshold, limit in ((9.0, None), (0.3, Ceiling("x", 0.01))):
        own = (Question(GatesConfig(), 0.8), limit)
        same = simulated_rows(design_of(), made_up(threshold), *own)
        smaller = simulated_rows(design_of(), made_up(threshold), *own, SMALLER)
        assert not any("smaller than this design" in row["sentence"] for row in same)
        assert all("smaller than this design" in row["sentence"] for row in smaller)
        assert not any("could not have" in row["sentence"] for row in smaller)
        assert {row["simulated_size"] for row in smaller} == {SMALLER}


def test_few_trials_at_the_strongest_effect_do_not_exclude_the_target_power():
    """No pass of one trial has a probability of 0.2 at a power of 0.8; none of two, of 0.04."""
    for n_trials, enough in ((1, False), (2, True)):
        trials = [(r, frames(False, 0.1 * r)) for r in (0.1, 0.8) for _ in range(n_trials)]
        rows = simulated_rows(design_of(), collect(trials), Question(GatesConfig(), 0.8), None)
        assert {row["reason"] for row in rows} == {Reason.NEVER_DETECTED}
        assert {row["enough_trials"] for row in rows} == {enough}
        assert any("Too few studies" in row["sentence"] for row in rows) != enough


def test_a_smallest_effect_around_the_ceiling_is_in_doubt():
    row = simulated_rows(design_of(), made_up(0.3), Question(GatesConfig(), 0.8), None)[0]
    between = Ceiling("x", (row["score_low"] + row["score"]) / 2)
    assert row["score_low"] < between.score < row["score"]
    doubtful = simulated_rows(design_of(), made_up(0.3), Question(GatesConfig(), 0.8), between)[0]
    assert (doubtful["attainable"], doubtful["enough_trials"]) == (False, False)
    assert "Too few studies" in doubtful["sentence"]
    sure = simulated_rows(design_of(), made_up(0.3), Question(GatesConfig(), 0.8), Ceiling("x", 0.001))[0]
    assert (sure["attainable"], sure["enough_trials"]) == (False, True)


@pytest.mark.parametrize(("n_claims", "expected"), [(1, 4), (2, 2), (40, 0)])
def test_integrated_power_is_that_of_the_studys_own_number_of_claims(n_claims, expected):
    """Trials with p = 0.02, in which all gates pass; their own correction let half of them count."""
    trials = []
    for number in range(4):
        made = frames(True, 0.1)
        p = 0.02 if number < 2 else 0.04
        made[TRIALS.name] = made[TRIALS.name].with_columns(
            gate_profile=pl.lit("calibrated"),
            p_ceiling=pl.lit(p),
            integrated=pl.lit(number % 2 == 0),
        )
        trials.append((0.4, made))
    corrected = collect(trials, 0.05 / n_claims)
    assert corrected.passed["calibrated", "integrated"].sum() == expected
    assert corrected.passed["calibrated", "relational"].sum() == 4
    assert collect(trials).passed["calibrated", "integrated"].sum() == 2
    rows = simulated_rows(design_of(), corrected, Question(GatesConfig(), 0.8), None)
    alphas = {row["gate"]: row["alpha"] for row in rows}
    assert alphas["integrated"] == pytest.approx(0.05 / n_claims)
    assert alphas["relational"] == 0.05
    # A gate that does not pass is no claim, however small the p-value.
    shut = [(r, {**f, TRIALS.name: f[TRIALS.name].with_columns(ceiling=False)}) for r, f in trials]
    assert collect(shut, 0.05).passed["calibrated", "integrated"].sum() == 0
    # Point rules correct nothing.
    points = [(r, {**f, TRIALS.name: f[TRIALS.name].with_columns(gate_profile=pl.lit("paper"))}) for r, f in trials]
    assert collect(points, 0.05 / n_claims).passed["paper", "integrated"].sum() == 2


def test_claims_of_a_plan_are_those_of_confirmatory_datasets():
    study = small_study(models=("integrated", "drift"))
    designs = [
        design_of(models=(replace(model_worth(400.0), model="integrated"),)),
        design_of(confirmatory=False, models=(replace(model_worth(400.0), model="drift"),)),
    ]
    # One dataset, one model with one layer, two mechanisms.
    assert planned_claims(designs, LPactConfig.of(study.config)) == 2


def test_a_design_that_was_not_simulated_has_rows_that_say_why():
    rows = simulated_rows(design_of(), None, Question(GatesConfig(), 0.8), None)
    assert {r["reason"] for r in rows} == {Reason.NOT_SIMULATED}
    assert {(r["gate_profile"], r["gate"]) for r in rows} == {(p, g) for p in ("paper", "calibrated") for g in GATES}


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Three simulated studies far below and three far above what a small design can detect."""
    study = small_study(draws=19)
    design = design_of(
        n_subject_runs=3,
        n_units=8.0,
        response_autocorrelation=0.2,
        models=(model_worth(130.0),),
    )
    matched = matched_design(design, LPactConfig.of(study.config), SMALL)
    kept = tmp_path_factory.mktemp("kept")
    jobs = trial_jobs(matched, trials=3, ratios=(0.02, 1.6))
    settings = {
        "config": LPactConfig.of(study.config),
        "run": study.run_config,
        "workers": 1,
        "name": "sim",
    }
    found = simulate(jobs, kept=kept, reporter=Reporter(), **settings)
    return found, jobs, kept, settings


def test_level_1_passes_well_above_the_smallest_effect_and_not_below(planted):
    simulated = planted[0]
    passed = simulated.passed["calibrated", "predictive"]
    assert passed[simulated.snr == 1.6].all()
    assert not passed[simulated.snr == 0.02].any()
    curve, reason = simulated.curve("calibrated", "predictive", 0.8)
    assert reason is Reason.OK
    assert curve is not None
    assert 0.02 < curve.snr_at(0.8) < 1.6
    # Point rules find as much, and pass by chance too: nothing is asserted below the smallest effect.
    assert simulated.passed["paper", "predictive"][simulated.snr == 1.6].all()


def test_what_the_user_sees_grows_with_the_effect(planted):
    for name in ("score", "delta"):
        low, high = planted[0].effects[name]
        assert low < 0.1 < 0.3 < high


def test_finished_studies_are_taken_from_the_folder(planted):
    """A damaged one is made again: the same numbers."""
    simulated, jobs, kept, settings = planted

    class Counting(Reporter):
        steps: list[int]

        def __init__(self) -> None:
            self.steps = []

        def advance(self, steps: int = 1) -> None:
            self.steps.append(steps)

    told = Counting()
    again = simulate(jobs, kept=kept, reporter=told, **settings)
    assert told.steps == [6]
    np.testing.assert_array_equal(again.effects["score"], simulated.effects["score"])
    next(kept.glob("*/*.task")).write_bytes(b"damaged")
    told = Counting()
    mended = simulate(jobs, kept=kept, reporter=told, **settings)
    assert told.steps == [5, 1]
    np.testing.assert_array_equal(mended.effects["score"], simulated.effects["score"])


def test_studies_are_in_an_order_that_covers_the_range_early():
    matched = matched_design(design_of(), LPactConfig.of(small_study().config), SMALL)
    jobs = trial_jobs(matched, trials=2, ratios=(0.1, 0.4))
    assert [(j.number, j.cell.snr) for j in jobs] == [(0, 0.1), (0, 0.4), (1, 0.1), (1, 0.4)]
    assert len({job.key for job in jobs}) == 4
    stricter = replace(matched, rules=(GatesConfig(alpha=0.01), matched.rules[1]))
    assert trial_jobs(stricter, trials=1, ratios=(0.1,))[0].key not in {job.key for job in jobs}
