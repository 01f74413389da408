"""BandedRidge: feature spaces of any order, against ridge on columns that were weighted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold

from lpact.estimators import BandedRidge, NestedRidge
from lpact.math.ridge import BandedGrid, banded_candidates

ALPHAS = (0.3, 10.0, 300.0)
LABELS = ["sound", "meaning", "sound", "place", "meaning", "sound"]
COLUMNS = {"sound": [0, 2, 5], "meaning": [1, 4], "place": [3]}


def recording(n: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The first response is made by sound, the second by meaning and place, the third by nothing."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6)) * [1.0, 100.0, 0.01, 3.0, 1.0, 10.0] + 5.0
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    signal = np.column_stack([Z[:, [0, 2, 5]].sum(axis=1), Z[:, [1, 4, 3]].sum(axis=1), np.zeros(n)])
    return X, signal + rng.standard_normal((n, 3))


def fit_by_hand(X: np.ndarray, y: np.ndarray, gamma: np.ndarray, alpha: float) -> tuple[np.ndarray, float]:
    """Weights and intercept in raw units: columns standardised and multiplied by √γ, then scikit-learn's ridge."""
    factor = np.zeros(X.shape[1])
    for weight, columns in zip(gamma, COLUMNS.values(), strict=True):
        factor[columns] = np.sqrt(weight) / X[:, columns].std(axis=0)
    mean = X.mean(axis=0)
    ridge = Ridge(alpha=alpha, solver="svd").fit((X - mean) * factor, y)
    weights = ridge.coef_ * factor
    return weights, float(ridge.intercept_ - mean @ weights)


def search_by_hand(X: np.ndarray, y: np.ndarray, candidates: np.ndarray) -> tuple[np.ndarray, float, float]:
    """The weights and penalty with the best mean R² over five blocks, and that score; ties to the first."""
    best: tuple[np.ndarray, float, float] = (candidates[0], ALPHAS[0], -np.inf)
    for gamma in candidates:
        for alpha in ALPHAS:
            scores = []
            for train, held in KFold(5).split(X):
                weights, intercept = fit_by_hand(X[train], y[train], gamma, alpha)
                scores.append(r2_score(y[held], X[held] @ weights + intercept))
            if np.mean(scores) > best[2] + 1e-9:
                best = gamma, alpha, float(np.mean(scores))
    return best


@pytest.mark.parametrize("form", ["primal", "kernel"])
def test_fit_is_a_search_over_weighted_columns(form: Any) -> None:
    X, y = recording()
    model = BandedRidge(LABELS, alphas=ALPHAS, draws=6, random_state=3, form=form).fit(X, y)
    candidates = banded_candidates(3, BandedGrid(ALPHAS, draws=6, seed=3)).gamma
    assert len(candidates) == len(model.search_) == 7 + 6
    for target in range(3):
        gamma, alpha, score = search_by_hand(X, y[:, target], candidates)
        np.testing.assert_array_equal(model.gamma_[target], gamma)
        assert model.alpha_[target] == alpha
        assert model.best_score_[target] == pytest.approx(score, abs=1e-9)
        weights, intercept = fit_by_hand(X, y[:, target], gamma, alpha)
        np.testing.assert_allclose(model.coef_[target], weights, rtol=1e-8, atol=1e-10)
        assert model.intercept_[target] == pytest.approx(intercept, abs=1e-8)
    assert model.search_[-1] == pytest.approx(model.best_score_.mean(), abs=1e-12)
    assert model.score(X, y) == pytest.approx(r2_score(y, model.predict(X)))


def test_the_spaces_that_make_a_response_are_found() -> None:
    X, y = recording(n=300)
    model = BandedRidge(LABELS, draws=20).fit(X, y)
    assert list(model.spaces_) == ["sound", "meaning", "place"]
    assert model.gamma_.shape == (3, 3)
    np.testing.assert_allclose(model.gamma_.sum(axis=1), 1.0)
    assert model.gamma_[0, 0] > 0.9
    assert model.gamma_[1, 0] < 0.1
    scores = model.nested_scores(X, y)
    assert scores[0] > 0.6
    assert scores[1] > 0.6
    assert scores[2] < 0.05


def test_spaces_are_given_by_label_number_slice_or_name() -> None:
    X, y = recording()
    names = ["a", "b", "c", "d", "e", "f"]
    frame = pd.DataFrame(X, columns=names)
    options: dict[str, Any] = {"alphas": ALPHAS, "draws": 3}
    by_label = BandedRidge(LABELS, **options).fit(X, y)
    by_array = BandedRidge(np.array(LABELS), **options).fit(X, y)
    by_number = BandedRidge(COLUMNS, **options).fit(X, y)
    columns = {"sound": ["a", "c", "f"], "meaning": ["b", "e"], "place": "d"}
    by_name = BandedRidge(columns, **options).fit(frame, y)
    polars_frame = pl.DataFrame(X, schema=names)
    for model in (by_array, by_number, by_name):
        np.testing.assert_array_equal(model.coef_, by_label.coef_)
        assert {k: v.tolist() for k, v in model.spaces_.items()} == COLUMNS
    in_order = X[:, [0, 2, 5, 1, 4, 3]]
    slices = {"sound": slice(0, 3), "meaning": slice(3, 5), "place": slice(-1, None)}
    by_slice = BandedRidge(slices, **options).fit(in_order, y)
    np.testing.assert_allclose(by_slice.predict(in_order), by_label.predict(X), atol=1e-9)
    scores = BandedRidge(columns, **options).nested_scores(polars_frame, y)
    np.testing.assert_array_equal(scores, BandedRidge(LABELS, **options).nested_scores(X, y))


