"""Known truths, the studies they give, and what the simulator plants for them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lpact.analyses.lpact.calibration.run_trials import Settings
from lpact.analyses.lpact.calibration.trial import (
    GATES,
    OTHERS,
    TRUTHS,
    Cell,
    cell_config,
    decide_trial,
    known_truth,
)
from lpact.analyses.lpact.config import GatesConfig, LPactConfig
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.datasets.base import DATASETS, FeatureKey
from lpact.datasets.simulated.brain import word_response
from lpact.datasets.simulated.dataset import Simulated
from lpact.datasets.simulated.features import MODELS
from lpact.errors import ConfigError, StudyInputError

NULL = ("independent", "drift", "nuisance", "shared_noise", "unknown_signal")


def test_every_gate_of_every_truth_has_a_role_with_a_reason():
    for truth in TRUTHS.values():
        declared = {**truth.null_gates, **truth.open_gates}
        assert set(declared) <= set(truth.gates), truth.name
        assert not set(truth.null_gates) & set(truth.open_gates), truth.name
        for gate in truth.gates:
            assert truth.role(gate) in ("false_pass", "power", "open")
            assert len(truth.why(gate)) > 20
    assert set(GATES) <= set(DECISIONS.column_names)


def test_nothing_may_pass_where_nothing_is_planted_and_every_gate_has_power_somewhere():
    assert [truth.name for truth in TRUTHS.values() if truth.is_null] == list(NULL)
    for gate in GATES:
        assert {TRUTHS[name].role(gate) for name in NULL} == {"false_pass"}
        assert "power" in {truth.role(gate) for truth in TRUTHS.values()}
    assert {TRUTHS["integrated"].role(gate) for gate in GATES} == {"power"}
    assert {TRUTHS["integrated"].role(gate) for gate in OTHERS} == {"false_pass"}
    assert TRUTHS["predictive_only"].role("relational") == "false_pass"
    assert TRUTHS["predictive_only"].role("predictive") == "power"


def test_models_and_plants_are_those_of_the_simulator():
    for truth in TRUTHS.values():
        assert set(truth.models) <= set(MODELS)
        for model in truth.models:
            assert isinstance(cell_config(Cell(truth.name, model), 0), LPactConfig)


def test_a_cell_is_a_study_with_the_default_rules_and_all_controls():
    config = cell_config(Cell("integrated", "integrated", n_events=204, n_units=10), 3)
    assert config.gates == GatesConfig()
    assert (
        config.controls.include == LPactConfig.model_validate(config.model_dump() | {"controls": {}}).controls.include
    )
    assert not config.assay.enabled
    # 204 words are 4 stories of 6 sentences with 8.5 words on average.
    assert config.datasets[0].options["sentences_per_story"] == 6


def test_seeds_differ_between_cells_and_studies_and_nothing_else_does():
    cell = Cell("independent", "null", 0.0)
    seeds = {
        cell_config(cell, 0).seed,
        cell_config(cell, 1).seed,
        cell_config(Cell("independent", "integrated", 0.0), 0).seed,
        cell_config(Cell("independent", "null", 0.0, n_units=13), 0).seed,
    }
    assert len(seeds) == 4
    assert cell_config(cell, 0) == cell_config(Cell("independent", "null", 0.0), 0)


def test_the_grid_has_one_strength_where_nothing_is_planted():
    cells = Settings(truths=("shared_noise", "integrated"), snr=(0.5, 1.0)).cells()
    assert [(c.truth, c.model, c.snr) for c in cells] == [
        ("integrated", "integrated", 0.5),
        ("integrated", "integrated", 1.0),
        ("shared_noise", "integrated", 0.0),
        ("shared_noise", "null", 0.0),
    ]
    with pytest.raises(ConfigError, match="is empty, repeated or out of range"):
        Settings(snr=(1.0, 1.0))
    with pytest.raises(ConfigError, match="did you mean 'drift'"):
        known_truth("drfit")


def test_an_unknown_model_is_found_by_the_audit():
    with pytest.raises(StudyInputError, match="no dataset has features of the model 'drifting'"):
        decide_trial(Cell("drift", "drifting", n_events=140), 0)


@pytest.fixture(scope="module")
def nuisance_study() -> Simulated:
    return simulate("nuisance")


def simulate(*truths: str) -> Simulated:
    reader = DATASETS.build("simulated", {"truths": list(truths), "n_runs": 1}, where="test")
    dataset = reader.open(name="sim", path=None, seed=5)
    assert isinstance(dataset, Simulated)
    return dataset


def nuisances(dataset: Simulated) -> np.ndarray:
    """Length, log frequency and position of the words, from the words table alone, with an intercept."""
    words = dataset.stimulus("stimulus01").words
    in_sentence = pl.int_range(pl.len()).over("sentence_id")
    position = words.select(in_sentence).to_series().to_numpy().astype(float)
    length = words["word"].str.len_chars().to_numpy().astype(float)
    known = [np.ones(words.height), length, words["log_frequency"].to_numpy(), position]
    return np.column_stack(known)


def unexplained(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Share of the variance of each column of y that x leaves."""
    residual = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return residual.var(axis=0) / y.var(axis=0)


@pytest.mark.parametrize(("truth", "share"), [("nuisance", 0.0), ("relational", 1.0)])
def test_units_respond_to_nuisances_and_to_nothing_else(truth, share):
    dataset = simulate(truth)
    response = word_response(
        dataset.options,
        dataset.latents("stimulus01"),
        dataset.gains(dataset.recording_ids()[0]),
    )
    assert unexplained(response, nuisances(dataset)) == pytest.approx(share, abs=0.05)


def test_the_nuisance_model_knows_nuisances_in_every_context(nuisance_study):
    features = nuisance_study.stimulus("stimulus01").features
    known = nuisances(nuisance_study)
    full = features[FeatureKey("nuisance", 2, "full")].load()
    reset = features[FeatureKey("nuisance", 2, "sentence_reset")].load()
    n_known = (full.shape[1] + 1) // 2
    for columns in (full, reset):
        left = unexplained(columns, known)
        assert left[:n_known].max() < 0.5
        assert left[n_known:].min() > 0.9
    # What the contexts do not share is noise.
    assert not np.allclose(full, reset)
    assert unexplained(full[:, :n_known] - reset[:, :n_known], known).min() > 0.9
