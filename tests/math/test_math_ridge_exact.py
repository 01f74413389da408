"""The nested ridge engine against scikit-learn, one target, fold and setting at a time (``ridge_oracle``).

Settings are the same, scores and predictions equal to 1e-8: in units of the target's spread for predictions, absolute
for scores (relative where a score exceeds 1 in size).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from ridge_oracle import (
    METRICS,
    assert_close_in_units,
    assert_same_readout,
    assert_same_scores,
    choice_is_clear,
    fit_one,
    least_memory,
    oracle_cross_validated,
    oracle_nested,
    pipeline,
    response_units,
    training_rows,
    validation_score,
    varying,
)
from scipy import stats
from scipy.linalg import hadamard
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, PredefinedSplit

from lpact.math.ridge import (
    Compute,
    RidgeGrid,
    cross_validated_ridge,
    nested_ridge,
    nested_ridge_draws,
)
from lpact.math.splits import BlockedFolds, contiguous_folds

FORMS = ("auto", "primal", "kernel")
KEEP = ("predictions", "weights")


# --- data ---------------------------------------------------------------------------------------------------------


def simulate(seed, n, p, n_targets, n_lags, noise=1.0):
    """Features of mixed scale and offset; responses that follow them at the last lag only."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p)) * rng.uniform(0.1, 10, p) + rng.uniform(-5, 5, p)
    weights = rng.standard_normal((p, n_targets)) / np.sqrt(p)
    signal = (x - x.mean(0)) / x.std(0) @ weights
    responses = np.stack([signal * (lag == n_lags - 1) for lag in range(n_lags)])
    return x, responses + noise * rng.standard_normal(responses.shape)


def blocks_of(sizes, gap=0):
    return BlockedFolds(tuple(int(s) for s in np.cumsum([0, *sizes[:-1]])), int(sum(sizes)), gap)


@dataclass(frozen=True)
class Problem:
    x: np.ndarray
    responses: np.ndarray
    folds: BlockedFolds
    grid: RidgeGrid
    unpenalised: np.ndarray | None = None
    drawn_from: str = ""

    def _repr_pretty_(self, printer, cycle) -> None:
        """What hypothesis prints: where the numbers come from, not the numbers."""
        n_lags, n, n_targets = self.responses.shape
        m = 0 if self.unpenalised is None else self.unpenalised.shape[1]
        shape = f"n={n} p={self.x.shape[1]} m={m} lags={n_lags} t={n_targets}"
        printer.text(f"<{shape} {self.folds} {self.grid} {self.drawn_from}>")


FEATURE_KINDS = (
    "plain",
    "constant",
    "constant but for rounding",
    "duplicate",
    "multiple",
    "alive in one block",
    "dead in one block",
    "tiny",
    "very tiny",
    "huge",
    "very huge",
    "offset",
    "outlier",
    "ones and zeros",
)
TARGET_KINDS = (
    "plain",
    "constant",
    "constant in one block",
    "alive in one block",
    "dead at one lag",
    "tiny",
    "very tiny",
    "huge",
    "very huge",
    "offset",
    "whole numbers",
    "exact",
)
SCALE = {"tiny": 1e-12, "very tiny": 1e-150, "huge": 1e12, "very huge": 1e150}


def with_feature(x, j, kind, folds, rng):
    """Give column j of x (a copy is changed) the character of ``kind``."""
    x = x.copy()
    n = len(x)
    block = slice(*folds.bounds(int(rng.integers(folds.n_blocks))))
    if kind in SCALE:
        x[:, j] *= SCALE[kind]
    elif kind == "constant":
        x[:, j] = rng.choice([0.0, 0.1, -7.3e5])
    elif kind == "constant but for rounding":
        x[:, j] = 0.7 * (1.0 + np.finfo(float).eps * rng.integers(0, 2, n))
    elif kind == "duplicate":
        x[:, j] = x[:, int(rng.integers(x.shape[1]))]
    elif kind == "multiple":
        x[:, j] = 5.0 - 3.0 * x[:, int(rng.integers(x.shape[1]))]
    elif kind == "alive in one block":
        alive = 1e6 * x[block, j]
        x[:, j] = rng.choice([0.0, 0.1])
        x[block, j] = alive
    elif kind == "dead in one block":
        x[block, j] = 0.1
    elif kind == "offset":
        x[:, j] += 1e6 * x[:, j].std()
    elif kind == "outlier":
        x[int(rng.integers(n)), j] = 1e9
    elif kind == "ones and zeros":
        x[:, j] = rng.integers(0, 2, n)
    return x


def with_target(responses, t, kind, folds, rng, x):
    """Give target t (a copy is changed) the character of ``kind``."""
    responses = responses.copy()
    block = slice(*folds.bounds(int(rng.integers(folds.n_blocks))))
    y = responses[:, :, t]
    if kind in SCALE:
        y *= SCALE[kind]
    elif kind == "constant":
        y[:] = rng.choice([0.0, 0.1, -7.3e5])
    elif kind == "constant in one block":
        y[:, block] = 0.1
    elif kind == "alive in one block":
        alive = y[:, block].copy()
        y[:] = rng.choice([0.0, 0.1])
        y[:, block] = alive
    elif kind == "dead at one lag":
        y[0] = 0.1
    elif kind == "offset":
        y += 1e6
    elif kind == "whole numbers":
        y[:] = np.round(y)
    elif kind == "exact":
        usable = varying(x)
        z = x[:, usable]
        if z.shape[1]:
            y[-1] = ((z - z.mean(0)) / z.std(0))[:, 0]
    return responses


def cut_is_unique(x, folds, k, unpenalised=None):
    """Whether no training set has two eigenvalues that are (nearly) tied at the k-th principal axis."""
    held = [(b,) for b in range(folds.n_blocks)]
    held += list(itertools.combinations(range(folds.n_blocks), 2))
    for blocks in [(), *held]:
        train = training_rows(folds, *blocks)
        z = x[train][:, varying(x[train])]
        if k >= min(z.shape):
            continue
        z = (z - z.mean(0)) / z.std(0)
        if unpenalised is not None:
            u = np.column_stack([np.ones(len(train)), unpenalised[train]])
            z = z - u @ np.linalg.lstsq(u, z, rcond=1e-10)[0]
        s = np.linalg.svd(z, compute_uv=False) ** 2
        if s[k - 1] > 1e-8 * s[0] and s[k - 1] - s[k] < 1e-4 * s[0]:
            return False
    return True


