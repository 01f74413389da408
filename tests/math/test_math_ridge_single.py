"""Readouts from one column at a time against the nested ridge of that column, and against scikit-learn.

The nested ridge predicts every row and is itself checked against scikit-learn in ``test_math_ridge_exact``; what is
checked here makes no prediction. Scores are equal to 1e-9 (relative where a score exceeds 1 in size).
"""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from ridge_oracle import assert_same_scores, choice_is_clear, oracle_nested, training_rows

import lpact.math.ridge.single as single_module
from lpact.math.ridge import (
    PER_TARGET,
    SHARED,
    Compute,
    RidgeGrid,
    Selection,
    nested_ridge,
    single_column_readouts,
)
from lpact.math.splits import BlockedFolds, contiguous_folds
from lpact.measures import LinearPredictivity
from lpact.splits import contiguous

SAME = 1e-9
GRID = RidgeGrid((0.1, 1.0, 30.0, 1000.0))

# --- data ---------------------------------------------------------------------------------------------------------

COLUMN_KINDS = (
    "plain",
    "constant",
    "constant but for rounding",
    "alive in one block",
    "dead in one block",
    "steps",
    "drift",
    "tiny",
    "huge",
    "offset",
    "outlier",
    "jump",
    "ones and zeros",
    "counts",
)
TARGET_KINDS = (
    "plain",
    "constant",
    "constant in one block",
    "alive in one block",
    "dead at one lag",
    "tiny",
    "offset",
    "whole numbers",
    "exact",
    "lags of other scales",
    "steps",
    "jump",
)
SELECTIONS = (
    PER_TARGET,
    SHARED,
    Selection("shared", "target", "target"),
    Selection("group", "group", "target", groups=(0, 1, 0)),
)


def blocks_of(sizes, gap=0):
    return BlockedFolds(tuple(int(s) for s in np.cumsum([0, *sizes[:-1]])), int(sum(sizes)), gap)


def some_block(folds, rng):
    return slice(*folds.bounds(int(rng.integers(folds.n_blocks))))


def column_of(kind, folds, rng):
    n = folds.n_rows
    x, block = rng.standard_normal(n), some_block(folds, rng)
    if kind == "constant":
        x[:] = rng.choice([0.0, 0.1, -7.3e5])
    elif kind == "constant but for rounding":
        x = 0.7 * (1.0 + np.finfo(float).eps * rng.integers(0, 2, n))
    elif kind == "alive in one block":
        alive = 1e6 * x[block]
        x[:] = rng.choice([0.0, 0.1])
        x[block] = alive
    elif kind == "dead in one block":
        x[block] = 0.1
    elif kind == "steps":
        x = np.repeat(rng.standard_normal(folds.n_blocks), folds.test_sizes())
    elif kind == "drift":
        x = x + np.linspace(0, 1e4, n)
    elif kind == "tiny":
        x *= 1e-150
    elif kind == "huge":
        x *= 1e150
    elif kind == "offset":
        x += 1e6
    elif kind == "outlier":
        x[int(rng.integers(n))] = 1e9
    elif kind == "jump":
        x[block] += 1e9
    elif kind == "ones and zeros":
        x = rng.integers(0, 2, n).astype(float)
    elif kind == "counts":
        x = rng.poisson(0.7, n).astype(float)
    return x


def target_of(kind, n_lags, folds, rng, x):
    """[n_lags, n], following the column x."""
    z = (x - x.mean()) / x.std() if x.max() != x.min() else np.zeros(len(x))
    y = rng.standard_normal((n_lags, folds.n_rows)) + 0.5 * rng.standard_normal((n_lags, 1)) * z
    block = some_block(folds, rng)
    if kind == "constant":
        y[:] = rng.choice([0.0, 0.1, -7.3e5])
    elif kind == "constant in one block":
        y[:, block] = 0.1
    elif kind == "alive in one block":
        alive = y[:, block].copy()
        y[:] = rng.choice([0.0, 0.1])
        y[:, block] = alive
    elif kind == "dead at one lag":
        y[0] = 0.1
    elif kind == "tiny":
        y *= 1e-150
    elif kind == "offset":
        y += 1e6
    elif kind == "whole numbers":
        y = np.round(y)
    elif kind == "exact":
        y[-1] = 3.0 * z - 2.0
    elif kind == "lags of other scales":
        y *= np.array([1.0, 300.0, 1e-5])[:n_lags, None]
    elif kind == "steps":
        y[:] = np.repeat(rng.standard_normal(folds.n_blocks), folds.test_sizes())
    elif kind == "jump":
        y[:, block] += 1e4
    return y


