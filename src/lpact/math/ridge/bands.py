"""Feature spaces with a weight each: which weights to try, and training sets that share what does not depend on them.

Weights γ ≥ 0, one per feature space, multiply the standardised columns of space g by √γ_g. Ridge with penalty a on
these is ridge with penalty a / γ_g on the columns of space g; γ_g = 0 leaves the space out. Whatever γ is, a training
set needs one decomposition: of the columns' Gram matrix, with its blocks scaled by √(γ_g γ_h), or of K = Σ_g γ_g K_g,
K_g = Z_g Z_gᵀ. Moments and kernels K_g are made once for all γ, as far as the memory allows.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from lpact.math.ridge.axes import Axes, LinearMap
from lpact.math.ridge.compute import Array, Backend, Compute, TooLittleMemory
from lpact.math.ridge.design import Design, FittedFeatures, Form, SharedDesign
from lpact.math.ridge.engine import Engine, Loaded
from lpact.math.ridge.grid import Metric, RidgeGrid
from lpact.math.ridge.kernel import KernelAxes, StandardRows, kernel_axes
from lpact.math.ridge.primal import ColumnMoments
from lpact.math.ridge.rows import Held, Pieces
from lpact.math.seeding import keyed_rng
from lpact.math.splits import BlockedFolds
from lpact.math.types import BoolArray, FloatArray

MOST_SPACES = 10
"""Feature spaces of which every subset is tried: 1,023 subsets."""

MOST_AT_ONCE = 16
"""Weights that are tried together where targets are worked on in several chunks."""


@dataclass(frozen=True)
class BandedGrid:
    """Candidate settings of a banded ridge and how they are compared on validation blocks.

    First every subset of the feature spaces is tried, with equal weights that add up to 1 and the smallest subsets
    first. Then weights are drawn from Dirichlet distributions until ``draws`` have been tried or ``patience`` draws in
    a row have not lifted the best mean score by more than ``min_gain`` above where it last rose by that much.

    Attributes
    ----------
    alphas
        Ridge penalties, positive, on the sum of squares of the weighted features' weights.
    draws
        Largest number of random weights.
    patience, min_gain
        When to stop, see above. The mean is over the targets, of each one's best validation score so far.
    concentration
        Of the Dirichlet distributions, one after the other and round again. Below 1, draws favour few spaces.
    subsets
        Whether to try every subset of the feature spaces. If not, equal weights of all spaces come first.
    metric
        Validation score by which settings are chosen.
    seed
        Of the draws, which depend on nothing but it and the number of spaces.
    """

    alphas: tuple[float, ...]
    draws: int = 1000
    patience: int = 50
    min_gain: float = 1e-4
    concentration: tuple[float, ...] = (0.1, 1.0)
    subsets: bool = True
    metric: Metric = "r2"
    seed: int = 0

    def __post_init__(self) -> None:
        RidgeGrid(self.alphas, metric=self.metric)
        if self.draws < 0:
            raise ValueError(f"draws must not be negative, got {self.draws}")
        if self.patience < 1:
            raise ValueError(f"patience must be at least 1, got {self.patience}")
        if not (math.isfinite(self.min_gain) and self.min_gain >= 0.0):
            raise ValueError(f"min_gain must not be negative, got {self.min_gain}")
        if not self.concentration or not all(
            math.isfinite(c) and c > 0.0 for c in self.concentration
        ):
            raise ValueError(f"concentration must be positive and finite, got {self.concentration}")

    @property
    def ridge(self) -> RidgeGrid:
        """The part that does not concern the feature spaces' weights."""
        return RidgeGrid(self.alphas, metric=self.metric)


@dataclass(frozen=True)
class Candidates:
    """Weights to try, in this order.

    Attributes
    ----------
    gamma
        [c, m]: the weight of every feature space.
    n_first
        How many of them are tried before stopping is considered.
    """

    gamma: FloatArray
    n_first: int


def space_subsets(n_spaces: int) -> list[tuple[int, ...]]:
    """Every non-empty subset of feature spaces, the smallest first."""
    sizes = range(1, n_spaces + 1)
    return [subset for size in sizes for subset in combinations(range(n_spaces), size)]


