"""Where training sets come from: features that all of them share, or features fitted anew on each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from lpact.math.ridge.axes import (
    Axes,
    LinearMap,
    Training,
    varying_columns,
)
from lpact.math.ridge.columns import joined_columns
from lpact.math.ridge.compute import Array, Backend
from lpact.math.ridge.kernel import StandardRows, standardised
from lpact.math.ridge.primal import Block, ColumnMoments, row_by_row
from lpact.math.ridge.responses import Responses
from lpact.math.ridge.rows import Held, Pieces
from lpact.math.types import BoolArray, FloatArray, IntArray

Form: TypeAlias = Literal["auto", "primal", "kernel"]


FittedFeatures: TypeAlias = Callable[[IntArray], FloatArray]
"""``features(train_rows)`` gives [n, p] for all rows, with every parameter fitted on ``train_rows`` only."""


_THIN = 64
"""Pieces with fewer rows keep no Gram matrix; they are multiplied where they are needed."""


_CARRIED = 1e3
"""n·mean² over the centred sum of squares above which columns are centred row by row."""


class Design(ABC):
    """Features of all rows, from which training sets are made."""

    @abstractmethod
    def train(self, held: Held, validation: Sequence[slice]) -> Axes:
        """The training set that leaves ``held`` out, ready for the rows in ``validation``."""


class SharedDesign(Design):
    """The same features for all training sets: their Gram matrices are added up from shared pieces."""

    def __init__(
        self,
        be: Backend,
        features: Array,
        unpenalised: Array | None,
        pieces: Pieces,
        *,
        form: Form,
        most: int,
        linear_map: LinearMap | None = None,
        compress: int = 0,
    ) -> None:
        self.be = be
        self.pieces = pieces
        self.most = most
        self.linear_map = linear_map
        self.compress = compress
        self.raw = (features, unpenalised)
        self.columns, self.n_unpenalised = joined_columns(be, features, unpenalised)
        smallest = min(pieces.n_rows.values())
        n_features = self.columns.values.shape[1] - self.n_unpenalised
        self.form = form if form != "auto" else ("primal" if n_features <= smallest else "kernel")
        if linear_map is not None:
            self.form = "primal"
        self._grams: dict[int, Array] = {}
        self._sums: list[FloatArray] = []
        self._low: list[FloatArray] = []
        self._high: list[FloatArray] = []
        self._blocks: dict[tuple[int, int], Block] = {}
        for piece in pieces.slices:
            part = self.columns.values[piece]
            self._sums.append(be.sums(part, 0))
            low, high = be.minmax(part, 0)
            self._low.append(low)
            self._high.append(high)

    def train(self, held: Held, validation: Sequence[slice]) -> Axes:
        """In the form that was chosen."""
        if self.form == "kernel":
            return self.standard_rows(held).axes(self.most, validation)
        return self.moments(held).axes(self.linear_map, self.most)

    def moments(self, held: Held) -> ColumnMoments:
        """By adding up pieces; row by row where a column's mean is far larger than its spread."""
        members = list(self.pieces.members[held])
        n_rows = self.pieces.n_rows[held]
        mean = np.sum([self._sums[i] for i in members], axis=0) / n_rows
        distinct = self._distinct(held)
        gram = self._gram(members) - n_rows * _outer(self.be, mean)
        power = self.be.host(gram.diagonal())
        if (distinct & (n_rows * mean**2 > _CARRIED * power)).any():
            return row_by_row(self.be, self.raw, held, self.pieces.rows(held))
        raw_mean = mean + self.columns.offset * self.columns.factor
        varying = varying_columns(power / n_rows, raw_mean, distinct, n_rows)
        training = Training(n_rows, self.n_unpenalised, self.be.wide(mean), gram, varying)
        return ColumnMoments(self.be, self, self.columns, held, training, mean)

    def standard_rows(self, held: Held) -> StandardRows:
        """All rows, standardised on the training rows."""
        rows = self.pieces.rows(held)
        return standardised(
            self.be, self.columns, self.n_unpenalised, held, rows, self._distinct(held)
        )

    def _distinct(self, held: Held) -> BoolArray:
        """Columns whose largest and smallest value on the training rows differ, [P]."""
        members = self.pieces.members[held]
        high = np.max([self._high[i] for i in members], axis=0)
        low = np.min([self._low[i] for i in members], axis=0)
        differ: BoolArray = high != low
        return differ

    def _gram(self, members: list[int]) -> Array:
        """Sum of outer products over pieces, [P, P] wide; a fresh array."""
        be, slices = self.be, self.pieces.slices
        total = None
        thin = [slices[i] for i in members if _rows(slices[i]) < _THIN]
        if thin:
            rows = be.concatenate([be.wide(self.columns.values[piece]) for piece in thin], 0)
            total = rows.T @ rows
        for i in members:
            if _rows(slices[i]) < _THIN:
                continue
            if i not in self._grams:
                part = be.wide(self.columns.values[slices[i]])
                self._grams[i] = part.T @ part
            if total is None:
                total = self._grams[i] + 0.0
            else:
                total += self._grams[i]
        return total

    def forget_grams(self) -> None:
        """Free the pieces' Gram matrices, once all training sets are made."""
        self._grams.clear()

    def cross(
        self, responses: Responses, held: Held, mean: FloatArray, columns: IntArray | None = None
    ) -> Array:
        """Σ (y − μ)(x − m) over a training set, [q, P], of some columns of the responses or all.

        ``mean`` is μ of those columns. Products are taken within pieces, around the pieces' means, and joined by
        Σ_b n_b (ȳ_b − μ)(x̄_b − m), so that drift between pieces costs no digits.
        """
        be, slices, members = self.be, self.pieces.slices, self.pieces.members[held]
        sizes = np.array([_rows(slices[i]) for i in members], dtype=np.float64)
        x_means = np.stack([self._sums[i] for i in members]) / sizes[:, None]
        y_means = responses.piece_means[list(members)]
        y_means = y_means if columns is None else y_means[:, columns]
        x_between = x_means - sizes @ x_means / sizes.sum()
        y_between = (y_means - mean) * sizes[:, None]
        total = be.narrow(be.wide(np.ascontiguousarray(y_between.T)) @ be.wide(x_between))
        thin = [i for i in members if _rows(slices[i]) < _THIN]
        if thin:
            y = be.concatenate([responses.centred_piece(i) for i in thin], 1)
            y = y if columns is None else be.take(y, columns, 0)
            total += y @ be.concatenate([self._centred_piece(i) for i in thin], 0)
        for i in members:
            if _rows(slices[i]) < _THIN:
                continue
            if i not in responses.cross:
                responses.cross[i] = responses.centred_piece(i) @ self._centred_piece(i)
            own = responses.cross[i]
            total += own if columns is None else be.take(own, columns, 0)
        return total

    def _centred_piece(self, piece: int) -> Array:
        """Rows of a piece less their mean."""
        rows = self.pieces.slices[piece]
        mean = self._sums[piece] / _rows(rows)
        return self.columns.values[rows] - self.be.narrow(mean)

    def block(self, rows: slice) -> Block:
        """Held-out rows less their mean, shared by all training sets."""
        key = (rows.start, rows.stop)
        if key not in self._blocks:
            self._blocks[key] = Block(self.be, self.columns.values[rows], self.compress)
        return self._blocks[key]


