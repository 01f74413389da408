"""Rotated held-out rows give the scores that the rows themselves give.

Whether rows are rotated is a question of cost, and small problems never pay. Here QR is made to cost nothing, so that
every block is compressed and every product triangular, or everything, so that none is.
"""

from __future__ import annotations

import numpy as np
import pytest

from lpact.math.ridge import Compute, RidgeGrid, cross_validated_ridge, nested_ridge
from lpact.math.ridge.compute import Backend
from lpact.math.splits import contiguous_folds


class Priced(Compute):
    """A computation to which QR costs ``price``."""

    price = 0.0

    def open(self):
        if self.device == "torch":
            from lpact.math.ridge._torch import TorchBackend

            backend = TorchBackend("torch", self.precision, tensor_cores=False)
        else:
            backend = Backend(self.precision)
        backend.qr_cost = self.price
        return backend


class Free(Priced):
    price = 0.0


class Dear(Priced):
    price = 1e30


def problem(n, p, seed=0, t=400):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-2, 2, p) + rng.uniform(-3, 3, p)
    signal = (x - x.mean(0)) / x.std(0) @ rng.standard_normal((p, t)) / np.sqrt(p)
    y = np.stack([0.3 * signal, signal]) + rng.standard_normal((2, n, t))
    return x, y, rng.standard_normal((n, 2))


def used(monkeypatch):
    """Count the decompositions of held-out rows."""
    shapes = []
    for name in ("upper", "scaled_upper"):
        found = getattr(Backend, name)

        def counted(self, x, found=found):
            shapes.append(x.shape)
            return found(self, x)

        monkeypatch.setattr(Backend, name, counted)
    return shapes


@pytest.mark.parametrize("metric", ["r2", "pearson"])
@pytest.mark.parametrize("nuisance", [False, True])
@pytest.mark.parametrize(
    ("n", "p", "components", "form"),
    [
        (240, 6, (0,), "auto"),  # far more rows than columns: blocks are compressed
        (240, 6, (0, 2, 4), "auto"),
        (120, 40, (0, 5, 33), "auto"),  # a trapezoid: fewer rows in a block than axes
        (60, 90, (0, 7, 20), "kernel"),
        (60, 20, (3,), "kernel"),
    ],
)
def test_scores_do_not_depend_on_rotations(monkeypatch, metric, nuisance, n, p, components, form):
    x, y, u = problem(n, p)
    folds = contiguous_folds(n, 4, gap=2)
    grid = RidgeGrid(tuple(10.0 ** np.linspace(-1, 4, 16)), components, metric)
    unpenalised = u if nuisance else None
    shapes = used(monkeypatch)
    plain = cross_validated_ridge(x, y, folds, grid, unpenalised=unpenalised, form=form, compute=Dear())
    assert not shapes
    rotated = cross_validated_ridge(x, y, folds, grid, unpenalised=unpenalised, form=form, compute=Free())
    assert shapes
    np.testing.assert_array_equal(rotated.alpha, plain.alpha)
    np.testing.assert_array_equal(rotated.components, plain.components)
    np.testing.assert_allclose(rotated.score, plain.score, rtol=0, atol=1e-11)


@pytest.mark.parametrize("device", ["torch"])
@pytest.mark.parametrize(("n", "p"), [(240, 6), (120, 40)])
def test_the_same_on_torch(device, n, p):
    pytest.importorskip("torch", reason="PyTorch is an extra")
    x, y, _ = problem(n, p, seed=1, t=50)
    folds, grid = contiguous_folds(n, 4), RidgeGrid((0.1, 10.0), (0, 3))
    plain = nested_ridge(x, y, folds, grid, compute=Dear())
    rotated = nested_ridge(x, y, folds, grid, compute=Free(device))
    np.testing.assert_allclose(rotated.scores("r2"), plain.scores("r2"), atol=1e-10)
    np.testing.assert_array_equal(rotated.alpha, plain.alpha)


def test_single_precision_rotates_too():
    x, y, _ = problem(240, 6, seed=2, t=50)
    folds, grid = contiguous_folds(240, 4), RidgeGrid((0.1, 10.0), (0, 3))
    plain = cross_validated_ridge(x, y, folds, grid, compute=Dear())
    rotated = cross_validated_ridge(x, y, folds, grid, compute=Free("cpu", "float32"))
    assert 0.0 < np.abs(rotated.score - plain.score).max() < 1e-5
