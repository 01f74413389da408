"""Leave-one-out penalties against scikit-learn's RidgeCV and against leaving rows out one by one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.metrics import r2_score

from lpact.math.ridge import Compute, Targets, TooLittleMemory, leave_one_out, leave_one_out_ridge
from lpact.math.ridge.compute import Backend

ALPHAS = 10.0 ** np.arange(-9, 10)
MODERATE = ALPHAS[6:15]
"""Penalties that scikit-learn's leave-one-out errors keep eight digits at: it subtracts 1 / (n a)."""
SHAPES = pytest.mark.parametrize(
    ("n", "p", "t"),
    [(60, 20, 7), (60, 20, 150), (50, 120, 9), (50, 120, 200), (40, 40, 90), (41, 40, 90)],
)


def simulate(n, p, t, m=25):
    """Correlated features with offsets and responses of a few latents: training and test rows."""
    rng = np.random.default_rng(n + p + t)
    x = rng.standard_normal((n + m, p)) * rng.uniform(0.3, 3.0, p) + rng.uniform(-3, 3, p)
    y = x @ rng.standard_normal((p, t)) / np.sqrt(p)
    y += rng.uniform(0.5, 5.0, t) * rng.standard_normal(y.shape) + 4.0
    return x[:n], y[:n], x[n:], y[n:]


def left_out(x, y, alpha):
    """Residuals of every row from a fit, by singular values, of all others."""
    residuals = np.empty_like(y)
    for i in range(len(x)):
        others = np.arange(len(x)) != i
        middle, level = x[others].mean(axis=0), y[others].mean(axis=0)
        u, s, vt = np.linalg.svd(x[others] - middle, full_matrices=False)
        kept = s > 1e-11 * s[0]
        weights = vt[kept].T @ ((s / (s**2 + alpha))[kept, None] * (u[:, kept].T @ (y[others] - level)))
        residuals[i] = y[i] - level - (x[i] - middle) @ weights
    return residuals


def squared_errors(x, y, alphas=ALPHAS):
    """[A, t], from residuals and summed from products."""
    design = leave_one_out._Design(Backend("float64"), x)
    columns = np.arange(y.shape[1])
    targets = leave_one_out.Targets(y)
    by_target = leave_one_out._squared_errors(design, targets, columns, alphas)[0]
    by_products = leave_one_out._errors_by_products(design, targets, [columns], alphas, 0)[0][:, 0]
    return by_target, by_products


@SHAPES
@pytest.mark.parametrize("device", ["cpu", "torch"])
def test_populations_are_those_of_scikit_learn(n, p, t, device):
    if device == "torch":
        pytest.importorskip("torch", reason="PyTorch is an extra")
    x, y, x_test, y_test = simulate(n, p, t)
    labels = np.arange(t) % 3 * 7
    fit = leave_one_out_ridge(x, y, MODERATE, labels, compute=Compute(device))
    predicted, scores, loo = fit.predict(x_test), fit.test_r2(x_test, y_test), fit.loo_r2()
    for label in np.unique(labels):
        own = labels == label
        oracle = RidgeCV(MODERATE, store_cv_results=True).fit(x, y[:, own])
        assert (fit.alphas[own] == oracle.alpha_).all()
        expected = oracle.predict(x_test)
        np.testing.assert_allclose(predicted[:, own], expected, rtol=1e-8)
        expected = r2_score(y_test[:, own], expected, multioutput="raw_values")
        np.testing.assert_allclose(scores[own], expected, atol=1e-8)
        errors = oracle.cv_results_[:, :, MODERATE.tolist().index(oracle.alpha_)].sum(axis=0)
        total = ((y[:, own] - y[:, own].mean(axis=0)) ** 2).sum(axis=0)
        np.testing.assert_allclose(loo[own], 1.0 - errors / total, atol=1e-8)


