"""Training sets of one design, made once and used for all responses, chunk by chunk.

Targets of all row orders are numbered in one sequence: target i of order d is d · t + i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from lpact.math.ridge._arrays import (
    FittedFeatures,
    Form,
    Held,
    Kept,
    Pieces,
    Projected,
    Responses,
    cut,
    n_rows,
    nested_validation,
)
from lpact.math.ridge._axes import Axes, SharedDesign, fitted_axes
from lpact.math.ridge._validation import Settings, Validation, coefficients_of, settings, validation, validation_scores
from lpact.math.ridge.compute import Array, Backend, Compute, TooLittleMemory
from lpact.math.ridge.grid import METRICS, RidgeGrid, check_known, deviation_scores, mean_scores, select
from lpact.math.splits import BlockedFolds
from lpact.math.types import FloatArray, IntArray


@dataclass(frozen=True)
class Loaded:
    """A chunk of targets with all their lags: column lag · n_targets + i is target i at that lag."""

    targets: slice
    raw: Array  # [n, n_lags · n_targets]
    responses: Responses

    @property
    def n_targets(self) -> int:
        """Targets of the chunk."""
        return n_rows(self.targets)


@dataclass(frozen=True)
class Trained:
    """A training set with the grid in its axes, and its held-out rows by outer block."""

    axes: Axes
    settings: Settings
    blocks: list[tuple[int, Validation]]

    @property
    def nbytes(self) -> int:
        """Memory of its arrays."""
        return self.axes.nbytes + sum(block.nbytes for _, block in self.blocks)


@dataclass(frozen=True)
class Fitted:
    """Some targets of a chunk (``own``, by position) fitted on one training set at their chosen settings."""

    own: IntArray
    columns: IntArray  # of the loaded responses
    axes: Axes
    projected: Projected
    coefficients: Array


class Engine:
    """Training sets of one design, made once and used for all responses.

    ``validation`` gives, for every training set that chooses, the outer blocks it chooses for and the rows it is scored
    on; ``tests`` gives the training sets that predict, with the rows that they predict, one per outer block. Without
    ``nested``, one set of all rows chooses with every block in turn and predicts nothing.
    """

    def __init__(
        self,
        design: Array | FittedFeatures,
        responses: Array,
        folds: BlockedFolds,
        grid: RidgeGrid,
        *,
        nested: bool,
        orders: Sequence[IntArray | None] = (None,),
        unpenalised: Array | None = None,
        form: Form = "auto",
        compute: Compute | None = None,
    ) -> None:
        check_inputs(responses, folds, nested=nested, unpenalised=unpenalised, form=form)
        self.compute = compute or Compute()
        self.be: Backend = self.compute.open()
        self.tile_bytes = min(self.be.tile_bytes, self.compute.memory_bytes // 32)
        self.folds, self.grid = folds, grid
        self.responses, self.orders = responses, orders
        self.n_lags, _, n_targets = responses.shape
        self.n_targets = len(orders) * n_targets
        self.n_columns = self.n_lags * self.n_targets
        blocks = range(folds.n_blocks)
        self.tests: dict[Held, list[slice]] = {frozenset(): []}
        self.validation = {frozenset({block}): [(0, folds.rows(block))] for block in blocks}
        if nested:
            self.tests = {frozenset({block}): [folds.rows(block)] for block in blocks}
            self.validation = nested_validation(folds)
        self.pieces: Pieces = cut(folds, [*self.validation, *self.tests])
        self.most = max(grid.components) if min(grid.components) > 0 else folds.n_rows
        self.n_unpenalised = 0 if unpenalised is None else int(unpenalised.shape[1])
        self._trained = Kept(self.compute.memory_bytes // 2)
        self.reserved = 0
        self.fitted_design = callable(design)
        self.train: Callable[[Held, Sequence[slice]], Axes]
        if callable(design):
            options = (unpenalised, self.pieces, form, self.most)
            self.train = partial(fitted_axes, self.be, design, *options)
            # The width of a fitted design is known once it is fitted.
            first = self.trained(next(iter(self.validation))).axes
            self.n_features, self.form = first.n_features, first.form
            return
        if design.ndim != 2 or design.shape[0] != folds.n_rows:
            raise ValueError(f"features must be [{folds.n_rows}, p] like the folds, got {tuple(design.shape)}")
        self.n_features = int(design.shape[1])
        options = (unpenalised, self.pieces, form, self.most)
        self.design = SharedDesign(self.be, design, *options, self._compress())
        self.train, self.form = self.design.train, self.design.form

    def _compress(self) -> int:
        """Rows above which a block is replaced by its coordinates in a basis of its columns; 0 for never."""
        if self.grid.metric == "spearman":
            return 0
        sizes = [n_rows(rows) for parts in self.validation.values() for _, rows in parts]
        rows, p = max(sizes, default=0), self.n_features
        uses = len(sizes) / self.folds.n_blocks
        per_row = 2.0 * min(p, self.most) * (p + len(self.grid.alphas) * self.n_columns)
        saved = uses * (rows - p) * per_row - 2.0 * rows * p * self.n_columns
        return p if saved > self.be.qr_cost * rows * p**2 else 0

    def trained(self, held: Held) -> Trained:
        """A training set, from memory or computed."""

        def make() -> Trained:
            parts = self.validation.get(held, [])
            axes = self.train(held, [rows for _, rows in parts] + self.tests.get(held, []))
            chosen = settings(self.be, axes, self.grid)
            exact_rows = self.grid.metric == "spearman"
            n_products = 0 if exact_rows else len(self.grid.alphas) * self.n_columns
            counts = (n_products, self.n_columns)
            blocks = [(outer, validation(self.be, axes.held_out(rows), chosen, *counts)) for outer, rows in parts]
            return Trained(axes, chosen, blocks)

        made: Trained = self._trained.made(held, make)
        return made

    # --- chunks of targets -------------------------------------------------------------------------------------------

    def chunks(self, start: int, stop: int) -> list[slice]:
        """Targets ``start`` to ``stop`` − 1, as many at a time as fit into memory."""
        size = self._chunk_size()
        return [slice(first, min(first + size, stop)) for first in range(start, stop, size)]

    def _chunk_size(self) -> int:
        n, p, item = self.folds.n_rows, self.n_features + self.n_unpenalised, self.be.itemsize
        n_blocks = self.folds.n_blocks
        products = len(self.pieces.slices) + n_blocks + 4 if self.form == "primal" else 1
        settings_bytes = 8 * len(self.grid.components) * len(self.grid.alphas)
        per_column = (16 + 3 * item) * n + item * products * p
        per_column += settings_bytes * (2 * n_blocks + 4)
        per_target = self.n_lags * per_column + (8 + 4 * item) * n + self._search_bytes()
        fixed = self._fixed_bytes(n, p, item) + self.reserved
        left = self.compute.memory_bytes - fixed
        if left < per_target:
            raise TooLittleMemory(self.compute.memory_bytes, fixed, per_target)
        return int(left // per_target)

    def _search_bytes(self) -> int:
        """Further memory of every target."""
        return 0

    def _fixed_bytes(self, n: int, p: int, item: int) -> int:
        """Memory that does not depend on the number of targets."""
        primal, n_sets = self.form == "primal", len(self.validation) + len(self.tests)
        side, own = p if primal else n, n * p if self.fitted_design else 0
        columns = (8 + item) * n * p + 24 * own + 8 * side * side * 4
        if primal and not self.fitted_design:
            columns += 8 * side * side * len(self.pieces.slices)
        kept = n_sets * item * (side * (min(p, n) + n) + own)
        return columns + min(self._trained.max_bytes, kept) + 8 * self.tile_bytes

    def load(self, targets: slice) -> Loaded:
        """The columns of a chunk, scaled."""
        n_targets, parts = self.responses.shape[2], []
        for draw in range(targets.start // n_targets, -(-targets.stop // n_targets)):
            first = draw * n_targets
            inside = slice(max(targets.start - first, 0), min(targets.stop - first, n_targets))
            own, order = self.responses[:, :, inside], self.orders[draw]
            if order is not None:
                take = np.take if isinstance(own, np.ndarray) else self.be.take
                own = take(own, order, 1)
            parts.append(own)
        if isinstance(parts[0], np.ndarray):
            joined = np.concatenate(parts, axis=2).transpose(1, 0, 2)
        else:
            joined = self.be.concatenate(parts, 2).permute(1, 0, 2)
        raw = joined.reshape(self.folds.n_rows, -1)
        return Loaded(targets, raw, Responses(self.be, raw, self.pieces, self.n_lags))

    # --- choosing ----------------------------------------------------------------------------------------------------

    def inner_scores(self, loaded: Loaded) -> FloatArray:
        """Mean validation score of every setting for every outer block, [outer, lags, components, alphas, targets]."""
        grid, n_columns = self.grid, loaded.responses.n_columns
        shape = (len(self.tests), len(grid.components), len(grid.alphas), n_columns)
        total, count = np.zeros(shape), np.zeros(shape, dtype=np.int64)
        spread = np.zeros((shape[0], 1, 1, n_columns))  # around the training means, for pooled R²
        for held, parts in self.validation.items():
            if not parts:
                continue
            trained = self.trained(held)
            projected = trained.axes.project(loaded.responses)
            found = validation_scores(
                self.be,
                grid,
                trained.settings,
                projected,
                [block for _, block in trained.blocks],
                loaded.responses,
                self.tile_bytes,
            )
            for (outer, block), scores in zip(trained.blocks, found, strict=True):
                finite = np.isfinite(scores)
                total[outer] += np.where(finite, scores, 0.0)
                count[outer] += finite
                if grid.metric == "pooled_r2":
                    _, mean, squares = loaded.responses.block(block.held.rows)
                    shift = mean - self.be.host(projected.mean)
                    size = n_rows(block.held.rows)
                    spread[outer] += np.nan_to_num(squares) + size * shift**2
        scores = mean_scores(total, count)
        if grid.metric == "pooled_r2":
            for outer, held in enumerate(self.tests):
                spread[outer][..., loaded.responses.constant(held)] = 0.0  # but for rounding
            scores = 1.0 - total / np.where(spread > 0.0, spread, np.nan)
        by_lag = scores.reshape(*shape[:3], self.n_lags, loaded.n_targets)
        return by_lag.transpose(0, 3, 1, 2, 4)

    def chosen(self) -> Iterator[tuple[Loaded, IntArray, FloatArray]]:
        """Every chunk with the choice [3, outer, targets] of its settings and their validation scores."""
        if self.grid.selection.per_target:
            for part in self.chunks(0, self.n_targets):
                loaded = self.load(part)
                scores = self.inner_scores(loaded)
                yield loaded, self._choose(scores), scores
            return
        n_outer, n_targets = len(self.tests), self.responses.shape[2]
        shape = (self.n_lags, len(self.grid.components), len(self.grid.alphas))
        self.reserved = 16 * n_outer * int(np.prod(shape)) * n_targets
        for first in range(0, self.n_targets, n_targets):
            parts = self.chunks(first, first + n_targets)
            scores = np.empty((n_outer, *shape, n_targets))
            own = [slice(part.start - first, part.stop - first) for part in parts]
            for part, here in zip(parts, own, strict=True):
                scores[..., here] = self.inner_scores(self.load(part))
            choice = self._choose(scores)
            for part, here in zip(parts, own, strict=True):
                yield self.load(part), choice[..., here], scores[..., here]

    def _choose(self, scores: FloatArray) -> IntArray:
        """Chosen lag, components and penalty of every outer block, [3, outer, targets]."""
        tolerance = self.compute.tie_tolerance
        return np.stack([select(own, self.grid.selection, tolerance) for own in scores], axis=1)

    # --- fitting -----------------------------------------------------------------------------------------------------

    def fit(
        self,
        axes: Axes,
        loaded: Loaded,
        own: IntArray,
        lag: IntArray,
        component: IntArray,
        alpha: IntArray,
    ) -> Fitted:
        """Fit targets ``own`` of a chunk, each at its own lag, penalty and components."""
        columns = lag * loaded.n_targets + own
        projected = axes.project(loaded.responses, columns)
        coefficients = coefficients_of(self.be, axes, self.grid, projected, alpha, component)
        return Fitted(own, columns, axes, projected, coefficients)

    def fit_chosen(self, loaded: Loaded, choice: IntArray, outer: int, held: Held) -> list[Fitted]:
        """Fit all targets of a chunk at the settings that were chosen for an outer block."""
        own = np.arange(loaded.n_targets)
        return [self.fit(self.trained(held).axes, loaded, own, *choice[:, outer])]

    def deviations(self, fitted: Fitted, rows: slice) -> Array:
        """Predictions of held-out rows minus the training mean, [q, r], in scaled units."""
        scores, nuisance = fitted.axes.scores(rows)
        deviation = fitted.coefficients @ scores.T
        if nuisance is not None:
            deviation = deviation + fitted.projected.nuisance @ nuisance.T
        return deviation

    def in_raw_units(
        self, loaded: Loaded, fitted: Fitted, rows: slice, deviation: Array
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Responses [r, q], training means [q] and predictions [r, q] of held-out rows."""
        be, columns, responses = self.be, fitted.columns, loaded.responses
        factor = responses.factor[columns]
        mean = responses.offset[columns] + be.host(fitted.projected.mean) / factor
        observed = be.host(be.take(be.wide(loaded.raw[rows]), columns, 1))
        return observed, mean, mean + be.host(deviation).T / factor

    def raw_weights(self, loaded: Loaded, fitted: Fitted) -> tuple[Array, Array, Array]:
        """Weights [q, p], unpenalised weights [q, m] and intercept [q] for raw responses."""
        be, columns, responses = self.be, fitted.columns, loaded.responses
        features, nuisance, at_zero = fitted.axes.weights(fitted.coefficients, fitted.projected.nuisance)
        unit = be.narrow(1.0 / responses.factor[columns])
        intercept = (at_zero + fitted.projected.mean) * unit + be.narrow(responses.offset[columns])
        return features * unit[:, None], nuisance * unit[:, None], intercept


