"""Nested ridge of small problems: all training sets at once, without decompositions.

With a few hundred rows, a few dozen columns and a few penalties, the number of calls determines the time of a fit. All
training sets and validation blocks are represented by products of [p, p] and [q, p]: penalties are solved by Cholesky
factors of C + aI, and validation scores come from the products alone. With weights w, a validation block's Gram matrix
H and its products l with the response (both centred on the block),

    SSE = ‖y‖² + wᵀHw − 2 wᵀl + n δ²,    R² = 1 − SSE / ‖y‖²,    Pearson = wᵀl / √(wᵀHw ‖y‖²)

with δ the difference of means. For 300 rows and 42 columns this is six times as fast as the general engine, and three
times for features fitted on the training rows (benchmarks/small.py); calibration makes such fits by the thousand.
Products lose digits where penalties are tiny or means are far larger than spreads; `NotSmall` leaves such fits, and
large ones, to the engine.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import lapack

from lpact.math.ridge._arrays import n_rows
from lpact.math.ridge._design import FittedFeatures
from lpact.math.ridge._products import (
    LONGEST,
    BatchedFeatures,
    NotSmall,
    Products,
    SmallResponses,
    fitted_products,
    mapped_products,
    plan_of,
    shared_products,
)
from lpact.math.ridge.compute import Array, Compute
from lpact.math.ridge.grid import Choice, RidgeGrid, first_best, mean_scores, select
from lpact.math.ridge.results import Readout, rankable
from lpact.math.scores import average_ranks
from lpact.math.splits import BlockedFolds
from lpact.math.types import BoolArray, FloatArray, IntArray

_MAX_BYTES = 16 * 2**20
"""Of the largest array: above it, calls no longer determine the time."""
_MAX_ALPHAS = 8
_MIN_ALPHA = 1e-5
"""Penalty over n p below which products of columns lose digits that principal scores keep."""
_LARGEST_ALPHA = 1e50


class SmallRidge:
    """Nested readouts of the same few responses from one design after another.

    Raises `NotSmall` where the settings or the responses need the general engine; so does `fit` for a design.
    """

    def __init__(
        self,
        responses: Array,
        folds: BlockedFolds,
        grid: RidgeGrid,
        metrics: Sequence[str],
        compute: Compute,
    ) -> None:
        n_lags, n, n_targets = responses.shape
        self.folds, self.grid, self.metrics = folds, grid, tuple(metrics)
        self.tolerance = compute.tie_tolerance
        self.max_bytes = min(_MAX_BYTES, compute.memory_bytes // 16)
        n_columns, n_alphas = n_lags * n_targets, len(grid.alphas)
        small = (
            isinstance(responses, np.ndarray)
            and (compute.device, compute.precision) == ("cpu", "float64")
            and grid.components == (0,)
            and grid.metric != "spearman"
            and n_alphas <= _MAX_ALPHAS
            and max(grid.alphas) <= _LARGEST_ALPHA
            and max(folds.test_sizes()) <= LONGEST
            and 8 * folds.n_blocks**2 * n_alphas * n_columns <= self.max_bytes
            and 16 * n * n_columns <= self.max_bytes
        )
        if not small:
            raise NotSmall
        _keep_freed_memory()
        self.alphas = np.asarray(grid.alphas)
        self.plan = plan_of(folds)
        self.responses = SmallResponses(responses, self.plan)

    def fit(self, design: Array | FittedFeatures) -> Readout:
        """Predict every block from the others, with settings chosen inside the training rows."""
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
        """Products of the features, if they are few enough."""
        if not callable(design):
            if not isinstance(design, np.ndarray) or design.ndim != 2:
                raise NotSmall
            self._check_width(design.shape, 1)
            return shared_products(np.asarray(design, dtype=np.float64), self.responses)
        trains = self.plan.rows
        if isinstance(design, BatchedFeatures):
            self._check_width((self.folds.n_rows, design.n_features), len(trains))
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
        n, p = shape
        weights = self.plan.n_pairs * len(self.alphas) * self.responses.n_columns * p
        largest = 8 * max(weights, 3 * len(self.plan.rows) * p * p, n_copies * n * p)
        wide = p > min(self.plan.n_train) or self.alphas.min() < _MIN_ALPHA * n * p
        if wide or largest > self.max_bytes:
            raise NotSmall

    def _inner_scores(self, products: Products, cross: FloatArray, scale: FloatArray) -> FloatArray:
        """Mean validation score of every setting for every outer block, [F, A, q]."""
        plan, responses = self.plan, self.responses
        n_pairs, n_alphas, q = plan.n_pairs, len(self.alphas), responses.n_columns
        if not plan.spans:
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
                sizes = np.array([n_rows(rows) for rows in plan.spans])
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
        if self.grid.selection.per_target:
            flat = by_lag.reshape(n_blocks, n_lags * n_alphas, n_targets).swapaxes(0, 1)
            best = first_best(flat, self.tolerance)
            return Choice(best // n_alphas, np.zeros_like(best), best % n_alphas)
        found = [select(own[:, None], self.grid.selection, self.tolerance) for own in by_lag]
        lag = np.stack([c.lag for c in found])
        return Choice(lag, np.zeros_like(lag), np.stack([c.alpha for c in found]))

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
        raw = np.empty((n_targets, folds.n_rows))
        observed, predicted = np.empty_like(raw), np.empty_like(raw)
        for block in range(folds.n_blocks):
            rows = folds.rows(block)
            x = products.of_set(n_pairs + block)[rows]
            own = weights[block] @ x.T - at_mean[block][:, None]
            constant = (x == x[0]).all(axis=0)
            if products.maps is None:
                constant |= ~products.alive[n_pairs + block]
            predicted[:, rows] = own[:, :1] if constant.all() else own
            raw[:, rows] = responses.rows[columns[block], rows]
            observed[:, rows] = raw[:, rows] - means[block][:, None]
        if not np.isfinite(predicted).all():
            raise NotSmall
        scores = partial(_segment_scores, observed, predicted)
        pooled = {metric: scores(observed, (0,), metric)[0] for metric in self.metrics}
        by_fold = _LazyScores(self.metrics, partial(scores, raw, folds.starts))
        return Readout(folds, choice.lag, choice.alpha, choice.components, pooled, by_fold)


class _LazyScores(UserDict[str, Any]):
    """Scores by metric, computed on first access: a third of the time of a fit, and often only one is needed."""

    def __init__(self, metrics: Sequence[str], score: Callable[[str], FloatArray]) -> None:
        super().__init__(dict.fromkeys(metrics))
        self.score = score

    def __getitem__(self, metric: str) -> Any:
        if self.data[metric] is None:
            self.data[metric] = self.score(metric)
        return self.data[metric]


@cache
def _keep_freed_memory() -> None:
    """Free one large block that was never used.

    The C library of Linux takes its size as a hint: freed arrays up to that size are kept for the next ones. Returning
    them, and having them mapped and zeroed again, is half of the time of a small fit. Elsewhere this has no effect.
    """
    np.empty(_MAX_BYTES // 8)


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


def _segment_scores(
    observed: FloatArray,
    predicted: FloatArray,
    to_rank: FloatArray,
    starts: Sequence[int],
    metric: str,
) -> FloatArray:
    """Scores in contiguous segments of rows, [segments, t], from deviations [t, n]; see `deviation_scores`.

    Ranks of responses are those of ``to_rank`` [t, n].
    """
    edges = [*starts, observed.shape[1]]
    sizes = np.diff(edges)

    def sums(x: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(x, starts, axis=1))

    def centred(x: FloatArray) -> FloatArray:
        return np.asarray(x - np.repeat(sums(x) / sizes, sizes, axis=1))

    def varies(x: FloatArray) -> BoolArray:
        low, high = (f.reduceat(x, starts, axis=1) for f in (np.minimum, np.maximum))
        return np.asarray(low != high)

    if metric == "r2":
        error = observed - predicted
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = sums(error * error) / sums(observed * observed)
        return np.where(varies(observed), 1.0 - ratio, np.nan).T.copy()
    if metric == "spearman":
        parts = [slice(start, stop) for start, stop in pairwise(edges)]
        observed = np.hstack([average_ranks(to_rank[:, part]) for part in parts])
        predicted = np.hstack([average_ranks(rankable(predicted[:, part])) for part in parts])
    y, z = centred(observed), centred(predicted)
    power = sums(y * y) * sums(z * z)
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.clip(sums(y * z) / np.sqrt(power), -1.0, 1.0)
    defined = varies(observed) & varies(predicted) & (power > 0.0)
    return np.where(defined, r, np.nan).T.copy()
