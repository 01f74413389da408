"""The nested readout against a slow, obviously right scikit-learn implementation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from lpact.math.ridge import SHARED, RidgeGrid, nested_ridge
from lpact.math.splits import BlockedFolds, contiguous_folds


def pipeline(alpha: float, k: int) -> Pipeline:
    steps: list[tuple[str, object]] = [("scale", StandardScaler())]
    if k:
        steps.append(("pca", PCA(n_components=k, svd_solver="full")))
    return Pipeline([*steps, ("ridge", Ridge(alpha=alpha, solver="svd"))])


def slow_nested(x, responses, folds: BlockedFolds, grid: RidgeGrid):
    """Nested grid search, one target, one fold, one setting at a time."""
    n_lags, n, n_targets = responses.shape
    predicted, observed = np.empty((n, n_targets)), np.empty((n, n_targets))
    baseline = np.empty((n, n_targets))
    chosen = {}
    settings_ = list(itertools.product(range(n_lags), grid.components, range(len(grid.alphas))))
    for outer in range(folds.n_blocks):
        test = np.arange(*folds.bounds(outer))
        for t in range(n_targets):
            means = []
            for lag, k, a in settings_:
                scores = []
                for inner in range(folds.n_blocks):
                    if inner == outer:
                        continue
                    train = folds.train_rows(outer, inner)
                    # Rows that the embargo of the outer block leaves: no other may choose for it.
                    block = np.arange(*folds.bounds(inner))
                    val = np.intersect1d(block, folds.train_rows(outer))
                    if 2 * len(val) < len(block):
                        continue
                    fit = pipeline(grid.alphas[a], k).fit(x[train], responses[lag, train, t])
                    guess = fit.predict(x[val])
                    truth = responses[lag, val, t]
                    if grid.metric == "r2":
                        scores.append(r2_score(truth, guess))
                    else:
                        scores.append(np.corrcoef(truth, guess)[0, 1])
                means.append(np.mean(scores))
            lag, k, a = settings_[int(np.argmax(means))]
            chosen[outer, t] = (lag, k, a)
            train = folds.train_rows(outer)
            fit = pipeline(grid.alphas[a], k).fit(x[train], responses[lag, train, t])
            predicted[test, t] = fit.predict(x[test])
            observed[test, t] = responses[lag, test, t]
            baseline[test, t] = responses[lag, train, t].mean()
    return predicted, observed, baseline, chosen


def simulate(seed: int, n: int, p: int, n_targets: int, n_lags: int):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p)) * rng.uniform(0.1, 10, p) + rng.uniform(-5, 5, p)
    weights = rng.standard_normal((p, n_targets)) / np.sqrt(p)
    signal = (x - x.mean(0)) / x.std(0) @ weights
    responses = np.stack([signal * (lag == n_lags - 1) for lag in range(n_lags)])
    return x, responses + rng.standard_normal(responses.shape)


@pytest.mark.parametrize("metric", ["r2", "pearson"])
@pytest.mark.parametrize(
    ("n", "p", "gap", "components"),
    [(60, 5, 0, (0,)), (61, 8, 2, (0, 2, 5)), (45, 60, 1, (0, 3)), (50, 7, 3, (4,))],
)
def test_equals_scikit_learn(metric, n, p, gap, components):
    x, responses = simulate(n + p, n, p, 3, 2)
    folds = contiguous_folds(n, 4, gap=gap)
    grid = RidgeGrid((0.1, 3.0, 50.0), components, metric)
    fast = nested_ridge(x, responses, folds, grid, keep=("predictions",))
    predicted, observed, baseline, chosen = slow_nested(x, responses, folds, grid)
    np.testing.assert_allclose(fast.predicted, predicted, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(fast.observed, observed)
    np.testing.assert_allclose(fast.baseline, baseline, rtol=0, atol=1e-12)
    for (outer, t), (lag, k, a) in chosen.items():
        got = (fast.lag[outer, t], fast.components[outer, t], fast.alpha[outer, t])
        assert got == (lag, k, a)
    for t in range(3):
        around_mean = (observed - baseline)[:, t], (predicted - baseline)[:, t]
        assert fast.scores("pearson")[t] == pytest.approx(np.corrcoef(*around_mean)[0, 1], abs=1e-8)
        assert fast.scores("spearman")[t] == pytest.approx(spearmanr(*around_mean)[0], abs=1e-8)
        sse = ((observed[:, t] - predicted[:, t]) ** 2).sum()
        sst = ((observed[:, t] - baseline[:, t]) ** 2).sum()
        assert fast.scores("r2")[t] == pytest.approx(1 - sse / sst, abs=1e-8)


def test_leave_one_story_out_equals_scikit_learn():
    x, responses = simulate(3, 70, 6, 2, 2)
    folds = BlockedFolds((0, 15, 35, 45), 70, gap=2)
    grid = RidgeGrid((1.0, 10.0), (0, 3))
    fast = nested_ridge(x, responses, folds, grid, keep=("predictions",))
    predicted, *_ = slow_nested(x, responses, folds, grid)
    np.testing.assert_allclose(fast.predicted, predicted, rtol=0, atol=1e-8)


def test_feature_constant_only_in_training_is_ignored():
    """A column that comes alive in the held-out block has no weight, as in scikit-learn."""
    x, responses = simulate(5, 60, 4, 2, 1)
    x = np.hstack([x, np.zeros((60, 1))])
    folds = contiguous_folds(60, 4)
    x[folds.rows(0), -1] = 1e6
    grid = RidgeGrid((1.0,))
    fast = nested_ridge(x, responses, folds, grid, keep=("predictions",))
    rows = folds.rows(0)
    without = nested_ridge(x[:, :-1], responses, folds, grid, keep=("predictions",))
    np.testing.assert_allclose(fast.predicted[rows], without.predicted[rows], atol=1e-10)


def test_constant_target_is_undefined_and_disturbs_no_other():
    x, responses = simulate(6, 60, 4, 3, 2)
    folds, grid = contiguous_folds(60, 4), RidgeGrid((1.0, 10.0))
    whole = nested_ridge(x, responses, folds, grid, keep=("predictions",))
    responses = responses.copy()
    responses[:, :, 1] = 7.0
    fast = nested_ridge(x, responses, folds, grid, keep=("predictions",))
    assert np.isnan(fast.scores("pearson")[1])
    np.testing.assert_allclose(fast.predicted[:, 1], 7.0)
    np.testing.assert_allclose(fast.predicted[:, [0, 2]], whole.predicted[:, [0, 2]], atol=1e-10)


def test_features_that_never_vary_predict_the_training_mean():
    _, responses = simulate(7, 60, 4, 2, 1)
    folds = contiguous_folds(60, 4)
    for width in (0, 3):
        fast = nested_ridge(
            np.ones((60, width)), responses, folds, RidgeGrid((1.0,)), keep=("predictions",)
        )
        np.testing.assert_allclose(fast.predicted, fast.baseline)


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
    after = nested_ridge(
        x * columns + x_shift * columns, responses * y_scale + y_shift * y_scale, folds, grid
    )
    for metric in ("pearson", "r2"):
        np.testing.assert_allclose(after.scores(metric), before.scores(metric), atol=1e-6)


def test_permuting_targets_permutes_results_and_nothing_else():
    x, responses = simulate(8, 60, 5, 4, 2)
    folds, grid = contiguous_folds(60, 4), RidgeGrid((1.0, 10.0))
    order = [2, 0, 3, 1]
    before = nested_ridge(x, responses, folds, grid).scores("pearson")
    after = nested_ridge(x, responses[:, :, order], folds, grid).scores("pearson")
    np.testing.assert_allclose(after, before[order], atol=1e-12)


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
        spoiled[:, unseen] = 1e3 * np.random.default_rng(block).standard_normal(
            spoiled[:, unseen].shape
        )
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
            found.append(
                nested_ridge(noise, responses, folds, RidgeGrid((alpha,))).scores("pearson")
            )
    for alpha, found in scores.items():
        assert abs(np.mean(found)) < 0.04, alpha


def test_rounding_noise_is_no_feature():
    """What is left of a column after its own value was taken away must not be blown up again."""
    x, responses = simulate(14, 80, 3, 2, 1)
    signal = responses[0, :, :1]
    residue = (3.7 * signal + 1.3) - 3.7 * signal
    assert residue.max() > residue.min()
    folds, grid = contiguous_folds(80, 4), RidgeGrid((1.0,))
    with_residue = nested_ridge(
        np.hstack([x, residue]), responses, folds, grid, keep=("predictions",)
    )
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
    pairs = {
        frozenset(folds.train_rows(a, b).tolist()) for a, b in itertools.combinations(range(4), 2)
    }
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
