"""Benjamini–Hochberg against its definition, with missing tests."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from lpact.stats import benjamini_hochberg

P_VALUES = st.lists(st.floats(0.0, 1.0) | st.sampled_from([0.01, 0.05, 0.5]), min_size=1, max_size=30)


@given(P_VALUES)
def test_equals_the_definition(p):
    m = len(p)
    ascending = np.sort(p)
    stepped = [min(ascending[k] * m / (k + 1) for k in range(i, m)) for i in range(m)]
    expected = dict(zip(ascending, np.minimum(stepped, 1.0), strict=True))
    found = benjamini_hochberg(np.array(p))
    np.testing.assert_allclose(found, [expected[value] for value in p], rtol=1e-14)


@given(P_VALUES, st.integers(0, 5))
def test_nan_passes_through_and_is_not_counted(p, n_missing):
    padded = np.array([np.nan] * n_missing + p)
    q = benjamini_hochberg(padded)
    assert np.isnan(q[:n_missing]).all()
    np.testing.assert_allclose(q[n_missing:], false_discovery_control(p), rtol=1e-14)


@given(P_VALUES)
def test_never_below_p_never_above_one_and_in_the_same_order(p):
    p = np.array(p)
    q = benjamini_hochberg(p)
    assert (q >= p).all()
    assert (q <= 1.0).all()
    assert (np.diff(q[np.argsort(p)]) >= 0.0).all()


def test_keeps_the_shape():
    p = np.array([[0.01, np.nan], [0.04, 0.03]])
    np.testing.assert_allclose(benjamini_hochberg(p), [[0.03, np.nan], [0.04, 0.04]])
    assert np.isnan(benjamini_hochberg(np.array([np.nan]))).all()


@pytest.mark.parametrize("bad", [-0.1, 1.5])
def test_values_outside_zero_to_one_are_errors(bad):
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        benjamini_hochberg(np.array([0.5, bad]))
