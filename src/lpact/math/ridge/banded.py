"""Banded ridge regression: one penalty per feature space, searched at random and chosen for every target.

The search goes over weights γ of the feature spaces (see `bands`); for each, every penalty and lag is scored on every
validation block, as in `nested`. A target takes the γ, lag and penalty with its best mean validation score. Nested, a
training set that leaves out blocks {o, i} serves both outer blocks, so that one γ costs F(F−1)/2 decompositions. Every
outer block sees the same γ in the same order, and stops its search by its own validation scores, which no row of the
block enters. Training sets whose two outer blocks have stopped are not decomposed any more.

References: Nunez-Elizalde, Huth & Gallant (2019), NeuroImage 197:482–492; Dupré la Tour, Eickenberg, Nunez-Elizalde &
Gallant (2022), NeuroImage 264:119728 (random search).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lpact.math.ridge.axes import Axes, Projected
from lpact.math.ridge.bands import (
    BandedGrid,
    Candidates,
    Chunks,
    SpacesEngine,
    banded_candidates,
    given_candidates,
)
from lpact.math.ridge.checks import check_inputs
from lpact.math.ridge.compute import Array, Compute
from lpact.math.ridge.design import Form
from lpact.math.ridge.engine import Loaded
from lpact.math.ridge.refit import held_out_scores
from lpact.math.ridge.results import METRICS, Readout, RidgeFit, empty_scores
from lpact.math.ridge.rows import Held, nested_validation
from lpact.math.ridge.select import first_best
from lpact.math.ridge.validation import coefficients_of
from lpact.math.splits import BlockedFolds
from lpact.math.types import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class BandedReadout(Readout):
    """Held-out results of a nested banded ridge.

    Attributes
    ----------
    gamma
        [F, m, t]: the chosen weight of every feature space.
    candidate
        [F, t]: its place among the candidates.
    candidates
        [c, m]: all weights that some outer block tried, in order.
    n_first
        How many of them come before the draws.
    tried
        [F]: how many of them every outer block tried.
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
    search: FloatArray
    spaces: tuple[slice, ...]


