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

from abc import ABC, abstractmethod
from collections import UserDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import lapack

from lpact.math.ridge._arrays import (
    CENTRING_LIMIT,
    FittedFeatures,
    contiguous_runs,
    cut,
    n_rows,
    nested_sets,
    nested_validation,
    scaled_columns,
)
from lpact.math.ridge.compute import Array, Compute
from lpact.math.ridge.grid import Readout, RidgeGrid, mean_scores, rankable, select
from lpact.math.scores import average_ranks
from lpact.math.splits import BlockedFolds
from lpact.math.types import BoolArray, FloatArray, IntArray

_EPS = float(np.finfo(np.float64).eps)
LONGEST = 256
"""Most terms of a product. BLAS would split longer sums at places that depend on its number of threads."""
_TINY, _HUGE = 1e-100, 1e100
"""Sums of squares between which squares lose nothing."""
_MIN_LEFT = 1e-5
"""Share of the sums of squares of its parts that a mapped feature must keep for exact products."""


class NotSmall(Exception):
    """A fit needs the accuracy or the memory management of the general engine."""


@dataclass(frozen=True)
class MappedColumns:
    """Features that are a linear map of columns [n, P], the map fitted on products of the training rows.

    ``maps(n_rows, gram)`` returns [S, P, p] from the numbers of training rows [S] and the columns' products around
    their means there, [S, P, P]. Features are the columns times the map, up to a constant in every column.
    """

    columns: FloatArray
    maps: Callable[[FloatArray, FloatArray], FloatArray]


class LinearFeatures(ABC):
    """Features [n, n_features] fitted on training rows, which may be a linear map of columns."""

    n_features: int

    @abstractmethod
    def __call__(self, train: IntArray) -> FloatArray:
        """Features of all rows, fitted on ``train``."""

    @abstractmethod
    def mapped(self) -> MappedColumns | None:
        """The same as a linear map of columns, if it is one."""


class Plan:
    """Rows of a nested readout. Training sets are ordered: pairs of blocks left out, then single blocks.

    Every training set has ``rows``, the same as contiguous ``runs`` of at most `LONGEST` rows, and their number
    ``n_train`` [S]; ``member`` [S, pieces] says which ``pieces`` it includes. ``spans`` are the distinct ranges of
    validation rows; ``slot`` [n_pairs, 2] which of them validate a pair's training set, −1 where fewer than two do;
    ``into`` [F, pairs · 2] is 1 where a slot chooses for an outer block.
    """

    def __init__(self, folds: BlockedFolds) -> None:
        sets = nested_sets(folds.n_blocks)
        cuts = cut(folds, sets)
        self.pieces = cuts.slices
        self.member = np.zeros((len(sets), len(cuts.slices)))
        for i, held in enumerate(sets):
            self.member[i, list(cuts.members[held])] = 1.0
        self.rows = [cuts.rows(held) for held in sets]
        self.runs = [_short_runs(rows) for rows in self.rows]
        self.n_train = np.array([len(rows) for rows in self.rows], dtype=np.float64)
        validation = nested_validation(folds)
        self.n_pairs = len(validation)
        self.spans: list[slice] = []
        self.slot = np.full((self.n_pairs, 2), -1)
        into = np.zeros((folds.n_blocks, self.n_pairs, 2))
        for i, parts in enumerate(validation.values()):
            for j, (outer, rows) in enumerate(parts):
                if rows not in self.spans:
                    self.spans.append(rows)
                self.slot[i, j] = self.spans.index(rows)
                into[outer, i, j] = 1.0
        self.into = into.reshape(folds.n_blocks, -1)


plan_of = lru_cache(maxsize=32)(Plan)


def _short_runs(rows: IntArray) -> list[slice]:
    return [
        slice(first, min(first + LONGEST, run.stop))
        for run in contiguous_runs(rows)
        for first in range(run.start, run.stop, LONGEST)
    ]