@st.composite
def fold_sets(draw, smallest=2, largest=12):
    """Blocks of uneven sizes and a gap that leaves every training set at least four rows."""
    sizes = draw(st.lists(st.integers(smallest, largest), min_size=3, max_size=5))
    gap = draw(st.sampled_from([0, 0, 1, 2, 5]))
    folds = blocks_of(sizes, gap)
    pairs = itertools.combinations(range(folds.n_blocks), 2)
    assume(all(len(training_rows(folds, a, b)) >= 4 for a, b in pairs))
    return folds


@st.composite
def problems(draw, most_unpenalised=0, fewest_unpenalised=0):
    """Shapes, folds and a character for every feature and target; the numbers come from a seed."""
    folds = draw(fold_sets())
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    notes = [f"seed={seed}"]
    n = folds.n_rows
    p = draw(st.one_of(st.integers(1, 6), st.integers(n - 2, n + 10)))
    n_targets, n_lags = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    x, responses = simulate(rng.integers(2**32), n, p, n_targets, n_lags)
    n_odd = draw(st.integers(0, min(p, 4)))
    for j in range(n_odd):
        kind = draw(st.sampled_from(FEATURE_KINDS))
        event(f"feature: {kind}")
        notes.append(f"feature {j}: {kind}")
        x = with_feature(x, j, kind, folds, rng)
    for t in range(n_targets):
        kind = draw(st.sampled_from(TARGET_KINDS))
        event(f"target: {kind}")
        notes.append(f"target {t}: {kind}")
        responses = with_target(responses, t, kind, folds, rng, x)
    m = draw(st.integers(fewest_unpenalised, most_unpenalised))
    unpenalised = rng.standard_normal((n, m)) if m else None
    if m and varying(x)[-1]:
        unpenalised[:, 0] += rng.standard_normal() * (x[:, -1] - x[:, -1].mean()) / x[:, -1].std()
    alphas = draw(
        st.lists(
            st.sampled_from([1e-3, 0.1, 1.0, 10.0, 300.0, 1e5]),
            min_size=1,
            max_size=3,
            unique=True,
        )
    )
    components = draw(st.lists(st.sampled_from([0, 1, 2, 3, 60]), min_size=1, max_size=2, unique=True))
    assume(all(k == 0 or cut_is_unique(x, folds, k, unpenalised) for k in components))
    event("n < p" if p > n else "p <= n")
    grid = RidgeGrid(tuple(alphas), tuple(components), draw(st.sampled_from(METRICS)))
    return Problem(x, responses, folds, grid, unpenalised, "; ".join(notes))


def generated(examples):
    return settings(
        deadline=None,
        max_examples=examples,
        suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
    )


def assert_all_forms_equal_the_oracle(problem: Problem, forms=FORMS, drawn=False) -> None:
    args = (problem.x, problem.responses, problem.folds, problem.grid)
    expected = oracle_nested(*args, unpenalised=problem.unpenalised)
    if drawn:
        assume(choice_is_clear(expected.inner))
    assert choice_is_clear(expected.inner)
    for form in forms:
        got = nested_ridge(*args, unpenalised=problem.unpenalised, form=form, keep=KEEP)
        assert_same_readout(got, expected, problem.responses)
        assert_weights_predict(got, problem)


def assert_weights_predict(got, problem: Problem) -> None:
    """intercept + x @ weights (+ u @ nuisance weights) is the prediction, in every outer block."""
    unit = response_units(problem.responses)
    for block in range(problem.folds.n_blocks):
        rows = slice(*problem.folds.bounds(block))
        parts = [problem.x[rows] @ got.weights[block]]
        size = np.abs(problem.x[rows]) @ np.abs(got.weights[block])
        if problem.unpenalised is not None:
            u = problem.unpenalised[rows]
            parts.append(u @ got.nuisance_weights[block])
            size = size + np.abs(u) @ np.abs(got.nuisance_weights[block])
        # Terms as large as x @ weights cancel where features are far from zero: units of the largest.
        size = size + unit + np.abs(got.intercept[block])
        assert_close_in_units(got.intercept[block] + sum(parts), got.predicted[rows], size, tolerance=1e-10)
    assert got.weights.shape == (
        problem.folds.n_blocks,
        problem.x.shape[1],
        problem.responses.shape[2],
    )


# --- generated problems -------------------------------------------------------------------------------------------


@generated(20)
@given(problems())
def test_settings_scores_and_predictions_equal_scikit_learn(problem):
    assert_all_forms_equal_the_oracle(problem, drawn=True)


@generated(10)
@given(problems(3, 1))
def test_with_unpenalised_columns_all_equals_scikit_learn(problem):
    assert_all_forms_equal_the_oracle(problem, drawn=True)


# --- one property at a time ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [5, 45])
@pytest.mark.parametrize("kind", FEATURE_KINDS)
def test_every_kind_of_feature(kind, p):
    """Two features of the kind among others, p < n and n < p."""
    folds = contiguous_folds(40, 4, gap=1)
    x, responses = simulate(31 + p, 40, p, 2, 1)
    rng = np.random.default_rng(p)
    x = with_feature(x, 1, kind, folds, rng)
    x = with_feature(x, 3, kind, folds, rng)
    components = tuple(k for k in (0, 3) if k == 0 or cut_is_unique(x, folds, k))
    problem = Problem(x, responses, folds, RidgeGrid((0.1, 20.0), components))
    assert_all_forms_equal_the_oracle(problem)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", TARGET_KINDS)
