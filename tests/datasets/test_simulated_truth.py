"""Simulated truths: what is planted can be recovered by plain regression, at its latency only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from lpact.datasets.base import DATASETS, Epochs, RecordingId, TimeSeries
from lpact.datasets.simulated.brain import mix_sensors
from lpact.datasets.simulated.dataset import Simulated
from lpact.datasets.simulated.options import MECHANISMS
from lpact.datasets.simulated.streams import ar1, ar1_window_sd
from lpact.math.seeding import keyed_rng

TRUTHS = ("lexical", "predictive", "relational", "mechanism", "drift")
FAST = ("lexical", "predictive", "relational", "mechanism")


def study(*, seed: int = 0, **options: Any) -> Simulated:
    dataset = DATASETS.build("simulated", options).open(name="sim", path=None, seed=seed)
    assert isinstance(dataset, Simulated)
    return dataset


def window_means(dataset: Simulated, recording_id: RecordingId, lag_s: float) -> np.ndarray:
    """Mean of the 200 ms that start ``lag_s`` after every onset, by direct slicing."""
    signal = dataset.recording(recording_id).signal
    assert isinstance(signal, TimeSeries)
    onset_s = dataset.stimulus(recording_id.stimulus).words["onset_s"].to_numpy()
    first = np.round((onset_s + lag_s) * signal.sampling_rate_hz).astype(int)
    return np.stack([signal.values[i : i + 20].mean(axis=0) for i in first])


def drives(dataset: Simulated) -> dict[str, np.ndarray]:
    latents = dataset.latents("stimulus01")
    onset_s = dataset.stimulus("stimulus01").words["onset_s"].to_numpy()
    return {
        "relational": latents.contextual.relational_drive[:, None],
        "predictive": latents.contextual.predictive_drive[:, None],
        "lexical": latents.lexical_drive[:, None],
        "mechanism": latents.contextual.mechanisms,
        "drift": latents.drifts.at(onset_s),
    }


def slopes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    design = np.column_stack([x, np.ones(len(x))])
    return np.linalg.lstsq(design, y, rcond=None)[0][:-1]


def true_gains(dataset: Simulated, recording_id: RecordingId, truth: str) -> np.ndarray:
    gains = dataset.gains(recording_id)
    return {
        "relational": gains.relational[None],
        "predictive": gains.predictive[None],
        "lexical": gains.lexical[None],
        "mechanism": gains.mechanisms,
        "drift": gains.drift,
    }[truth]


@pytest.mark.parametrize("truth", TRUTHS)
def test_planted_gains_are_recovered_after_100_ms(truth: str) -> None:
    dataset = study(truths=[truth], snr=2.0, n_stories=6, shared_noise=0.0)
    recording_id = dataset.recording_ids()[0]
    response = window_means(dataset, recording_id, 0.1)
    found = slopes(drives(dataset)[truth], response)
    expected = 2.0 * true_gains(dataset, recording_id, truth)
    n_words = len(response)
    noise_sd = np.sqrt(1.0 + 1.6**2)
    np.testing.assert_allclose(found, expected, atol=0.12 * 2.0 + 5 * noise_sd / np.sqrt(n_words))
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.8


@pytest.mark.parametrize("truth", FAST)
def test_planted_response_has_its_latency(truth: str) -> None:
    dataset = study(truths=[truth], snr=2.0, n_stories=6)
    recording_id = dataset.recording_ids()[0]
    drive, expected = drives(dataset)[truth], true_gains(dataset, recording_id, truth)
    size = {
        lag_s: float((slopes(drive, window_means(dataset, recording_id, lag_s)) * expected).sum())
        for lag_s in (-0.3, -0.1, 0.0, 0.1, 0.2, 0.3, 0.5)
    }
    assert max(size, key=lambda lag_s: size[lag_s]) == 0.1
    assert size[0.1] > 4 * abs(size[-0.3])
    assert size[0.1] > 2 * abs(size[0.5])


@pytest.mark.parametrize("planted", [(), *[(truth,) for truth in TRUTHS]])
def test_what_is_not_planted_is_absent(planted: tuple[str, ...]) -> None:
    """Word-level noise is nearly white here, so slopes have their textbook standard errors."""
    dataset = study(truths=planted, noise_autocorrelation=0.5, n_stories=6)
    recording_id = dataset.recording_ids()[0]
    response = window_means(dataset, recording_id, 0.1)
    known = drives(dataset)
    present = [known[truth] for truth in planted]
    absent = [known[truth] for truth in TRUTHS if truth not in planted]
    design = np.column_stack([*present, *absent, np.ones(len(response))])
    found, residual, *_ = np.linalg.lstsq(design, response, rcond=None)
    n_free = len(response) - design.shape[1]
    scale = np.sqrt(np.outer(np.diag(np.linalg.inv(design.T @ design)), residual / n_free))
    n_present = sum(block.shape[1] for block in present)
    t_absent = (found / scale)[n_present:-1]
    assert t_absent.size >= 64
    assert np.abs(t_absent).max() < stats.t.isf(0.5e-3 / t_absent.size, n_free)
    if planted:
        assert np.abs((found / scale)[:n_present]).max() > 8


@pytest.mark.parametrize("coefficient", [0.0, 0.5, 0.95])
def test_noise_has_its_autocorrelation_and_window_sd(coefficient: float) -> None:
    noise = ar1(keyed_rng(1, "noise"), 40_000, 6, coefficient)
    assert noise.std() == pytest.approx(1.0, abs=0.03)
    assert (noise[1:] * noise[:-1]).mean() == pytest.approx(coefficient, abs=0.03)
    means = noise.reshape(2000, 20, 6).mean(axis=1)
    assert means.std() == pytest.approx(ar1_window_sd(coefficient, 20), rel=0.05)


def test_gains_are_relative_to_the_noise_of_200_ms() -> None:
    dataset = study(truths=[], shared_noise=1.0, n_stories=10, subject_variability=0.0)
    recording_id = dataset.recording_ids()[0]
    gains = dataset.gains(recording_id)
    expected = 1.0 + gains.relational**2 + gains.shared_noise**2
    variance = window_means(dataset, recording_id, 0.1).var(axis=0)
    np.testing.assert_allclose(variance, expected, rtol=0.25)
    assert np.mean(variance / expected) == pytest.approx(1.0, abs=0.08)


@pytest.mark.parametrize("truth", FAST)
def test_epochs_hold_the_response_in_the_middle_lag(truth: str) -> None:
    dataset = study(modality="epoched", truths=[truth], snr=2.0, n_stories=6)
    recording_id = dataset.recording_ids()[0]
    signal = dataset.recording(recording_id).signal
    assert isinstance(signal, Epochs)
    expected = true_gains(dataset, recording_id, truth)
    sizes = [
        (slopes(drives(dataset)[truth], layer) * expected).sum() / (2.0 * expected**2).sum() for layer in signal.values
    ]
    assert sizes[1] == pytest.approx(1.0, abs=0.1)
    assert abs(sizes[0]) < 0.2
    assert abs(sizes[2]) < 0.8


def test_meg_is_the_same_with_mixed_sensors() -> None:
    plain, mixed = (study(modality=modality) for modality in ("intracranial", "meg"))
    recording_id = plain.recording_ids()[0]
    values = plain.recording(recording_id).signal.values
    found = mixed.recording(recording_id).signal.values
    np.testing.assert_allclose(found, mix_sensors(values))
    middle = (values[:, 4] + 0.15 * (values[:, 3] + values[:, 5])) / np.sqrt(1 + 2 * 0.15**2)
    np.testing.assert_allclose(found[:, 4], middle)


def test_fmri_follows_the_haemodynamic_response() -> None:
    """Oracle: impulses on a 10 Hz grid, convolved with the difference of two gamma densities."""
    dataset = study(modality="fmri", truths=["relational"], snr=2.0, n_stories=10)
    recording_id = dataset.recording_ids()[0]
    values = dataset.recording(recording_id).signal.values
    onset_s = dataset.stimulus("stimulus01").words["onset_s"].to_numpy()
    drive = dataset.latents("stimulus01").contextual.relational_drive
    impulses = np.zeros(len(values) * 20)
    np.add.at(impulses, np.round(onset_s * 10).astype(int), drive)
    t = np.arange(0, 32, 0.1)
    kernel = stats.gamma.pdf(t, 6) - stats.gamma.pdf(t, 16) / 6
    bold = np.convolve(impulses, kernel)[: len(impulses) : 20]
    correlation = np.array([np.corrcoef(bold, unit)[0, 1] for unit in values.T])
    gains = 2.0 * dataset.gains(recording_id).relational
    expected = gains / np.sqrt(1 + gains**2)
    np.testing.assert_allclose(correlation, expected, atol=0.2)
    shifted = np.array([np.corrcoef(np.roll(bold, -4), unit)[0, 1] for unit in values.T])
    assert shifted.mean() < 0.3 * correlation.mean()


def test_drift_is_explained_by_place_in_story_and_four_cosines() -> None:
    for seed in range(5):
        dataset = study(seed=seed)
        words = dataset.stimulus("stimulus01").words
        onset_s, story = words["onset_s"].to_numpy(), words["story_id"].to_numpy()
        place = np.empty(len(onset_s))
        for name in np.unique(story):
            own = onset_s[story == name]
            place[story == name] = (own - own[0]) / (own[-1] - own[0])
        cosines = [np.cos(np.pi * k * place) for k in range(1, 5)]
        design = np.column_stack([np.ones_like(place), place, *cosines])
        drift = dataset.latents("stimulus01").drifts.at(onset_s)
        rest = drift - design @ np.linalg.lstsq(design, drift, rcond=None)[0]
        assert (1.0 - rest.var(axis=0) / drift.var(axis=0)).min() > 0.99


def pattern(dataset: Simulated, recording_id: RecordingId) -> np.ndarray:
    matrix = np.corrcoef(window_means(dataset, recording_id, 0.1).T)
    return matrix[np.triu_indices(len(matrix), 1)]


@pytest.mark.parametrize("truths", [["relational"], ["predictive"], []])
def test_brain_patterns_replicate_over_runs_sessions_and_subjects(truths: list[str]) -> None:
    dataset = study(truths=truths, subject_variability=0.05, n_sessions=2, repeat_stimulus=False)
    first, *others = (pattern(dataset, recording_id) for recording_id in dataset.recording_ids())
    assert min(np.corrcoef(first, other)[0, 1] for other in others) > 0.85


def test_variability_separates_subjects_more_than_runs() -> None:
    dataset = study(subject_variability=0.5, n_units=64)
    runs = [np.log(dataset.gains(i).relational) for i in dataset.recording_ids()]
    by_run = np.std(runs[0] - runs[1])
    by_subject = np.std(runs[0] - runs[2])
    assert by_subject == pytest.approx(0.5 * np.sqrt(2 * (1 + 0.3**2 + 0.2**2)), rel=0.3)
    assert by_run == pytest.approx(0.5 * 0.2 * np.sqrt(2), rel=0.3)


def test_private_units_have_gains_of_their_own() -> None:
    dataset = study(shared_units=False, subject_variability=0.0, n_units=64)
    one, same, other = (dataset.gains(i).relational for i in dataset.recording_ids()[:3])
    np.testing.assert_array_equal(one, same)
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.5


@pytest.mark.parametrize("seed", range(8))
def test_gain_patterns_are_unrelated_where_they_should_be(seed: int) -> None:
    dataset = study(seed=seed, subject_variability=0.0, mechanisms=MECHANISMS, n_mechanism_units=2)
    gains = dataset.gains(dataset.recording_ids()[0])
    assert abs(np.corrcoef(gains.relational, gains.lexical)[0, 1]) < 0.3
    assert abs(np.corrcoef(gains.relational, gains.shared_noise)[0, 1]) < 0.2
    assert np.corrcoef(gains.relational, gains.predictive)[0, 1] < -0.99
    carriers = gains.mechanisms > 0
    assert (carriers.sum(axis=1) == 2).all()
    assert carriers.sum(axis=0).max() == 1


def test_a_predictive_brain_keeps_a_pattern_that_its_model_does_not_share() -> None:
    dataset = study(truths=["predictive"])
    recording_id = dataset.recording_ids()[0]
    response = window_means(dataset, recording_id, 0.1)
    brain = np.corrcoef(response.T)
    model = np.abs(np.corrcoef(drives(dataset)["predictive"].T, response.T)[0, 1:])
    similarity = [np.corrcoef(np.delete(brain[i], i), np.delete(model, i))[0, 1] for i in range(len(model))]
    assert np.mean(similarity) < -0.2
    assert np.mean(np.array(similarity) > 0) < 0.4
