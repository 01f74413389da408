"""Results of a readout, and its held-out scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lpact.math.ridge._arrays import power_of_two
from lpact.math.ridge.compute import Array, Backend
from lpact.math.ridge.grid import METRICS
from lpact.math.scores import spearman_columns
from lpact.math.splits import BlockedFolds
from lpact.math.types import FloatArray, IntArray


@dataclass(frozen=True)
class Readout:
    """Held-out results of a nested readout: every block predicted from the others, every setting chosen on the others.

    Attributes
    ----------
    lag, alpha, components
        [F, t]: indices of the chosen lag and penalty, and the chosen number of components (0: all features).
    pooled, by_fold
        Scores over all rows [t], and in every outer block [F, t], by metric.
    observed, predicted, baseline
        [n, t]: the response at the lag chosen for the row's outer block, its prediction, and the training mean.
        Only with ``keep=("predictions",)``.
    weights, nuisance_weights, intercept
        [F, p, t], [F, m, t], [F, t] in raw units: prediction = intercept + x weights + u nuisance_weights.
        Only with ``keep=("weights",)``.
    """

    folds: BlockedFolds
    lag: IntArray
    alpha: IntArray
    components: IntArray
    pooled: Mapping[str, FloatArray]
    by_fold: Mapping[str, FloatArray]
    observed: FloatArray | None = None
    predicted: FloatArray | None = None
    baseline: FloatArray | None = None
    weights: FloatArray | None = None
    nuisance_weights: FloatArray | None = None
    intercept: FloatArray | None = None

    def scores(self, metric: str) -> FloatArray:
        """Score of every target over the pooled rows, [t]; NaN where undefined."""
        return _of(self.pooled, metric)

    def fold_scores(self, metric: str) -> FloatArray:
        """Score of every target in each outer block, [F, t]; NaN where undefined."""
        return _of(self.by_fold, metric)


def _of(scores: Mapping[str, FloatArray], metric: str) -> FloatArray:
    if metric not in METRICS:
        raise ValueError(f"unknown metric '{metric}'; known: {', '.join(METRICS)}")
    if metric not in scores:
        raise ValueError(f"the metric '{metric}' was not computed; add it to metrics=")
    return scores[metric]


@dataclass(frozen=True)
class RidgeFit:
    """A readout fitted on all rows, with settings chosen on every block in turn.

    Attributes
    ----------
    lag, alpha, components
        [t]: indices of the chosen lag and penalty, and the chosen number of components (0: all features).
    score
        [t]: mean validation score of the chosen setting; NaN where undefined.
    weights, nuisance_weights, intercept
        [p, t], [m, t], [t] in raw units. Tensors on the same device where responses were tensors.
    """

    lag: IntArray
    alpha: IntArray
    components: IntArray
    score: FloatArray
    weights: Array
    nuisance_weights: Array
    intercept: Array

    def predict(self, features: Array, unpenalised: Array | None = None) -> Array:
        """Predictions [n, t] for features [n, p]."""
        out = features @ self.weights + self.intercept
        if len(self.nuisance_weights):
            if unpenalised is None:
                raise ValueError("this fit has unpenalised columns: pass them to predict")
            out = out + unpenalised @ self.nuisance_weights
        return out


def deviation_scores(be: Backend, observed: Array, predicted: Array, metric: str) -> FloatArray:
    """Score of every target from deviations [t, n] of responses and predictions from the training mean.

    NaN where undefined. A block's training mean deviates from the mean of all rows in the opposite direction of the
    block's own mean. A correlation of raw values over blocks would count that as negative, the more so the more a
    readout is shrunk; so all three metrics use deviations from the training mean.
    """
    if metric == "spearman":
        return spearman_columns(be.host(observed).T, rankable(be.host(predicted), be.itemsize).T)
    low, high = be.minmax(observed, 1)
    defined = low != high
    if metric == "r2":
        error = observed - predicted
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = be.host(be.row_dots(error, error)) / be.host(be.row_dots(observed, observed))
        return np.where(defined, 1.0 - ratio, np.nan)
    low, high = be.minmax(predicted, 1)
    defined &= low != high
    n = observed.shape[1]
    y = observed - be.narrow(be.sums(observed, 1) / n)[:, None]
    z = predicted - be.narrow(be.sums(predicted, 1) / n)[:, None]
    power = be.host(be.row_dots(y, y)) * be.host(be.row_dots(z, z))
    with np.errstate(invalid="ignore", divide="ignore"):
        r = be.host(be.row_dots(y, z)) / np.sqrt(power)
    return np.where(defined & (power > 0.0), np.clip(r, -1.0, 1.0), np.nan)


def rankable(values: FloatArray, itemsize: int = 8) -> FloatArray:
    """Predictions [..., n], rounded so that those of equal rows are equal, whatever the order of summation."""
    digits = 36 if itemsize == 8 else 17
    middle = np.median(np.abs(values), axis=-1, keepdims=True)
    step = np.where(middle > 0.0, 1.0 / power_of_two(middle), 1.0) * 2.0**-digits
    return np.where(middle > 0.0, np.round(values / step) * step, values)
