"""Training sets of small nested fits, and the products of features and responses on them.

Where features are one array, products are computed once for every piece of rows and added up. Where they are fitted on
the training rows, every set has its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lpact.math.ridge._arrays import (
    CENTRING_LIMIT,
    contiguous_runs,
    cut,
    n_rows,
    nested_sets,
    nested_validation,
    scaled_columns,
)
from lpact.math.ridge.compute import Compute
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


class BatchedFeatures(ABC):
    """Features fitted on training rows, [n, n_features], that can be computed for many training sets at once."""

    n_features: int

    @abstractmethod
    def __call__(self, train: IntArray) -> FloatArray:
        """Features of all rows, fitted on ``train``."""

    def every(self, trains: Sequence[IntArray]) -> FloatArray:
        """The same for several training sets, [S, n, p]: a new array."""
        return np.stack([self(train) for train in trains])

    def mapped(self) -> MappedColumns | None:
        """The same as a linear map of columns, if it is one."""
        return None


@dataclass(frozen=True)
class Plan:
    """Rows of a nested readout. Training sets are ordered: pairs of blocks left out, then single blocks.

    Attributes
    ----------
    rows, runs
        Of every training set: its rows, and the same as contiguous runs of at most `LONGEST` rows.
    pieces, member
        Pieces that all sets consist of, and [S, pieces] which of them a set includes.
    spans, slot
        Distinct ranges of validation rows, and [pairs, 2] which of them choose for the smaller and for the larger block
        of a pair; −1 where too few rows are left.
    into
        [F, pairs · 2]: 1 where a slot chooses for an outer block.
    """

    folds: BlockedFolds
    rows: tuple[IntArray, ...]
    runs: tuple[list[slice], ...]
    pieces: tuple[slice, ...]
    member: FloatArray
    n_train: FloatArray
    spans: tuple[slice, ...]
    slot: IntArray
    into: FloatArray

    @property
    def n_pairs(self) -> int:
        """Training sets that choose settings."""
        return len(self.slot)


@lru_cache(maxsize=32)
def plan_of(folds: BlockedFolds) -> Plan:
    sets = nested_sets(folds.n_blocks)
    cuts = cut(folds, sets)
    member = np.zeros((len(sets), len(cuts.slices)))
    for i, held in enumerate(sets):
        member[i, list(cuts.members[held])] = 1.0
    validation = nested_validation(folds)
    spans: list[slice] = []
    slot = np.full((len(validation), 2), -1)
    into = np.zeros((folds.n_blocks, len(validation), 2))
    for i, parts in enumerate(validation.values()):
        for j, (outer, rows) in enumerate(parts):
            if rows.stop > rows.start:
                if rows not in spans:
                    spans.append(rows)
                slot[i, j] = spans.index(rows)
                into[outer, i, j] = 1.0
    rows_of = tuple(cuts.rows(held) for held in sets)
    n_train = np.array([len(rows) for rows in rows_of], dtype=np.float64)
    return Plan(
        folds,
        rows_of,
        tuple(_short_runs(rows) for rows in rows_of),
        cuts.slices,
        member,
        n_train,
        tuple(spans),
        slot,
        into.reshape(folds.n_blocks, -1),
    )


def _short_runs(rows: IntArray) -> list[slice]:
    return [
        slice(first, min(first + LONGEST, run.stop))
        for run in contiguous_runs(rows)
        for first in range(run.start, run.stop, LONGEST)
    ]


class SmallResponses:
    """Responses as scaled rows [q, n] with q = n_lags · t, and their statistics on training sets and spans.

    Attributes
    ----------
    rows
        [q + 1, n]: the responses, and a last row of ones, so that products with features include their sums.
    mean
        [S, q] over the training rows.
    constant
        [S, q]: responses that are constant on the training rows.
    spans
        For every span, [q + 1, r]: the responses minus their mean there, and ones.
    span_total
        [spans, q]: centred sum of squares, NaN where constant.
    shift
        [pairs, 2, q]: mean on every slot's rows minus the training mean.
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
        self.constant: BoolArray = np.stack(
            [high[own].max(axis=0) == low[own].min(axis=0) for own in members]
        )
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
    """Features minus an offset, and their products.

    Attributes
    ----------
    features
        [n, p], or [S, n, p] where every training set has its own.
    gram, mean, cross
        [S, p, p] around the training mean, [S, p] and [S, q, p].
    span_gram, span_mean, span_cross
        [pairs, 2, …] of the rows of every slot, around their mean; zeros where a slot is empty.
    alive
        [S, p]: columns that vary on the training rows.
    maps
        [S, P, p]: map from ``features`` [n, P] to the columns of the products; None where these are the features.
    """

    features: FloatArray
    gram: FloatArray
    mean: FloatArray
    cross: FloatArray
    span_gram: FloatArray
    span_mean: FloatArray
    span_cross: FloatArray
    alive: BoolArray
    maps: FloatArray | None = None

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
