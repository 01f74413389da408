"""Banded ridge regression: one penalty per feature space, searched at random and chosen for every target.

Weights γ ≥ 0, one per feature space, multiply the standardised columns of space g by √γ_g. Ridge with penalty a on
these is ridge with penalty a / γ_g on the columns of space g; γ_g = 0 leaves the space out. Whatever γ is, a training
set needs one decomposition: of the columns' Gram matrix, with its blocks scaled by √(γ_g γ_h), or of K = Σ_g γ_g K_g,
K_g = Z_g Z_gᵀ. Moments and kernels K_g are computed once for all γ, as far as memory allows.

For each γ, every penalty and lag is scored on every validation block, as in `nested`. A target takes the γ, lag and
penalty with its best mean validation score. Nested, the training set without blocks {o, i} serves both outer blocks, so
that one γ costs F(F−1)/2 decompositions. Every outer block sees the same γ in the same order, and stops its search by
its own validation scores, which do not depend on the rows of the block.

References: Nunez-Elizalde, Huth & Gallant (2019), NeuroImage 197:482–492; Dupré la Tour, Eickenberg, Nunez-Elizalde &
Gallant (2022), NeuroImage 264:119728 (random search).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lpact.math.ridge._arrays import Form, Held, Kept, n_rows
from lpact.math.ridge._axes import Axes, KernelAxes, Moments, Parts, StandardRows, kernel_parts, narrow_parts
from lpact.math.ridge._engine import Engine, Fitted, HeldOutResults, Loaded, fit_all_rows
from lpact.math.ridge.compute import Array, Backend, Compute
from lpact.math.ridge.grid import (
    METRICS,
    BandedGrid,
    Candidates,
    Readout,
    RidgeFit,
    RidgeGrid,
    banded_candidates,
    first_best,
)
from lpact.math.splits import BlockedFolds
from lpact.math.types import BoolArray, FloatArray, IntArray

_MAX_AT_ONCE = 16
"""Weights that are tried together where targets are processed in several chunks."""


@dataclass(frozen=True)
class SpaceKernels:
    """A training set in row space: one kernel [n_train, n_train] per feature space.

    ``cross`` has the kernels [r, n_train] of runs of held-out rows with the training rows, ``sizes`` the columns of
    every space. ``narrow`` has the rows themselves of spaces with at most half as many columns as training rows: of
    the training set, and of the runs.
    """

    standard: StandardRows
    kernels: tuple[Array, ...]
    cross: Mapping[tuple[int, int], tuple[Array, ...]]
    sizes: tuple[int, ...]
    narrow: Mapping[int, tuple[Array, Parts]]

    def axes(self, gamma: FloatArray, inverse: FloatArray, most: int, validation: Sequence[slice]) -> KernelAxes:
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
        grid: BandedGrid,
        compute: Compute | None,
        **options: Any,
    ) -> None:
        compute = compute or Compute()
        features, self.slices = _stacked(compute.open(), spaces, folds.n_rows)
        self.sizes = tuple(n_rows(space) for space in self.slices)
        settings = RidgeGrid(grid.alphas, metric=grid.metric)
        super().__init__(features, responses, folds, settings, compute=compute, **options)
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
            (part.start, part.stop): tuple(x[part] @ z.T for x, z in zip(by_space, train, strict=True))
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
            held: [(outer, rows) for outer, rows in parts if live[outer]] for held, parts in self.validation.items()
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
            raise ValueError(f"feature space {i} must be [{n}, p] with at least one column, got {tuple(space.shape)}")
    edges = np.cumsum([0, *(space.shape[1] for space in spaces)]).tolist()
    slices = tuple(slice(*edge) for edge in pairwise(edges))
    if all(isinstance(space, np.ndarray) for space in spaces):
        return np.concatenate(list(spaces), axis=1), slices
    return be.concatenate([be.wide(space) for space in spaces], 1), slices


def _candidates(engine: SpacesEngine, grid: BandedGrid, gamma: FloatArray | None) -> Candidates:
    """The weights that are given, or those of the grid."""
    n_spaces = len(engine.slices)
    if gamma is None:
        return banded_candidates(n_spaces, grid)
    gamma = np.asarray(gamma, dtype=np.float64)
    if gamma.ndim != 2 or gamma.shape[1] != n_spaces or len(gamma) == 0:
        raise ValueError(f"candidates must be [c, {n_spaces}], one weight per feature space, got shape {gamma.shape}")
    if not np.isfinite(gamma).all() or (gamma < 0.0).any() or not gamma.any(axis=1).all():
        raise ValueError("candidates must be finite and not negative, with a positive weight in every row")
    return Candidates(gamma, len(gamma))


@dataclass(frozen=True, kw_only=True)
class BandedReadout(Readout):
    """Held-out results of a nested banded ridge.

    Attributes
    ----------
    gamma
        [F, m, t]: the chosen weight of every feature space.
    candidate
        [F, t]: its index among the candidates.
    candidates
        [c, m]: all weights that some outer block tried, in order.
    n_first
        How many of them come before the draws.
    tried
        [F]: how many of them every outer block tried.
    validation
        [F, t]: the best validation score; NaN where undefined.
    search
        [F, c]: mean over targets of the best validation score so far; NaN after a search has stopped.
    spaces
        Columns of every feature space in ``weights``.
    """

    gamma: FloatArray
    candidate: IntArray
    candidates: FloatArray
    n_first: int
    tried: IntArray
    validation: FloatArray
    search: FloatArray
    spaces: tuple[slice, ...]


@dataclass(frozen=True, kw_only=True)
class BandedFit(RidgeFit):
    """A banded ridge fitted on all rows, with settings chosen on every block in turn.

    Attributes are those of `BandedReadout` without outer blocks: ``gamma`` [m, t], ``candidate`` [t], ``search`` [c].
    """

    gamma: FloatArray
    candidate: IntArray
    candidates: FloatArray
    n_first: int
    search: FloatArray
    spaces: tuple[slice, ...]


def nested_banded_ridge(
    spaces: Sequence[Array],
    responses: Array,
    folds: BlockedFolds,
    grid: BandedGrid,
    *,
    candidates: FloatArray | None = None,
    unpenalised: Array | None = None,
    metrics: Sequence[str] = METRICS,
    keep: Sequence[str] = (),
    form: Form = "auto",
    compute: Compute | None = None,
) -> BandedReadout:
    """Predict every block from the others, choosing feature-space weights, lag and penalty inside the training rows.

    Parameters
    ----------
    spaces
        Feature spaces, [n, p_g] each. Their columns are standardised on the training rows.
    grid
        Penalties, and how to search for weights.
    candidates
        [c, m]: weights to try instead of subsets and draws, all of them.
    responses, folds, unpenalised, metrics, keep, form, compute
        As in `nested_ridge`; kept weights are on the spaces' columns side by side.

    Notes
    -----
    Scores within the tolerance of ties (`Compute.tie_tolerance`) are equal: later weights replace earlier ones only
    where they are better by more, and for the same weights the first lag, then the first penalty, wins.
    """
    data = (spaces, responses, folds, grid)
    engine = SpacesEngine(*data, compute, nested=True, unpenalised=unpenalised, form=form)
    results = HeldOutResults(engine, metrics, keep)
    search = _Search(engine, grid, _candidates(engine, grid, candidates))
    for loaded in engine.loaded():
        results.add(loaded, partial(search.fits, loaded))
    return BandedReadout(
        folds,
        search.lag,
        search.alpha,
        np.zeros_like(search.alpha),
        results.pooled,
        results.by_fold,
        **results.kept,
        gamma=search.gamma[search.candidate].transpose(0, 2, 1),
        candidate=search.candidate,
        candidates=search.gamma[: search.tried.max()],
        n_first=search.n_first,
        tried=search.tried,
        validation=search.validation,
        search=search.curve[:, : search.tried.max()],
        spaces=engine.slices,
    )


def cross_validated_banded_ridge(
    spaces: Sequence[Array],
    responses: Array,
    folds: BlockedFolds,
    grid: BandedGrid,
    *,
    candidates: FloatArray | None = None,
    unpenalised: Array | None = None,
    form: Form = "auto",
    compute: Compute | None = None,
) -> BandedFit:
    """Choose weights, lag and penalty with every block as validation block in turn, then fit on all rows.

    Parameters are those of `nested_banded_ridge`; two blocks are enough.
    """
    data = (spaces, responses, folds, grid)
    engine = SpacesEngine(*data, compute, nested=False, unpenalised=unpenalised, form=form)
    search = _Search(engine, grid, _candidates(engine, grid, candidates))
    fits = ((loaded, search.fits(loaded, 0, frozenset())) for loaded in engine.loaded())
    return BandedFit(
        search.lag[0],
        search.alpha[0],
        np.zeros_like(search.alpha[0]),
        search.validation[0],
        *fit_all_rows(engine, fits),
        gamma=search.gamma[search.candidate[0]].T,
        candidate=search.candidate[0],
        candidates=search.gamma[: search.tried[0]],
        n_first=search.n_first,
        search=search.curve[0, : search.tried[0]],
        spaces=engine.slices,
    )


@dataclass(frozen=True)
class _Scores:
    """The best scores of one candidate [outer, t], and their index in lags × penalties."""

    scores: FloatArray
    place: npt.NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return self.scores.nbytes + self.place.nbytes


class _Search:
    """The best settings so far of every target for every outer block, after a search over candidates.

    Where targets come in several chunks, a few candidates are tried on each chunk before the next one is loaded; those
    tried for an outer block after its search has stopped are ignored.
    """

    def __init__(
        self,
        engine: SpacesEngine,
        grid: BandedGrid,
        tried: Candidates,
        scored: Kept | None = None,
        outer: BoolArray | None = None,
    ) -> None:
        self.engine, self.grid = engine, grid
        self.gamma, self.n_first = tried.gamma, tried.n_first
        self._scored = Kept(0) if scored is None else scored
        self.tolerance = engine.compute.tie_tolerance
        n_outer = len(engine.tests)
        shape = (n_outer, engine.n_targets)
        self.best = np.full(shape, -np.inf)
        self.candidate, self.lag, self.alpha = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        self.curve = np.full((n_outer, len(self.gamma)), np.nan)
        self.tried = np.zeros(n_outer, dtype=np.int64)
        self._live = np.ones(n_outer, dtype=np.bool_) if outer is None else outer.copy()
        self._level = np.full(n_outer, -np.inf)
        self._stale = np.zeros(n_outer, dtype=np.int64)
        step = engine.n_at_once
        for start in range(0, len(self.gamma), step):
            if self._live.any():
                self._try(start, self.gamma[start : start + step])

    def _try(self, start: int, gamma: FloatArray) -> None:
        """Score some candidates on all targets; those that always come first may have scores already."""
        engine, keys = self.engine, [own.tobytes() for own in gamma]
        found: dict[bytes, _Scores] = {k: self._scored[k] for k in keys if k in self._scored}
        new = {k: own for k, own in zip(keys, gamma, strict=True) if k not in found}
        keep_bytes = engine.decomposition_bytes // engine.n_at_once
        views = {k: engine.weighted(own, self._live, keep_bytes) for k, own in new.items()}
        for k in new:
            place = np.empty(self.best.shape, dtype=np.int32)
            found[k] = _Scores(np.full(self.best.shape, np.nan), place)
        for loaded in engine.loaded() if new else ():
            for k, view in views.items():
                own = view.inner_scores(loaded)  # [outer, lags, 1, alphas, targets]
                for outer, settings in enumerate(own.reshape(len(own), -1, own.shape[-1])):
                    first = first_best(settings, self.tolerance)
                    found[k].place[outer, loaded.targets] = first
                    best = settings[first, np.arange(len(first))]
                    found[k].scores[outer, loaded.targets] = best
        for index, k in enumerate(keys, start):
            if index < self.n_first:
                self._scored.made(k, partial(found.__getitem__, k))
            self._update(index, found[k])

    def _update(self, index: int, found: _Scores) -> None:
        """Add candidate ``index``."""
        live, scores, place = self._live.copy(), found.scores, found.place
        with np.errstate(invalid="ignore"):
            better = live[:, None] & (scores > self.best + self.tolerance)
        lag, alpha = np.divmod(place, len(self.grid.alphas))
        np.copyto(self.best, scores, where=better)
        np.copyto(self.candidate, index, where=better)
        np.copyto(self.lag, lag, where=better)
        np.copyto(self.alpha, alpha, where=better)
        self.tried[live] += 1
        defined = np.isfinite(self.best)
        total = np.where(defined, self.best, 0.0).sum(axis=1)
        n_defined = defined.sum(axis=1)
        mean = np.where(n_defined > 0, total / np.maximum(n_defined, 1), -np.inf)
        self.curve[live, index] = np.where(n_defined > 0, mean, np.nan)[live]
        if index < self.n_first:
            self._level = mean
            return
        gained = live & (mean > self._level + self.grid.min_gain)
        self._level = np.where(gained, mean, self._level)
        self._stale = np.where(gained, 0, self._stale + 1)
        self._live &= self._stale < self.grid.patience

    @property
    def validation(self) -> FloatArray:
        """Best validation score of every outer block and target, [F, t]; NaN where undefined."""
        return np.where(np.isfinite(self.best), self.best, np.nan)

    def fits(self, loaded: Loaded, outer: int, held: Held) -> Iterator[Fitted]:
        """Fits on one training set, one for every choice of weights among the targets of a chunk."""
        engine, rows = self.engine, self.engine.tests[held]
        candidate, lag, alpha = (values[outer, loaded.targets] for values in (self.candidate, self.lag, self.alpha))
        for index in np.unique(candidate):
            own = np.flatnonzero(candidate == index)
            axes = engine.fitted_axes(held, rows, self.gamma[index])
            yield engine.fit(axes, loaded, own, lag[own], np.zeros_like(own), alpha[own])


class BandedSubsets:
    """Nested banded ridges on many subsets of the same feature spaces.

    Each subset is searched as `nested_banded_ridge` searches its spaces alone. What subsets share is computed once:
    one kernel (or Gram matrix) per feature space and training set, and the candidates that drop spaces, which are
    candidates of every larger subset as well.

    Parameters
    ----------
    spaces
        Feature spaces, [n, p_g] each.
    subsets
        Indices of the spaces of every subset, ascending.
    outer
        [F] outer blocks to predict. None: all.
    responses, folds, grid, compute
        As in `nested_banded_ridge`; a single lag.

    Attributes
    ----------
    validation
        [S, F, t]: best validation score of every subset; NaN for other outer blocks, and where undefined.
    tried
        [S, F]: number of candidates that were tried.
    """

    def __init__(
        self,
        spaces: Sequence[Array],
        responses: Array,
        folds: BlockedFolds,
        grid: BandedGrid,
        subsets: Sequence[Sequence[int]],
        *,
        outer: BoolArray | None = None,
        compute: Compute | None = None,
    ) -> None:
        self.engine = SpacesEngine(spaces, responses, folds, grid, compute, nested=True)
        if self.engine.n_lags != 1:
            raise ValueError(f"subsets are compared at one lag, got {self.engine.n_lags}")
        self.outer = np.ones(folds.n_blocks, dtype=np.bool_) if outer is None else outer
        scored = Kept(self.engine.compute.memory_bytes // 8)
        self._searches = [
            _Search(self.engine, grid, _within(subset, len(spaces), grid), scored, self.outer) for subset in subsets
        ]
        scored.clear()
        self.validation = np.stack([search.validation for search in self._searches])
        self.tried = np.stack([search.tried for search in self._searches])

    def predictions(self) -> Iterator[tuple[slice, FloatArray, FloatArray, FloatArray]]:
        """Yield targets, responses [n, t], training means [n, t] and predictions [S, n, t], chunk by chunk.

        Rows of outer blocks that are not predicted are NaN.
        """
        engine, n = self.engine, self.engine.folds.n_rows
        per_target = 8 * n * (len(self._searches) + 2)
        step = max(1, min(engine.n_targets, engine.compute.memory_bytes // 8 // per_target))
        for start in range(0, engine.n_targets, step):
            part = slice(start, min(start + step, engine.n_targets))
            loaded = engine.load(part)
            observed, baseline = (np.full((n, n_rows(part)), np.nan) for _ in range(2))
            predicted = np.full((len(self._searches), n, n_rows(part)), np.nan)
            for held, (rows,) in engine.tests.items():
                (block,) = held
                if not self.outer[block]:
                    continue
                engine.keep_fits()
                for own, search in zip(predicted, self._searches, strict=True):
                    for fitted in search.fits(loaded, block, held):
                        deviation = engine.deviations(fitted, rows)
                        raw = engine.in_raw_units(loaded, fitted, rows, deviation)
                        for into, values in zip((observed, baseline, own), raw, strict=True):
                            into[rows, fitted.own] = values
            yield part, observed, baseline, predicted


def _within(subset: Sequence[int], n_spaces: int, grid: BandedGrid) -> Candidates:
    """Candidates of a subset, with weight 0 for all other spaces."""
    if not subset or list(subset) != sorted({*subset} & {*range(n_spaces)}):
        raise ValueError(f"a subset must be ascending indices of {n_spaces} feature spaces, got {tuple(subset)}")
    own = banded_candidates(len(subset), grid)
    gamma = np.zeros((len(own.gamma), n_spaces))
    gamma[:, list(subset)] = own.gamma
    return Candidates(gamma, own.n_first)
