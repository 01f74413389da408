"""Simulated brains: what they share is what was asked for, and models share more, as much or less."""

import numpy as np
import pytest

from lpact.datasets.base import DATASETS, FeatureKey
from lpact.errors import LPactError

OPTIONS = {"n_subjects": 3, "n_stimuli": 400, "n_units": 30, "n_latents": 12, "n_seen": 9}


def brains(**options):
    reader = DATASETS.build("simulated_brains", OPTIONS | options, where="test")
    return reader.open(name="brains", path=None, seed=4)


def explained(activity, latents):
    """Share of variance of every unit that the latent variables explain."""
    fit, *_ = np.linalg.lstsq(latents, activity, rcond=None)
    return 1 - (activity - latents @ fit).var(axis=0) / activity.var(axis=0)


def test_trials_are_activity_and_noise_at_the_gain_of_the_lag():
    data = brains(n_repetitions=2, noise=0.5)
    ids = data.recording_ids()
    assert len(ids) == 6
    first, second = (data.recording(own).signal.values for own in ids[:2])
    activity = data.activity("01", 9)
    for lag, gain in enumerate((0.3, 1.0, 0.6)):
        noise = first[lag] - gain * activity
        assert noise.std() == pytest.approx(0.5, rel=0.04)
        assert abs(np.corrcoef(noise.ravel(), (second[lag] - gain * activity).ravel())[0, 1]) < 0.03


def test_brains_see_some_of_the_latents_and_have_their_own():
    data = brains(own=0.2)
    latents, activity = data.latents(), data.activity("01", 9)
    n_units = data.options.n_units
    shared = explained(activity, latents)
    assert shared[: n_units // 2].mean() == pytest.approx(0.8, abs=0.05)
    assert shared[n_units // 2 :].mean() == pytest.approx(0.6, abs=0.08)  # the region frontal
    assert activity.var(axis=0).mean() == pytest.approx(1.0, abs=0.15)
    used = np.abs(np.linalg.lstsq(latents, activity, rcond=None)[0]).mean(axis=1)
    assert (used > 0.1).sum() == 9


def test_models_see_as_many_as_their_name_says():
    data = brains()
    latents = data.latents()
    seen = {}
    for model in ("half_brain", "sixth_brain", "mean_brain"):
        features = data.features(FeatureKey(model, 1, "full"))
        weights = np.linalg.lstsq(latents, features, rcond=None)[0]
        seen[model] = int((np.abs(weights).mean(axis=1) > 0.1).sum())
    assert seen == {"half_brain": 4, "sixth_brain": 9, "mean_brain": 12}
    assert explained(data.features(FeatureKey("mean_brain", 1, "full")), latents).min() > 0.999
    assert data.features(FeatureKey("sixth_brain", 0, "full")).shape == (400, 15)


def test_everything_depends_on_name_seed_and_options_alone():
    one, two = brains(), brains()
    np.testing.assert_array_equal(one.activity("02", 9), two.activity("02", 9))
    assert one.source_files() == two.source_files() != brains(noise=2.0).source_files()
    with pytest.raises(LPactError, match="no recording 'sub-04"):
        one.recording(brains(n_subjects=4).recording_ids()[-1])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"n_seen": 13}, "n_seen is above n_latents"), ({"gains": (1.0,)}, "one gain per lag")],
)
def test_options_that_contradict_each_other(options, message):
    with pytest.raises(LPactError, match=message):
        brains(**options)
