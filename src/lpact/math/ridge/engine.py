"""Training sets of one design, made once and used for all responses, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lpact.math.ridge.axes import Axes, LinearMap, Projected
from lpact.math.ridge.compute import Array, Backend, Compute, TooLittleMemory
from lpact.math.ridge.design import Design, FittedDesign, FittedFeatures, Form, SharedDesign
from lpact.math.ridge.grid import RidgeGrid
from lpact.math.ridge.responses import Responses
from lpact.math.ridge.rows import Held, Pieces, cut
from lpact.math.ridge.select import Choice, mean_scores, select
from lpact.math.ridge.validation import (
    Settings,
    Validation,
    coefficients_of,
    settings,
    validation,
    validation_scores,
)
from lpact.math.splits import BlockedFolds
from lpact.math.types import FloatArray, IntArray


@dataclass(frozen=True)
class Part:
    """Some targets of one draw."""

    draw: int
    targets: slice

    @property
    def n_targets(self) -> int:
        """How many."""
        return int(self.targets.stop - self.targets.start)


@dataclass(frozen=True)
class Loaded:
    """A chunk of targets with all their lags: column lag · n_targets + i is target i at that lag."""

    chunk: list[Part]
    raw: Array  # [n, n_lags · n_targets]
    responses: Responses
    n_targets: int

    def columns(self, lag: IntArray) -> IntArray:
        """Column of every target at its own lag."""
        return lag * self.n_targets + np.arange(self.n_targets)


@dataclass(frozen=True)
class Trained:
    """A training set with the grid in its axes and its held-out rows."""

    axes: Axes
    settings: Settings
    blocks: list[tuple[int, Validation]]

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self.axes.nbytes + sum(block.nbytes for _, block in self.blocks)


class Engine:
    """Training sets of one design, made once and used for all responses.

    ``validation`` says, for every training set that chooses, which outer block it chooses for and on which rows;
    ``tests`` lists the training sets that predict, with the rows they predict.
    """

    def __init__(
        self,
        design: Array | FittedFeatures,
        folds: BlockedFolds,
        grid: RidgeGrid,
        validation: dict[Held, list[tuple[int, slice]]],
        tests: dict[Held, list[slice]],
        *,
        unpenalised: Array | None,
        linear_map: LinearMap | None,
        form: Form,
        compute: Compute,
        n_columns: int,
        n_lags: int,
    ) -> None:
        self.be: Backend = compute.open()
        self.compute = compute
        self.tile_bytes = min(self.be.tile_bytes, compute.memory_bytes // 32)
        self.folds, self.grid = folds, grid
        self.n_columns, self.n_lags = n_columns, n_lags
        self.validation = {
            held: [(outer, rows) for outer, rows in parts if rows.stop > rows.start]
            for held, parts in validation.items()
        }
        self.tests = tests
        self.pieces: Pieces = cut(folds, [*validation, *tests])
        self.most = max(grid.components) if min(grid.components) > 0 else folds.n_rows
        self.n_features = 0 if callable(design) else int(design.shape[-1])
        self.keep_bytes = compute.memory_bytes // 2
        self._trained: dict[Held, Trained] = {}
        self._kept_bytes = 0
        self.reserved = 0
        self.fitted_design = callable(design)
        self.design = self._make_design(design, unpenalised, linear_map, form)
        self.form: str = getattr(self.design, "form", form)
        if self.fitted_design:  # its width is known from its result only
            first = self.trained(next(iter(self.validation))).axes
            self.n_features, self.form = first.n_features, first.form
        n_unpenalised = 0 if unpenalised is None else int(unpenalised.shape[1])
        self.n_columns_joined = self.n_features + n_unpenalised

    def _make_design(
        self,
        design: Array | FittedFeatures,
        unpenalised: Array | None,
        linear_map: LinearMap | None,
        form: Form,
    ) -> Design:
        """What training sets are made from."""
        if callable(design):
            if linear_map is not None:
                raise ValueError("a linear map needs features as an array, not as a function")
            return FittedDesign(
                self.be, design, unpenalised, self.pieces, form=form, most=self.most
            )
        if design.ndim != 2 or design.shape[0] != self.folds.n_rows:
            raise ValueError(
                f"features must be [{self.folds.n_rows}, p] as the folds say, got {tuple(design.shape)}"
            )
        return SharedDesign(
            self.be,
            design,
            unpenalised,
            self.pieces,
            form=form,
            most=self.most,
            linear_map=linear_map,
            compress=self._compress(self.n_features, self.most),
        )

    def _compress(self, n_features: int, most: int) -> int:
        """Rows above which a block is replaced by its coordinates in a basis of its columns; 0 for never."""
        if self.grid.metric == "spearman":
            return 0
        sizes = [r.stop - r.start for parts in self.validation.values() for _, r in parts]
        rows = max(sizes, default=0)
        uses = len(sizes) / self.folds.n_blocks
        k = min(n_features, most)
        per_row = 2.0 * k * (n_features + len(self.grid.alphas) * self.n_columns)
        saved = uses * (rows - n_features) * per_row - 2.0 * rows * n_features * self.n_columns
        return n_features if saved > self.be.qr_cost * rows * n_features**2 else 0

    def trained(self, held: Held) -> Trained:
        """A training set, made now or kept from before."""
        if held in self._trained:
            return self._trained[held]
        parts = self.validation.get(held, [])
        every = [rows for _, rows in parts] + self.tests.get(held, [])
        axes = self.design.train(held, every)
        chosen = settings(self.be, axes, self.grid)
        exact_rows = self.grid.metric == "spearman"
        n_products = 0 if exact_rows else len(self.grid.alphas) * self.n_columns
        blocks = [
            (outer, validation(self.be, axes.held_out(rows), chosen, n_products, self.n_columns))
            for outer, rows in parts
        ]
        made = Trained(axes, chosen, blocks)
        if self._kept_bytes + made.nbytes <= self.keep_bytes:
            self._kept_bytes += made.nbytes
            self._trained[held] = made
        return made

    def chunks(self, n_draws: int, n_targets: int, first: int = 0) -> Iterator[list[Part]]:
        """Targets of all draws, as many at a time as the memory allows."""
        size = self._chunk_size()
        parts: list[Part] = []
        room = size
        for draw in range(first, first + n_draws):
            start = 0
            while start < n_targets:
                stop = min(n_targets, start + room)
                parts.append(Part(draw, slice(start, stop)))
                room -= stop - start
                start = stop
                if room == 0:
                    yield parts
                    parts, room = [], size
        if parts:
            yield parts

    def _chunk_size(self) -> int:
        """Targets at a time."""
        n, p, item = self.folds.n_rows, self.n_columns_joined, self.be.itemsize
        pieces, n_sets = len(self.pieces.slices), len(self.validation) + len(self.tests)
        settings_bytes = 8 * len(self.grid.components) * len(self.grid.alphas)
        products = pieces + self.folds.n_blocks + 4 if self.form == "primal" else 1
        per_column = (16 + 3 * item) * n + item * products * p
        per_column += settings_bytes * (2 * self.folds.n_blocks + 4)
        per_target = self.n_lags * per_column + (8 + 4 * item) * n
        side = p if self.form == "primal" else n
        own = n * p if self.fitted_design else 0
        columns = (
            (8 + item) * n * p + (24 * n * p if self.fitted_design else 0) + 8 * side * side * 4
        )
        if self.form == "primal" and not self.fitted_design:
            columns += 8 * side * side * pieces
        kept = n_sets * item * (side * (min(p, n) + n) + own)
        fixed = columns + min(self.keep_bytes, kept) + 8 * self.tile_bytes + self.reserved
        left = self.compute.memory_bytes - fixed
        if left < per_target:
            what = "features, decompositions and products"
            raise TooLittleMemory(self.compute.memory_bytes, fixed, per_target, what)
        return int(left // per_target)

    def reserve(self, n_outer: int, n_targets: int) -> None:
        """Set memory aside for the scores of all settings, where targets choose together."""
        settings = len(self.grid.components) * len(self.grid.alphas)
        self.reserved = 16 * n_outer * self.n_lags * settings * n_targets

    def load(self, responses: Array, orders: list[IntArray | None], chunk: list[Part]) -> Loaded:
        """The chunk's columns: [n, n_lags · n_targets], tame."""
        parts = []
        for part in chunk:
            own = responses[:, :, part.targets]
            order = orders[part.draw]
            parts.append(own if order is None else self._reordered(own, order))
        if isinstance(parts[0], np.ndarray):
            joined = np.concatenate(parts, axis=2).transpose(1, 0, 2)
        else:
            joined = self.be.concatenate(parts, 2).permute(1, 0, 2)
        n_targets = sum(part.n_targets for part in chunk)
        raw = joined.reshape(self.folds.n_rows, -1)
        return Loaded(chunk, raw, Responses(self.be, raw, self.pieces, self.n_lags), n_targets)

    def _reordered(self, values: Array, order: IntArray) -> Array:
        return (
            np.take(values, order, axis=1)
            if isinstance(values, np.ndarray)
            else self.be.take(values, order, 1)
        )

    def inner_scores(self, loaded: Loaded, n_outer: int) -> FloatArray:
        """Mean validation score of every setting for every outer block, [outer, lags, components, alphas, targets]."""
        grid, be = self.grid, self.be
        n_columns = loaded.responses.n_columns
        shape = (n_outer, len(grid.components), len(grid.alphas), n_columns)
        total, count = np.zeros(shape), np.zeros(shape, dtype=np.int64)
        for held, parts in self.validation.items():
            if not parts:
                continue
            trained = self.trained(held)
            projected = trained.axes.project(loaded.responses)
            found = validation_scores(
                be,
                grid,
                trained.settings,
                projected,
                [block for _, block in trained.blocks],
                loaded.responses,
                self.tile_bytes,
            )
            for (outer, _), scores in zip(trained.blocks, found, strict=True):
                finite = np.isfinite(scores)
                total[outer] += np.where(finite, scores, 0.0)
                count[outer] += finite
        mean = mean_scores(total, count)
        by_lag = mean.reshape(*shape[:3], self.n_lags, loaded.n_targets)
        return by_lag.transpose(0, 3, 1, 2, 4)

    def choose(self, scores: FloatArray) -> list[Choice]:
        """Best setting of every target, for every outer block."""
        tolerance = self.compute.tie_tolerance
        return [select(own, self.grid.selection, tolerance) for own in scores]

    def fitted(
        self, axes: Axes, loaded: Loaded, lag: IntArray, alpha: IntArray, component: IntArray
    ) -> tuple[Projected, Array]:
        """Every target at its own lag in the axes, and its coefficients at its own penalty and components."""
        projected = axes.project(loaded.responses, loaded.columns(lag))
        return projected, coefficients_of(self.be, axes, self.grid, projected, alpha, component)

    def raw_weights(
        self,
        axes: Axes,
        loaded: Loaded,
        columns: IntArray,
        projected: Projected,
        coefficients: Array,
    ) -> tuple[Array, Array, Array]:
        """Weights [q, p], unpenalised weights [q, m] and intercept [q] for raw responses in these columns."""
        be = self.be
        features, nuisance, at_zero = axes.weights(coefficients, projected.nuisance)
        unit = be.narrow(1.0 / loaded.responses.factor[columns])
        intercept = (at_zero + projected.mean) * unit + be.narrow(loaded.responses.offset[columns])
        return features * unit[:, None], nuisance * unit[:, None], intercept