def test_every_kind_of_target(kind, metric):
    """A target of the kind beside a plain one, at two lags."""
    folds = contiguous_folds(40, 4, gap=1)
    x, responses = simulate(7, 40, 4, 2, 2)
    responses = with_target(responses, 1, kind, folds, np.random.default_rng(2), x)
    problem = Problem(x, responses, folds, RidgeGrid((0.1, 20.0), (0, 2), metric))
    assert_all_forms_equal_the_oracle(problem, forms=("primal", "kernel"))


def test_mixed_scales_in_one_matrix():
    folds = contiguous_folds(48, 4, gap=1)
    x, responses = simulate(11, 48, 9, 5, 1)
    x *= np.array([1e-150, 1e150, 1e-12, 1e12, 1.0, 1e-30, 1e30, 1.0, 1.0])
    x[:, 4] += 1e6
    responses = responses * np.array([1e-150, 1e150, 1e-12, 1e12, 1.0])
    problem = Problem(x, responses, folds, RidgeGrid((0.1, 200.0), (0, 4)))
    assert_all_forms_equal_the_oracle(problem)


@pytest.mark.parametrize("metric", METRICS)
def test_a_huge_outlier_in_one_block_costs_the_others_no_digit(metric):
    """1e9 standard deviations in one row: a mean over all rows would take eight digits from every other row."""
    folds = contiguous_folds(48, 4, gap=1)
    x, responses = simulate(12, 48, 4, 2, 1)
    x[5, 0] = 1e9 * x[:, 0].std()
    responses = np.concatenate([responses, responses[:, :, :1]], axis=2)
    responses[:, 6, 2] = 1e9
    problem = Problem(x, responses, folds, RidgeGrid((0.1, 5.0), (0,), metric))
    assert_all_forms_equal_the_oracle(problem)


@pytest.mark.parametrize("size", [300.0, 3e3, 3e4, 1e6])
@pytest.mark.parametrize(("p", "alpha", "form"), [(6, 1e-6, "auto"), (90, 1e-6, "auto"), (90, 0.1, "primal")])
def test_wild_rows_in_a_block_cost_its_readout_no_digit(p, alpha, form, size):
    """Some rows of a block exceed all others by orders of magnitude in every feature; its training rows do not."""
    folds = contiguous_folds(80, 4, gap=1)
    x, responses = simulate(121, 80, p, 2, 1)
    x[20:28] = size * np.random.default_rng(0).standard_normal((8, p))
    grid = RidgeGrid((alpha,))
    got = nested_ridge(x, responses, folds, grid, form=form, keep=KEEP)
    expected = oracle_nested(x, responses, folds, grid)
    clean = slice(28, 40)
    np.testing.assert_allclose(got.predicted[clean], expected.predicted[clean], rtol=0, atol=1e-8)
    np.testing.assert_allclose(got.weights[1], expected.weights[1], rtol=0, atol=1e-8)


def test_heavy_shrinkage_beside_a_large_mean():
    """Deviations of 1e-8 around a mean of 1e6: mean + deviation has no digit left of them, their correlation does."""
    folds = contiguous_folds(60, 4, gap=1)
    x, responses = simulate(13, 60, 5, 2, 1)
    problem = Problem(x + 1e6, responses + 1e6, folds, RidgeGrid((1e10,), (0, 2), "pearson"))
    assert_all_forms_equal_the_oracle(problem)


def test_a_feature_constant_only_in_training_has_no_weight():
    folds = contiguous_folds(60, 4, gap=2)
    x, responses = simulate(5, 60, 4, 2, 1)
    for constant in (0.0, 0.1, -3e7):
        x[:, 2] = constant
        x[folds.rows(0), 2] = 1e6 * np.random.default_rng(0).standard_normal(15)
        grid = RidgeGrid((1.0, 30.0))
        expected = oracle_nested(x, responses, folds, grid)
        for form in FORMS:
            got = nested_ridge(x, responses, folds, grid, form=form, keep=KEEP)
            np.testing.assert_array_equal(got.weights[0, 2], 0.0)
            assert (np.abs(got.weights[1:, 2]) > 0).all()
            assert_same_readout(got, expected, responses)


