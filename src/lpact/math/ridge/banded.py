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

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
import numpy.typing as npt

from lpact.math.ridge._arrays import Held, Kept, n_rows
from lpact.math.ridge._design import Form
from lpact.math.ridge._engine import Fitted, HeldOutResults, Loaded, fit_all_rows
from lpact.math.ridge._spaces import SpacesEngine
from lpact.math.ridge.compute import Array, Compute
from lpact.math.ridge.grid import METRICS, Metric, Readout, RidgeFit, RidgeGrid, first_best
from lpact.math.seeding import keyed_rng
from lpact.math.splits import BlockedFolds
from lpact.math.types import BoolArray, FloatArray, IntArray

MAX_SPACES = 10
"""Feature spaces of which every subset is tried: 1,023 subsets."""


@dataclass(frozen=True)
class BandedGrid:
    """Candidate settings of a banded ridge and how they are compared on validation blocks.

    First every subset of the feature spaces is tried, with equal weights that add up to 1 and the smallest subsets
    first. Then weights are drawn from Dirichlet distributions until ``draws`` have been tried or ``patience`` draws in
    a row have not raised the best mean score by more than ``min_gain`` above its last such rise.

    Attributes
    ----------
    alphas
        Ridge penalties, positive, on the sum of squared weights of the weighted features.
    draws
        Largest number of random weights.
    patience, min_gain
        When to stop, see above. The mean is over the targets, of each one's best validation score so far.
    concentration
        Of the Dirichlet distributions, used in turn. Below 1, draws favour few spaces.
    subsets
        Whether to try every subset of the feature spaces. If not, equal weights of all spaces come first.
    metric
        Validation score by which settings are chosen.
    seed
        Of the draws, which depend only on it and the number of spaces.
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
        if self.draws < 0 or self.patience < 1:
            raise ValueError(
                f"draws must be at least 0 and patience at least 1, got {self.draws} and {self.patience}"
            )
        if not (math.isfinite(self.min_gain) and self.min_gain >= 0.0):
            raise ValueError(f"min_gain must not be negative, got {self.min_gain}")
        positive = [math.isfinite(c) and c > 0.0 for c in self.concentration]
        if not positive or not all(positive):
            raise ValueError(f"concentration must be positive and finite, got {self.concentration}")


@dataclass(frozen=True)
class Candidates:
    """Weights to try, gamma [c, m], in this order; the first ``n_first`` are tried in any case."""

    gamma: FloatArray
    n_first: int


def banded_candidates(n_spaces: int, grid: BandedGrid) -> Candidates:
    """Weights that a search over ``n_spaces`` feature spaces tries; 1 for a single space."""
    if n_spaces < 1:
        raise ValueError("at least one feature space is needed")
    sizes = range(1, n_spaces + 1) if grid.subsets else [n_spaces]
    if grid.subsets and n_spaces > MAX_SPACES:
        raise ValueError(
            f"{n_spaces} feature spaces have {2**n_spaces - 1} subsets, and at most {MAX_SPACES} spaces are searched "
            "that way: join some spaces, or use draws alone with subsets=False"
        )
    subsets = [subset for size in sizes for subset in combinations(range(n_spaces), size)]
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


def _candidates(engine: SpacesEngine, grid: BandedGrid, gamma: FloatArray | None) -> Candidates:
    """The weights that are given, or those of the grid."""
    n_spaces = len(engine.slices)
    if gamma is None:
        return banded_candidates(n_spaces, grid)
    gamma = np.asarray(gamma, dtype=np.float64)
    if gamma.ndim != 2 or gamma.shape[1] != n_spaces or len(gamma) == 0:
        raise ValueError(
            f"candidates must be [c, {n_spaces}], one weight per feature space, got shape {gamma.shape}"
        )
    if not np.isfinite(gamma).all() or (gamma < 0.0).any() or not gamma.any(axis=1).all():
        raise ValueError(
            "candidates must be finite and not negative, with a positive weight in every row"
        )
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
    engine = SpacesEngine(
        spaces,
        responses,
        folds,
        RidgeGrid(grid.alphas, metric=grid.metric),
        nested=True,
        unpenalised=unpenalised,
        form=form,
        compute=compute,
    )
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
    engine = SpacesEngine(
        spaces,
        responses,
        folds,
        RidgeGrid(grid.alphas, metric=grid.metric),
        nested=False,
        unpenalised=unpenalised,
        form=form,
        compute=compute,
    )
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
        candidate, lag, alpha = (
            values[outer, loaded.targets] for values in (self.candidate, self.lag, self.alpha)
        )
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
        self.engine = SpacesEngine(
            spaces,
            responses,
            folds,
            RidgeGrid(grid.alphas, metric=grid.metric),
            nested=True,
            unpenalised=None,
            form="auto",
            compute=compute,
        )
        if self.engine.n_lags != 1:
            raise ValueError(f"subsets are compared at one lag, got {self.engine.n_lags}")
        self.outer = np.ones(folds.n_blocks, dtype=np.bool_) if outer is None else outer
        scored = Kept(self.engine.compute.memory_bytes // 8)
        self._searches = [
            _Search(self.engine, grid, _within(subset, len(spaces), grid), scored, self.outer)
            for subset in subsets
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
        raise ValueError(
            f"a subset must be ascending indices of {n_spaces} feature spaces, got {tuple(subset)}"
        )
    own = banded_candidates(len(subset), grid)
    gamma = np.zeros((len(own.gamma), n_spaces))
    gamma[:, list(subset)] = own.gamma
    return Candidates(gamma, own.n_first)
