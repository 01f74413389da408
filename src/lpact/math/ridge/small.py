"""Nested ridge of small problems: all training sets at once, without decompositions.

With a few hundred rows, a few dozen columns and a few penalties, a fit is as fast as its number of calls is small. All
training sets and validation blocks are known by products of [p, p] and [q, p], so that penalties are solved by Cholesky
factors of C + aI and validation scores come from the products alone: with weights w, a validation block's Gram matrix
H and its products l with the response (both centred on the block),

    SSE = ‖y‖² + wᵀHw − 2 wᵀl + n δ²,    R² = 1 − SSE / ‖y‖²,    Pearson = wᵀl / √(wᵀHw ‖y‖²)

with δ the difference of means. Products lose digits where penalties are tiny, or where means are far larger than
spreads; such fits, like large ones, are the engine's.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial

import numpy as np
from scipy.linalg import lapack

from lpact.math.ridge.compute import Array, Compute
from lpact.math.ridge.design import FittedFeatures
from lpact.math.ridge.grid import RidgeGrid
from lpact.math.ridge.results import Readout
from lpact.math.ridge.select import Choice, first_best, mean_scores, select
from lpact.math.ridge.small_plan import LONGEST, NotSmall, Plan, SmallResponses, plan_of
from lpact.math.ridge.small_products import (
    BatchedFeatures,
    Products,
    fitted_products,
    mapped_products,
    shared_products,
)
from lpact.math.ridge.small_scores import FoldScores, whole_scores
from lpact.math.splits import BlockedFolds
from lpact.math.types import FloatArray, IntArray

_MOST_BYTES = 16 * 2**20
"""Of the largest array: above it, calls are no longer what costs."""
_MOST_ALPHAS = 8
_LEAST_ALPHA = 1e-5
"""Penalty over n p below which products of columns lose digits that principal scores keep."""
_LARGEST_ALPHA = 1e50


class SmallRidge:
    """Nested readouts of the same few responses from one design after another.

    Raises `NotSmall` where the settings or the responses are the large engine's; so does `fit` for a design.
    """

    def __init__(
        self,
        responses: Array,
        folds: BlockedFolds,
        grid: RidgeGrid,
        metrics: Sequence[str],
        compute: Compute,
    ) -> None:
        n_lags, n_rows, n_targets = responses.shape
        self.folds, self.grid, self.metrics, self.compute = folds, grid, tuple(metrics), compute
        self.most_bytes = min(_MOST_BYTES, compute.memory_bytes // 16)
        n_columns, n_alphas = n_lags * n_targets, len(grid.alphas)
        suits = (
            isinstance(responses, np.ndarray)
            and (compute.device, compute.precision) == ("cpu", "float64")
            and grid.components == (0,)
            and grid.metric != "spearman"
            and n_alphas <= _MOST_ALPHAS
            and max(grid.alphas) <= _LARGEST_ALPHA
            and max(folds.test_sizes()) <= LONGEST
            and 8 * folds.n_blocks**2 * n_alphas * n_columns <= self.most_bytes
            and 16 * n_rows * n_columns <= self.most_bytes
        )
        if not suits:
            raise NotSmall
        _keep_freed_memory()
        self.alphas = np.asarray(grid.alphas)
        self.plan: Plan = plan_of(folds)
        self.responses = SmallResponses(responses, self.plan)

    def fit(self, design: Array | FittedFeatures) -> Readout:
        """Predict every block from the others, every setting chosen inside the training rows."""
        products = self._products(design)
        n = self.plan.n_train[:, None]
        power = products.gram.diagonal(axis1=1, axis2=2)
        alive = products.alive
        scale = np.where(alive, np.sqrt(n / np.where(alive, power, n)), 0.0)  # [S, p]
        products.gram *= scale[:, :, None] * scale[:, None, :]
        cross = products.cross * scale[:, None, :]
        choice = self._choose(self._inner_scores(products, cross, scale))
        return self._refit(products, cross, scale, choice)

    def _products(self, design: Array | FittedFeatures) -> Products:
        """Of the features, if they are few enough."""
        if not callable(design):
            if not isinstance(design, np.ndarray) or design.ndim != 2:
                raise NotSmall
            self._check_width(design.shape, 1)
            return shared_products(np.asarray(design, dtype=np.float64), self.responses)
        trains, n_rows = self.plan.rows, self.folds.n_rows
        if isinstance(design, BatchedFeatures):
            self._check_width((n_rows, design.n_features), len(trains))
            if (mapped := design.mapped()) is not None:
                with suppress(NotSmall):
                    return mapped_products(mapped, self.responses)
            return fitted_products(design.every(trains), self.responses)
        first = np.asarray(design(trains[0]), dtype=np.float64)
        self._check_width(first.shape, len(trains))
        features = np.empty((len(trains), *first.shape))
        features[0] = first
        for s, train in enumerate(trains[1:], 1):
            own = np.asarray(design(train), dtype=np.float64)
            if own.shape != first.shape:
                raise NotSmall
            features[s] = own
        return fitted_products(features, self.responses)

    def _check_width(self, shape: tuple[int, ...], n_copies: int) -> None:
        if len(shape) != 2 or shape[0] != self.folds.n_rows or not 0 < shape[1] <= LONGEST:
            raise NotSmall
        n_rows, p = shape
        weights = self.plan.n_pairs * len(self.alphas) * self.responses.n_columns * p
        grams = 3 * self.plan.n_sets * p * p
        largest = 8 * max(weights, grams, n_copies * n_rows * p)
        wide = p > min(self.plan.n_train) or self.alphas.min() < _LEAST_ALPHA * n_rows * p
        if wide or largest > self.most_bytes:
            raise NotSmall

    def _inner_scores(self, products: Products, cross: FloatArray, scale: FloatArray) -> FloatArray:
        """Mean validation score of every setting for every outer block, [F, A, q]."""
        plan, responses = self.plan, self.responses
        n_pairs, n_alphas, q = plan.n_pairs, len(self.alphas), responses.n_columns
        if not len(plan.spans):
            return np.full((self.folds.n_blocks, n_alphas, q), np.nan)
        weights = _solve(products.gram[:n_pairs], cross[:n_pairs], self.alphas)
        weights *= scale[:n_pairs, None, None]  # [pairs, A, q, p]
        flat = weights.reshape(n_pairs, 1, n_alphas * q, -1)
        power = np.einsum(
            "svkp,svkp->svk",
            flat @ products.span_gram,
            np.broadcast_to(flat, (n_pairs, 2, *flat.shape[2:])),
        )
        power = power.reshape(n_pairs, 2, n_alphas, q)
        linear = np.einsum("saqp,svqp->svaq", weights, products.span_cross)
        total = responses.span_total[plan.slot][:, :, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            if self.grid.metric == "pearson":
                scores = linear / np.sqrt(np.maximum(power, 0.0) * total)
                scores = np.where(power > 0.0, scores, np.nan)
            else:
                away = products.span_mean - products.mean[:n_pairs, None]  # [pairs, 2, p]
                mean = (flat @ away[..., None]).reshape(power.shape)
                sizes = np.array([rows.stop - rows.start for rows in plan.spans])
                bias = responses.shift[:, :, None] - mean
                error = total + power - 2.0 * linear
                error += sizes[plan.slot][:, :, None, None] * bias**2
                scores = 1.0 - error / total
        scores = scores.reshape(2 * n_pairs, -1)
        finite = np.isfinite(scores)
        sums = plan.into @ np.where(finite, scores, 0.0)
        return mean_scores(sums, plan.into @ finite).reshape(-1, n_alphas, q)

    def _choose(self, scores: FloatArray) -> Choice:
        """Best setting of every target for every outer block, [F, t] each."""
        n_lags, n_targets = self.responses.n_lags, self.responses.n_targets
        n_blocks, n_alphas, _ = scores.shape
        by_lag = scores.reshape(n_blocks, n_alphas, n_lags, n_targets).transpose(0, 2, 1, 3)
        tolerance = self.compute.tie_tolerance
        if self.grid.selection.alone:
            flat = by_lag.reshape(n_blocks, n_lags * n_alphas, n_targets).swapaxes(0, 1)
            best = first_best(flat, tolerance)
            return Choice(best // n_alphas, np.zeros_like(best), best % n_alphas)
        found = [select(own[:, None], self.grid.selection, tolerance) for own in by_lag]
        return Choice(
            np.stack([c.lag for c in found]),
            np.stack([c.components for c in found]),
            np.stack([c.alpha for c in found]),
        )

    def _refit(
        self, products: Products, cross: FloatArray, scale: FloatArray, choice: Choice
    ) -> Readout:
        """Fit every outer training set at the chosen settings, predict its block, and score."""
        responses, folds, n_pairs = self.responses, self.folds, self.plan.n_pairs
        n_targets = responses.n_targets
        columns: IntArray = choice.lag * n_targets + np.arange(n_targets)  # [F, t]
        cross = np.take_along_axis(cross[n_pairs:], columns[:, :, None], axis=1)
        weights = _solve(products.gram[n_pairs:], cross, self.alphas)  # [F, A, t, p]
        weights = np.take_along_axis(weights, choice.alpha[:, None, :, None], axis=1)[:, 0]
        weights *= scale[n_pairs:, None]
        at_mean = (weights @ products.mean[n_pairs:, :, None])[:, :, 0]
        if products.maps is not None:
            weights = weights @ products.maps[n_pairs:].swapaxes(1, 2)
        means = np.take_along_axis(responses.mean[n_pairs:], columns, axis=1)
        observed = np.empty((n_targets, folds.n_rows))
        predicted = np.empty_like(observed)
        for block in range(folds.n_blocks):
            rows = folds.rows(block)
            x = products.of_set(n_pairs + block)[rows]
            own = weights[block] @ x.T - at_mean[block][:, None]
            still = (x == x[0]).all(axis=0)
            if products.maps is None:
                still |= ~products.alive[n_pairs + block]
            predicted[:, rows] = own[:, :1] if still.all() else own
            observed[:, rows] = responses.rows[columns[block], rows] - means[block][:, None]
        if not np.isfinite(predicted).all():
            raise NotSmall

        pooled = {metric: whole_scores(observed, predicted, metric) for metric in self.metrics}
        ranks = partial(responses.ranks, columns)
        by_fold = FoldScores(observed, predicted, folds, self.metrics, ranks)
        components = np.zeros_like(choice.lag)
        return Readout(folds, choice.lag, choice.alpha, components, pooled, by_fold)


@cache
def _keep_freed_memory() -> None:
    """Free one large block that was never touched.

    The C library of Linux takes its size as a hint: freed arrays up to there are kept for the next ones. Handing them
    back and having them mapped and zeroed anew is half of the time of a small fit. Elsewhere this does nothing.
    """
    np.empty(_MOST_BYTES // 8)


def _solve(gram: FloatArray, cross: FloatArray, alphas: FloatArray) -> FloatArray:
    """Solve (C + aI) w = b for every penalty: [S, A, q, p] from C [S, p, p] and b [S, q, p], by Cholesky."""
    p = gram.shape[1]
    shifted = np.repeat(gram[:, None], len(alphas), axis=1)
    shifted.reshape(len(gram), len(alphas), -1)[..., :: p + 1] += alphas[:, None]
    out = np.repeat(cross[:, None], len(alphas), axis=1)
    for own, rows in zip(shifted.reshape(-1, p, p), out.reshape(-1, *cross.shape[1:]), strict=True):
        _, _, info = lapack.dposv(own.T, rows.T, overwrite_a=1, overwrite_b=1)
        if info:
            raise NotSmall
    return out
