"""Nested, blocked, cross-validated ridge regression over lags × principal components × penalties.

For every training set S, features are standardised with S's mean m and scale d, and the Gram matrix of the
standardised features is decomposed once, G = Zᵀ Z = V diag(s) Vᵀ. The ridge solution for penalty a on the first k
principal components is

    c(a, k) = b[:k] / (s[:k] + a),     b = Vᵀ Zᵀ (y − μ),     prediction = μ + ((x − m) / d) V[:, :k] c

so that all lags, penalties, component counts and targets share one decomposition. The inner training set of outer
block o and validation block i is symmetric in (o, i): F(F−1)/2 + F decompositions serve F outer folds.

Reference: Hoerl & Kennard (1970), Technometrics 12:55–67.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from lpact.math.scores import pearson_columns, r2_columns, spearman_columns
from lpact.math.splits import BlockedFolds
from lpact.math.types import BoolArray, FloatArray, IntArray

CHUNK = 4_000_000
"""Predictions that are held at a time while penalties are compared."""

Design: TypeAlias = Callable[[IntArray], FloatArray]
"""``design(train_rows)`` gives features [n, p] for all rows, with every parameter fitted on ``train_rows`` only."""


@dataclass(frozen=True)
class RidgeGrid:
    """What is chosen on inner validation blocks.

    ``components`` lists numbers of principal components, 0 for all features. ``shared`` chooses one setting for
    all targets (by the mean inner score over targets) instead of one each.
    """

    alphas: tuple[float, ...]
    components: tuple[int, ...] = (0,)
    metric: Literal["r2", "pearson"] = "r2"
    shared: bool = False


@dataclass(frozen=True)
class NestedRidge:
    """Held-out predictions of a nested readout; every array covers all rows, each predicted once.

    Attributes
    ----------
    observed, predicted, baseline
        [n, t]: the response at the lag chosen for the row's outer fold, its prediction, and the training mean.
    lag, alpha, components
        [F, t]: indices of the chosen lag and penalty, and the chosen number of components.
    """

    observed: FloatArray
    predicted: FloatArray
    baseline: FloatArray
    lag: IntArray
    alpha: IntArray
    components: IntArray
    folds: BlockedFolds

    def scores(self, metric: str) -> FloatArray:
        """Score of every target over the pooled rows, [t]; NaN where undefined."""
        return _score(self.observed, self.predicted, self.baseline, metric)

    def fold_scores(self, metric: str) -> FloatArray:
        """Score of every target in each outer block, [F, t]; NaN where undefined."""
        return np.stack(
            [
                _score(self.observed[rows], self.predicted[rows], self.baseline[rows], metric)
                for rows in (self.folds.rows(block) for block in range(self.folds.n_blocks))
            ]
        )


def _score(
    observed: FloatArray, predicted: FloatArray, baseline: FloatArray, metric: str
) -> FloatArray:
    """Score of every target against its training mean.

    Every block has its own training mean, which leans away from the block's own mean. Correlating raw values over
    blocks would count that as a negative correlation, the more so the more a readout is shrunk; so all three metrics
    look at deviations from the training mean.
    """
    if metric == "pearson":
        return pearson_columns(observed - baseline, predicted - baseline)
    if metric == "spearman":
        return spearman_columns(observed - baseline, predicted - baseline)
    if metric == "r2":
        return r2_columns(observed, predicted, baseline)
    raise ValueError(f"unknown metric '{metric}'")


@dataclass(frozen=True)
class _Fit:
    """Features of one training set in its principal axes, and the targets' coordinates there."""

    axes: FloatArray  # [p, r] from raw, centred features to principal scores
    centre: FloatArray  # [p] training mean of each column
    varying: BoolArray  # [all columns] those that vary on the training rows
    eigenvalues: FloatArray  # [r] descending
    projections: FloatArray  # [r, q] b = Vᵀ Zᵀ (y − μ)
    mean: FloatArray  # [q] training mean of each response

    def principal_scores(self, x: FloatArray) -> FloatArray:
        """Rows of the design, standardised and rotated, [rows, r]."""
        kept = x if self.varying.all() else x[:, self.varying]
        return (kept - self.centre) @ self.axes


