"""PLS, canonical correlations and Procrustes against scikit-learn, SciPy and published formulas."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.linalg import eigh, orthogonal_procrustes
from scipy.spatial import procrustes
from scipy.stats import ortho_group, pearsonr
from sklearn.cross_decomposition import CCA as SklearnCCA
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA

from lpact.ceilings import consistency
from lpact.errors import InputError
from lpact.measures import CCA, MEASURES, PLS, PWCCA, SVCCA, LinearR2, Procrustes
from lpact.measures.base import SOURCE_CONSTANT, SOURCE_MISSING, TARGET_CONSTANT, TARGET_MISSING
from lpact.measures.fitted import Fitted
from lpact.measures.mapping import TOO_MANY_DIMENSIONS
from lpact.splits import contiguous

TRAIN, TEST = slice(60), slice(60, None)
EVERY = pytest.mark.parametrize(
    "measure",
    [e.plugin() for e in MEASURES.entries() if issubclass(e.plugin, Fitted)],
    ids=lambda m: m.name,
)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((100, 6)) @ rng.standard_normal((6, 6)) + rng.standard_normal(6)
    y = x @ rng.standard_normal((6, 4)) + 2.0 * rng.standard_normal((100, 4)) + 5.0
    return x, y


def in_sample(measure, x, y):
    return float(measure.fit(x, y).score(x, y))


# --- every fitted measure -----------------------------------------------------------------------------------------


@EVERY
def test_independent_data_score_about_zero_although_training_does_not(measure):
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((400, 30)), rng.standard_normal((400, 20))
    held_out = measure.cross_validate(x, y, contiguous(400, 4)).value
    assert abs(held_out.mean()) < 0.05
    if measure.name == "linear_r2":  # the penalty that it would choose leaves nothing in training either
        measure = LinearR2(alphas=(1.0,))
    assert np.mean(measure.fit(x, y).score(x, y).value) > 0.07


@EVERY
def test_scoring_changes_nothing_that_was_fitted(measure, data):
    x, y = data
    measure.fit(x[TRAIN], y[TRAIN])
    fitted = pickle.dumps(measure.__dict__)
    first = measure.score(x[TEST], y[TEST]).value
    measure.score(x[TEST], -3.0 * y[TEST])
    assert pickle.dumps(measure.__dict__) == fitted
    # A stimulus that is scored later on has no part in the score of others.
    np.testing.assert_array_equal(measure.score(x[TEST], y[TEST]).value, first)


@EVERY
def test_constant_columns_take_no_part(measure, data):
    x, y = data
    expected = measure.fit(x[TRAIN], y[TRAIN]).score(x[TEST], y[TEST]).value
    with_constants = np.column_stack([np.full(100, 0.1), x])
    with_constants[-1, 0] = 3.0  # it varies among the scored stimuli alone
    found = measure.fit(with_constants[TRAIN], y[TRAIN]).score(with_constants[TEST], y[TEST]).value
    if measure.name != "procrustes":  # whose norm is that of everything that is scored
        np.testing.assert_allclose(found, expected, atol=1e-10)
    only = measure.fit(with_constants[TRAIN], y[TRAIN])
    score = only.score(np.where(np.arange(7) > 0, 1.0, with_constants)[TEST], y[TEST])
    assert np.isnan(score.value).all()
    assert (score.reason != "").all()


@EVERY
def test_what_training_leaves_undefined_has_a_reason(measure, data):
    x, y = data
    holes, flat, no_source = y.copy(), y.copy(), x.copy()
    holes[3, 1], flat[TRAIN, 1], no_source[5, 2] = np.nan, 0.3, np.inf
    for target, reason in ((holes, TARGET_MISSING), (flat, TARGET_CONSTANT)):
        score = measure.fit(x[TRAIN], target[TRAIN]).score(x[TEST], y[TEST])
        if measure.scope == "unit":
            assert score.reason.tolist() == ["", f"{reason} in training", "", ""]
            np.testing.assert_array_equal(np.isnan(score.value), [False, True, False, False])
            np.testing.assert_array_equal(np.isnan(measure.predict(x)[0]), np.isnan(score.value))
            alone = measure.fit(x[TRAIN], y[TRAIN][:, [0, 2, 3]]).score(x[TEST], y[TEST][:, [0, 2, 3]])
            np.testing.assert_allclose(score.value[[0, 2, 3]], alone.value, atol=1e-12)
        elif target is holes:
            assert (score.reason, np.isnan(score.value)) == (f"{reason} in training", True)
        else:
            assert np.isfinite(score.value)
    for source, reason in ((no_source, SOURCE_MISSING), (np.ones_like(x), SOURCE_CONSTANT)):
        score = measure.fit(source[TRAIN], y[TRAIN]).score(x[TEST], y[TEST])
        assert np.isnan(score.value).all()
        assert (score.reason == f"{reason} in training").all()
        if measure.scope == "unit":
            assert np.isnan(measure.predict(x)).all()
    few = measure.fit(x[:2], y[:2]).score(x, y)
    assert (few.reason == "too few stimuli in training").all()


@EVERY
def test_scores_need_a_fit_of_as_many_units(measure, data):
    x, y = data
    with pytest.raises(InputError, match="not fitted"):
        type(measure)().score(x, y)
    measure.fit(x, y)
    with pytest.raises(InputError, match="the target has another number of units"):
        measure.score(x, y[:, :2])
    with pytest.raises(InputError, match="the source has another number of units"):
        measure.score(x[:, :2], y)


@EVERY
def test_pairs_of_units_are_cross_validated_alone(measure, data):
    y, split = data[1], contiguous(100, 3)
    found = measure.pairwise(y, split)
    for i, j in ((0, 0), (0, 1), (3, 2)):
        value = measure.cross_validate(y[:, [i]], y[:, [j]], split).value.item()
        assert found[i, j] == pytest.approx(value, abs=1e-12)


@EVERY
def test_more_units_than_stimuli(measure):
    """One strong latent in all units is found again; nothing warns or crashes."""
    rng = np.random.default_rng(3)
    latent = rng.standard_normal((60, 1))
    x, y = (latent * rng.uniform(1, 2, p) + 0.3 * rng.standard_normal((60, p)) for p in (150, 120))
    settings = {
        "cca": {"n_components": 1},
        "pwcca": {"n_components": 1},
        "svcca": {"variance": 0.8},
    }
    measure = type(measure)(**settings.get(measure.name, {})).fit(x[:40], y[:40])
    assert np.median(measure.score(x[40:], y[40:]).value) > 0.8
    # A unit twice is a direction less.
    double = np.hstack([x, x])
    measure.fit(double[:40], y[:40])
    assert np.median(measure.score(double[40:], y[40:]).value) > 0.8


@EVERY
def test_which_measures_the_noise_correction_takes(measure, data):
    x, y = data
    trials = y[:, None] + np.random.default_rng(4).standard_normal((100, 4, 4))
    found = consistency(x, trials, measure, contiguous(100, 3), n_halves=2)
    correlates = measure.scope == "unit" and measure.name != "linear_r2"
    assert found.corrected == measure.correctable == correlates
    assert np.isfinite(found.value).all()


# --- PLS --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("n_components", [1, 3, 6])
def test_pls_is_that_of_scikit_learn(data, n_components, scale):
    x, y = data
    settings = {"scale": scale, "tol": 1e-28, "max_iter": 100_000}
    sklearn = PLSRegression(n_components, **settings).fit(x[TRAIN], y[TRAIN])
    pls = PLS(n_components=n_components, scale=scale).fit(x[TRAIN], y[TRAIN])
    predicted = sklearn.predict(x[TEST])
    np.testing.assert_allclose(pls.predict(x[TEST]), predicted, atol=1e-8)
    expected = [pearsonr(predicted[:, j], y[TEST, j]).statistic for j in range(4)]
    np.testing.assert_allclose(pls.score(x[TEST], y[TEST]).value, expected, atol=1e-8)
    alone = PLS(n_components=n_components, scale=scale, per_unit=True).fit(x[TRAIN], y[TRAIN])
    for j in range(4):
        own = PLSRegression(n_components, **settings).fit(x[TRAIN], y[TRAIN, j])
        np.testing.assert_allclose(alone.predict(x[TEST])[:, j], own.predict(x[TEST]), atol=1e-8)


def test_pls_of_wide_features_is_that_of_scikit_learn():
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((40, 90)), rng.standard_normal((40, 3))
    expected = PLSRegression(4, scale=False, tol=1e-28, max_iter=100_000).fit(x, y).predict(x)
    np.testing.assert_allclose(PLS(n_components=4).fit(x, y).predict(x), expected, atol=1e-8)


def test_pls_stops_at_the_rank_of_the_features(data):
    """25 components of 6 features, given twice: least squares."""
    x, y = data
    design = np.column_stack([np.ones(100), x])
    expected = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(PLS().fit(np.hstack([x, x]), y).predict(np.hstack([x, x])), expected, atol=1e-8)


# --- canonical correlations -----------------------------------------------------------------------------------------


def canonical(x, y, gamma=0.0):
    """Canonical correlations of the penalised eigenproblem, and the variates of both sides."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    s_x, s_y = ((1 - gamma) * a.T @ a + gamma * np.trace(a.T @ a) / a.shape[1] * np.eye(a.shape[1]) for a in (x, y))
    cross = x.T @ y
    squared, a = eigh(cross @ np.linalg.solve(s_y, cross.T), s_x)
    kept = np.argsort(squared)[::-1][: min(x.shape[1], y.shape[1])]
    b = np.linalg.solve(s_y, cross.T @ a[:, kept])
    return np.sqrt(squared[kept]), a[:, kept], b