class HeldOutResults:
    """Scores, and predictions and weights to keep, of every outer block; filled chunk by chunk."""

    def __init__(self, engine: Engine, metrics: Sequence[str], keep: Sequence[str]) -> None:
        check_known("metric", metrics, METRICS)
        check_known("value of keep", keep, ("predictions", "weights"))
        self.engine, self.metrics = engine, tuple(metrics)
        n, n_blocks, n_targets = engine.folds.n_rows, engine.folds.n_blocks, engine.n_targets
        self.pooled = {metric: np.full(n_targets, np.nan) for metric in metrics}
        self.by_fold = {metric: np.full((n_blocks, n_targets), np.nan) for metric in metrics}
        self.kept: dict[str, FloatArray] = {}
        if "predictions" in keep:
            for name in ("observed", "predicted", "baseline"):
                self.kept[name] = np.empty((n, n_targets))
        if "weights" in keep:
            self.kept["weights"] = np.empty((n_blocks, engine.n_features, n_targets))
            self.kept["nuisance_weights"] = np.empty((n_blocks, engine.n_unpenalised, n_targets))
            self.kept["intercept"] = np.empty((n_blocks, n_targets))

    def add(self, loaded: Loaded, fits: Callable[[int, Held], Iterable[Fitted]]) -> None:
        """Predict every outer block of a chunk; ``fits(block, held)`` gives the fits of its training set."""
        engine, be = self.engine, self.engine.be
        observed = be.empty(loaded.n_targets, engine.folds.n_rows)
        predicted = be.empty(loaded.n_targets, engine.folds.n_rows)
        for held, (rows,) in engine.tests.items():
            (block,) = held
            for fitted in fits(block, held):
                deviation = engine.deviations(fitted, rows)
                own = be.take(loaded.responses.rows[:, rows], fitted.columns, 0)
                place = be.index(fitted.own)
                observed[:, rows][place] = own - fitted.projected.mean[:, None]
                predicted[:, rows][place] = deviation
                self._keep(loaded, fitted, block, rows, deviation)
        for metric in self.metrics:
            self.pooled[metric][loaded.targets] = deviation_scores(be, observed, predicted, metric)
            for block in range(engine.folds.n_blocks):
                rows = engine.folds.rows(block)
                self.by_fold[metric][block, loaded.targets] = deviation_scores(
                    be, observed[:, rows], predicted[:, rows], metric
                )

    def _keep(self, loaded: Loaded, fitted: Fitted, block: int, rows: slice, deviation: Array) -> None:
        be = self.engine.be
        targets = loaded.targets.start + fitted.own
        if "predicted" in self.kept:
            raw = self.engine.in_raw_units(loaded, fitted, rows, deviation)
            for name, values in zip(("observed", "baseline", "predicted"), raw, strict=True):
                self.kept[name][rows, targets] = values
        if "weights" in self.kept:
            names = ("weights", "nuisance_weights", "intercept")
            found = self.engine.raw_weights(loaded, fitted)
            for name, values in zip(names, found, strict=True):
                self.kept[name][block][..., targets] = be.host(values).T


