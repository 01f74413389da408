"""The torch backend gives what NumPy gives, to the stated error."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from lpact.math.ridge import (
    METRICS,
    Compute,
    RidgeGrid,
    cross_validated_ridge,
    nested_ridge,
    nested_ridge_draws,
)
from lpact.math.splits import contiguous_folds

torch = pytest.importorskip("torch", reason="PyTorch is an extra")
torch.set_num_threads(1)

FLOAT32_SCORE = 1e-5
"""Stated error of a held-out score in single precision, at the same settings."""


def study(seed: int, n: int, p: int, t: int = 5, lags: int = 2):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-3, 3, p) + rng.uniform(-5, 5, p)
    signal = (x - x.mean(0)) / x.std(0) @ rng.standard_normal((p, t)) / np.sqrt(p)
    y = np.stack([signal * (lag == 1) for lag in range(lags)])
    return x, y + rng.standard_normal(y.shape)


def shapes():
    return list(product([(90, 12), (50, 70)], ["r2", "pearson", "spearman"], [False, True]))


@pytest.mark.parametrize(("shape", "metric", "nuisance"), shapes())
def test_double_precision_is_the_same(shape, metric, nuisance):
    x, y = study(1, *shape)
    folds, grid = contiguous_folds(shape[0], 4, gap=2), RidgeGrid((0.1, 10.0, 1e3), (0, 4), metric)
    unpenalised = np.random.default_rng(2).standard_normal((shape[0], 2)) if nuisance else None
    keep = ("predictions", "weights")
    numpy, tensors = (
        nested_ridge(x, y, folds, grid, unpenalised=unpenalised, keep=keep, compute=Compute(device))
        for device in ("cpu", "torch")
    )
    for name in ("lag", "alpha", "components"):
        np.testing.assert_array_equal(getattr(numpy, name), getattr(tensors, name))
    for name in ("observed", "predicted", "baseline", "weights", "nuisance_weights", "intercept"):
        np.testing.assert_allclose(getattr(tensors, name), getattr(numpy, name), rtol=1e-8, atol=1e-9)
    for found in METRICS:
        np.testing.assert_allclose(tensors.scores(found), numpy.scores(found), atol=1e-10)
        np.testing.assert_allclose(tensors.fold_scores(found), numpy.fold_scores(found), atol=1e-10)


@pytest.mark.parametrize("device", ["cpu", "torch"])
@pytest.mark.parametrize("shape", [(90, 12), (50, 70)])
def test_single_precision_keeps_its_word(device, shape):
    x, y = study(3, *shape)
    folds, grid = contiguous_folds(shape[0], 4), RidgeGrid((0.1, 10.0, 1e3), (0, 4))
    exact = nested_ridge(x, y, folds, grid)
    single = nested_ridge(x, y, folds, grid, compute=Compute(device, "float32"))
    np.testing.assert_array_equal(single.alpha, exact.alpha)
    np.testing.assert_array_equal(single.lag, exact.lag)
    error = np.abs(single.scores("r2") - exact.scores("r2"))
    assert 0.0 < error.max() < FLOAT32_SCORE


def test_a_mean_far_above_the_spread_costs_single_precision_nothing():
    x, y = study(4, 80, 6)
    folds, grid = contiguous_folds(80, 4), RidgeGrid((1.0, 100.0))
    exact = nested_ridge(x, y, folds, grid).scores("r2")
    moved = nested_ridge(x + 1e4 * x.std(0), y + 1e4, folds, grid, compute=Compute("cpu", "float32")).scores("r2")
    np.testing.assert_allclose(moved, exact, atol=FLOAT32_SCORE)


def test_tensors_in_tensors_out():
    x, y = study(5, 90, 12)
    folds, grid = contiguous_folds(90, 4), RidgeGrid((0.1, 10.0))
    arrays = cross_validated_ridge(x, y, folds, grid)
    tensors = cross_validated_ridge(torch.as_tensor(x), torch.as_tensor(y), folds, grid, compute=Compute("torch"))
    assert isinstance(tensors.weights, torch.Tensor)
    np.testing.assert_allclose(tensors.weights.numpy(), arrays.weights, rtol=1e-8, atol=1e-10)
    predicted = tensors.predict(torch.as_tensor(x))
    np.testing.assert_allclose(predicted.numpy(), arrays.predict(x), rtol=1e-8, atol=1e-8)


def test_orders_are_the_same_on_tensors():
    x, y = study(6, 60, 8)
    folds, grid = contiguous_folds(60, 4), RidgeGrid((1.0, 10.0))
    orders = [None, np.roll(np.arange(60), 20), np.random.default_rng(0).permutation(60)]
    arrays = nested_ridge_draws(x, y, folds, grid, orders)
    tensors = nested_ridge_draws(torch.as_tensor(x), torch.as_tensor(y), folds, grid, orders, compute=Compute("torch"))
    for a, b in zip(arrays, tensors, strict=True):
        np.testing.assert_allclose(b.scores("pearson"), a.scores("pearson"), atol=1e-10)


@pytest.mark.parametrize("components", [(0,), (0, 3, 7)])
def test_products_of_split_halves_have_22_bits(components):
    """What tensor cores do on a card, done on the CPU with the same numbers."""
    from lpact.math.ridge._torch import TorchBackend

    x, y = study(7, 200, 30, t=20)
    folds, grid = contiguous_folds(200, 4), RidgeGrid((0.1, 10.0, 1e3), components)
    exact = cross_validated_ridge(x, y, folds, grid)

    class Split(TorchBackend):
        def __init__(self):
            super().__init__("torch", "float32", tensor_cores=False)
            self.split = True

    class SplitCompute(Compute):
        def open(self):
            return Split()

    split = cross_validated_ridge(x, y, folds, grid, compute=SplitCompute("torch", "float32"))
    plain = cross_validated_ridge(x, y, folds, grid, compute=Compute("torch", "float32"))
    np.testing.assert_array_equal(split.alpha, exact.alpha)
    assert np.abs(split.score - exact.score).max() < 2e-6
    assert not np.array_equal(split.score, plain.score)  # the other products were taken
    np.testing.assert_array_equal(split.weights, plain.weights)  # and touch the choice alone


def test_a_product_of_split_matrices_is_far_better_than_one_of_halves():
    from lpact.math.ridge._torch import SplitOperand, SplitRows

    rng = np.random.default_rng(8)
    left = torch.as_tensor(rng.standard_normal((40, 300)), dtype=torch.float32)
    right = torch.as_tensor(rng.standard_normal((300, 50)) * 10.0 ** rng.uniform(-6, 6, 50), dtype=torch.float32)
    exact = left.double() @ right.double()
    scale = exact.abs().amax(0)
    halves = SplitRows(left.clone(), {}, left.device)
    split = halves.product(SplitOperand(right), slice(0, 300), slice(0, 50))
    parts = halves.product(SplitOperand(right), slice(0, 120), slice(3, 21))
    error = ((split.double() - exact).abs() / scale).max()
    assert error < 2e-6
    some = left[:, :120].double() @ right[:120, 3:21].double()
    assert ((parts.double() - some).abs() / scale[3:21]).max() < 2e-6


def test_devices_that_are_not_there_are_named():
    x, y = study(9, 40, 3)
    folds, grid = contiguous_folds(40, 4), RidgeGrid((1.0,))
    for device in ("cuda", "mps"):
        there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
        if there[device]:
            continue
        with pytest.raises(ValueError, match=f"'{device}' is not available"):
            nested_ridge(x, y, folds, grid, compute=Compute(device, "float32"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"device": "gpu"}, "unknown device 'gpu'"),
        ({"device": "cuda:x"}, "unknown device"),
        ({"device": "mps"}, "no float64"),
        ({"precision": "float16"}, "unknown precision"),
        ({"memory_bytes": 0}, "memory_bytes must be positive"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        Compute(**settings)