def test_one_space_is_ridge() -> None:
    X, y = recording()
    banded = BandedRidge(alphas=ALPHAS, gap=2).fit(X, y)
    plain = NestedRidge(ALPHAS, gap=2).fit(X, y)
    np.testing.assert_array_equal(banded.alpha_, plain.alpha_)
    np.testing.assert_allclose(banded.coef_, plain.coef_, rtol=1e-9, atol=1e-12)
    assert banded.gamma_.tolist() == [[1.0]] * 3
    np.testing.assert_allclose(
        BandedRidge(alphas=ALPHAS).nested_predictions(X, y),
        NestedRidge(ALPHAS).nested_predictions(X, y),
        atol=1e-9,
    )


def test_nested_predictions_come_from_the_other_blocks() -> None:
    X, y = recording()
    model = BandedRidge(LABELS, alphas=ALPHAS, draws=4, cv=4)
    readout = model.nested_readout(X, y, keep=("predictions", "weights"))
    np.testing.assert_array_equal(model.nested_predictions(X, y), readout.predicted)
    np.testing.assert_array_equal(model.nested_scores(X, y), readout.scores("r2"))
    side_by_side = X[:, np.concatenate(list(COLUMNS.values()))]
    for block, rows in enumerate(np.array_split(np.arange(90), 4)):
        train = np.setdiff1d(np.arange(90), rows)
        rebuilt = side_by_side[rows] @ readout.weights[block] + readout.intercept[block]
        np.testing.assert_allclose(readout.predicted[rows], rebuilt, atol=1e-9)
        for target in range(3):
            gamma = readout.gamma[block, :, target]
            alpha = ALPHAS[readout.alpha[block, target]]
            weights, intercept = fit_by_hand(X[train], y[train, target], gamma, alpha)
            by_hand = X[rows] @ weights + intercept
            np.testing.assert_allclose(readout.predicted[rows, target], by_hand, atol=1e-8)


def test_one_response_has_no_target_axis() -> None:
    X, y = recording()
    options: dict[str, Any] = {"alphas": ALPHAS, "draws": 0}
    one = BandedRidge(LABELS, **options).fit(X, y[:, 0])
    many = BandedRidge(LABELS, **options).fit(X, y)
    assert isinstance(one.alpha_, float)
    assert one.gamma_.shape == (3,)
    np.testing.assert_array_equal(one.gamma_, many.gamma_[0])
    np.testing.assert_allclose(one.coef_, many.coef_[0], rtol=1e-9, atol=1e-12)


def test_stories_lags_and_unpenalised_columns() -> None:
    X, y = recording()
    drift = np.linspace(-30.0, 30.0, 90)[:, None]
    responses = np.stack([np.random.default_rng(1).standard_normal(y.shape), y + drift])
    stories = np.repeat([3, 1, 2], [40, 25, 25])
    model = BandedRidge(LABELS, alphas=ALPHAS, draws=3)
    model.fit_lags(X, responses, groups=stories, unpenalised=drift)
    assert model.lag_[:2].tolist() == [1, 1]
    np.testing.assert_allclose(model.unpenalised_coef_[:2, 0], 1.0, atol=0.02)
    predicted = model.predict(X, unpenalised=drift)
    assert r2_score((y + drift)[:, :2], predicted[:, :2]) > 0.99


def test_draws_depend_on_the_seed_alone() -> None:
    X, y = recording()

    def gamma(seed: Any) -> np.ndarray:
        options: dict[str, Any] = {"alphas": ALPHAS, "draws": 8, "subsets": False}
        found: np.ndarray = BandedRidge(LABELS, random_state=seed, **options).fit(X, y).gamma_
        return found

    np.testing.assert_array_equal(gamma(5), gamma(np.int64(5)))
    assert not np.array_equal(gamma(5), gamma(6))
    np.testing.assert_array_equal(
        gamma(np.random.RandomState(1)),
        gamma(np.random.RandomState(1)),
    )


def test_the_search_stops_when_nothing_is_gained() -> None:
    X, y = recording()
    model = BandedRidge(LABELS, alphas=ALPHAS, draws=200, patience=3, min_gain=1.0).fit(X, y)
    assert len(model.search_) == 7 + 3
    assert (np.diff(model.search_) >= 0.0).all()


@pytest.mark.parametrize(
    ("spaces", "told"),
    [
        (["a", "b"], "space of each of 6 features, got 2 labels"),
        ({"a": [0, 1, 2]}, "each of 6 features once"),
        ({"a": [0, 1, 2, 3], "b": [3, 4, 5]}, "each of 6 features once"),
        ({"a": slice(0, 6), "b": [6]}, "each of 6 features once"),
        ({"a": ["rate", "pitch"]}, "'a' names an unknown column: 'rate'"),
        ({}, "each of 6 features once"),
        ({"a": slice(0, 6), "b": []}, "at least one column"),
    ],
)
def test_wrong_spaces_are_named(spaces: Any, told: str) -> None:
    X, y = recording()
    with pytest.raises(ValueError, match=told):
        BandedRidge(spaces).fit(X, y)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"draws": -1}, "draws must be at least 0"),
        ({"patience": 0}, "patience at least 1"),
        ({"concentration": (0.0,)}, "concentration must be positive"),
        ({"alphas": (0.0,)}, "alphas must be positive"),
        ({"random_state": "seed"}, "cannot be used to seed"),
    ],
)
def test_wrong_settings_are_named(options: dict[str, Any], told: str) -> None:
    X, y = recording()
    with pytest.raises(ValueError, match=told):
        BandedRidge(LABELS, **options).fit(X, y)