@pytest.mark.parametrize("width", [0, 3])
@pytest.mark.parametrize("form", FORMS)
def test_features_that_never_vary_predict_the_training_mean(form, width):
    _, responses = simulate(7, 60, 4, 2, 2)
    folds = contiguous_folds(60, 4)
    x = np.full((60, width), 0.1)
    got = nested_ridge(x, responses, folds, RidgeGrid((1.0,), (0, 1)), form=form, keep=KEEP)
    np.testing.assert_array_equal(got.predicted, got.baseline)
    for block in range(4):
        train = training_rows(folds, block)
        means = responses[got.lag[block], :, [0, 1]][:, train].mean(axis=1)
        np.testing.assert_allclose(got.baseline[folds.rows(block)][0], means, rtol=1e-13)
    assert np.isnan(got.scores("pearson")).all()
    assert np.isnan(got.scores("spearman")).all()
    np.testing.assert_allclose(got.scores("r2"), 0.0, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("constant", [0.0, 0.1, -7.3e5])
def test_a_constant_target_is_undefined_and_disturbs_no_other(constant, form):
    x, responses = simulate(6, 60, 4, 3, 2)
    folds, grid = contiguous_folds(60, 4), RidgeGrid((1.0, 10.0), (0, 2))
    alone = nested_ridge(x, responses[:, :, [0, 2]], folds, grid, form=form, keep=KEEP)
    responses[:, :, 1] = constant
    got = nested_ridge(x, responses, folds, grid, form=form, keep=KEEP)
    for metric in METRICS:
        assert np.isnan(got.scores(metric)[1])
        assert np.isnan(got.fold_scores(metric)[:, 1]).all()
    np.testing.assert_allclose(got.predicted[:, 1], constant, rtol=1e-14, atol=0)
    np.testing.assert_array_equal(got.lag[:, 1], 0)
    np.testing.assert_array_equal(got.alpha[:, 1], 0)
    np.testing.assert_allclose(got.predicted[:, [0, 2]], alone.predicted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("gap", [0, 1, 3, 6])
def test_gaps_and_uneven_folds(gap, metric):
    """A gap of 6 is more than half of some blocks: they choose nothing for their neighbours."""
    folds = blocks_of((9, 14, 8, 20, 11), gap)
    x, responses = simulate(40 + gap, folds.n_rows, 6, 2, 2)
    problem = Problem(x, responses, folds, RidgeGrid((0.1, 1e3), (0, 2), metric))
    assert_all_forms_equal_the_oracle(problem)


def test_blocks_that_the_embargo_empties_choose_nothing():
    """A block of one row has no R² and no correlation; one within the gap has no rows: both are passed over."""
    folds = blocks_of((16, 1, 3, 14, 18), 2)
    x, responses = simulate(44, folds.n_rows, 5, 2, 1)
    for metric in METRICS:
        problem = Problem(x, responses, folds, RidgeGrid((0.1, 10.0), (0, 2), metric))
        assert_all_forms_equal_the_oracle(problem)


@pytest.mark.parametrize("p", [6, 75])
def test_leave_one_story_out(p):
    folds = BlockedFolds((0, 15, 35, 45), 70, gap=2)
    x, responses = simulate(3, 70, p, 3, 2)
    problem = Problem(x, responses, folds, RidgeGrid((1.0, 10.0, 100.0), (0, 3)))
    assert_all_forms_equal_the_oracle(problem)


def test_one_row_less_than_features_and_one_more():
    """Training sets whose rows and columns are about as many: the kernel loses one dimension to the mean."""
    folds = contiguous_folds(32, 4)
    for p in (15, 16, 17, 23, 24, 25):
        x, responses = simulate(p, 32, p, 1, 1)
        problem = Problem(x, responses, folds, RidgeGrid((1e-3, 1.0), (0, p - 1, p)))
        assert_all_forms_equal_the_oracle(problem)


# --- tied eigenvalues ---------------------------------------------------------------------------------------------


def orthogonal_design(n_blocks, repeats):
    """Blocks of 8 rows, each with orthogonal, centred columns of variance 1; column j is there repeats[j] times.

    The correlation matrix of any training set has eigenvalue ``r`` (times n) once for every column repeated r times.
    """
    block = hadamard(8)[:, 1:].astype(float)
    rng = np.random.default_rng(4)
    stacked = np.vstack([block[rng.permutation(8)] for _ in range(n_blocks)])
    return np.repeat(stacked[:, : len(repeats)], repeats, axis=1)


@pytest.mark.parametrize("metric", ["r2", "pearson"])
def test_tied_eigenvalues_cut_between_clusters(metric):
    """Eigenvalues 3n, 3n, 2n, 2n, 2n, n, n: axes within a cluster are arbitrary, the first 2 or 5 together are not."""
    x = orthogonal_design(5, (2, 3, 2, 3, 1, 2, 1))
    folds = contiguous_folds(40, 5)
    rng = np.random.default_rng(8)
    responses = (x @ rng.standard_normal((x.shape[1], 3)) + 3 * rng.standard_normal((40, 3)))[None]
    problem = Problem(x, responses, folds, RidgeGrid((0.5, 20.0), (2, 5, 0, 7), metric))
    assert_all_forms_equal_the_oracle(problem)


@pytest.mark.parametrize("form", FORMS)
def test_all_eigenvalues_tied(form):
    """White features: a ridge is a shrunken mean of products, whatever axes the cluster is given."""
    x = orthogonal_design(5, (1,) * 7)
    folds = contiguous_folds(40, 5)
    rng = np.random.default_rng(9)
    y = x @ rng.standard_normal((7, 3)) + rng.standard_normal((40, 3))
    got = nested_ridge(x, y[None], folds, RidgeGrid((4.0,), (0,)), form=form, keep=KEEP)
    for block in range(5):
        train, rows = training_rows(folds, block), folds.rows(block)
        weights = x[train].T @ (y[train] - y[train].mean(0)) / (len(train) + 4.0)
        np.testing.assert_allclose(got.weights[block], weights, rtol=0, atol=1e-12)
        np.testing.assert_allclose(got.predicted[rows], y[train].mean(0) + x[rows] @ weights, rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_cutting_a_tied_cluster_is_still_a_ridge_on_k_orthogonal_axes(form):
    """Which axes is arbitrary. Any choice gives P c/(n + a), P a projection of rank k, c the products with y."""
    x = orthogonal_design(5, (1,) * 7)
    folds = contiguous_folds(40, 5)
    rng = np.random.default_rng(10)
    y = x @ rng.standard_normal((7, 9)) + rng.standard_normal((40, 9))
    got = nested_ridge(x, y[None], folds, RidgeGrid((4.0,), (3,)), form=form, keep=KEEP)
    for block in range(5):
        train = training_rows(folds, block)
        full = x[train].T @ (y[train] - y[train].mean(0)) / (len(train) + 4.0)
        projection = got.weights[block] @ np.linalg.pinv(full)  # 9 targets span all 7 directions
        np.testing.assert_allclose(projection, projection.T, atol=1e-9)
        np.testing.assert_allclose(projection @ projection, projection, atol=1e-9)
        assert np.trace(projection) == pytest.approx(3.0, abs=1e-9)


# --- weights and unpenalised columns ------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [5, 60])
def test_weights_equal_scikit_learn(p):
    folds = contiguous_folds(48, 4, gap=1)
    x, responses = simulate(21, 48, p, 3, 1)
    x[:, 1] = x[:, 0]
    x[:, 2] = 0.1
    rng = np.random.default_rng(3)
    unpenalised = rng.standard_normal((48, 2))
    grid = RidgeGrid((0.1, 20.0), (0, 2))
    for u in (None, unpenalised):
        expected = oracle_nested(x, responses, folds, grid, unpenalised=u)
        for form in FORMS:
            got = nested_ridge(x, responses, folds, grid, unpenalised=u, form=form, keep=KEEP)
            np.testing.assert_allclose(got.weights, expected.weights, rtol=0, atol=1e-10)
            np.testing.assert_allclose(got.intercept, expected.intercept, rtol=0, atol=1e-10)
            np.testing.assert_array_equal(got.weights[:, 2], 0.0)
            np.testing.assert_allclose(got.weights[:, 0], got.weights[:, 1], rtol=0, atol=1e-12)
            if u is not None:
                np.testing.assert_allclose(got.nuisance_weights, expected.nuisance_weights, rtol=0, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("p", [4, 70])
def test_unpenalised_columns_minimise_what_they_should(p, form):
    """Weights solve the normal equations of |y − μ − Nθ − Zb|² + a|b|², written out as one linear system."""
    folds = contiguous_folds(60, 4, gap=1)
    x, responses = simulate(51, 60, p, 2, 1)
    u = np.random.default_rng(5).standard_normal((60, 3)) + 0.5 * x[:, :3]
    got = nested_ridge(x, responses, folds, RidgeGrid((7.0,)), unpenalised=u, form=form, keep=KEEP)
    for block in range(4):
        train = training_rows(folds, block)
        scale = x[train].std(0)
        z = (x[train] - x[train].mean(0)) / scale
        a = np.hstack([np.ones((len(train), 1)), u[train], z])
        penalty = np.diag(np.concatenate([np.zeros(4), np.full(p, 7.0)]))
        solved = np.linalg.solve(a.T @ a + penalty, a.T @ responses[0, train])
        np.testing.assert_allclose(got.nuisance_weights[block], solved[1:4], rtol=0, atol=1e-9)
        np.testing.assert_allclose(got.weights[block], solved[4:] / scale[:, None], rtol=0, atol=1e-9)


@pytest.mark.parametrize("p", [5, 60])
def test_odd_unpenalised_columns(p):
    """Duplicate, constant, constant only in training, huge, and equal to a feature."""
    folds = contiguous_folds(48, 4, gap=1)
    x, responses = simulate(61, 48, p, 2, 1)
    rng = np.random.default_rng(6)
    plain = rng.standard_normal((48, 1))
    alive = np.zeros((48, 1))
    alive[folds.rows(1)] = 1e6 * rng.standard_normal((12, 1))
    for u in (
        np.hstack([plain, plain]),
        np.hstack([plain, np.full((48, 1), 0.1)]),
        np.hstack([plain, alive]),
        np.hstack([1e12 * plain, 1e-12 * rng.standard_normal((48, 1)) + 1e-6]),
        x[:, :1].copy(),
        np.full((48, 1), 0.1),
        np.zeros((48, 0)),
    ):
        problem = Problem(x, responses, folds, RidgeGrid((0.1, 20.0), (0, 2)), u)
        assert_all_forms_equal_the_oracle(problem)


def test_a_response_made_of_unpenalised_columns_is_predicted_at_any_penalty():
    folds = contiguous_folds(48, 4)
    x, _ = simulate(62, 48, 5, 1, 1)
    u = np.random.default_rng(7).standard_normal((48, 2))
    y = 3.0 + u @ np.array([[2.0, 0.0], [-1.0, 5.0]])
    got = nested_ridge(x, y[None], folds, RidgeGrid((1e9,)), unpenalised=u, keep=KEEP)
    np.testing.assert_allclose(got.predicted, y, rtol=0, atol=1e-10)
    np.testing.assert_allclose(got.scores("r2"), 1.0, rtol=0, atol=1e-10)


# --- finite impulse responses -------------------------------------------------------------------------------------


def test_stacked_lags():
    """A finite impulse response: features of several delays side by side, one lag of the response."""
    n, delays = 64, 4
    folds = contiguous_folds(n, 4, gap=delays - 1)
    rng = np.random.default_rng(71)
    base = rng.standard_normal((n, 5))
    stacked = np.hstack([np.vstack([np.zeros((d, 5)), base[: n - d]]) for d in range(delays)])
    kernel = rng.standard_normal((20, 3))
    responses = (stacked @ kernel + rng.standard_normal((n, 3)))[None]
    problem = Problem(stacked, responses, folds, RidgeGrid((0.1, 10.0), (0, 6)))
    assert_all_forms_equal_the_oracle(problem)


# --- fitted designs -----------------------------------------------------------------------------------------------


def stripped(x, confound):
    """Features less what a confound explains of them, fitted on the training rows only."""

    def design(train):
        c = np.column_stack([np.ones(len(confound)), confound])
        return x - c @ np.linalg.lstsq(c[train], x[train], rcond=None)[0]

    return design


@pytest.mark.parametrize("p", [5, 50])
def test_a_fitted_design_equals_scikit_learn(p):
    folds = contiguous_folds(44, 4, gap=1)
    x, responses = simulate(81, 44, p, 2, 2)
    confound = np.random.default_rng(8).standard_normal((44, 2)) + x[:, :2]
    design = stripped(x, confound)
    grid = RidgeGrid((0.1, 20.0), (0, 2))
    expected = oracle_nested(design, responses, folds, grid)
    expected_fit = oracle_cross_validated(design, responses, folds, grid)
    for form in FORMS:
        got = nested_ridge(design, responses, folds, grid, form=form, keep=KEEP)
        assert_same_readout(got, expected, responses)
        fit = cross_validated_ridge(design, responses, folds, grid, form=form)
        assert_same_fit(fit, expected_fit, responses)


def test_a_fitted_design_that_is_not_fitted_equals_the_array():
    folds = contiguous_folds(44, 4, gap=1)
    x, responses = simulate(82, 44, 5, 2, 2)
    grid = RidgeGrid((0.1, 20.0), (0, 2))
    fixed = nested_ridge(x, responses, folds, grid, keep=KEEP)
    called = nested_ridge(lambda _: x, responses, folds, grid, keep=KEEP)
    np.testing.assert_allclose(called.predicted, fixed.predicted, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(called.alpha, fixed.alpha)


# --- draws --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("p", [5, 60])
@pytest.mark.parametrize("with_unpenalised", [False, True])
def test_draws_equal_readouts_of_reordered_responses(with_unpenalised, p, form):
    """Circular shifts, a shuffle of rows and of blocks, a reversal, and the responses as they are."""
    folds = contiguous_folds(44, 4, gap=1)
    x, responses = simulate(91, 44, p, 3, 2)
    rng = np.random.default_rng(9)
    u = rng.standard_normal((44, 2)) if with_unpenalised else None
    rows = np.arange(44)
    orders = [
        None,
        np.roll(rows, 7),
        np.roll(rows, -13),
        rng.permutation(44),
        np.concatenate([rows[22:33], rows[:11], rows[33:], rows[11:22]]),
        rows[::-1].copy(),
    ]
    grid = RidgeGrid((0.1, 20.0), (0, 2))
    drawn = nested_ridge_draws(x, responses, folds, grid, iter(orders), unpenalised=u, form=form, keep=KEEP)
    assert len(drawn) == len(orders)
    for order, got in zip(orders, drawn, strict=True):
        ordered = responses if order is None else responses[:, order]
        again = nested_ridge(x, ordered, folds, grid, unpenalised=u, form=form, keep=KEEP)
        for name in ("lag", "alpha", "components", "observed"):
            np.testing.assert_array_equal(getattr(got, name), getattr(again, name))
        for name in ("predicted", "baseline", "weights", "intercept"):
            np.testing.assert_allclose(getattr(got, name), getattr(again, name), rtol=0, atol=1e-11)
        for metric in METRICS:
            assert_same_scores(got.scores(metric), again.scores(metric), 1e-11)
    if form == "auto":
        expected = oracle_nested(x, responses[:, orders[3]], folds, grid, unpenalised=u)
        assert_same_readout(drawn[3], expected, responses)


def test_draws_of_a_fitted_design():
    folds = contiguous_folds(44, 4, gap=1)
    x, responses = simulate(92, 44, 5, 2, 1)
    design = stripped(x, x[:, :1] + np.random.default_rng(1).standard_normal((44, 1)))
    grid = RidgeGrid((0.1, 20.0), (0, 2))
    orders = [np.roll(np.arange(44), shift) for shift in (0, 5, 20)]
    drawn = nested_ridge_draws(design, responses, folds, grid, orders, keep=KEEP)
    for order, got in zip(orders, drawn, strict=True):
        expected = oracle_nested(design, responses[:, order], folds, grid)
        assert_same_readout(got, expected, responses)


def test_no_draws():
    x, responses = simulate(93, 44, 5, 2, 1)
    assert nested_ridge_draws(x, responses, contiguous_folds(44, 4), RidgeGrid((1.0,)), []) == []


# --- settings over all blocks -------------------------------------------------------------------------------------


def assert_same_fit(got, expected, responses, tolerance=1e-8):
    for name in ("lag", "components", "alpha"):
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name), err_msg=name)
    assert_same_scores(got.score, expected.score, tolerance)
    weight_unit = np.abs(expected.weights).max(axis=1, keepdims=True) + 1e-300
    assert_close_in_units(got.weights, expected.weights, weight_unit, tolerance)
    unit = response_units(responses) + np.abs(expected.intercept)
    assert_close_in_units(got.intercept, expected.intercept, unit, tolerance)


@generated(10)
@given(problems(2))
def test_the_cross_validated_fit_equals_scikit_learn(problem):
    args = (problem.x, problem.responses, problem.folds, problem.grid)
    u = problem.unpenalised
    expected = oracle_cross_validated(*args, unpenalised=u)
    assume(choice_is_clear(expected.grid_scores))
    for form in FORMS:
        got = cross_validated_ridge(*args, unpenalised=u, form=form)
        for name in ("lag", "components", "alpha"):
            np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))
        assert_same_scores(got.score, expected.score)
        # The fit predicts from raw weights: where features are far from zero, large terms cancel.
        size = np.abs(problem.x) @ np.abs(expected.weights) + np.abs(expected.intercept)
        unit = response_units(problem.responses) + np.abs(expected.predicted) + 1e-6 * size
        assert_close_in_units(got.predict(problem.x, u), expected.predicted, unit)


@pytest.mark.parametrize("p", [6, 60])
@pytest.mark.parametrize("n_blocks", [2, 4])
def test_the_cross_validated_fit_and_its_weights(n_blocks, p):
    folds = contiguous_folds(48, n_blocks, gap=2)
    x, responses = simulate(101, 48, p, 3, 2)
    u = np.random.default_rng(1).standard_normal((48, 2))
    grid = RidgeGrid((0.1, 10.0, 100.0), (0, 2))
    for unpenalised in (None, u):
        expected = oracle_cross_validated(x, responses, folds, grid, unpenalised=unpenalised)
        for form in FORMS:
            got = cross_validated_ridge(x, responses, folds, grid, unpenalised=unpenalised, form=form)
            assert_same_fit(got, expected, responses)
            if unpenalised is not None:
                np.testing.assert_allclose(got.nuisance_weights, expected.nuisance_weights, rtol=0, atol=1e-10)
    new_x, new_u = np.random.default_rng(2).standard_normal((2, 7, p))
    new_u = new_u[:, :2]
    by_hand = got.intercept + new_x @ got.weights + new_u @ got.nuisance_weights
    np.testing.assert_allclose(got.predict(new_x, new_u), by_hand, rtol=0, atol=1e-12)


@pytest.mark.parametrize("p", [6, 60])
def test_the_cross_validated_fit_equals_grid_search(p):
    """scikit-learn's own search over the same blocks: same best settings, score and refitted predictions."""
    folds = contiguous_folds(50, 5)
    x, responses = simulate(102, 50, p, 3, 1)
    alphas, components = (0.1, 10.0, 100.0, 1e3), (2, 4)
    got = cross_validated_ridge(x, responses, folds, RidgeGrid(alphas, components))
    split = PredefinedSplit(np.repeat(np.arange(5), folds.test_sizes()))
    for t in range(3):
        search = GridSearchCV(
            pipeline(1.0, 2),
            {"pca__n_components": components, "ridge__alpha": alphas},
            scoring="r2",
            cv=split,
        ).fit(x, responses[0, :, t])
        assert got.components[t] == search.best_params_["pca__n_components"]
        assert alphas[got.alpha[t]] == search.best_params_["ridge__alpha"]
        assert got.score[t] == pytest.approx(search.best_score_, abs=1e-10)
        np.testing.assert_allclose(got.predict(x)[:, t], search.predict(x), rtol=0, atol=1e-10)


# --- invariances --------------------------------------------------------------------------------------------------


def assert_equal_to(got, expected, atol):
    for name in ("lag", "alpha", "components", "observed"):
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))
    for name in ("predicted", "baseline", "weights", "intercept"):
        np.testing.assert_allclose(getattr(got, name), getattr(expected, name), rtol=0, atol=atol)
    for metric in METRICS:
        assert_same_scores(got.scores(metric), expected.scores(metric), atol)
        assert_same_scores(got.fold_scores(metric), expected.fold_scores(metric), atol)


