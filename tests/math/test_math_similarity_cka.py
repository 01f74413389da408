"""CKA of two representations, its bandwidths, and what debiasing is for."""

import itertools

import numpy as np
import pytest
from cka_oracle import (
    debiased_alignment,
    kernel_alignment,
    linear_kernel,
    rbf_kernel,
    unbiased_hsic,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform
from scipy.stats import ortho_group, zscore

from lpact.math.similarity import _common
from lpact.math.similarity import cka as cka_module
from lpact.math.similarity._common import squared_distances
from lpact.math.similarity.cka import (
    cka_between_units,
    cka_rbf_between_units,
    cka_rbf_to_units,
    cka_to_units,
    median_squared_difference,
)
from lpact.math.similarity.rsa import comparison_pattern, rdm

SEEDS = st.integers(0, 2**32 - 1)
DEBIASED = pytest.mark.parametrize("debiased", [False, True])


def linear_cka(x, y, *, debiased=False):
    return cka_module.linear_alignment(cka_module.linear_kernel(x), cka_module.linear_kernel(y), debiased=debiased)


def rbf_cka(x, y, **options):
    first, second = (cka_module.rbf_kernel(side, **options) for side in (x, y))
    return np.nan if first is None or second is None else cka_module.rbf_alignment(first, second)


TWO_SIDED = pytest.mark.parametrize("cka", [linear_cka, rbf_cka])
OF_UNITS = pytest.mark.parametrize(
    ("to_units", "between_units"),
    [(cka_to_units, cka_between_units), (cka_rbf_to_units, cka_rbf_between_units)],
)


def definition(x, y, *, debiased, median_fraction=None):
    alignment = debiased_alignment if debiased else kernel_alignment
    if median_fraction is None:
        return alignment(linear_kernel(x), linear_kernel(y))
    return alignment(rbf_kernel(x, median_fraction), rbf_kernel(y, median_fraction))


@DEBIASED
@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(4, 15),
    p=st.integers(1, 40),
    r=st.integers(1, 6),
    fraction=st.floats(0.2, 5.0),
    seed=SEEDS,
)
def test_two_representations_equal_the_definition(debiased, n, p, r, fraction, seed):
    rng = np.random.default_rng(seed)
    x, y = (rng.standard_normal((n, k)) * rng.uniform(0.5, 2.0, k) + 1.0 for k in (p, r))
    np.testing.assert_allclose(linear_cka(x, y, debiased=debiased), definition(x, y, debiased=debiased), atol=1e-8)
    np.testing.assert_allclose(
        rbf_cka(x, y, median_fraction=fraction, debiased=debiased),
        definition(x, y, debiased=debiased, median_fraction=fraction),
        atol=1e-8,
    )


@DEBIASED
@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(4, 15),
    p=st.integers(1, 40),
    n_units=st.integers(1, 5),
    fraction=st.floats(0.2, 5.0),
    seed=SEEDS,
)
def test_units_equal_the_definition(debiased, n, p, n_units, fraction, seed):
    rng = np.random.default_rng(seed)
    phi, units = rng.standard_normal((n, p)), rng.standard_normal((n, n_units))
    z, columns = zscore(phi), [zscore(unit)[:, None] for unit in units.T]
    for median_fraction, to_units, between_units in (
        (None, cka_to_units, cka_between_units),
        (fraction, cka_rbf_to_units, cka_rbf_between_units),
    ):
        options = {"debiased": debiased}
        if median_fraction is not None:
            options["median_fraction"] = median_fraction
        expected = [definition(z, y, debiased=debiased, median_fraction=median_fraction) for y in columns]
        np.testing.assert_allclose(to_units(phi, units, **options), expected, atol=1e-8)
        expected = [
            [definition(x, y, debiased=debiased, median_fraction=median_fraction) for y in columns] for x in columns
        ]
        np.testing.assert_allclose(between_units(units, **options), expected, atol=1e-8)


