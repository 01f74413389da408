"""Partial correlations against a least-squares loop."""

import numpy as np
import pytest
from scipy.stats import pearsonr

from lpact.math.scores import partial_correlations

RNG = np.random.default_rng()


@pytest.fixture(autouse=True)
def _same_numbers_in_every_test():
    RNG.bit_generator.state = np.random.default_rng(5).bit_generator.state


def oracle(y, m):
    r = np.full((m.shape[1], y.shape[1]), np.nan)
    for j in range(m.shape[1]):
        design = np.column_stack([np.ones(len(m)), np.delete(m, j, axis=1)])
        residuals = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (m[:, j], *y.T)]
        r[j] = [pearsonr(residuals[0], other).statistic for other in residuals[1:]]
    return r


@pytest.fixture
def data():
    m = RNG.standard_normal((80, 4)) @ RNG.standard_normal((4, 4)) + 3.0
    y = m @ RNG.standard_normal((4, 6)) + RNG.standard_normal((80, 6))
    return y, m


def test_equals_regression_residuals(data):
    y, m = data
    np.testing.assert_allclose(partial_correlations(y, m), oracle(y, m), atol=1e-12)


def test_one_variable_gives_the_plain_correlation(data):
    y, m = data
    expected = [[pearsonr(m[:, 0], column).statistic for column in y.T]]
    np.testing.assert_allclose(partial_correlations(y, m[:, :1]), expected, atol=1e-13)


def test_matches_the_three_variable_formula(data):
    y, m = data
    r = np.corrcoef(np.column_stack([y[:, 0], m[:, :2]]), rowvar=False)
    expected = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
    np.testing.assert_allclose(partial_correlations(y, m[:, :2])[0, 0], expected, atol=1e-12)


@pytest.mark.parametrize("offset_scale", [(0.0, 1e-150), (1e6, 1.0), (-2.0, 1e150)])
def test_offsets_and_scales_change_nothing(data, offset_scale):
    y, m = data
    offset, scale = offset_scale
    np.testing.assert_allclose(
        partial_correlations(y * scale + offset * scale, m * scale + offset * scale),
        oracle(y, m),
        atol=1e-8,
    )


def test_collinear_others_count_once(data):
    y, m = data
    doubled = np.column_stack([m, 2.0 * m[:, 3] - 1.0])
    expected = partial_correlations(y, m)
    got = partial_correlations(y, doubled)
    np.testing.assert_allclose(got[:3], expected[:3], atol=1e-10)
    # Each of the twins is fully explained by the other.
    assert np.isnan(got[3:]).all()


def test_constant_and_fully_explained_columns_are_nan(data):
    y, m = data
    m = np.column_stack([m, np.full(len(m), 0.1)])
    y = np.column_stack([y, np.full(len(y), 0.3), m[:, 0] - 2.0 * m[:, 1]])
    got = partial_correlations(y, m)
    assert np.isnan(got[4]).all()
    assert np.isnan(got[:, 6]).all()
    # The last response is made of variables 0 and 1: given them, nothing is left for 2 and 3.
    assert np.isnan(got[2:, 7]).all()
    np.testing.assert_allclose(np.abs(got[:2, 7]), 1.0, atol=1e-10)
    np.testing.assert_allclose(got[:4, :6], oracle(y[:, :6], m[:, :4]), atol=1e-12)


def test_more_variables_than_events_leave_nothing():
    assert np.isnan(partial_correlations(RNG.standard_normal((5, 2)), RNG.standard_normal((5, 7)))).all()


@pytest.mark.parametrize(
    ("y", "m", "message"),
    [
        (np.ones((4, 1)), np.ones((5, 1)), "same rows"),
        (np.array([[np.nan], [1.0]]), np.ones((2, 1)), "not finite"),
        (np.ones(4), np.ones((4, 1)), "matrix"),
    ],
)
def test_bad_inputs_are_errors(y, m, message):
    with pytest.raises(ValueError, match=message):
        partial_correlations(y, m)