@pytest.mark.parametrize(
    ("times", "metric", "form"),
    [
        (1, "r2", "primal"),
        (3, "r2", "kernel"),
        (3, "pearson", "primal"),
        (1, "pearson", "kernel"),
        (1, "spearman", "primal"),
    ],
)
def test_little_memory_changes_nothing(times, metric, form):
    """The least memory that is not refused, one target at a time, and a little more."""
    folds = contiguous_folds(48, 4, gap=1)
    x, responses = simulate(111, 48, 8, 17, 3)
    u = np.random.default_rng(3).standard_normal((48, 1))
    grid = RidgeGrid((0.1, 10.0, 100.0), (0, 3), metric)
    whole = nested_ridge(x, responses, folds, grid, unpenalised=u, form=form, keep=KEEP)

    def lean(memory_bytes):
        compute = Compute(memory_bytes=memory_bytes)
        return nested_ridge(x, responses, folds, grid, unpenalised=u, form=form, compute=compute)

    def lean_fit(memory_bytes):
        compute = Compute(memory_bytes=memory_bytes)
        return cross_validated_ridge(x, responses, folds, grid, unpenalised=u, form=form, compute=compute)

    tight = Compute(memory_bytes=times * max(least_memory(lean), least_memory(lean_fit)))
    chunked = nested_ridge(x, responses, folds, grid, unpenalised=u, form=form, keep=KEEP, compute=tight)
    assert_equal_to(chunked, whole, 1e-12)
    orders = [None, np.roll(np.arange(48), 11)]
    drawn = nested_ridge_draws(x, responses, folds, grid, orders, unpenalised=u, form=form, keep=KEEP, compute=tight)
    assert_equal_to(drawn[0], whole, 1e-12)
    fit = cross_validated_ridge(x, responses, folds, grid, unpenalised=u, form=form)
    same = cross_validated_ridge(x, responses, folds, grid, unpenalised=u, form=form, compute=tight)
    np.testing.assert_array_equal(same.alpha, fit.alpha)
    np.testing.assert_allclose(same.weights, fit.weights, rtol=0, atol=1e-12)
    np.testing.assert_allclose(same.score, fit.score, rtol=0, atol=1e-12)