def banded_candidates(n_spaces: int, grid: BandedGrid) -> Candidates:
    """Weights that a search over ``n_spaces`` feature spaces tries.

    With one feature space there is nothing to search: its weight is 1.
    """
    if n_spaces < 1:
        raise ValueError("at least one feature space is needed")
    if grid.subsets and n_spaces > MOST_SPACES:
        raise ValueError(
            f"{n_spaces} feature spaces have {2**n_spaces - 1} subsets; at most {MOST_SPACES} spaces are searched "
            "that way: join some, or leave their weights to the draws with subsets=False"
        )
    subsets = space_subsets(n_spaces) if grid.subsets else [tuple(range(n_spaces))]
    first = np.zeros((len(subsets), n_spaces))
    for row, subset in zip(first, subsets, strict=True):
        row[list(subset)] = 1.0 / len(subset)
    if n_spaces == 1:
        return Candidates(first, 1)
    rng = keyed_rng(grid.seed, "banded ridge", n_spaces)
    cycle = grid.concentration
    draws = [
        rng.dirichlet(np.full(n_spaces, cycle[draw % len(cycle)])) for draw in range(grid.draws)
    ]
    return Candidates(np.array([*first, *draws]), len(first))


def given_candidates(gamma: FloatArray, n_spaces: int) -> Candidates:
    """Weights that a caller wants tried, all of them."""
    gamma = np.asarray(gamma, dtype=np.float64)
    if gamma.ndim != 2 or gamma.shape[1] != n_spaces or len(gamma) == 0:
        raise ValueError(
            f"candidates must be [c, {n_spaces}], one weight per feature space, got shape {gamma.shape}"
        )
    if not np.isfinite(gamma).all() or (gamma < 0.0).any() or not gamma.any(axis=1).all():
        raise ValueError("candidates must be finite, not negative, and not zero for every space")
    return Candidates(gamma, len(gamma))


def stacked(be: Backend, spaces: Sequence[Array], n_rows: int) -> tuple[Array, tuple[slice, ...]]:
    """The columns of all feature spaces side by side, and where each space is."""
    if not spaces:
        raise ValueError("at least one feature space is needed")
    for i, space in enumerate(spaces):
        if space.ndim != 2 or space.shape[0] != n_rows or space.shape[1] == 0:
            raise ValueError(
                f"feature space {i} must be [{n_rows}, p] with at least one column, as the folds say, "
                f"got {tuple(space.shape)}"
            )
    stops = np.cumsum([space.shape[1] for space in spaces])
    slices = tuple(
        slice(int(stop) - int(space.shape[1]), int(stop))
        for stop, space in zip(stops, spaces, strict=True)
    )
    if all(isinstance(space, np.ndarray) for space in spaces):
        return np.concatenate(list(spaces), axis=1), slices
    return be.concatenate([be.wide(space) for space in spaces], 1), slices


@dataclass(frozen=True)
class SpaceKernels:
    """A training set in row space, one kernel per feature space.

    Attributes
    ----------
    kernels
        [n_train, n_train] each.
    cross
        For runs of held-out rows, their kernels with the training rows, [r, n_train] each.
    sizes
        Columns of every space.
    """

    standard: StandardRows  # without its rows
    kernels: tuple[Array, ...]
    cross: Mapping[tuple[int, int], tuple[Array, ...]]
    sizes: tuple[int, ...]

    def axes(
        self, gamma: FloatArray, inverse: FloatArray, most: int, validation: Sequence[slice]
    ) -> KernelAxes:
        """Decomposed with weights γ; ``inverse`` has √γ in it."""
        used = [int(g) for g in np.flatnonzero(gamma)]
        keys = [(part.start, part.stop) for part in validation]
        cross = {key: _weighted_sum(self.cross[key], gamma, used) for key in keys}
        kernel = _weighted_sum(self.kernels, gamma, used)
        size = max(kernel.shape[0], sum(self.sizes[g] for g in used))
        return kernel_axes(self.standard, kernel, cross, inverse, most, size, float(np.max(gamma)))

    @property
    def nbytes(self) -> int:
        """Memory held, apart from unpenalised columns."""
        parts = [*self.kernels, *(k for kernels in self.cross.values() for k in kernels)]
        return sum(8 * part.shape[0] * part.shape[1] for part in parts)


def _weighted_sum(kernels: Sequence[Array], gamma: FloatArray, used: Sequence[int]) -> Array:
    """Σ γ_g K_g over the spaces in use; a fresh array."""
    total = kernels[used[0]] * float(gamma[used[0]])
    for g in used[1:]:
        total += kernels[g] * float(gamma[g])
    return total


