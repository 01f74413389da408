"""Which lag, number of components and penalty the nested ridge engine chooses, and at which level.

The oracle (``ridge_oracle``) scores every setting with scikit-learn and SciPy, and chooses by the definition:
the coarsest setting first, each value by the mean over its pool of targets of what the settings still open can reach.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from ridge_oracle import (
    METRICS,
    Levels,
    assert_same_readout,
    assert_same_scores,
    choice_is_clear,
    choose,
    least_memory,
    oracle_cross_validated,
    oracle_nested,
    training_rows,
)
from scipy import stats

from lpact.math.ridge import (
    Compute,
    RidgeGrid,
    Selection,
    cross_validated_ridge,
    nested_ridge,
    nested_ridge_draws,
)
from lpact.math.splits import contiguous_folds

KEEP = ("predictions", "weights")
LEVELS = ("target", "group", "shared")
GROUPS = (2, 0, 2, 0, 5)
ALL_LEVELS = list(itertools.product(LEVELS, LEVELS, LEVELS))


def simulate(seed, n=44, p=5, n_targets=5, n_lags=3):
    """Targets that follow the features at lags and with strengths of their own."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p)) @ rng.standard_normal((p, p)) + rng.uniform(-3, 3, p)
    signal = (x - x.mean(0)) @ rng.standard_normal((p, n_targets))
    signal *= rng.uniform(0.1, 2.0, n_targets) / signal.std(0)
    best = rng.integers(0, n_lags, n_targets)
    at = np.exp(-np.abs(np.arange(n_lags)[:, None] - best))  # [lags, t]
    return x, signal * at[:, None] + rng.standard_normal((n_lags, n, n_targets))


@functools.cache
def scored(metric):
    """One problem and the oracle's inner scores, [F, L, K, A, t]."""
    x, responses = simulate(1)
    responses[:, :, 3] *= 100.0
    folds = contiguous_folds(44, 4, gap=1)
    grid = RidgeGrid((0.3, 10.0, 300.0), (0, 2), metric)
    return x, responses, folds, grid, oracle_nested(x, responses, folds, grid).inner


def expected_settings(inner, grid, levels):
    chosen = [choose(scores, levels) for scores in inner]
    return {
        "lag": np.stack([c["lag"] for c in chosen]),
        "components": np.asarray(grid.components)[np.stack([c["components"] for c in chosen])],
        "alpha": np.stack([c["alpha"] for c in chosen]),
    }


def levels_of(lag, components, alpha, groups=GROUPS):
    needed = "group" in (lag, components, alpha)
    return Selection(lag, components, alpha, groups if needed else None)


# --- the definition, by hand --------------------------------------------------------------------------------------


def test_the_oracle_chooses_as_worked_out_by_hand():
    """Two lags, one component count, two penalties, two targets."""
    scores = np.empty((2, 1, 2, 2))
    scores[0, 0] = [[0.9, 0.0], [0.0, 0.1]]  # lag 0: penalty 0 suits target 0
    scores[1, 0] = [[0.5, 0.3], [0.5, 0.4]]  # lag 1: good for both, whatever the penalty
    cases = {
        # target 0 reaches 0.9 at lag 0, target 1 0.4 at lag 1
        ("target", "target"): ([0, 1], [0, 1]),
        # lag 0 reaches (0.9 + 0.1)/2, lag 1 (0.5 + 0.4)/2
        ("shared", "target"): ([0, 0], [0, 1]),
        # one penalty for both: lag 0 max(0.45, 0.05), lag 1 max(0.40, 0.45); a tie goes to the first
        ("shared", "shared"): ([0, 0], [0, 0]),
        # penalty 0 reaches (0.9 + 0.3)/2, penalty 1 (0.5 + 0.4)/2; then the lags
        ("target", "shared"): ([0, 1], [0, 0]),
    }
    for (lag, alpha), (lags, alphas) in cases.items():
        chosen = choose(scores, Levels(lag=lag, alpha=alpha))
        np.testing.assert_array_equal(chosen["lag"], lags, err_msg=f"{lag} {alpha}")
        np.testing.assert_array_equal(chosen["alpha"], alphas, err_msg=f"{lag} {alpha}")


