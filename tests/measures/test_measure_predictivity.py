"""Linear predictivity against scikit-learn, fitted once and in nested cross-validation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lpact.errors import InputError, SplitError
from lpact.math.ridge import RidgeGrid, Selection
from lpact.measures import LinearPredictivity
from lpact.measures.base import SOURCE_MISSING, TARGET_MISSING
from lpact.measures.predictivity import MISSING_IN_TRAINING
from lpact.splits import contiguous, cross_session, grouped, shuffled

ALPHA = 10.0
ONE = RidgeGrid((ALPHA,))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((90, 5)) * np.arange(1, 6)
    y = x @ rng.standard_normal((5, 3)) + 4.0 * rng.standard_normal((90, 3))
    return x, y


def ridge():
    return make_pipeline(StandardScaler(), Ridge(ALPHA))


def test_fit_and_score_are_those_of_scikit_learn(data):
    x, y = data
    train, test = slice(60), slice(60, None)
    predicted = ridge().fit(x[train], y[train]).predict(x[test])
    measure = LinearPredictivity(grid=ONE).fit(x[train], y[train])
    np.testing.assert_allclose(measure.predict(x[test]), predicted, atol=1e-8)
    for metric, oracle in (("pearson", pearsonr), ("spearman", spearmanr)):
        measure.metric = metric
        expected = [oracle(predicted[:, j], y[test, j]).statistic for j in range(3)]
        np.testing.assert_allclose(measure.score(x[test], y[test]).value, expected, atol=1e-8)
    measure.metric = "r2"
    error = ((y[test] - predicted) ** 2).sum(axis=0)
    spread = ((y[test] - y[train].mean(axis=0)) ** 2).sum(axis=0)
    np.testing.assert_allclose(measure.score(x[test], y[test]).value, 1 - error / spread, atol=1e-8)


@pytest.mark.parametrize(
    "split",
    [
        contiguous(90, 4, gap=2),
        grouped(np.tile(np.arange(5), 18)),
        shuffled(90, 6, seed=1),
        contiguous(90, 2),
        grouped(np.tile(np.arange(5), 18), gap=0),
        cross_session(np.tile(["a", "b", "c"], 30), np.repeat(["s", "t"], 45)),
    ],
    ids=["contiguous", "grouped", "shuffled", "two folds", "scattered", "cross_session"],
)
def test_cross_validation_is_that_of_scikit_learn(data, split):
    """R² per fold around the training mean, with one penalty so that nothing is chosen."""
    x, y = data
    score = LinearPredictivity(grid=ONE, metric="r2").cross_validate(x, y, split)
    error, spread, by_fold = np.zeros(3), np.zeros(3), []
    for train, test in split:
        predicted = ridge().fit(x[train], y[train]).predict(x[test])
        own = (
            ((y[test] - predicted) ** 2).sum(axis=0),
            ((y[test] - y[train].mean(axis=0)) ** 2).sum(axis=0),
        )
        error, spread = error + own[0], spread + own[1]
        by_fold.append(1 - own[0] / own[1])
    np.testing.assert_allclose(score.by_fold, by_fold, atol=1e-8)
    assert (score.combined == "pooled") == (len(split) > 2 and split.within is None)
    if score.combined == "pooled":
        np.testing.assert_allclose(score.value, 1 - error / spread, atol=1e-8)
    else:
        sizes = [len(test) for _, test in split]
        np.testing.assert_allclose(score.value, np.average(by_fold, axis=0, weights=sizes))


def test_the_lag_is_chosen_with_the_penalty(data):
    x, y = data
    lagged = np.stack([np.random.default_rng(3).standard_normal(y.shape), y])
    split = contiguous(90, 5)
    measure = LinearPredictivity()
    np.testing.assert_allclose(
        measure.cross_validate(x, lagged, split).value, measure.cross_validate(x, y, split).value
    )


def test_units_with_missing_values_leave_the_others_alone(data):
    x, y = data
    holes = y.copy()
    holes[7, 1] = np.nan
    groups = RidgeGrid((1.0, 100.0), selection=Selection("group", "group", "group", (0, 1, 0)))
    for measure in (LinearPredictivity(), LinearPredictivity(grid=groups)):
        split = contiguous(90, 4)
        expected = measure.cross_validate(x, y, split).value
        found = measure.cross_validate(x, holes, split)
        np.testing.assert_allclose(found.value, [expected[0], np.nan, expected[2]], atol=1e-12)
        assert found.reason.tolist() == ["", TARGET_MISSING, ""]
        fitted = measure.fit(x[:60], holes[:60]).score(x[60:], y[60:])
        assert fitted.reason.tolist() == ["", MISSING_IN_TRAINING, ""]
        assert np.isfinite(fitted.value[[0, 2]]).all()


def test_features_with_missing_values_cannot_be_fitted(data):
    x, y = data
    x[0, 0] = np.nan
    with pytest.raises(InputError, match=SOURCE_MISSING):
        LinearPredictivity().fit(x, y)
    for n_folds, combined in ((3, "pooled"), (2, "mean of folds")):
        score = LinearPredictivity().cross_validate(x, y, contiguous(90, n_folds))
        assert score.reason.tolist() == [SOURCE_MISSING] * 3
        assert score.by_fold.shape == (n_folds, 3)
        assert np.isnan(score.by_fold).all()
        assert score.combined == combined


def test_a_score_needs_a_fit_of_the_same_units(data):
    x, y = data
    with pytest.raises(InputError, match="not fitted"):
        LinearPredictivity().score(x, y)
    with pytest.raises(InputError, match="another number of units"):
        LinearPredictivity().fit(x, y).score(x, y[:, :2])


def test_penalties_can_be_given_alone(data):
    x, y = data
    grid = RidgeGrid((0.1, 50.0))
    expected = LinearPredictivity(grid=grid).cross_validate(x, y, contiguous(90, 3)).value
    found = LinearPredictivity(alphas=[0.1, 50.0]).cross_validate(x, y, contiguous(90, 3)).value
    np.testing.assert_array_equal(found, expected)
    kept = LinearPredictivity(alphas=[1], grid=RidgeGrid((9.0,), components=(2,))).grid
    assert (kept.alphas, kept.components) == ((1.0,), (2,))
    with pytest.raises(ValueError, match="alphas must be a list of at least one value, got 10"):
        LinearPredictivity(alphas=10)


def test_fold_by_fold_the_gap_of_the_split_is_that_of_the_inner_blocks():
    """Drifting data, where validation blocks without a gap choose a smaller penalty."""
    rng = np.random.default_rng(4)
    x, y = (np.cumsum(rng.standard_normal((120, k)), axis=0) for k in (20, 8))
    split = contiguous(120, 2, gap=8)
    expected = [LinearPredictivity(gap=8).fit(x[a], y[a]).score(x[b], y[b]).value for a, b in split]
    without = [LinearPredictivity().fit(x[a], y[a]).score(x[b], y[b]).value for a, b in split]
    measure = LinearPredictivity()
    np.testing.assert_array_equal(measure.cross_validate(x, y, split).by_fold, expected)
    assert np.abs(np.subtract(expected, without)).max() > 1e-3
    assert measure.gap == 0


@pytest.mark.parametrize(("n_rows", "gap"), [(4, 0), (10, 8)])
def test_too_few_rows_for_the_validation_blocks(data, n_rows, gap):
    x, y = data
    with pytest.raises(SplitError, match=r"cannot split 4 rows|no training row is left"):
        LinearPredictivity(gap=gap).fit(x[:n_rows], y[:n_rows])


def test_an_unknown_metric_is_an_error():
    with pytest.raises(InputError, match=r"there is no metric 'pearsn'[\s\S]*did you mean 'pearson'"):
        LinearPredictivity(metric="pearsn")
