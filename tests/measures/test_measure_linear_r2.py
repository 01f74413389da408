"""The held-out R² of leave-one-out ridge against scikit-learn, population by population."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score

from lpact.errors import ConfigError, InputError
from lpact.measures import MEASURES, LinearR2
from lpact.measures.base import TARGET_MISSING
from lpact.splits import contiguous

ALPHAS = tuple(10.0**i for i in range(-9, 10))
LABELS = np.array(["V1", "PIT", "V1", "PIT", "PIT", "V1"])
TRAIN, TEST = slice(60), slice(60, None)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((90, 12)) * np.arange(1, 13) + 2.0
    y = x @ rng.standard_normal((12, 6)) + np.where(LABELS == "V1", 20.0, 200.0) * rng.standard_normal((90, 6))
    return x, y + 1.0


def oracle(x, y, x_test, y_test):
    """R² of every unit from one RidgeCV per population, and leave-one-out errors in training."""
    value, errors = np.empty((2, y.shape[1]))
    for label in np.unique(LABELS):
        own = label == LABELS
        fit = RidgeCV(ALPHAS, store_cv_results=True).fit(x, y[:, own])
        value[own] = r2_score(y_test[:, own], fit.predict(x_test), multioutput="raw_values")
        errors[own] = fit.cv_results_[:, :, ALPHAS.index(fit.alpha_)].sum(axis=0)
    return value, errors


def test_scores_are_those_of_scikit_learn(data):
    x, y = data
    value, errors = oracle(x[TRAIN], y[TRAIN], x[TEST], y[TEST])
    measure = LinearR2().fit(x[TRAIN], y[TRAIN], LABELS)
    np.testing.assert_allclose(measure.score(x[TEST], y[TEST]).value, value, atol=1e-8)
    expected = 1.0 - errors / (60 * y[TRAIN].var(axis=0))
    found = measure.training_score()
    np.testing.assert_allclose(found.value, expected, atol=1e-8)
    assert (found.reason == "").all()
    assert len({*measure.alphas}) == 2
    given = LinearR2(populations=LABELS).fit(x[TRAIN], y[TRAIN])
    np.testing.assert_array_equal(given.score(x[TEST], y[TEST]).value, measure.score(x[TEST], y[TEST]).value)
    np.testing.assert_array_equal(given.fit(x, y, np.arange(6)).alphas, LinearR2(penalty="unit").fit(x, y).alphas)
    assert len({*given.fit(x, y).alphas}) == 2


def test_one_population_or_every_unit_alone(data):
    x, y = data
    shared = LinearR2().fit(x, y)
    assert (shared.alphas == RidgeCV(ALPHAS).fit(x, y).alpha_).all()
    own = LinearR2(penalty="unit", alphas=ALPHAS[5:]).fit(x, y, LABELS)
    expected = RidgeCV(ALPHAS[5:], alpha_per_target=True).fit(x, y)
    np.testing.assert_array_equal(own.alphas, expected.alpha_)
    np.testing.assert_allclose(own.predict(x), expected.predict(x), atol=1e-8)


def test_cross_validation_keeps_the_populations(data):
    x, y = data
    split = contiguous(90, 5)
    by_fold = [oracle(x[a], y[a], x[b], y[b])[0] for a, b in split]
    for score in (
        LinearR2().cross_validate(x, y, split, LABELS),
        LinearR2(populations=LABELS).cross_validate(x, y, split),
    ):
        np.testing.assert_allclose(score.by_fold, by_fold, atol=1e-8)
        np.testing.assert_allclose(score.value, np.mean(by_fold, axis=0), atol=1e-8)
        assert score.combined == "mean of folds"
    together = LinearR2().cross_validate(x, y, split).value
    assert np.abs(together - score.value).max() > 1e-3


def test_the_training_mean_as_baseline(data):
    x, y = data
    around_test = LinearR2().fit(x[TRAIN], y[TRAIN])
    around_training = LinearR2(baseline="training").fit(x[TRAIN], y[TRAIN])
    predicted, mean = around_training.predict(x[TEST]), y[TRAIN].mean(axis=0)
    expected = 1 - ((y[TEST] - predicted) ** 2).sum(axis=0) / ((y[TEST] - mean) ** 2).sum(axis=0)
    found = around_training.score(x[TEST], y[TEST]).value
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert (around_test.score(x[TEST], y[TEST]).value < found).all()


def test_units_without_values_leave_their_population_alone(data):
    x, y = data
    holes = y.copy()
    holes[5, 0] = np.nan
    measure = LinearR2().fit(x[TRAIN], holes[TRAIN], LABELS)
    left = LinearR2().fit(x[TRAIN], y[TRAIN, 1:], LABELS[1:])
    for found, expected in (
        (measure.training_score(), left.training_score().value),
        (measure.score(x[TEST], y[TEST]), left.score(x[TEST], y[TEST, 1:]).value),
    ):
        np.testing.assert_allclose(found.value, [np.nan, *expected], atol=1e-12)
        assert found.reason.tolist() == [f"{TARGET_MISSING} in training", "", "", "", "", ""]
    np.testing.assert_array_equal(measure.alphas, [np.nan, *left.alphas])
    nothing = LinearR2().fit(x[TRAIN], np.full((60, 6), np.nan))
    assert np.isnan(nothing.training_score().value).all()
    with pytest.raises(InputError, match="not fitted"):
        LinearR2().training_score()


def test_options_are_checked():
    assert MEASURES.build("linear_r2", {"penalty": "unit"}).options.penalty == "unit"
    for bad in ({"alphas": (0.0,)}, {"alphas": ()}, {"penalty": "voxel"}):
        with pytest.raises(ConfigError):
            LinearR2(**bad)
