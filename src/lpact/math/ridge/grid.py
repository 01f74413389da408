"""Candidate settings of a readout, and how they are chosen from validation scores."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, TypeAlias

import numpy as np

from lpact.math.types import FloatArray, IntArray

Level: TypeAlias = Literal["target", "group", "shared"]
Metric: TypeAlias = Literal["r2", "pearson", "spearman"]

METRICS = ("pearson", "spearman", "r2")
LEVELS: tuple[Level, ...] = ("shared", "group", "target")
"""From the coarsest pool of targets to the finest."""


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
        unknown = [level for level in self.levels if level not in LEVELS]
        if unknown:
            raise ValueError(f"unknown level '{unknown[0]}'; known: {', '.join(LEVELS)}")
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
        Validation score by which settings are chosen.
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
            raise ValueError(
                f"components must be whole numbers, 0 for all features, got {components}"
            )
        object.__setattr__(self, "alphas", tuple(float(a) for a in alphas))
        object.__setattr__(self, "components", tuple(int(k) for k in components))
        if not isinstance(self.selection, Selection):
            raise ValueError(f"selection must be a Selection, got {self.selection!r}")
        if self.metric not in METRICS:
            raise ValueError(f"unknown metric '{self.metric}'; known: {', '.join(METRICS)}")


def _listed(values: Any, name: str) -> tuple[Any, ...]:
    listed = tuple(values) if isinstance(values, Iterable) else ()
    if not listed:
        raise ValueError(f"{name} must be a list of at least one value, got {values!r}")
    return listed


@dataclass(frozen=True)
class Choice:
    """Indices of the chosen lag, components and penalty, each [..., t]."""

    lag: IntArray
    components: IntArray
    alpha: IntArray

    def of(self, targets: slice) -> Choice:
        """The choice of some targets."""
        return Choice(
            self.lag[..., targets], self.components[..., targets], self.alpha[..., targets]
        )


def select(scores: FloatArray, selection: Selection, tolerance: float) -> Choice:
    """Choose from the mean validation scores of one outer block, [lags, components, alphas, t].

    Scores within ``tolerance`` of the best are ties; ties go to the first setting in the order lag, components,
    penalty. A target without any defined score is left out of its pool; a pool without any takes the first setting.
    """
    if selection.per_target:
        first = first_best(scores.reshape(-1, scores.shape[3]), tolerance)
        return Choice(*np.unravel_index(first, scores.shape[:3]))
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
    return Choice(fixed[0], fixed[1], fixed[2])


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
        raise ValueError(
            f"groups must name a group for each of {n_targets} targets, got {len(selection.groups or ())}"
        )
    pools: IntArray = np.unique(np.asarray(selection.groups), return_inverse=True)[1]
    return pools


def _pooled(values: FloatArray, pools: IntArray) -> FloatArray:
    """Mean of the defined values of every pool, over targets (the last axis); NaN where there are none."""
    if np.array_equal(pools, np.arange(len(pools))):
        return values
    member = (pools[:, None] == np.arange(int(pools.max(initial=-1)) + 1)).astype(np.float64)
    defined = np.isfinite(values)
    return mean_scores(np.where(defined, values, 0.0) @ member, defined @ member)