class SmallResponses:
    """Responses as scaled rows with q = n_lags · t, and their statistics on training sets and spans.

    ``rows`` [q + 1, n] end in a row of ones, so that products with features include their sums; so do ``spans``, the
    rows of every span minus their mean there, [q + 1, r]. ``mean`` and ``constant`` are [S, q], over training rows.
    ``span_total`` [spans, q] is the centred sum of squares, NaN where constant; ``shift`` [pairs, 2, q] the mean on
    every slot's rows minus the training mean.
    """

    def __init__(self, responses: FloatArray, plan: Plan) -> None:
        self.n_lags, n, self.n_targets = responses.shape
        raw = np.asarray(responses).transpose(1, 0, 2).reshape(n, -1)
        y = scaled_columns(Compute().open(), raw, self.n_lags, "responses").values.T
        self.plan, self.n_columns = plan, len(y)
        self.rows: FloatArray = np.concatenate([y, np.ones((1, n))])
        pieces = [y[:, piece] for piece in plan.pieces]
        sums = np.stack([part.sum(axis=1) for part in pieces])
        squares = np.stack([np.einsum("qr,qr->q", part, part) for part in pieces])
        low = np.stack([part.min(axis=1) for part in pieces])
        high = np.stack([part.max(axis=1) for part in pieces])
        n_train = plan.n_train[:, None]
        self.mean: FloatArray = plan.member @ sums / n_train
        members = plan.member.astype(bool)
        self.constant: BoolArray = np.stack([high[own].max(axis=0) == low[own].min(axis=0) for own in members])
        far = n_train * self.mean**2 > (1.0 - 1.0 / CENTRING_LIMIT) * (plan.member @ squares)
        if (far & ~self.constant).any():
            raise NotSmall
        self.spans: list[FloatArray] = []
        self.span_total = np.zeros((len(plan.spans), self.n_columns))
        means = np.zeros((len(plan.spans), self.n_columns))
        for i, rows in enumerate(plan.spans):
            part = y[:, rows]
            means[i] = part.mean(axis=1)
            centred = part - means[i][:, None]
            total = np.einsum("qr,qr->q", centred, centred)
            self.span_total[i] = np.where(part.min(axis=1) == part.max(axis=1), np.nan, total)
            self.spans.append(np.concatenate([centred, np.ones((1, part.shape[1]))]))
        if len(means):
            self.shift: FloatArray = means[plan.slot] - self.mean[: plan.n_pairs, None]


@dataclass
class Products:
    """Features minus an offset, and their products; those of spans are zero where a slot is empty."""

    features: FloatArray  # [n, p], or [S, n, p] where every training set has its own
    gram: FloatArray  # [S, p, p], around the training mean
    mean: FloatArray  # [S, p]
    cross: FloatArray  # [S, q, p]
    span_gram: FloatArray  # [pairs, 2, p, p], of the rows of every slot, around their mean
    span_mean: FloatArray  # [pairs, 2, p]
    span_cross: FloatArray  # [pairs, 2, q, p]
    alive: BoolArray  # [S, p]: columns that vary on the training rows
    maps: FloatArray | None = None  # [S, P, p], where products are of ``features`` [n, P] times this

    def of_set(self, s: int) -> FloatArray:
        """Features of a training set, before they are mapped, [n, p]."""
        return self.features if self.features.ndim == 2 else self.features[s]


def shared_products(features: FloatArray, responses: SmallResponses) -> Products:
    """Products of features [n, p] that all training sets share: sums over pieces."""
    plan = responses.plan
    offset = features.sum(axis=0) / len(features)
    x = features - offset
    p, q = x.shape[1], responses.n_columns
    grams = np.empty((len(plan.pieces), p, p))
    crosses = np.empty((len(plan.pieces), q + 1, p))
    for i, rows in enumerate(plan.pieces):
        part = x[rows]
        np.matmul(part.T, part, out=grams[i])
        np.matmul(responses.rows[:, rows], part, out=crosses[i])
    gram = (plan.member @ grams.reshape(len(grams), -1)).reshape(-1, p, p)
    cross = (plan.member @ crosses.reshape(len(grams), -1)).reshape(-1, q + 1, p)
    span_gram = np.zeros((len(plan.spans) + 1, p, p))  # the last stays zero, for empty slots
    span_cross = np.zeros((len(plan.spans) + 1, q + 1, p))
    for i, rows in enumerate(plan.spans):
        part = x[rows]
        np.matmul(part.T, part, out=span_gram[i])
        np.matmul(responses.spans[i], part, out=span_cross[i])
    return _centred(x, offset, gram, cross, span_gram[plan.slot], span_cross[plan.slot], responses)