@DEBIASED
@TWO_SIDED
def test_rotation_offset_and_isotropic_scale_change_nothing(cka, debiased):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((20, 5)) * np.arange(1, 6), rng.standard_normal((20, 4))
    expected = cka(x, y, debiased=debiased)
    turned = x @ ortho_group.rvs(5, random_state=1) * 1e100 - 3e100
    got = cka(turned, y * 1e-100, debiased=debiased)
    np.testing.assert_allclose(got, expected, atol=1e-12)
    np.testing.assert_allclose(cka(x, x, debiased=debiased), 1.0, atol=1e-13)
    # Column-wise scaling is no rotation.
    assert abs(cka(x / np.arange(1, 6), y, debiased=debiased) - expected) > 1e-3


@DEBIASED
@TWO_SIDED
def test_a_constant_side_is_nan(cka, debiased):
    y = np.random.default_rng(1).standard_normal((20, 4))
    assert np.isnan(cka(np.full((20, 2), 0.1), y, debiased=debiased))
    assert np.isnan(cka(y, np.full((20, 2), 0.1), debiased=debiased))


@DEBIASED
def test_a_wide_kernel_is_the_linear_one(debiased):
    # exp(−d² / 2σ²) = 1 − d² / 2σ² + O(σ⁻⁴), and centring −d² / 2 gives xᵀy.
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((30, 4)), rng.standard_normal((30, 3))
    y[:, 0] += x[:, 0]
    wide = {"median_fraction": 3e3, "debiased": debiased}
    np.testing.assert_allclose(rbf_cka(x, y, **wide), linear_cka(x, y, debiased=debiased), atol=1e-6)
    np.testing.assert_allclose(cka_rbf_to_units(x, y, **wide), cka_to_units(x, y, debiased=debiased), atol=1e-6)
    np.testing.assert_allclose(cka_rbf_between_units(y, **wide), cka_between_units(y, debiased=debiased), atol=1e-6)


def test_bandwidth_is_the_stated_fraction_of_the_median_distance():
    x = np.array([[0.0], [1.0], [3.0], [7.0]])
    y = np.array([[1.0], [0.0], [0.0], [5.0]])
    # Squared distances of x: 1, 4, 9, 16, 36, 49, median (9 + 16) / 2; of y: 0, 1, 1, 16, 25, 25.
    for fraction in (0.5, 2.0):
        k = np.exp(-((x - x.T) ** 2) / (2 * fraction**2 * 12.5))
        m = np.exp(-((y - y.T) ** 2) / (2 * fraction**2 * 8.5))
        got = rbf_cka(x, y, median_fraction=fraction)
        np.testing.assert_allclose(got, kernel_alignment(k, m), atol=1e-12)
        got = cka_rbf_to_units(x, y, median_fraction=fraction)
        np.testing.assert_allclose(got, [kernel_alignment(k, m)], atol=1e-12)


def test_rbf_sees_what_no_line_can():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((400, 1))
    units = np.column_stack([x[:, 0] ** 2, rng.standard_normal(400) ** 2])
    assert cka_to_units(x, units, debiased=True)[0] < 0.05
    related, unrelated = cka_rbf_to_units(x, units, debiased=True)
    assert related > 0.2
    assert abs(unrelated) < 0.02


def test_many_columns_look_aligned_unless_debiased():
    rng = np.random.default_rng(4)
    draws = [(rng.standard_normal((40, 300)), rng.standard_normal((40, 300))) for _ in range(40)]
    for cka in (linear_cka, rbf_cka):
        assert min(cka(x, y) for x, y in draws) > 0.5
        values = [cka(x, y, debiased=True) for x, y in draws]
        assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(len(values))
        assert np.max(np.abs(values)) < 0.2