def fit_all_rows(engine: Engine, chunks: Iterable[tuple[Loaded, Iterable[Fitted]]]) -> tuple[Array, Array, Array]:
    """Weights [p, t], unpenalised weights [m, t] and intercept [t] of fits on all rows.

    NumPy arrays in double where responses are NumPy arrays.
    """
    be, n_targets = engine.be, engine.n_targets
    sizes = ((n_targets, engine.n_features), (n_targets, engine.n_unpenalised), (n_targets,))
    found = [be.empty(*size) for size in sizes]
    for loaded, fits in chunks:
        for fitted in fits:
            place = be.index(loaded.targets.start + fitted.own)
            for into, values in zip(found, engine.raw_weights(loaded, fitted), strict=True):
                into[place] = values
    if isinstance(engine.responses, np.ndarray):
        found = [be.host(values) for values in found]
    weights, nuisance, intercept = found
    return weights.T, nuisance.T, intercept


def check_inputs(
    responses: Array,
    folds: BlockedFolds,
    *,
    nested: bool,
    unpenalised: Array | None = None,
    form: str = "auto",
) -> None:
    """Raise `ValueError` if shapes or folds are invalid."""
    if getattr(responses, "ndim", 0) != 3 or 0 in responses.shape:
        shape = tuple(getattr(responses, "shape", ())) or type(responses).__name__
        raise ValueError(f"responses must be an array [n_lags, n, t], none of them 0, got {shape}")
    n_rows = responses.shape[1]
    if folds.n_rows != n_rows:
        raise ValueError(f"folds have {folds.n_rows} rows, responses have {n_rows}")
    work, fewest = ("nested selection", 3) if nested else ("cross-validation", 2)
    if folds.n_blocks < fewest:
        raise ValueError(f"{work} needs at least {fewest} blocks, got {folds.n_blocks}")
    if unpenalised is not None and (unpenalised.ndim != 2 or unpenalised.shape[0] != n_rows):
        raise ValueError(f"unpenalised columns must be [{n_rows}, m], got shape {tuple(unpenalised.shape)}")
    check_known("form", [form], ("auto", "primal", "kernel"))