def test_too_little_memory_is_an_error_that_says_how_much_is_needed():
    x, responses = simulate(111, 48, 8, 17, 3)
    with pytest.raises(ValueError, match=r"memory_bytes = 1 is too little"):
        nested_ridge(
            x,
            responses,
            contiguous_folds(48, 4),
            RidgeGrid((1.0,)),
            compute=Compute(memory_bytes=1),
        )


@pytest.mark.parametrize("form", FORMS)
def test_permuting_targets_permutes_results_and_nothing_else(form):
    folds, grid = contiguous_folds(60, 4, gap=1), RidgeGrid((1.0, 10.0), (0, 2))
    x, responses = simulate(112, 60, 5, 7, 2)
    order = np.random.default_rng(4).permutation(7)
    before = nested_ridge(x, responses, folds, grid, form=form, keep=KEEP)
    after = nested_ridge(x, responses[:, :, order], folds, grid, form=form, keep=KEEP)
    for name in ("lag", "alpha", "components", "observed"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name)[:, order])
    np.testing.assert_allclose(after.predicted, before.predicted[:, order], rtol=0, atol=1e-12)
    np.testing.assert_allclose(after.weights, before.weights[:, :, order], rtol=0, atol=1e-12)
    for metric in METRICS:
        assert_same_scores(after.scores(metric), before.scores(metric)[order], 1e-12)