def test_debiased_alignment_of_few_events_is_about_that_of_many():
    rng = np.random.default_rng(5)
    mixing = rng.standard_normal((3, 60))

    def alignment(n, debiased):
        latent = rng.standard_normal((n, 3))
        x = latent @ mixing + 3.0 * rng.standard_normal((n, 60))
        y = latent @ mixing[::-1, ::-1] + 3.0 * rng.standard_normal((n, 60))
        return linear_cka(x, y, debiased=debiased)

    truth = alignment(20_000, False)
    biased, debiased = ([alignment(25, d) for _ in range(200)] for d in (False, True))
    assert np.mean(biased) > truth + 0.1
    assert abs(np.mean(debiased) - truth) < 0.05


def test_the_oracle_averages_to_zero_over_all_orders():
    # An unbiased HSIC is exactly 0 on average where events are paired at random.
    rng = np.random.default_rng(6)
    k, m = linear_kernel(rng.standard_normal((5, 3))), rbf_kernel(rng.standard_normal((5, 2)))
    orders = itertools.permutations(range(5))
    values = [unbiased_hsic(k, m[np.ix_(order, order)]) for order in orders]
    assert abs(np.mean(values)) < 1e-12 * np.std(values) * len(values)


@OF_UNITS
def test_one_deviating_event_has_no_debiased_structure(to_units, between_units):
    rng = np.random.default_rng(7)
    phi, units = rng.standard_normal((30, 4)), rng.standard_normal((30, 3))
    units[:, 1] = 0.3
    units[11, 1] = 5.0
    got = to_units(phi, units, debiased=True)
    assert np.isnan(got).tolist() == [False, True, False]
    between = between_units(units, debiased=True)
    assert np.isnan(between[1]).all()
    assert np.isfinite(between[np.ix_([0, 2], [0, 2])]).all()
    assert np.isnan(to_units(units[:, [1]], phi, debiased=True)).all()
    assert np.isnan(linear_cka(units[:, [1]], phi, debiased=True))


@DEBIASED
def test_no_bandwidth_where_half_of_the_pairs_coincide(debiased):
    rng = np.random.default_rng(8)
    units = rng.standard_normal((40, 3))
    units[:36, 1] = 0.0
    got = cka_rbf_to_units(units[:, [0]], units, debiased=debiased)
    assert np.isnan(got).tolist() == [False, True, False]
    between = cka_rbf_between_units(units, debiased=debiased)
    assert np.isnan(between[:, 1]).all()
    assert np.isfinite(between[0, 2])
    assert np.isnan(cka_rbf_to_units(units[:, [1]], units, debiased=debiased)).all()
    assert np.isnan(rbf_cka(units[:, [1]], units, debiased=debiased))


@pytest.mark.parametrize("n", [3, 2])
def test_too_few_events_are_errors(n):
    rng = np.random.default_rng(9)
    x, y = rng.standard_normal((n, 2)), rng.standard_normal((n, 2))
    for cka in (linear_cka, rbf_cka, cka_to_units, cka_rbf_to_units):
        with pytest.raises(ValueError, match=r"at least [34] events"):
            cka(x, y, debiased=True)
    for cka in (cka_between_units, cka_rbf_between_units):
        with pytest.raises(ValueError, match=r"at least [34] events"):
            cka(y, debiased=True)


@pytest.mark.parametrize("fraction", [0.0, -1.0, np.nan, np.inf])
def test_a_bandwidth_must_be_positive(fraction):
    x = np.random.default_rng(10).standard_normal((8, 3))
    for call in (
        lambda: rbf_cka(x, x, median_fraction=fraction),
        lambda: cka_rbf_to_units(x, x, median_fraction=fraction),
        lambda: cka_rbf_between_units(x, median_fraction=fraction),
    ):
        with pytest.raises(ValueError, match="median_fraction"):
            call()


@TWO_SIDED
def test_bad_pairs_are_errors(cka):
    with pytest.raises(ValueError, match="same events"):
        cka(np.eye(5), np.eye(4))
    with pytest.raises(ValueError, match="not finite"):
        cka(np.full((5, 3), np.nan), np.ones((5, 3)))


