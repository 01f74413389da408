"""Principal axes of a training set, and what responses and held-out rows look like in them.

Let Z be the training rows, standardised and, where there are unpenalised columns, with those regressed out;
ZᵀZ = V diag(s) Vᵀ. Ridge with penalty a on the first k principal scores has the weights c = b[:k] / (s[:k] + a),
b = VᵀZᵀ(y − μ). So a training set is known by s, by the map from responses to b, and by the map from rows to their
principal scores.

Two forms give the same numbers. *Primal*: ZᵀZ [p, p] is added up from pieces of rows that all training sets share.
*Kernel*: ZZᵀ [n, n] = U diag(s) Uᵀ, V = ZᵀU / √s, for more columns than rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from lpact.math.ridge.columns import Columns
from lpact.math.ridge.compute import Array, Backend
from lpact.math.ridge.responses import Responses
from lpact.math.types import BoolArray, FloatArray, IntArray

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Moments:
    """What a linear map may be fitted on: mean and centred Gram matrix of the training rows, in raw units."""

    n_rows: int
    mean: FloatArray  # [p]
    gram: FloatArray  # [p, p]


LinearMap: TypeAlias = Callable[[Moments], FloatArray]
"""``map(moments)`` gives A [p, p′], fitted on the moments of the training rows; the readout sees the columns of x A.

A column of x A of whose parts less than about p n ε remains after they cancel is rounding on the Gram matrix, and
counts as constant. Where so little matters, give the mapped features themselves, as a function of the training rows.
"""


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows in the principal axes of a training set.

    Attributes
    ----------
    scores
        [r, k] principal scores, each column less its mean over the rows. With a ``source``, the rows are their
        coordinates in some orthonormal basis, which are fewer.
    mean
        [k] mean of the principal scores over the rows.
    source
        Where rows are coordinates: the columns [n_rows, P] of the rows themselves, and the axes [P, k].
    nuisance, nuisance_mean
        The same of the unpenalised columns, [r, m] and [m]; None without them.
    """

    rows: slice
    scores: Array
    mean: Array
    source: tuple[Array, Array] | None
    nuisance: Array | None
    nuisance_mean: Array | None


@dataclass(frozen=True)
class Projected:
    """Responses in the principal axes of a training set.

    Attributes
    ----------
    coordinates
        [q, k]: b of every column.
    mean
        [q]: training mean μ.
    nuisance
        [q, m]: weights of the unpenalised columns if nothing else were in the model; None without them.
    """

    coordinates: Array
    mean: Array
    nuisance: Array | None


class Axes(ABC):
    """One training set of ``n_rows`` rows: eigenvalues [k], descending, and the tame columns it is made of."""

    form: ClassVar[str]
    n_unpenalised: int

    def __init__(self, be: Backend, columns: Columns, eigenvalues: FloatArray, n_rows: int) -> None:
        self.be = be
        self.columns = columns
        self.eigenvalues = eigenvalues
        self.n_rows = n_rows

    @property
    def n_features(self) -> int:
        """Number of penalised columns."""
        return int(self.columns.values.shape[1]) - self.n_unpenalised

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.eigenvalues)

    @property
    @abstractmethod
    def used(self) -> BoolArray:
        """Columns that have a part in the axes or are unpenalised, [P]."""

    def stand_still(self, rows: slice) -> bool:
        """Whether all columns in use are constant over these rows: so are predictions, but for rounding."""
        low, high = self.be.minmax(self.columns.values[rows], 0)
        return bool((low == high)[self.used].all())

    @abstractmethod
    def project(self, responses: Responses, columns: IntArray | None = None) -> Projected:
        """Some columns of the responses in these axes."""

    @abstractmethod
    def held_out(self, rows: slice) -> HeldOut:
        """Held-out rows, centred on themselves, in these axes."""

    @abstractmethod
    def scores(self, rows: slice) -> tuple[Array, Array | None]:
        """Principal scores [n_rows, k] and unpenalised columns [n_rows, m] of rows, around the training mean."""

    @abstractmethod
    def weights(self, coefficients: Array, nuisance: Array | None) -> tuple[Array, Array, Array]:
        """Weights on raw columns [q, p] and [q, m], and what they predict at raw zero [q], for c [q, k]."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory held."""


@dataclass(frozen=True)
class Training:
    """Tame columns of a training set with their moments, [P] = m unpenalised columns and then the features."""

    n_rows: int
    n_unpenalised: int
    mean: Array  # [P] wide
    gram: Array  # [P, P] wide, centred
    varying: BoolArray  # [P] host


def varying_columns(
    variance: FloatArray, raw_mean: FloatArray, distinct: BoolArray, n_rows: int
) -> BoolArray:
    """Columns that vary on the training rows by more than the rounding of their own mean can.

    ``variance`` and ``raw_mean`` are in the same units; ``distinct`` says that max ≠ min, exactly.
    """
    kept: BoolArray = distinct & (variance > (n_rows * _EPS * raw_mean) ** 2)
    return kept


