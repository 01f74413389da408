"""A chunk of response columns: tame, transposed, with what training sets need of them."""

from __future__ import annotations

import numpy as np

from lpact.math.ridge.columns import tame
from lpact.math.ridge.compute import Array, Backend
from lpact.math.ridge.rows import Held, Pieces
from lpact.math.types import BoolArray, FloatArray, IntArray

CARRIED = 1e3
"""Σy² over the centred sum of squares above which a column is centred row by row."""


class Responses:
    """Columns [n, q] of responses, kept as rows [q, n] so that sums run along memory.

    Values are y′ = (y − offset) · factor, with one factor for all lags of a target.
    """

    def __init__(self, be: Backend, values: Array, pieces: Pieces, n_lags: int) -> None:
        columns = tame(be, values, n_lags, "responses")
        self.be = be
        self.offset: FloatArray = columns.offset
        self.factor: FloatArray = columns.factor
        self.rows: Array = be.narrow(columns.values.T)
        self.pieces = pieces
        self.cross: dict[int, Array] = {}
        """Products of every piece with the columns, [q, P], put here by a design that shares pieces."""
        sums, squares = [], []
        for piece in pieces.slices:
            part = self.rows[:, piece]
            sums.append(be.sums(part, 1))
            squares.append(be.host(be.row_dots(part, part)))
        self._sums, self._squares = np.stack(sums), np.stack(squares)
        sizes = np.array([piece.stop - piece.start for piece in pieces.slices])
        self.piece_means: FloatArray = self._sums / sizes[:, None]
        self._blocks: dict[tuple[int, int], tuple[Array, FloatArray, FloatArray]] = {}
        self._held: dict[tuple[int, int], Array] = {}

    @property
    def n_columns(self) -> int:
        """Number of columns q."""
        return len(self.offset)

    def training_mean(self, held: Held) -> tuple[FloatArray, BoolArray]:
        """Mean over a training set [q], and which columns must be centred row by row."""
        member = np.zeros(len(self.pieces.slices))
        member[list(self.pieces.members[held])] = 1.0
        n_rows = self.pieces.n_rows[held]
        mean: FloatArray = member @ self._sums / n_rows
        squares = member @ self._squares
        carried: BoolArray = n_rows * mean**2 > (1.0 - 1.0 / CARRIED) * squares
        return mean, carried & (squares > 0.0)

    def centred_piece(self, piece: int) -> Array:
        """Rows of a piece less their mean, [q, r]."""
        mean = self.be.narrow(self.piece_means[piece])
        return self.rows[:, self.pieces.slices[piece]] - mean[:, None]

    def take_training(self, held: Held, columns: IntArray | None = None) -> Array:
        """Rows of a training set, [q, n_train]."""
        rows = self.rows if columns is None else self.be.take(self.rows, columns, 0)
        parts = [rows[:, self.pieces.slices[i]] for i in self.pieces.members[held]]
        return self.be.concatenate(parts, 1)

    def block(self, rows: slice) -> tuple[Array, FloatArray, FloatArray]:
        """Held-out rows less their mean [q, r], that mean [q], and their sum of squares [q], NaN where constant."""
        key = (rows.start, rows.stop)
        if key not in self._blocks:
            part = self.rows[:, rows]
            mean = self.be.sums(part, 1) / part.shape[1]
            centred = part - self.be.narrow(mean)[:, None]
            low, high = self.be.minmax(part, 1)
            total = self.be.host(self.be.row_dots(centred, centred))
            total = np.where(low == high, np.nan, total)
            self._blocks[key] = centred, mean, total
        return self._blocks[key]

    def held_products(self, rows: slice, columns: Array) -> Array:
        """Held-out rows, less their mean, times the same rows of all columns [r, P] of a shared design: [q, P]."""
        if rows in self.pieces.slices and (piece := self.pieces.slices.index(rows)) in self.cross:
            return self.cross[piece]
        key = (rows.start, rows.stop)
        if key not in self._held:
            self._held[key] = self.block(rows)[0] @ columns
        return self._held[key]
