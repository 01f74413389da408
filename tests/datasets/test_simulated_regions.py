"""Simulated regions: gains, noise and places are as planted, and models know what their names say."""

from typing import Any

import numpy as np
import pytest

from lpact.datasets.base import DATASETS, FeatureKey
from lpact.datasets.simulated_regions import WIDTH, SimulatedRegions
from lpact.errors import LPactError
from lpact.math.types import FloatArray

OPTIONS = {"n_subjects": 3, "n_regions": 4, "n_units": 30, "n_train": 600, "n_test": 40}


def opened(seed: int = 4, name: str = "own", **options: Any) -> SimulatedRegions:
    reader = DATASETS.build("simulated_regions", OPTIONS | options, where="test")
    found = reader.open(name=name, path=None, seed=seed)
    assert isinstance(found, SimulatedRegions)
    return found


def values(data: SimulatedRegions, subject: str, run: str) -> FloatArray:
    own = next(r for r in data.recording_ids() if (r.subject, r.run) == (subject, run))
    return np.asarray(data.recording(own).signal.values)[0]


def of_latents(made: FloatArray, latents: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Squared weights of the latent variables in every column, and the share of variance that all explain."""
    weights, *_ = np.linalg.lstsq(latents, made, rcond=None)
    return weights**2, 1 - (made - latents @ weights).var(axis=0) / made.var(axis=0)


def test_recordings_are_trials_of_training_and_test_stimuli() -> None:
    data = opened(n_repetitions=2, n_train_repetitions=1)
    runs = [(own.subject, own.run, own.stimulus) for own in data.recording_ids()]
    one = [("test-01", "test"), ("test-02", "test"), ("train-01", "train")]
    assert runs == [(who, *own) for who in ("01", "02", "03") for own in one]
    assert data.stimulus_ids() == ["test", "train"]
    for name, n in (("train", 600), ("test", 40)):
        stimulus = data.stimulus(name)
        assert stimulus.words.height == n
        assert stimulus.words["story_id"].unique().to_list() == [name]
        assert not stimulus.has_text
    units = data.recording(data.recording_ids()[0]).units
    assert units.regions == tuple(np.repeat(data.regions, 30))
    assert not units.comparable
    assert values(data, "01", "train-01").shape == (600, 120)


def test_activity_weights_latents_by_gains_that_fall_with_distance() -> None:
    data = opened(n_units=2000)
    latents = data.latents("train")
    apart = (1 / 3 - np.arange(12) / 11) ** 2
    gains = np.exp(-apart / (2 * 0.18**2)) + 0.35
    np.testing.assert_allclose(data.gains(1 / 3), gains)
    found, explained = of_latents(data.activity("train", "01", 1), latents)
    assert explained.min() > 1 - 1e-9
    # The scale of a column adds the same to all of its logarithms.
    ratio = np.log(found).mean(axis=1) - np.log(gains**2)
    np.testing.assert_allclose(ratio, ratio.mean(), atol=0.2)
    assert data.activity("train", "01", 1).var(axis=0).mean() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("repetitions", [1, 3])
def test_the_mean_over_trials_has_the_signal_to_noise_ratio(repetitions: int) -> None:
    data = opened(n_train_repetitions=repetitions)
    runs = [values(data, "02", f"train-{k + 1:02d}") for k in range(repetitions)]
    for region, expected in enumerate(np.geomspace(3, 0.15, 4)):
        own = slice(30 * region, 30 * (region + 1))
        signal = data.activity("train", "02", region)
        noise = np.mean([run[:, own] for run in runs], axis=0) - signal
        assert signal.var() / noise.var() == pytest.approx(expected, rel=0.1)
        assert abs(np.corrcoef(signal.ravel(), noise.ravel())[0, 1]) < 0.03


def test_models_know_what_their_names_say() -> None:
    data = opened(n_columns=600, n_models=3)
    latents = data.latents("train")
    assert data.models[4:] == ("model01", "model02", "model03")
    assert set(data.stimulus("test").features) == {
        FeatureKey(name, layer, "full") for name in data.models for layer in range(4)
    }

    def spread(model: str, layer: int) -> tuple[float, float]:
        """Largest against smallest weight of a latent variable, and the share of variance of all."""
        made = data.features(FeatureKey(model, layer, "full"), "train")
        assert made.shape == (600, 600)
        found, explained = of_latents(made, latents)
        weights = found.mean(axis=1)
        chance = (1 - explained).mean() / 600
        return float(weights.max() / (weights.min() + chance)), float(explained.mean())

    brain = spread("one_more_brain", 0)
    assert brain[0] > 5
    assert brain[1] == pytest.approx(1)  # models have no noise
    assert spread("one_more_brain", 3)[1] == pytest.approx(1)
    assert spread("all_latents", 3)[0] < 1.5
    assert spread("all_latents", 3)[1] == pytest.approx(1)
    assert spread("untrained_brain", 2)[1] == pytest.approx(0.05 / 1.05 + 12 / 600, abs=0.01)
    assert spread("noise", 0)[1] == pytest.approx(12 / 600, abs=0.005)
    more = [spread(f"model0{m}", 0)[0] for m in (1, 2, 3)]
    assert brain[0] > more[0] > more[1] > more[2] > spread("all_latents", 0)[0]


def test_layers_and_columns_are_as_many_as_asked_for() -> None:
    data = opened(n_layers=7, n_columns=11)
    assert len(data.stimulus("train").features) == 4 * 7
    key = FeatureKey("one_more_brain", 6, "full")
    assert data.features(key, "test").shape == (40, 11)
    loaded = data.stimulus("test").features[key].load()
    np.testing.assert_array_equal(loaded, data.features(key, "test"))
    single = opened(n_layers=1)
    assert np.isfinite(single.features(FeatureKey("one_more_brain", 0, "full"), "test")).all()


def test_units_correspond_between_brains_if_asked() -> None:
    data = opened(comparable=True, n_units=400)
    first, other = (data.recording(data.recording_ids()[i]).units for i in (0, -1))
    assert first.comparable
    assert first.ids == other.ids
    np.testing.assert_array_equal(first.coordinates_mm, other.coordinates_mm)
    one, two = data.activity("train", "01", 2), data.activity("train", "02", 2)
    own = [np.corrcoef(a, b)[0, 1] for a, b in zip(one.T, two.T, strict=True)]
    assert np.mean(own) == pytest.approx(0.5, abs=0.1)
    others = [np.corrcoef(a, b)[0, 1] for a, b in zip(one.T, two.T[::-1], strict=True)]
    assert abs(np.mean(others)) < 0.1
    model = data.features(FeatureKey("one_more_brain", 2, "full"), "train")
    of_model = [np.corrcoef(a, b)[0, 1] for a, b in zip(one.T, model.T, strict=True)]
    assert np.mean(of_model) == pytest.approx(0.5, abs=0.1)


def test_regions_are_places_of_their_own_in_both_hemispheres() -> None:
    units = opened().recording(opened().recording_ids()[0]).units
    places = np.asarray(units.coordinates_mm).reshape(4, 15, 2, 3)
    assert (places[:, :, 0, 0] < 0).all()
    assert (places[:, :, 1, 0] > 0).all()
    centres = places.mean(axis=1)[:, 1]
    apart = np.linalg.norm(centres[:, None] - centres, axis=2)[np.triu_indices(4, 1)]
    assert apart.min() > 5 * 4 / np.sqrt(15)
    assert np.abs(places).max() < 110


def test_connectivity_decays_with_distance_and_has_more_regions() -> None:
    data = opened()
    own = data.connectivity()
    assert own.match(data.regions) == tuple(f"other{i + 1:02d}" for i in range(12))
    line = np.arange(4) / 3
    expected = np.exp(-np.abs(line[:, None] - line) / WIDTH)
    np.testing.assert_allclose(own.weights[:4, :4], expected)
    np.testing.assert_array_equal(own.weights, own.weights.T)
    np.testing.assert_array_equal(own.weights, opened().connectivity().weights)


def test_datasets_have_no_connectivity_of_their_own() -> None:
    brains = DATASETS.build("simulated_brains", {}, where="test")
    assert brains.open(name="own", path=None, seed=1).connectivity() is None


def test_everything_depends_on_name_seed_and_options_alone() -> None:
    one, two, key = opened(), opened(), FeatureKey("noise", 1, "full")
    np.testing.assert_array_equal(values(one, "03", "test-01"), values(two, "03", "test-01"))
    np.testing.assert_array_equal(one.features(key, "test"), two.features(key, "test"))
    assert one.source_files() == two.source_files() != opened(floor=0.1).source_files()
    for other in (opened(seed=5), opened(name="other")):
        assert not np.isclose(values(one, "03", "test-01"), values(other, "03", "test-01")).any()
    # More stimuli, subjects and models leave those that there were as they are.
    larger = opened(n_subjects=4, n_train=700, n_models=2)
    np.testing.assert_array_equal(values(one, "03", "test-01"), values(larger, "03", "test-01"))
    with pytest.raises(LPactError, match="no recording 'sub-04"):
        one.recording(larger.recording_ids()[-1])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"snr_last": 0.0}, "snr_last"), ({"floor": -0.1}, "floor"), ({"n_test": 9}, "n_test")],
)
def test_options_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LPactError, match=message):
        opened(**options)
