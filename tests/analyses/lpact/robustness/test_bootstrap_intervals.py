from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lpact.analyses.lpact.robustness.uncertainty import bootstrap_mean
from lpact.codes import Reason


def interval(values, *, seed=0, draws=2000, key=("demo", "level")):
    return bootstrap_mean(np.array(values, dtype=float), seed=seed, draws=draws, key=key)


@pytest.mark.parametrize("n", [5, 12, 40])
def test_intervals_agree_with_scipy(n):
    """Percentiles at the level that makes up for few units."""
    values = np.random.default_rng(n).gamma(2.0, size=n)
    found = interval(values, draws=20_000)
    known = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=20_000,
        confidence_level=1 - 2 * stats.norm.cdf(stats.t.ppf(0.025, n - 1) * np.sqrt(n / (n - 1))),
        method="percentile",
        rng=np.random.default_rng(1),
    )
    error = 0.08 * values.std()
    assert found.mean == pytest.approx(values.mean())
    assert found.low == pytest.approx(known.confidence_interval.low, abs=error)
    assert found.high == pytest.approx(known.confidence_interval.high, abs=error)


def test_five_units_are_covered_as_said():
    """Plain percentiles of five normal units hold their mean in some 84 % of samples, far from 95 %."""
    samples = np.random.default_rng(8).normal(size=(400, 5))
    found = [interval(values, draws=1000, key=(str(i),)) for i, values in enumerate(samples)]
    covered = np.mean([f.low <= 0.0 <= f.high for f in found])
    assert 0.91 < covered < 0.99


def test_two_units_give_their_range():
    """Means of two are a, (a + b) / 2 and b with probabilities 1/4, 1/2 and 1/4: both tails hold more than asked."""
    found = interval([1.0, 3.0])
    assert (found.mean, found.low, found.high) == (2.0, 1.0, 3.0)
    assert found.reason is Reason.OK
    assert found.reason is Reason.OK


def test_one_unit_is_a_point_and_flagged():
    found = interval([0.4])
    assert (found.mean, found.low, found.high) == (0.4, 0.4, 0.4)
    assert found.reason is Reason.SINGLE_AGGREGATION_UNIT
    assert found.reason is Reason.SINGLE_AGGREGATION_UNIT


def test_no_unit_has_no_interval():
    found = interval([])
    assert (found.mean, found.low, found.high) == (None, None, None)
    assert found.reason is Reason.NOTHING_MEASURED


def test_draws_follow_from_seed_and_key():
    values = np.random.default_rng(0).normal(size=9)
    first = interval(values)
    assert interval(values) == first
    assert interval(values, seed=1) != first
    assert interval(values, key=("demo", "other")) != first
