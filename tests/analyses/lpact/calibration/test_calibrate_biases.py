"""Biases of point rules against what can be worked out about them."""

from __future__ import annotations

import polars as pl
import pytest

from lpact.analyses.lpact.calibration.biases import CARRIERS, measure_biases


@pytest.fixture(scope="module")
def biases() -> pl.DataFrame:
    return measure_biases(seed=1, share=0.3)


def by_value(biases: pl.DataFrame, bias: str, column: str) -> dict[float, float]:
    return dict(biases.filter(bias=bias).select("value", column).iter_rows())


def test_the_best_of_many_equals_grows_as_the_largest_of_normal_draws(biases):
    """The score of a control varies normally, so that the bias goes with E max(z_1 … z_k)."""
    expected = {2.0: 0.56419, 4.0: 1.02938, 8.0: 1.42360, 16.0: 1.76599}
    found = by_value(biases, "best_of_many_controls", "bias_size")
    errors = by_value(biases, "best_of_many_controls", "standard_error")
    scale = -found[16.0] / expected[16.0]
    # The spread of a correlation of 300 events that comes from the prediction's own noise.
    assert 0.02 < scale < 0.06
    for k, largest in expected.items():
        assert found[k] == pytest.approx(-scale * largest, abs=4 * errors[k])
    assert abs(found[1.0]) < 4 * errors[1.0]


def test_halves_share_the_drift_and_recordings_do_not(biases):
    found = by_value(biases, "reliability_under_drift", "bias_size")
    errors = by_value(biases, "reliability_under_drift", "standard_error")
    assert abs(found[0.0]) < 4 * errors[0.0]
    assert found[0.5] > 0.2
    assert found[2.0] > 0.7
    true = by_value(biases, "reliability_under_drift", "true")
    assert true[0.0] > 0.2
    assert abs(true[2.0]) < 0.15


def test_few_rows_pick_units_by_their_noise_and_many_rows_do_not(biases):
    carrying = by_value(biases, "few_rows_localiser_units", "true")
    assert carrying[20.0] < 0.5 * CARRIERS
    assert carrying[800.0] == pytest.approx(CARRIERS, abs=0.05)
    assert list(carrying.values()) == sorted(carrying.values())
    inflated = by_value(biases, "few_rows_localiser", "bias_size")
    errors = by_value(biases, "few_rows_localiser", "standard_error")
    assert inflated[20.0] > 0.3
    assert abs(inflated[800.0]) < 4 * errors[800.0]


def test_the_same_seed_gives_the_same_numbers(biases):
    again = measure_biases(seed=1, share=0.005)
    assert again.equals(measure_biases(seed=1, share=0.005))
    assert not again.equals(measure_biases(seed=2, share=0.005))
    assert biases.height == again.height
