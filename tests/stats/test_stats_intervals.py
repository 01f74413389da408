"""Intervals against published values, SciPy and their own coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lpact.stats import block_bootstrap, bootstrap_interval, student_interval, wilson_interval

RNG = np.random.default_rng


@pytest.mark.parametrize(
    ("n_passes", "n_trials", "low", "high"),
    [
        # Newcombe (1998), Statistics in Medicine 17, table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_published_values(n_passes, n_trials, low, high):
    assert wilson_interval(n_passes, n_trials) == pytest.approx((low, high), abs=5e-5)


def test_agrees_with_scipy_at_any_confidence():
    for n_passes, n_trials, confidence in (
        (3, 10, 0.9),
        (10, 10, 0.95),
        (0, 7, 0.99),
        (5, 1000, 0.5),
    ):
        oracle = stats.binomtest(n_passes, n_trials).proportion_ci(confidence, method="wilson")
        found = wilson_interval(n_passes, n_trials, confidence=confidence)
        assert found == pytest.approx((oracle.low, oracle.high), abs=1e-12)


def test_ends_are_exact_where_nothing_or_everything_passed():
    # z² / (n + z²) is the closed form of the other end.
    z2 = stats.norm.ppf(0.975) ** 2
    assert wilson_interval(0, 1000)[0] == 0.0
    assert wilson_interval(0, 1000)[1] == pytest.approx(z2 / (1000 + z2))
    assert wilson_interval(1000, 1000)[1] == 1.0


@pytest.mark.parametrize(("n_passes", "n_trials"), [(-1, 3), (4, 3), (0, 0)])
def test_what_is_no_proportion_is_refused(n_passes, n_trials):
    with pytest.raises(ValueError, match="not a proportion"):
        wilson_interval(n_passes, n_trials)
    with pytest.raises(ValueError, match="confidence"):
        wilson_interval(1, 3, confidence=1.0)


def test_the_interval_of_a_mean_covers_with_few_units():
    """The plain percentile of six values covers about 87 %."""
    covered = [
        (ends := bootstrap_interval(np.random.default_rng(i).normal(0, 1, 6), RNG(i), n_draws=499))
        and ends[0] <= 0.0 <= ends[1]
        for i in range(600)
    ]
    assert abs(np.mean(covered) - 0.95) < 0.03


def test_the_interval_of_many_units_is_that_of_scipy():
    values = np.random.default_rng(0).standard_normal(300)
    expected = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=9_999, rng=RNG(1)
    ).confidence_interval
    found = bootstrap_interval(values, RNG(2), n_draws=9_999)
    assert found == pytest.approx((expected.low, expected.high), abs=0.01)


def test_one_unit_has_no_interval():
    with pytest.raises(ValueError, match="at least 2 units"):
        bootstrap_interval(np.ones(1), RNG(0))
    with pytest.raises(ValueError, match="at least 2 units with finite values, got 1"):
        bootstrap_interval([1.0, np.nan, np.inf], RNG(0))
    with pytest.raises(ValueError, match="at least 2 blocks"):
        block_bootstrap(np.mean, np.zeros(5), RNG(0))


def test_missing_units_are_left_out():
    values = [1.0, np.nan, 2.0, 4.0]
    assert bootstrap_interval(values, 3) == bootstrap_interval([1.0, 2.0, 4.0], 3)


def test_blocks_are_drawn_whole():
    blocks = np.array([3, 3, 1, 1, 1, 2])
    whole = {1: [2, 3, 4], 2: [5], 3: [0, 1]}
    seen = []
    block_bootstrap(lambda rows: seen.append(rows.tolist()) or 0.0, blocks, RNG(0), n_draws=50)
    assert seen.pop() == list(range(6))
    for rows in seen:
        left, n_drawn = list(rows), 0
        while left:
            block = blocks[left[0]]
            assert left[: len(whole[block])] == whole[block]
            left, n_drawn = left[len(whole[block]) :], n_drawn + 1
        assert n_drawn == 3


def test_the_block_bootstrap_of_means_is_the_interval_of_block_means():
    """Equal blocks: resampling rows by block resamples the blocks' means."""
    values = np.random.default_rng(1).standard_normal((12, 5)) + np.arange(12)[:, None]
    blocks, flat = np.repeat(np.arange(12), 5), values.ravel()
    found = block_bootstrap(lambda rows: flat[rows].mean(), blocks, RNG(3), n_draws=2000)
    expected = bootstrap_interval(values.mean(axis=1), RNG(3), n_draws=2000)
    assert (found.low, found.high) == pytest.approx(expected)
    assert found.value == pytest.approx(flat.mean())
    assert found.n_undefined == 0


def test_undefined_draws_are_counted():
    blocks = np.repeat(np.arange(4), 2)
    found = block_bootstrap(lambda rows: np.nan if 0 in rows else float(rows.mean()), blocks, RNG(0), n_draws=400)
    assert np.isnan(found.value)
    assert found.n_undefined == np.isnan(found.draws).sum()
    assert found.n_undefined / 400 == pytest.approx(1 - 0.75**4, abs=0.1)
    assert 2 <= found.low <= found.high <= 7


def test_lists_and_seeds_are_arrays_and_generators():
    values = np.random.default_rng(1).standard_normal(12)
    assert bootstrap_interval(values.tolist(), 3) == bootstrap_interval(values, RNG(3))
    blocks = np.repeat(np.arange(4), 3)
    found, expected = (
        block_bootstrap(lambda rows: values[rows].mean(), labels, seed, n_draws=99)
        for labels, seed in ((blocks.tolist(), 3), (blocks, RNG(3)))
    )
    assert (found.value, found.low, found.high) == (expected.value, expected.low, expected.high)


def test_student_intervals_are_scipys_of_every_row_without_missing_values():
    values = RNG(0).normal(size=(3, 7))
    values[1, 2:4] = np.nan
    values[2, 1:] = np.nan
    low, high = student_interval(values, confidence=0.9)
    for i in (0, 1):
        kept = values[i][np.isfinite(values[i])]
        expected = stats.t.interval(0.9, kept.size - 1, kept.mean(), stats.sem(kept))
        assert (low[i], high[i]) == pytest.approx(expected)
    assert np.isnan([low[2], high[2]]).all()
