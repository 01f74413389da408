"""Effective numbers of events and units, against closed forms and simulated chance correlations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from lpact.stats import (
    ar1_variance_inflation,
    autocorrelation,
    effective_units,
    expected_maximum,
    median_penalty,
    pair_counts,
    segment_lengths,
    variance_inflation,
)

RNG = np.random.default_rng


def ar1(rng: np.random.Generator, n: int, p: int, phi: float) -> np.ndarray:
    """Stationary first-order autoregressive series of variance 1, [n, p]."""
    noise = rng.standard_normal((n + 200, p)) * np.sqrt(1 - phi**2)
    return lfilter([1.0], [1.0, -phi], noise, axis=0)[200:]


def test_autocorrelation_is_the_textbook_sum_within_segments():
    x = RNG(0).standard_normal((11, 2)).cumsum(axis=0)
    segments = np.array([0] * 6 + [1] * 5)
    centred = x - x.mean(axis=0)
    found = autocorrelation(x, segments, max_lag=3)
    for k in range(4):
        pairs = [(i, i + k) for i in range(11 - k) if segments[i] == segments[i + k]]
        expected = np.mean([centred[i] * centred[j] for i, j in pairs], axis=0)
        np.testing.assert_allclose(found[k], expected / (centred**2).mean(axis=0), rtol=1e-12)


def test_autocorrelation_of_a_first_order_series():
    x = ar1(RNG(1), 2000, 40, 0.7)
    found = autocorrelation(x, max_lag=4).mean(axis=1)
    np.testing.assert_allclose(found, 0.7 ** np.arange(5), atol=0.02)


def test_constant_columns_have_no_autocorrelation_and_short_segments_no_long_lag():
    x = np.column_stack([np.ones(6), np.arange(6.0)])
    found = autocorrelation(x, np.array([0, 0, 0, 1, 1, 1]), max_lag=4)
    assert found.shape == (5, 1)
    assert found[:3].all()
    assert (found[3:] == 0).all()
    assert autocorrelation(np.ones((5, 3)), max_lag=2).shape == (3, 0)


def test_default_lags_reach_a_quarter_of_the_longest_segment():
    x = RNG(2).standard_normal((60, 1))
    assert len(autocorrelation(x, np.repeat([0, 1], [40, 20]))) == 11


def test_segment_ids_must_fit():
    with pytest.raises(ValueError, match="4 segment ids for 5 rows"):
        autocorrelation(np.arange(5.0)[:, None], np.zeros(4, dtype=np.int64))


def test_pairs_are_counted_within_segments():
    lengths = segment_lengths(np.array([3, 3, 3, 7, 7]))
    assert lengths.tolist() == [3, 2]
    assert pair_counts(lengths, 3).tolist() == [5, 3, 1, 0]
    assert segment_lengths(np.zeros(0, dtype=np.int64)).tolist() == []


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (0.9, 0.6), (0.3, 0.95)])
def test_inflation_of_two_first_order_series_has_its_closed_form(a, b):
    n = 300
    lags = np.arange(n)
    found = variance_inflation(a**lags, b**lags, np.array([n]))
    assert found == pytest.approx(ar1_variance_inflation(a, b, n), rel=1e-10)
    # For a long series this is (1 + ab) / (1 − ab), Bartlett's number.
    assert ar1_variance_inflation(a, b, 10**7) == pytest.approx((1 + a * b) / (1 - a * b), rel=1e-5)


def test_one_white_series_makes_the_other_harmless():
    lags = 0.95 ** np.arange(50)
    white = np.zeros(50)
    white[0] = 1.0
    assert variance_inflation(white, lags, np.array([50])) == 1.0
    assert variance_inflation(lags, lags, np.array([50])) > 5.0


def test_noise_beyond_the_first_zero_is_not_summed():
    rho = np.array([1.0, 0.5, -0.1, 0.4])
    ones = np.array([1.0, 1.0, 1.0, 1.0])
    assert variance_inflation(rho, ones, np.array([4])) == pytest.approx(1 + 2 * 0.75 * 0.5)
    with pytest.raises(ValueError, match="4 and 3 lags"):
        variance_inflation(rho, ones[:3], np.array([4]))


@pytest.mark.parametrize(("a", "b"), [(0.0, 0.9), (0.8, 0.8)])
def test_inflation_is_that_of_simulated_chance_correlations(a, b):
    """4000 pairs of unrelated series: the variance of their correlation is the inflation over n."""
    n, p = 200, 4000
    x, y = ar1(RNG(3), n, p, a), ar1(RNG(4), n, p, b)
    z_x, z_y = ((v - v.mean(axis=0)) / v.std(axis=0) for v in (x, y))
    variance = np.mean(np.mean(z_x * z_y, axis=0) ** 2)
    rho = (autocorrelation(v[:, :200]).mean(axis=1) for v in (x, y))
    found = variance_inflation(*rho, np.array([n]))
    assert found / n == pytest.approx(variance, rel=0.12)
    assert found == pytest.approx(ar1_variance_inflation(a, b, n), rel=0.12)


def test_effective_units_of_independent_copied_and_constant_units():
    white = RNG(5).standard_normal((20_000, 5))
    assert effective_units(white) == pytest.approx(5.0, rel=0.01)
    assert effective_units(np.repeat(white[:, :1], 4, axis=1)) == pytest.approx(1.0)
    pairs = np.concatenate([white[:, :2], white[:, :2]], axis=1)
    assert effective_units(pairs) == pytest.approx(2.0, rel=0.01)
    assert effective_units(np.ones((10, 3))) == 0.0
    assert effective_units(np.column_stack([white[:, 0], np.ones(20_000)])) == 1.0


def test_effective_units_do_not_depend_on_which_product_is_formed():
    x = RNG(6).standard_normal((30, 40))
    eigenvalues = np.linalg.eigvalsh(np.corrcoef(x.T))
    expected = eigenvalues.sum() ** 2 / (eigenvalues**2).sum()
    assert effective_units(x) == pytest.approx(expected)
    y = RNG(7).standard_normal((40, 30)) @ RNG(8).standard_normal((30, 30))
    eigenvalues = np.linalg.eigvalsh(np.corrcoef(y.T))
    assert effective_units(y) == pytest.approx(eigenvalues.sum() ** 2 / (eigenvalues**2).sum())


@pytest.mark.parametrize(("n", "exact"), [(1, 1.0), (3, 1.3460), (9, 1.4942), (99, 1.5634)])
def test_median_penalty_is_near_the_exact_ratio(n, exact):
    """n times the variance of the median of n standard normal values (order-statistics tables; 99: simulation)."""
    assert median_penalty(n) == pytest.approx(exact, rel=0.05)


def test_expected_maximum_of_normal_values():
    """Known: 1/√π for two, 3/(2√π) for three, 1.35218 for seven."""
    assert expected_maximum(np.ones(1)) == pytest.approx(0.0, abs=1e-9)
    assert expected_maximum(np.ones(2)) == pytest.approx(1 / np.sqrt(np.pi), rel=1e-6)
    assert expected_maximum(np.ones(3)) == pytest.approx(1.5 / np.sqrt(np.pi), rel=1e-6)
    assert expected_maximum(np.ones(7)) == pytest.approx(1.35218, rel=1e-4)
    # Two values of other deviations: √(σ₁² + σ₂²) / √(2π).
    assert expected_maximum(np.array([3.0, 4.0])) == pytest.approx(5 / np.sqrt(2 * np.pi), rel=1e-5)
    assert expected_maximum(np.zeros(2)) == 0.0


def test_autocorrelations_can_be_lists():
    rho, lengths = [1.0, 0.5, 0.2], [10]
    expected = variance_inflation(np.array(rho), np.array(rho), np.array(lengths))
    assert variance_inflation(rho, rho, lengths) == expected