@SHAPES
def test_units_are_those_of_scikit_learn(n, p, t):
    x, y, x_test, _ = simulate(n, p, t)
    oracle = RidgeCV(MODERATE, alpha_per_target=True, store_cv_results=True).fit(x, y)
    fit = leave_one_out_ridge(x, y, MODERATE)
    np.testing.assert_array_equal(fit.alphas, oracle.alpha_)
    assert len(np.unique(fit.alphas)) > 2
    np.testing.assert_allclose(fit.predict(x_test), oracle.predict(x_test), rtol=1e-8, atol=1e-8)
    by_target, _ = squared_errors(x, y, MODERATE)
    np.testing.assert_allclose(by_target, oracle.cv_results_.sum(axis=0).T, rtol=1e-8)


@SHAPES
def test_errors_are_those_of_rows_left_out(n, p, t):
    """Also at penalties far below the eigenvalues, and where features are about as many as rows."""
    x, y, *_ = simulate(n, p, t)
    expected = np.stack([(left_out(x, y, alpha) ** 2).sum(axis=0) for alpha in ALPHAS])
    by_target, by_products = squared_errors(x, y)
    np.testing.assert_allclose(by_target, expected, rtol=1e-8)
    np.testing.assert_allclose(by_products, expected.sum(axis=1), rtol=1e-8)


@pytest.mark.parametrize("p", [15, 90])
def test_singular_features_at_tiny_penalties_are_least_squares(p):
    """Features of rank 10: errors and predictions are those without the directions that do not exist."""
    rng = np.random.default_rng(p)
    latent, mix = rng.standard_normal((50, 10)), rng.standard_normal((10, p))
    x, y = latent[:40] @ mix, rng.standard_normal((40, 60))
    expected = (left_out(latent[:40], y, 0.0) ** 2).sum(axis=0)
    by_target, by_products = squared_errors(x, y, np.array([1e-9]))
    np.testing.assert_allclose(by_target[0], expected, rtol=1e-8)
    np.testing.assert_allclose(by_products[0], expected.sum(), rtol=1e-8)
    found = leave_one_out_ridge(x, y, [1e-9]).predict(latent[40:] @ mix)
    plain = np.column_stack([np.ones(40), latent[:40]])
    weights = np.linalg.lstsq(plain, y)[0]
    np.testing.assert_allclose(found, np.column_stack([np.ones(10), latent[40:]]) @ weights, atol=1e-8)


def test_a_feature_that_one_row_has_alone():
    """That row has a leverage of one at tiny penalties: without it, nothing is known about the feature."""
    x, y, *_ = simulate(40, 6, 50)
    x[:, 0] = np.arange(40) == 3
    expected = np.stack([(left_out(x, y, alpha) ** 2).sum(axis=0) for alpha in ALPHAS])
    by_target, by_products = squared_errors(x, y)
    np.testing.assert_allclose(by_target, expected, rtol=1e-8)
    np.testing.assert_allclose(by_products, expected.sum(axis=1), rtol=1e-8)


def test_constant_features_predict_the_mean_and_constant_targets_have_no_score():
    _, y, _, y_test = simulate(30, 5, 4)
    y[:, 2] = 0.1
    fit = leave_one_out_ridge(np.full((30, 5), 0.3), y, ALPHAS, np.zeros(4))
    np.testing.assert_allclose(fit.predict(np.ones((25, 5))), np.tile(y.mean(axis=0), (25, 1)))
    expected = np.where(np.arange(4) == 2, np.nan, 1.0 - (30 / 29) ** 2)
    np.testing.assert_allclose(fit.loo_r2(), expected)
    y_test[:, 1] = 2.0
    np.testing.assert_array_equal(np.isnan(fit.test_r2(np.ones((25, 5)), y_test)), np.arange(4) == 1)


