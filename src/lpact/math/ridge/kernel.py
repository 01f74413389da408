"""Training sets in row space: one Gram matrix of rows, for more columns than rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lpact.math.ridge.axes import (
    Axes,
    HeldOut,
    Projected,
    raw_weights,
    scaled_pinv,
    varying_columns,
)
from lpact.math.ridge.columns import Columns
from lpact.math.ridge.compute import Array, Backend
from lpact.math.ridge.responses import Responses
from lpact.math.ridge.rows import Held
from lpact.math.types import BoolArray, FloatArray, IntArray

_EPS = float(np.finfo(np.float64).eps)


class KernelAxes(Axes):
    """Axes in the space of training rows; held-out rows are rotated when it is made, and features let go."""

    form = "kernel"

    def __init__(
        self,
        be: Backend,
        columns: Columns,
        held: Held,
        rows: IntArray,
        eigenvalues: FloatArray,
        loadings: Array,
        inverse: FloatArray,
        mean: FloatArray,
        nuisance: tuple[Array, Array] | None,
        ready: dict[tuple[int, int], Array],
    ) -> None:
        super().__init__(be, columns, eigenvalues, len(rows))
        self.held, self.rows = held, rows
        self.loadings = be.narrow(loadings)  # [n_train, k] = U √s, so that b = (y − μ) U √s
        self.inverse, self.mean = inverse, mean
        self.nuisance = nuisance  # training rows N [n_train, m], centred, and N⁺ᵀ [n_train, m]
        self.n_unpenalised = 0 if nuisance is None else nuisance[0].shape[1]
        self._ready = ready
        self.own_columns = False

    def project(self, responses: Responses, columns: IntArray | None = None) -> Projected:
        """From the training rows themselves."""
        y = responses.take_training(self.held, columns)
        mean = self.be.sums(y, 1) / self.n_rows
        y = y - self.be.narrow(mean)[:, None]
        low, high = self.be.minmax(y, 1)
        constant = np.flatnonzero(low == high)
        if len(constant):
            y[self.be.index(constant)] = 0.0
        nuisance = None if self.nuisance is None else y @ self.be.narrow(self.nuisance[1])
        return Projected(y @ self.loadings, self.be.narrow(mean), nuisance)

    @property
    def used(self) -> BoolArray:
        """Columns that vary on the training rows, and have a weight."""
        used: BoolArray = self.inverse > 0.0
        return used

    def _nuisance_rows(self, rows: slice) -> Array | None:
        m = self.n_unpenalised
        if not m:
            return None
        return self.columns.values[rows][:, :m] - self.be.narrow(self.mean[:m])

    def scores(self, rows: slice) -> tuple[Array, Array | None]:
        """As rotated when the axes were made."""
        scores = self._ready[rows.start, rows.stop]
        if self.stand_still(rows):
            scores = scores[:1] + 0.0 * scores
        return scores, self._nuisance_rows(rows)

    def held_out(self, rows: slice) -> HeldOut:
        """The same, centred on themselves."""
        scores, nuisance = self.scores(rows)
        n_rows = rows.stop - rows.start
        mean = self.be.narrow(self.be.sums(scores, 0) / n_rows)
        centred = scores - mean
        if self.stand_still(rows):
            centred *= 0.0  # not what rounding of the mean leaves
        nuisance_mean = None
        if nuisance is not None:
            nuisance_mean = self.be.narrow(self.be.sums(nuisance, 0) / n_rows)
            low, high = self.be.minmax(nuisance, 0)
            nuisance = nuisance - nuisance_mean
            nuisance[:, self.be.index(np.flatnonzero(low == high))] = 0.0
        return HeldOut(rows, centred, mean, None, nuisance, nuisance_mean)

    def weights(self, coefficients: Array, nuisance: Array | None) -> tuple[Array, Array, Array]:
        """V = ZᵀU / √s, with Z made once more."""
        be, m = self.be, self.n_unpenalised
        z, out_of = _standard_rows(
            be, self.columns, self.rows, self.mean, self.inverse, self.nuisance
        )
        eigenvalues = be.wide(self.eigenvalues)
        in_rows = (be.wide(coefficients) / eigenvalues) @ be.wide(self.loadings).T
        tame_weights = in_rows @ be.take(z, self.rows, 0)
        by_column = tame_weights * be.wide(self.inverse[m:])
        if m:
            by_column = be.concatenate([-(tame_weights @ out_of.T), by_column], 1)
        return raw_weights(
            be, self.columns, be.narrow(by_column), nuisance, m, be.narrow(self.mean)
        )

    @property
    def nbytes(self) -> int:
        """The loadings and the rotated rows."""
        kept = self.loadings.shape[0] * self.loadings.shape[1]
        kept += sum(scores.shape[0] * scores.shape[1] for scores in self._ready.values())
        if self.own_columns:
            kept += self.columns.values.shape[0] * self.columns.values.shape[1]
        return int(self.be.itemsize * kept)


def _standard_rows(
    be: Backend,
    columns: Columns,
    rows: IntArray,
    mean: FloatArray,
    inverse: FloatArray,
    nuisance: tuple[Array, Array] | None,
) -> tuple[Array, Array]:
    """All rows, standardised on the training rows, unpenalised columns regressed out; and their weights [m, p]."""
    values = (be.wide(columns.values) - be.wide(mean)) * be.wide(inverse)
    if nuisance is None:
        return values, None
    m = nuisance[0].shape[1]
    features = values[:, m:]
    out_of = nuisance[1].T @ be.take(features, rows, 0)
    plain = be.wide(columns.values)[:, :m] - be.wide(mean[:m])
    return features - plain @ out_of, out_of


@dataclass(frozen=True)
class StandardRows:
    """Rows standardised on a training set, before it is decomposed in row space.

    Attributes
    ----------
    inverse
        [P]: one over every column's standard deviation; 0 where it does not vary.
    values
        [n, p]: all rows, standardised, with unpenalised columns regressed out.
    nuisance
        Of the training rows: N [n_train, m], centred, and N⁺ᵀ [n_train, m]. None without unpenalised columns.
    """

    be: Backend
    columns: Columns
    held: Held
    rows: IntArray
    mean: FloatArray
    inverse: FloatArray
    values: Array
    nuisance: tuple[Array, Array] | None

    def axes(self, most: int, validation: Sequence[slice]) -> KernelAxes:
        """Decomposed, ready for the rows in ``validation``."""
        train = self.be.take(self.values, self.rows, 0)
        cross = {(part.start, part.stop): self.values[part] @ train.T for part in validation}
        size = max(train.shape)
        return kernel_axes(self, train @ train.T, cross, self.inverse, most, size)


def standardised(
    be: Backend, columns: Columns, m: int, held: Held, rows: IntArray, distinct: BoolArray
) -> StandardRows:
    """Standardise all rows on the training rows ``rows``."""
    train = be.take(be.wide(columns.values), rows, 0)
    mean = be.sums(train, 0) / len(rows)
    centred = train - be.wide(mean)
    power = be.host((centred * centred).sum(0))
    raw_mean = mean + columns.offset * columns.factor
    varying = varying_columns(power / len(rows), raw_mean, distinct, len(rows))
    inverse = np.where(varying, 1.0 / np.sqrt(np.where(varying, power, 1.0) / len(rows)), 0.0)
    nuisance = None
    if m:
        own = centred[:, :m] * be.wide(varying[:m].astype(np.float64))
        nuisance = (own, own @ scaled_pinv(be, own.T @ own))
    z, _ = _standard_rows(be, columns, rows, mean, inverse, nuisance)
    return StandardRows(be, columns, held, rows, mean, inverse, z, nuisance)


def kernel_axes(
    standard: StandardRows,
    kernel: Array,
    cross: Mapping[tuple[int, int], Array],
    inverse: FloatArray,
    most: int,
    size: int,
    largest: float = 1.0,
) -> KernelAxes:
    """Axes of a training set from its kernel [n_train, n_train] and held-out rows' kernels with it [r, n_train].

    ``inverse`` [P] takes centred columns to those of the kernel: where these are weighted, it holds the weights.
    ``size`` is the larger side of what the kernel is of, and ``largest`` the largest squared weight: eigenvalues
    below what rounding makes of them are left out.
    """
    be, rows = standard.be, standard.rows
    eigenvalues, vectors = be.eigh(kernel)
    values = np.maximum(be.host(eigenvalues)[::-1], 0.0)
    floor = max(values[0] if len(values) else 0.0, len(rows) * largest)
    rank = int((values > 4 * _EPS * size * floor).sum())
    rank = min(rank, most)
    last = len(values)
    kept = be.take(vectors, np.arange(last - 1, last - 1 - rank, -1), 1)
    values = values[:rank].copy()
    root = be.wide(np.sqrt(values))
    ready = {part: be.narrow((product @ kept) / root) for part, product in cross.items()}
    return KernelAxes(
        be,
        standard.columns,
        standard.held,
        rows,
        values,
        kept * root,
        inverse,
        standard.mean,
        standard.nuisance,
        ready,
    )
