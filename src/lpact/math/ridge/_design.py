"""Training sets of features that all sets share, and of features that are fitted on each set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from lpact.math.ridge._arrays import CENTRING_LIMIT, Held, Pieces, Responses, joined_columns, n_rows
from lpact.math.ridge._axes import (
    Axes,
    Block,
    Moments,
    StandardRows,
    moments_by_row,
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
        raise ValueError(
            f"a design function must return features [{n}, p] for all rows, got {fitted.shape}"
        )
    if form == "primal" or (form == "auto" and fitted.shape[1] <= len(rows)):
        return moments_by_row(be, fitted, unpenalised, held, rows).axes(most)
    columns, m = joined_columns(be, fitted, unpenalised)
    low, high = be.minmax(be.take(columns.values, rows, 0), 0)
    axes = StandardRows(be, columns, m, held, rows, low != high).axes(most, validation)
    axes.own_columns = True
    return axes
