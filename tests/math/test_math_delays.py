"""Stacked delays against a loop, and against convolution with a known impulse response."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpact.math.delays import stack_delays
from lpact.math.ridge import RidgeGrid, cross_validated_ridge, nested_ridge
from lpact.math.splits import contiguous_folds


@settings(deadline=None)
@given(
    st.integers(0, 1000),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
    st.lists(st.integers(-4, 4), min_size=1, max_size=4, unique=True),
)
def test_every_cell_is_the_row_that_the_delay_asks_for(seed, lengths, delays):
    rng = np.random.default_rng(seed)
    segments = np.repeat(np.arange(len(lengths)), lengths)
    x = rng.standard_normal((len(segments), 2))
    stacked, complete = stack_delays(x, delays, segments, fill=-7.0)
    assert stacked.shape == (len(x), 2 * len(delays))
    for i in range(len(x)):
        inside = []
        for j, delay in enumerate(delays):
            source = i - delay
            same = 0 <= source < len(x) and segments[source] == segments[i]
            inside.append(same)
            expected = x[source] if same else [-7.0, -7.0]
            np.testing.assert_array_equal(stacked[i, 2 * j : 2 * j + 2], expected)
        assert complete[i] == all(inside)


def test_a_planted_impulse_response_is_found_where_one_lag_is_not_enough():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((600, 1))
    response = np.array([0.2, 1.0, 0.6, -0.4])
    y = np.convolve(x[:, 0], response)[:600, None] + 0.1 * rng.standard_normal((600, 1))
    stacked, complete = stack_delays(x, range(4))
    folds, grid = contiguous_folds(int(complete.sum()), 5, gap=4), RidgeGrid((1e-3, 1.0))
    fit = cross_validated_ridge(stacked[complete], y[None, complete], folds, grid)
    np.testing.assert_allclose(fit.weights[:, 0], response, atol=0.03)

    lags = np.stack([np.roll(y, -lag, axis=0) for lag in range(4)])
    one_lag = nested_ridge(x, lags, contiguous_folds(600, 5, gap=4), grid).scores("r2")
    all_lags = nested_ridge(stacked[complete], y[None, complete], folds, grid).scores("r2")
    assert all_lags[0] > 0.95
    assert one_lag[0] < 0.75


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(4), [0]), r"x must be \[n, p\]"),
        ((np.zeros((4, 1)), []), "delays must be given"),
        ((np.zeros((4, 1)), [1, 1]), "each once"),
        ((np.zeros((4, 1)), [0], np.zeros(3, dtype=int)), "one segment id a row"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        stack_delays(*arguments)
