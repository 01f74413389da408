"""Banded ridges on subsets of feature spaces, and pooled R² as a validation score.

Oracles: explicit loops over folds, weights, penalties and targets, with NumPy's closed form and scikit-learn's Ridge;
himalaya on the columns of each support; and each subset searched alone.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from ridge_oracle import fit_one, training_rows, validation_rows
from sklearn.model_selection import PredefinedSplit

from lpact.estimators import BandedRidge, NestedRidge
from lpact.math.ridge import (
    BandedGrid,
    BandedSubsets,
    Compute,
    RidgeGrid,
    banded_candidates,
    cross_validated_ridge,
    nested_banded_ridge,
    nested_ridge,
    single_column_readouts,
)
from lpact.math.ridge import banded as module
from lpact.math.ridge._arrays import Kept
from lpact.math.ridge.banded import SpacesEngine
from lpact.math.ridge.compute import Backend
from lpact.math.splits import BlockedFolds, contiguous_folds

ALPHAS = (0.5, 8.0, 100.0)
SIZES = {"primal": (3, 2, 4), "kernel": (3, 30, 40)}
EVERY = tuple(own for size in (1, 2, 3) for own in itertools.combinations(range(3), size))


def simulate(seed, n, sizes, n_targets, strength=(1.0, 0.5, 0.2)):
    rng = np.random.default_rng(seed)
    spaces = [rng.standard_normal((n, p)) * rng.uniform(0.1, 9.0, p) + 3.0 for p in sizes]
    signal = np.zeros((n, n_targets))
    for space, own in zip(spaces, strength, strict=True):
        z = (space - space.mean(0)) / space.std(0)
        signal += own * z @ rng.standard_normal((z.shape[1], n_targets)) / np.sqrt(z.shape[1])
    return spaces, signal + rng.standard_normal(signal.shape) + 5.0


def predictions(subsets):
    """All chunks side by side: responses, training means [n, t] and predictions [S, n, t]."""
    chunks = list(subsets.predictions())
    n_targets = chunks[-1][0].stop
    assert [part.start for part, *_ in chunks] == [0, *(part.stop for part, *_ in chunks[:-1])]
    joined = [np.concatenate(parts, axis=-1) for parts in list(zip(*chunks, strict=True))[1:]]
    assert all(values.shape[-1] == n_targets for values in joined)
    return joined


def assert_each_is_searched_alone(spaces, responses, folds, grid, subsets, chosen, outer=None):
    """Every subset equals `nested_banded_ridge` on its spaces; rows of other outer blocks are NaN."""
    observed, baseline, predicted = predictions(chosen)
    outer = np.ones(folds.n_blocks, dtype=bool) if outer is None else outer
    rows = np.repeat(outer, folds.test_sizes())
    for i, subset in enumerate(subsets):
        own = [spaces[g] for g in subset]
        alone = nested_banded_ridge(own, responses[None], folds, grid, keep=("predictions",))
        np.testing.assert_array_equal(chosen.tried[i][outer], alone.tried[outer])
        np.testing.assert_array_equal(chosen.tried[i][~outer], 0)
        np.testing.assert_allclose(chosen.validation[i][outer], alone.validation[outer], atol=1e-9, rtol=0)
        np.testing.assert_allclose(predicted[i][rows], alone.predicted[rows], atol=1e-8)
        np.testing.assert_array_equal(observed[rows], responses[rows])
        np.testing.assert_allclose(baseline[rows], alone.baseline[rows], atol=1e-12)
    for values in (chosen.validation[:, ~outer], observed[~rows], baseline[~rows]):
        assert np.isnan(values).all()
    assert np.isnan(predicted[:, ~rows]).all()


# --- subsets ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["r2", "pooled_r2", "pearson"])
@pytest.mark.parametrize("form", SIZES)
def test_every_subset_equals_its_own_search(form, metric):
    spaces, responses = simulate(1, 44, SIZES[form], 5)
    folds = BlockedFolds((0, 9, 22, 34), 44, 1)
    grid = BandedGrid(ALPHAS, draws=12, patience=4, min_gain=1e-3, metric=metric, seed=3)
    chosen = BandedSubsets(spaces, responses[None], folds, grid, EVERY)
    assert chosen.engine.form == form
    assert len({*chosen.tried.ravel()}) > 3  # searches end at different draws
    assert_each_is_searched_alone(spaces, responses, folds, grid, EVERY, chosen)


@pytest.mark.parametrize("form", SIZES)
def test_outer_blocks_that_are_not_predicted_are_not_searched(form):
    spaces, responses = simulate(2, 48, SIZES[form], 4)
    folds = contiguous_folds(48, 4)
    grid = BandedGrid(ALPHAS, draws=9, patience=3, min_gain=1e-3)
    outer = np.array([False, True, False, True])
    chosen = BandedSubsets(spaces, responses[None], folds, grid, EVERY, outer=outer)
    assert_each_is_searched_alone(spaces, responses, folds, grid, EVERY, chosen, outer)
    np.testing.assert_array_equal(outer, [False, True, False, True])


@pytest.mark.parametrize("form", SIZES)
@pytest.mark.parametrize("masked", [False, True])
def test_chunks_of_targets_change_nothing(form, masked, monkeypatch):
    n, n_targets = 120, 700
    sizes = (10, 20) if form == "primal" else (60, 80)
    spaces, responses = simulate(3, n, sizes, n_targets, strength=(1.0, 0.5))
    folds = contiguous_folds(n, 4)
    grid = BandedGrid((1.0, 30.0), draws=12, patience=3, min_gain=1e-3)
    subsets = ((0,), (1,), (0, 1))
    outer = np.array([True, False, True, True]) if masked else None
    loads = []
    real = SpacesEngine.load
    monkeypatch.setattr(SpacesEngine, "load", lambda self, part: loads.append(part) or real(self, part))
    little = Compute(memory_bytes=9_000_000 if form == "primal" else 14_000_000)
    chosen = BandedSubsets(spaces, responses[None], folds, grid, subsets, outer=outer, compute=little)
    assert len({part.start for part in loads}) > 1
    assert len(list(chosen.predictions())) > 1
    assert_each_is_searched_alone(spaces, responses, folds, grid, subsets, chosen, outer)


@pytest.mark.parametrize("form", SIZES)
def test_nothing_that_is_kept_changes_nothing(form, monkeypatch):
    spaces, responses = simulate(4, 48, SIZES[form], 6)
    folds = contiguous_folds(48, 4)
    grid = BandedGrid(ALPHAS, draws=8, patience=3, min_gain=1e-3)
    kept = BandedSubsets(spaces, responses[None], folds, grid, EVERY)
    monkeypatch.setattr(module, "Kept", lambda max_bytes: Kept(0))
    chosen = BandedSubsets(spaces, responses[None], folds, grid, EVERY)
    np.testing.assert_array_equal(chosen.validation, kept.validation)
    for got, expected in zip(predictions(chosen), predictions(kept), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_candidates_that_drop_spaces_are_scored_once(monkeypatch):
    spaces, responses = simulate(5, 48, SIZES["kernel"], 3)
    folds = contiguous_folds(48, 4)
    real, calls = Backend.eigh, []
    monkeypatch.setattr(Backend, "eigh", lambda self, gram: calls.append(1) or real(self, gram))
    BandedSubsets(spaces, responses[None], folds, BandedGrid(ALPHAS, draws=0), EVERY)
    assert len(calls) == 7 * 6  # subsets, pairs of blocks
    calls.clear()
    BandedSubsets(spaces, responses[None], folds, BandedGrid(ALPHAS, draws=2, patience=9), EVERY)
    assert len(calls) == (7 + 3 * 2 + 2) * 6


def test_few_columns_are_decomposed_by_columns(monkeypatch):
    """24 training rows; spaces of 3, 5, and 40 columns."""
    spaces, responses = simulate(5, 48, (3, 5, 40), 3)
    real, sizes = Backend.eigh, []
    monkeypatch.setattr(Backend, "eigh", lambda self, gram: sizes.append(len(gram)) or real(self, gram))
    grid = BandedGrid(ALPHAS, draws=0)
    folds = contiguous_folds(48, 4)
    chosen = BandedSubsets(spaces, responses[None], folds, grid, [(0, 1), (2,)])
    assert chosen.engine.form == "kernel"
    assert sorted(sizes) == [3] * 6 + [5] * 6 + [8] * 6 + [24] * 6


def test_a_subset_equals_the_closed_form_target_by_target():
    """Search, choice and prediction of one subset written out with NumPy; (ZᵀZ + a / γ) w = Zᵀy."""
    n, subset = 40, (0, 2)
    spaces, responses = simulate(6, n, (3, 5, 4), 4)
    folds = contiguous_folds(n, 4)
    grid = BandedGrid(ALPHAS, draws=5, patience=5, metric="r2", seed=2)
    chosen = BandedSubsets(spaces, responses[None], folds, grid, [(1,), subset])
    x = np.hstack([spaces[g] for g in subset])
    gamma = banded_candidates(2, grid).gamma.repeat([3, 4], axis=1)

    def predict(train, rows, y, weights, alpha):
        used = weights > 0.0
        mean, scale = x[train][:, used].mean(0), x[train][:, used].std(0)
        z = (x[train][:, used] - mean) / scale
        inverse = np.diag(alpha / weights[used])
        w = np.linalg.solve(z.T @ z + inverse, z.T @ (y[train] - y[train].mean()))
        return y[train].mean() + (x[rows][:, used] - mean) / scale @ w

    validation, predicted = np.empty((4, 4)), np.empty((n, 4))
    for outer, t in itertools.product(range(4), range(4)):
        y, best = responses[:, t], (-np.inf, None, None)
        for weights, alpha in itertools.product(gamma, ALPHAS):
            scores = []
            for inner in {*range(4)} - {outer}:
                rows = np.arange(*folds.bounds(inner))
                guess = predict(training_rows(folds, outer, inner), rows, y, weights, alpha)
                around = y[rows] - y[rows].mean()
                scores.append(1.0 - ((y[rows] - guess) ** 2).sum() / (around**2).sum())
            if np.mean(scores) > best[0] + 1e-9:
                best = np.mean(scores), weights, alpha
        validation[outer, t] = best[0]
        rows = np.arange(*folds.bounds(outer))
        predicted[rows, t] = predict(training_rows(folds, outer), rows, y, *best[1:])
    np.testing.assert_allclose(chosen.validation[1], validation, atol=1e-9)
    np.testing.assert_allclose(predictions(chosen)[2][1], predicted, atol=1e-8)


@pytest.mark.parametrize("sizes", [(6, 4, 5), (30, 6, 50)])
def test_himalaya_finds_the_same_bands_and_predictions(sizes):
    """himalaya takes no weight of 0: a candidate that drops spaces is a fit of the others.

    Columns are standard in every block, so that scaling on outer and on inner training rows is the same.
    """
    from himalaya.ridge import GroupRidgeCV
    from himalaya.scoring import r2_score

    n, n_blocks, n_targets = 60, 4, 8
    folds = contiguous_folds(n, n_blocks)
    spaces, responses = simulate(7, n, sizes, n_targets, strength=(0.9, 0.6, 0.0))
    for space in spaces:
        for block in range(n_blocks):
            own = space[folds.rows(block)]
            own[:] = (own - own.mean(0)) / own.std(0)
    alphas = np.logspace(-1, 3, 6)
    grid = BandedGrid(tuple(alphas), draws=6, patience=6, metric="r2")
    subsets = ((1,), (0, 2), (0, 1, 2))
    chosen = BandedSubsets(spaces, responses[None], folds, grid, subsets)
    predicted = predictions(chosen)[2]
    block_of_row = np.repeat(np.arange(n_blocks), folds.test_sizes())
    dropped = set()
    for i, subset in enumerate(subsets):
        gamma = banded_candidates(len(subset), grid).gamma
        supports = [tuple(np.flatnonzero(row)) for row in gamma]
        own = nested_banded_ridge([spaces[g] for g in subset], responses[None], folds, grid)
        for outer in range(n_blocks):
            train, test = training_rows(folds, outer), folds.rows(outer)
            best = np.full(n_targets, -np.inf)
            deltas = np.full((len(subset), n_targets), -np.inf)
            guess = np.empty((n // n_blocks, n_targets))
            for support in dict.fromkeys(supports):
                columns = [spaces[subset[g]] for g in support]
                labels = np.repeat(np.arange(len(support)), [c.shape[1] for c in columns])
                tried = [row for row, s in zip(gamma, supports, strict=True) if s == support]
                model = GroupRidgeCV(
                    groups=labels,
                    solver="random_search",
                    fit_intercept=True,
                    cv=PredefinedSplit(block_of_row[train]),
                    solver_params={
                        "n_iter": np.array(tried)[:, list(support)],
                        "alphas": alphas,
                        "score_func": r2_score,
                        "progress_bar": False,
                        "warn": False,
                    },
                ).fit(np.hstack(columns)[train], responses[train])
                score = model.cv_scores_.max(axis=0)
                better = score > best
                best = np.where(better, score, best)
                deltas[:, better] = -np.inf
                deltas[np.ix_(support, better)] = model.deltas_[:, better]
                guess[:, better] = model.predict(np.hstack(columns)[test])[:, better]
            np.testing.assert_allclose(chosen.validation[i, outer], best, atol=1e-8)
            np.testing.assert_array_equal(own.gamma[outer] > 0.0, np.isfinite(deltas))
            with np.errstate(divide="ignore"):
                ours = np.log(own.gamma[outer] / alphas[own.alpha[outer]])
            np.testing.assert_allclose(ours, deltas, atol=1e-8)
            np.testing.assert_allclose(predicted[i, test], guess, atol=1e-6)
            dropped |= {tuple(used) for used in np.isfinite(deltas).T.tolist()}
    assert len(dropped) > 3


def test_subsets_that_make_no_sense():
    spaces, responses = simulate(8, 40, (3, 4, 2), 2)
    folds, grid = contiguous_folds(40, 4), BandedGrid(ALPHAS, draws=2)
    for subset in ((), (1, 0), (0, 0), (0, 3), (-1,)):
        with pytest.raises(ValueError, match="ascending indices of 3 feature spaces"):
            BandedSubsets(spaces, responses[None], folds, grid, [subset])
    with pytest.raises(ValueError, match="at one lag, got 2"):
        BandedSubsets(spaces, np.stack([responses] * 2), folds, grid, [(0,)])


# --- pooled R² ----------------------------------------------------------------------------------------------------


def pooled_r2(x, y, splits, alpha, k=0, nuisance=None):
    """1 − Σ(y − ŷ)² / Σ(y − training mean)², over the rows of all validation blocks; NaN where nothing varies."""
    error = spread = 0.0
    for train, rows in splits:
        if len(rows):
            beside = None if nuisance is None else nuisance[train]
            fitted = fit_one(x[train], y[train], alpha, k, beside)
            around = y[rows] - fitted.mean
            own = fitted.deviation(x[rows], None if nuisance is None else nuisance[rows])
            error += ((around - own) ** 2).sum()
            spread += (around**2).sum()
    return 1.0 - error / spread if spread > 0.0 else np.nan


def inner_splits(folds, outer):
    others = [block for block in range(folds.n_blocks) if block != outer]
    return [(training_rows(folds, outer, b), validation_rows(folds, b, outer)) for b in others]


def first_best(scores):
    """Index of the first score within rounding of the best; 0 without any."""
    near = np.flatnonzero(scores >= np.nanmax(scores) - 1e-9) if np.isfinite(scores).any() else [0]
    return int(near[0])


def assert_pooled(got, x, responses, folds, grid, nuisance=None):
    """Lag, components and penalty of every target and outer block, and predictions, by loops."""
    settings = list(itertools.product(range(len(responses)), range(len(grid.components)), range(len(ALPHAS))))
    for outer, t in itertools.product(range(folds.n_blocks), range(responses.shape[2])):
        splits = inner_splits(folds, outer)
        scores = np.array(
            [
                pooled_r2(x, responses[lag, :, t], splits, ALPHAS[a], grid.components[k], nuisance)
                for lag, k, a in settings
            ]
        )
        lag, k, a = settings[first_best(scores)]
        assert (got.lag[outer, t], got.alpha[outer, t]) == (lag, a)
        assert got.components[outer, t] == grid.components[k]
        train, rows = training_rows(folds, outer), np.arange(*folds.bounds(outer))
        beside = None if nuisance is None else nuisance[train]
        fitted = fit_one(x[train], responses[lag, train, t], ALPHAS[a], grid.components[k], beside)
        own = fitted.deviation(x[rows], None if nuisance is None else nuisance[rows])
        np.testing.assert_allclose(got.predicted[rows, t], fitted.mean + own, atol=1e-8)


def pooled_problem(n_lags=1):
    """Five targets; the second is constant on two blocks, the third but for one block, the fourth everywhere."""
    n = 46
    rng = np.random.default_rng(11)
    x = rng.standard_normal((n, 7)) * [1, 5, 0.1, 1, 1, 2, 3] + 4.0
    nuisance = rng.standard_normal((n, 2)) + np.array([10.0, -3.0])
    y = x @ rng.standard_normal((7, 5)) + 0.5 * nuisance @ rng.standard_normal((2, 5))
    y = np.stack([y + 2.0 * rng.standard_normal(y.shape) for _ in range(n_lags)])
    folds = BlockedFolds((0, 9, 20, 33), n, 1)
    y[:, 9:20, 1], y[:, 33:, 1] = 0.1, 7.0
    y[:, :9, 2], y[:, 20:, 2] = 0.1, 0.1
    y[:, :, 3] = 0.1
    return x, y, nuisance, folds


@pytest.mark.parametrize("device", ["cpu", "torch"])
@pytest.mark.parametrize("form", ["primal", "kernel"])
@pytest.mark.parametrize("with_nuisance", [False, True])
def test_pooled_r2_chooses_as_loops_do(with_nuisance, form, device):
    x, y, nuisance, folds = pooled_problem(n_lags=2)
    nuisance = nuisance if with_nuisance else None
    grid = RidgeGrid(ALPHAS, components=(2, 0), metric="pooled_r2")
    options = {"unpenalised": nuisance, "form": form, "compute": Compute(device)}
    got = nested_ridge(x, y, folds, grid, keep=("predictions",), **options)
    assert_pooled(got, x, y, folds, grid, nuisance)
    # The mean over blocks chooses otherwise.
    other = nested_ridge(x, y, folds, RidgeGrid(ALPHAS, components=(2, 0)), **options)
    assert (got.alpha != other.alpha).any() or (got.components != other.components).any()


@pytest.mark.parametrize("form", ["primal", "kernel"])
@pytest.mark.parametrize("with_nuisance", [False, True])
def test_the_pooled_score_of_a_fit(with_nuisance, form):
    x, y, nuisance, folds = pooled_problem()
    nuisance = nuisance if with_nuisance else None
    grid = RidgeGrid(ALPHAS, metric="pooled_r2")
    got = cross_validated_ridge(x, y, folds, grid, unpenalised=nuisance, form=form)
    splits = [(training_rows(folds, b), np.arange(*folds.bounds(b))) for b in range(folds.n_blocks)]
    expected = np.array([[pooled_r2(x, y[0, :, t], splits, a, 0, nuisance) for a in ALPHAS] for t in range(5)])
    best = [np.nanmax(own) if np.isfinite(own).any() else np.nan for own in expected]
    np.testing.assert_allclose(got.score, best, atol=1e-9)
    assert np.isnan(got.score).tolist() == [False, False, False, True, False]
    np.testing.assert_array_equal(got.alpha, [first_best(own) for own in expected])


@pytest.mark.parametrize("form", ["primal", "kernel"])
@pytest.mark.parametrize("metric", ["pooled_r2", "r2"])
def test_a_response_that_varies_in_the_outer_block_alone_has_no_validation_score(metric, form):
    """What rounding leaves of a constant is no score, and the choice falls on the first settings."""
    spaces, responses = simulate(12, 46, (3, 4), 3, strength=(1.0, 0.5))
    folds = BlockedFolds((0, 9, 31, 38), 46)
    for t, constant in enumerate((0.1, 1e6 / 3.0, -7.7e-5)):
        responses[:9, t] = responses[31:, t] = constant
    grid = BandedGrid(ALPHAS, draws=2, patience=2, metric=metric)
    got = nested_banded_ridge(spaces, responses[None], folds, grid, form=form)
    assert np.isnan(got.validation[1]).all()
    assert np.isfinite(got.validation[[0, 2, 3]]).all()
    np.testing.assert_array_equal(got.candidate[1], 0)
    np.testing.assert_array_equal(got.alpha[1], 0)


def test_one_column_at_a_time_by_pooled_r2():
    x, y, _, folds = pooled_problem()
    grid = RidgeGrid(ALPHAS, metric="pooled_r2")
    got = single_column_readouts(x, y, folds, grid, metric="r2")
    for column, t in itertools.product(range(x.shape[1]), range(5)):
        own, response = x[:, [column]], y[0, :, t]
        error = spread = 0.0
        for outer in range(folds.n_blocks):
            splits = inner_splits(folds, outer)
            scores = np.array([pooled_r2(own, response, splits, a) for a in ALPHAS])
            train, rows = training_rows(folds, outer), np.arange(*folds.bounds(outer))
            fitted = fit_one(own[train], response[train], ALPHAS[first_best(scores)], 0)
            around = response[rows] - fitted.mean
            error += ((around - fitted.deviation(own[rows], None)) ** 2).sum()
            spread += (around**2).sum()
        expected = 1.0 - error / spread if np.ptp(response) else np.nan
        np.testing.assert_allclose(got[column, t], expected, atol=1e-9)


@pytest.mark.parametrize("estimator", [NestedRidge, BandedRidge])
def test_estimators_choose_by_pooled_r2(estimator):
    x, y, _, _ = pooled_problem()
    y = y[0][:, [0, 1, 4]]
    more = {} if estimator is NestedRidge else {"draws": 0}
    model = estimator(alphas=ALPHAS, cv=4, metric="pooled_r2", **more)
    fitted = model.fit(x, y)
    own = contiguous_folds(len(x), 4)
    splits = [(training_rows(own, b), np.arange(*own.bounds(b))) for b in range(4)]
    expected = [max(pooled_r2(x, y[:, t], splits, a) for a in ALPHAS) for t in range(3)]
    np.testing.assert_allclose(fitted.best_score_, expected, atol=1e-9)
    # Held-out R² is pooled in any case.
    np.testing.assert_array_equal(model.nested_scores(x, y), model.nested_scores(x, y, metric="r2"))
    with pytest.raises(ValueError, match="pooled"):
        estimator(alphas=ALPHAS, cv=4, metric="pooled", **more).fit(x, y)