def test_cca_is_the_eigenvalue_problem_and_that_of_scikit_learn(data):
    x, y = data
    r, _, _ = canonical(x[TRAIN], y[TRAIN])
    plain = CCA(penalty=0.0)
    assert in_sample(plain, x[TRAIN], y[TRAIN]) == pytest.approx(r.mean(), abs=1e-10)
    assert in_sample(CCA(penalty=0.0, n_components=2), x[TRAIN], y[TRAIN]) == pytest.approx(r[:2].mean(), abs=1e-10)
    sklearn = SklearnCCA(4, tol=1e-28, max_iter=100_000, scale=False).fit(x[TRAIN], y[TRAIN])
    u, v = sklearn.transform(x[TEST], y[TEST])
    held_out = np.mean([pearsonr(u[:, k], v[:, k]).statistic for k in range(4)])
    assert float(plain.fit(x[TRAIN], y[TRAIN]).score(x[TEST], y[TEST])) == pytest.approx(held_out)


@pytest.mark.parametrize("gamma", [0.1, 0.7, 1.0])
def test_penalised_cca_is_the_penalised_eigenvalue_problem(data, gamma):
    x, y = data
    _, a, b = canonical(x[TRAIN], y[TRAIN], gamma)
    expected = np.mean([pearsonr(x[TEST] @ a[:, k], y[TEST] @ b[:, k]).statistic for k in range(4)])
    found = CCA(penalty=gamma).fit(x[TRAIN], y[TRAIN]).score(x[TEST], y[TEST])
    assert float(found) == pytest.approx(expected, abs=1e-10)


