"""Training sets in column space: one Gram matrix of columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lpact.math.ridge.axes import (
    Axes,
    HeldOut,
    LinearMap,
    Projected,
    Training,
    principal_axes,
    raw_weights,
    varying_columns,
)
from lpact.math.ridge.columns import Columns, check_finite, power_of_two
from lpact.math.ridge.compute import Array, Backend
from lpact.math.ridge.responses import Responses
from lpact.math.ridge.rows import Held
from lpact.math.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from lpact.math.ridge.design import SharedDesign


class Block:
    """Held-out rows [r, P], centred on themselves; with more rows than ``compress``, their coordinates in a basis."""

    def __init__(self, be: Backend, values: Array, compress: int) -> None:
        mean = be.sums(values, 0) / values.shape[0]
        self.mean = be.narrow(mean)
        centred = values - self.mean
        low, high = be.minmax(values, 0)
        constant = np.flatnonzero(low == high)
        if len(constant):
            centred[:, be.index(constant)] = 0.0  # not what rounding of the mean leaves
        self.compressed = bool(compress) and values.shape[0] > compress
        self.centred = be.upper(centred) if self.compressed else centred


@dataclass(frozen=True)
class ColumnMoments:
    """A training set before it is decomposed in column space."""

    be: Backend
    design: SharedDesign | None  # None where the columns are not those of a shared design
    columns: Columns
    held: Held
    training: Training
    mean: FloatArray

    def axes(
        self, linear_map: LinearMap | None, most: int, weights: FloatArray | None = None
    ) -> PrimalAxes:
        """Decomposed, with ``weights`` [p] on the standardised features where they are given."""
        eigenvalues, axes, solve = principal_axes(
            self.be, self.training, self.columns, linear_map, most, weights
        )
        return PrimalAxes(
            self.be,
            self.design,
            self.columns,
            self.held,
            self.training.n_rows,
            eigenvalues,
            axes,
            self.mean,
            solve,
        )


class PrimalAxes(Axes):
    """Axes in column space."""

    form = "primal"

    def __init__(
        self,
        be: Backend,
        design: SharedDesign | None,
        columns: Columns,
        held: Held,
        n_rows: int,
        eigenvalues: FloatArray,
        axes: Array,
        mean: FloatArray,
        solve: Array | None,
    ) -> None:
        super().__init__(be, columns, eigenvalues, n_rows)
        self.design, self.held = design, held
        self.axes = be.narrow(axes)
        self.mean = be.narrow(mean)
        self.n_unpenalised = 0 if solve is None else solve.shape[0]
        self.solve = None if solve is None else be.narrow(solve)

    def project(self, responses: Responses, columns: IntArray | None = None) -> Projected:
        """From the pieces' products with the responses."""
        be = self.be
        if self.design is None:
            return self._project_rows(responses, columns)
        mean, carried = responses.training_mean(self.held)
        if columns is not None:
            mean, carried = mean[columns], carried[columns]
        cross = self.design.cross(responses, self.held, mean, columns)
        if carried.any():
            bad = np.flatnonzero(carried)
            own = bad if columns is None else columns[bad]
            exact, exact_mean = self._row_products(responses, own)
            cross[be.index(bad)] = exact
            mean[bad] = exact_mean
        return self._projected(cross, mean, compared=columns is None)

    def _projected(self, cross: Array, mean: FloatArray, *, compared: bool = False) -> Projected:
        """Rotated; where all columns are asked for, only to be compared, in the backend's quickest way."""
        nuisance = None
        if self.solve is not None:
            nuisance = cross[:, : self.n_unpenalised] @ self.solve
        coordinates = self.be.compared(cross, self.axes) if compared else cross @ self.axes
        return Projected(coordinates, self.be.narrow(mean), nuisance)

    def _row_products(self, responses: Responses, columns: IntArray) -> tuple[Array, FloatArray]:
        """Σ (y − μ)(x − m) over the training rows, [q, P], and μ, both row by row."""
        y = responses.take_training(self.held, columns)
        mean = self.be.sums(y, 1) / self.n_rows
        pieces = responses.pieces
        parts = [self.columns.values[pieces.slices[i]] for i in pieces.members[self.held]]
        x = self.be.concatenate(parts, 0) - self.mean
        y = y - self.be.narrow(mean)[:, None]
        low, high = self.be.minmax(y, 1)
        constant = np.flatnonzero(low == high)
        if len(constant):
            y[self.be.index(constant)] = 0.0
        return y @ x, mean

    def _project_rows(self, responses: Responses, columns: IntArray | None) -> Projected:
        every = np.arange(responses.n_columns) if columns is None else columns
        return self._projected(*self._row_products(responses, every))

    def held_out(self, rows: slice) -> HeldOut:
        """The design's block, rotated."""
        shared = self.design
        block = shared.block(rows) if shared else Block(self.be, self.columns.values[rows], 0)
        shift = block.mean - self.mean
        m = self.n_unpenalised
        return HeldOut(
            rows,
            self.be.upper_times(block.centred, self.axes)
            if block.compressed
            else block.centred @ self.axes,
            shift @ self.axes,
            (self.columns.values[rows], self.axes) if block.compressed else None,
            block.centred[:, :m] if m else None,
            shift[:m] if m else None,
        )

    @cached_property
    def used(self) -> BoolArray:
        """Columns whose row of the axes is not zero, and unpenalised ones."""
        low, high = self.be.minmax(self.axes, 1) if self.rank else (np.zeros(1), np.zeros(1))
        used: BoolArray = np.broadcast_to((low != 0.0) | (high != 0.0), self.axes.shape[:1]).copy()
        used[: self.n_unpenalised] = True
        return used

    def scores(self, rows: slice) -> tuple[Array, Array | None]:
        """Rows less the training mean, rotated."""
        shifted = self.columns.values[rows] - self.mean
        m = self.n_unpenalised
        scores = shifted @ self.axes
        if self.stand_still(rows):
            scores[:] = scores[:1] + 0.0
        return scores, shifted[:, :m] if m else None

    def weights(self, coefficients: Array, nuisance: Array | None) -> tuple[Array, Array, Array]:
        """Back to raw units."""
        return raw_weights(
            self.be,
            self.columns,
            coefficients @ self.axes.T,
            nuisance,
            self.n_unpenalised,
            self.mean,
        )

    @property
    def nbytes(self) -> int:
        """The axes."""
        own = self.columns.values.shape[0] if self.design is None else 0
        return int(self.be.itemsize * self.axes.shape[0] * (self.axes.shape[1] + own))


