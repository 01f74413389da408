"""Principal axes of training sets, and responses and held-out rows in them.

Let Z be the training rows, standardised and with the unpenalised columns regressed out; ZᵀZ = V diag(s) Vᵀ. Ridge with
penalty a on the first k principal scores has the coefficients c = b[:k] / (s[:k] + a), b = VᵀZᵀ(y − μ). So a training
set needs s, the map from responses to b, and the map from rows to their principal scores.

Two forms give the same numbers. *Primal*: ZᵀZ [p, p] is a sum over pieces of rows that all training sets share.
*Kernel*: ZZᵀ [n, n] = U diag(s) Uᵀ, V = ZᵀU / √s, for more columns than rows.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from lpact.math.ridge._arrays import (
    CENTRING_LIMIT,
    Block,
    Columns,
    FittedFeatures,
    Form,
    Held,
    Pieces,
    Projected,
    Responses,
    check_finite,
    joined_columns,
    n_rows,
    power_of_two,
    varying_columns,
)
from lpact.math.ridge.compute import Array, Backend
from lpact.math.types import BoolArray, FloatArray, IntArray

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows in the principal axes of a training set.

    With a ``source``, rows are coordinates in an orthonormal basis, which are fewer.
    """

    rows: slice
    scores: Array  # [r, k], centred over the rows
    mean: Array  # [k], of the scores over the rows
    source: tuple[Array, Array] | None  # columns [n_rows, P] of the rows themselves, and the axes [P, k]
    nuisance: Array | None  # [r, m], unpenalised columns, centred
    nuisance_mean: Array | None  # [m]


class TrainingAxes:
    """One training set of ``n_rows`` rows: eigenvalues [k], descending, and scaled columns.

    ``used`` [P] are the columns that contribute to the axes or are unpenalised. Both forms have `project`, for some
    columns of the responses or all; `held_out`, for rows centred on their own mean; `scores`, principal scores
    [n_rows, k] and unpenalised columns [n_rows, m] of rows, minus the training mean; and `weights` on raw columns
    [q, p] and [q, m], with the prediction at raw zero [q], for coefficients [q, k].
    """

    form: str
    n_unpenalised: int

    def __init__(self, be: Backend, columns: Columns, eigenvalues: FloatArray, n_rows: int) -> None:
        self.be, self.columns, self.n_rows = be, columns, n_rows
        self.eigenvalues, self.rank = eigenvalues, len(eigenvalues)

    @property
    def n_features(self) -> int:
        """Number of penalised columns."""
        return int(self.columns.values.shape[1]) - self.n_unpenalised

    def constant_over(self, rows: slice, used: BoolArray) -> bool:
        """Whether all used columns are constant over these rows: predictions are too, except for rounding."""
        low, high = self.be.minmax(self.columns.values[rows], 0)
        return bool((low == high)[used].all())

    def _raw_weights(self, by_column: Array, nuisance: Array | None, mean: Array) -> tuple[Array, Array, Array]:
        """The result of `weights` from weights on scaled columns [q, P]."""
        be, m = self.be, self.n_unpenalised
        if nuisance is not None:
            by_column = be.concatenate([by_column[:, :m] + nuisance, by_column[:, m:]], 1)
        raw = by_column * be.narrow(self.columns.factor)
        at_zero = -(by_column @ mean) - raw @ be.narrow(self.columns.offset)
        return raw[:, m:], raw[:, :m], at_zero


def leading_axes(be: Backend, gram: Array, n: int, largest: float, size: int, most: int) -> tuple[FloatArray, Array]:
    """At most ``most`` eigenvalues above rounding, descending, and their vectors.

    The matrix has rows or columns of about √n · weight, of which ``largest`` is the largest squared weight; ``size`` is
    the larger side of what it is the Gram matrix of.
    """
    eigenvalues, vectors = be.eigh(gram)
    values = np.maximum(be.host(eigenvalues)[::-1], 0.0)
    floor = max(values[0] if len(values) else 0.0, n * largest)
    rank = min(int((values > 4 * _EPS * size * floor).sum()), most)
    last = len(values)
    kept = be.take(vectors, np.arange(last - 1, last - 1 - rank, -1), 1)
    return values[:rank].copy(), kept


def _scaled_pinv(be: Backend, gram: Array) -> Array:
    """Pseudo-inverse of a Gram matrix, with its columns scaled to one size so that units do not affect the rank."""
    power = be.host(gram.diagonal())
    inverse = be.wide(np.where(power > 0.0, 1.0 / np.sqrt(np.where(power > 0.0, power, 1.0)), 0.0))
    return be.pinv(gram * inverse[:, None] * inverse) * inverse[:, None] * inverse


