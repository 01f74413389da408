"""The ridge engine against himalaya, where both solve the same problem.

himalaya centres features and responses on every training set (``fit_intercept=True``) but does not scale them. The
engine standardises features on every training set. The two coincide where every training set gives every feature the
same standard deviation of one: every block is made of parts that are standardised by themselves, and a training set
loses whole parts only (a block, and the parts next to it that the embargo takes). A common offset changes nothing.
"""

from __future__ import annotations

import numpy as np
import pytest
from himalaya.backend import set_backend
from himalaya.ridge import GroupRidgeCV, RidgeCV
from himalaya.scoring import correlation_score, r2_score
from sklearn.model_selection import PredefinedSplit

from lpact.math.ridge import RidgeGrid, Selection, cross_validated_ridge, nested_ridge
from lpact.math.splits import BlockedFolds

ALPHAS = (0.1, 1.0, 10.0, 100.0, 1000.0)
EDGE = 3
SCORE = {"r2": r2_score, "pearson": correlation_score}
FORMS = ("auto", "primal", "kernel")


@pytest.fixture(autouse=True)
def _numpy_backend():
    set_backend("numpy")


def standardised_blocks(seed, p, cores=(14, 20, 9, 16), n_targets=6):
    """Features, responses and the size of every block; each block is an edge, a core and an edge."""
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((p, p)) / np.sqrt(p) + np.eye(p)
    parts = []
    for core in cores:
        for size in (EDGE, core, EDGE):
            part = rng.standard_normal((size, p)) @ mixing
            part -= part.mean(axis=0)
            parts.append(part / part.std(axis=0))
    x = np.vstack(parts) + rng.uniform(-3.0, 3.0, p)
    weights = rng.standard_normal((p, n_targets)) / np.sqrt(p)
    y = x @ weights * rng.uniform(0.1, 2.0, n_targets) + rng.standard_normal((len(x), n_targets))
    return x, y + 5.0, [core + 2 * EDGE for core in cores]


def blocks(sizes, gap=0):
    return BlockedFolds(tuple(int(s) for s in np.cumsum([0, *sizes[:-1]])), sum(sizes), gap)


def ridge_cv(x, y, cv, metric="r2", alphas=ALPHAS, local=True):
    model = RidgeCV(
        alphas=np.array(alphas),
        fit_intercept=True,
        cv=cv,
        solver_params={"score_func": SCORE[metric], "local_alpha": local, "warn": False},
    )
    return model.fit(x, y)


def assert_same_penalties(index, best_alphas):
    """himalaya keeps penalties as exp(−log …), which costs the last digit."""
    np.testing.assert_allclose(np.array(ALPHAS)[index], best_alphas, rtol=1e-12)


def mean_scores(cv_scores, best_alphas):
    """himalaya adds 1e-10 log(penalty) to a mean score, so that larger penalties win ties."""
    return cv_scores - 1e-10 * np.log(best_alphas)


