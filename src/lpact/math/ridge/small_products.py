"""Products of features with themselves and with the responses, on every training set and every span of rows.

Where features are one array, products are taken once for every piece of rows and added up. Where they are fitted on the
training rows, every set has its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lpact.math.ridge.small_plan import NotSmall, Plan, SmallResponses
from lpact.math.types import BoolArray, FloatArray, IntArray

_EPS = float(np.finfo(np.float64).eps)
_CARRIED = 1e3
"""n·mean² over the centred sum of squares above which the large engine centres row by row."""
_TINY, _HUGE = 1e-100, 1e100
"""Sums of squares between which squares lose nothing."""
_LEAST_LEFT = 1e-5
"""Share of its parts' sums of squares that a mapped feature must keep, for its products to have their digits."""


@dataclass(frozen=True)
class MappedColumns:
    """Features that are a linear map of columns [n, P], the map fitted on products of the training rows.

    ``maps(n_rows, gram)`` gives [S, P, p] from the numbers of training rows [S] and the columns' products around their
    means there, [S, P, P]. Features are the columns times the map, up to a constant in every column.
    """

    columns: FloatArray
    maps: Callable[[FloatArray, FloatArray], FloatArray]


class BatchedFeatures(ABC):
    """Features fitted on training rows, [n, n_features], that can be had for many training sets at once."""

    n_features: int

    @abstractmethod
    def __call__(self, train: IntArray) -> FloatArray:
        """Features of all rows, fitted on ``train``."""

    def every(self, trains: Sequence[IntArray]) -> FloatArray:
        """The same for several training sets, [S, n, p]: a fresh array."""
        return np.stack([self(train) for train in trains])

    def mapped(self) -> MappedColumns | None:
        """The same as a linear map of columns, where it is one."""
        return None


@dataclass
class Products:
    """Features less ``offset`` and their products.

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
        [S, P, p]: what takes ``features`` [n, P] to the columns of the products; None where these are the features.
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
    """Of the same features for all training sets."""
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
    """Of features [S, n, p] that differ between training sets; they are overwritten."""
    plan = responses.plan
    n_sets, n_rows, p = features.shape
    offset = (
        features.sum(axis=1) / n_rows
    )  # a strip may move a column by another constant in every set
    features -= offset[:, None]
    q = responses.n_columns
    gram = np.empty((n_sets, p, p))
    cross = np.empty((n_sets, q + 1, p))
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
        if s < plan.n_pairs:
            for j, span in enumerate(plan.slot[s].tolist()):
                if span >= 0:
                    part = x[plan.spans[span]]
                    np.matmul(part.T, part, out=span_gram[s, j])
                    np.matmul(responses.spans[span], part, out=span_cross[s, j])
    return _centred(features, offset, gram, cross, span_gram, span_cross, responses)


def mapped_products(mapped: MappedColumns, responses: SmallResponses) -> Products:
    """Of features that are a linear map of columns, from the products of the columns.

    Raises `NotSmall` where a column does not vary, or where so little is left of a feature that digits are lost.
    """
    base = shared_products(mapped.columns, responses)
    if not base.alive.all():
        raise NotSmall
    plan = responses.plan
    maps = mapped.maps(plan.n_train, base.gram)
    across = maps.swapaxes(1, 2)
    gram = across @ (base.gram @ maps)
    parts = (base.gram.diagonal(axis1=1, axis2=2)[:, None] @ maps**2)[:, 0]
    left = gram.diagonal(axis1=1, axis2=2)
    if not ((left > _LEAST_LEFT * parts) | (parts == 0.0)).all():
        raise NotSmall
    inner, inner_across = maps[: plan.n_pairs, None], across[: plan.n_pairs, None]
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
    own[responses.still] = 0.0
    sizes = np.array([rows.stop - rows.start for rows in plan.spans] + [1], dtype=np.float64)
    n_span = sizes[plan.slot][:, :, None]
    span_mean = span_cross[:, :, -1] / n_span
    span_gram -= (n_span * span_mean)[..., None] * span_mean[..., None, :]
    made = Products(
        features,
        gram,
        mean,
        own,
        span_gram,
        span_mean,
        span_cross[:, :, :-1],
        np.ones(mean.shape, dtype=np.bool_),
    )
    power = gram.diagonal(axis1=1, axis2=2)
    if not (np.isfinite(power).all() and np.isfinite(span_mean).all()):
        raise NotSmall
    _mark_constant(made, power, plan)
    made.alive &= power / n_train > (n_train * _EPS * (mean + offset)) ** 2
    if not made.alive.all():
        gone = ~made.alive
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
    doubtful = ~(n_span * span_mean**2 <= _CARRIED * span_power) & made.alive[: plan.n_pairs, None]
    if doubtful.any():
        _still_spans(made, doubtful, plan)
    return made


def _mark_constant(made: Products, power: FloatArray, plan: Plan) -> None:
    """Columns that are constant on a training set, by exact comparison where the sums leave a doubt."""
    kept = plan.n_train[:, None] * made.mean**2 <= _CARRIED * power
    doubtful = ~(kept & (power > _TINY) & (power < _HUGE))
    for s in np.flatnonzero(doubtful.any(axis=1)).tolist():
        columns = np.flatnonzero(doubtful[s])
        values = made.of_set(s)[:, columns][plan.rows[s]]
        if (values != values[0]).any():
            raise NotSmall
        made.alive[s, columns] = False


def _still_spans(made: Products, doubtful: BoolArray, plan: Plan) -> None:
    """Columns that are constant over a span's rows: exactly nothing there."""
    for s, j in np.argwhere(doubtful.any(axis=2)).tolist():
        columns = np.flatnonzero(doubtful[s, j])
        values = made.of_set(s)[plan.spans[plan.slot[s, j]]][:, columns]
        if (values != values[0]).any():
            raise NotSmall
        made.span_gram[s, j, columns] = 0.0
        made.span_gram[s, j, :, columns] = 0.0
        made.span_cross[s, j, :, columns] = 0.0