def test_svcca_is_cca_of_principal_components(data):
    x, y = data
    reduced = [PCA(0.95, svd_solver="full").fit_transform(side) for side in (x, y)]
    assert sum(side.shape[1] for side in reduced) < 10
    q = [np.linalg.qr(side - side.mean(axis=0))[0] for side in reduced]
    expected = np.linalg.svd(q[0].T @ q[1], compute_uv=False).mean()
    assert in_sample(SVCCA(variance=0.95), x, y) == pytest.approx(expected, abs=1e-10)
    assert in_sample(SVCCA(variance=1.0), x, y) == pytest.approx(in_sample(CCA(penalty=0.0), x, y))


def test_pwcca_weighs_components_by_projection(data):
    x, y = data
    r, a, _ = canonical(x, y)
    centred = x - x.mean(axis=0)
    h = centred @ a  # already of unit length
    alpha = np.array([sum(abs(h[:, k] @ centred[:, j]) for j in range(6)) for k in range(4)])
    expected = (alpha * r).sum() / alpha.sum()
    assert in_sample(PWCCA(penalty=0.0), x, y) == pytest.approx(expected, abs=1e-10)
    assert in_sample(PWCCA(penalty=0.0), y, x) != pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("measure", [CCA(penalty=0.0), PWCCA(penalty=0.0), SVCCA(variance=1.0)])
def test_trivial_correlations_are_undefined(measure):
    """17 + 15 dimensions of 32 stimuli always share one; 17 + 14 need not."""
    x, y = np.split(np.random.default_rng(6).standard_normal((32, 34)), 2, axis=1)
    y = y[:, :15]
    score = measure.fit(x, y).score(x, y)
    assert (str(score.reason), np.isnan(score.value)) == (TOO_MANY_DIMENSIONS, True)
    assert float(measure.fit(x, y[:, :14]).score(x, y[:, :14])) < 1.0 - 1e-6


# --- Procrustes -------------------------------------------------------------------------------------------------------


def padded(y, p):
    return np.hstack([y, np.zeros((len(y), p - y.shape[1]))])


def test_procrustes_in_sample_is_that_of_scipy(data):
    x, y = data
    value = in_sample(Procrustes(), x, y)
    assert 1.0 - value**2 == pytest.approx(procrustes(x, padded(y, 6))[2], abs=1e-12)
    # The angular distance is the smallest angle of any rotation; no other of many is below it.
    x, y = (a - a.mean(axis=0) for a in (x, padded(y, 6)))
    cosines = [np.vdot(x @ q, y) for q in ortho_group.rvs(6, 500, random_state=0)]
    assert value > max(cosines) / (np.linalg.norm(x) * np.linalg.norm(y))
    _, total = orthogonal_procrustes(x, y)
    assert value == pytest.approx(total / (np.linalg.norm(x) * np.linalg.norm(y)), abs=1e-12)


@pytest.mark.parametrize("swap", [False, True])
def test_procrustes_held_out_is_the_rotation_of_training(data, swap):
    x, y = data
    measure = Procrustes()
    first, second = (y, x) if swap else (x, y)
    found = measure.fit(first[TRAIN], second[TRAIN]).score(first[TEST], second[TEST])
    y = padded(y, 6)
    mean_x, mean_y = x[TRAIN].mean(axis=0), y[TRAIN].mean(axis=0)
    q, _ = orthogonal_procrustes(x[TRAIN] - mean_x, y[TRAIN] - mean_y)
    a, b = (x[TEST] - mean_x) @ q, y[TEST] - mean_y
    expected = (a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum())
    assert float(found) == pytest.approx(expected, abs=1e-12)


def test_procrustes_of_a_rotation_is_one(data):
    x, _ = data
    turned = 3.0 * x @ ortho_group.rvs(6, random_state=1) + 2.0
    for measure in (Procrustes(), CCA()):
        held_out = measure.fit(x[TRAIN], turned[TRAIN]).score(x[TEST], turned[TEST])
        assert float(held_out) == pytest.approx(1.0, abs=1e-10)
