"""Training sets of feature spaces, for any weights of the spaces; `banded` says what these are."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from lpact.math.ridge._arrays import Held, Kept, n_rows
from lpact.math.ridge._axes import (
    Axes,
    KernelAxes,
    Moments,
    Parts,
    StandardRows,
    kernel_parts,
    narrow_parts,
)
from lpact.math.ridge._engine import Engine, Loaded
from lpact.math.ridge.compute import Array, Backend, Compute
from lpact.math.ridge.grid import RidgeGrid
from lpact.math.splits import BlockedFolds
from lpact.math.types import BoolArray, FloatArray

_MAX_AT_ONCE = 16
"""Weights that are tried together where targets are processed in several chunks."""


@dataclass(frozen=True)
class SpaceKernels:
    """A training set in row space: one kernel [n_train, n_train] per feature space.

    ``cross`` holds the kernels [r, n_train] of runs of held-out rows with the training rows, ``sizes`` the columns of
    every space. ``narrow`` holds the rows themselves of spaces with at most half as many columns as training rows: of
    the training set, and of the runs.
    """

    standard: StandardRows
    kernels: tuple[Array, ...]
    cross: Mapping[tuple[int, int], tuple[Array, ...]]
    sizes: tuple[int, ...]
    narrow: Mapping[int, tuple[Array, Parts]]

    def axes(
        self, gamma: FloatArray, inverse: FloatArray, most: int, validation: Sequence[slice]
    ) -> KernelAxes:
        """Decomposed with weights γ; ``inverse`` includes √γ."""
        be, used = self.standard.be, [int(g) for g in np.flatnonzero(gamma)]
        keys = [(part.start, part.stop) for part in validation]
        n, size, largest = len(self.kernels[0]), sum(self.sizes[g] for g in used), np.max(gamma)
        if 2 * size <= n:

            def columns(spaces: Sequence[Array]) -> Array:
                roots = [float(np.sqrt(gamma[g])) for g in used]
                return be.concatenate([x * r for x, r in zip(spaces, roots, strict=True)], 1)

            train = columns([self.narrow[g][0] for g in used])
            held = {key: columns([self.narrow[g][1][key] for g in used]) for key in keys}
            found = narrow_parts(be, train, held, most, float(largest))
        else:

            def weighted_sum(kernels: Sequence[Array]) -> Array:
                total = kernels[used[0]] * float(gamma[used[0]])
                for g in used[1:]:
                    total += kernels[g] * float(gamma[g])
                return total

            cross = {key: weighted_sum(self.cross[key]) for key in keys}
            kernel = weighted_sum(self.kernels)
            found = kernel_parts(be, kernel, cross, most, max(n, size), float(largest))
        return KernelAxes(self.standard, *found, inverse)

    @property
    def nbytes(self) -> int:
        """Memory of the kernels."""
        parts = [*self.kernels, *(k for kernels in self.cross.values() for k in kernels)]
        parts += [x for train, held in self.narrow.values() for x in (train, *held.values())]
        return sum(8 * part.shape[0] * part.shape[1] for part in parts)


class SpacesEngine(Engine):
    """Training sets of feature spaces, for any weights.

    At most a third of the memory is for moments and kernels, which all weights share, a sixth for decompositions that
    several chunks of targets need.
    """

    def __init__(
        self,
        spaces: Sequence[Array],
        responses: Array,
        folds: BlockedFolds,
        grid: RidgeGrid,
        compute: Compute | None,
        **options: Any,
    ) -> None:
        compute = compute or Compute()
        features, self.slices = _stacked(compute.open(), spaces, folds.n_rows)
        self.sizes = tuple(n_rows(space) for space in self.slices)
        super().__init__(features, responses, folds, grid, compute=compute, **options)
        self._shared = Kept(compute.memory_bytes // 3)
        self._fitted = Kept(self.decomposition_bytes)
        self._loaded: Loaded | None = None

    def _compress(self) -> int:
        # Blocks are rotated once for all weights: that pays where they have twice as many rows as columns.
        return 2 * self.n_features if self.grid.metric != "spearman" else 0

    def train_weighted(self, held: Held, validation: Sequence[slice], gamma: FloatArray) -> Axes:
        """A training set with weights γ [m] on the feature spaces."""
        by_column = np.repeat(np.sqrt(gamma), self.sizes)
        if self.form == "primal":
            moments: Moments = self._shared.made(held, partial(self.design.moments, held))
            return moments.axes(self.most, by_column)
        kernels: SpaceKernels = self._shared.made(held, partial(self._kernels, held, validation))
        inverse = kernels.standard.inverse.copy()
        inverse[self.n_unpenalised :] *= by_column
        return kernels.axes(gamma, inverse, self.most, validation)

    def _kernels(self, held: Held, validation: Sequence[slice]) -> SpaceKernels:
        standard = self.design.standard_rows(held)
        values, _ = standard.values()
        by_space = [values[:, space] for space in self.slices]
        train = [self.be.take(values, standard.rows, 0) for values in by_space]
        cross = {
            (part.start, part.stop): tuple(
                x[part] @ z.T for x, z in zip(by_space, train, strict=True)
            )
            for part in validation
        }
        narrow = {
            g: (train[g], {key: by_space[g][slice(*key)] + 0.0 for key in cross})
            for g, size in enumerate(self.sizes)
            if 2 * size <= len(standard.rows)
        }
        kernels = tuple(z @ z.T for z in train)
        return SpaceKernels(standard, kernels, cross, self.sizes, narrow)

    def weighted(self, gamma: FloatArray, live: BoolArray, keep_bytes: int) -> Engine:
        """The engine of weights γ [m], sharing all that does not depend on them, for the outer blocks in ``live``."""
        own: Engine = copy.copy(self)
        own.train = partial(self.train_weighted, gamma=gamma)
        own._trained = Kept(keep_bytes)
        own.validation = {
            held: [(outer, rows) for outer, rows in parts if live[outer]]
            for held, parts in self.validation.items()
        }
        return own

    def loaded(self) -> Iterator[Loaded]:
        """All targets in chunks that fit into memory; a single chunk stays loaded."""
        parts = self.chunks(0, self.n_targets)
        for part in parts:
            if self._loaded is None or self._loaded.targets != part:
                self._loaded = None  # free it first
                self._loaded = self.load(part)
            yield self._loaded

    @property
    def decomposition_bytes(self) -> int:
        """Memory for decompositions that are kept from one chunk of targets to the next; none if there is one chunk."""
        return 0 if self.n_targets <= self._chunk_size() else self.compute.memory_bytes // 6

    @property
    def n_at_once(self) -> int:
        """Weights whose decompositions fit into that memory; at least one."""
        n, rank = self.folds.n_rows, min(self.folds.n_rows, self.n_features)
        one = self.be.itemsize * len(self.validation) * rank * (rank + 2 * n // self.folds.n_blocks)
        return max(1, min(_MAX_AT_ONCE, self.decomposition_bytes // max(1, one)))

    def fitted_axes(self, held: Held, rows: Sequence[slice], gamma: FloatArray) -> Axes:
        """A training set with weights γ, from memory or computed."""
        make = partial(self.train_weighted, held, rows, gamma)
        axes: Axes = self._fitted.made((held, gamma.tobytes()), make)
        return axes

    def keep_fits(self) -> None:
        """Keep the fitted training sets from now on, and none from before."""
        self._fitted = Kept(self.compute.memory_bytes // 6)

    def _search_bytes(self) -> int:
        return 16 * _MAX_AT_ONCE * self.folds.n_blocks

    def _fixed_bytes(self, n: int, p: int, item: int) -> int:
        n_sets = len(self.pieces.members)
        if self.form == "primal":
            shared, making = n_sets * 8 * p * p, (len(self.pieces.slices) + 4) * 8 * p * p
        else:
            shared, making = n_sets * len(self.slices) * 8 * n * n, 24 * n * p + 32 * n * n
        features = (8 + item) * n * p + making + min(shared, self._shared.max_bytes)
        return features + self.compute.memory_bytes // 6 + 2 * self.tile_bytes


def _stacked(be: Backend, spaces: Sequence[Array], n: int) -> tuple[Array, tuple[slice, ...]]:
    """The columns of all feature spaces side by side, and the columns of each space."""
    if not spaces:
        raise ValueError("at least one feature space is needed")
    for i, space in enumerate(spaces):
        if space.ndim != 2 or space.shape[0] != n or space.shape[1] == 0:
            raise ValueError(
                f"feature space {i} must be [{n}, p] with at least one column, got {tuple(space.shape)}"
            )
    edges = np.cumsum([0, *(space.shape[1] for space in spaces)]).tolist()
    slices = tuple(slice(*edge) for edge in pairwise(edges))
    if all(isinstance(space, np.ndarray) for space in spaces):
        return np.concatenate(list(spaces), axis=1), slices
    return be.concatenate([be.wide(space) for space in spaces], 1), slices
