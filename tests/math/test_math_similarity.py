"""Alignment measures against dissimilarity and kernel matrices built in full."""

import numpy as np
import pytest
from cka_oracle import debiased_alignment, kernel_alignment, linear_kernel, rbf_kernel
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import svd
from scipy.spatial.distance import pdist
from scipy.stats import pearsonr, zscore

from lpact.math.similarity import _common, cka, correlation
from lpact.math.similarity import rsa as rsa_module
from lpact.math.similarity.correlation import (
    event_response_between_units,
    event_response_to_units,
)
from lpact.math.similarity.rsa import comparison_pattern, correlation_rdm, rdm, rsa_to_units

FUNCTIONS = {**vars(cka), **vars(correlation), **vars(rsa_module)}
CKAS = ("cka", "cka_debiased", "cka_rbf", "cka_rbf_debiased")
MEASURES = ("rsa", *CKAS, "event_response", "pearson")
SHAPES = [(20, 1), (20, 2), (20, 3), (25, 10), (12, 30), (4, 5)]
RNG = np.random.default_rng()


@pytest.fixture(autouse=True)
def _same_numbers_in_every_test():
    RNG.bit_generator.state = np.random.default_rng(21).bit_generator.state


def linear_cka(x, y):
    return cka.linear_alignment(cka.linear_kernel(x), cka.linear_kernel(y))


def rsa(x, y):
    first, second = (comparison_pattern(correlation_rdm(own), "pearson") for own in (x, y))
    return first @ second


def to_units(measure, phi, units):
    name, debiased, _ = measure.partition("_debiased")
    options = {"debiased": True} if debiased else {}
    return FUNCTIONS[f"{name}_to_units"](phi, units, **options)


def between_units(measure, units):
    name, debiased, _ = measure.partition("_debiased")
    options = {"debiased": True} if debiased else {}
    return FUNCTIONS[f"{name}_between_units"](units, **options)


def naive(measure, phi, unit):
    z, y = zscore(phi), zscore(unit)
    if measure == "rsa":
        metric = "correlation" if z.shape[1] >= 3 else "sqeuclidean"
        return pearsonr(pdist(z, metric), pdist(y[:, None], "sqeuclidean")).statistic
    if measure in CKAS:
        kernel = rbf_kernel if "rbf" in measure else linear_kernel
        alignment = debiased_alignment if "debiased" in measure else kernel_alignment
        return alignment(kernel(z), kernel(y[:, None]))
    if measure == "event_response":
        return pearsonr(np.sqrt((z**2).mean(axis=1)), np.abs(y)).statistic
    return abs(pearsonr(svd(z, full_matrices=False)[0][:, 0], y).statistic)


def mixed(n, p):
    return RNG.standard_normal((n, p)) @ RNG.standard_normal((p, p)) + RNG.standard_normal(p)


@pytest.fixture(params=SHAPES, ids=str)
def data(request):
    n, p = request.param
    phi = mixed(n, p)
    units = np.column_stack([phi @ RNG.standard_normal((p, 3)), RNG.standard_normal((n, 4))])
    return phi, units + RNG.standard_normal(units.shape)


@pytest.mark.parametrize("measure", MEASURES)
def test_to_units_equals_the_definition(measure, data):
    phi, units = data
    expected = [naive(measure, phi, unit) for unit in units.T]
    np.testing.assert_allclose(to_units(measure, phi, units), expected, atol=1e-10)


@pytest.mark.parametrize("measure", MEASURES)
def test_between_units_is_to_units_with_one_unit(measure, data):
    _, units = data
    got = between_units(measure, units)
    for i in range(units.shape[1]):
        np.testing.assert_allclose(got[i], to_units(measure, units[:, [i]], units), atol=1e-10)
    np.testing.assert_array_equal(np.diagonal(got), 1.0)
    np.testing.assert_allclose(got, got.T, atol=1e-14)


@pytest.mark.parametrize("measure", MEASURES)
def test_shifting_and_scaling_columns_changes_nothing(measure, data):
    phi, units = data
    p, n_units = phi.shape[1], units.shape[1]
    moved_phi = phi * RNG.uniform(0.1, 10.0, p) + RNG.uniform(-1e3, 1e3, p)
    moved_units = units * 10.0 ** RNG.uniform(-100, 100, n_units)
    np.testing.assert_allclose(to_units(measure, moved_phi, moved_units), to_units(measure, phi, units), atol=1e-8)
    np.testing.assert_allclose(
        between_units(measure, moved_units + 1.0 * moved_units.std(axis=0)),
        between_units(measure, units),
        atol=1e-9,
    )


