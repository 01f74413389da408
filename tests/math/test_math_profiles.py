"""Profile similarities against a loop with SciPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

import lpact.math.profiles as profiles
from lpact.math.profiles import (
    cosine_rows,
    pearson_rows,
    profile_similarity,
    profile_similarity_pairs,
    spearman_rows,
)

KINDS = ("pearson", "spearman", "cosine")
RNG = np.random.default_rng()


@pytest.fixture(autouse=True)
def _same_numbers_in_every_test():
    RNG.bit_generator.state = np.random.default_rng(3).bit_generator.state


def oracle_pair(a, b, kind):
    keep = np.isfinite(a) & np.isfinite(b)
    a, b = a[keep], b[keep]
    if a.size < 3:
        return np.nan
    if kind == "cosine":
        length = np.linalg.norm(a) * np.linalg.norm(b)
        return a @ b / length if length > 0 else np.nan
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return np.nan
    return (stats.pearsonr if kind == "pearson" else stats.spearmanr)(a, b).statistic


def oracle(b, q, kind):
    n = len(b)
    flat = q.reshape(-1, n)
    rows = [[oracle_pair(np.delete(b[i], i), np.delete(pattern, i), kind) for i in range(n)] for pattern in flat]
    return np.reshape(rows, q.shape)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(9,), (4, 9), (2, 3, 9)])
def test_equals_the_loop(kind, shape):
    b, q = RNG.standard_normal((9, 9)), RNG.standard_normal(shape)
    np.testing.assert_allclose(profile_similarity(b, q, kind), oracle(b, q, kind), atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_ties_equal_the_loop(kind):
    b, q = RNG.integers(1, 4, (9, 9)).astype(float), RNG.integers(1, 4, (5, 9)).astype(float)
    np.testing.assert_allclose(profile_similarity(b, q, kind), oracle(b, q, kind), atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_entries_are_left_out_pair_by_pair(kind):
    b, q = RNG.standard_normal((8, 8)), RNG.standard_normal((6, 8))
    b[RNG.random(b.shape) < 0.3] = np.nan
    q[RNG.random(q.shape) < 0.3] = np.nan
    q[0, :6] = np.nan
    expected = oracle(b, q, kind)
    assert np.isnan(expected[0]).all()
    assert np.isfinite(expected).any()
    np.testing.assert_allclose(profile_similarity(b, q, kind), expected, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_own_entry_is_ignored_on_both_sides(kind):
    b, q = RNG.standard_normal((7, 7)), RNG.standard_normal(7)
    expected = profile_similarity(b, q, kind)
    b[np.diag_indices(7)] = [np.nan, np.inf, 1e300, 0.0, -5.0, 1.0, 2.0]
    np.testing.assert_array_equal(profile_similarity(b, q, kind), expected)
    changed = q.copy()
    changed[2] = 1e6
    got = profile_similarity(b, changed, kind)
    np.testing.assert_allclose(got[2], expected[2], atol=1e-14)
    assert (np.delete(got, 2) != np.delete(expected, 2)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_equal_the_loop(kind):
    a, b = RNG.standard_normal((2, 8, 8))
    a[2, 5] = np.nan
    expected = [oracle_pair(np.delete(a[i], i), np.delete(b[i], i), kind) for i in range(8)]
    np.testing.assert_allclose(profile_similarity_pairs(a, b, kind), expected, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_change_nothing(kind, monkeypatch):
    b, q = RNG.standard_normal((6, 6)), RNG.standard_normal((11, 6))
    q[3, 1] = np.nan
    expected = profile_similarity(b, q, kind)
    monkeypatch.setattr(profiles, "_CHUNK_ENTRIES", 80)
    np.testing.assert_array_equal(profile_similarity(b, q, kind), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_constant_zero_or_short_patterns_are_nan(kind):
    b = RNG.standard_normal((6, 6))
    undefined = profile_similarity(b, np.zeros((1, 6)), kind)
    assert np.isnan(undefined).all()
    constant = profile_similarity(b, np.full((1, 6), 0.1), kind)
    assert np.isnan(constant).all() == (kind != "cosine")
    assert np.isnan(profile_similarity(b[:3, :3], RNG.standard_normal(3), kind)).all()
    assert np.isfinite(profile_similarity(b[:4, :4], RNG.standard_normal(4), kind)).all()


@settings(deadline=None, max_examples=50)
@given(
    hnp.arrays(np.float64, (5, 5), elements=st.floats(-100, 100)),
    hnp.arrays(np.float64, (2, 5), elements=st.floats(-100, 100)),
    st.sampled_from(KINDS),
    st.randoms(use_true_random=False),
)
def test_order_of_units_does_not_matter(b, q, kind, random):
    order = list(range(5))
    random.shuffle(order)
    got = profile_similarity(b[np.ix_(order, order)], q[:, order], kind)
    np.testing.assert_allclose(got, profile_similarity(b, q, kind)[:, order], atol=1e-10)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize("rows", [pearson_rows, spearman_rows, cosine_rows])
def test_scale_of_a_pattern_does_not_matter(rows, scale):
    a, b = RNG.standard_normal((2, 4, 9))
    np.testing.assert_allclose(rows(a * scale, b), rows(a, b), atol=1e-13)


def test_pearson_of_rows_survives_a_large_offset():
    a, b = RNG.standard_normal((2, 4, 9))
    far = a + 1e8
    np.testing.assert_allclose(pearson_rows(far, b), pearson_rows(far - 1e8, b), atol=1e-13)


@pytest.mark.parametrize(
    ("b", "q", "kind", "message"),
    [
        (np.ones((3, 4)), np.ones(4), "pearson", "square"),
        (np.ones((4, 4)), np.ones(5), "pearson", "end in 4 units"),
        (np.ones((4, 4)), np.ones(4), "kendall", "unknown profile similarity"),
    ],
)
def test_bad_inputs_are_errors(b, q, kind, message):
    with pytest.raises(ValueError, match=message):
        profile_similarity(b, q, kind)


def test_pairs_of_different_units_are_errors():
    with pytest.raises(ValueError, match="same units"):
        profile_similarity_pairs(np.ones((3, 3)), np.ones((4, 4)), "pearson")