@pytest.mark.parametrize("populations", [None, np.arange(90) % 4])
def test_memory_and_other_populations_change_no_bit(populations):
    x, y, x_test, _ = simulate(40, 30, 90)
    whole = leave_one_out_ridge(x, y, ALPHAS, populations)
    with pytest.raises(TooLittleMemory) as error:
        leave_one_out_ridge(x, y, ALPHAS, populations, compute=Compute(memory_bytes=1000))
    least = Compute(memory_bytes=error.value.needed_bytes)
    tight = leave_one_out_ridge(x, y, ALPHAS, populations, compute=least)
    np.testing.assert_array_equal(tight.alphas, whole.alphas)
    np.testing.assert_array_equal(tight.predict(x_test), whole.predict(x_test))
    np.testing.assert_array_equal(tight.loo_r2(), whole.loo_r2())
    if populations is not None:
        for label in range(4):
            own = populations == label
            alone = leave_one_out_ridge(x, y[:, own], ALPHAS, populations[own])
            np.testing.assert_array_equal(alone.alphas, whole.alphas[own])


@pytest.mark.parametrize("populations", [None, np.arange(90) % 4])
def test_targets_are_processed_in_tiles(populations, monkeypatch):
    x, y, x_test, y_test = simulate(40, 30, 90)
    whole = leave_one_out_ridge(x, y, ALPHAS, populations)
    monkeypatch.setattr(leave_one_out, "_TILE", 7)
    monkeypatch.setattr(leave_one_out, "_KERNELS", 3)
    tiled = leave_one_out_ridge(x, y, ALPHAS, populations)
    np.testing.assert_array_equal(tiled.alphas, whole.alphas)
    np.testing.assert_allclose(tiled.predict(x_test), whole.predict(x_test), rtol=1e-12)
    np.testing.assert_allclose(tiled.loo_r2(), whole.loo_r2(), atol=1e-12)
    np.testing.assert_allclose(
        tiled.test_r2(x_test, y_test),
        r2_score(y_test, whole.predict(x_test), multioutput="raw_values"),
        atol=1e-12,
    )


@pytest.mark.parametrize("changed", ["_LARGEST_MAPS", "_LARGEST_NORM"])
def test_products_are_replaced_by_residuals_where_they_would_not_do(changed, monkeypatch):
    x, y, *_ = simulate(40, 60, 90)
    labels = np.arange(90) % 4
    expected = leave_one_out_ridge(x, y, ALPHAS, labels).alphas
    calls = []
    errors = leave_one_out._squared_errors
    monkeypatch.setattr(leave_one_out, "_squared_errors", lambda *args: calls.append(args) or errors(*args))
    np.testing.assert_array_equal(leave_one_out_ridge(x, y, ALPHAS, labels).alphas, expected)
    assert not calls
    monkeypatch.setattr(leave_one_out, changed, 0)
    np.testing.assert_array_equal(leave_one_out_ridge(x, y, ALPHAS, labels).alphas, expected)
    assert len(calls) == 4


@SHAPES
@pytest.mark.parametrize("per_unit", [False, True])
def test_torch_is_the_same(n, p, t, per_unit):
    pytest.importorskip("torch", reason="PyTorch is an extra")
    x, y, x_test, y_test = simulate(n, p, t)
    labels = None if per_unit else np.arange(t) % 3
    numpy, torch = (leave_one_out_ridge(x, y, ALPHAS, labels, compute=Compute(device)) for device in ("cpu", "torch"))
    np.testing.assert_array_equal(torch.alphas, numpy.alphas)
    np.testing.assert_allclose(torch.predict(x_test), numpy.predict(x_test), rtol=1e-10)
    np.testing.assert_allclose(torch.loo_r2(), numpy.loo_r2(), atol=1e-10)
    np.testing.assert_allclose(torch.test_r2(x_test, y_test), numpy.test_r2(x_test, y_test), atol=1e-10)