# --- primal form: the Gram matrix of columns --------------------------------------------------------------------------


@dataclass(frozen=True)
class Moments:
    """Moments of the P columns of a training set: m unpenalised ones, then the features."""

    be: Backend
    design: SharedDesign | None  # None where the columns are those of this training set alone
    columns: Columns
    held: Held
    n_rows: int
    n_unpenalised: int
    mean: FloatArray  # [P]
    gram: Array  # [P, P] wide, centred
    varying: BoolArray  # [P]

    @property
    def nbytes(self) -> int:
        """Memory of the arrays of this training set alone."""
        n_columns = self.columns.values.shape[1]
        n_own_rows = 0 if self.design else len(self.columns.values)
        return int(8 * n_columns * (n_columns + n_own_rows))

    def axes(self, most: int, weights: FloatArray | None = None) -> PrimalAxes:
        """At most ``most`` principal axes; ``weights`` [p] multiply the standardised features, 0 removes them."""
        be, n, m, gram, varying = self.be, self.n_rows, self.n_unpenalised, self.gram, self.varying
        power = be.host(gram.diagonal())[m:]
        scale = np.sqrt(np.where(varying[m:], power, n) / n)
        to_standard = np.where(varying[m:], 1.0 / scale, 0.0)
        features, cross = gram[m:, m:], gram[:m, m:]
        n_features, used, largest = len(power), None, 1.0
        if weights is not None:
            to_standard = to_standard * weights
            largest = float(np.max(weights**2, initial=0.0))
            if not weights.all():
                used = np.flatnonzero(weights)
                to_standard = to_standard[used]
                features = be.take(be.take(features, used, 0), used, 1)
                cross = be.take(cross, used, 1)
        inverse = be.wide(to_standard)
        features = features * inverse[:, None] * inverse
        solve, explained = None, None
        if m:
            steady = be.wide(np.where(varying[:m], 1.0, 0.0))
            solve = _scaled_pinv(be, gram[:m, :m] * steady[:, None] * steady)
            cross = cross * inverse * steady[:, None]
            explained = solve @ cross  # weights of the unpenalised columns on every feature
            features = features - cross.T @ explained
        size = max(n, n_features if used is None else len(used))
        values, kept = leading_axes(be, features, n, largest, size, most)
        axes = kept * inverse[:, None]
        if used is not None:
            every = be.wide(np.zeros((n_features, len(values))))
            every[be.index(used)] = axes
            axes = every
        if explained is not None:
            axes = be.concatenate([-(explained @ kept), axes], 0)
        return PrimalAxes(self, values, axes, solve)