def row_by_row(
    be: Backend, raw: tuple[Array, Array | None], held: Held, rows: IntArray
) -> ColumnMoments:
    """From centred training rows, for features of their own or columns that sums over pieces would blur."""
    features, unpenalised = raw
    joined = be.wide(features)
    m = 0
    if unpenalised is not None and unpenalised.shape[1]:
        joined = be.concatenate([be.wide(unpenalised), joined], 1)
        m = unpenalised.shape[1]
    # Offset and factor come from the training rows alone.
    train = be.take(joined, rows, 0)
    offset = be.sums(train, 0) / len(rows)
    low, high = be.minmax(train, 0)
    peak = np.maximum(high - offset, offset - low)
    if not np.isfinite(peak).all() or not be.all_finite(joined):
        check_finite(be, joined, "features")
    factor = power_of_two(peak)
    shifted = (joined - be.wide(offset)) * be.wide(factor)
    values = be.take(shifted, rows, 0)
    mean = be.sums(values, 0) / len(rows)  # what rounding left of it
    values -= be.wide(mean)
    gram = values.T @ values
    power = be.host(gram.diagonal())
    varying = varying_columns(power / len(rows), offset * factor, low != high, len(rows))
    training = Training(len(rows), m, be.wide(mean), gram, varying)
    columns = Columns(be.narrow(shifted), offset, factor)
    return ColumnMoments(be, None, columns, held, training, mean)
