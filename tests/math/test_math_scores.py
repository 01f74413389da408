"""Scores against SciPy and scikit-learn."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from sklearn.metrics import r2_score

from lpact.math.columns import mean_of_finite
from lpact.math.scores import average_ranks, pearson_columns, r2_columns, spearman_columns

RNG = np.random.default_rng()
CORRELATIONS = [(pearson_columns, stats.pearsonr), (spearman_columns, stats.spearmanr)]


@pytest.fixture(autouse=True)
def _same_numbers_in_every_test():
    RNG.bit_generator.state = np.random.default_rng(11).bit_generator.state


@pytest.fixture
def pair():
    a = RNG.standard_normal((60, 7))
    return a, 0.5 * a + RNG.standard_normal((60, 7))


@pytest.mark.parametrize(("ours", "oracle"), CORRELATIONS)
def test_correlation_equals_scipy(pair, ours, oracle):
    a, b = pair
    expected = [oracle(a[:, j], b[:, j]).statistic for j in range(a.shape[1])]
    np.testing.assert_allclose(ours(a, b), expected, atol=1e-14)


def test_spearman_with_ties_equals_scipy():
    a, b = RNG.integers(0, 4, (2, 50, 6)).astype(float)
    expected = [stats.spearmanr(a[:, j], b[:, j]).statistic for j in range(6)]
    np.testing.assert_allclose(spearman_columns(a, b), expected, atol=1e-14)


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e8])
def test_pearson_survives_a_mean_far_above_the_spread(pair, offset):
    a, b = pair
    # Offset first, so that both sides see the same rounded input.
    shifted = a + offset
    centred = shifted - offset
    np.testing.assert_allclose(pearson_columns(shifted, b), pearson_columns(centred, b), rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("score", [pearson_columns, spearman_columns])
def test_correlation_survives_tiny_and_huge_scales(pair, scale, score):
    a, b = pair
    # Subnormal numbers keep few digits, so the input itself is what must be compared.
    scaled = a * scale
    np.testing.assert_allclose(score(scaled, b), score(scaled / scale, b), atol=1e-3 if scale < 1e-305 else 1e-13)


@pytest.mark.parametrize("score", [pearson_columns, spearman_columns])
def test_constant_or_non_finite_column_is_nan_and_others_are_untouched(pair, score):
    a, b = pair
    expected = score(a, b)
    a, b = a.copy(), b.copy()
    a[:, 1] = 0.1  # its mean is not exactly 0.1
    b[:, 2] = 1e300
    a[4, 3] = np.nan
    b[5, 4] = np.inf
    got = score(a, b)
    assert np.isnan(got[1:5]).all()
    np.testing.assert_allclose(got[[0, 5, 6]], expected[[0, 5, 6]], atol=1e-15)


def test_smallest_possible_variation_is_not_constant():
    a = np.ones((10, 1))
    a[3] = np.nextafter(1.0, 2.0)
    b = np.arange(10.0)[:, None]
    expected = stats.pearsonr(np.arange(10) == 3, b[:, 0]).statistic
    np.testing.assert_allclose(pearson_columns(a, b), [expected], atol=1e-12)


def test_perfect_correlation_never_exceeds_one():
    a = RNG.standard_normal((37, 200))
    r = pearson_columns(a, 3.0 * a + 1.0)
    assert (r <= 1.0).all()
    np.testing.assert_allclose(r, 1.0, atol=1e-14)


@settings(deadline=None, max_examples=60)
@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=8),
        elements=st.floats(allow_nan=True, allow_infinity=True),
    )
)
def test_scores_never_warn_and_stay_in_range(a):
    b = np.arange(a.size, dtype=float).reshape(a.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for score in (pearson_columns, spearman_columns):
            r = score(a, b)
            assert r.shape == (a.shape[1],)
            assert (np.isnan(r) | (np.abs(r) <= 1.0)).all()
        r2 = r2_columns(b, a, np.zeros_like(b))
        assert (np.isnan(r2) | (r2 <= 1.0)).all()


def test_r2_equals_scikit_learn_when_the_baseline_is_the_test_mean(pair):
    y, pred = pair
    got = r2_columns(y, pred, np.broadcast_to(y.mean(axis=0), y.shape))
    np.testing.assert_allclose(got, r2_score(y, pred, multioutput="raw_values"), atol=1e-13)


def test_r2_uses_the_training_mean_of_each_row():
    y = np.array([[1.0], [2.0], [3.0], [5.0]])
    pred = np.array([[1.0], [1.0], [4.0], [5.0]])
    baseline = np.array([[0.0], [0.0], [2.0], [2.0]])
    # errors 0, 1, 1, 0; around the baseline 1, 4, 1, 9
    np.testing.assert_allclose(r2_columns(y, pred, baseline), [1.0 - 2.0 / 15.0], atol=1e-15)


def test_r2_of_the_baseline_is_zero_and_of_the_truth_one(pair):
    y, other = pair
    np.testing.assert_array_equal(r2_columns(y, other, other), 0.0)
    np.testing.assert_array_equal(r2_columns(y, y, other), 1.0)


@pytest.mark.parametrize("scale", [1e-200, 1e200, 1e300])
def test_r2_survives_tiny_and_huge_scales(pair, scale):
    y, pred = pair
    zero = np.zeros_like(y)
    np.testing.assert_allclose(r2_columns(y * scale, pred * scale, zero), r2_columns(y, pred, zero), rtol=1e-12)


def test_r2_survives_a_mean_far_above_the_spread(pair):
    y, pred = pair
    y_far, pred_far = y + 1e9, pred + 1e9
    expected = r2_columns(y_far - 1e9, pred_far - 1e9, np.zeros_like(y))
    np.testing.assert_allclose(r2_columns(y_far, pred_far, np.full_like(y, 1e9)), expected, rtol=1e-12)


def test_r2_is_nan_where_it_is_undefined():
    y = np.column_stack([np.full(5, 0.1), np.arange(5.0), np.arange(5.0), np.arange(5.0)])
    pred = np.ones_like(y)
    pred[2, 2] = np.nan
    baseline = np.zeros_like(y)
    baseline[:, 1] = y[:, 1]
    got = r2_columns(y, pred, baseline)
    assert np.isnan(got[:3]).all()
    assert np.isfinite(got[3])


def test_ranks_equal_scipy_and_leave_nan_out():
    x = RNG.integers(0, 6, (9, 13)).astype(float)
    np.testing.assert_array_equal(average_ranks(x), stats.rankdata(x, axis=-1))
    x[:, 4] = np.nan
    kept = np.delete(x, 4, axis=1)
    ranks = average_ranks(x)
    np.testing.assert_array_equal(np.delete(ranks, 4, axis=1), stats.rankdata(kept, axis=-1))
    assert np.isnan(ranks[:, 4]).all()


@pytest.mark.parametrize(
    ("a", "b"),
    [(np.ones((3, 2)), np.ones((3, 1))), (np.ones(3), np.ones(3)), (np.ones((0, 2)),) * 2],
)
def test_shapes_that_do_not_fit_are_errors(a, b):
    with pytest.raises(ValueError, match="shape"):
        pearson_columns(a, b)


def test_mean_of_finite_values():
    values = np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.nan]])
    np.testing.assert_array_equal(mean_of_finite(values), [2.0, 5.0, np.nan])
    rows = mean_of_finite(values, 1, keepdims=True)
    np.testing.assert_array_equal(rows, [[1.0], [4.0]])
