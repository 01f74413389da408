"""Inputs of a readout: training rows in pieces, columns scaled for exact sums, and responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from lpact.math.ridge.compute import Array, Backend
from lpact.math.splits import BlockedFolds
from lpact.math.types import BoolArray, FloatArray, IntArray

Held: TypeAlias = frozenset[int]
"""Blocks left out of a training set. The set of outer block o and validation block i is that of i and o."""

Form: TypeAlias = Literal["auto", "primal", "kernel"]

FittedFeatures: TypeAlias = Callable[[IntArray], FloatArray]
"""``features(train_rows)`` returns [n, p] for all rows, with every parameter fitted on ``train_rows`` only."""

CENTRING_LIMIT = 1e3
"""n·mean² over the centred sum of squares above which columns are centred row by row."""

_EPS = float(np.finfo(np.float64).eps)
_PROBES = 31
_FAR = 30.0
"""Interquartile ranges of the probes between median and mean above which outliers dominate the mean."""


@dataclass(frozen=True)
class Pieces:
    """Disjoint contiguous pieces of rows, and the pieces of every training set.

    Rows are cut at all edges of all training sets, so that each set is a *sum* of pieces. Nothing is subtracted, which
    would leave rounding errors where a feature varies only outside a training set.
    """

    slices: tuple[slice, ...]
    members: dict[Held, tuple[int, ...]]
    n_rows: dict[Held, int]
    folds: BlockedFolds

    def rows(self, held: Held) -> IntArray:
        """Rows of a training set; read-only."""
        return self.folds.train_rows(*held)


def cut(folds: BlockedFolds, sets: Iterable[Held]) -> Pieces:
    """Cut the rows so that every training set in ``sets`` is a union of pieces."""
    return _cut(folds, tuple(sets))


@lru_cache(maxsize=64)
def _cut(folds: BlockedFolds, sets: tuple[Held, ...]) -> Pieces:
    runs = {held: contiguous_runs(folds.train_rows(*held)) for held in sets}
    edges = sorted({e for parts in runs.values() for p in parts for e in (p.start, p.stop)})
    slices = [slice(start, stop) for start, stop in pairwise(edges)]
    members = {
        held: [
            i
            for i, piece in enumerate(slices)
            if any(part.start <= piece.start and piece.stop <= part.stop for part in parts)
        ]
        for held, parts in runs.items()
    }
    used = sorted({i for pieces in members.values() for i in pieces})
    place = {old: new for new, old in enumerate(used)}
    return Pieces(
        tuple(slices[i] for i in used),
        {held: tuple(place[i] for i in pieces) for held, pieces in members.items()},
        {held: sum(n_rows(part) for part in parts) for held, parts in runs.items()},
        folds,
    )


def contiguous_runs(rows: IntArray) -> list[slice]:
    """Contiguous runs of the increasing row numbers of a training set."""
    if len(rows) == 0:
        raise ValueError("a training set is empty: use fewer blocks or a smaller gap")
    runs = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
    return [slice(int(run[0]), int(run[-1]) + 1) for run in runs]


def n_rows(rows: slice) -> int:
    """Number of rows in a slice."""
    return int(rows.stop - rows.start)


def nested_sets(n_blocks: int) -> list[Held]:
    """Training sets of a nested readout: every pair of blocks left out, then every block."""
    pairs = [frozenset(pair) for pair in combinations(range(n_blocks), 2)]
    return pairs + [frozenset({block}) for block in range(n_blocks)]


def nested_validation(folds: BlockedFolds) -> dict[Held, list[tuple[int, slice]]]:
    """For every pair of blocks left out: each as outer block, with the rows of the other that may validate."""
    parts = {
        held: [
            (outer, folds.validation_rows(inner, outer)) for outer, inner in (sorted(held), sorted(held, reverse=True))
        ]
        for held in nested_sets(folds.n_blocks)
        if len(held) == 2
    }
    return {held: [part for part in own if n_rows(part[1])] for held, own in parts.items()}


class Kept(dict[Any, Any]):
    """Results with ``nbytes`` that are kept as long as all of them fit into a limit."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self.max_bytes, self.n_bytes = max_bytes, 0

    def made(self, key: Any, make: Callable[[], Any]) -> Any:
        """The result of a key, from memory or made."""
        if key in self:
            return self[key]
        value = make()
        if self.n_bytes + value.nbytes <= self.max_bytes:
            self.n_bytes += value.nbytes
            self[key] = value
        return value