class PrimalAxes(TrainingAxes):
    """Axes [P, k] in column space."""

    form = "primal"

    def __init__(self, moments: Moments, eigenvalues: FloatArray, axes: Array, solve: Array | None) -> None:
        super().__init__(moments.be, moments.columns, eigenvalues, moments.n_rows)
        be = self.be
        self.design, self.held = moments.design, moments.held
        self.axes = be.narrow(axes)
        self.mean = be.narrow(moments.mean)
        self.n_unpenalised = moments.n_unpenalised
        self.solve = None if solve is None else be.narrow(solve)

    @cached_property
    def used(self) -> BoolArray:
        """Columns with a non-zero axis, and the unpenalised ones, [P]."""
        low, high = self.be.minmax(self.axes, 1) if self.rank else (np.zeros(1), np.zeros(1))
        used: BoolArray = np.broadcast_to((low != 0.0) | (high != 0.0), self.axes.shape[:1]).copy()
        used[: self.n_unpenalised] = True
        return used

    @property
    def nbytes(self) -> int:
        """Memory of the arrays of this training set alone."""
        own = self.columns.values.shape[0] if self.design is None else 0
        return int(self.be.itemsize * self.axes.shape[0] * (self.axes.shape[1] + own))

    def project(self, responses: Responses, columns: IntArray | None = None) -> Projected:
        """From products of pieces with the responses; row by row for features that are not shared."""
        be = self.be
        if self.design is None:
            cross, mean = self._row_products(responses, columns)
        else:
            mean, by_row = responses.training_mean(self.held)
            if columns is not None:
                mean, by_row = mean[columns], by_row[columns]
            cross = self.design.cross(responses, self.held, mean, columns)
            if by_row.any():
                some = np.flatnonzero(by_row)
                own = some if columns is None else columns[some]
                cross[be.index(some)], mean[some] = self._row_products(responses, own)
        nuisance = None
        if self.solve is not None:
            nuisance = cross[:, : self.n_unpenalised] @ self.solve
        compared = self.design is not None and columns is None  # all columns are only compared
        coordinates = be.compared(cross, self.axes) if compared else cross @ self.axes
        return Projected(coordinates, be.narrow(mean), nuisance)

    def _row_products(self, responses: Responses, columns: IntArray | None) -> tuple[Array, FloatArray]:
        """Σ (y − μ)(x − m) over the training rows, [q, P], and μ, both row by row."""
        y, mean = responses.centred_training(self.held, columns)
        pieces = responses.pieces
        parts = [self.columns.values[pieces.slices[i]] for i in pieces.members[self.held]]
        return y @ (self.be.concatenate(parts, 0) - self.mean), mean

    def held_out(self, rows: slice) -> HeldOut:
        """Held-out rows, centred on their own mean, in the axes."""
        shared = self.design
        block = shared.block(rows) if shared else Block(self.be, self.columns.values[rows], 0)
        shift, m = block.mean - self.mean, self.n_unpenalised
        times = self.be.upper_times if block.compressed else operator.matmul
        return HeldOut(
            rows,
            times(block.centred, self.axes),
            shift @ self.axes,
            (self.columns.values[rows], self.axes) if block.compressed else None,
            block.centred[:, :m] if m else None,
            shift[:m] if m else None,
        )

    def scores(self, rows: slice) -> tuple[Array, Array | None]:
        """Principal scores [n_rows, k] and unpenalised columns [n_rows, m], minus the training mean."""
        shifted = self.columns.values[rows] - self.mean
        m = self.n_unpenalised
        scores = shifted @ self.axes
        if self.constant_over(rows, self.used):
            scores[:] = scores[:1] + 0.0
        return scores, shifted[:, :m] if m else None

    def weights(self, coefficients: Array, nuisance: Array | None) -> tuple[Array, Array, Array]:
        """Weights [q, p] and [q, m] on raw columns, and the prediction at raw zero [q]."""
        return self._raw_weights(coefficients @ self.axes.T, nuisance, self.mean)


def moments_by_row(be: Backend, features: Array, unpenalised: Array | None, held: Held, rows: IntArray) -> Moments:
    """Moments from rows centred one by one: for features of one training set, or where means far exceed spreads."""
    joined, m = be.wide(features), 0
    if unpenalised is not None and unpenalised.shape[1]:
        joined = be.concatenate([be.wide(unpenalised), joined], 1)
        m = unpenalised.shape[1]
    train = be.take(joined, rows, 0)  # offset and factor come from the training rows alone
    offset = be.sums(train, 0) / len(rows)
    low, high = be.minmax(train, 0)
    peak = np.maximum(high - offset, offset - low)
    if not np.isfinite(peak).all() or not be.all_finite(joined):
        check_finite(be, joined, "features")
    factor = power_of_two(peak)
    shifted = (joined - be.wide(offset)) * be.wide(factor)
    values = be.take(shifted, rows, 0)
    mean = be.sums(values, 0) / len(rows)  # the rounding error of the offset
    values -= be.wide(mean)
    gram = values.T @ values
    power = be.host(gram.diagonal())
    varying = varying_columns(power / len(rows), offset * factor, low != high, len(rows))
    columns = Columns(be.narrow(shifted), offset, factor)
    return Moments(be, None, columns, held, len(rows), m, mean, gram, varying)


# --- kernel form: the Gram matrix of rows -----------------------------------------------------------------------------