def test_scores_need_no_kept_predictions():
    """Scores asked for by name are the same whether or not predictions and weights are kept."""
    folds, grid = contiguous_folds(60, 4, gap=1), RidgeGrid((1.0, 10.0), (0, 2))
    x, responses = simulate(113, 60, 5, 4, 2)
    full = nested_ridge(x, responses, folds, grid, keep=KEEP)
    lean = nested_ridge(x, responses, folds, grid)
    one = nested_ridge(x, responses, folds, grid, metrics=("spearman",))
    for metric in METRICS:
        assert_same_scores(lean.scores(metric), full.scores(metric), 1e-12)
        assert_same_scores(lean.fold_scores(metric), full.fold_scores(metric), 1e-12)
    assert_same_scores(one.scores("spearman"), full.scores("spearman"), 1e-12)


def test_the_order_of_penalties_does_not_matter_but_for_ties():
    folds = contiguous_folds(60, 4)
    x, responses = simulate(114, 60, 5, 4, 1)
    up, down = (0.1, 1.0, 10.0, 100.0), (100.0, 10.0, 1.0, 0.1)
    first = nested_ridge(x, responses, folds, RidgeGrid(up), keep=KEEP)
    second = nested_ridge(x, responses, folds, RidgeGrid(down), keep=KEEP)
    np.testing.assert_array_equal(np.array(up)[first.alpha], np.array(down)[second.alpha])
    np.testing.assert_allclose(first.predicted, second.predicted, rtol=0, atol=1e-12)


