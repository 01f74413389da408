"""Wilson's interval against published and closed-form values."""

from __future__ import annotations

import pytest
from scipy import stats

from lpact.math.intervals import wilson_interval


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
    with pytest.raises(ValueError, match="no proportion"):
        wilson_interval(n_passes, n_trials)
    with pytest.raises(ValueError, match="confidence"):
        wilson_interval(1, 3, confidence=1.0)