class FittedDesign(Design):
    """Features that are themselves fitted on training rows: every training set has its own."""

    def __init__(
        self,
        be: Backend,
        features: FittedFeatures,
        unpenalised: Array | None,
        pieces: Pieces,
        *,
        form: Form,
        most: int,
    ) -> None:
        self.be = be
        self.features = features
        self.unpenalised = unpenalised
        self.pieces = pieces
        self.form = form
        self.most = most

    def train(self, held: Held, validation: Sequence[slice]) -> Axes:
        """Fit the features on the training rows, then decompose them."""
        rows = self.pieces.rows(held)
        features = np.asarray(self.features(rows), dtype=np.float64)
        n_rows = self.pieces.n_all
        if features.ndim != 2 or len(features) != n_rows:
            raise ValueError(
                f"a design function must return features [{n_rows}, p] for all rows, got {features.shape}"
            )
        kernel = self.form == "kernel" or (self.form == "auto" and features.shape[1] > len(rows))
        if not kernel:
            moments = row_by_row(self.be, (features, self.unpenalised), held, rows)
            return moments.axes(None, self.most)
        columns, m = joined_columns(self.be, features, self.unpenalised)
        low, high = self.be.minmax(self.be.take(columns.values, rows, 0), 0)
        made = standardised(self.be, columns, m, held, rows, low != high)
        axes = made.axes(self.most, validation)
        axes.own_columns = True
        return axes


def _rows(piece: slice) -> int:
    return int(piece.stop - piece.start)


def _outer(be: Backend, mean: FloatArray) -> Array:
    wide = be.wide(mean)
    return wide[:, None] * wide