class StandardRows:
    """Rows standardised on the training rows ``rows``; the first m columns are unpenalised.

    ``mean`` and ``inverse`` are [P]: the mean of every column, and 1 / its standard deviation, 0 where it is constant.
    ``nuisance`` of the training rows: N [n_train, m], centred, and N⁺ᵀ [n_train, m]; None without unpenalised columns.
    """

    def __init__(self, be: Backend, columns: Columns, m: int, held: Held, rows: IntArray, distinct: BoolArray) -> None:
        self.be, self.columns, self.held, self.rows = be, columns, held, rows
        train = be.take(be.wide(columns.values), rows, 0)
        self.mean = be.sums(train, 0) / len(rows)
        centred = train - be.wide(self.mean)
        power = be.host((centred * centred).sum(0))
        raw_mean = self.mean + columns.offset * columns.factor
        varying = varying_columns(power / len(rows), raw_mean, distinct, len(rows))
        spread = np.sqrt(np.where(varying, power, 1.0) / len(rows))
        self.inverse = np.where(varying, 1.0 / spread, 0.0)
        self.nuisance: tuple[Array, Array] | None = None
        if m:
            own = centred[:, :m] * be.wide(varying[:m].astype(np.float64))
            self.nuisance = (own, own @ _scaled_pinv(be, own.T @ own))

    def values(self, inverse: FloatArray | None = None) -> tuple[Array, Array]:
        """All rows [n, p], unpenalised columns regressed out, and the weights [m, p] of these columns.

        ``inverse`` replaces that of the columns where they are weighted.
        """
        be, mean = self.be, self.mean
        inverse = self.inverse if inverse is None else inverse
        values = (be.wide(self.columns.values) - be.wide(mean)) * be.wide(inverse)
        if self.nuisance is None:
            return values, None
        m = self.nuisance[0].shape[1]
        features = values[:, m:]
        explained = self.nuisance[1].T @ be.take(features, self.rows, 0)
        plain = be.wide(self.columns.values)[:, :m] - be.wide(mean[:m])
        return features - plain @ explained, explained

    def axes(self, most: int, validation: Sequence[slice]) -> KernelAxes:
        """Principal axes, with the principal scores of the rows in ``validation``."""
        values, _ = self.values()
        train = self.be.take(values, self.rows, 0)
        cross = {(part.start, part.stop): values[part] @ train.T for part in validation}
        del values
        parts = kernel_parts(self.be, train @ train.T, cross, most, max(train.shape))
        return KernelAxes(self, *parts, self.inverse)


Parts: TypeAlias = dict[tuple[int, int], Array]
"""An array for every run of held-out rows, by its first row and one past its last."""


def kernel_parts(
    be: Backend,
    kernel: Array,
    cross: Mapping[tuple[int, int], Array],
    most: int,
    size: int,
    largest: float = 1.0,
) -> tuple[FloatArray, Array, Parts]:
    """Eigenvalues, loadings and principal scores from a kernel [n, n] and those of held-out rows [r, n].

    See `_leading` for ``largest`` and ``size``.
    """
    eigenvalues, kept = leading_axes(be, kernel, len(kernel), largest, size, most)
    root = be.wide(np.sqrt(eigenvalues))
    return eigenvalues, kept * root, {part: (own @ kept) / root for part, own in cross.items()}


def narrow_parts(
    be: Backend, train: Array, held: Mapping[tuple[int, int], Array], most: int, largest: float
) -> tuple[FloatArray, Array, Parts]:
    """The same for few columns: training rows [n, p] and held-out rows [r, p]."""
    n = len(train)
    eigenvalues, axes = leading_axes(be, train.T @ train, n, largest, n, most)
    return eigenvalues, train @ axes, {part: own @ axes for part, own in held.items()}