@dataclass(frozen=True, kw_only=True)
class BandedFit(RidgeFit):
    """A banded ridge fitted on all rows, with settings chosen on every block in turn.

    Attributes
    ----------
    gamma
        [m, t]: the chosen weight of every feature space.
    candidate
        [t]: its place among the candidates.
    candidates
        [c, m]: all weights that were tried, in order.
    n_first
        How many of them come before the draws.
    search
        [c]: mean over targets of the best validation score so far.
    spaces
        Columns of every feature space in ``weights`` and in the features to predict from.
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
    responses
        [n_lags, n, t], one layer per candidate lag. Must be finite.
    folds
        Outer blocks; every other block validates. At least three.
    grid
        Penalties, and how to search for weights.
    candidates
        [c, m]: weights to try in place of subsets and draws, all of them.
    unpenalised
        [n, m]: columns whose weights are not shrunk. An intercept is always there.
    metrics
        Held-out scores to compute.
    keep
        ``"predictions"``, ``"weights"``, or both; weights are on the spaces' columns side by side.
    form, compute
        As for `nested_ridge`.

    Notes
    -----
    Scores within the tolerance of ties (`Compute.tie_tolerance`) are equal: later weights replace earlier ones only
    where they are better by more, and for the same weights the first lag, then the first penalty, wins.
    """
    check_inputs(
        responses,
        folds,
        metrics=metrics,
        keep=keep,
        unpenalised=unpenalised,
        form=form,
        fewest_blocks=3,
    )
    tried = _candidates(spaces, grid, candidates)
    _, n_rows, n_targets = responses.shape
    tests = {frozenset({block}): [folds.rows(block)] for block in range(folds.n_blocks)}
    engine = _engine(
        spaces, responses, folds, grid, nested_validation(folds), tests, unpenalised, form, compute
    )
    chunks = Chunks(engine, responses)
    search = _Search(folds.n_blocks, n_targets, tried, grid, engine.compute.tie_tolerance)
    search.run(engine, chunks)
    found = _Kept(engine, n_rows, n_targets, metrics, keep)
    for targets, loaded in chunks:
        _refit(engine, loaded, targets, search, found)
    n_tried = int(search.tried.max())
    return BandedReadout(
        folds,
        search.lag,
        search.alpha,
        np.zeros_like(search.alpha),
        found.pooled,
        found.by_fold,
        **found.arrays,
        gamma=tried.gamma[search.candidate].transpose(0, 2, 1),
        candidate=search.candidate,
        candidates=tried.gamma[:n_tried],
        n_first=tried.n_first,
        tried=search.tried,
        search=search.curve[:, :n_tried],
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
    check_inputs(responses, folds, unpenalised=unpenalised, form=form, fewest_blocks=2)
    tried = _candidates(spaces, grid, candidates)
    n_targets = responses.shape[2]
    whole: Held = frozenset()
    validation = {frozenset({block}): [(0, folds.rows(block))] for block in range(folds.n_blocks)}
    engine = _engine(
        spaces, responses, folds, grid, validation, {whole: []}, unpenalised, form, compute
    )
    chunks = Chunks(engine, responses)
    search = _Search(1, n_targets, tried, grid, engine.compute.tie_tolerance)
    search.run(engine, chunks)
    be = engine.be
    n_unpenalised = engine.design.n_unpenalised
    weights = be.empty(n_targets, engine.n_features)
    nuisance = be.empty(n_targets, n_unpenalised)
    intercept = be.empty(n_targets)
    for targets, loaded in chunks:
        for part in _parts(engine, loaded, targets, search, 0, whole, []):
            place = be.index(targets.start + part.own)
            weights[place], nuisance[place], intercept[place] = part.raw_weights(engine, loaded)
    native = (lambda x: x) if not isinstance(responses, np.ndarray) else be.host
    (n_tried,) = search.tried
    return BandedFit(
        search.lag[0],
        search.alpha[0],
        np.zeros_like(search.alpha[0]),
        np.where(np.isfinite(search.best[0]), search.best[0], np.nan),
        native(weights.T),
        native(nuisance.T),
        native(intercept),
        gamma=tried.gamma[search.candidate[0]].T,
        candidate=search.candidate[0],
        candidates=tried.gamma[:n_tried],
        n_first=tried.n_first,
        search=search.curve[0, :n_tried],
        spaces=engine.slices,
    )


def _engine(
    spaces: Sequence[Array],
    responses: Array,
    folds: BlockedFolds,
    grid: BandedGrid,
    validation: dict[Held, list[tuple[int, slice]]],
    tests: dict[Held, list[slice]],
    unpenalised: Array | None,
    form: Form,
    compute: Compute | None,
) -> SpacesEngine:
    n_lags, _, n_targets = responses.shape
    return SpacesEngine(
        spaces,
        folds,
        grid.ridge,
        validation,
        tests,
        unpenalised=unpenalised,
        form=form,
        compute=compute or Compute(),
        n_columns=n_lags * n_targets,
        n_lags=n_lags,
    )


def _candidates(
    spaces: Sequence[Array], grid: BandedGrid, candidates: FloatArray | None
) -> Candidates:
    if candidates is None:
        return banded_candidates(len(spaces), grid)
    return given_candidates(candidates, len(spaces))


class _Search:
    """The best settings so far of every target, for every outer block, and which searches go on."""

    def __init__(
        self,
        n_outer: int,
        n_targets: int,
        candidates: Candidates,
        grid: BandedGrid,
        tolerance: float,
    ) -> None:
        self.candidates, self.grid, self.tolerance = candidates, grid, tolerance
        shape = (n_outer, n_targets)
        self.best = np.full(shape, -np.inf)
        self.candidate, self.lag, self.alpha = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        self.curve = np.full((n_outer, len(candidates.gamma)), np.nan)
        self.tried = np.zeros(n_outer, dtype=np.int64)
        self.live = np.ones(n_outer, dtype=np.bool_)
        self._level = np.full(n_outer, -np.inf)
        self._stale = np.zeros(n_outer, dtype=np.int64)

    def run(self, engine: SpacesEngine, chunks: Chunks) -> None:
        """Try candidates until every outer block has stopped.

        Where targets come in several chunks, a few candidates are tried on each chunk before the next is loaded; those
        tried for an outer block beyond its stop are not taken note of.
        """
        gamma, step = self.candidates.gamma, engine.n_at_once
        keep_bytes = engine.decomposition_bytes // step
        n_outer, n_targets = self.best.shape
        for start in range(0, len(gamma), step):
            views = [engine.weighted(g, self.live, keep_bytes) for g in gamma[start : start + step]]
            scores = np.empty((len(views), n_outer, n_targets))
            place = np.empty(scores.shape, dtype=np.int64)
            for targets, loaded in chunks:
                for i, view in enumerate(views):
                    own = view.inner_scores(loaded, n_outer)  # [outer, lags, 1, alphas, targets]
                    for outer, settings in enumerate(own.reshape(n_outer, -1, own.shape[-1])):
                        first = first_best(settings, self.tolerance)
                        place[i, outer, targets] = first
                        scores[i, outer, targets] = settings[first, np.arange(len(first))]
            for i in range(len(views)):
                self.take(start + i, scores[i], place[i])
            if not self.live.any():
                return

    def take(self, index: int, scores: FloatArray, place: IntArray) -> None:
        """Take note of candidate ``index``: its best scores [outer, t] and where in lags × penalties they are."""
        live = self.live.copy()
        with np.errstate(invalid="ignore"):
            better = live[:, None] & (scores > self.best + self.tolerance)
        lag, alpha = np.divmod(place, len(self.grid.alphas))
        for held, new in (
            (self.best, scores),
            (self.candidate, np.full(place.shape, index)),
            (self.lag, lag),
            (self.alpha, alpha),
        ):
            np.copyto(held, new, where=better)
        self.tried[live] += 1
        defined = np.isfinite(self.best)
        total = np.where(defined, self.best, 0.0).sum(axis=1)
        n_defined = defined.sum(axis=1)
        mean = np.where(n_defined > 0, total / np.maximum(n_defined, 1), -np.inf)
        self.curve[live, index] = np.where(n_defined > 0, mean, np.nan)[live]
        if index < self.candidates.n_first:
            self._level = mean
            return
        gained = live & (mean > self._level + self.grid.min_gain)
        self._level = np.where(gained, mean, self._level)
        self._stale = np.where(gained, 0, self._stale + 1)
        self.live &= self._stale < self.grid.patience


@dataclass(frozen=True)
class _Part:
    """Targets of a chunk that chose the same weights, fitted on one training set."""

    own: IntArray  # places in the chunk
    columns: IntArray  # columns of the loaded responses
    axes: Axes
    projected: Projected
    coefficients: Array

    def raw_weights(self, engine: SpacesEngine, loaded: Loaded) -> tuple[Array, Array, Array]:
        """As the engine has them."""
        return engine.raw_weights(
            self.axes, loaded, self.columns, self.projected, self.coefficients
        )


def _parts(
    engine: SpacesEngine,
    loaded: Loaded,
    targets: slice,
    search: _Search,
    outer: int,
    held: Held,
    rows: list[slice],
) -> Iterator[_Part]:
    """Fit a training set for every choice of weights among the targets of a chunk."""
    candidate = search.candidate[outer, targets]
    for index in np.unique(candidate):
        own = np.flatnonzero(candidate == index)
        columns = search.lag[outer, targets][own] * loaded.n_targets + own
        axes = engine.fitted_axes(held, rows, search.candidates.gamma[index])
        projected = axes.project(loaded.responses, columns)
        alpha = search.alpha[outer, targets][own]
        coefficients = coefficients_of(
            engine.be, axes, engine.grid, projected, alpha, np.zeros_like(alpha)
        )
        yield _Part(own, columns, axes, projected, coefficients)


class _Kept:
    """Results of a nested search, filled chunk by chunk."""

    def __init__(
        self,
        engine: SpacesEngine,
        n_rows: int,
        n_targets: int,
        metrics: Sequence[str],
        keep: Sequence[str],
    ) -> None:
        n_blocks = engine.folds.n_blocks
        self.metrics = tuple(metrics)
        self.pooled = empty_scores(self.metrics, n_targets)
        self.by_fold = empty_scores(self.metrics, n_blocks, n_targets)
        self.arrays: dict[str, FloatArray] = {}
        if "predictions" in keep:
            for name in ("observed", "predicted", "baseline"):
                self.arrays[name] = np.empty((n_rows, n_targets))
        if "weights" in keep:
            self.arrays["weights"] = np.empty((n_blocks, engine.n_features, n_targets))
            shape = (n_blocks, engine.design.n_unpenalised, n_targets)
            self.arrays["nuisance_weights"] = np.empty(shape)
            self.arrays["intercept"] = np.empty((n_blocks, n_targets))


def _refit(
    engine: SpacesEngine, loaded: Loaded, targets: slice, search: _Search, found: _Kept
) -> None:
    """Fit every outer training set at the chosen settings, predict its block, and score."""
    be, arrays = engine.be, found.arrays
    observed = be.empty(loaded.n_targets, engine.folds.n_rows)
    predicted = be.empty(loaded.n_targets, engine.folds.n_rows)
    for held, (rows,) in engine.tests.items():
        (block,) = held
        for part in _parts(engine, loaded, targets, search, block, held, [rows]):
            scores, nuisance = part.axes.scores(rows)
            deviation = part.coefficients @ scores.T
            if nuisance is not None:
                deviation = deviation + part.projected.nuisance @ nuisance.T
            own = (
                be.take(loaded.responses.rows[:, rows], part.columns, 0)
                - part.projected.mean[:, None]
            )
            place = be.index(part.own)
            observed[:, rows][place] = own
            predicted[:, rows][place] = deviation
            everywhere = targets.start + part.own
            if "predicted" in arrays:
                factor = loaded.responses.factor[part.columns]
                mean = loaded.responses.offset[part.columns] + be.host(part.projected.mean) / factor
                raw = be.take(be.wide(loaded.raw[rows]), part.columns, 1)
                arrays["observed"][rows, everywhere] = be.host(raw)
                arrays["baseline"][rows, everywhere] = mean
                arrays["predicted"][rows, everywhere] = mean + be.host(deviation).T / factor
            if "weights" in arrays:
                names = ("weights", "nuisance_weights", "intercept")
                for name, values in zip(names, part.raw_weights(engine, loaded), strict=True):
                    arrays[name][block][..., everywhere] = be.host(values).T
    pooled, by_fold = held_out_scores(engine, observed, predicted, found.metrics)
    for metric in found.metrics:
        found.pooled[metric][targets] = pooled[metric]
        found.by_fold[metric][:, targets] = by_fold[metric]
