"""Scores of every penalty and every number of components on held-out rows, without predicting them one by one.

Held-out rows, centred on themselves, have principal scores M [r, k]. With coefficients c(a) = b / (s + a), a
prediction's deviation from its own mean is Mc, so that with q = ‖Mc‖², l = (Mc)ᵀy and δ the difference of means,

    SSE = ‖y‖² + q − 2l + n δ²,    R² = 1 − SSE / ‖y‖²,    Pearson = l / √(q ‖y‖²)      (y centred on itself)

An orthonormal change of rows changes neither q nor l. With M = QR, R upper triangular, row i of R meets only
coefficients from i on, which saves up to half of the products; and the first k columns serve the first k components,
so that all numbers of components cost what the largest does.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lpact.math.ridge.axes import Axes, HeldOut, Projected
from lpact.math.ridge.columns import power_of_two
from lpact.math.ridge.compute import Array, Backend, Coefficients
from lpact.math.ridge.grid import RidgeGrid
from lpact.math.ridge.responses import Responses
from lpact.math.scores import spearman_columns
from lpact.math.types import FloatArray, IntArray


@dataclass(frozen=True)
class Settings:
    """The grid in the axes of one training set.

    Attributes
    ----------
    cuts
        Distinct numbers of axes, increasing.
    place
        For every entry of the grid's components, its place in ``cuts``.
    unit
        [k]: a power of two near the spread of every axis' scores on the training rows. Coefficients are given in these
        units and held-out scores divided by them, so that both have entries of about one size; exact.
    shrinkage
        unit / (s + a), [A, k].
    """

    cuts: tuple[int, ...]
    place: tuple[int, ...]
    unit: FloatArray
    shrinkage: Array


def settings(be: Backend, axes: Axes, grid: RidgeGrid) -> Settings:
    """The grid in the axes of one training set."""
    wanted = [axes.rank if k == 0 else min(k, axes.rank) for k in grid.components]
    cuts = tuple(sorted(set(wanted)))
    eigenvalues = axes.eigenvalues[: cuts[-1]]
    unit = 1.0 / power_of_two(np.sqrt(eigenvalues / axes.n_rows))
    shrinkage = unit / (eigenvalues + np.asarray(grid.alphas)[:, None])
    return Settings(cuts, tuple(cuts.index(k) for k in wanted), unit, be.narrow(shrinkage))


@dataclass(frozen=True)
class Triangle:
    """Held-out rows, with an upper triangle of zeros where that pays.

    Attributes
    ----------
    by_axis
        [k, r]: the rows' principal scores, transposed, in the axes' units.
    operand
        The same, as coefficients meet it.
    mean
        [k, 1], likewise: the scores' mean over the rows, in the axes' units.
    rotation
        [n_rows, r]: takes responses, centred on the held-out rows, to these rows; None where they are the same.
    """

    held: HeldOut
    by_axis: Array
    operand: Any
    mean: Any
    triangular: bool
    rotation: Array | None


def triangle(
    be: Backend, held: HeldOut, chosen: Settings, n_products: int, n_columns: int
) -> Triangle:
    """Rotate rows so that half of their products vanish, where that costs less than it saves.

    ``n_products`` is how many coefficient vectors will meet these rows, ``n_columns`` how many responses.
    """
    n_axes = chosen.cuts[-1]
    per_unit = be.narrow(1.0 / chosen.unit)
    scores = held.scores[:, :n_axes] * per_unit
    mean = be.operand((held.mean[:n_axes] * per_unit)[:, None])
    r, k = scores.shape
    short = min(r, k)
    saved = n_products * (2.0 * r * k - (2.0 * k - short) * short)
    cost = 2.0 * n_columns * r * short + be.qr_cost * r * short * short + 2.0 * r * short * k
    if short == 0 or saved <= 1.5 * cost:
        by_axis = be.narrow(scores.T)
        return Triangle(held, by_axis, be.operand(by_axis), mean, False, held.basis)
    rotation, upper = be.qr(scores[:, :short])
    if k > short:
        upper = be.concatenate([upper, rotation.T @ scores[:, short:]], 1)
    if held.basis is not None:
        rotation = held.basis @ rotation
    by_axis = be.narrow(upper.T)
    return Triangle(held, by_axis, be.operand(by_axis), mean, True, rotation)


def validation_scores(
    be: Backend,
    grid: RidgeGrid,
    chosen: Settings,
    projected: Projected,
    triangles: list[Triangle],
    responses: Responses,
    tile_bytes: int,
) -> list[FloatArray]:
    """Score of every setting on each block of held-out rows, [K, A, q] each; NaN where the response is constant.

    Blocks share the coefficients, which are made for as many columns at a time as ``tile_bytes`` hold.
    """
    n_alphas = len(grid.alphas)
    n_axes = chosen.cuts[-1]
    q = responses.n_columns
    blocks = [_HeldResponses(be, projected, part, responses) for part in triangles]
    out = [np.empty((len(chosen.cuts), n_alphas, q)) for _ in triangles]
    step = max(1, min(q, tile_bytes // max(1, n_alphas * n_axes * be.itemsize)))
    room: dict[str, Array] = {}
    for start in range(0, q, step):
        part = slice(start, min(start + step, q))
        coordinates = projected.coordinates[part, :n_axes]
        coefficients = be.coefficients(chosen.shrinkage, coordinates, room)
        for block, scores in zip(blocks, out, strict=True):
            scores[:, :, part] = block.scores(coefficients, chosen.cuts, part, grid.metric)
    return [scores[list(chosen.place)] for scores in out]


class _HeldResponses:
    """Responses on one block of held-out rows, and the scores of coefficients there."""

    def __init__(
        self, be: Backend, projected: Projected, triangle: Triangle, responses: Responses
    ) -> None:
        held = triangle.held
        self.be, self.triangle, self.held = be, triangle, held
        centred, mean, self.total = responses.block(held.rows)
        self.n_rows = held.rows.stop - held.rows.start
        self.shift: FloatArray = mean - be.host(projected.mean)
        self.observed = centred
        self.base: Array | None = None
        if held.nuisance is not None and projected.nuisance is not None:
            base = projected.nuisance @ held.nuisance.T
            own = centred if held.basis is None else centred @ held.basis
            self.base_observed = be.host(be.row_dots(base, own))
            self.base_total = be.host(be.row_dots(base, base))
            self.shift = self.shift - be.host(projected.nuisance @ held.nuisance_mean)
            self.base = base if triangle.rotation is held.basis else self._rotated(base)
        self.y = centred if triangle.rotation is None else centred @ triangle.rotation

    def _rotated(self, base: Array) -> Array:
        """Predictions of the unpenalised columns in the triangle's rows."""
        if self.held.basis is None:
            return base @ self.triangle.rotation
        return base @ (self.held.basis.T @ self.triangle.rotation)

    def scores(
        self, coefficients: Coefficients, cuts: tuple[int, ...], part: slice, metric: str
    ) -> FloatArray:
        """[cuts, A, columns of ``part``]."""
        if metric == "spearman":
            return self._spearman(coefficients, cuts, part)
        power, linear, base_linear = self._products(coefficients, cuts, part)
        total = self.total[part]
        if self.base is not None:
            power = power + self.base_total[part] + 2.0 * base_linear
            linear = linear + self.base_observed[part]
        with np.errstate(invalid="ignore", divide="ignore"):
            if metric == "pearson":
                spread = np.sqrt(np.maximum(power, 0.0) * total)
                return np.where(power > 0.0, linear / spread, np.nan)
            bias = self.shift[part] - self._mean(coefficients, cuts)
            error = total + power - 2.0 * linear + self.n_rows * bias**2
            return np.asarray(1.0 - error / total)

    def _mean(self, coefficients: Coefficients, cuts: tuple[int, ...]) -> FloatArray:
        """Mean prediction, less the training mean, on these rows."""
        parts = [
            self.be.host(
                coefficients.product(self.triangle.mean, slice(low, high), slice(0, 1))[:, :, 0]
            )
            for low, high in pairwise((0, *cuts))
        ]
        return np.cumsum(parts, axis=0)

    def _products(
        self, coefficients: Coefficients, cuts: tuple[int, ...], part: slice
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """‖Mc‖², (Mc)ᵀy and (Mc)ᵀ(prediction of unpenalised columns), [cuts, A, columns] each."""
        be = self.be
        n_rows = self.triangle.by_axis.shape[1]
        sums: list[list[Array]] = [[0.0] * len(cuts) for _ in range(3)]
        step = be.tile_rows if self.triangle.triangular else 8 * be.tile_rows
        for first in range(0, n_rows, step):
            rows = slice(first, min(first + step, n_rows))
            others = [self.y[part, rows]]
            if self.base is not None:
                others.append(self.base[part, rows])
            running = None
            for i, (low, high) in enumerate(pairwise((0, *cuts))):
                low = max(low, first) if self.triangle.triangular else low
                if low < high:
                    product = coefficients.product(self.triangle.operand, slice(low, high), rows)
                    if running is None:
                        running = product
                    else:
                        running += product
                if running is None:
                    continue
                for total, other in zip(sums, [running, *others], strict=False):
                    total[i] = total[i] + be.row_dots(running, other)
        shape = coefficients.shape[:2]
        power, linear, base = (
            np.stack([np.zeros(shape) if isinstance(x, float) else be.host(x) for x in total])
            for total in sums
        )
        return power, linear, base

    def _spearman(
        self, coefficients: Coefficients, cuts: tuple[int, ...], part: slice
    ) -> FloatArray:
        """Rank correlations need the predictions themselves."""
        be = self.be
        n_alphas, n_part = coefficients.shape[:2]
        observed = be.host(self.observed[part])
        base = 0.0 if self.base is None else be.host(self.base[part])
        out = np.empty((len(cuts), n_alphas, n_part))
        for i, cut in enumerate(cuts):
            every = slice(0, self.n_rows)
            product = be.host(coefficients.product(self.triangle.operand, slice(0, cut), every))
            predicted = product + base
            for a in range(n_alphas):
                out[i, a] = spearman_columns(observed.T, predicted[a].T)
        return out


def coefficients_of(
    be: Backend,
    axes: Axes,
    grid: RidgeGrid,
    projected: Projected,
    alpha: IntArray,
    component: IntArray,
) -> Array:
    """Coefficients [q, k] of every column at its own penalty and number of components."""
    limit = np.array([axes.rank if k == 0 else min(k, axes.rank) for k in grid.components])
    shrinkage = 1.0 / (axes.eigenvalues + np.asarray(grid.alphas)[:, None])
    table = np.where(np.arange(axes.rank) < limit[:, None, None], shrinkage, 0.0)  # [K, A, k]
    flat = be.narrow(table.reshape(len(limit) * len(grid.alphas), axes.rank))
    return projected.coordinates * be.take(flat, component * len(grid.alphas) + alpha, 0)