class KernelAxes(TrainingAxes):
    """Axes in the space of training rows.

    ``loadings`` [n_train, k] = U √s, so that b = (y − μ) U √s; ``scores`` are the principal scores of held-out rows.
    ``inverse`` [P] maps centred columns to those of the kernel, weights included.
    """

    form = "kernel"

    def __init__(
        self,
        standard: StandardRows,
        eigenvalues: FloatArray,
        loadings: Array,
        scores: Parts,
        inverse: FloatArray,
    ) -> None:
        be = standard.be
        super().__init__(be, standard.columns, eigenvalues, len(standard.rows))
        self._ready = {part: be.narrow(own) for part, own in scores.items()}
        self.loadings = be.narrow(loadings)
        self.standard, self.inverse = standard, inverse
        self.n_unpenalised = 0 if standard.nuisance is None else standard.nuisance[0].shape[1]
        self.own_columns = False
        self.used: BoolArray = inverse > 0.0

    @property
    def nbytes(self) -> int:
        """Memory of the arrays of this training set alone."""
        kept = self.loadings.shape[0] * self.loadings.shape[1]
        kept += sum(scores.shape[0] * scores.shape[1] for scores in self._ready.values())
        if self.own_columns:
            kept += self.columns.values.shape[0] * self.columns.values.shape[1]
        return int(self.be.itemsize * kept)

    def project(self, responses: Responses, columns: IntArray | None = None) -> Projected:
        """Products of the centred responses with the loadings."""
        y, mean = responses.centred_training(self.standard.held, columns)
        fitted = self.standard.nuisance
        nuisance = None if fitted is None else y @ self.be.narrow(fitted[1])
        return Projected(y @ self.loadings, self.be.narrow(mean), nuisance)

    def scores(self, rows: slice) -> tuple[Array, Array | None]:
        """Principal scores [n_rows, k] and unpenalised columns [n_rows, m], minus the training mean."""
        scores = self._ready[rows.start, rows.stop]
        if self.constant_over(rows, self.used):
            scores = scores[:1] + 0.0 * scores
        m = self.n_unpenalised
        if not m:
            return scores, None
        return scores, self.columns.values[rows][:, :m] - self.be.narrow(self.standard.mean[:m])

    def held_out(self, rows: slice) -> HeldOut:
        """Held-out rows, centred on their own mean, in the axes."""
        scores, nuisance = self.scores(rows)
        own = Block(self.be, scores, 0)
        if nuisance is None:
            return HeldOut(rows, own.centred, own.mean, None, None, None)
        fixed = Block(self.be, nuisance, 0)
        return HeldOut(rows, own.centred, own.mean, None, fixed.centred, fixed.mean)

    def weights(self, coefficients: Array, nuisance: Array | None) -> tuple[Array, Array, Array]:
        """V = ZᵀU / √s, with Z computed again."""
        be, m, standard = self.be, self.n_unpenalised, self.standard
        z, explained = standard.values(self.inverse)
        in_rows = (be.wide(coefficients) / be.wide(self.eigenvalues)) @ be.wide(self.loadings).T
        weights = in_rows @ be.take(z, standard.rows, 0)
        by_column = weights * be.wide(self.inverse[m:])
        if m:
            by_column = be.concatenate([-(weights @ explained.T), by_column], 1)
        return self._raw_weights(be.narrow(by_column), nuisance, be.narrow(standard.mean))


Axes: TypeAlias = PrimalAxes | KernelAxes


_THIN = 64
"""Pieces with fewer rows keep no Gram matrix; they are multiplied when they are needed."""