@pytest.mark.parametrize("measure", MEASURES)
def test_order_of_events_units_and_columns_does_not_matter(measure, data):
    phi, units = data
    events, order = RNG.permutation(len(phi)), RNG.permutation(units.shape[1])
    columns = RNG.permutation(phi.shape[1])
    np.testing.assert_allclose(
        to_units(measure, phi[events][:, columns], units[events][:, order]),
        to_units(measure, phi, units)[order],
        atol=1e-10,
    )


@pytest.mark.parametrize("measure", MEASURES)
def test_constant_columns_are_left_out_and_constant_units_are_nan(measure):
    phi, units = mixed(30, 4), RNG.standard_normal((30, 5))
    expected = to_units(measure, phi, units)
    constant = np.full((30, 1), 0.1)
    units[:, 2] = 1e9 + 0.1
    got = to_units(measure, np.column_stack([constant, phi, constant]), units)
    assert np.isnan(got[2])
    np.testing.assert_allclose(np.delete(got, 2), np.delete(expected, 2), atol=1e-12)
    matrix = between_units(measure, units)
    assert np.isnan(matrix[2]).all()
    assert np.isnan(matrix[:, 2]).all()
    assert np.isfinite(np.delete(np.delete(matrix, 2, 0), 2, 1)).all()
    assert np.isnan(to_units(measure, np.ones((30, 3)), units)).all()


@pytest.mark.parametrize("measure", MEASURES)
def test_chunks_change_nothing(measure, monkeypatch):
    phi, units = mixed(23, 9), RNG.standard_normal((23, 11))
    expected, expected_between = to_units(measure, phi, units), between_units(measure, units)
    monkeypatch.setattr(_common, "_CHUNK", 4)
    monkeypatch.setattr(_common, "_BLOCK_ROWS", 5)
    monkeypatch.setattr(_common, "_ONE_BLOCK", 5)
    monkeypatch.setattr(_common, "_FEW_COLUMNS", 0)
    monkeypatch.setattr(cka, "_IN_CACHE", 60)
    monkeypatch.setattr(cka, "_IN_MEMORY", 60)
    monkeypatch.setattr(cka, "_SMALLEST_TILE", 3)
    np.testing.assert_allclose(to_units(measure, phi, units), expected, atol=1e-12)
    np.testing.assert_allclose(between_units(measure, units), expected_between, atol=1e-12)


@settings(deadline=None, max_examples=60)
@given(st.integers(4, 12), st.integers(1, 6), st.integers(0, 2**32 - 1), st.sampled_from(MEASURES))
def test_any_shape_stays_in_range(n, p, seed, measure):
    rng = np.random.default_rng(seed)
    phi, units = rng.integers(-2, 3, (n, p)).astype(float), rng.standard_normal((n, 3))
    got = to_units(measure, phi, units)
    low = 0.0 if measure in ("cka", "cka_rbf", "pearson") else -1.0
    assert got.shape == (3,)
    assert (np.isnan(got) | ((got >= low) & (got <= 1.0))).all()


def test_columns_decide_between_correlation_and_euclidean_distance():
    phi, unit = mixed(15, 4), RNG.standard_normal((15, 1))
    phi[:, 3] = 5.0
    three = rsa_to_units(phi, unit)
    np.testing.assert_allclose(three, [naive("rsa", phi[:, :3], unit[:, 0])], atol=1e-12)
    phi[:, 2] = 5.0
    two = rsa_to_units(phi, unit)
    np.testing.assert_allclose(two, [naive("rsa", phi[:, :2], unit[:, 0])], atol=1e-12)


def test_a_row_without_pattern_is_at_distance_one_from_all_others():
    z = RNG.standard_normal((6, 5))
    z[2] = 0.3
    distances = rdm(z, "correlation")
    first, second = np.triu_indices(6, 1)
    at_two = (first == 2) | (second == 2)
    np.testing.assert_array_equal(distances[at_two], 1.0)
    np.testing.assert_allclose(distances[~at_two], pdist(np.delete(z, 2, axis=0), "correlation"), atol=1e-14)


def test_copies_of_one_column_have_no_row_patterns():
    column, units = RNG.standard_normal((20, 1)), RNG.standard_normal((20, 2))
    copies = np.column_stack([column, 3.0 * column - 1e3, 0.1 * column + 7.0])
    assert np.isnan(rsa_to_units(copies, units)).all()
    assert np.isfinite(rsa_to_units(copies[:, :2], units)).all()