class SpacesDesign(SharedDesign):
    """Columns that belong to feature spaces, to be decomposed with many weights."""

    def __init__(
        self,
        be: Backend,
        features: Array,
        unpenalised: Array | None,
        pieces: Pieces,
        *,
        form: Form,
        most: int,
        spaces: tuple[slice, ...],
        keep_bytes: int,
        compress: int = 0,
    ) -> None:
        super().__init__(be, features, unpenalised, pieces, form=form, most=most, compress=compress)
        self.spaces = spaces
        self.keep_bytes = keep_bytes
        self._kept_bytes = 0
        self._moments: dict[Held, ColumnMoments] = {}
        self._kernels: dict[Held, SpaceKernels] = {}

    def weighted(self, gamma: FloatArray) -> WeightedDesign:
        """The same columns with weights γ [m]."""
        return WeightedDesign(self, gamma)

    def train_weighted(self, held: Held, validation: Sequence[slice], gamma: FloatArray) -> Axes:
        """A training set with weights γ [m] on the feature spaces."""
        by_column = np.repeat(np.sqrt(gamma), [s.stop - s.start for s in self.spaces])
        if self.form == "primal":
            return self._shared_moments(held).axes(None, self.most, by_column)
        kernels = self._shared_kernels(held, validation)
        inverse = kernels.standard.inverse.copy()
        inverse[self.n_unpenalised :] *= by_column
        return kernels.axes(gamma, inverse, self.most, validation)

    def _room_for(self, n_bytes: int) -> bool:
        fits = self._kept_bytes + n_bytes <= self.keep_bytes
        self._kept_bytes += n_bytes if fits else 0
        return fits

    def _shared_moments(self, held: Held) -> ColumnMoments:
        if held in self._moments:
            return self._moments[held]
        made = self.moments(held)
        n_columns = made.training.gram.shape[0]
        own = 0 if made.design is not None else made.columns.values.shape[0]
        if self._room_for(8 * n_columns * (n_columns + own)):
            self._moments[held] = made
            if len(self._moments) == len(self.pieces.members):
                self.forget_grams()
        return made

    def _shared_kernels(self, held: Held, validation: Sequence[slice]) -> SpaceKernels:
        keys = [(part.start, part.stop) for part in validation]
        if held in self._kernels and all(key in self._kernels[held].cross for key in keys):
            return self._kernels[held]
        standard = self.standard_rows(held)
        by_space = [standard.values[:, space] for space in self.spaces]
        train = [self.be.take(values, standard.rows, 0) for values in by_space]
        made = SpaceKernels(
            replace(standard, values=None),
            tuple(z @ z.T for z in train),
            {
                (part.start, part.stop): tuple(
                    values[part] @ z.T for values, z in zip(by_space, train, strict=True)
                )
                for part in validation
            },
            tuple(space.stop - space.start for space in self.spaces),
        )
        if held not in self._kernels and self._room_for(made.nbytes):
            self._kernels[held] = made
        return made


class WeightedDesign(Design):
    """Feature spaces with weights γ."""

    def __init__(self, spaces: SpacesDesign, gamma: FloatArray) -> None:
        self.spaces = spaces
        self.gamma = gamma

    def train(self, held: Held, validation: Sequence[slice]) -> Axes:
        """With what all weights share."""
        return self.spaces.train_weighted(held, validation, self.gamma)