class SharedDesign:
    """The same features for all training sets, whose Gram matrices are sums over shared pieces.

    At most ``most`` axes of a set are kept. Blocks with more than ``compress`` > 0 rows are compressed (see `Block`).
    """

    def __init__(
        self,
        be: Backend,
        features: Array,
        unpenalised: Array | None,
        pieces: Pieces,
        form: Form,
        most: int,
        compress: int,
    ) -> None:
        self.be, self.pieces, self.most, self.compress = be, pieces, most, compress
        self.raw = (features, unpenalised)
        self.columns, self.n_unpenalised = joined_columns(be, features, unpenalised)
        n_features = self.columns.values.shape[1] - self.n_unpenalised
        primal = n_features <= min(pieces.n_rows.values())
        self.form = form if form != "auto" else ("primal" if primal else "kernel")
        parts = [self.columns.values[piece] for piece in pieces.slices]
        self._sums = [be.sums(part, 0) for part in parts]
        self._ranges = [be.minmax(part, 0) for part in parts]
        self._grams: dict[int, Array] = {}
        self._blocks: dict[tuple[int, int], Block] = {}

    def train(self, held: Held, validation: Sequence[slice]) -> Axes:
        """The training set without ``held``, ready for the rows in ``validation``."""
        if self.form == "kernel":
            return self.standard_rows(held).axes(self.most, validation)
        return self.moments(held).axes(self.most)

    def moments(self, held: Held) -> Moments:
        """Moments as sums over pieces; row by row where a column's mean is far larger than its spread."""
        be, members, n = self.be, self.pieces.members[held], self.pieces.n_rows[held]
        mean = np.sum([self._sums[i] for i in members], axis=0) / n
        distinct = self._distinct(held)
        wide = be.wide(mean)
        gram = self._gram(members) - n * (wide[:, None] * wide)
        power = be.host(gram.diagonal())
        if (distinct & (n * mean**2 > CENTRING_LIMIT * power)).any():
            return moments_by_row(be, *self.raw, held, self.pieces.rows(held))
        raw_mean = mean + self.columns.offset * self.columns.factor
        varying = varying_columns(power / n, raw_mean, distinct, n)
        return Moments(be, self, self.columns, held, n, self.n_unpenalised, mean, gram, varying)

    def standard_rows(self, held: Held) -> StandardRows:
        """Statistics that standardise all rows on the training rows."""
        rows, distinct = self.pieces.rows(held), self._distinct(held)
        return StandardRows(self.be, self.columns, self.n_unpenalised, held, rows, distinct)

    def _distinct(self, held: Held) -> BoolArray:
        """Columns whose largest and smallest value on the training rows differ, [P]."""
        low, high = zip(*(self._ranges[i] for i in self.pieces.members[held]), strict=True)
        differ: BoolArray = np.max(high, axis=0) != np.min(low, axis=0)
        return differ

    def _thin_and_thick(self, members: Sequence[int]) -> tuple[list[int], list[int]]:
        thin = [i for i in members if n_rows(self.pieces.slices[i]) < _THIN]
        return thin, [i for i in members if i not in thin]

    def _gram(self, members: Sequence[int]) -> Array:
        """Sum of outer products over pieces, [P, P] wide; a new array."""
        be, total = self.be, None
        thin, thick = self._thin_and_thick(members)
        values = [be.wide(self.columns.values[self.pieces.slices[i]]) for i in thin]
        if thin:
            rows = be.concatenate(values, 0)
            total = rows.T @ rows
        for i in thick:
            if i not in self._grams:
                part = be.wide(self.columns.values[self.pieces.slices[i]])
                self._grams[i] = part.T @ part
            if total is None:
                total = self._grams[i] + 0.0
            else:
                total += self._grams[i]
        return total

    def cross(self, responses: Responses, held: Held, mean: FloatArray, columns: IntArray | None = None) -> Array:
        """Σ (y − μ)(x − m) over a training set, [q, P], of some columns of the responses or all.

        ``mean`` is μ of those columns. Products are taken within pieces, around the pieces' means, and joined by
        Σ_b n_b (ȳ_b − μ)(x̄_b − m), so that drift between pieces costs no digits.
        """
        be, members = self.be, self.pieces.members[held]
        sizes = np.array([n_rows(self.pieces.slices[i]) for i in members], dtype=np.float64)
        x_means = np.stack([self._sums[i] for i in members]) / sizes[:, None]
        y_means = responses.piece_means[list(members)]
        y_means = y_means if columns is None else y_means[:, columns]
        x_between = x_means - sizes @ x_means / sizes.sum()
        y_between = (y_means - mean) * sizes[:, None]
        total = be.narrow(be.wide(np.ascontiguousarray(y_between.T)) @ be.wide(x_between))
        thin, thick = self._thin_and_thick(members)
        if thin:
            y = be.concatenate([responses.centred_piece(i) for i in thin], 1)
            y = y if columns is None else be.take(y, columns, 0)
            total += y @ be.concatenate([self._centred_piece(i) for i in thin], 0)
        for i in thick:
            if i not in responses.cross:
                responses.cross[i] = responses.centred_piece(i) @ self._centred_piece(i)
            own = responses.cross[i]
            total += own if columns is None else be.take(own, columns, 0)
        return total

    def _centred_piece(self, piece: int) -> Array:
        rows = self.pieces.slices[piece]
        return self.columns.values[rows] - self.be.narrow(self._sums[piece] / n_rows(rows))

    def block(self, rows: slice) -> Block:
        """Held-out rows minus their mean, shared by all training sets."""
        key = (rows.start, rows.stop)
        if key not in self._blocks:
            self._blocks[key] = Block(self.be, self.columns.values[rows], self.compress)
        return self._blocks[key]


def fitted_axes(
    be: Backend,
    features: FittedFeatures,
    unpenalised: Array | None,
    pieces: Pieces,
    form: Form,
    most: int,
    held: Held,
    validation: Sequence[slice],
) -> Axes:
    """Fit features on the training rows without ``held``, then decompose them."""
    rows, n = pieces.rows(held), pieces.folds.n_rows
    fitted = np.asarray(features(rows), dtype=np.float64)
    if fitted.ndim != 2 or len(fitted) != n:
        raise ValueError(f"a design function must return features [{n}, p] for all rows, got {fitted.shape}")
    if form == "primal" or (form == "auto" and fitted.shape[1] <= len(rows)):
        return moments_by_row(be, fitted, unpenalised, held, rows).axes(most)
    columns, m = joined_columns(be, fitted, unpenalised)
    low, high = be.minmax(be.take(columns.values, rows, 0), 0)
    axes = StandardRows(be, columns, m, held, rows, low != high).axes(most, validation)
    axes.own_columns = True
    return axes
