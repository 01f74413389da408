"""Features of all rows, from which training sets are made: shared by all sets, or fitted on each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from lpact.math.ridge._arrays import (
    CENTRING_LIMIT,
    Held,
    Pieces,
    Responses,
    joined_columns,
    n_rows,
)
from lpact.math.ridge._axes import (
    Axes,
    Block,
    Moments,
    StandardRows,
    moments_by_row,
    standard_rows,
    varying_columns,
)
from lpact.math.ridge.compute import Array, Backend
from lpact.math.types import BoolArray, FloatArray, IntArray

Form: TypeAlias = Literal["auto", "primal", "kernel"]

FittedFeatures: TypeAlias = Callable[[IntArray], FloatArray]
"""``features(train_rows)`` returns [n, p] for all rows, with every parameter fitted on ``train_rows`` only."""

_THIN = 64
"""Pieces with fewer rows keep no Gram matrix; they are multiplied when they are needed."""


class SharedDesign:
    """The same features for all training sets, whose Gram matrices are sums over shared pieces."""

    def __init__(
        self,
        be: Backend,
        features: Array,
        unpenalised: Array | None,
        pieces: Pieces,
        *,
        form: Form,
        most: int,
        compress: int = 0,
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
        return standard_rows(self.be, self.columns, self.n_unpenalised, held, rows, distinct)

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


class FittedDesign:
    """Features that are fitted on the training rows: every training set has its own."""

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
        self.be, self.features, self.unpenalised = be, features, unpenalised
        self.pieces, self.form, self.most = pieces, form, most

    def train(self, held: Held, validation: Sequence[slice]) -> Axes:
        """Fit the features on the training rows, then decompose them."""
        rows, n = self.pieces.rows(held), self.pieces.folds.n_rows
        features = np.asarray(self.features(rows), dtype=np.float64)
        if features.ndim != 2 or len(features) != n:
            raise ValueError(
                f"a design function must return features [{n}, p] for all rows, got {features.shape}"
            )
        kernel = self.form == "kernel" or (self.form == "auto" and features.shape[1] > len(rows))
        if not kernel:
            return moments_by_row(self.be, features, self.unpenalised, held, rows).axes(self.most)
        columns, m = joined_columns(self.be, features, self.unpenalised)
        low, high = self.be.minmax(self.be.take(columns.values, rows, 0), 0)
        axes = standard_rows(self.be, columns, m, held, rows, low != high).axes(
            self.most, validation
        )
        axes.own_columns = True
        return axes