@pytest.mark.parametrize("device", ["cpu", "torch"])
@SHAPES
def test_single_precision(n, p, t, device):
    if device == "torch":
        pytest.importorskip("torch", reason="PyTorch is an extra")
    x, y, x_test, y_test = simulate(n, p, t)
    for labels in (None, np.arange(t) % 3):
        exact = leave_one_out_ridge(x, y, MODERATE, labels)
        single = leave_one_out_ridge(x, y, MODERATE, labels, compute=Compute(device, "float32"))
        np.testing.assert_array_equal(single.alphas, exact.alphas)
        found, expected = (fit.test_r2(x_test, y_test) for fit in (single, exact))
        assert 0.0 < np.abs(found - expected).max() < 1e-5


def test_predictions_are_those_of_a_ridge_at_the_penalty():
    """Double precision, whatever the penalty."""
    for n, p in ((40, 12), (40, 70)):
        x, y, x_test, y_test = simulate(n, p, 5)
        for alpha in (1e-9, 1.0, 1e9):
            fit = leave_one_out_ridge(x, y, [alpha])
            expected = Ridge(alpha, solver="svd").fit(x, y).predict(x_test)
            np.testing.assert_allclose(fit.predict(x_test), expected, rtol=1e-8)
        around = y.mean(axis=0)
        expected = 1 - ((y_test - expected) ** 2).sum(axis=0) / ((y_test - around) ** 2).sum(axis=0)
        np.testing.assert_allclose(fit.test_r2(x_test, y_test, around), expected, atol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.ones((9, 3))}, "same rows, at least 2, got 9 and 10"),
        ({"X": np.full((10, 3), np.nan)}, "features must be finite"),
        ({"Y": np.full((10, 4), np.inf)}, "responses must be finite"),
        ({"alphas": [1.0, 0.0]}, "alphas must be a list of positive numbers"),
        ({"alphas": []}, "alphas must be a list of positive numbers"),
        ({"populations": [1, 2]}, "populations must label each of 4 columns"),
    ],
)
def test_bad_inputs_are_errors(change, message):
    rng = np.random.default_rng(0)
    given = {"X": rng.standard_normal((10, 3)), "Y": rng.standard_normal((10, 4)), "alphas": [1.0]}
    with pytest.raises(ValueError, match=message):
        leave_one_out_ridge(**given | change)
    fit = leave_one_out_ridge(**given)
    with pytest.raises(ValueError, match="features must have 3 columns as in training, got 2"):
        fit.predict(np.ones((5, 2)))
    with pytest.raises(ValueError, match=r"test responses must be \[5, 4\], got \(5, 2\)"):
        fit.test_r2(np.ones((5, 3)), np.ones((5, 2)))


def test_products_of_targets_are_kept_where_memory_allows_and_change_no_number() -> None:
    rng = np.random.default_rng(4)
    x, y, labels = (
        rng.standard_normal((3, 30, 8)),
        rng.standard_normal((30, 96)),
        np.arange(96) % 12,
    )
    rows, n_bytes = np.arange(24), 8 * 24**2
    found = []
    for memory in (10**9, 8 * (3 * 24 * 8 + 30 * 24**2) + 8 * 6 * 24 * 96 + 9 * n_bytes):
        held = Targets(y, labels, compute=Compute(memory_bytes=memory))
        fits = [leave_one_out_ridge(own[rows], held.at(rows), ALPHAS) for own in x]
        found.append([fit.test_r2(own[24:], held.at(np.arange(24, 30))) for fit, own in zip(fits, x, strict=True)])
        assert held.at(rows) is held.at(rows)
        found.append(held._n_bytes[0])
    assert np.array_equal(found[0], found[2])
    assert found[1] == 12 * n_bytes
    assert found[3] < 12 * n_bytes
    alone = [leave_one_out_ridge(own[rows], y[rows], ALPHAS, labels).test_r2(own[24:], y[24:]) for own in x]
    np.testing.assert_allclose(found[0], alone, rtol=1e-12)