def principal_axes(
    be: Backend,
    training: Training,
    columns: Columns,
    linear_map: LinearMap | None,
    most: int,
    weights: FloatArray | None = None,
) -> tuple[FloatArray, Array, Array | None]:
    """Eigenvalues [k], axes [P, k] from centred tame columns to principal scores, and the unpenalised columns' inverse.

    ``most`` axes are kept at most; those whose eigenvalue is rounding are left out. ``weights`` multiply the
    standardised features (after a linear map, where there is one); features of weight 0 take no part.
    """
    m = training.n_unpenalised
    gram, varying = training.gram, training.varying
    n_columns = gram.shape[0] - m
    if linear_map is None:
        into = None
        power = be.host(gram.diagonal())[m:]
        alive = varying[m:]
    else:
        into = _mapped(be, training, columns, linear_map)  # [P − m, p′] in tame units
        mapped = be.wide(into)
        inner = gram[m:, m:]
        features = mapped.T @ inner @ mapped
        uncancelled = (into**2).T @ np.where(varying[m:], be.host(inner.diagonal()), 0.0)
        power = be.host(features.diagonal())
        alive = power > n_columns * training.n_rows * _EPS * uncancelled
        gram = _bordered(be, gram, features, gram[:m, m:] @ mapped, m)
    scale = np.sqrt(np.where(alive, power, training.n_rows) / training.n_rows)
    to_standard = np.where(alive, 1.0 / scale, 0.0)
    features, cross = gram[m:, m:], gram[:m, m:]
    used, largest = None, 1.0
    if weights is not None:
        to_standard = to_standard * weights
        largest = float(np.max(weights**2, initial=0.0))
        if not weights.all():
            used = np.flatnonzero(weights)
            to_standard = to_standard[used]
            features, cross = be.take(be.take(features, used, 0), used, 1), be.take(cross, used, 1)
    inverse = be.wide(to_standard)
    features = features * inverse[:, None] * inverse
    solve = None
    out_of = None
    if m:
        steady = be.wide(np.where(varying[:m], 1.0, 0.0))
        solve = scaled_pinv(be, gram[:m, :m] * steady[:, None] * steady)
        cross = cross * inverse * steady[:, None]
        out_of = solve @ cross  # what unpenalised columns predict of every feature
        features = features - cross.T @ out_of
    eigenvalues, vectors = be.eigh(features)
    values = np.maximum(be.host(eigenvalues)[::-1], 0.0)
    floor = max(values[0] if len(values) else 0.0, training.n_rows * largest)
    size = max(training.n_rows, n_columns if used is None else len(used))
    rank = int((values > 4 * _EPS * size * floor).sum())
    rank = min(rank, most)
    last = len(values)
    kept = be.take(vectors, np.arange(last - 1, last - 1 - rank, -1), 1)
    axes = kept * inverse[:, None]
    if used is not None:
        every = be.wide(np.zeros((len(alive), rank)))
        every[be.index(used)] = axes
        axes = every
    if into is not None:
        axes = be.wide(into) @ axes
    if out_of is not None:
        axes = be.concatenate([-(out_of @ kept), axes], 0)
    return values[:rank].copy(), axes, solve


def _mapped(be: Backend, training: Training, columns: Columns, linear_map: LinearMap) -> FloatArray:
    """The linear map between tame columns and mapped raw columns, [P − m, p′]."""
    m = training.n_unpenalised
    factor, offset = columns.factor[m:], columns.offset[m:]
    mean = be.host(training.mean)[m:] / factor + offset
    gram = be.host(training.gram)[m:, m:] / np.multiply.outer(factor, factor)
    matrix = np.asarray(linear_map(Moments(training.n_rows, mean, gram)), dtype=np.float64)
    if matrix.ndim != 2 or len(matrix) != len(factor) or not np.isfinite(matrix).all():
        raise ValueError(
            f"a linear map must be finite with {len(factor)} rows, got shape {matrix.shape}"
        )
    return matrix / factor[:, None]


def _bordered(be: Backend, gram: Array, features: Array, cross: Array, m: int) -> Array:
    if m == 0:
        return features
    top = be.concatenate([gram[:m, :m], cross], 1)
    return be.concatenate([top, be.concatenate([cross.T, features], 1)], 0)


def raw_weights(
    be: Backend,
    columns: Columns,
    by_column: Array,
    nuisance: Array | None,
    m: int,
    mean: Array,
) -> tuple[Array, Array, Array]:
    """Weights on raw columns, those of unpenalised columns, and what they predict at raw zero."""
    if nuisance is not None:
        by_column = be.concatenate([by_column[:, :m] + nuisance, by_column[:, m:]], 1)
    factor, offset = be.narrow(columns.factor), be.narrow(columns.offset)
    raw = by_column * factor
    at_zero = -(by_column @ mean) - raw @ offset
    return raw[:, m:], raw[:, :m], at_zero


def scaled_pinv(be: Backend, gram: Array) -> Array:
    """Pseudo-inverse of a Gram matrix, its columns brought to one size first: scales decide about no rank."""
    power = be.host(gram.diagonal())
    inverse = be.wide(np.where(power > 0.0, 1.0 / np.sqrt(np.where(power > 0.0, power, 1.0)), 0.0))
    return be.pinv(gram * inverse[:, None] * inverse) * inverse[:, None] * inverse
