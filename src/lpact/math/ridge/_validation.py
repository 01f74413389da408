"""Scores of every penalty and every number of components on held-out rows, without computing predictions.

Centred held-out rows have principal scores M [r, k]. With coefficients c(a) = b / (s + a), a prediction's deviation
from its own mean is Mc, so that with q = ‖Mc‖², l = (Mc)ᵀy and δ the difference of means,

    SSE = ‖y‖² + q − 2l + n δ²,    R² = 1 − SSE / ‖y‖²,    Pearson = l / √(q ‖y‖²)      (y centred)

An orthonormal change of rows changes neither: q = ‖Rc‖² with M = QR, R upper triangular, which saves up to half of the
products; l = cᵀ(Mᵀy). The first k columns serve the first k components, so that all numbers of components together
cost about as much as the largest.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lpact.math.ridge._arrays import Projected, Responses, n_rows, power_of_two
from lpact.math.ridge._axes import Axes, HeldOut
from lpact.math.ridge.compute import Array, Backend, Coefficients
from lpact.math.ridge.grid import RidgeGrid, rankable
from lpact.math.scores import spearman_columns
from lpact.math.types import FloatArray, IntArray


@dataclass(frozen=True)
class Settings:
    """The grid in the axes of one training set.

    ``unit`` is a power of two near the spread of every axis' scores on the training rows. Coefficients are in these
    units and held-out scores are divided by them, so that both have entries of about one size; exact. ``scale`` is a
    power of two near the largest shrinkage of every penalty, so that squares do not underflow.
    """

    cuts: tuple[int, ...]  # distinct numbers of axes, increasing
    place: tuple[int, ...]  # of every entry of the grid's components in cuts
    unit: FloatArray  # [k]
    shrinkage: Array  # [A, k]: unit / (s + a) / scale
    scale: FloatArray  # [A]


def settings(be: Backend, axes: Axes, grid: RidgeGrid) -> Settings:
    """The grid in the axes of one training set."""
    wanted = [axes.rank if k == 0 else min(k, axes.rank) for k in grid.components]
    cuts = tuple(sorted(set(wanted)))
    eigenvalues = axes.eigenvalues[: cuts[-1]]
    unit = 1.0 / power_of_two(np.sqrt(eigenvalues / axes.n_rows))
    shrinkage = unit / (eigenvalues + np.asarray(grid.alphas)[:, None])
    scale = 1.0 / power_of_two(shrinkage.max(axis=1, initial=0.0))
    place = tuple(cuts.index(k) for k in wanted)
    return Settings(cuts, place, unit, be.narrow(shrinkage / scale[:, None]), scale)


TRIANGULAR_COST = 1.15
"""Time of a multiplication in a triangular product, relative to one in a full product."""


@dataclass(frozen=True)
class Validation:
    """Held-out rows in the form in which they are multiplied by coefficients, in the axes' units."""

    held: HeldOut
    operand: Any  # principal scores, transposed, [k, r]; or a triangle of n_triangle rows with the same norms
    mean: Any  # [k, 1]: the scores' mean over the rows
    n_triangle: int | None
    nuisance: Array | None  # [m, k]: products of the unpenalised columns with the scores
    nbytes: int

    @property
    def by_rows(self) -> bool:
        """Whether the operand's rows are the held-out rows."""
        return self.n_triangle is None and self.held.source is None


def validation(be: Backend, held: HeldOut, chosen: Settings, n_products: int, n_columns: int) -> Validation:
    """Rotate rows into a triangle, which halves the products, where that costs less than it saves.

    ``n_products`` coefficient vectors and ``n_columns`` responses will be multiplied with these rows.
    """
    n_axes = chosen.cuts[-1]
    per_unit = be.narrow(1.0 / chosen.unit)
    scores = held.scores[:, :n_axes] * per_unit
    mean = be.operand((held.mean[:n_axes] * per_unit)[:, None])
    nuisance = None if held.nuisance is None else held.nuisance.T @ scores
    r, k = scores.shape
    short = min(r, k)
    saved = n_products * (2.0 * r * k - TRIANGULAR_COST * (2.0 * k - short) * short)
    cost = 2.0 * n_columns * r * k + be.qr_cost * r * short * k
    n_bytes = be.itemsize * (2 * r + 1) * k
    if short == 0 or saved <= cost:
        operand = be.operand(be.narrow(scores.T))
        return Validation(held, operand, mean, None, nuisance, n_bytes)
    triangle = be.triangle(be.scaled_upper(scores), chosen.cuts)
    squares = sum(cut * cut for cut in chosen.cuts)
    return Validation(held, triangle, mean, short, nuisance, n_bytes + be.itemsize * squares)