def nested_ridge(
    design: FloatArray | Design, responses: FloatArray, folds: BlockedFolds, grid: RidgeGrid
) -> NestedRidge:
    """Predict every block from the others, choosing lag, penalty and components inside the training rows.

    Parameters
    ----------
    design
        Features [n, p], or a function of the training rows that returns them (for features that are themselves
        fitted, such as stripped ones).
    responses
        [n_lags, n, t], one layer per candidate lag. Must be finite.
    folds
        Outer blocks; inner validation uses every other block. At least three.
    grid
        Penalties, component counts and how to choose.
    """
    n_lags, n_rows, n_targets = responses.shape
    if folds.n_rows != n_rows:
        raise ValueError(f"folds cover {folds.n_rows} rows, responses have {n_rows}")
    if folds.n_blocks < 3:
        raise ValueError("nested selection needs at least three blocks")
    if not isinstance(design, np.ndarray):
        make_design = design
    else:
        fixed = design

        def make_design(train: IntArray) -> FloatArray:  # noqa: ARG001
            return fixed

    flat = np.ascontiguousarray(responses.transpose(1, 0, 2)).reshape(n_rows, n_lags * n_targets)
    flat = flat - flat.mean(axis=0)  # an exact invariance; keeps mean ≫ sd from costing digits
    offset = responses.mean(axis=1)  # [n_lags, t]

    inner = _inner_scores(make_design, flat, folds, grid)
    inner = inner.reshape(folds.n_blocks, len(grid.components), len(grid.alphas), n_lags, n_targets)
    lag, alpha, component = _select(inner, shared=grid.shared)

    observed, predicted, baseline = (np.empty((n_rows, n_targets)) for _ in range(3))
    targets = np.arange(n_targets)
    for block in range(folds.n_blocks):
        rows = folds.rows(block)
        train = folds.train_rows(block)
        column = lag[block] * n_targets + targets
        x = make_design(train)
        fit = _fit(x, flat[:, column], train)
        shift = offset[lag[block], targets]
        observed[rows] = _at_lag(responses, lag[block], rows)
        baseline[rows] = fit.mean + shift
        deviation = _predict(fit, x, rows, grid, alpha[block], component[block])
        predicted[rows] = baseline[rows] + deviation
    chosen = np.asarray(grid.components)[component]
    return NestedRidge(observed, predicted, baseline, lag, alpha, chosen, folds)


def _at_lag(responses: FloatArray, lag: IntArray, rows: slice) -> FloatArray:
    """Rows of every target at its own lag, [n_rows, t]."""
    block = responses[:, rows, :]
    taken: FloatArray = np.take_along_axis(block, lag[None, None, :], axis=0)[0]
    return taken


def _fit(x: FloatArray, y: FloatArray, train: IntArray) -> _Fit:
    """Standardise on ``train``, rotate into principal axes, project the targets."""
    x_train, y_train = x[train], y[train]
    centre = x_train.mean(axis=0)
    z_train = x_train - centre
    variance = np.einsum("ij,ij->j", z_train, z_train) / len(train)
    varying = (x_train != x_train[0]).any(axis=0) & (
        variance > _rounding_variance(centre, len(train))
    )
    if not varying.all():
        centre, z_train, variance = centre[varying], z_train[:, varying], variance[varying]
    scale = np.sqrt(variance)
    z_train /= scale
    eigenvalues, axes = _principal_axes(z_train)
    mean = y_train.mean(axis=0)
    projections = axes.T @ (z_train.T @ (y_train - mean))
    return _Fit(axes / scale[:, None], centre, varying, eigenvalues, projections, mean)


def _rounding_variance(centre: FloatArray, n_rows: int) -> FloatArray:
    """Variance that rounding alone can give a column of this mean; such a column does not vary."""
    bound: FloatArray = (n_rows * np.finfo(np.float64).eps * centre) ** 2
    return bound


