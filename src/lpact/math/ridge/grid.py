"""Candidate settings of a readout, how they are chosen from validation scores, and the results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from numbers import Integral
from typing import Any, Literal, TypeAlias

import numpy as np

from lpact.math.ridge._arrays import power_of_two
from lpact.math.ridge.compute import Array, Backend
from lpact.math.scores import spearman_columns
from lpact.math.seeding import keyed_rng
from lpact.math.splits import BlockedFolds
from lpact.math.types import FloatArray, IntArray

Level: TypeAlias = Literal["target", "group", "shared"]
Metric: TypeAlias = Literal["r2", "pearson", "spearman", "pooled_r2"]

METRICS = ("pearson", "spearman", "r2")
VALIDATION_METRICS = (*METRICS, "pooled_r2")
"""Scores that settings are chosen by: a mean over validation blocks, or R² over the rows of all blocks together."""
LEVELS: tuple[Level, ...] = ("shared", "group", "target")
"""From the coarsest pool of targets to the finest."""


def check_known(name: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Raise `ValueError` if a value is not among the known ones."""
    if isinstance(given, str):
        raise ValueError(f"{name} must be a list, got the text '{given}'")
    for value in given:
        if value not in known:
            raise ValueError(f"unknown {name} '{value}'; known: {', '.join(known)}")


@dataclass(frozen=True)
class Selection:
    """For whom each setting is chosen: for every target, for groups of targets, or for all targets.

    The score of a setting is its mean over the targets that share the choice. A coarser setting is judged by the best
    score that finer settings can reach with it, so that the result is the best that the levels allow.

    Attributes
    ----------
    groups
        Group of every target, where a level is ``"group"``.
    """

    lag: Level = "target"
    components: Level = "target"
    alpha: Level = "target"
    groups: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_known("level", self.levels, LEVELS)
        if ("group" in self.levels) != (self.groups is not None):
            raise ValueError("groups must be given if and only if a level is 'group'")
        if self.groups is not None:
            object.__setattr__(self, "groups", tuple(self.groups))

    @property
    def levels(self) -> tuple[Level, Level, Level]:
        """Level of lag, components and penalty."""
        return self.lag, self.components, self.alpha

    @property
    def per_target(self) -> bool:
        """Whether every setting is chosen for each target."""
        return self.levels == ("target", "target", "target")


PER_TARGET = Selection()
SHARED = Selection("shared", "shared", "shared")


@dataclass(frozen=True)
class RidgeGrid:
    """Candidate settings and how they are compared on validation blocks.

    Attributes
    ----------
    alphas
        Ridge penalties, positive, on the sum of squared weights of standardised features.
    components
        Numbers of principal components, 0 for all features.
    metric
        Validation score by which settings are chosen: the mean over blocks of ``r2`` (around each block's own mean),
        ``pearson`` or ``spearman``; or ``pooled_r2`` = 1 − SSE / SST over all blocks, SST around the training means.
    selection
        For whom they are chosen.
    """

    alphas: tuple[float, ...]
    components: tuple[int, ...] = (0,)
    metric: Metric = "r2"
    selection: Selection = PER_TARGET

    def __post_init__(self) -> None:
        alphas = _listed(self.alphas, "alphas")
        if not all(math.isfinite(a) and a > 0 for a in alphas):
            raise ValueError(f"alphas must be positive and finite, got {alphas}")
        components = _listed(self.components, "components")
        if not all(isinstance(k, Integral) and int(k) >= 0 for k in components):
            raise ValueError(f"components must be whole numbers, 0 for all features, got {components}")
        object.__setattr__(self, "alphas", tuple(float(a) for a in alphas))
        object.__setattr__(self, "components", tuple(int(k) for k in components))
        if not isinstance(self.selection, Selection):
            raise ValueError(f"selection must be a Selection, got {self.selection!r}")
        check_known("metric", [self.metric], VALIDATION_METRICS)


MAX_SPACES = 10
"""Feature spaces of which every subset is tried: 1,023 subsets."""


@dataclass(frozen=True)
class BandedGrid:
    """Candidate settings of a banded ridge and how they are compared on validation blocks.

    First every subset of the feature spaces is tried, with equal weights that add up to 1 and the smallest subsets
    first. Then weights are drawn from Dirichlet distributions until ``draws`` have been tried or ``patience`` draws in
    a row have not raised the best mean score by more than ``min_gain`` above its last such rise.

    Attributes
    ----------
    alphas
        Ridge penalties, positive, on the sum of squared weights of the weighted features.
    draws
        Largest number of random weights.
    patience, min_gain
        When to stop, see above. The mean is over the targets, of each one's best validation score so far.
    concentration
        Of the Dirichlet distributions, used in turn. Below 1, draws favour few spaces.
    subsets
        Whether to try every subset of the feature spaces. If not, equal weights of all spaces come first.
    metric
        Validation score by which settings are chosen.
    seed
        Of the draws, which depend only on it and the number of spaces.
    """

    alphas: tuple[float, ...]
    draws: int = 1000
    patience: int = 50
    min_gain: float = 1e-4
    concentration: tuple[float, ...] = (0.1, 1.0)
    subsets: bool = True
    metric: Metric = "r2"
    seed: int = 0

    def __post_init__(self) -> None:
        RidgeGrid(self.alphas, metric=self.metric)
        if self.draws < 0 or self.patience < 1:
            raise ValueError(f"draws must be at least 0 and patience at least 1, got {self.draws} and {self.patience}")
        if not (math.isfinite(self.min_gain) and self.min_gain >= 0.0):
            raise ValueError(f"min_gain must not be negative, got {self.min_gain}")
        positive = [math.isfinite(c) and c > 0.0 for c in self.concentration]
        if not positive or not all(positive):
            raise ValueError(f"concentration must be positive and finite, got {self.concentration}")