def simulate(seed, n, n_columns, n_targets, n_lags):
    """Columns of mixed scale, of which targets follow a few at the last lag."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, n_columns)) * rng.uniform(0.1, 10, n_columns)
    y = rng.standard_normal((n_lags, n, n_targets))
    y[-1] += 0.3 * (x / x.std(0)) @ rng.standard_normal((n_columns, n_targets))
    return x + rng.uniform(-5, 5, n_columns), y


def only_rounding_correlates(x, responses, folds):
    """Whether some column and target both vary on a training set and do not correlate there."""
    held = [(b,) for b in range(folds.n_blocks)]
    held += list(itertools.combinations(range(folds.n_blocks), 2))
    for blocks, lag in itertools.product(held, range(len(responses))):
        rows = training_rows(folds, *blocks)
        a, b = x[rows], responses[lag][rows]
        varies = np.multiply.outer(a.max(0) != a.min(0), b.max(0) != b.min(0))
        z = [v / np.maximum(np.linalg.norm(v, axis=0), 1e-300) for v in (_centred(a), _centred(b))]
        if (varies & (np.abs(z[0].T @ z[1]) < 1e-10)).any():
            return True
    return False


def _centred(x):
    shifted = x - x.mean(0)
    return shifted / np.maximum(np.abs(shifted).max(0), 1e-300)


def one_by_one(x, responses, folds, grid, metric="pearson", **options):
    """The nested ridge of every column."""
    return np.stack(
        [
            nested_ridge(x[:, [i]], responses, folds, grid, metrics=(metric,), **options).scores(metric)
            for i in range(x.shape[1])
        ]
    )


def assert_same_as_scikit_learn(x, responses, folds, grid):
    """Both scores of every column are those of the slow oracle."""
    found = [oracle_nested(x[:, [i]], responses, folds, grid) for i in range(x.shape[1])]
    assert all(choice_is_clear(one.inner) for one in found)
    for metric in ("pearson", "r2"):
        got = single_column_readouts(x, responses, folds, grid, metric=metric)
        assert_same_scores(got, np.stack([one.scores(metric) for one in found]), SAME)


@st.composite
def fold_sets(draw):
    """Uneven blocks, and a gap that leaves every training set at least four rows."""
    sizes = draw(st.lists(st.integers(2, 20), min_size=3, max_size=5))
    folds = blocks_of(sizes, draw(st.sampled_from([0, 0, 1, 2, 5, 9])))
    pairs = itertools.combinations(range(folds.n_blocks), 2)
    assume(all(len(training_rows(folds, a, b)) >= 4 for a, b in pairs))
    return folds


@st.composite
def problems(draw):
    folds = draw(fold_sets())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    column_kinds = draw(st.lists(st.sampled_from(COLUMN_KINDS), min_size=1, max_size=4))
    target_kinds = draw(st.lists(st.sampled_from(TARGET_KINDS), min_size=3, max_size=3))
    for kind in column_kinds:
        event(f"column: {kind}")
    for kind in target_kinds:
        event(f"target: {kind}")
    x = np.column_stack([column_of(kind, folds, rng) for kind in column_kinds])
    n_lags = draw(st.integers(1, 3))
    sources = rng.integers(x.shape[1], size=3)
    responses = np.stack(
        [target_of(kind, n_lags, folds, rng, x[:, i]) for kind, i in zip(target_kinds, sources, strict=True)],
        axis=2,
    )
    assume(not only_rounding_correlates(x, responses, folds))
    alphas = st.lists(st.sampled_from([1e-3, 0.1, 1.0, 10.0, 300.0, 1e5]), min_size=1, max_size=4, unique=True)
    components = st.lists(st.sampled_from([0, 1, 5]), min_size=1, max_size=2, unique=True)
    grid = RidgeGrid(
        tuple(draw(alphas)),
        tuple(draw(components)),
        draw(st.sampled_from(["r2", "pearson"])),
        draw(st.sampled_from(SELECTIONS)),
    )
    return x, responses, folds, grid


# --- the same as one by one ---------------------------------------------------------------------------------------


@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(problems(), st.sampled_from(["pearson", "r2"]))
def test_every_row_is_the_nested_ridge_of_its_column(problem, metric):
    got = single_column_readouts(*problem, metric=metric)
    assert_same_scores(got, one_by_one(*problem, metric), SAME)


@pytest.mark.parametrize("selected_by", ["r2", "pearson"])
@pytest.mark.parametrize("kind", COLUMN_KINDS)
def test_every_kind_of_column(kind, selected_by):
    rng = np.random.default_rng(5)
    folds = blocks_of([12, 9, 15, 11], gap=1)
    x = np.column_stack([column_of(kind, folds, rng) for _ in range(2)])
    responses = np.stack([target_of("plain", 2, folds, rng, x[:, i % 2]) for i in range(3)], axis=2)
    assert not only_rounding_correlates(x, responses, folds)
    grid = RidgeGrid((0.1, 10.0), metric=selected_by)
    got = single_column_readouts(x, responses, folds, grid)
    assert_same_scores(got, one_by_one(x, responses, folds, grid), SAME)
    assert np.isnan(got).all() == kind.startswith("constant")


@pytest.mark.parametrize("selected_by", ["r2", "pearson"])
@pytest.mark.parametrize("kind", TARGET_KINDS)
def test_every_kind_of_target(kind, selected_by):
    rng = np.random.default_rng(6)
    folds = blocks_of([12, 9, 15, 11], gap=1)
    x = rng.standard_normal((47, 2))
    responses = np.stack([target_of(kind, 3, folds, rng, x[:, 0]) for _ in range(3)], axis=2)
    grid = RidgeGrid((0.1, 10.0), metric=selected_by)
    for metric in ("pearson", "r2"):
        got = single_column_readouts(x, responses, folds, grid, metric=metric)
        assert_same_scores(got, one_by_one(x, responses, folds, grid, metric), SAME)
        assert np.isnan(got).all() == (kind == "constant")


@pytest.mark.parametrize("selection", [PER_TARGET, SHARED])
@pytest.mark.parametrize("selected_by", ["r2", "pearson"])
@pytest.mark.parametrize("gap", [0, 2])
def test_scores_equal_scikit_learn(gap, selected_by, selection):
    """No code is shared with this oracle; one column is constant on some training and validation rows."""
    folds = blocks_of([14, 9, 12, 10], gap)
    x, responses = simulate(gap, 45, 3, 3, 2)
    x[:, 1] = column_of("alive in one block", folds, np.random.default_rng(1))
    grid = RidgeGrid((0.1, 200.0), metric=selected_by, selection=selection)
    assert_same_as_scikit_learn(x, responses, folds, grid)


def test_a_gap_that_skips_validation_blocks_equals_scikit_learn():
    folds = blocks_of([12, 6, 12, 12], gap=4)
    assert folds.validation_rows(1, 0).start == folds.validation_rows(1, 0).stop
    x, responses = simulate(3, 42, 2, 3, 2)
    assert_same_as_scikit_learn(x, responses, folds, RidgeGrid((0.1, 200.0)))


def test_many_blocks():
    """As many as stories, so that runs between two held-out blocks grow and start again."""
    folds = blocks_of([7, 5, 9, 6, 8, 5, 7, 10, 6], gap=1)
    x, responses = simulate(4, 63, 5, 6, 3)
    got = single_column_readouts(x, responses, folds, GRID)
    assert_same_scores(got, one_by_one(x, responses, folds, GRID), SAME)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_every_way_to_select(selection):
    folds = contiguous_folds(90, 5, gap=1)
    x, responses = simulate(9, 90, 6, 3, 3)
    grid = RidgeGrid((0.1, 10.0, 1000.0), (0, 1), "r2", selection)
    got = single_column_readouts(x, responses, folds, grid)
    assert_same_scores(got, one_by_one(x, responses, folds, grid), SAME)


@pytest.mark.parametrize(("metric", "selected_by"), [("spearman", "r2"), ("pearson", "spearman")])
def test_ranks_are_left_to_the_nested_ridge(metric, selected_by):
    folds = contiguous_folds(50, 4)
    x, responses = simulate(2, 50, 3, 2, 2)
    grid = RidgeGrid((1.0, 50.0), metric=selected_by)
    got = single_column_readouts(x, responses, folds, grid, metric=metric)
    assert_same_scores(got, one_by_one(x, responses, folds, grid, metric), 1e-15)


# --- known truth --------------------------------------------------------------------------------------------------


def test_the_target_that_a_column_drives_is_found_at_its_lag():
    """Target j follows column j alone, at lag 2 only; the population correlation is 0.8."""
    rng = np.random.default_rng(0)
    n = 4000
    x = rng.standard_normal((n, 4))
    y = rng.standard_normal((3, n, 4))
    y[2] = 0.8 * x + 0.6 * rng.standard_normal((n, 4))
    got = single_column_readouts(x, y, contiguous_folds(n, 5), GRID)
    np.testing.assert_allclose(np.diagonal(got), 0.8, atol=0.03)
    assert np.abs(got[~np.eye(4, dtype=bool)]).max() < 0.1


def test_a_column_predicts_its_own_multiple_perfectly():
    x, _ = simulate(1, 200, 3, 1, 1)
    got = single_column_readouts(x, (7.0 - 3.0 * x)[None], contiguous_folds(200, 4), GRID)
    np.testing.assert_allclose(np.diagonal(got), 1.0, atol=1e-12)


@pytest.mark.parametrize("selected_by", ["r2", "pearson"])
def test_without_correlation_a_column_predicts_the_mean(selected_by):
    """Orthogonal in every block, so on every training set: R² is zero, and there is nothing to correlate."""
    x = np.tile([1.0, -1.0, 1.0, -1.0], 12)[:, None] / 3.0
    y = np.tile([1.0, 1.0, -1.0, -1.0], 12)[None, :, None] * 0.7
    folds = contiguous_folds(48, 4)
    grid = RidgeGrid((1.0,), metric=selected_by)
    np.testing.assert_allclose(single_column_readouts(x, y, folds, grid, metric="r2"), 0.0)
    assert np.isnan(single_column_readouts(x, y, folds, grid)).all()


def test_offsets_cost_nothing():
    """Exact in binary: adding 2^20 to numbers with few digits changes no score."""
    rng = np.random.default_rng(8)
    x = np.round(rng.standard_normal((80, 3)) * 256) / 256
    y = np.round((rng.standard_normal((2, 80, 3)) + x) * 256) / 256
    folds = contiguous_folds(80, 4)
    plain = single_column_readouts(x, y, folds, GRID)
    np.testing.assert_allclose(single_column_readouts(x + 2.0**20, y - 2.0**20, folds, GRID), plain, rtol=0, atol=1e-12)


# --- what is left to the nested ridge -----------------------------------------------------------------------------


def watch_the_fallback(monkeypatch):
    seen = []

    def watched(design, *args, **options):
        seen.append(design[:, 0].copy())
        return nested_ridge(design, *args, **options)

    monkeypatch.setattr(single_module, "nested_ridge", watched)
    return seen


def test_only_a_column_that_jumps_far_is_left(monkeypatch):
    """Where a column jumps by 1e9 of its spread, sums have lost its digits; others are not touched."""
    rng = np.random.default_rng(3)
    folds = contiguous_folds(60, 4, gap=1)
    kinds = ("plain", "jump", "outlier", "drift", "dead in one block", "offset", "steps")
    x = np.column_stack([column_of(kind, folds, rng) for kind in kinds])
    responses = np.stack([target_of("plain", 2, folds, rng, x[:, i]) for i in range(4)], axis=2)
    expected = one_by_one(x, responses, folds, GRID)
    seen = watch_the_fallback(monkeypatch)
    got = single_column_readouts(x, responses, folds, GRID)
    assert len(seen) == 1
    np.testing.assert_array_equal(seen[0], x[:, kinds.index("jump")])
    assert_same_scores(got, expected, SAME)


# --- memory -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory_bytes", [60_000, 150_000, 2_000_000])
def test_chunks_of_targets_and_columns_change_nothing(memory_bytes, monkeypatch):
    folds = contiguous_folds(60, 4, gap=1)
    x, responses = simulate(5, 60, 7, 9, 2)
    whole = single_column_readouts(x, responses, folds, GRID)
    seen = watch_the_fallback(monkeypatch)
    compute = Compute(memory_bytes=memory_bytes)
    got = single_column_readouts(x, responses, folds, GRID, compute=compute)
    np.testing.assert_allclose(got, whole, rtol=0, atol=1e-12)
    assert not seen


def test_targets_that_choose_together_and_do_not_fit_are_left(monkeypatch):
    folds = contiguous_folds(1000, 4)
    x, responses = simulate(7, 1000, 2, 700, 2)
    grid = RidgeGrid((0.1, 10.0), selection=SHARED)
    whole = single_column_readouts(x, responses, folds, grid)
    seen = watch_the_fallback(monkeypatch)
    compute = Compute(memory_bytes=40 * 2**20)
    got = single_column_readouts(x, responses, folds, grid, compute=compute)
    assert len(seen) == 2
    assert_same_scores(got, whole, SAME)


def test_too_little_memory_is_said():
    x, responses = simulate(5, 60, 2, 2, 1)
    with pytest.raises(ValueError, match="is too little"):
        single_column_readouts(x, responses, contiguous_folds(60, 4), GRID, compute=Compute(memory_bytes=1000))


@pytest.mark.parametrize("memory_bytes", [16 * 2**20, 64 * 2**20])
def test_memory_stays_under_the_budget(memory_bytes):
    x, responses = simulate(6, 1500, 120, 120, 2)
    folds = contiguous_folds(1500, 5, gap=3)
    plenty = single_column_readouts(x, responses, folds, GRID)
    tracemalloc.start()
    try:
        got = single_column_readouts(x, responses, folds, GRID, compute=Compute(memory_bytes=memory_bytes))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak - got.nbytes < memory_bytes
    np.testing.assert_allclose(got, plenty, rtol=0, atol=1e-12)


# --- arguments ----------------------------------------------------------------------------------------------------


def test_no_columns_and_no_targets():
    folds = contiguous_folds(30, 3)
    x, responses = simulate(1, 30, 4, 3, 2)
    assert single_column_readouts(x[:, :0], responses, folds, GRID).shape == (0, 3)
    assert single_column_readouts(x, responses[:, :, :0], folds, GRID).shape == (4, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "mse"}, "unknown metric 'mse'"),
        ({"columns": np.zeros(30)}, r"columns must be \[30, N\]"),
        ({"columns": np.zeros((29, 2))}, r"columns must be \[30, N\]"),
        ({"responses": np.zeros((30, 2))}, r"responses must be an array \[n_lags, n, t\]"),
        ({"responses": np.zeros((1, 31, 2))}, "folds have 30 rows, responses have 31"),
        ({"folds": contiguous_folds(30, 2)}, "at least 3 blocks"),
        ({"folds": contiguous_folds(30, 3, gap=10)}, "a training set is empty"),
        ({"columns": np.full((30, 2), np.nan)}, "must be finite"),
        ({"responses": np.full((1, 30, 2), np.inf)}, "must be finite"),
    ],
)
def test_what_cannot_be_is_refused(change, message):
    x, responses = simulate(1, 30, 2, 2, 1)
    arguments = {
        "columns": x,
        "responses": responses,
        "folds": contiguous_folds(30, 3),
        "grid": GRID,
        **change,
    }
    with pytest.raises(ValueError, match=message):
        single_column_readouts(**arguments)


def test_arguments_are_not_written_to():
    x, responses = simulate(1, 40, 3, 2, 2)
    before = x.copy(), responses.copy()
    for array in (x, responses):
        array.flags.writeable = False
    single_column_readouts(x, responses, contiguous_folds(40, 4), GRID)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(responses, before[1])


# --- where it is used ---------------------------------------------------------------------------------------------


def test_units_among_themselves_are_fitted_as_one_by_one():
    _, responses = simulate(12, 120, 3, 8, 3)
    measure, split = LinearPredictivity(grid=GRID), contiguous(120, 4, gap=2)
    got = measure.pairwise(responses[1], split, responses)
    expected = [measure.cross_validate(responses[1][:, [unit]], responses, split).value for unit in range(8)]
    assert_same_scores(got, np.array(expected), SAME)
