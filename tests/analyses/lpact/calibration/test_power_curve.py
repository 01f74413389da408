"""Power curves from few trials, against scikit-learn, closed forms and a known curve."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from lpact.analyses.lpact.calibration.power_simulate import PowerCurve, fit_curve

SNR = np.repeat([0.1, 0.2, 0.4, 0.8, 1.6], 6)


def trials(seed: int, half: float, slope: float) -> np.ndarray:
    power = expit(slope * np.log(SNR / half))
    return np.random.default_rng(seed).random(len(SNR)) < power


@pytest.mark.parametrize("deviation", [0.7, 3.0])
def test_the_fit_is_that_of_scikit_learn(deviation):
    passed = trials(0, half=0.4, slope=2.5)
    # Its penalty falls on the slope alone: C = variance of the prior of mean 0.
    oracle = LogisticRegression(C=deviation**2, tol=1e-10, max_iter=10_000)
    oracle.fit(np.log(SNR)[:, None], passed)
    found = fit_curve(SNR, passed, slope_prior=(0.0, deviation), intercept_deviation=1e6)
    assert found is not None
    expected = [oracle.intercept_[0], oracle.coef_[0, 0]]
    np.testing.assert_allclose(found.coefficients, expected, rtol=1e-5)


def test_with_a_fixed_slope_of_zero_the_intercept_is_the_log_odds():
    """A prior that allows nothing but a slope of b leaves Σ (y − p) = 0, which is closed where all ratios are 1."""
    passed = np.array([True] * 3 + [False] * 9)
    found = fit_curve(np.ones(12), passed, slope_prior=(2.0, 1e-3), intercept_deviation=1e4)
    assert found is not None
    np.testing.assert_allclose(found.coefficients, [logit(0.25), 2.0], rtol=1e-6)
    # The information of a proportion is n p (1 − p).
    assert found.covariance[0, 0] == pytest.approx(1 / (12 * 0.25 * 0.75), rel=1e-4)


def test_many_trials_give_the_curve_back():
    snr = np.tile(SNR, 200)
    passed = np.random.default_rng(1).random(len(snr)) < expit(3.0 * np.log(snr / 0.3))
    found = fit_curve(snr, passed)
    assert found is not None
    assert found.snr_at(0.5) == pytest.approx(0.3, rel=0.05)
    at_target = 0.3 * np.exp(logit(0.8) / 3.0)
    assert found.snr_at(0.8) == pytest.approx(at_target, rel=0.05)
    low, high = found.interval(0.8)
    assert low < at_target < high
    assert high / low < 1.2
    assert found.power(found.snr_at(0.8)) == pytest.approx(0.8)


def test_perfectly_separated_trials_stay_finite_and_between():
    found = fit_curve(SNR, SNR > 0.5)
    assert found is not None
    assert 0.4 < found.snr_at(0.5) < 0.8
    low, high = found.interval(0.8)
    assert 0.1 < low < found.snr_at(0.8) < high < 3.0


def test_the_interval_covers_the_truth_in_most_studies():
    truth = 0.4 * np.exp(logit(0.8) / 3.0)
    covered = []
    for seed in range(200):
        found = fit_curve(SNR, trials(seed, half=0.4, slope=3.0))
        assert found is not None
        low, high = found.interval(0.8)
        covered.append(low < truth < high)
    assert np.mean(covered) >= 0.88


def test_power_that_falls_with_the_ratio_has_no_curve():
    falling = np.tile(SNR, 10)
    assert fit_curve(falling, falling < 0.5) is None
    assert isinstance(fit_curve(falling, falling > 0.5), PowerCurve)