def test_equidistant_events_have_no_relational_structure():
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
    unit = np.array([[0.0], [1.0], [5.0]])
    # Standardising keeps neither the angle nor the lengths unless both columns vary alike.
    triangle = (triangle - triangle.mean(axis=0)) / triangle.std(axis=0)
    np.testing.assert_allclose(pdist(triangle), pdist(triangle)[0])
    assert np.isnan(rsa_to_units(triangle, unit)).all()
    # Rows of a circulant matrix are equally correlated: −1/2, up to rounding that differs by pair.
    for _ in range(50):
        a, b, c = RNG.uniform(1.0, 9.0, 3)
        assert np.isnan(rsa_to_units(np.array([[a, b, c], [c, a, b], [b, c, a]]), unit))


def test_size_of_a_two_valued_unit_does_not_vary():
    # Many pairs of values: in some of them |z| differs in its last digit.
    units = RNG.permutation(np.tile(RNG.uniform(-9.0, 9.0, (2, 200)), (30, 1)))
    units[:, 0] = RNG.standard_normal(60)
    got = event_response_to_units(RNG.standard_normal((60, 3)), units)
    assert np.isfinite(got[0])
    assert np.isnan(got[1:]).all()
    between = event_response_between_units(units)
    assert between[0, 0] == 1.0
    assert np.isnan(between[1:]).all()
    angle = np.arange(7) * 2.0 * np.pi / 7
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    assert np.isnan(event_response_to_units(circle, RNG.standard_normal((7, 2)))).all()


def test_dissimilarities_equal_scipy():
    x = mixed(14, 6)
    np.testing.assert_allclose(rdm(x, "correlation"), pdist(x, "correlation"), atol=1e-13)
    a, b = np.triu_indices(14, 1)
    np.testing.assert_allclose(rdm(x, "sqeuclidean"), ((x[a] - x[b]) ** 2).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize(("p", "r"), [(1, 2), (2, 5), (6, 4)])
def test_rsa_of_two_representations_takes_them_as_they_are(p, r):
    x, y = mixed(16, p), mixed(16, r)
    metrics = ["correlation" if k >= 3 else "sqeuclidean" for k in (p, r)]
    expected = pearsonr(pdist(x, metrics[0]), pdist(y, metrics[1])).statistic
    np.testing.assert_allclose(rsa(x, y), expected, atol=1e-12)


def test_unit_versions_are_the_general_ones_on_standardised_columns():
    phi, units = mixed(18, 5), RNG.standard_normal((18, 3))
    z, y = zscore(phi), zscore(units)
    for j in range(3):
        unit = y[:, [j]]
        np.testing.assert_allclose(rsa_to_units(phi, units)[j], rsa(z, unit), atol=1e-12)
        np.testing.assert_allclose(cka.cka_to_units(phi, units)[j], linear_cka(z, unit), atol=1e-12)


def test_cka_of_units_is_the_squared_correlation():
    units = RNG.standard_normal((40, 6))
    np.testing.assert_allclose(cka.cka_between_units(units), np.corrcoef(units, rowvar=False) ** 2, atol=1e-13)


def test_planted_structure_is_found():
    latent = RNG.standard_normal((4000, 1))
    phi = latent @ RNG.standard_normal((1, 20)) + 0.1 * RNG.standard_normal((4000, 20))
    units = np.column_stack([latent[:, 0], RNG.standard_normal(4000)])
    for measure in MEASURES:
        matching, unrelated = to_units(measure, phi, units)
        assert matching > 0.3 > 3 * abs(unrelated)


@pytest.mark.parametrize(
    ("phi", "units", "message"),
    [
        (np.ones((5, 2)), np.ones((6, 2)), "same events"),
        (np.full((5, 2), np.nan), np.ones((5, 2)), "phi has 10 value"),
        (np.ones((5, 2)), np.full((5, 1), np.inf), "units has 5 value"),
        (np.ones((2, 2)), np.ones((2, 2)), "at least 3 events"),
        (np.ones(5), np.ones((5, 2)), "matrix"),
    ],
)
@pytest.mark.parametrize("measure", MEASURES)
def test_bad_inputs_are_errors(measure, phi, units, message):
    with pytest.raises(ValueError, match=message):
        to_units(measure, phi, units)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rdm(np.ones((3, 3)), "cosine"), "unknown dissimilarity"),
        (lambda: linear_cka(np.ones((3, 3)), np.ones((4, 3))), "same events"),
    ],
)
def test_bad_pairs_are_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
