"""Where readouts go wrong first: constant blocks, scales that held-out rows decide, memory, bad input."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from lpact.math.ridge import (
    SHARED,
    Compute,
    RidgeGrid,
    Selection,
    cross_validated_ridge,
    nested_ridge,
    nested_ridge_draws,
)
from lpact.math.splits import contiguous_folds

MIB = 2**20


def problem(seed=0, n=60, p=8, t=4, lags=1):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    y = 0.5 * x[:, :1] + rng.standard_normal((lags, n, t))
    return x, y, rng


@pytest.mark.parametrize("metric", ["pearson", "spearman", "r2"])
@pytest.mark.parametrize("nuisance", [False, True])
def test_features_that_stand_still_in_a_block_have_no_correlation_there(metric, nuisance):
    """Rounding of a mean is no prediction: primal and kernel form leave the block out alike."""
    x, y, rng = problem(1, 40, 60)
    u = rng.standard_normal((40, 2)) if nuisance else None
    folds = contiguous_folds(40, 4)
    x[folds.rows(2)] = rng.standard_normal(60)
    if u is not None:
        u[folds.rows(2)] = rng.standard_normal(2)
    grid = RidgeGrid((1.0,), metric=metric)
    primal, kernel = (
        cross_validated_ridge(x, y, folds, grid, unpenalised=u, form=form).score for form in ("primal", "kernel")
    )
    np.testing.assert_allclose(kernel, primal, atol=1e-10)
    if metric == "pearson":
        others = [
            np.corrcoef(
                y[0, folds.rows(b), 0],
                _by_hand(x, y[0, :, 0], u, folds.train_rows(b))[folds.rows(b)],
            )[0, 1]
            for b in (0, 1, 3)
        ]
        assert primal[0] == pytest.approx(np.mean(others), abs=1e-10)


def _by_hand(x, y, u, train):
    z = (x - x[train].mean(0)) / x[train].std(0)
    base = np.zeros((len(x), 0)) if u is None else u - u[train].mean(0)
    left = np.hstack([base, z])
    penalty = np.diag([0.0] * base.shape[1] + [1.0] * z.shape[1])
    weights = np.linalg.solve(left[train].T @ left[train] + penalty, left[train].T @ (y[train] - y[train].mean()))
    return left @ weights


@pytest.mark.parametrize("form", ["primal", "kernel"])
def test_a_held_out_outlier_moves_no_unpenalised_weight(form):
    x, y, rng = problem(4, 60, 8)
    u = rng.standard_normal((60, 2))
    folds, grid = contiguous_folds(60, 4), RidgeGrid((1.0,))
    keep = ("weights",)
    before = nested_ridge(x, y, folds, grid, unpenalised=u, keep=keep, form=form)
    u[10, 0] = 1e9
    after = nested_ridge(x, y, folds, grid, unpenalised=u, keep=keep, form=form)
    np.testing.assert_allclose(after.weights[0], before.weights[0], atol=1e-6)
    np.testing.assert_allclose(after.nuisance_weights[0], before.nuisance_weights[0], atol=1e-6)


@pytest.mark.parametrize(("distance", "error"), [(2.0, 1e-5), (5.0, 1e-4)])
def test_drift_between_blocks_costs_single_precision_little(distance, error):
    x, y, rng = problem(5, 600, 50, t=10)
    blocks = np.repeat(np.arange(4), 150)
    x += distance * rng.standard_normal((4, 50))[blocks]
    y = y + distance * rng.standard_normal((4, 10))[blocks]
    folds, grid = contiguous_folds(600, 4), RidgeGrid((10.0,))
    exact = nested_ridge(x, y, folds, grid)
    single = nested_ridge(x, y, folds, grid, compute=Compute(precision="float32"))
    for metric in ("r2", "pearson"):
        np.testing.assert_allclose(single.scores(metric), exact.scores(metric), atol=error)


def test_penalties_far_above_everything_are_no_trap_in_single_precision():
    x, y, _ = problem(6, 80, 5)
    folds = contiguous_folds(80, 4)
    grid = RidgeGrid(tuple(np.logspace(1, 30, 30)), metric="pearson")
    exact = cross_validated_ridge(x, y, folds, grid)
    single = cross_validated_ridge(x, y, folds, grid, compute=Compute(precision="float32"))
    np.testing.assert_allclose(single.score, exact.score, atol=1e-5)


def peak(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def cases():
    x, y, rng = problem(7, 200, 100, t=600, lags=2)
    wide, few = rng.standard_normal((150, 900)), rng.standard_normal((1, 150, 400))
    u = rng.standard_normal((200, 60))
    grid = RidgeGrid((1.0, 10.0, 100.0), (0, 20))
    many = RidgeGrid(tuple(np.logspace(0, 4, 20)), (0, 5, 10), selection=SHARED)
    five, ten = contiguous_folds(200, 5), contiguous_folds(200, 10)
    order = [None, np.roll(np.arange(200), 50)]
    budgets = {"plain": 24, "pooled": 60, "fitted": 40, "kernel": 60, "nuisance": 40, "draws": 24}
    work = {
        "plain": lambda c: nested_ridge(x, y, five, grid, compute=c),
        "pooled": lambda c: nested_ridge(x, y, five, many, compute=c),
        "fitted": lambda c: nested_ridge(lambda _: x, y, ten, grid, compute=c),
        "kernel": lambda c: nested_ridge(wide, few, contiguous_folds(150, 5), grid, compute=c),
        "nuisance": lambda c: nested_ridge(x, y, five, grid, unpenalised=u, compute=c),
        "draws": lambda c: nested_ridge_draws(x, y, five, grid, order, compute=c),
    }
    return [pytest.param(work[name], mib * MIB, id=name) for name, mib in budgets.items()]


@pytest.mark.parametrize(("work", "budget"), cases())
def test_memory_stays_under_its_budget(work, budget):
    work(Compute())  # what is made once
    assert peak(lambda: work(Compute(memory_bytes=budget))) < budget


def test_wide_features_fit_into_the_default_memory():
    x, y, _ = problem(8, 60, 12_000)
    readout = nested_ridge(x, y, contiguous_folds(60, 3), RidgeGrid((10.0,)), metrics=("r2",))
    assert np.isfinite(readout.scores("r2")).all()


def test_grids_take_arrays():
    grid = RidgeGrid(
        np.logspace(0, 2, 3),
        np.array([0, 3]),
        selection=Selection("group", "group", "group", groups=np.array([0, 1, 1, 0])),
    )
    assert grid.alphas == (1.0, 10.0, 100.0)
    assert grid.components == (0, 3)
    assert grid.selection.groups == (0, 1, 1, 0)
    x, y, _ = problem(9)
    readout = nested_ridge(x, y, contiguous_folds(60, 4), grid)
    np.testing.assert_array_equal(readout.alpha[:, 0], readout.alpha[:, 3])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alphas": 1.0}, "alphas must be a list"),
        ({"alphas": (1.0, 0.0)}, "alphas must be positive"),
        ({"alphas": (1.0,), "components": ()}, "components must be a list"),
        ({"alphas": (1.0,), "components": (2.5,)}, "whole numbers"),
        ({"alphas": (1.0,), "components": (-1,)}, "whole numbers"),
        ({"alphas": (1.0,), "metric": "mse"}, "unknown metric 'mse'"),
        ({"alphas": (1.0,), "selection": "shared"}, "selection must be a Selection"),
    ],
)
def test_grids_that_make_no_sense_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        RidgeGrid(**settings)


def wrong(**changes):
    x, y, _ = problem(10)
    given = {
        "design": x,
        "responses": y,
        "folds": contiguous_folds(60, 4),
        "grid": RidgeGrid((1.0,)),
    }
    for name, change in changes.items():
        given[name] = change(given[name]) if name in given and callable(change) else change
    return given


def spoiled(x):
    x = x.copy()
    x[..., 7, 2] = np.nan
    return x


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"design": spoiled}, "features must be finite, got nan at row 7, column 2"),
        ({"responses": spoiled}, "responses must be finite, got nan at row 7, column 2"),
        ({"unpenalised": np.full((60, 1), np.inf)}, "unpenalised columns must be finite, got inf"),
        ({"unpenalised": np.zeros(60)}, r"unpenalised columns must be \[60, m\]"),
        ({"unpenalised": np.zeros((59, 2))}, r"got shape \(59, 2\)"),
        ({"form": "kernal"}, "unknown form 'kernal'; known: auto, primal, kernel"),
        ({"keep": "predictions"}, "value of keep must be a list"),
        ({"keep": ("residuals",)}, "unknown value of keep 'residuals'"),
        ({"metrics": ("mse",)}, "unknown metric 'mse'"),
        ({"responses": lambda y: y[:, :, :0]}, "none of them 0, got"),
        ({"responses": lambda y: y[0]}, r"responses must be an array \[n_lags, n, t\]"),
        ({"responses": lambda y: y.tolist()}, "got list"),
        ({"design": lambda x: x[:59]}, r"features must be \[60, p\]"),
        ({"folds": contiguous_folds(60, 2)}, "at least 3 blocks, got 2"),
    ],
)
def test_bad_input_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        nested_ridge(**wrong(**changes))


def test_a_design_function_of_too_few_rows_is_named():
    given = wrong()
    x = given.pop("design")
    with pytest.raises(ValueError, match=r"must return features \[60, p\]"):
        nested_ridge(lambda _: x[:50], **given)


@pytest.mark.parametrize("order", [np.arange(60) + 0.9, np.zeros(60, dtype=int), np.arange(59), 3])
def test_orders_are_permutations(order):
    with pytest.raises(ValueError, match="permutation of the row numbers 0 to 59"):
        nested_ridge_draws(**wrong(), orders=[order])