# --- nothing held out is ever seen --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "p", "form"),
    [
        ("r2", 6, "primal"),
        ("r2", 90, "kernel"),
        ("pearson", 6, "kernel"),
        ("pearson", 90, "primal"),
        ("spearman", 6, "primal"),
        ("spearman", 90, "kernel"),
    ],
)
def test_held_out_and_embargoed_rows_move_nothing(metric, p, form):
    """Nonsense in the responses of a block and its embargo leaves what predicts the block alone.

    So does nonsense in the features and unpenalised columns of the embargo and of some rows of the block: settings,
    weights and the predictions of the block's other rows stay.
    """
    folds = contiguous_folds(80, 4, gap=3)
    x, responses = simulate(121, 80, p, 3, 2)
    u = np.random.default_rng(5).standard_normal((80, 2))
    grid = RidgeGrid((0.1, 10.0, 1000.0), (0, 3), metric)

    def readout(x, responses, u):
        return nested_ridge(x, responses, folds, grid, unpenalised=u, form=form, keep=KEEP)

    before = readout(x, responses, u)
    for block in range(4):
        rng = np.random.default_rng(block)
        start, stop = folds.bounds(block)
        unseen = np.setdiff1d(np.arange(80), training_rows(folds, block))
        assert len(unseen) > stop - start
        other_y = responses.copy()
        other_y[:, unseen] = 1e3 * rng.standard_normal(other_y[:, unseen].shape)
        embargo = np.setdiff1d(unseen, np.arange(start + 8, stop))
        other_x, other_u = x.copy(), u.copy()
        other_x[embargo] = 1e3 * rng.standard_normal((len(embargo), p))
        other_u[embargo] = 1e3 * rng.standard_normal((len(embargo), 2))
        for after, rows in (
            (readout(x, other_y, u), slice(start, stop)),
            (readout(other_x, responses, other_u), slice(start + 8, stop)),
            (readout(other_x, other_y, other_u), slice(start + 8, stop)),
        ):
            for name in ("lag", "alpha", "components"):
                np.testing.assert_array_equal(getattr(after, name)[block], getattr(before, name)[block])
            np.testing.assert_allclose(after.predicted[rows], before.predicted[rows], rtol=0, atol=1e-8)
            for name in ("weights", "intercept", "nuisance_weights"):
                np.testing.assert_allclose(getattr(after, name)[block], getattr(before, name)[block], rtol=0, atol=1e-8)


def test_the_embargo_is_not_wider_than_asked():
    """The rows just beyond the gap are used: nonsense there does move the readout."""
    folds = contiguous_folds(80, 4, gap=3)
    x, responses = simulate(122, 80, 6, 2, 1)
    before = nested_ridge(x, responses, folds, RidgeGrid((1.0,)), keep=KEEP)
    start, stop = folds.bounds(1)
    for row, moves in ((start - 3, False), (stop + 2, False), (start - 4, True), (stop + 3, True)):
        other = responses.copy()
        other[:, row] += 100.0
        after = nested_ridge(x, other, folds, RidgeGrid((1.0,)), keep=KEEP)
        moved = np.abs(after.predicted[start:stop] - before.predicted[start:stop]).max()
        assert (moved > 1e-3) if moves else (moved < 1e-9)


# --- the oracle itself --------------------------------------------------------------------------------------------


def test_the_oracle_trains_and_validates_on_the_right_rows():
    folds = blocks_of((4, 4, 4), 1)
    np.testing.assert_array_equal(training_rows(folds, 1), [0, 1, 2, 9, 10, 11])
    np.testing.assert_array_equal(training_rows(folds, 0, 2), [5, 6])
    for held in itertools.chain([(0,), (1,), (2,)], itertools.combinations(range(3), 2)):
        np.testing.assert_array_equal(training_rows(folds, *held), folds.train_rows(*held))


def test_the_oracle_solves_the_ridge_problem():
    """One fit against the closed form (ZᵀZ + aI)⁻¹Zᵀy, and against the gradient with unpenalised columns."""
    x, responses = simulate(131, 30, 4, 1, 1)
    y = responses[0, :, 0]
    z = (x - x.mean(0)) / x.std(0)
    fit = fit_one(x, y, 3.0, 0)
    closed = np.linalg.solve(z.T @ z + 3.0 * np.eye(4), z.T @ (y - y.mean()))
    np.testing.assert_allclose(fit.weights * x.std(0), closed, atol=1e-12)
    np.testing.assert_allclose(fit.deviation(x, None), z @ closed, atol=1e-12)
    u = np.random.default_rng(1).standard_normal((30, 2)) + x[:, :2]
    fit = fit_one(x, y, 3.0, 0, u)
    residual = y - fit.intercept - x @ fit.weights - u @ fit.nuisance_weights
    np.testing.assert_allclose(residual.sum(), 0.0, atol=1e-10)
    np.testing.assert_allclose(u.T @ residual, 0.0, atol=1e-9)
    np.testing.assert_allclose(z.T @ residual, 3.0 * fit.weights * x.std(0), atol=1e-9)
    np.testing.assert_allclose(
        fit.mean + fit.deviation(x, u), fit.intercept + x @ fit.weights + u @ fit.nuisance_weights
    )


def test_the_oracle_scores_as_scikit_learn_and_scipy_do():
    rng = np.random.default_rng(132)
    y, guess = rng.standard_normal((2, 25)) + 3.0
    assert validation_score(y, guess, "r2") == pytest.approx(r2_score(y, guess), abs=1e-12)
    pearson, spearman = stats.pearsonr(y, guess), stats.spearmanr(y, guess)
    assert validation_score(y, guess, "pearson") == pytest.approx(pearson.statistic, abs=1e-12)
    assert validation_score(y, guess, "spearman") == pytest.approx(spearman.statistic, abs=1e-12)
    for metric in METRICS:
        assert np.isnan(validation_score(np.full(25, 0.1), guess, metric))
        assert np.isnan(validation_score(y, np.full(25, 0.1), metric)) == (metric != "r2")


def test_the_oracle_knows_what_is_constant():
    column = np.full((10, 1), 0.1)
    nearly = column * (1.0 + np.finfo(float).eps * (np.arange(10) % 2)[:, None])
    plain = np.arange(10.0)[:, None]
    np.testing.assert_array_equal(
        varying(np.hstack([column, nearly, plain, 1e-150 * plain, 1e150 * plain])),
        [False, False, True, True, True],
    )