def test_the_oracle_is_a_plain_argmax_where_each_target_chooses_for_itself():
    rng = np.random.default_rng(3)
    scores = rng.standard_normal((3, 2, 4, 6))
    chosen = choose(scores, Levels())
    for t in range(6):
        best = np.unravel_index(np.argmax(scores[..., t]), (3, 2, 4))
        assert (chosen["lag"][t], chosen["components"][t], chosen["alpha"][t]) == best
    shared = choose(scores, Levels("shared", "shared", "shared"))
    best = np.unravel_index(np.argmax(scores.mean(-1)), (3, 2, 4))
    assert (shared["lag"][0], shared["components"][0], shared["alpha"][0]) == best


# --- levels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("levels", "metric"),
    [(levels, METRICS[i % len(METRICS)]) for i, levels in enumerate(ALL_LEVELS)],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_every_combination_of_levels(levels, metric):
    x, responses, folds, grid, inner = scored(metric)
    selection = levels_of(*levels)
    got = nested_ridge(x, responses, folds, replace(grid, selection=selection))
    expected = expected_settings(inner, grid, selection)
    for name, value in expected.items():
        np.testing.assert_array_equal(getattr(got, name), value, err_msg=name)
    for name, level in zip(("lag", "components", "alpha"), levels, strict=True):
        chosen = getattr(got, name)
        if level == "shared":
            assert (chosen == chosen[:, :1]).all()
        if level == "group":
            assert (chosen[:, 0] == chosen[:, 2]).all()
            assert (chosen[:, 1] == chosen[:, 3]).all()


def test_the_combinations_of_levels_differ():
    """The problem of the test above tells levels and metrics apart."""
    seen = {}
    for metric in METRICS:
        *_, grid, inner = scored(metric)
        for levels in ALL_LEVELS:
            expected = expected_settings(inner, grid, levels_of(*levels))
            seen[metric, levels] = tuple(v.tobytes() for v in expected.values())
    assert len(set(seen.values())) >= 20


@pytest.mark.parametrize(
    "levels",
    [
        ("shared", "shared", "shared"),
        ("shared", "group", "target"),
        ("group", "group", "group"),
        ("target", "group", "shared"),
    ],
    ids="-".join,
)
def test_predictions_follow_the_chosen_settings(levels):
    x, responses = simulate(5, n=40, p=4)
    folds = contiguous_folds(40, 4, gap=1)
    grid = RidgeGrid((0.3, 30.0), (0, 2), selection=levels_of(*levels))
    expected = oracle_nested(x, responses, folds, grid)
    for form in ("auto", "primal", "kernel"):
        got = nested_ridge(x, responses, folds, grid, form=form, keep=KEEP)
        assert_same_readout(got, expected, responses)
    fit = cross_validated_ridge(x, responses, folds, grid)
    whole = oracle_cross_validated(x, responses, folds, grid)
    for name in ("lag", "components", "alpha"):
        np.testing.assert_array_equal(getattr(fit, name), getattr(whole, name))
    np.testing.assert_allclose(fit.predict(x), whole.predicted, rtol=0, atol=1e-9)
    assert_same_scores(fit.score, whole.score)


