"""Banded ridge against scikit-learn, one training set, weight and penalty at a time, and against himalaya.

The oracle scales standardised columns by √γ and gives them to scikit-learn's Ridge. Its search is written from the
definition: all subsets, then draws until the mean best score has not risen for a while.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ridge_oracle import (
    METRICS,
    assert_close_in_units,
    assert_same_scores,
    finite_mean,
    held_out_score,
    remembered,
    response_units,
    training_rows,
    validation_rows,
    validation_score,
    varying,
)
from sklearn.linear_model import Ridge
from sklearn.model_selection import PredefinedSplit
from sklearn.preprocessing import StandardScaler

from lpact.math.ridge import (
    BandedGrid,
    Compute,
    RidgeGrid,
    banded_candidates,
    cross_validated_banded_ridge,
    cross_validated_ridge,
    nested_banded_ridge,
    nested_ridge,
)
from lpact.math.ridge._axes import SharedDesign
from lpact.math.ridge.banded import SpacesEngine
from lpact.math.ridge.compute import Backend
from lpact.math.splits import BlockedFolds, contiguous_folds

TIE = 1e-9
KEEP = ("predictions", "weights")
ALPHAS = (0.5, 8.0, 100.0)


# --- data ---------------------------------------------------------------------------------------------------------


def simulate(seed, n, sizes, n_targets=3, n_lags=1, strength=(1.0, 0.3, 0.0), noise=1.0):
    """Feature spaces of mixed scale and offset, of decreasing relevance to the last lag of the responses."""
    rng = np.random.default_rng(seed)
    spaces = [rng.standard_normal((n, p)) * rng.uniform(0.1, 10, p) + rng.uniform(-5, 5, p) for p in sizes]
    signal = np.zeros((n, n_targets))
    for space, size, own in zip(spaces, sizes, itertools.cycle(strength), strict=False):
        z = (space - space.mean(0)) / space.std(0)
        signal += own * z @ rng.standard_normal((size, n_targets)) / np.sqrt(size)
    responses = np.stack([signal * (lag == n_lags - 1) for lag in range(n_lags)])
    return spaces, responses + noise * rng.standard_normal(responses.shape)


def standard_in_blocks(spaces, folds):
    """Columns with mean 0 and standard deviation 1 in every block, and so in every union of blocks."""
    out = [space.copy() for space in spaces]
    for space in out:
        for block in range(folds.n_blocks):
            rows = folds.rows(block)
            space[rows] = (space[rows] - space[rows].mean(0)) / space[rows].std(0)
    return out


# --- oracle -------------------------------------------------------------------------------------------------------


def fit(x, y, root, alpha, nuisance):
    """Ridge of y [n, t] on standardised columns times ``root``: weights [p, t], [m, t] and intercept [t], raw units."""
    kept = varying(x) & (root > 0.0)
    weights = np.zeros((x.shape[1], y.shape[1]))
    nuisance_weights = np.zeros((nuisance.shape[1], y.shape[1]))
    if not kept.any() and nuisance.shape[1] == 0:
        return weights, nuisance_weights, y.mean(0)
    scale = StandardScaler().fit(x[:, kept])
    z = scale.transform(x[:, kept]) * root[kept]
    n = nuisance - nuisance.mean(0)
    left_z, left_y = z, y - y.mean(0)
    if nuisance.shape[1]:
        on_z, on_y = np.linalg.lstsq(n, z)[0], np.linalg.lstsq(n, left_y)[0]
        left_z, left_y = z - n @ on_z, left_y - n @ on_y
    ridge = Ridge(alpha=alpha, solver="svd").fit(left_z, left_y)
    weights[kept] = (ridge.coef_ * root[kept] / scale.scale_).T
    if nuisance.shape[1]:
        nuisance_weights = on_y - on_z @ ridge.coef_.T
    return (
        weights,
        nuisance_weights,
        y.mean(0) - x.mean(0) @ weights - nuisance.mean(0) @ nuisance_weights,
    )


@dataclass
class Found:
    """Best settings of every target and how the search went."""

    best: np.ndarray
    candidate: np.ndarray
    lag: np.ndarray
    alpha: np.ndarray
    tried: int
    means: list[float]


class Oracle:
    def __init__(self, spaces, responses, grid, gamma, n_first, nuisance=None):
        self.x = np.hstack(spaces)
        self.root = np.sqrt(np.hstack([np.repeat(gamma[:, [g]], s.shape[1], 1) for g, s in enumerate(spaces)]))
        self.responses, self.grid, self.gamma, self.n_first = responses, grid, gamma, n_first
        self.nuisance = np.zeros((len(self.x), 0)) if nuisance is None else nuisance
        self.fits = remembered(self.x, responses, self.nuisance)

    def fit(self, train, lag, candidate, alpha):
        root, penalty = self.root[candidate], self.grid.alphas[alpha]
        key = (train.tobytes(), lag, root.tobytes(), penalty)
        if key not in self.fits:
            self.fits[key] = fit(self.x[train], self.responses[lag, train], root, penalty, self.nuisance[train])
        return self.fits[key]

    def predict(self, fitted, rows):
        weights, nuisance_weights, intercept = fitted
        return self.x[rows] @ weights + self.nuisance[rows] @ nuisance_weights + intercept

    def candidate_scores(self, candidate, splits):
        """Mean validation score [L, A, t]."""
        n_lags, _, n_targets = self.responses.shape
        out = np.empty((n_lags, len(self.grid.alphas), n_targets))
        for lag, alpha in itertools.product(range(n_lags), range(len(self.grid.alphas))):
            guesses = [
                (rows, self.predict(self.fit(train, lag, candidate, alpha), rows))
                for train, rows in splits
                if len(rows)
            ]
            for t in range(n_targets):
                out[lag, alpha, t] = finite_mean(
                    validation_score(self.responses[lag, rows, t], guess[:, t], self.grid.metric)
                    for rows, guess in guesses
                )
        return out

    def search(self, splits):
        n_targets = self.responses.shape[2]
        best = [-np.inf] * n_targets
        chosen = [(0, 0, 0)] * n_targets
        means, since_gain, level = [], 0, -np.inf
        for c in range(len(self.gamma)):
            scores = self.candidate_scores(c, splits)
            for t in range(n_targets):
                own = scores[:, :, t]
                if np.isnan(own).all():
                    continue
                near = np.argwhere(own >= np.nanmax(own) - TIE)
                lag, alpha = near[0]
                if own[lag, alpha] > best[t] + TIE:
                    best[t], chosen[t] = own[lag, alpha], (c, int(lag), int(alpha))
            means.append(finite_mean(best))
            if c == self.n_first - 1:
                level = means[-1]
            if c >= self.n_first:
                since_gain += 1
                if means[-1] > level + self.grid.min_gain:
                    level, since_gain = means[-1], 0
                if since_gain == self.grid.patience:
                    break
        candidate, lag, alpha = np.array(chosen).T
        return Found(np.array(best), candidate, lag, alpha, len(means), means)


def assert_nested_equals_oracle(got, spaces, responses, folds, grid, gamma, n_first, nuisance=None, tolerance=1e-8):
    oracle = Oracle(spaces, responses, grid, gamma, n_first, nuisance)
    _, n, n_targets = responses.shape
    observed, predicted, baseline = (np.empty((n, n_targets)) for _ in range(3))
    unit = response_units(responses)
    for outer in range(folds.n_blocks):
        splits = [
            (training_rows(folds, outer, block), validation_rows(folds, block, outer))
            for block in range(folds.n_blocks)
            if block != outer
        ]
        found = oracle.search(splits)
        assert got.tried[outer] == found.tried
        assert_same_scores(got.search[outer, : found.tried], np.array(found.means), tolerance)
        assert np.isnan(got.search[outer, found.tried :]).all()
        for name in ("candidate", "lag", "alpha"):
            np.testing.assert_array_equal(getattr(got, name)[outer], getattr(found, name), err_msg=name)
        np.testing.assert_array_equal(got.gamma[outer].T, gamma[found.candidate])
        train, rows = training_rows(folds, outer), np.arange(*folds.bounds(outer))
        for t in range(n_targets):
            fitted = oracle.fit(train, found.lag[t], found.candidate[t], found.alpha[t])
            observed[rows, t] = responses[found.lag[t], rows, t]
            baseline[rows, t] = responses[found.lag[t], train, t].mean()
            predicted[rows, t] = oracle.predict(fitted, rows)[:, t]
            # In units of what one column can move.
            spread = oracle.x[train].std(0)
            kept = np.flatnonzero(spread > 0.0)
            assert_close_in_units(
                got.weights[outer, kept, t] * spread[kept],
                fitted[0][kept, t] * spread[kept],
                unit[t],
                tolerance,
            )
            np.testing.assert_allclose(
                got.nuisance_weights[outer, :, t], fitted[1][:, t], rtol=tolerance, atol=tolerance
            )
    np.testing.assert_array_equal(got.observed, observed)
    assert_close_in_units(got.baseline, baseline, unit, tolerance)
    assert_close_in_units(got.predicted, predicted, unit, tolerance)
    stacked = np.hstack(spaces)
    for outer in range(folds.n_blocks):
        rows = folds.rows(outer)
        raw = stacked[rows] @ got.weights[outer] + got.intercept[outer]
        if nuisance is not None:
            raw = raw + nuisance[rows] @ got.nuisance_weights[outer]
        assert_close_in_units(raw, got.predicted[rows], unit, tolerance)
    for metric in METRICS:
        expected = [
            held_out_score(observed[:, t], predicted[:, t] - baseline[:, t], baseline[:, t], metric)
            for t in range(n_targets)
        ]
        assert_same_scores(got.scores(metric), np.array(expected), tolerance)
        for outer in range(folds.n_blocks):
            rows = folds.rows(outer)
            expected = [
                held_out_score(
                    observed[rows, t],
                    predicted[rows, t] - baseline[rows, t],
                    baseline[rows, t],
                    metric,
                )
                for t in range(n_targets)
            ]
            assert_same_scores(got.fold_scores(metric)[outer], np.array(expected), tolerance)


# --- against the oracle -------------------------------------------------------------------------------------------

SIZES = {"p < n": (3, 6, 4), "n < p": (20, 30, 5)}


@pytest.mark.parametrize("form", ["primal", "kernel"])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("metric", ["r2", "pearson", "spearman"])
def test_nested_equals_the_oracle(metric, sizes, form):
    n = 44
    spaces, responses = simulate(1, n, sizes, n_targets=3)
    folds = contiguous_folds(n, 4)
    grid = BandedGrid(ALPHAS, draws=14, patience=4, min_gain=1e-3, metric=metric, seed=3)
    tried = banded_candidates(3, grid)
    got = nested_banded_ridge(spaces, responses, folds, grid, keep=KEEP, form=form)
    assert_nested_equals_oracle(got, spaces, responses, folds, grid, tried.gamma, tried.n_first)
    assert got.n_first == tried.n_first == 7
    assert got.tried.min() < got.tried.max()  # the searches end at different draws


@pytest.mark.parametrize("form", ["primal", "kernel"])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_nested_with_lags_a_gap_uneven_blocks_and_unpenalised_columns(sizes, form):
    n = 50
    spaces, responses = simulate(2, n, sizes, n_targets=2, n_lags=2)
    nuisance = np.random.default_rng(9).standard_normal((n, 2)) * [1.0, 30.0] + [2.0, -50.0]
    responses = responses + nuisance @ np.array([[1.0, -2.0], [0.05, 0.1]])
    folds = BlockedFolds((0, 9, 22, 37), n, 2)
    grid = BandedGrid(ALPHAS, draws=6, patience=3, seed=5)
    tried = banded_candidates(3, grid)
    got = nested_banded_ridge(spaces, responses, folds, grid, unpenalised=nuisance, keep=KEEP, form=form)
    assert_nested_equals_oracle(got, spaces, responses, folds, grid, tried.gamma, tried.n_first, nuisance)


@pytest.mark.parametrize("form", ["primal", "kernel"])
def test_columns_that_die_in_training_and_duplicated_columns(form):
    n = 40
    folds = contiguous_folds(n, 4)
    spaces, responses = simulate(3, n, (4, 5), n_targets=3)
    spaces[0][:, 0] = 0.7  # constant
    spaces[0][:, 1] = np.where(np.arange(n) < 10, spaces[0][:, 1], 3.0)  # alive in the first block only
    spaces[1][:, 2] = spaces[1][:, 3]
    spaces[1][:, 4] *= 1e-9
    responses[0, 10:20, 1] = 4.0  # constant on one block
    responses[0, :, 2] = -1.0
    grid = BandedGrid(ALPHAS, draws=6, patience=6, seed=1)
    tried = banded_candidates(2, grid)
    got = nested_banded_ridge(spaces, responses, folds, grid, keep=KEEP, form=form)
    assert_nested_equals_oracle(
        replace(
            got,
            **{
                name: getattr(got, name)[..., :2]
                for name in (
                    "lag",
                    "alpha",
                    "candidate",
                    "gamma",
                    "observed",
                    "predicted",
                    "baseline",
                    "weights",
                    "nuisance_weights",
                    "intercept",
                )
            },
            pooled={name: values[:2] for name, values in got.pooled.items()},
            by_fold={name: values[:, :2] for name, values in got.by_fold.items()},
        ),
        spaces,
        responses[:, :, :2],
        folds,
        grid,
        tried.gamma,
        tried.n_first,
    )
    # The constant target is predicted by its constant and takes the first settings.
    np.testing.assert_array_equal(got.predicted[:, 2], -1.0)
    np.testing.assert_array_equal(got.candidate[:, 2], 0)
    assert all(np.isnan(got.scores(metric)[2]) for metric in METRICS)


@pytest.mark.parametrize("form", ["primal", "kernel"])
def test_a_space_that_never_varies_predicts_the_training_mean(form):
    spaces, responses = simulate(9, 40, (3, 4), strength=(1.0, 0.0), noise=0.2)
    spaces[1][:] = np.arange(4.0)
    folds = contiguous_folds(40, 4)
    grid = BandedGrid(ALPHAS)
    both = [[0.0, 1.0], [0.5, 0.5]]
    got = nested_banded_ridge(spaces, responses, folds, grid, candidates=both, keep=KEEP, form=form)
    np.testing.assert_array_equal(got.candidate, 1)
    np.testing.assert_array_equal(got.weights[:, 3:], 0.0)
    none = nested_banded_ridge(spaces, responses, folds, grid, candidates=both[:1], keep=KEEP, form=form)
    np.testing.assert_array_equal(none.predicted, none.baseline)
    np.testing.assert_allclose(none.scores("r2"), 0.0, atol=1e-12)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 2**20),
    sizes=st.lists(st.integers(1, 14), min_size=1, max_size=3),
    blocks=st.lists(st.integers(4, 12), min_size=3, max_size=4),
    gap=st.integers(0, 1),
    form=st.sampled_from(["auto", "primal", "kernel"]),
    metric=st.sampled_from(["r2", "pearson"]),
)
def test_nested_equals_the_oracle_over_shapes(seed, sizes, blocks, gap, form, metric):
    folds = BlockedFolds(tuple(int(s) for s in np.cumsum([0, *blocks[:-1]])), sum(blocks), gap)
    spaces, responses = simulate(seed, folds.n_rows, tuple(sizes), n_targets=2)
    grid = BandedGrid((1.0, 20.0), draws=5, patience=2, seed=seed, metric=metric)
    tried = banded_candidates(len(sizes), grid)
    got = nested_banded_ridge(spaces, responses, folds, grid, keep=KEEP, form=form)
    assert_nested_equals_oracle(got, spaces, responses, folds, grid, tried.gamma, tried.n_first)


@pytest.mark.parametrize("form", ["primal", "kernel"])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("with_nuisance", [False, True])
def test_cross_validated_equals_the_oracle(with_nuisance, sizes, form):
    n = 42
    spaces, responses = simulate(4, n, sizes, n_targets=4, n_lags=2)
    nuisance = np.random.default_rng(2).standard_normal((n, 1)) if with_nuisance else None
    folds = contiguous_folds(n, 4, gap=1)
    grid = BandedGrid(ALPHAS, draws=12, patience=5, seed=2)
    tried = banded_candidates(3, grid)
    got = cross_validated_banded_ridge(spaces, responses, folds, grid, unpenalised=nuisance, form=form)
    oracle = Oracle(spaces, responses, grid, tried.gamma, tried.n_first, nuisance)
    splits = [(training_rows(folds, block), np.arange(*folds.bounds(block))) for block in range(folds.n_blocks)]
    found = oracle.search(splits)
    for name in ("candidate", "lag", "alpha"):
        np.testing.assert_array_equal(getattr(got, name), getattr(found, name), err_msg=name)
    np.testing.assert_array_equal(got.gamma, tried.gamma[found.candidate].T)
    np.testing.assert_array_equal(got.candidates, tried.gamma[: found.tried])
    assert_same_scores(got.score, found.best)
    assert_same_scores(got.search, np.array(found.means))
    rows = np.arange(n)
    expected = np.empty((n, 4))
    for t in range(4):
        fitted = oracle.fit(rows, found.lag[t], found.candidate[t], found.alpha[t])
        expected[:, t] = oracle.predict(fitted, rows)[:, t]
    predicted = got.predict(np.hstack(spaces), nuisance)
    assert_close_in_units(predicted, expected, response_units(responses))
    assert got.spaces == tuple(slice(stop - size, stop) for stop, size in zip(np.cumsum(sizes), sizes, strict=True))


# --- against ridge ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_equal_weights_of_one_are_plain_ridge(sizes):
    n = 48
    spaces, responses = simulate(5, n, sizes, n_lags=2)
    folds = contiguous_folds(n, 4, gap=1)
    got = nested_banded_ridge(spaces, responses, folds, BandedGrid(ALPHAS), candidates=np.ones((1, 3)), keep=KEEP)
    expected = nested_ridge(np.hstack(spaces), responses, folds, RidgeGrid(ALPHAS), keep=KEEP)
    np.testing.assert_array_equal(got.alpha, expected.alpha)
    np.testing.assert_array_equal(got.lag, expected.lag)
    np.testing.assert_array_equal(got.components, 0)
    np.testing.assert_allclose(got.predicted, expected.predicted, atol=1e-10)
    np.testing.assert_allclose(got.weights, expected.weights, atol=1e-10)
    for metric in METRICS:
        np.testing.assert_allclose(got.scores(metric), expected.scores(metric), atol=1e-10)
    fit_ = cross_validated_banded_ridge(spaces, responses, folds, BandedGrid(ALPHAS), candidates=np.ones((1, 3)))
    plain = cross_validated_ridge(np.hstack(spaces), responses, folds, RidgeGrid(ALPHAS))
    np.testing.assert_array_equal(fit_.alpha, plain.alpha)
    np.testing.assert_allclose(fit_.weights, plain.weights, atol=1e-10)
    np.testing.assert_allclose(fit_.intercept, plain.intercept, atol=1e-10)


@pytest.mark.parametrize("form", ["primal", "kernel"])
def test_weights_and_penalties_scale_together(form):
    """γ and c γ with penalties a and c a are the same ridge, however small c is."""
    spaces, responses = simulate(6, 40, (4, 30))
    folds = contiguous_folds(40, 4)
    gamma = np.array([[0.7, 0.3], [0.1, 0.9]])
    got = [
        nested_banded_ridge(
            spaces,
            responses,
            folds,
            BandedGrid(tuple(c * a for a in ALPHAS)),
            candidates=c * gamma,
            keep=KEEP,
            form=form,
        )
        for c in (1.0, 1e-12, 1e12)
    ]
    for other in got[1:]:
        np.testing.assert_array_equal(other.candidate, got[0].candidate)
        np.testing.assert_array_equal(other.alpha, got[0].alpha)
        np.testing.assert_allclose(other.predicted, got[0].predicted, atol=1e-9)


def test_one_feature_space_is_plain_ridge_without_a_search():
    spaces, responses = simulate(7, 40, (6,))
    folds = contiguous_folds(40, 4)
    got = nested_banded_ridge(spaces, responses, folds, BandedGrid(ALPHAS))
    expected = nested_ridge(spaces[0], responses, folds, RidgeGrid(ALPHAS))
    np.testing.assert_array_equal(got.tried, 1)
    np.testing.assert_array_equal(got.gamma, 1.0)
    np.testing.assert_allclose(got.scores("r2"), expected.scores("r2"), atol=1e-10)


# --- against himalaya ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(6, 10, 4), (30, 50, 6)])
def test_himalaya_finds_the_same_from_the_same_candidates(sizes):
    from himalaya.ridge import GroupRidgeCV
    from himalaya.scoring import r2_score

    n, n_blocks = 60, 4
    folds = contiguous_folds(n, n_blocks)
    spaces, responses = simulate(8, n, sizes, n_targets=8)
    spaces = standard_in_blocks(spaces, folds)
    alphas = np.logspace(-1, 3, 6)
    gamma = np.random.default_rng(0).dirichlet(np.ones(3), size=25)  # himalaya cannot take zeros
    got = cross_validated_banded_ridge(spaces, responses, folds, BandedGrid(tuple(alphas)), candidates=gamma)
    labels = np.repeat(np.arange(3), sizes)
    peer = GroupRidgeCV(
        groups=labels,
        solver="random_search",
        fit_intercept=True,
        cv=PredefinedSplit(np.repeat(np.arange(n_blocks), n // n_blocks)),
        solver_params={
            "n_iter": gamma,
            "alphas": alphas,
            "score_func": r2_score,
            "progress_bar": False,
            "warn": False,
        },
    ).fit(np.hstack(spaces), responses[0])
    np.testing.assert_allclose(got.score, peer.cv_scores_.max(axis=0), atol=1e-8)
    np.testing.assert_allclose(np.log(got.gamma / alphas[got.alpha]), peer.deltas_, atol=1e-8)
    np.testing.assert_allclose(got.weights, peer.coef_, atol=1e-8)
    np.testing.assert_allclose(got.intercept, peer.intercept_, atol=1e-8)
    assert len(np.unique(got.candidate)) > 1


# --- candidates ---------------------------------------------------------------------------------------------------


def test_subsets_come_first_smallest_first_then_draws():
    tried = banded_candidates(3, BandedGrid(ALPHAS, draws=40))
    assert tried.n_first == 7
    assert len(tried.gamma) == 47
    np.testing.assert_array_equal(
        tried.gamma[:7],
        [
            [1, 0, 0],
            [0, 1, 0],
            [0, 0, 1],
            [0.5, 0.5, 0],
            [0.5, 0, 0.5],
            [0, 0.5, 0.5],
            [1 / 3, 1 / 3, 1 / 3],
        ],
    )
    np.testing.assert_allclose(tried.gamma.sum(axis=1), 1.0, atol=1e-12)


def test_draws_depend_on_the_seed_alone():
    def draws(**more):
        tried = banded_candidates(4, BandedGrid(ALPHAS, **more))
        return tried.gamma[tried.n_first :]

    np.testing.assert_array_equal(draws(draws=30), draws(draws=30))
    np.testing.assert_array_equal(draws(draws=30)[:10], draws(draws=10, metric="pearson"))
    np.testing.assert_array_equal(draws(draws=30), draws(draws=30, subsets=False))
    apart = np.abs(draws(draws=30) - draws(draws=30, seed=1)).max(axis=1)
    assert apart.min() > 1e-3


def test_draws_follow_their_dirichlet_distributions():
    """Variance of a Dirichlet weight with concentration c and m spaces is (m − 1) / (m² (m c + 1))."""
    m = 4
    grid = BandedGrid(ALPHAS, draws=6000, concentration=(0.1, 1.0, 50.0), subsets=False)
    tried = banded_candidates(m, grid)
    draws = tried.gamma[tried.n_first :]
    for i, c in enumerate(grid.concentration):
        own = draws[i::3]
        np.testing.assert_allclose(own.mean(axis=0), 1.0 / m, atol=0.03)
        np.testing.assert_allclose(own.var(axis=0), (m - 1) / (m**2 * (m * c + 1)), rtol=0.15)


def test_without_subsets_equal_weights_come_first():
    tried = banded_candidates(12, BandedGrid(ALPHAS, draws=3, subsets=False))
    assert tried.n_first == 1
    np.testing.assert_allclose(tried.gamma[0], 1.0 / 12)
    assert len(tried.gamma) == 4


def test_the_same_space_twice_is_dropped_the_second_time():
    """{0} and {1} are the same; the tie goes to the first."""
    spaces, responses = simulate(10, 60, (4,), strength=(1.0,), noise=0.1)
    folds = contiguous_folds(60, 4)
    got = nested_banded_ridge(
        [spaces[0], spaces[0].copy()],
        responses,
        folds,
        BandedGrid(ALPHAS),
        candidates=[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]],
    )
    np.testing.assert_array_equal(got.candidate, 0)
    np.testing.assert_array_equal(got.gamma[:, 1], 0.0)


# --- stopping -----------------------------------------------------------------------------------------------------


def test_a_search_that_cannot_gain_stops_after_its_patience():
    spaces, responses = simulate(11, 40, (3, 4))
    folds = contiguous_folds(40, 4)
    grid = BandedGrid(ALPHAS, draws=30, patience=6, min_gain=10.0)
    got = nested_banded_ridge(spaces, responses, folds, grid)
    np.testing.assert_array_equal(got.tried, 3 + 6)
    assert got.candidates.shape == (9, 2)
    assert len(cross_validated_banded_ridge(spaces, responses, folds, grid).candidates) == 9


def test_a_search_with_patience_tries_every_draw():
    spaces, responses = simulate(11, 40, (3, 4))
    folds = contiguous_folds(40, 4)
    grid = BandedGrid(ALPHAS, draws=9, patience=9, min_gain=10.0)
    got = nested_banded_ridge(spaces, responses, folds, grid)
    np.testing.assert_array_equal(got.tried, 3 + 9)
    none = nested_banded_ridge(spaces, responses, folds, replace(grid, draws=0))
    np.testing.assert_array_equal(none.tried, 3)


def test_stops_are_where_the_curve_says():
    """Many small gains add up: what counts is the rise since the last gain, not that of one draw."""
    spaces, responses = simulate(12, 60, (5, 6, 7, 4), n_targets=12, strength=(1.0, 0.5, 0.2))
    folds = contiguous_folds(60, 4)
    grid = BandedGrid(ALPHAS, draws=120, patience=8, min_gain=2e-3)
    got = nested_banded_ridge(spaces, responses, folds, grid)
    for outer in range(4):
        curve = got.search[outer, : got.tried[outer]]
        assert (np.diff(curve) >= 0.0).all()
        gains, level = [got.n_first - 1], curve[got.n_first - 1]
        for c in range(got.n_first, len(curve)):
            if curve[c] > level + grid.min_gain:
                gains.append(c)
                level = curve[c]
        assert max(np.diff(gains), default=0) <= grid.patience
        assert len(curve) - 1 - gains[-1] == grid.patience or len(curve) == 15 + 120
    assert len(set(got.tried)) > 1
    # A longer patience only adds to the search.
    longer = nested_banded_ridge(spaces, responses, folds, replace(grid, patience=20))
    assert (longer.tried >= got.tried).all()
    for outer in range(4):
        n = got.tried[outer]
        np.testing.assert_allclose(longer.search[outer, :n], got.search[outer, :n], atol=1e-12)


@pytest.mark.parametrize("form", ["primal", "kernel"])
@pytest.mark.parametrize("gap", [0, 2])
def test_nothing_held_out_enters_a_search_or_a_fit(gap, form):
    spaces, responses = simulate(13, 60, (4, 8, 3), n_targets=5, n_lags=2)
    nuisance = np.random.default_rng(1).standard_normal((60, 1))
    folds = contiguous_folds(60, 5, gap=gap)
    grid = BandedGrid(ALPHAS, draws=25, patience=4, min_gain=1e-3)

    def run(spaces, responses, nuisance):
        return nested_banded_ridge(spaces, responses, folds, grid, unpenalised=nuisance, keep=KEEP, form=form)

    before = run(spaces, responses, nuisance)
    rng = np.random.default_rng(0)
    for outer in (0, 2):
        start, stop = folds.bounds(outer)
        rows = slice(max(0, start - gap), stop + gap)  # neither the block nor its embargo
        spoilt = [space.copy() for space in spaces]
        for space in spoilt:
            space[rows] = 1e3 * rng.standard_normal(space[rows].shape)
        changed, other = responses.copy(), nuisance.copy()
        changed[:, rows] = 1e3 * rng.standard_normal(changed[:, rows].shape)
        other[rows] = 1e3 * rng.standard_normal(other[rows].shape)
        after = run(spoilt, changed, other)
        for name in ("lag", "alpha", "candidate", "tried"):
            np.testing.assert_array_equal(getattr(after, name)[outer], getattr(before, name)[outer])
        n = int(before.tried[outer])
        np.testing.assert_allclose(after.search[outer, :n], before.search[outer, :n], atol=1e-9)
        assert np.isnan(after.search[outer, n:]).all()
        for name in ("weights", "nuisance_weights", "intercept"):
            np.testing.assert_allclose(getattr(after, name)[outer], getattr(before, name)[outer], rtol=1e-7, atol=1e-8)
        others = np.delete(np.arange(5), outer)
        assert not np.allclose(after.intercept[others], before.intercept[others], atol=1e-3)


# --- planted truth ------------------------------------------------------------------------------------------------


def test_a_space_of_noise_is_dropped_and_the_space_of_the_signal_wins():
    rng = np.random.default_rng(14)
    n, n_targets = 160, 6
    signal, noise = rng.standard_normal((n, 5)), rng.standard_normal((n, 100))
    responses = signal @ rng.standard_normal((5, n_targets)) + rng.standard_normal((n, n_targets))
    folds = contiguous_folds(n, 4)
    alphas = tuple(np.logspace(-1, 5, 7))
    got = nested_banded_ridge([noise, signal], responses[None], folds, BandedGrid(alphas, draws=20))
    assert (got.gamma[:, 1] > 0.95).all()
    assert (got.gamma[:, 0] == 0.0).mean() > 0.5
    assert got.gamma[:, 0].mean() < 0.01
    plain = nested_ridge(np.hstack([noise, signal]), responses[None], folds, RidgeGrid(alphas))
    alone = nested_ridge(signal, responses[None], folds, RidgeGrid(alphas))
    assert (got.scores("r2") > plain.scores("r2") + 0.05).all()
    np.testing.assert_allclose(got.scores("r2"), alone.scores("r2"), atol=0.03)


def test_each_target_finds_its_own_space():
    rng = np.random.default_rng(15)
    n = 400
    spaces = [rng.standard_normal((n, 20)) for _ in range(3)]
    by_space = [space @ rng.standard_normal((20, 4)) / np.sqrt(20) for space in spaces]
    responses = np.hstack(by_space) + 0.5 * rng.standard_normal((n, 12))
    folds = contiguous_folds(n, 4)
    alphas = tuple(np.logspace(-1, 4, 11))
    got = cross_validated_banded_ridge(spaces, responses[None], folds, BandedGrid(alphas, draws=30))
    own = got.gamma[np.repeat([0, 1, 2], 4), np.arange(12)]
    assert own.min() >= 0.5
    assert own.mean() > 0.9
    power = np.array([(got.weights[s] ** 2).sum(axis=0) for s in got.spaces])
    np.testing.assert_array_equal(power.argmax(axis=0), np.repeat([0, 1, 2], 4))


def test_draws_beat_dropping_where_spaces_matter_unequally():
    """A small space with strong weights beside a large one with weak weights: neither can be left out."""
    rng = np.random.default_rng(16)
    n, n_targets = 200, 12
    small, large = rng.standard_normal((n, 4)), rng.standard_normal((n, 100))
    responses = small @ rng.standard_normal((4, n_targets)) * 1.5
    responses += large @ rng.standard_normal((100, n_targets)) * 0.14
    responses += rng.standard_normal(responses.shape)
    folds = contiguous_folds(n, 4)
    alphas = tuple(np.logspace(-2, 4, 9))
    spaces = [small, large]
    banded = nested_banded_ridge(spaces, responses[None], folds, BandedGrid(alphas, draws=30))
    dropping = nested_banded_ridge(spaces, responses[None], folds, BandedGrid(alphas, draws=0))
    plain = nested_ridge(np.hstack(spaces), responses[None], folds, RidgeGrid(alphas))
    assert banded.scores("r2").mean() > dropping.scores("r2").mean() + 0.01
    assert banded.scores("r2").mean() > plain.scores("r2").mean() + 0.05


def test_noise_is_not_predicted():
    spaces, responses = simulate(17, 160, (5, 40), n_targets=40, strength=(0.0,))
    folds = contiguous_folds(160, 5)
    got = nested_banded_ridge(spaces, responses, folds, BandedGrid(tuple(np.logspace(0, 4, 9)), draws=30))
    assert got.scores("pearson").mean() < 0.03
    assert got.scores("r2").mean() < 0.01


# --- cost ---------------------------------------------------------------------------------------------------------


def counting(monkeypatch, owner, name):
    """Count the calls of a method, which still does its work."""
    real, calls = getattr(owner, name), []

    def counted(*args, **more):
        calls.append(args)
        return real(*args, **more)

    monkeypatch.setattr(owner, name, counted)
    return calls


@pytest.mark.parametrize("form", ["primal", "kernel"])
def test_a_pair_of_blocks_is_decomposed_once_and_shared_parts_are_made_once(form, monkeypatch):
    spaces, responses = simulate(18, 48, (4, 5, 6), n_targets=6)
    folds = contiguous_folds(48, 4)
    gamma = np.random.default_rng(0).dirichlet(np.ones(3), size=9)
    decompositions = counting(monkeypatch, Backend, "eigh")
    shared = counting(monkeypatch, SharedDesign, "moments" if form == "primal" else "standard_rows")
    got = nested_banded_ridge(spaces, responses, folds, BandedGrid(ALPHAS), candidates=gamma, form=form)
    refits = sum(len(np.unique(block)) for block in got.candidate)
    assert len(decompositions) == 9 * 6 + refits
    assert len(shared) == 6 + 4


def test_pairs_of_stopped_blocks_are_left_alone(monkeypatch):
    spaces, responses = simulate(1, 44, (3, 6, 4), n_targets=3)
    folds = contiguous_folds(44, 4)
    grid = BandedGrid(ALPHAS, draws=14, patience=4, min_gain=1e-3, seed=3)
    decompositions = counting(monkeypatch, Backend, "eigh")
    got = nested_banded_ridge(spaces, responses, folds, grid)
    expected = sum(max(got.tried[a], got.tried[b]) for a, b in itertools.combinations(range(4), 2)) + sum(
        len(np.unique(block)) for block in got.candidate
    )
    assert len(decompositions) == expected
    assert expected < 6 * got.tried.max() + 4 * 3


@pytest.mark.parametrize(("sizes", "form"), [((10, 20), "primal"), ((100, 200), "kernel")])
def test_little_memory_changes_nothing(sizes, form, monkeypatch):
    n, n_targets = 120, 700
    spaces, responses = simulate(19, n, sizes, n_targets=n_targets)
    folds = contiguous_folds(n, 4)
    grid = BandedGrid((1.0, 30.0), draws=12, patience=3, min_gain=1e-3)
    much = nested_banded_ridge(spaces, responses, folds, grid, keep=KEEP, form=form)
    fitted = cross_validated_banded_ridge(spaces, responses, folds, grid, form=form)
    little = Compute(memory_bytes=9_000_000 if form == "primal" else 14_000_000)
    loads = counting(monkeypatch, SpacesEngine, "load")
    got = nested_banded_ridge(spaces, responses, folds, grid, keep=KEEP, form=form, compute=little)
    assert len(loads) > 2
    refitted = cross_validated_banded_ridge(spaces, responses, folds, grid, form=form, compute=little)
    for name in ("candidate", "alpha", "tried"):
        np.testing.assert_array_equal(getattr(got, name), getattr(much, name))
    np.testing.assert_array_equal(refitted.candidate, fitted.candidate)
    np.testing.assert_allclose(got.predicted, much.predicted, atol=1e-9)
    np.testing.assert_allclose(got.weights, much.weights, atol=1e-9)
    np.testing.assert_allclose(got.search, much.search, atol=1e-12)
    np.testing.assert_allclose(refitted.weights, fitted.weights, atol=1e-9)
    for metric in METRICS:
        np.testing.assert_allclose(got.scores(metric), much.scores(metric), atol=1e-9)
    with pytest.raises(ValueError, match="is too little"):
        nested_banded_ridge(spaces, responses, folds, grid, compute=Compute(memory_bytes=100_000))


def test_runs_repeat_to_the_bit():
    spaces, responses = simulate(20, 50, (4, 30))
    folds = contiguous_folds(50, 4)
    grid = BandedGrid(ALPHAS, draws=20, patience=5)
    one, two = (nested_banded_ridge(spaces, responses, folds, grid, keep=KEEP) for _ in range(2))
    for name in ("candidate", "alpha", "predicted", "weights", "search", "tried"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


# --- devices ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["primal", "kernel"])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_torch_finds_the_same(sizes, form):
    n = 50
    spaces, responses = simulate(21, n, sizes, n_targets=4, n_lags=2)
    nuisance = np.random.default_rng(3).standard_normal((n, 1))
    folds = contiguous_folds(n, 4, gap=1)
    grid = BandedGrid(ALPHAS, draws=12, patience=5)
    more = {"unpenalised": nuisance, "form": form}
    expected = nested_banded_ridge(spaces, responses, folds, grid, keep=KEEP, **more)
    got = nested_banded_ridge(spaces, responses, folds, grid, keep=KEEP, compute=Compute("torch"), **more)
    for name in ("candidate", "alpha", "lag", "tried"):
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))
    for name in ("predicted", "weights", "nuisance_weights", "intercept", "search"):
        np.testing.assert_allclose(getattr(got, name), getattr(expected, name), atol=1e-8)
    fits = [
        cross_validated_banded_ridge(spaces, responses, folds, grid, compute=c, **more)
        for c in (Compute(), Compute("torch"))
    ]
    np.testing.assert_array_equal(fits[0].candidate, fits[1].candidate)
    np.testing.assert_allclose(fits[0].weights, fits[1].weights, atol=1e-8)


def test_tensors_are_taken_and_weights_given_back_as_tensors():
    import torch

    spaces, responses = simulate(22, 40, (3, 4))
    folds = contiguous_folds(40, 4)
    grid = BandedGrid(ALPHAS, draws=5)
    expected = cross_validated_banded_ridge(spaces, responses, folds, grid)
    got = cross_validated_banded_ridge(
        [torch.as_tensor(s) for s in spaces],
        torch.as_tensor(responses),
        folds,
        grid,
        compute=Compute("torch"),
    )
    assert isinstance(got.weights, torch.Tensor)
    np.testing.assert_allclose(got.weights.numpy(), expected.weights, atol=1e-9)


@pytest.mark.parametrize("device", ["cpu", "torch"])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_single_precision_is_close(sizes, device):
    spaces, responses = simulate(23, 60, sizes, n_targets=6)
    folds = contiguous_folds(60, 4)
    gamma = np.array([[1.0, 0.0, 0.0], [0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
    grid = BandedGrid((8.0, 100.0))
    expected = nested_banded_ridge(spaces, responses, folds, grid, candidates=gamma)
    got = nested_banded_ridge(spaces, responses, folds, grid, candidates=gamma, compute=Compute(device, "float32"))
    np.testing.assert_array_equal(got.candidate, expected.candidate)
    np.testing.assert_array_equal(got.alpha, expected.alpha)
    np.testing.assert_allclose(got.scores("r2"), expected.scores("r2"), atol=1e-5)


# --- errors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"alphas": ()}, "alphas must be a list"),
        ({"alphas": (1.0, -1.0)}, "alphas must be positive"),
        ({"draws": -1}, "draws must be at least 0"),
        ({"patience": 0}, "patience at least 1"),
        ({"min_gain": -1e-4}, "min_gain must not be negative"),
        ({"min_gain": np.nan}, "min_gain must not be negative"),
        ({"concentration": ()}, "concentration must be positive"),
        ({"concentration": (0.0,)}, "concentration must be positive"),
        ({"metric": "mse"}, "unknown metric 'mse'"),
    ],
)
def test_grids_that_make_no_sense(more, message):
    with pytest.raises(ValueError, match=message):
        BandedGrid(**{"alphas": ALPHAS, **more})


def test_too_many_spaces_for_every_subset():
    with pytest.raises(ValueError, match=r"11 feature spaces have 2047 subsets.*subsets=False"):
        banded_candidates(11, BandedGrid(ALPHAS))
    assert banded_candidates(10, BandedGrid(ALPHAS, draws=0)).n_first == 1023


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        (np.ones(2), r"\[c, 2\], one weight per feature space, got shape \(2,\)"),
        (np.ones((3, 3)), r"\[c, 2\]"),
        (np.ones((0, 2)), r"\[c, 2\]"),
        ([[1.0, -0.1]], "not negative"),
        ([[1.0, np.nan]], "finite"),
        ([[1.0, 0.0], [0.0, 0.0]], "a positive weight in every row"),
    ],
)
def test_candidates_that_make_no_sense(candidates, message):
    spaces, responses = simulate(27, 40, (3, 4))
    folds = contiguous_folds(40, 4)
    for search in (nested_banded_ridge, cross_validated_banded_ridge):
        with pytest.raises(ValueError, match=message):
            search(spaces, responses, folds, BandedGrid(ALPHAS), candidates=candidates)


def test_data_that_make_no_sense():
    spaces, responses = simulate(28, 40, (3, 4))
    folds, grid = contiguous_folds(40, 4), BandedGrid(ALPHAS, draws=2)
    with pytest.raises(ValueError, match="at least one feature space"):
        nested_banded_ridge([], responses, folds, grid)
    with pytest.raises(ValueError, match=r"feature space 1 must be \[40, p\].*got \(39, 4\)"):
        nested_banded_ridge([spaces[0], spaces[1][1:]], responses, folds, grid)
    with pytest.raises(ValueError, match=r"feature space 0 must be .*got \(40, 0\)"):
        nested_banded_ridge([spaces[0][:, :0]], responses, folds, grid)
    with pytest.raises(ValueError, match="must be finite"):
        nested_banded_ridge([spaces[0], spaces[1] * np.nan], responses, folds, grid)
    with pytest.raises(ValueError, match=r"responses must be an array \[n_lags, n, t\]"):
        nested_banded_ridge(spaces, responses[0], folds, grid)
    with pytest.raises(ValueError, match="at least 3 blocks"):
        nested_banded_ridge(spaces, responses, contiguous_folds(40, 2), grid)
    with pytest.raises(ValueError, match="unknown value of keep 'everything'"):
        nested_banded_ridge(spaces, responses, folds, grid, keep=("everything",))
    with pytest.raises(ValueError, match="unknown metric 'mse'"):
        nested_banded_ridge(spaces, responses, folds, grid, metrics=("mse",))
    one_block = BlockedFolds((0,), 40)
    with pytest.raises(ValueError, match="at least 2 blocks"):
        cross_validated_banded_ridge(spaces, responses, one_block, grid)