class SpacesEngine(Engine):
    """Training sets of feature spaces, for any weights.

    A third of the memory at most goes to what all weights share, a sixth to decompositions that several chunks of
    targets need.
    """

    design: SpacesDesign

    def __init__(
        self,
        spaces: Sequence[Array],
        folds: BlockedFolds,
        grid: RidgeGrid,
        validation: dict[Held, list[tuple[int, slice]]],
        tests: dict[Held, list[slice]],
        *,
        unpenalised: Array | None,
        form: Form,
        compute: Compute,
        n_columns: int,
        n_lags: int,
    ) -> None:
        features, self.slices = stacked(compute.open(), spaces, folds.n_rows)
        self._fitted: dict[tuple[Held, bytes], Axes] = {}
        self._fitted_bytes = 0
        super().__init__(
            features,
            folds,
            grid,
            validation,
            tests,
            unpenalised=unpenalised,
            linear_map=None,
            form=form,
            compute=compute,
            n_columns=n_columns,
            n_lags=n_lags,
        )

    def _make_design(
        self,
        design: Array | FittedFeatures,
        unpenalised: Array | None,
        linear_map: LinearMap | None,  # noqa: ARG002 - there is none
        form: Form,
    ) -> SpacesDesign:
        return SpacesDesign(
            self.be,
            design,
            unpenalised,
            self.pieces,
            form=form,
            most=self.most,
            spaces=self.slices,
            keep_bytes=self.compute.memory_bytes // 3,
            compress=self._compress(self.n_features, self.most),
        )

    def _compress(self, n_features: int, most: int) -> int:  # noqa: ARG002 - always all axes
        """Blocks are rotated once and used for all weights: it pays where they have twice as many rows as columns."""
        return 2 * n_features if self.grid.metric != "spearman" else 0

    def weighted(
        self, gamma: FloatArray, live: BoolArray | None = None, keep_bytes: int = 0
    ) -> Engine:
        """The engine of weights γ [m], sharing all that does not depend on them, for the outer blocks in ``live``."""
        own: Engine = copy.copy(self)
        own.design = self.design.weighted(gamma)
        own.keep_bytes, own._kept_bytes, own._trained = keep_bytes, 0, {}
        if live is not None:
            own.validation = {
                held: [(outer, rows) for outer, rows in parts if live[outer]]
                for held, parts in self.validation.items()
            }
        return own

    @property
    def decomposition_bytes(self) -> int:
        """Memory for decompositions that are kept from one chunk of targets to the next; none if there is one chunk."""
        one_chunk = self.n_columns <= self.n_lags * self._chunk_size()
        return 0 if one_chunk else self.compute.memory_bytes // 6

    @property
    def n_at_once(self) -> int:
        """Weights whose decompositions fit into that memory; at least one."""
        n, p = self.folds.n_rows, self.n_features
        rank, rows = min(n, p), 2 * n // self.folds.n_blocks
        one = self.be.itemsize * len(self.validation) * rank * (rank + rows)
        return max(1, min(MOST_AT_ONCE, self.decomposition_bytes // max(1, one)))

    def fitted_axes(self, held: Held, rows: Sequence[slice], gamma: FloatArray) -> Axes:
        """A training set to fit with weights γ, made now or kept from another chunk."""
        key = (held, gamma.tobytes())
        if key in self._fitted:
            return self._fitted[key]
        axes = self.design.train_weighted(held, rows, gamma)
        if self._fitted_bytes + axes.nbytes <= self.decomposition_bytes:
            self._fitted_bytes += axes.nbytes
            self._fitted[key] = axes
        return axes

    def _chunk_size(self) -> int:
        """Targets at a time."""
        n, p, item = self.folds.n_rows, self.n_features, self.be.itemsize
        pieces, n_sets = len(self.pieces.slices), len(self.pieces.members)
        if self.design.form == "primal":
            shared = n_sets * 8 * p * p
            making = (pieces + 4) * 8 * p * p
            products = pieces + 3
        else:
            shared = n_sets * len(self.slices) * 8 * n * n
            making = 24 * n * p + 32 * n * n
            products = 1
        features = (8 + item) * n * p
        fixed = features + making + min(shared, self.design.keep_bytes)
        fixed += self.compute.memory_bytes // 6 + 2 * self.tile_bytes + self.reserved
        settings = 8 * len(self.grid.components) * len(self.grid.alphas)
        per_column = (16 + 3 * item) * n + item * products * p
        per_column += settings * (2 * self.folds.n_blocks + 4)
        per_target = self.n_lags * per_column + (8 + 4 * item) * n
        per_target += 16 * MOST_AT_ONCE * self.folds.n_blocks
        left = self.compute.memory_bytes - fixed
        if left < per_target:
            what = "features and decompositions"
            raise TooLittleMemory(self.compute.memory_bytes, fixed, per_target, what)
        return int(left // per_target)


class Chunks:
    """All targets in chunks that fit into memory; the last one loaded is kept."""

    def __init__(self, engine: SpacesEngine, responses: Array) -> None:
        self.engine, self.responses = engine, responses
        self._parts = list(engine.chunks(1, responses.shape[2]))
        self._kept: tuple[int, Loaded] | None = None

    def __iter__(self) -> Iterator[tuple[slice, Loaded]]:
        for number, (part,) in enumerate(self._parts):
            if self._kept is None or self._kept[0] != number:
                self._kept = None
                loaded = self.engine.load(self.responses, [None], self._parts[number])
                self._kept = number, loaded
            yield part.targets, self._kept[1]