@settings(
    deadline=None,
    max_examples=10,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(
    st.integers(0, 2**32 - 1),
    st.tuples(*[st.sampled_from(LEVELS)] * 3),
    st.lists(st.integers(-1, 2), min_size=4, max_size=4),
    st.sampled_from(METRICS),
    st.sets(st.integers(0, 3), max_size=2),
)
def test_generated_groups_and_levels(seed, levels, groups, metric, constant):
    """Targets that are constant have no score: they are in the pool but have no say in it."""
    x, responses = simulate(seed, n=36, p=3, n_targets=4, n_lags=2)
    responses[:, :, sorted(constant)] = 0.1
    folds = contiguous_folds(36, 3, gap=1)
    selection = levels_of(*levels, groups=tuple(groups))
    grid = RidgeGrid((1.0, 100.0), (0, 1), metric, selection)
    expected = oracle_nested(x, responses, folds, grid)
    assume(choice_is_clear(expected.inner))
    for form in ("primal", "kernel"):
        got = nested_ridge(x, responses, folds, grid, form=form, keep=KEEP)
        assert_same_readout(got, expected, responses)


@pytest.mark.parametrize("levels", ALL_LEVELS[::5], ids="-".join)
def test_pools_larger_than_a_chunk(levels):
    """Pooled choices are over all targets of the pool, however few fit into memory at a time."""
    x, responses, folds, grid, inner = scored("r2")
    grid = replace(grid, selection=levels_of(*levels))
    expected = expected_settings(inner, grid, grid.selection)

    def run(memory_bytes):
        return nested_ridge(x, responses, folds, grid, compute=Compute(memory_bytes=memory_bytes))

    tight = Compute(memory_bytes=least_memory(run))
    got = nested_ridge(x, responses, folds, grid, compute=tight)
    [drawn] = nested_ridge_draws(x, responses, folds, grid, [None], compute=tight)
    for name, value in expected.items():
        np.testing.assert_array_equal(getattr(got, name), value, err_msg=name)
        np.testing.assert_array_equal(getattr(drawn, name), value, err_msg=name)


@pytest.mark.parametrize("metric", METRICS)
def test_labels_only_tell_groups_apart(metric):
    """Every target a group of its own chooses for itself, whatever the labels and their order."""
    x, responses, folds, grid, _ = scored(metric)
    alone = nested_ridge(x, responses, folds, grid)
    for groups in ((0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (-7, 100, 3, -1, 2)):
        selection = Selection("group", "group", "group", groups)
        got = nested_ridge(x, responses, folds, replace(grid, selection=selection))
        for name in ("lag", "components", "alpha"):
            np.testing.assert_array_equal(getattr(got, name), getattr(alone, name), err_msg=name)
    selection = Selection("group", "group", "group", (9, 9, 9, 9, 9))
    together = nested_ridge(x, responses, folds, replace(grid, selection=selection))
    selection = Selection("shared", "shared", "shared")
    shared = nested_ridge(x, responses, folds, replace(grid, selection=selection))
    for name in ("lag", "components", "alpha"):
        np.testing.assert_array_equal(getattr(together, name), getattr(shared, name))


def test_groups_find_their_own_lag_and_noise_does_not():
    """Planted: one group answers at lag 0, the other at lag 2, each target too weakly to be sure alone."""
    rng = np.random.default_rng(12)
    n, t = 240, 40
    x = rng.standard_normal((n, 4))
    groups = tuple(int(g) for g in np.arange(t) % 2)
    responses = 2.0 * rng.standard_normal((3, n, t))
    signal = x @ rng.standard_normal((4, t)) * 0.25
    for target, group in enumerate(groups):
        responses[2 * group, :, target] += signal[:, target]
    folds = contiguous_folds(n, 4)
    truth = 2 * np.array(groups)
    found = {}
    for level in LEVELS:
        selection = levels_of(level, "target", "target", groups)
        lag = nested_ridge(x, responses, folds, RidgeGrid((10.0, 100.0), selection=selection)).lag
        found[level] = (lag == truth).mean()
    assert found["group"] == 1.0
    assert found["target"] < 1.0
    assert found["shared"] == pytest.approx(0.5)


def test_a_level_of_groups_needs_a_label_of_every_target():
    x, responses = simulate(2)
    folds = contiguous_folds(44, 4)
    for groups in (None, (0, 1)):
        with pytest.raises(ValueError, match="group"):
            nested_ridge(x, responses, folds, grid_of_groups(groups))


def grid_of_groups(groups):
    return RidgeGrid((1.0,), selection=Selection(alpha="group", groups=groups))


# --- ties ---------------------------------------------------------------------------------------------------------


def test_equal_lags_go_to_the_first():
    """The response at lags 1 and 2 is that of lag 0, in other units: no metric tells them apart."""
    x, responses = simulate(21, n_lags=1)
    responses = np.concatenate([responses, 3.0 * responses - 7.0, 1e-3 * responses], axis=0)
    folds = contiguous_folds(44, 4, gap=1)
    for metric, level in itertools.product(METRICS, LEVELS):
        selection = levels_of(level, level, level)
        grid = RidgeGrid((0.3, 30.0), (0, 2), metric, selection)
        for form in ("primal", "kernel"):
            got = nested_ridge(x, responses, folds, grid, form=form)
            np.testing.assert_array_equal(got.lag, 0)


@pytest.mark.parametrize("form", ["primal", "kernel"])
@pytest.mark.parametrize("metric", ["pearson", "spearman"])
@pytest.mark.parametrize("alphas", [(0.1, 10.0, 1e3), (1e3, 10.0, 0.1)])
def test_one_axis_has_the_same_correlation_at_every_penalty(alphas, metric, form):
    """A penalty only scales a prediction from one axis: the first in the list is chosen."""
    x, responses = simulate(22)
    folds = contiguous_folds(44, 4, gap=1)
    for design, components in ((x[:, :1], (0,)), (x, (1,))):
        grid = RidgeGrid(alphas, components, metric)
        got = nested_ridge(design, responses, folds, grid, form=form)
        np.testing.assert_array_equal(got.alpha, 0)


@pytest.mark.parametrize("form", ["primal", "kernel"])
@pytest.mark.parametrize("components", [(0, 5), (5, 0), (9, 0, 5)])
def test_all_axes_and_no_rotation_are_the_same(components, form):
    x, responses = simulate(23)
    folds = contiguous_folds(44, 4, gap=1)
    for metric in METRICS:
        grid = RidgeGrid((0.3, 30.0), components, metric)
        got = nested_ridge(x, responses, folds, grid, form=form)
        np.testing.assert_array_equal(got.components, components[0])


@pytest.mark.parametrize("form", ["primal", "kernel"])
@pytest.mark.parametrize(("gain", "lag"), [(1e-12, 0), (1e-5, 1)])
def test_scores_within_1e9_of_the_best_are_ties(gain, lag, form):
    """A lag whose noise is smaller by 1e-12 is no better; by 1e-5 it is."""
    rng = np.random.default_rng(24)
    x = rng.standard_normal((60, 3))
    signal, noise = x @ rng.standard_normal((3, 4)), rng.standard_normal((60, 4))
    responses = np.stack([signal + noise, signal + (1.0 - gain) * noise])
    got = nested_ridge(x, responses, contiguous_folds(60, 3), RidgeGrid((1e-2,), (0,)), form=form)
    np.testing.assert_array_equal(got.lag, lag)


def test_ties_of_ranks_are_ties_of_scores():
    """Short blocks have few Spearman correlations: many settings share the best, and the first is chosen."""
    x, responses = simulate(25, n=20, p=3, n_targets=6, n_lags=2)
    folds = contiguous_folds(20, 5)
    grid = RidgeGrid((0.1, 1.0, 10.0, 100.0), (0, 2), "spearman")
    expected = oracle_nested(x, responses, folds, grid)
    ties = np.abs(expected.inner - expected.inner.max(axis=(1, 2, 3), keepdims=True)) < 1e-9
    assert (ties.sum(axis=(1, 2, 3)) > 1).mean() > 0.5
    for form in ("primal", "kernel"):
        got = nested_ridge(x, responses, folds, grid, form=form, keep=KEEP)
        assert_same_readout(got, expected, responses)


# --- undefined scores ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
def test_a_lag_at_which_the_response_is_dead_is_never_chosen(metric):
    x, responses = simulate(31, n_lags=3)
    responses[0] = 0.1
    responses[2] = -4.0
    folds = contiguous_folds(44, 4, gap=1)
    for level in LEVELS:
        selection = levels_of(level, level, level)
        grid = RidgeGrid((0.3, 30.0), (0, 2), metric, selection)
        got = nested_ridge(x, responses, folds, grid, keep=KEEP)
        np.testing.assert_array_equal(got.lag, 1)
        if level == "target":
            assert_same_readout(got, oracle_nested(x, responses, folds, grid), responses)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("constant", [0.0, 0.1, -7.3e5])
def test_constant_targets_have_no_say(constant, metric):
    """Pooled choices are those of the other targets alone."""
    x, responses = simulate(32)
    folds = contiguous_folds(44, 4, gap=1)
    selection = Selection("shared", "shared", "shared")
    grid = RidgeGrid((0.3, 30.0, 1e3), (0, 2), metric, selection)
    others = nested_ridge(x, responses[:, :, 1:], folds, grid)
    responses[:, :, 0] = constant
    got = nested_ridge(x, responses, folds, grid)
    for name in ("lag", "components", "alpha"):
        value = getattr(others, name)
        np.testing.assert_array_equal(getattr(got, name), np.hstack([value[:, :1], value]))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("constant", [0.0, 0.1, -7.3e5])
def test_a_block_in_which_a_target_is_constant_does_not_choose_for_it(constant, metric):
    """Nor does one that was predicted from rows on which the target is constant, where there is no correlation."""
    x, responses = simulate(33, n=48, n_targets=2, n_lags=2)
    folds = contiguous_folds(48, 4, gap=1)
    responses[:, folds.rows(2), 0] = constant
    responses[:, : folds.bounds(3)[0], 1] = constant
    grid = RidgeGrid((0.3, 30.0, 1e3), (0, 2), metric)
    expected = oracle_nested(x, responses, folds, grid)
    assert np.isnan(expected.inner[3, ..., 1]).all()
    for form in ("primal", "kernel"):
        got = nested_ridge(x, responses, folds, grid, form=form, keep=KEEP)
        assert_same_readout(got, expected, responses)


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
@pytest.mark.parametrize("form", ["primal", "kernel"])
def test_a_block_in_which_the_features_are_constant_has_no_correlation(form, metric):
    x, responses = simulate(34, n=48, n_targets=2, n_lags=2)
    folds = contiguous_folds(48, 4, gap=1)
    x[folds.rows(1)] = np.array([0.1, -0.3, 7.7, 1e5, 0.0])
    grid = RidgeGrid((0.3, 30.0, 1e3), (0, 2), metric)
    expected = oracle_nested(x, responses, folds, grid)
    assert np.isnan(expected.fold_scores(metric)[1]).all()
    got = nested_ridge(x, responses, folds, grid, form=form, keep=KEEP)
    assert_same_readout(got, expected, responses)


# --- selection scores ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
def test_the_selection_score_is_the_one_asked_for(metric):
    """The best mean validation score of the cross-validated fit, against SciPy and the definition of R²."""
    x, responses = simulate(41, n=60, n_lags=1)
    folds = contiguous_folds(60, 3, gap=1)
    got = cross_validated_ridge(x, responses, folds, RidgeGrid((5.0,), (0,), metric))
    for t in range(5):
        found = []
        for block in range(3):
            train, rows = training_rows(folds, block), folds.rows(block)
            y = responses[0, :, t]
            centre, scale = x[train].mean(0), x[train].std(0)
            z = (x - centre) / scale
            weights = np.linalg.solve(
                z[train].T @ z[train] + 5.0 * np.eye(5), z[train].T @ (y[train] - y[train].mean())
            )
            guess = y[train].mean() + z[rows] @ weights
            if metric == "pearson":
                found.append(stats.pearsonr(y[rows], guess).statistic)
            elif metric == "spearman":
                found.append(stats.spearmanr(y[rows], guess).statistic)
            else:
                around = y[rows] - y[rows].mean()
                found.append(1 - ((y[rows] - guess) ** 2).sum() / (around**2).sum())
        assert got.score[t] == pytest.approx(np.mean(found), abs=1e-10)


@pytest.mark.parametrize("form", ["primal", "kernel"])
def test_ranks_of_equal_predictions_are_tied(form):
    """Few kinds of rows (onsets coded 0 and 1): rows of a kind have one prediction, whatever rounding does."""
    rng = np.random.default_rng(42)
    x = rng.integers(0, 2, (80, 2)).astype(float)
    responses = (x @ rng.standard_normal((2, 6)) + rng.standard_normal((80, 6)))[None]
    folds = contiguous_folds(80, 4, gap=1)
    grid = RidgeGrid((0.3, 30.0), (0,), "spearman")
    expected = oracle_nested(x, responses, folds, grid)
    got = nested_ridge(x, responses, folds, grid, form=form, keep=KEEP)
    assert_same_readout(got, expected, responses)


def test_ranks_choose_differently():
    """At lag 0 a response rises steeply but steadily with the features; at lag 1 in a straight line, with noise."""
    rng = np.random.default_rng(43)
    n, t = 120, 30
    x = rng.standard_normal((n, 2))
    steady = x[:, :1] + 0.2 * rng.standard_normal((n, t))
    responses = np.stack([np.exp(3.0 * steady), x[:, :1] + 0.8 * rng.standard_normal((n, t))])
    folds = contiguous_folds(n, 4)
    lag = {metric: nested_ridge(x, responses, folds, RidgeGrid((1.0,), (0,), metric)).lag for metric in METRICS}
    assert (lag["spearman"] == 0).all()
    assert lag["pearson"].mean() > 0.8
    assert lag["r2"].mean() > 0.8
