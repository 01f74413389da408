"""Choose lag, components and penalty from validation scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpact.math.ridge.grid import LEVELS, Level, Selection
from lpact.math.types import FloatArray, IntArray


@dataclass(frozen=True)
class Choice:
    """Indices of the chosen lag, components and penalty, each [..., t]."""

    lag: IntArray
    components: IntArray
    alpha: IntArray


def select(scores: FloatArray, selection: Selection, tolerance: float) -> Choice:
    """Choose from the mean validation scores of one outer block, [lags, components, alphas, t].

    Scores within ``tolerance`` of the best are ties; ties go to the first setting in the order lag, components,
    penalty. A target without any defined score takes no part in a pool; where a pool has none, it takes the first
    setting.
    """
    if selection.how == "separately":
        return _separately(scores, selection, tolerance)
    if selection.alone:
        return _alone(scores, tolerance)
    return _jointly(scores, selection, tolerance)


def mean_scores(total: FloatArray, count: IntArray | FloatArray) -> FloatArray:
    """Mean of ``count`` scores that add up to ``total``; NaN where there are none."""
    mean: FloatArray = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return mean


def first_best(scores: FloatArray, tolerance: float) -> IntArray:
    """Index along axis 0 of the first score within ``tolerance`` of the best; 0 where none is defined."""
    filled = np.where(np.isnan(scores), -np.inf, scores)
    best = filled.max(axis=0)
    near: IntArray = np.argmax(filled >= best - tolerance, axis=0)
    return near


def _alone(scores: FloatArray, tolerance: float) -> Choice:
    """Every target by itself: one search over all settings."""
    shape = scores.shape[:3]
    best = first_best(scores.reshape(-1, scores.shape[3]), tolerance)
    return Choice(*np.unravel_index(best, shape))


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
    n_pools = int(pools.max(initial=-1)) + 1
    if np.array_equal(pools, np.arange(len(pools))):
        return values
    member = (pools[:, None] == np.arange(n_pools)).astype(np.float64)
    defined = np.isfinite(values)
    return mean_scores(np.where(defined, values, 0.0) @ member, defined @ member)


def _jointly(scores: FloatArray, selection: Selection, tolerance: float) -> Choice:
    """Best pooled score that the levels allow: finer settings answer to every value of the coarser ones."""
    n_targets = scores.shape[3]
    axes = {
        level: [i for i, own in enumerate(selection.levels) if own == level] for level in LEVELS
    }
    # From the finest level up: what is the best that every pool can reach, given the coarser settings?
    best = scores  # settings that are already answered have length 1
    reach: dict[Level, FloatArray] = {}
    for level in reversed(LEVELS):
        own = axes[level]
        if not own:
            continue
        pools = _pools(selection, level, n_targets)
        mean = _pooled(best, pools)
        reach[level] = mean
        chosen = _argbest(mean, own, tolerance)
        best = _take(
            best, own, chosen[..., pools]
        )  # every target's own score under its pool's choice
    # From the coarsest down: fix each level's choice.
    fixed: dict[int, IntArray] = {}
    for level in LEVELS:
        own = axes[level]
        if not own:
            continue
        pools = _pools(selection, level, n_targets)
        mean = reach[level][..., pools]  # [lags, components, alphas, t]; finer axes have length 1
        for axis, index in fixed.items():
            mean = np.take_along_axis(mean, _at(index, mean), axis=axis)
        flat = _argbest(mean, own, tolerance)  # [1 or more…, t]
        shape = tuple(mean.shape[i] for i in own)
        for axis, index in zip(own, np.unravel_index(flat.reshape(-1), shape), strict=True):
            fixed[axis] = np.asarray(index, dtype=np.int64)
    return Choice(*(fixed[i] for i in range(3)))


def _at(index: IntArray, like: FloatArray) -> IntArray:
    """An index [t] shaped to take along an axis of a [lags, components, alphas, t] array."""
    return index.reshape((1,) * (like.ndim - 1) + (-1,))


def _argbest(mean: FloatArray, axes: list[int], tolerance: float) -> IntArray:
    """First best over ``axes`` taken together: [the other axes with length 1 in place of ``axes``…, last]."""
    moved = np.moveaxis(mean, axes, range(len(axes)))
    flat = moved.reshape(-1, *moved.shape[len(axes) :])
    return first_best(flat, tolerance)


def _take(values: FloatArray, axes: list[int], chosen: IntArray) -> FloatArray:
    """Values at the chosen place of ``axes``, which keep length 1."""
    moved = np.moveaxis(values, axes, range(len(axes)))
    shape = moved.shape
    flat = moved.reshape(-1, *shape[len(axes) :])
    taken = np.take_along_axis(flat, chosen[None], axis=0)
    restored = taken.reshape((1,) * len(axes) + shape[len(axes) :])
    return np.moveaxis(restored, range(len(axes)), axes)


def _separately(scores: FloatArray, selection: Selection, tolerance: float) -> Choice:
    """One setting after the other, each by its mean over those still open."""
    n_targets = scores.shape[3]
    order = sorted(range(3), key=lambda i: LEVELS.index(selection.levels[i]))
    open_axes = [0, 1, 2]
    current = scores
    fixed: dict[int, IntArray] = {}
    for axis in order:
        open_axes.remove(axis)
        defined = np.isfinite(current)
        total = np.where(defined, current, 0.0).sum(axis=tuple(open_axes), keepdims=True)
        own = mean_scores(total, defined.sum(axis=tuple(open_axes), keepdims=True))
        pools = _pools(selection, selection.levels[axis], n_targets)
        mean = _pooled(own, pools)[..., pools]
        index = _argbest(mean, [axis], tolerance).reshape(-1)
        current = np.take_along_axis(current, _at(index, current), axis=axis)
        fixed[axis] = index
    return Choice(*(fixed[i] for i in range(3)))