# --- Pairs of events -----------------------------------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(
    st.one_of(
        st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=40),
        st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=40),
    )
)
def test_median_of_squared_differences_equals_that_of_all_pairs(values):
    y = np.array(values)
    expected = np.median(pdist(y[:, None], "sqeuclidean"))
    np.testing.assert_allclose(median_squared_difference(y), expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("n", [200, 301])
def test_median_of_squared_differences_of_clusters_and_tails(n):
    rng = np.random.default_rng(n)
    tight = np.where(rng.random(n) < 0.8, 0.0, 5.0) + 1e-7 * rng.standard_normal(n)
    for y in (rng.standard_normal(n), rng.standard_cauchy(n) ** 3, tight, np.round(tight, 7)):
        expected = np.median(pdist(y[:, None], "sqeuclidean"))
        np.testing.assert_allclose(median_squared_difference(y), expected, rtol=1e-12)


@pytest.mark.parametrize("p", [1, 31, 32, 100])
def test_distances_of_close_and_of_far_rows_keep_their_digits(p):
    rng = np.random.default_rng(p)
    centres = rng.standard_normal((4, p)) * 10.0
    x = centres[rng.integers(0, 4, 150)] + 1e-5 * rng.standard_normal((150, p))
    x[7] = x[3]
    got, expected = squared_distances(x), pdist(x, "sqeuclidean")
    np.testing.assert_allclose(got, expected, rtol=1e-10)
    assert squareform(got)[3, 7] == 0.0


@pytest.mark.parametrize("offset", [1e3, 1e8])
@pytest.mark.parametrize("n", [200, 600])
def test_distances_far_from_the_origin_keep_their_digits(n, offset):
    """SciPy takes differences of rows, in which the offset cancels before anything is squared."""
    rng = np.random.default_rng(n)
    x = offset * rng.standard_normal(100) + rng.standard_normal((n, 100))
    got, expected = rdm(x, "sqeuclidean"), pdist(x, "sqeuclidean")
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    centred = expected - expected.mean()
    pattern = comparison_pattern(got, "pearson")
    np.testing.assert_allclose(pattern, centred / np.linalg.norm(centred), atol=1e-12)


def test_close_rows_are_handled_a_few_at_a_time(monkeypatch):
    x = 1e-6 * np.random.default_rng(11).standard_normal((20, 40)) + np.arange(2).repeat(10)[:, None]
    monkeypatch.setattr(_common, "_DIFFERENCES", 80)
    np.testing.assert_allclose(squared_distances(x), pdist(x, "sqeuclidean"), rtol=1e-9)


@pytest.mark.parametrize("p", [3, 50])
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_dissimilarities_survive_tiny_and_huge_scales(p, scale):
    x = np.random.default_rng(12).standard_normal((20, p))
    got = rdm(x * scale, "sqeuclidean")
    np.testing.assert_allclose(got, pdist(x, "sqeuclidean") * scale * scale, rtol=1e-11)
    np.testing.assert_allclose(rdm(x * scale, "correlation"), rdm(x, "correlation"), atol=1e-12)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 300), st.integers(1, 60), st.booleans(), SEEDS)
def test_dissimilarities_of_any_shape_equal_scipy(n, p, blocks, seed):
    with pytest.MonkeyPatch.context() as patch:
        if blocks:
            patch.setattr(_common, "_ONE_BLOCK", 0)
        check_dissimilarities(n, p, seed)


def check_dissimilarities(n, p, seed):
    x = np.random.default_rng(seed).standard_normal((n, p))
    np.testing.assert_allclose(rdm(x, "sqeuclidean"), pdist(x, "sqeuclidean"), rtol=1e-9, atol=1e-12)
    if p >= 3:
        np.testing.assert_allclose(rdm(x, "correlation"), pdist(x, "correlation"), atol=1e-10)