def assert_same_fit(fit, model, x):
    assert_same_penalties(fit.alpha, model.best_alphas_)
    expected = mean_scores(model.cv_scores_, model.best_alphas_)
    np.testing.assert_allclose(fit.score, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fit.weights, model.coef_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(fit.intercept, model.intercept_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(fit.predict(x), model.predict(x), rtol=0, atol=1e-9)


@pytest.mark.parametrize("p", [7, 110])
def test_the_two_problems_are_the_same(p):
    """What this file rests on: every training set has standard deviation one in every feature."""
    x, _, sizes = standardised_blocks(1, p)
    for gap in (0, EDGE):
        folds = blocks(sizes, gap)
        for held in [(b,) for b in range(4)] + [(a, b) for a in range(4) for b in range(a)]:
            np.testing.assert_allclose(x[folds.train_rows(*held)].std(axis=0), 1.0, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("metric", ["r2", "pearson"])
@pytest.mark.parametrize("p", [7, 110])
def test_the_cross_validated_fit_equals_ridge_cv(p, metric, form):
    x, y, sizes = standardised_blocks(2, p)
    split = PredefinedSplit(np.repeat(np.arange(4), sizes))
    model = ridge_cv(x, y, split, metric)
    assert np.ptp(model.best_alphas_) > 1.0
    fit = cross_validated_ridge(x, y[None], blocks(sizes), RidgeGrid(ALPHAS, metric=metric), form=form)
    assert_same_fit(fit, model, x)


@pytest.mark.parametrize("metric", ["r2", "pearson"])
def test_one_penalty_for_all_targets(metric):
    x, y, sizes = standardised_blocks(3, 7)
    model = ridge_cv(x, y, PredefinedSplit(np.repeat(np.arange(4), sizes)), metric, local=False)
    assert np.ptp(model.best_alphas_) < 1e-9
    grid = RidgeGrid(ALPHAS, metric=metric, selection=Selection(alpha="shared"))
    fit = cross_validated_ridge(x, y[None], blocks(sizes), grid)
    assert_same_penalties(fit.alpha, model.best_alphas_)
    np.testing.assert_allclose(fit.weights, model.coef_, rtol=0, atol=1e-10)


@pytest.mark.parametrize("p", [7, 110])
def test_an_embargo_is_a_training_set_without_the_rows_next_to_the_block(p):
    x, y, sizes = standardised_blocks(4, p)
    folds = blocks(sizes, gap=EDGE)
    splits = []
    for block in range(4):
        start, stop = folds.bounds(block)
        rows = np.arange(len(x))
        train = rows[(rows < start - EDGE) | (rows >= stop + EDGE)]
        splits.append((train, np.arange(start, stop)))
    fit = cross_validated_ridge(x, y[None], folds, RidgeGrid(ALPHAS))
    assert_same_fit(fit, ridge_cv(x, y, splits), x)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("p", [7, 110])
def test_nested_readouts_equal_a_loop_over_ridge_cv(p, form):
    """One search a held-out block, over the other blocks."""
    x, y, sizes = standardised_blocks(5, p)
    folds = blocks(sizes)
    label = np.repeat(np.arange(4), sizes)
    got = nested_ridge(x, y[None], folds, RidgeGrid(ALPHAS), form=form, keep=("predictions",))
    for block in range(4):
        train = label != block
        model = ridge_cv(x[train], y[train], PredefinedSplit(label[train]))
        assert_same_penalties(got.alpha[block], model.best_alphas_)
        np.testing.assert_allclose(got.predicted[~train], model.predict(x[~train]), rtol=0, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("p", [8, 60])
def test_repeated_features_are_a_band_of_group_ridge(p, form):
    """A standardised feature that is there m times has the penalty a/m of a band scaled by √m.

    himalaya's group ridge with fixed scalings γ = (1/3, 2/3) and penalties a is the ridge on one copy of the first band
    and two of the second with penalties 3a; its weights are those of the copies, summed.
    """
    x, y, sizes = standardised_blocks(6, p)
    first, second = x[:, : p // 2], x[:, p // 2 :]
    model = GroupRidgeCV(
        groups=np.repeat([0, 1], [p // 2, p - p // 2]),
        fit_intercept=True,
        cv=PredefinedSplit(np.repeat(np.arange(4), sizes)),
        solver_params={
            "n_iter": np.array([[1.0, 2.0]]) / 3.0,
            "alphas": np.array(ALPHAS),
            "score_func": r2_score,
            "progress_bar": False,
            "warn": False,
        },
    ).fit(x, y)
    repeated = np.hstack([first, second, second])
    grid = RidgeGrid(tuple(3.0 * a for a in ALPHAS))
    fit = cross_validated_ridge(repeated, y[None], blocks(sizes), grid, form=form)
    assert_same_penalties(fit.alpha, model.best_alphas_)
    expected = mean_scores(model.cv_scores_[0], model.best_alphas_)
    np.testing.assert_allclose(fit.score, expected, rtol=0, atol=1e-12)
    half = p // 2
    summed = np.vstack([fit.weights[:half], fit.weights[half:p] + fit.weights[p:]])
    np.testing.assert_allclose(summed, model.coef_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(fit.predict(repeated), model.predict(x), rtol=0, atol=1e-9)


def test_one_group_is_ridge_cv():
    x, y, sizes = standardised_blocks(7, 7)
    model = GroupRidgeCV(
        groups=None,
        fit_intercept=True,
        cv=PredefinedSplit(np.repeat(np.arange(4), sizes)),
        solver_params={
            "n_iter": np.array([[1.0]]),
            "alphas": np.array(ALPHAS),
            "score_func": r2_score,
            "progress_bar": False,
        },
    ).fit(x, y)
    fit = cross_validated_ridge(x, y[None], blocks(sizes), RidgeGrid(ALPHAS))
    assert_same_penalties(fit.alpha, model.best_alphas_)
    np.testing.assert_allclose(fit.weights, model.coef_, rtol=0, atol=1e-10)