def fitted_products(features: FloatArray, responses: SmallResponses) -> Products:
    """Products of features [S, n, p] that differ between training sets; they are overwritten."""
    plan, q = responses.plan, responses.n_columns
    n_sets, n, p = features.shape
    offset = features.sum(axis=1) / n  # stripping may add another constant to a column in every set
    features -= offset[:, None]
    gram, cross = np.empty((n_sets, p, p)), np.empty((n_sets, q + 1, p))
    span_gram = np.zeros((plan.n_pairs, 2, p, p))
    span_cross = np.zeros((plan.n_pairs, 2, q + 1, p))
    for s, x in enumerate(features):
        for i, rows in enumerate(plan.runs[s]):
            part = x[rows]
            if i == 0:
                np.matmul(part.T, part, out=gram[s])
                np.matmul(responses.rows[:, rows], part, out=cross[s])
            else:
                gram[s] += part.T @ part
                cross[s] += responses.rows[:, rows] @ part
        for j, span in enumerate(plan.slot[s].tolist() if s < plan.n_pairs else []):
            if span >= 0:
                part = x[plan.spans[span]]
                np.matmul(part.T, part, out=span_gram[s, j])
                np.matmul(responses.spans[span], part, out=span_cross[s, j])
    return _centred(features, offset, gram, cross, span_gram, span_cross, responses)


def mapped_products(mapped: MappedColumns, responses: SmallResponses) -> Products:
    """Products of features that are a linear map of columns, from the products of the columns.

    Raises `NotSmall` if a column does not vary, or if so little is left of a feature that digits are lost.
    """
    base = shared_products(mapped.columns, responses)
    if not base.alive.all():
        raise NotSmall
    n_pairs = responses.plan.n_pairs
    maps = mapped.maps(responses.plan.n_train, base.gram)
    across = maps.swapaxes(1, 2)
    gram = across @ (base.gram @ maps)
    parts = (base.gram.diagonal(axis1=1, axis2=2)[:, None] @ maps**2)[:, 0]
    left = gram.diagonal(axis1=1, axis2=2)
    if not ((left > _MIN_LEFT * parts) | (parts == 0.0)).all():
        raise NotSmall
    inner, inner_across = maps[:n_pairs, None], across[:n_pairs, None]
    return Products(
        base.features,
        gram,
        (base.mean[:, None] @ maps)[:, 0],
        base.cross @ maps,
        inner_across @ (base.span_gram @ inner),
        (base.span_mean[:, :, None] @ inner)[:, :, 0],
        base.span_cross @ inner,
        parts > 0.0,
        maps,
    )