@dataclass(frozen=True)
class Candidates:
    """Weights to try, gamma [c, m], in this order; the first ``n_first`` are tried in any case."""

    gamma: FloatArray
    n_first: int


def banded_candidates(n_spaces: int, grid: BandedGrid) -> Candidates:
    """Weights that a search over ``n_spaces`` feature spaces tries; 1 for a single space."""
    if n_spaces < 1:
        raise ValueError("at least one feature space is needed")
    sizes = range(1, n_spaces + 1) if grid.subsets else [n_spaces]
    if grid.subsets and n_spaces > MAX_SPACES:
        raise ValueError(
            f"{n_spaces} feature spaces have {2**n_spaces - 1} subsets, and at most {MAX_SPACES} spaces are searched "
            "that way: join some spaces, or use draws alone with subsets=False"
        )
    subsets = [subset for size in sizes for subset in combinations(range(n_spaces), size)]
    first = np.zeros((len(subsets), n_spaces))
    for row, subset in zip(first, subsets, strict=True):
        row[list(subset)] = 1.0 / len(subset)
    if n_spaces == 1:
        return Candidates(first, 1)
    rng = keyed_rng(grid.seed, "banded ridge", n_spaces)
    cycle = grid.concentration
    draws = [rng.dirichlet(np.full(n_spaces, cycle[draw % len(cycle)])) for draw in range(grid.draws)]
    return Candidates(np.array([*first, *draws]), len(first))


def _listed(values: Any, name: str) -> tuple[Any, ...]:
    listed = tuple(values) if isinstance(values, Iterable) else ()
    if not listed:
        raise ValueError(f"{name} must be a list of at least one value, got {values!r}")
    return listed


def select(scores: FloatArray, selection: Selection, tolerance: float) -> IntArray:
    """Choose from the mean validation scores of one outer block, [lags, components, alphas, t]: indices [3, t].

    Scores within ``tolerance`` of the best are ties; ties go to the first setting in the order lag, components,
    penalty. A target without any defined score is left out of its pool; a pool without any takes the first setting.
    """
    if selection.per_target:
        first = first_best(scores.reshape(-1, scores.shape[3]), tolerance)
        return np.array(np.unravel_index(first, scores.shape[:3]))
    # From the finest level up: the best setting of every pool, given each value of the coarser settings.
    best, answers = scores, []  # settings that are already chosen have length 1
    for level in reversed(LEVELS):
        axes = [i for i, own in enumerate(selection.levels) if own == level]
        if not axes:
            continue
        pools = _pools(selection, level, scores.shape[3])
        chosen = first_best(_flat(_pooled(best, pools), axes), tolerance)[..., pools]
        answers.append((axes, [best.shape[i] for i in axes], np.expand_dims(chosen, axes)))
        taken = np.take_along_axis(_flat(best, axes), chosen[None], axis=0)[0]
        best = np.expand_dims(taken, axes)
    # From the coarsest level down: look up the answers to the settings chosen before.
    fixed: dict[int, IntArray] = {}
    for axes, shape, chosen in reversed(answers):
        for axis, index in fixed.items():
            chosen = np.take_along_axis(chosen, index.reshape(1, 1, 1, -1), axis=axis)
        for axis, index in zip(axes, np.unravel_index(chosen.reshape(-1), shape), strict=True):
            fixed[axis] = np.asarray(index, dtype=np.int64)
    return np.stack([fixed[0], fixed[1], fixed[2]])


def mean_scores(total: FloatArray, count: IntArray | FloatArray) -> FloatArray:
    """Mean of ``count`` scores with the sum ``total``; NaN where there are none."""
    mean: FloatArray = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return mean


def first_best(scores: FloatArray, tolerance: float) -> IntArray:
    """Index along axis 0 of the first score within ``tolerance`` of the best; 0 where none is defined."""
    filled = np.where(np.isnan(scores), -np.inf, scores)
    near: IntArray = np.argmax(filled >= filled.max(axis=0) - tolerance, axis=0)
    return near


def _flat(values: FloatArray, axes: list[int]) -> FloatArray:
    """``values`` with ``axes`` joined into one, in front of the others."""
    moved = np.moveaxis(values, axes, range(len(axes)))
    return moved.reshape(-1, *moved.shape[len(axes) :])


def _pools(selection: Selection, level: Level, n_targets: int) -> IntArray:
    """Pool of every target at a level, numbered from 0."""
    if level == "target":
        return np.arange(n_targets)
    if level == "shared":
        return np.zeros(n_targets, dtype=np.int64)
    if len(selection.groups or ()) != n_targets:
        raise ValueError(f"groups must name a group for each of {n_targets} targets, got {len(selection.groups or ())}")
    pools: IntArray = np.unique(np.asarray(selection.groups), return_inverse=True)[1]
    return pools


def _pooled(values: FloatArray, pools: IntArray) -> FloatArray:
    """Mean of the defined values of every pool, over targets (the last axis); NaN where there are none."""
    if np.array_equal(pools, np.arange(len(pools))):
        return values
    member = (pools[:, None] == np.arange(int(pools.max(initial=-1)) + 1)).astype(np.float64)
    defined = np.isfinite(values)
    return mean_scores(np.where(defined, values, 0.0) @ member, defined @ member)


# --- results ----------------------------------------------------------------------------------------------------------


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
    """Predictions [..., n], rounded so that those of equal rows are equal for any order of summation."""
    digits = 36 if itemsize == 8 else 17
    middle = np.median(np.abs(values), axis=-1, keepdims=True)
    step = np.where(middle > 0.0, 1.0 / power_of_two(middle), 1.0) * 2.0**-digits
    return np.where(middle > 0.0, np.round(values / step) * step, values)
