"""The closed form against simulated contrasts, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.signal import lfilter

from lpact.analyses.lpact.calibration.power_design import (
    chance_deviation,
    closed_form,
    critical_value,
    from_spread,
)
from lpact.stats import ar1_variance_inflation


def detectable(**changes):
    values = {
        "n_effective_events": 400.0,
        "n_effective_units": 4.0,
        "n_subject_runs": 5,
        "draws": (1, 20, 20),
        "alpha": 0.05,
        "target": 0.8,
    }
    return closed_form(**(values | changes))


def test_the_number_by_hand():
    """One unit, one rival: σ = 1/√100 = 0.1, SE = 0.1 √(2/2) = 0.1, (1.6449 + 0.8416) · 0.1."""
    found = detectable(n_effective_events=100.0, n_effective_units=1.0, n_subject_runs=2, draws=(1,))
    assert found.standard_error == pytest.approx(0.1)
    assert found.delta == pytest.approx(0.24865, abs=1e-5)
    assert found.score == pytest.approx(found.delta)
    # Two rivals: their expected maximum is 0.1 / √π.
    two = detectable(n_effective_events=100.0, n_effective_units=1.0, n_subject_runs=2, draws=(1, 1))
    assert two.score - two.delta == pytest.approx(0.1 / np.sqrt(np.pi))


@pytest.mark.parametrize("size", ["n_effective_events", "n_effective_units", "n_subject_runs"])
def test_a_larger_design_finds_smaller_effects(size):
    few, many = detectable(**{size: 3}), detectable(**{size: 30})
    assert many.delta < few.delta
    assert many.score < few.score


def test_a_point_rule_needs_less_and_more_power_needs_more():
    assert detectable(alpha=None).delta < detectable().delta < detectable(alpha=0.01).delta
    assert detectable(target=0.5).delta < detectable(target=0.95).delta
    assert detectable(alpha=None, target=0.5).delta == pytest.approx(0.0)


def test_few_draws_cost_power_and_one_draw_never_rejects():
    assert detectable(surrogate_draws=1) is None
    assert detectable(surrogate_draws=1, alpha=None) is not None
    assert critical_value(0.05, 19) == pytest.approx(stats.norm.ppf(0.95))
    assert critical_value(0.05, 3) == pytest.approx(stats.t.ppf(0.95, 2) * np.sqrt(4 / 3))
    assert detectable(surrogate_draws=3).delta > detectable(surrogate_draws=19).delta


def test_spread_of_a_run_by_hand():
    """Sd of (0.1, 0.2, 0.3) is 0.1; t quantiles on 2 degrees of freedom are 2.9200 and 1.0607."""
    found = from_spread([0.1, 0.2, 0.3], 0.05, alpha=0.05, target=0.8)
    assert found is not None
    assert found.delta == pytest.approx((2.91999 + 1.06066) * 0.1 / np.sqrt(3), rel=1e-5)
    assert found.score == pytest.approx(0.05 + found.delta)
    assert from_spread([0.1], 0.0, alpha=0.05, target=0.8) is None


def ar1(rng, shape, phi):
    noise = rng.standard_normal((shape[0] + 100, *shape[1:])) * np.sqrt(1 - phi**2)
    return lfilter([1.0], [1.0, -phi], noise, axis=0)[100:]


def test_power_at_the_smallest_effect_is_the_target():
    """Subject-runs with five independent units, autocorrelated predictions and responses, and one rival.

    Predictions carry a part of the response that gives the closed form's score; each unit's score is their
    correlation, a subject-run's is the median over units. Coarse: the closed form is an approximation.
    """
    n, units, runs, studies, phi = 150, 5, 4, 500, 0.6
    found = closed_form(
        n_effective_events=n / ar1_variance_inflation(phi, phi, n),
        n_effective_units=units,
        n_subject_runs=runs,
        draws=(1,),
        alpha=0.05,
        target=0.8,
    )
    rng = np.random.default_rng(0)

    def contrasts(effect: float) -> np.ndarray:
        shape = (n, units, runs, studies)
        response = ar1(rng, shape, phi)
        real = effect * response + np.sqrt(1 - effect**2) * ar1(rng, shape, phi)
        scores = [_columns(p, response) for p in (real, ar1(rng, shape, phi))]
        return np.mean(np.median(scores[0], axis=0) - np.median(scores[1], axis=0), axis=0)

    threshold = 1.6449 * found.standard_error
    assert np.mean(contrasts(0.0) > threshold) == pytest.approx(0.05, abs=0.03)
    assert np.mean(contrasts(found.delta) > threshold) == pytest.approx(0.8, abs=0.1)


def _columns(x, y):
    x, y = (v - v.mean(axis=0) for v in (x, y))
    return (x * y).sum(axis=0) / np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))


def test_chance_scores_of_correlated_units_have_the_predicted_deviation():
    """Responses of eight units with one common factor, predictions made of other responses with the same mixing."""
    from lpact.stats import effective_units

    rng = np.random.default_rng(1)
    n, units, studies = 100, 8, 800

    def mixed():
        own, common = rng.standard_normal((n, units, studies)), rng.standard_normal((n, 1, studies))
        return own + 1.2 * common

    scores = np.median(_columns(mixed(), mixed()), axis=0)
    worth = effective_units(np.moveaxis(mixed(), 2, 1).reshape(-1, units))
    assert 1.5 < worth < 4.0
    assert scores.std() == pytest.approx(chance_deviation(n, worth), rel=0.2)