@dataclass(frozen=True)
class Columns:
    """Columns x' = (x − offset) · factor [n, p] in the working precision. A constant column is zero.

    Sums and squares of x' lose no digits. Standardisation on training rows undoes offset and factor, so that neither
    carries anything from held-out rows into a fit, unless the training rows are below 1e-150 of a held-out outlier.
    """

    values: Array
    offset: FloatArray
    factor: FloatArray


def scaled_columns(be: Backend, x: Array, n_layers: int = 1, name: str = "features") -> Columns:
    """Subtract an offset near the middle of every column; scale its largest value to about 1 by a power of two.

    The offset is the mean, unless a few distant rows dominate it: then the median of a few probes, so that a held-out
    outlier does not cost the training rows their last digits. With several layers (column l · p + j is column j of
    layer l), the layers of a column share a factor, and thus their physical unit.
    """
    wide = be.wide(x)
    n = wide.shape[0]
    mean = be.sums(wide, 0) / n
    if not np.isfinite(mean).all():
        check_finite(be, wide, name)
    probes = be.host(be.take(wide, np.arange(_PROBES) * (n - 1) // (_PROBES - 1), 0))
    probes = np.sort(probes, axis=0)
    middle, spread = probes[_PROBES // 2], probes[-_PROBES // 4] - probes[_PROBES // 4]
    off = ~(np.abs(mean - middle) <= _FAR * spread)
    offset = np.where(off, middle, mean)
    shifted = wide - be.wide(offset)
    low, high = be.minmax(shifted, 0)
    constant = np.flatnonzero(low == high)
    if len(constant):
        offset[constant] = probes[0, constant]
        shifted[:, be.index(constant)] = 0.0
        low[constant] = high[constant] = 0.0
    peak = np.maximum(np.abs(low), np.abs(high))
    peak = np.tile(peak.reshape(n_layers, -1).max(axis=0), n_layers)
    if not np.isfinite(peak).all():
        check_finite(be, wide, name)
        raise ValueError(f"differences between {name} overflow; rescale them")
    factor = power_of_two(peak)
    shifted *= be.wide(factor)
    return Columns(be.narrow(shifted), offset, factor)


def varying_columns(variance: FloatArray, raw_mean: FloatArray, distinct: BoolArray, n: int) -> BoolArray:
    """Columns whose variance on n training rows exceeds the rounding error of their mean.

    ``variance`` and ``raw_mean`` are in the same units; ``distinct``: max ≠ min, exactly.
    """
    kept: BoolArray = distinct & (variance > (n * _EPS * raw_mean) ** 2)
    return kept


class Block:
    """Held-out rows [r, P], centred; with more rows than ``compress`` > 0, their coordinates in a basis."""

    def __init__(self, be: Backend, values: Array, compress: int) -> None:
        mean = be.sums(values, 0) / values.shape[0]
        self.mean = be.narrow(mean)
        centred = values - self.mean
        low, high = be.minmax(values, 0)
        constant = np.flatnonzero(low == high)
        if len(constant):
            centred[:, be.index(constant)] = 0.0  # remove the rounding error of the mean
        self.compressed = bool(compress) and values.shape[0] > compress
        self.centred = be.upper(centred) if self.compressed else centred


def power_of_two(peak: FloatArray) -> FloatArray:
    """Factors that scale ``peak`` into [½, 1); 1 where it is zero."""
    factor: FloatArray = np.ldexp(1.0, -np.frexp(np.where(peak > 0.0, peak, 1.0))[1])
    return factor


def joined_columns(be: Backend, features: Array, unpenalised: Array | None) -> tuple[Columns, int]:
    """Scaled columns, the unpenalised ones first, and their number."""
    columns = scaled_columns(be, features)
    if unpenalised is None or unpenalised.shape[1] == 0:
        return columns, 0
    first = scaled_columns(be, unpenalised, name="unpenalised columns")
    joined = Columns(
        be.narrow(be.concatenate([first.values, columns.values], 1)),
        np.concatenate([first.offset, columns.offset]),
        np.concatenate([first.factor, columns.factor]),
    )
    return joined, len(first.offset)


def check_finite(be: Backend, x: Array, name: str) -> None:
    """Raise `ValueError` with the position of the first value that is NaN or infinite."""
    if be.all_finite(x):
        return
    values = be.host(x)
    row, column = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
    raise ValueError(
        f"{name} must be finite, got {values[row, column]} at row {row}, column {column}; "
        "remove such rows or columns, or impute the values"
    )


class Responses:
    """A chunk of response columns [n, q], scaled, and stored as rows [q, n] so that sums run along memory.

    All lags of a target share a factor. ``cross`` has the products of pieces with a shared design, [q, P].
    """

    def __init__(self, be: Backend, values: Array, pieces: Pieces, n_lags: int) -> None:
        columns = scaled_columns(be, values, n_lags, "responses")
        self.be, self.pieces = be, pieces
        self.offset, self.factor = columns.offset, columns.factor
        self.n_columns = len(columns.offset)
        self.rows: Array = be.narrow(columns.values.T)
        self.cross: dict[int, Array] = {}
        parts = [self.rows[:, piece] for piece in pieces.slices]
        self._sums = np.stack([be.sums(part, 1) for part in parts])
        self._squares = np.stack([be.host(be.row_dots(part, part)) for part in parts])
        sizes = np.array([n_rows(piece) for piece in pieces.slices])
        self.piece_means: FloatArray = self._sums / sizes[:, None]
        self._blocks: dict[tuple[int, int], tuple[Array, FloatArray, FloatArray]] = {}
        self._held: dict[tuple[int, int], Array] = {}
        self._constant: dict[Held, BoolArray] = {}

    def constant(self, held: Held) -> BoolArray:
        """Which columns have a single value on a training set, exactly, [q]."""
        if held not in self._constant:
            parts = [self.rows[:, self.pieces.slices[i]] for i in self.pieces.members[held]]
            low, high = zip(*(self.be.minmax(part, 1) for part in parts), strict=True)
            self._constant[held] = np.min(low, axis=0) == np.max(high, axis=0)
        return self._constant[held]

    def training_mean(self, held: Held) -> tuple[FloatArray, BoolArray]:
        """Mean over a training set [q], and which columns must be centred row by row."""
        member = np.zeros(len(self.pieces.slices))
        member[list(self.pieces.members[held])] = 1.0
        n = self.pieces.n_rows[held]
        mean: FloatArray = member @ self._sums / n
        squares = member @ self._squares
        by_row: BoolArray = n * mean**2 > (1.0 - 1.0 / CENTRING_LIMIT) * squares
        return mean, by_row & (squares > 0.0)

    def centred_piece(self, piece: int) -> Array:
        """Rows of a piece minus their mean, [q, r]."""
        mean = self.be.narrow(self.piece_means[piece])
        return self.rows[:, self.pieces.slices[piece]] - mean[:, None]

    def centred_training(self, held: Held, columns: IntArray | None) -> tuple[Array, FloatArray]:
        """Rows of a training set minus their mean, [q, n_train], and that mean [q]; exactly zero where constant."""
        be = self.be
        rows = self.rows if columns is None else be.take(self.rows, columns, 0)
        parts = [rows[:, self.pieces.slices[i]] for i in self.pieces.members[held]]
        y = be.concatenate(parts, 1)
        mean = be.sums(y, 1) / y.shape[1]
        centred = y - be.narrow(mean)[:, None]
        low, high = be.minmax(centred, 1)
        centred[be.index(np.flatnonzero(low == high))] = 0.0
        return centred, mean

    def block(self, rows: slice) -> tuple[Array, FloatArray, FloatArray]:
        """Held-out rows minus their mean [q, r], that mean [q], and their sum of squares [q], NaN where constant."""
        key = (rows.start, rows.stop)
        if key not in self._blocks:
            part = self.rows[:, rows]
            mean = self.be.sums(part, 1) / part.shape[1]
            centred = part - self.be.narrow(mean)[:, None]
            low, high = self.be.minmax(part, 1)
            total = self.be.host(self.be.row_dots(centred, centred))
            self._blocks[key] = centred, mean, np.where(low == high, np.nan, total)
        return self._blocks[key]

    def held_products(self, rows: slice, columns: Array) -> Array:
        """Held-out rows, minus their mean, times the same rows of all columns [r, P] of a shared design: [q, P]."""
        if rows in self.pieces.slices and (piece := self.pieces.slices.index(rows)) in self.cross:
            return self.cross[piece]
        key = (rows.start, rows.stop)
        if key not in self._held:
            self._held[key] = self.block(rows)[0] @ columns
        return self._held[key]


@dataclass(frozen=True)
class Projected:
    """Responses in the principal axes of a training set."""

    coordinates: Array  # [q, k]: b of every column
    mean: Array  # [q]: training mean μ
    nuisance: Array | None  # [q, m]: weights of the unpenalised columns in a model without features