def _principal_axes(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues (descending) and axes [p, r] of ZᵀZ, through the smaller of the two Gram matrices."""
    n_rows, n_columns = z.shape
    if n_columns <= n_rows:
        eigenvalues, axes = np.linalg.eigh(z.T @ z)
        return np.maximum(eigenvalues[::-1], 0.0), axes[:, ::-1]
    eigenvalues, vectors = np.linalg.eigh(z @ z.T)
    eigenvalues, vectors = eigenvalues[::-1], vectors[:, ::-1]
    kept = eigenvalues > eigenvalues[0] * n_columns * np.finfo(np.float64).eps
    eigenvalues, vectors = eigenvalues[kept], vectors[:, kept]
    return eigenvalues, (z.T @ vectors) / np.sqrt(eigenvalues)


def _n_axes(components: int, available: int) -> int:
    return available if components == 0 else min(components, available)


def _predict(
    fit: _Fit,
    x: FloatArray,
    rows: slice,
    grid: RidgeGrid,
    alpha: IntArray,
    component: IntArray,
) -> FloatArray:
    """Deviations from the training mean, each target at its own penalty and components, [rows, t]."""
    rank = len(fit.eigenvalues)
    penalty = np.asarray(grid.alphas)[alpha]
    weights = fit.projections / (fit.eigenvalues[:, None] + penalty)
    limit = np.array([_n_axes(k, rank) for k in grid.components])[component]
    weights = np.where(np.arange(rank)[:, None] < limit, weights, 0.0)
    return fit.principal_scores(x[rows]) @ weights


def _inner_scores(
    design: Design, y: FloatArray, folds: BlockedFolds, grid: RidgeGrid
) -> FloatArray:
    """Mean validation score of every setting for every outer block, [F, K, A, q]."""
    shape = (folds.n_blocks, len(grid.components), len(grid.alphas), y.shape[1])
    total, count = np.zeros(shape), np.zeros(shape)
    for a, b in combinations(range(folds.n_blocks), 2):
        train = folds.train_rows(a, b)
        x = design(train)
        fit = _fit(x, y, train)
        for outer, validation in ((a, b), (b, a)):
            rows = folds.validation_rows(validation, outer)
            if rows.start >= rows.stop:
                continue
            score = _validation_scores(fit, fit.principal_scores(x[rows]), y[rows], grid)
            finite = np.isfinite(score)
            total[outer] += np.where(finite, score, 0.0)
            count[outer] += finite
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / count


def _validation_scores(fit: _Fit, z: FloatArray, held: FloatArray, grid: RidgeGrid) -> FloatArray:
    """Score of every setting on one validation block, [K, A, q]; NaN where the response is constant.

    With predictions μ + ẑ and ŷ = ẑ − mean ẑ, SSE = Σ(y−ȳ)² + Σŷ² − 2Σŷ(y−ȳ) + n(ȳ − μ − mean ẑ)², so that one
    matrix product per component count serves several penalties.
    """
    n_rows, n_columns = held.shape
    constant = held.max(axis=0) == held.min(axis=0)
    held_mean = held.mean(axis=0)
    deviations = held - held_mean
    sst = np.einsum("ij,ij->j", deviations, deviations)
    sst[constant] = np.nan
    z_mean = z.mean(axis=0)
    z_centred = z - z_mean
    cross = z_centred.T @ deviations  # [r, q]
    out = np.empty((len(grid.components), len(grid.alphas), n_columns))
    at_a_time = max(1, CHUNK // (n_rows * n_columns))
    for i, components in enumerate(grid.components):
        k = _n_axes(components, len(fit.eigenvalues))
        for first in range(0, len(grid.alphas), at_a_time):
            alphas = np.array(grid.alphas[first : first + at_a_time])
            shrinkage = 1.0 / (fit.eigenvalues[:k, None] + alphas)  # [k, a]
            weights = shrinkage[:, :, None] * fit.projections[:k, None, :]  # [k, a, q]
            flat = weights.reshape(k, len(alphas) * n_columns)
            centred = z_centred[:, :k] @ flat
            power = np.einsum("ij,ij->j", centred, centred).reshape(len(alphas), n_columns)
            linear = np.einsum("kaq,kq->aq", weights, cross[:k])
            with np.errstate(invalid="ignore", divide="ignore"):
                if grid.metric == "pearson":
                    score = linear / np.sqrt(power * sst)
                else:
                    mean = (z_mean[:k] @ flat).reshape(len(alphas), n_columns)
                    bias = held_mean - fit.mean - mean
                    score = 1.0 - (sst + power - 2.0 * linear + n_rows * bias**2) / sst
            out[i, first : first + at_a_time] = score
    return out


def _select(inner: FloatArray, *, shared: bool) -> tuple[IntArray, IntArray, IntArray]:
    """Indices of lag, penalty and components with the best mean inner score, [F, t] each.

    Ties go to the first setting in the order lag, components, penalty. A target whose scores are all undefined gets
    the first setting; its test score is undefined too.
    """
    n_blocks, n_components, n_alphas, n_lags, n_targets = inner.shape
    ordered = inner.transpose(0, 3, 1, 2, 4).reshape(n_blocks, -1, n_targets)
    if shared:
        finite = np.isfinite(ordered)
        total = np.where(finite, ordered, 0.0).sum(axis=2, keepdims=True)
        count = finite.sum(axis=2, keepdims=True)
        mean = np.divide(total, count, out=np.full(total.shape, -np.inf), where=count > 0)
        ordered = np.broadcast_to(mean, ordered.shape)
    best = np.argmax(np.where(np.isnan(ordered), -np.inf, ordered), axis=1)
    lag, component, alpha = np.unravel_index(best, (n_lags, n_components, n_alphas))
    return lag, alpha, component
