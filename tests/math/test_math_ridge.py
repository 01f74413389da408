"""Invariances of the nested readout, and rows that must not enter a fit; `test_math_ridge_exact` has the oracle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpact.math.ridge import SHARED, RidgeGrid, nested_ridge
from lpact.math.splits import contiguous_folds


def simulate(seed: int, n: int, p: int, n_targets: int, n_lags: int):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p)) * rng.uniform(0.1, 10, p) + rng.uniform(-5, 5, p)
    weights = rng.standard_normal((p, n_targets)) / np.sqrt(p)
    signal = (x - x.mean(0)) / x.std(0) @ weights
    responses = np.stack([signal * (lag == n_lags - 1) for lag in range(n_lags)])
    return x, responses + rng.standard_normal(responses.shape)


@settings(deadline=None, max_examples=25)
@given(
    st.integers(0, 10_000),
    st.floats(1e-6, 1e6),
    st.floats(-1e6, 1e6),
    st.floats(1e-6, 1e6),
    st.floats(-1e3, 1e3),
)
def test_scaling_and_shifting_change_nothing(seed, x_scale, x_shift, y_scale, y_shift):
    x, responses = simulate(seed, 50, 4, 2, 2)
    folds, grid = contiguous_folds(50, 4, gap=1), RidgeGrid((1.0, 10.0), (0, 2))
    before = nested_ridge(x, responses, folds, grid, keep=("predictions",))
    columns = np.array([x_scale, 1.0, 3.0, 0.5])
    after = nested_ridge(x * columns + x_shift * columns, responses * y_scale + y_shift * y_scale, folds, grid)
    for metric in ("pearson", "r2"):
        np.testing.assert_allclose(after.scores(metric), before.scores(metric), atol=1e-6)


def test_shared_selection_takes_the_best_mean_over_targets():
    x, responses = simulate(9, 80, 5, 3, 2)
    folds = contiguous_folds(80, 4)
    grid = RidgeGrid((0.1, 10.0, 1000.0), (0, 2), selection=SHARED)
    fast = nested_ridge(x, responses, folds, grid, keep=("predictions",))
    for values in (fast.lag, fast.alpha, fast.components):
        assert (values == values[:, :1]).all()


def test_no_fit_ever_sees_a_held_out_row():
    """Nonsense in the responses of a held-out block and its embargo moves nothing that predicts the block."""
    x, responses = simulate(10, 80, 6, 3, 3)
    folds, grid = contiguous_folds(80, 4, gap=2), RidgeGrid((0.1, 10.0, 1000.0), (0, 3))
    before = nested_ridge(x, responses, folds, grid, keep=("predictions",))
    for block in range(folds.n_blocks):
        rows = folds.rows(block)
        unseen = np.setdiff1d(np.arange(80), folds.train_rows(block))
        assert len(unseen) > rows.stop - rows.start
        spoiled = responses.copy()
        spoiled[:, unseen] = 1e3 * np.random.default_rng(block).standard_normal(spoiled[:, unseen].shape)
        after = nested_ridge(x, spoiled, folds, grid, keep=("predictions",))
        np.testing.assert_allclose(after.predicted[rows], before.predicted[rows], atol=1e-9)
        np.testing.assert_array_equal(after.lag[block], before.lag[block])
        np.testing.assert_array_equal(after.alpha[block], before.alpha[block])


def test_no_scaling_or_rotation_ever_sees_a_held_out_row():
    """Nonsense in some of a block's features leaves the predictions of its other rows alone.

    A readout that standardises or rotates on all rows moves them.
    """
    x, responses = simulate(13, 80, 6, 3, 2)
    folds, grid = contiguous_folds(80, 4, gap=2), RidgeGrid((0.1, 10.0), (0, 3))
    before = nested_ridge(x, responses, folds, grid, keep=("predictions",))
    for block in range(folds.n_blocks):
        start, stop = folds.bounds(block)
        spoiled = x.copy()
        spoiled[start : start + 8] = 1e3 * np.random.default_rng(block).standard_normal((8, 6))
        after = nested_ridge(spoiled, responses, folds, grid, keep=("predictions",))
        kept = slice(start + 8, stop)
        np.testing.assert_allclose(after.predicted[kept], before.predicted[kept], atol=1e-9)


def test_a_readout_without_information_scores_about_zero_however_much_it_shrinks():
    """Block means lean away from their training means; deviations from them do not."""
    scores = {alpha: [] for alpha in (1.0, 1e3, 1e6)}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        noise = rng.standard_normal((200, 6))
        responses = np.cumsum(rng.standard_normal((200, 4)), axis=0)[None]
        folds = contiguous_folds(200, 4)
        for alpha, found in scores.items():
            found.append(nested_ridge(noise, responses, folds, RidgeGrid((alpha,))).scores("pearson"))
    for alpha, found in scores.items():
        assert abs(np.mean(found)) < 0.04, alpha


def test_rounding_noise_is_no_feature():
    """What is left of a column after its own value was taken away must not be blown up again."""
    x, responses = simulate(14, 80, 3, 2, 1)
    signal = responses[0, :, :1]
    residue = (3.7 * signal + 1.3) - 3.7 * signal
    assert residue.max() > residue.min()
    folds, grid = contiguous_folds(80, 4), RidgeGrid((1.0,))
    with_residue = nested_ridge(np.hstack([x, residue]), responses, folds, grid, keep=("predictions",))
    without = nested_ridge(x, responses, folds, grid, keep=("predictions",))
    np.testing.assert_allclose(with_residue.predicted, without.predicted, atol=1e-10)


def test_design_is_only_given_training_rows():
    """A fitted design is asked once a training set, and no set holds a row of the block it predicts."""
    x, responses = simulate(11, 60, 4, 2, 1)
    folds = contiguous_folds(60, 4, gap=2)
    asked = []

    def design(train):
        asked.append(frozenset(train.tolist()))
        return x

    nested_ridge(design, responses, folds, RidgeGrid((1.0,)))
    pairs = {frozenset(folds.train_rows(a, b).tolist()) for a, b in itertools.combinations(range(4), 2)}
    outer = {frozenset(folds.train_rows(a).tolist()) for a in range(4)}
    assert set(asked) == pairs | outer
    assert len(asked) == len(pairs) + len(outer)


def test_bad_shapes_are_named():
    x, responses = simulate(12, 60, 4, 2, 1)
    with pytest.raises(ValueError, match="folds have 50 rows"):
        nested_ridge(x, responses, contiguous_folds(50, 4), RidgeGrid((1.0,)))
    with pytest.raises(ValueError, match="at least 3 blocks"):
        nested_ridge(x, responses, contiguous_folds(60, 2), RidgeGrid((1.0,)))
    fit = nested_ridge(x, responses, contiguous_folds(60, 3), RidgeGrid((1.0,)))
    with pytest.raises(ValueError, match="unknown metric"):
        fit.scores("accuracy")
