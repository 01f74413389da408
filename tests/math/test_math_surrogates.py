"""Surrogates keep what they promise to keep, and only that."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal, stats

from lpact.math.surrogates import (
    autocorrelation_time,
    block_permutation,
    circular_shift_order,
    derangement_target,
    matched_gaussian,
    phase_randomize,
    phase_randomize_segments,
    segment_slices,
    within_group_permutation,
)

IDS = st.lists(st.integers(0, 3), min_size=1, max_size=40).map(np.array)
SEEDS = st.integers(0, 2**32 - 1)


def autoregressive(n, coefficient, rng, n_columns=1):
    noise = rng.standard_normal((n + 500, n_columns))
    return signal.lfilter([1.0], [1.0, -coefficient], noise, axis=0)[500:]


def cross_spectra(x):
    spectrum = np.fft.fft(x, axis=0)
    return spectrum[:, :, None] * spectrum[:, None, :].conj()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 64, 101])
def test_every_auto_and_cross_spectrum_is_kept(n):
    rng = np.random.default_rng(n)
    x = autoregressive(n, 0.8, rng, 5) @ rng.standard_normal((5, 5)) + 3.0
    surrogate = phase_randomize(x, rng)
    expected = cross_spectra(x)
    np.testing.assert_allclose(cross_spectra(surrogate), expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_allclose(surrogate.mean(axis=0), x.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(surrogate.var(axis=0), x.var(axis=0), atol=1e-12)
    assert surrogate.dtype == np.float64
    if n >= 3:
        assert not np.allclose(surrogate, x)


def test_spectra_of_every_segment_are_kept():
    rng = np.random.default_rng(1)
    ids = np.repeat([4, 1, 4, 9], [30, 41, 17, 1])
    x = autoregressive(len(ids), 0.7, rng, 3)
    surrogate = phase_randomize_segments(x, ids, rng)
    for rows in (slice(0, 30), slice(30, 71), slice(71, 88)):
        length = rows.stop - rows.start
        for i, j in itertools.product(range(3), repeat=2):
            options = {"window": "boxcar", "nperseg": length, "detrend": False}
            got, expected = (signal.csd(s[rows, i], s[rows, j], **options)[1] for s in (surrogate, x))
            np.testing.assert_allclose(got, expected, atol=1e-10)
        np.testing.assert_allclose(surrogate[rows].mean(axis=0), x[rows].mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(surrogate[88], x[88])


def test_segments_have_phases_of_their_own():
    rng = np.random.default_rng(2)
    story = autoregressive(40, 0.5, rng)
    surrogate = phase_randomize_segments(np.vstack([story, story]), np.repeat([0, 1], 40), rng)
    assert not np.allclose(surrogate[:40], surrogate[40:])


def test_phase_randomising_loses_the_locking_but_not_the_autocorrelation():
    rng = np.random.default_rng(3)
    x = autoregressive(300, 0.9, rng, 2)
    draws = [phase_randomize(x, rng) for _ in range(300)]
    locking = [np.corrcoef(x[:, 0], draw[:, 0])[0, 1] for draw in draws]
    assert abs(np.mean(locking)) < 4 * np.std(locking) / np.sqrt(len(locking))
    assert np.max(np.abs(locking)) < 0.9
    lag_one = [np.sum(d * np.roll(d, 1, axis=0)) for d in (x, draws[0])]
    np.testing.assert_allclose(lag_one[1], lag_one[0], rtol=1e-10)


def test_nyquist_coefficient_takes_both_signs():
    x = np.array([[1.0], [-1.0]] * 4)
    flips = {float(phase_randomize(x, np.random.default_rng(s))[0, 0].round(9)) for s in range(20)}
    assert flips == {1.0, -1.0}


def test_offsets_and_constant_columns_are_kept():
    rng = np.random.default_rng(4)
    x = autoregressive(50, 0.5, rng, 2)
    x[:, 0] += 1e9
    x[:, 1] = 0.1
    surrogate = phase_randomize(x, rng)
    np.testing.assert_array_equal(surrogate[:, 1], 0.1)
    np.testing.assert_allclose(surrogate[:, 0].std(), x[:, 0].std(), rtol=1e-6)


@pytest.mark.parametrize("make", [phase_randomize, matched_gaussian])
def test_same_generator_gives_the_same_surrogate(make):
    x = np.random.default_rng(0).standard_normal((20, 3))
    first, again, other = (make(x, np.random.default_rng(seed)) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def direct_autocorrelation_time(x):
    x = x - x.mean(axis=0)
    x = x[:, x.std(axis=0) > 0]
    x = x / x.std(axis=0)
    n = len(x)
    variance = np.sum(x * x) / n
    for lag in range(1, n):
        if np.sum(x[lag:] * x[:-lag]) / (n - lag) < variance / np.e:
            return lag
    raise AssertionError


@pytest.mark.parametrize("coefficient", [0.0, 0.5, 0.9, 0.98])
@pytest.mark.parametrize("n", [2, 3, 50, 1000])
def test_autocorrelation_time_equals_the_direct_sum(coefficient, n):
    rng = np.random.default_rng(n)
    x = autoregressive(n, coefficient, rng, 3) * [1.0, 10.0, 0.1]
    expected = direct_autocorrelation_time(x)
    assert autocorrelation_time(x) == expected
    assert autocorrelation_time(np.column_stack([x, np.full(n, 7.3)]) * 1e200) == expected


@pytest.mark.parametrize(("coefficient", "expected"), [(0.0, 1), (0.5, 2), (0.9, 10)])
def test_autocorrelation_time_of_long_autoregressive_series(coefficient, expected):
    # ρ(l) = cˡ falls below 1/e at l > −1 / ln c.
    x = autoregressive(200_000, coefficient, np.random.default_rng(0))
    assert abs(autocorrelation_time(x) - expected) <= (expected > 2)


def test_autocorrelation_time_of_many_columns_and_of_constants():
    rng = np.random.default_rng(6)
    x = autoregressive(80, 0.9, rng, 300)
    assert autocorrelation_time(x) == direct_autocorrelation_time(x)
    assert autocorrelation_time(np.full((10, 2), 0.1)) == 1
    assert autocorrelation_time(np.ones((1, 1))) == 1


@settings(deadline=None)
@given(st.integers(2, 60), st.integers(1, 30), SEEDS)
def test_shift_orders_rotate_far_enough(n, min_shift, seed):
    if 2 * min_shift > n:
        with pytest.raises(ValueError, match="in either direction needs"):
            circular_shift_order(n, min_shift, np.random.default_rng(seed))
        return
    order = circular_shift_order(n, min_shift, np.random.default_rng(seed))
    x = np.random.default_rng(0).standard_normal((n, 2))
    shift = int(np.flatnonzero(order == 0)[0])
    assert min_shift <= shift <= n - min_shift
    np.testing.assert_array_equal(x[order], np.roll(x, shift, axis=0))
    again = circular_shift_order(n, min_shift, np.random.default_rng(seed))
    np.testing.assert_array_equal(order, again)


def test_shift_orders_are_uniform_over_admissible_shifts():
    rng = np.random.default_rng(12)
    orders = np.stack([circular_shift_order(20, 6, rng) for _ in range(6000)])
    counts = np.bincount(np.argmin(orders, axis=1), minlength=20)
    assert set(np.flatnonzero(counts)) == set(range(6, 15))
    assert stats.chisquare(counts[6:15]).pvalue > 0.001


def test_shifts_beyond_the_autocorrelation_time_undo_the_locking():
    rng = np.random.default_rng(13)
    x = autoregressive(3000, 0.95, rng)
    min_shift = 4 * autocorrelation_time(x)
    orders = np.stack([circular_shift_order(len(x), min_shift, rng) for _ in range(200)])
    shifted = x[orders, 0]
    locking = [np.corrcoef(x[:, 0], draw)[0, 1] for draw in shifted]
    assert np.corrcoef(x[:-1, 0], x[1:, 0])[0, 1] > 0.9
    assert np.max(np.abs(locking)) < 0.4
    np.testing.assert_allclose(np.sort(shifted, axis=1), np.sort(x, axis=0).T.repeat(200, axis=0))


def test_token_shuffle_of_a_whole_series_is_one_group():
    order = within_group_permutation(np.zeros(500, dtype=np.int64), np.random.default_rng(14))
    x = autoregressive(500, 0.95, np.random.default_rng(15))
    assert autocorrelation_time(x) > 5
    assert autocorrelation_time(x[order]) == 1


@given(IDS)
def test_segments_are_maximal_runs(ids):
    slices = segment_slices(ids)
    assert np.concatenate([ids[rows] for rows in slices]).tolist() == ids.tolist()
    runs = [(key, len(list(run))) for key, run in itertools.groupby(ids.tolist())]
    assert [(int(ids[rows.start]), rows.stop - rows.start) for rows in slices] == runs


@settings(deadline=None)
@given(IDS, st.integers(1, 6), SEEDS)
def test_block_permutation_moves_whole_blocks_inside_their_segment(ids, block, seed):
    index = block_permutation(ids, block, np.random.default_rng(seed))
    for rows in segment_slices(ids):
        here = index[rows]
        assert sorted(here) == list(range(rows.start, rows.stop))
        starts = [i for i in here if (i - rows.start) % block == 0]
        rebuilt = [i for s in starts for i in range(s, min(s + block, rows.stop))]
        assert here.tolist() == rebuilt
        if rows.stop - rows.start > block:
            assert here.tolist() != list(range(rows.start, rows.stop))


@settings(deadline=None)
@given(IDS, SEEDS)
def test_group_permutation_stays_in_the_group_and_changes_it(ids, seed):
    index = within_group_permutation(ids, np.random.default_rng(seed))
    assert sorted(index) == list(range(len(ids)))
    np.testing.assert_array_equal(ids[index], ids)
    for group in np.unique(ids):
        members = np.flatnonzero(ids == group)
        assert (len(members) < 2) or (index[members] != members).any()


def test_permutations_are_uniform_over_all_but_the_identity():
    rng = np.random.default_rng(8)
    for draw in (
        lambda: within_group_permutation(np.zeros(3, dtype=np.int64), rng),
        lambda: block_permutation(np.zeros(6, dtype=np.int64), 2, rng)[::2] // 2,
    ):
        counts = {order: 0 for order in itertools.permutations(range(3)) if order != (0, 1, 2)}
        for _ in range(3000):
            counts[tuple(int(i) for i in draw())] += 1
        assert stats.chisquare(list(counts.values())).pvalue > 0.001


@pytest.mark.parametrize(("n", "index"), [(2, 0), (4, 0), (5, 2), (9, 8)])
def test_derangement_target_is_uniform_over_the_others(n, index):
    rng = np.random.default_rng(n)
    counts = np.bincount([derangement_target(n, index, rng) for _ in range(4000)], minlength=n)
    assert counts[index] == 0
    others = np.delete(counts, index)
    assert n == 2 or stats.chisquare(others).pvalue > 0.001


def test_uniform_is_what_enumerated_derangements_give():
    images = [p[1] for p in itertools.permutations(range(5)) if all(p[i] != i for i in range(5))]
    assert set(np.bincount(images, minlength=5)[[0, 2, 3, 4]]) == {11}


def test_gaussian_matches_means_and_deviations_and_nothing_else():
    rng = np.random.default_rng(9)
    x = autoregressive(2000, 0.95, rng, 4) ** 3 * [1.0, 1e-8, 1e8, 1.0] + [0.0, 5.0, 1e8, -3.0]
    x[:, 3] = 0.7
    surrogate = matched_gaussian(x, rng)
    np.testing.assert_allclose(surrogate.mean(axis=0), x.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(surrogate[:, :3].std(axis=0, ddof=1), x[:, :3].std(axis=0, ddof=1), rtol=1e-7)
    np.testing.assert_array_equal(surrogate[:, 3], 0.7)
    z = stats.zscore(surrogate[:, :3])
    assert min(stats.kstest(column, "norm").pvalue for column in z.T) > 0.001
    assert autocorrelation_time(x) > 5
    assert autocorrelation_time(surrogate) == 1
    assert np.abs(np.corrcoef(z, rowvar=False) - np.eye(3)).max() < 0.1


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 12), st.integers(1, 4), SEEDS)
def test_any_shape(n, p, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    for surrogate in (phase_randomize(x, rng), matched_gaussian(x, rng)):
        assert surrogate.shape == (n, p)
        np.testing.assert_allclose(surrogate.mean(axis=0), x.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(surrogate.std(axis=0), x.std(axis=0), atol=1e-12)
    assert 1 <= autocorrelation_time(x) <= max(1, n - 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda rng: phase_randomize(np.array([[np.inf]]), rng), "not finite"),
        (lambda rng: phase_randomize_segments(np.ones((3, 1)), np.zeros(2), rng), "segment id"),
        (lambda rng: block_permutation(np.zeros(3), 0, rng), "at least 1"),
        (lambda rng: circular_shift_order(9, 5, rng), "needs 10 events, got 9"),
        (lambda rng: circular_shift_order(9, 0, rng), "at least 0"),
        (lambda rng: derangement_target(1, 0, rng), "n ≥ 2"),
        (lambda rng: derangement_target(3, 3, rng), "index < n"),
        (lambda rng: segment_slices(np.zeros((2, 2))), "vector"),
    ],
)
def test_bad_inputs_are_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.random.default_rng(0))