def _centred(
    features: FloatArray,
    offset: FloatArray,
    gram: FloatArray,
    cross: FloatArray,
    span_gram: FloatArray,
    span_cross: FloatArray,
    responses: SmallResponses,
) -> Products:
    """Products around the means of their rows; raises `NotSmall` where that would cost digits."""
    plan = responses.plan
    n_train = plan.n_train[:, None]
    mean = cross[:, -1] / n_train
    gram -= (n_train * mean)[:, :, None] * mean[:, None, :]
    own = cross[:, :-1]
    own -= (n_train * responses.mean)[:, :, None] * mean[:, None, :]
    own[responses.constant] = 0.0
    sizes = np.array([n_rows(rows) for rows in plan.spans] + [1], dtype=np.float64)
    n_span = sizes[plan.slot][:, :, None]
    span_mean = span_cross[:, :, -1] / n_span
    span_gram -= (n_span * span_mean)[..., None] * span_mean[..., None, :]
    alive = np.ones(mean.shape, dtype=np.bool_)
    power = gram.diagonal(axis1=1, axis2=2)
    if not (np.isfinite(power).all() and np.isfinite(span_mean).all()):
        raise NotSmall
    made = Products(features, gram, mean, own, span_gram, span_mean, span_cross[:, :, :-1], alive)
    exact = (n_train * mean**2 <= CENTRING_LIMIT * power) & (power > _TINY) & (power < _HUGE)
    for s in np.flatnonzero(~exact.all(axis=1)).tolist():
        columns = np.flatnonzero(~exact[s])
        _check_constant(made.of_set(s)[:, columns][plan.rows[s]])
        alive[s, columns] = False
    alive &= power / n_train > (n_train * _EPS * (mean + offset)) ** 2
    if not alive.all():
        gone = ~alive
        gram[gone] = 0.0
        gram.swapaxes(1, 2)[gone] = 0.0
        own.swapaxes(1, 2)[gone] = 0.0
        pairs = np.broadcast_to(gone[: plan.n_pairs, None], span_mean.shape)
        span_gram[pairs] = 0.0
        span_gram.swapaxes(2, 3)[pairs] = 0.0
        span_cross.swapaxes(2, 3)[pairs] = 0.0
    span_power = span_gram.diagonal(axis1=2, axis2=3)
    if not np.isfinite(span_power).all():
        raise NotSmall
    exact = (n_span * span_mean**2 <= CENTRING_LIMIT * span_power) | ~alive[: plan.n_pairs, None]
    for s, j in np.argwhere(~exact.all(axis=2)).tolist():
        columns = np.flatnonzero(~exact[s, j])
        _check_constant(made.of_set(s)[plan.spans[plan.slot[s, j]]][:, columns])
        span_gram[s, j, columns] = 0.0
        span_gram[s, j, :, columns] = 0.0
        span_cross[s, j, :, columns] = 0.0
    return made


def _check_constant(values: FloatArray) -> None:
    """Raise `NotSmall` unless all rows are equal: sums cannot decide whether such columns vary."""
    if (values != values[0]).any():
        raise NotSmall


# --- the fit --------------------------------------------------------------------------------------------------------

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
            and grid.metric in ("r2", "pearson")
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
        if isinstance(design, LinearFeatures):
            self._check_width((self.folds.n_rows, design.n_features), len(trains))
            if (mapped := design.mapped()) is not None:
                with suppress(NotSmall):
                    return mapped_products(mapped, self.responses)
        first = np.asarray(design(trains[0]), dtype=np.float64)
        self._check_width(first.shape, len(trains))
        features = np.empty((len(trains), *first.shape))
        for s, train in enumerate(trains):
            own = np.asarray(design(train), dtype=np.float64) if s else first
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
            "svkp,svkp->svk", flat @ products.span_gram, np.broadcast_to(flat, (n_pairs, 2, *flat.shape[2:]))
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

    def _choose(self, scores: FloatArray) -> IntArray:
        """Best setting of every target for every outer block, [3, F, t]."""
        shape = (*scores.shape[:2], self.responses.n_lags, self.responses.n_targets)
        by_lag = scores.reshape(shape).transpose(0, 2, 1, 3)[:, :, None]  # [F, L, 1, A, t]
        found = [select(own, self.grid.selection, self.tolerance) for own in by_lag]
        return np.stack(found, axis=1)

    def _refit(self, products: Products, cross: FloatArray, scale: FloatArray, choice: IntArray) -> Readout:
        """Fit every outer training set at the chosen settings, predict its block, and score."""
        responses, folds, n_pairs = self.responses, self.folds, self.plan.n_pairs
        n_targets = responses.n_targets
        lag, components, alpha = choice
        columns: IntArray = lag * n_targets + np.arange(n_targets)  # [F, t]
        cross = np.take_along_axis(cross[n_pairs:], columns[:, :, None], axis=1)
        weights = _solve(products.gram[n_pairs:], cross, self.alphas)  # [F, A, t, p]
        weights = np.take_along_axis(weights, alpha[:, None, :, None], axis=1)[:, 0]
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
        return Readout(folds, lag, alpha, components, pooled, by_fold)


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