def validation_scores(
    be: Backend,
    grid: RidgeGrid,
    chosen: Settings,
    projected: Projected,
    blocks: list[Validation],
    responses: Responses,
    tile_bytes: int,
) -> list[FloatArray]:
    """Score of every setting on each block of held-out rows, [K, A, q] each; NaN where the response is constant.

    For ``pooled_r2`` these are sums of squared errors, which the caller adds up.

    Blocks share the coefficients, which are computed for as many columns at a time as fit into ``tile_bytes``.
    """
    n_alphas = len(grid.alphas)
    n_axes = chosen.cuts[-1]
    q = responses.n_columns
    scored = [_HeldResponses(be, chosen, projected, block, responses) for block in blocks]
    out = [np.empty((len(chosen.cuts), n_alphas, q)) for _ in blocks]
    if not all(block.by_rows for block in blocks):
        tile_bytes *= 2  # triangular products are faster with more columns at a time
    step = max(1, min(q, tile_bytes // max(1, n_alphas * n_axes * be.itemsize)))
    buffers: dict[str, Array] = {}
    for start in range(0, q, step):
        part = slice(start, min(start + step, q))
        coordinates = projected.coordinates[part, :n_axes]
        coefficients = be.coefficients(chosen.shrinkage, coordinates, buffers)
        for block, scores in zip(scored, out, strict=True):
            scores[:, :, part] = block.scores(coefficients, part, grid.metric)
    return [scores[list(chosen.place)] for scores in out]


class _HeldResponses:
    """Responses on one block of held-out rows, and the scores of coefficients there."""

    def __init__(
        self,
        be: Backend,
        chosen: Settings,
        projected: Projected,
        block: Validation,
        responses: Responses,
    ) -> None:
        held = block.held
        self.be, self.chosen, self.projected, self.block = be, chosen, projected, block
        self.observed, mean, self.total = responses.block(held.rows)
        self.n_rows = n_rows(held.rows)
        self.shift: FloatArray = mean - be.host(projected.mean)
        products = None
        if held.source is not None:
            products = responses.held_products(held.rows, held.source[0])  # [q, P]
        self.base: Array | None = None
        self.base_in_axes: Array | None = None
        theta = projected.nuisance
        if held.nuisance is not None and theta is not None:
            m = theta.shape[1]
            self.base = theta @ held.nuisance.T
            other = (theta, products[:, :m]) if products is not None else (self.base, self.observed)
            self.base_observed = be.host(be.row_dots(*other))
            self.base_total = be.host(be.row_dots(self.base, self.base))
            self.shift = self.shift - be.host(theta @ held.nuisance_mean)
            self.base_in_axes = theta @ block.nuisance
        self.in_axes: Array | None = None  # Mᵀy in the axes' units, [q, k], for rotated rows
        if not block.by_rows:
            n_axes = chosen.cuts[-1]
            if products is not None and held.source is not None:
                in_axes = products @ held.source[1][:, :n_axes]
            else:
                in_axes = self.observed @ held.scores[:, :n_axes]
            self.in_axes = in_axes * be.narrow(1.0 / chosen.unit)

    def scores(self, coefficients: Coefficients, part: slice, metric: str) -> FloatArray:
        """[cuts, A, columns of ``part``]."""
        if metric == "spearman":
            return self._spearman(coefficients, part)
        if self.block.by_rows:
            power, linear = self._running(coefficients, self.observed[part])
        else:
            power, linear = self._power(coefficients), self._linear(self.in_axes, part)
        total, scale = self.total[part], self.chosen.scale[:, None]
        if metric == "pooled_r2":
            total = np.nan_to_num(total)  # a constant block has an error, but no score
        power, linear = power * scale**2, linear * scale
        if self.base is not None:
            with_base = self._linear(self.base_in_axes, part) * scale
            power = power + self.base_total[part] + 2.0 * with_base
            linear = linear + self.base_observed[part]
        with np.errstate(invalid="ignore", divide="ignore"):
            if metric == "pearson":
                spread = np.sqrt(np.maximum(power, 0.0) * total)
                return np.where(power > 0.0, linear / spread, np.nan)
            bias = self.shift[part] - self._mean(coefficients) * scale
            error = total + power - 2.0 * linear + self.n_rows * bias**2
            return np.asarray(error if metric == "pooled_r2" else 1.0 - error / total)

    def _mean(self, coefficients: Coefficients) -> FloatArray:
        """Mean prediction minus the training mean, on these rows."""
        one = slice(0, 1)
        parts = [
            self.be.host(coefficients.product(self.block.mean, slice(low, high), one)[:, :, 0])
            for low, high in pairwise((0, *self.chosen.cuts))
        ]
        return np.cumsum(parts, axis=0)

    def _linear(self, in_axes: Array | None, part: slice) -> FloatArray:
        """Sum over axes of coefficients times ``in_axes`` [q, k], for every cut: [cuts, A, columns]."""
        both = self.projected.coordinates[part, : self.chosen.cuts[-1]] * in_axes[part]  # type: ignore[index]
        parts = [
            self.be.host(self.chosen.shrinkage[:, low:high] @ both[:, low:high].T)
            for low, high in pairwise((0, *self.chosen.cuts))
        ]
        return np.cumsum(parts, axis=0)

    def _power(self, coefficients: Coefficients) -> FloatArray:
        """‖Mc‖² of every cut, [cuts, A, columns], from a triangle or from coordinates."""
        n_triangle = self.block.n_triangle
        if n_triangle is None:
            return self._running(coefficients, None)[0]
        powers = [coefficients.power(self.block.operand, n_triangle, cut, self.be) for cut in self.chosen.cuts]
        return self._on_host(powers, coefficients)

    def _running(self, coefficients: Coefficients, observed: Array | None) -> tuple[FloatArray, FloatArray]:
        """Sums of squares of Mc, and of products with ``observed``, of every cut: [cuts, A, columns] each."""
        be, cuts = self.be, self.chosen.cuts
        powers: list[Array] = [0.0] * len(cuts)
        linears: list[Array] = [0.0] * len(cuts)
        n, step = self.block.held.scores.shape[0], 8 * be.tile_rows
        for first in range(0, n, step):
            rows = slice(first, min(first + step, n))
            running = None
            for i, (low, high) in enumerate(pairwise((0, *cuts))):
                if low < high:
                    product = coefficients.product(self.block.operand, slice(low, high), rows)
                    if running is None:
                        running = product
                    else:
                        running += product
                if running is None:
                    continue
                powers[i] = powers[i] + be.row_dots(running, running)
                if observed is not None:
                    linears[i] = linears[i] + be.row_dots(running, observed[:, rows])
        return self._on_host(powers, coefficients), self._on_host(linears, coefficients)

    def _on_host(self, sums: list[Array], coefficients: Coefficients) -> FloatArray:
        """Sums of every cut on the host; zeros where there was nothing to add."""
        zeros = np.zeros(coefficients.shape[:2])
        return np.stack([zeros if isinstance(x, float) else self.be.host(x) for x in sums])

    def _spearman(self, coefficients: Coefficients, part: slice) -> FloatArray:
        """Rank correlations need the predictions."""
        be = self.be
        n_alphas, n_part = coefficients.shape[:2]
        observed = be.host(self.observed[part])
        base = 0.0 if self.base is None else be.host(self.base[part])
        out = np.empty((len(self.chosen.cuts), n_alphas, n_part))
        for i, cut in enumerate(self.chosen.cuts):
            every = slice(0, self.n_rows)
            product = be.host(coefficients.product(self.block.operand, slice(0, cut), every))
            predicted = product * self.chosen.scale[:, None, None] + base
            predicted = rankable(predicted, be.itemsize)
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
