"""Small nested fits, solved for all training sets at once, against scikit-learn and against the large engine."""

from __future__ import annotations

import numpy as np
import pytest
from ridge_oracle import oracle_nested

from lpact.math.ridge import (
    METRICS,
    SHARED,
    Compute,
    LinearFeatures,
    MappedColumns,
    NestedRidge,
    RidgeGrid,
    nested_ridge,
    nested_ridge_draws,
)
from lpact.math.ridge.small import NotSmall, SmallRidge
from lpact.math.splits import contiguous_folds

ALPHAS = (1.0, 30.0, 1000.0)


def problem(seed=0, n=90, p=7, t=3, n_lags=2):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p)) @ (np.eye(p) + 0.4 * rng.standard_normal((p, p)))
    x += rng.uniform(-3, 3, p)
    y = np.stack([np.roll(x @ rng.standard_normal((p, t)), lag, axis=0) for lag in range(n_lags)])
    return x, y + 4.0 * rng.standard_normal(y.shape) + 5.0, x[:, 0] + rng.standard_normal(n)


def small(design, responses, folds, grid):
    """The small path itself: nothing falls back to the engine unseen."""
    return SmallRidge(responses, folds, grid, METRICS, Compute()).fit(design)


def same(found, expected, atol=1e-10):
    for name in ("lag", "alpha", "components"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for metric in METRICS:
        np.testing.assert_allclose(found.scores(metric), expected.scores(metric), atol=atol)
        np.testing.assert_allclose(found.fold_scores(metric), expected.fold_scores(metric), atol=atol)


class Regressed(LinearFeatures):
    """A variable regressed out of every column on the training rows; as a map of [x, m] where ``linear``."""

    def __init__(self, x, m, *, linear):
        self.x, self.m, self.linear = x, m, linear
        self.n_features = x.shape[1]

    def __call__(self, train):
        m = self.m - self.m[train].mean()
        slopes = (self.x[train] - self.x[train].mean(axis=0)).T @ m[train] / (m[train] @ m[train])
        return self.x - np.outer(m, slopes)

    def mapped(self):
        return MappedColumns(np.column_stack([self.x, self.m]), self.maps) if self.linear else None

    def maps(self, n_rows, gram):
        p = self.n_features
        made = np.zeros((len(n_rows), p + 1, p))
        made[:, :p] = np.eye(p)
        made[:, p] = -gram[:, :p, p] / gram[:, p, p, None]
        return made


@pytest.mark.parametrize("metric", ["r2", "pearson"])
@pytest.mark.parametrize(("n", "gap", "n_blocks"), [(90, 0, 4), (75, 3, 5)])
def test_equals_scikit_learn(metric, n, gap, n_blocks):
    x, y, _ = problem(n, n)
    folds, grid = contiguous_folds(n, n_blocks, gap=gap), RidgeGrid(ALPHAS, metric=metric)
    expected = oracle_nested(x, y, folds, grid)
    same(small(x, y, folds, grid), expected)
    assert len(np.unique(expected.lag)) == 2
    assert len(np.unique(expected.alpha)) > 1


@pytest.mark.parametrize("how", ["function", "design", "mapped"])
def test_fitted_features_equal_scikit_learn(how):
    x, y, m = problem(1)
    folds, grid = contiguous_folds(90, 4, gap=2), RidgeGrid(ALPHAS)
    design = Regressed(x, m, linear=how == "mapped")
    expected = oracle_nested(design.__call__, y, folds, grid)
    same(small(design.__call__ if how == "function" else design, y, folds, grid), expected)
    assert np.abs(expected.scores("r2") - oracle_nested(x, y, folds, grid).scores("r2")).max() > 0.1


def test_settings_shared_by_targets_equal_scikit_learn():
    x, y, _ = problem(2)
    folds, grid = contiguous_folds(90, 4), RidgeGrid(ALPHAS, selection=SHARED)
    expected = oracle_nested(x, y, folds, grid)
    same(small(x, y, folds, grid), expected)
    alone = oracle_nested(x, y, folds, RidgeGrid(ALPHAS))
    assert (alone.alpha != expected.alpha).any()


def test_awkward_columns_equal_scikit_learn():
    """Columns and responses that stand still somewhere, twins, and rows that an embargo leaves too few of."""
    x, y, _ = problem(3, n=80)
    folds, grid = contiguous_folds(80, 4, gap=2), RidgeGrid(ALPHAS, metric="pearson")
    x = np.column_stack([x, x[:, 1], np.full(80, 0.1), np.arange(80) < 20, np.arange(80) >= 60])
    x[20:40, 2] = 0.3  # constant in a block
    y[0, 40:60, 0] = 2.0
    y[:, :60, 1] = 0.7  # constant on a training set
    expected = oracle_nested(x, y, folds, grid)
    same(small(x, y, folds, grid), expected)
    same(small(lambda _: x, y, folds, grid), expected)
    assert np.isnan(expected.fold_scores("pearson")).any()


def test_blocks_where_features_stand_still_have_no_correlation():
    x, y, _ = problem(4, n=80)
    folds, grid = contiguous_folds(80, 4), RidgeGrid(ALPHAS, metric="pearson")
    x[40:60] = x[40]
    found = small(x, y, folds, grid)
    same(found, oracle_nested(x, y, folds, grid))
    assert np.isnan(found.fold_scores("pearson")[2]).all()
    assert np.isfinite(found.fold_scores("pearson")[[0, 1, 3]]).all()


def test_nothing_that_may_choose_is_the_first_setting():
    x, y, _ = problem(5, n=40)
    folds, grid = contiguous_folds(40, 4, gap=9), RidgeGrid(ALPHAS)
    same(nested_ridge(x, y, folds, grid), nested_ridge_draws(x, y, folds, grid, [None])[0])


@pytest.mark.parametrize(
    "change",
    [
        {"alphas": (1e-9, 1.0)},
        {"components": (0, 3)},
        {"metric": "spearman"},
        {"shift": 1e7},
        {"scale": 1e-160},
        {"outlier": 1e12},
        {"width": 70},
        {"memory": 2**17},
        {"precision": "float32"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_not_small_is_the_engines(change):
    x, y, _ = problem(6, p=change.get("width", 7))
    if "shift" in change:
        y[:, 30:] += change["shift"]
        x[30:] += change["shift"]
    x[85] *= change.get("outlier", 1.0)
    x *= change.get("scale", 1.0)
    folds = contiguous_folds(90, 4)
    keys = ("components", "metric")
    grid = RidgeGrid(change.get("alphas", ALPHAS), **{k: change[k] for k in keys if k in change})
    compute = Compute(memory_bytes=change.get("memory", 2**30), precision=change.get("precision", "float64"))
    with pytest.raises(NotSmall):
        SmallRidge(y, folds, grid, METRICS, compute).fit(x)
    (engine,) = nested_ridge_draws(x, y, folds, grid, [None], compute=compute)
    same(nested_ridge(x, y, folds, grid, compute=compute), engine, atol=0)


def test_a_map_that_leaves_next_to_nothing_is_left_to_the_rows():
    """A column that is the variable but for 1e-7 of it: products have no digits of what is left, rows have."""
    x, y, m = problem(7)
    x[:, 3] = m + 1e-7 * x[:, 3]
    folds, grid = contiguous_folds(90, 4), RidgeGrid(ALPHAS)
    expected = oracle_nested(Regressed(x, m, linear=False).__call__, y, folds, grid)
    same(small(Regressed(x, m, linear=True), y, folds, grid), expected, atol=1e-7)


def test_a_readout_does_not_depend_on_those_before_it():
    x, y, m = problem(8)
    folds, grid = contiguous_folds(90, 4, gap=1), RidgeGrid(ALPHAS)
    designs = [x, Regressed(x, m, linear=True), x[:, ::-1] + 1.0, Regressed(x, m, linear=False)]
    shared = NestedRidge(y, folds, grid)
    together = [shared.fit(design) for design in designs]
    backwards = [shared.fit(design) for design in designs[::-1]][::-1]
    alone = [nested_ridge(design, y, folds, grid) for design in designs]
    for found in zip(together, backwards, alone, strict=True):
        for metric in METRICS:
            assert len({r.scores(metric).tobytes() for r in found}) == 1
            assert len({r.fold_scores(metric).tobytes() for r in found}) == 1


def test_features_that_are_not_finite_are_named():
    x, y, _ = problem(9)
    x[4, 2] = np.nan
    folds, grid = contiguous_folds(90, 4), RidgeGrid(ALPHAS)
    for design in (x, lambda _: x):
        with pytest.raises(ValueError, match="features must be finite, got nan at row 4, column 2"):
            nested_ridge(design, y, folds, grid)
