"""Held-out correlation of a small linear readout, from cross-products: quick enough for many units and shifts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpact.math.columns import standard_columns
from lpact.math.splits import BlockedFolds
from lpact.math.types import FloatArray, IntArray

PENALTY = 0.01
"""Ridge penalty on standardised columns, as a part of the training rows: enough for lags that resemble each other."""


def held_out_pearson(
    x: FloatArray, y: FloatArray, folds: BlockedFolds, orders: IntArray | None = None
) -> FloatArray:
    """Return held-out Pearson correlations of every column of ``y`` with its prediction from ``x``.

    For block b with training rows T (all but the block and the gap around it) ::

        w_b = (X̃'X̃ + λ |T| I)⁻¹ X̃'ỹ,   X̃, ỹ: deviations from the means over T
        r = corr over all blocks of ((x − mean_T x) w_b, y − mean_T y)

    so that a block is judged around the training mean, as the readouts of level 1 are. Nothing but sums of products is
    needed of the rows; no prediction is laid out.

    Parameters
    ----------
    x
        [n, p], finite, every column varies.
    y
        [n, t], finite.
    folds
        Blocks over the n rows.
    orders
        [d, n]: orders of the rows of ``x`` to be scored as well.

    Returns
    -------
    [1 + d, t], ``x`` as it is first; NaN where a column of ``y``, or its prediction, does not vary.
    """
    x, _ = standard_columns(x)
    y, varies = standard_columns(y)
    n = len(y)
    bounds = [folds.bounds(block) for block in range(folds.n_blocks)]
    tests = [slice(start, stop) for start, stop in bounds]
    around = [slice(max(0, start - folds.gap), min(n, stop + folds.gap)) for start, stop in bounds]
    sums = _sums(x, orders, y, [slice(0, n), *around, *tests])
    whole, held_out = sums.of(slice(0, 1)), sums.of(slice(1, 1 + len(tests)))
    train = whole.minus(held_out)
    mean_x, mean_y = train.x / train.n[:, None], train.y / train.n[:, None]
    gram, cross = train.about(mean_x, mean_y)
    penalty = PENALTY * train.n[:, None, None] * np.eye(x.shape[1])
    weights = np.linalg.solve(gram + penalty, cross)

    test = sums.of(slice(1 + len(tests), None))
    gram, cross = test.about(mean_x, mean_y)
    n_test = test.n[:, None]
    squares = test.yy - 2 * mean_y * test.y + n_test * mean_y**2
    observed = (test.y - n_test * mean_y).sum(axis=0) / n
    observed2 = squares.sum(axis=0) / n
    predicted = np.einsum("dbp,dbpt->dt", test.x - n_test * mean_x, weights) / n
    predicted2 = np.einsum("dbpt,dbpt->dt", weights, gram @ weights) / n
    product = np.einsum("dbpt,dbpt->dt", weights, cross) / n
    spread = (predicted2 - predicted**2) * (observed2 - observed**2)
    defined = varies & (spread > 0.0)
    root = np.sqrt(np.where(defined, spread, 1.0))
    r = np.clip((product - predicted * observed) / root, -1.0, 1.0)
    return np.where(defined, r, np.nan)


@dataclass(frozen=True)
class _Sums:
    """Sums over stretches b of rows, for orders d of x.

    ``n`` [b], ``y`` and ``yy`` (of y²) [b, t], ``x`` [d, b, p], ``xx`` [d, b, p, p] and ``xy`` [d, b, p, t].
    """

    n: FloatArray
    y: FloatArray
    yy: FloatArray
    x: FloatArray
    xx: FloatArray
    xy: FloatArray

    def of(self, some: slice) -> _Sums:
        """Sums over some of the stretches."""
        return _Sums(
            self.n[some],
            self.y[some],
            self.yy[some],
            self.x[:, some],
            self.xx[:, some],
            self.xy[:, some],
        )

    def minus(self, other: _Sums) -> _Sums:
        """Sums over the rows of one that are not in the other."""
        return _Sums(
            self.n - other.n,
            self.y - other.y,
            self.yy - other.yy,
            self.x - other.x,
            self.xx - other.xx,
            self.xy - other.xy,
        )

    def about(self, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Σ (x − a)(x − a)' and Σ (x − a)(y − b)' about any a [d, b, p] and b [b, t]."""
        n = self.n[:, None, None]
        left = self.x[..., None] * a[..., None, :]
        gram: FloatArray = self.xx - left - left.swapaxes(-1, -2) + n * _outer(a, a)
        cross: FloatArray = (
            self.xy - _outer(self.x, b[None]) - _outer(a, self.y[None]) + n * _outer(a, b[None])
        )
        return gram, cross


def _outer(a: FloatArray, b: FloatArray) -> FloatArray:
    return a[..., :, None] * b[..., None, :]


def _sums(x: FloatArray, orders: IntArray | None, y: FloatArray, stretches: list[slice]) -> _Sums:
    n_orders, p, t = 1 if orders is None else 1 + len(orders), x.shape[1], y.shape[1]
    shape = (n_orders, len(stretches))
    sums = _Sums(
        n=np.array([float(rows.stop - rows.start) for rows in stretches]),
        y=np.stack([y[rows].sum(axis=0) for rows in stretches]),
        yy=np.stack([np.einsum("it,it->t", y[rows], y[rows]) for rows in stretches]),
        x=np.empty((*shape, p)),
        xx=np.empty((*shape, p, p)),
        xy=np.empty((*shape, p, t)),
    )
    for d in range(n_orders):
        z = x if orders is None or d == 0 else x[orders[d - 1]]
        for b, rows in enumerate(stretches):
            sums.x[d, b] = z[rows].sum(axis=0)
            sums.xx[d, b] = z[rows].T @ z[rows]
            sums.xy[d, b] = z[rows].T @ y[rows]
    return sums


def by_gaps(y: FloatArray) -> list[tuple[IntArray, IntArray]]:
    """Return (rows, columns) of ``y`` [n, t]: columns that are finite in the same rows stand together."""
    finite = np.isfinite(y)
    if finite.all():
        return [(np.arange(len(y)), np.arange(y.shape[1]))]
    _, first, group = np.unique(
        np.packbits(finite, axis=0), axis=1, return_index=True, return_inverse=True
    )
    group = group.reshape(-1)
    return [
        (np.flatnonzero(finite[:, column]), np.flatnonzero(group == number))
        for number, column in enumerate(first)
    ]
