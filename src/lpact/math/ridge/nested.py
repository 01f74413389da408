"""Nested, blocked, cross-validated ridge regression over lags × principal components × penalties.

Every outer block is predicted from the others; its lag, penalty and number of components are chosen on each of the
other blocks in turn. The training set that leaves out blocks {o, i} serves outer block o with validation block i and
outer i with validation o, so that F(F−1)/2 + F decompositions are enough for F blocks. Lags and row orders are taken on
the responses while the features stay: they cost products, no decomposition.

Reference: Hoerl & Kennard (1970), Technometrics 12:55–67. docs/explanation/engine.md derives the algorithm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import numpy as np

from lpact.math.ridge.axes import LinearMap
from lpact.math.ridge.checks import check_inputs, check_orders
from lpact.math.ridge.compute import Array, Compute
from lpact.math.ridge.design import FittedFeatures, Form
from lpact.math.ridge.engine import Engine
from lpact.math.ridge.grid import RidgeGrid
from lpact.math.ridge.refit import Collector, choice_of, refit
from lpact.math.ridge.results import METRICS, Readout, RidgeFit
from lpact.math.ridge.rows import Held, nested_validation
from lpact.math.ridge.select import Choice
from lpact.math.ridge.small import SmallRidge
from lpact.math.ridge.small_plan import NotSmall
from lpact.math.splits import BlockedFolds
from lpact.math.types import FloatArray, IntArray


def nested_ridge(
    design: Array | FittedFeatures,
    responses: Array,
    folds: BlockedFolds,
    grid: RidgeGrid,
    *,
    unpenalised: Array | None = None,
    linear_map: LinearMap | None = None,
    metrics: Sequence[str] = METRICS,
    keep: Sequence[str] = (),
    form: Form = "auto",
    compute: Compute | None = None,
) -> Readout:
    """Predict every block from the others, choosing lag, penalty and components inside the training rows.

    Parameters
    ----------
    design
        Features [n, p], or a function of the training rows that returns them (for features that are themselves fitted).
    responses
        [n_lags, n, t], one layer per candidate lag. Must be finite.
    folds
        Outer blocks; every other block validates. At least three.
    grid
        Penalties, component counts and how to choose.
    unpenalised
        [n, m]: columns whose weights are not shrunk. An intercept is always there.
    linear_map
        Map of the features, fitted on the moments of every training set (see `LinearMap`).
    metrics
        Held-out scores to compute.
    keep
        ``"predictions"``, ``"weights"``, or both, to have them in the result.
    form
        Decompose the Gram matrix of columns (``"primal"``) or of rows (``"kernel"``), or the smaller one.
    compute
        Device, precision and memory.
    """
    plain = unpenalised is None and linear_map is None and not keep and form == "auto"
    if plain:
        return NestedRidge(responses, folds, grid, metrics=metrics, compute=compute).fit(design)
    (readout,) = nested_ridge_draws(
        design,
        responses,
        folds,
        grid,
        [None],
        unpenalised=unpenalised,
        linear_map=linear_map,
        metrics=metrics,
        keep=keep,
        form=form,
        compute=compute,
    )
    return readout


class NestedRidge:
    """`nested_ridge` of the same responses from one design after another.

    What depends on the responses alone is made once, which is half of the time of a small fit. Small fits solve all
    training sets at once (see `lpact.math.ridge.small`); others are those of `nested_ridge_draws`. A readout depends on
    its own design only, not on those before it.
    """

    def __init__(
        self,
        responses: Array,
        folds: BlockedFolds,
        grid: RidgeGrid,
        *,
        metrics: Sequence[str] = METRICS,
        compute: Compute | None = None,
    ) -> None:
        check_inputs(responses, folds, metrics=metrics, fewest_blocks=3)
        self.responses, self.folds, self.grid = responses, folds, grid
        self.metrics, self.compute = metrics, compute or Compute()
        self._small: SmallRidge | None = None
        with suppress(NotSmall):
            self._small = SmallRidge(responses, folds, grid, metrics, self.compute)

    def fit(self, design: Array | FittedFeatures) -> Readout:
        """The readout from features [n, p], or from a function of the training rows."""
        if self._small is not None:
            with suppress(NotSmall):
                return self._small.fit(design)
        (readout,) = nested_ridge_draws(
            design,
            self.responses,
            self.folds,
            self.grid,
            [None],
            metrics=self.metrics,
            compute=self.compute,
        )
        return readout


def nested_ridge_draws(
    design: Array | FittedFeatures,
    responses: Array,
    folds: BlockedFolds,
    grid: RidgeGrid,
    orders: Iterable[IntArray | None],
    *,
    unpenalised: Array | None = None,
    linear_map: LinearMap | None = None,
    metrics: Sequence[str] = METRICS,
    keep: Sequence[str] = (),
    form: Form = "auto",
    compute: Compute | None = None,
) -> list[Readout]:
    """The same readout for several row orders of the responses, sharing everything that depends on the features.

    ``orders`` holds permutations [n], None for the responses as they are: event i of the features meets event
    ``order[i]`` of the responses, at every lag. Circular shifts, block and token shuffles are such orders.
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
    asked = check_orders(orders, folds.n_rows)
    n_lags, _, n_targets = responses.shape
    blocks = range(folds.n_blocks)
    tests = {frozenset({block}): [folds.rows(block)] for block in blocks}
    engine = Engine(
        design,
        folds,
        grid,
        nested_validation(folds),
        tests,
        unpenalised=unpenalised,
        linear_map=linear_map,
        form=form,
        compute=compute or Compute(),
        n_columns=len(asked) * n_lags * n_targets,
        n_lags=n_lags,
    )
    collectors = [Collector(engine, responses, metrics, keep) for _ in asked]
    if grid.selection.alone:
        for chunk in engine.chunks(len(asked), n_targets):
            loaded = engine.load(responses, asked, chunk)
            choices = engine.choose(engine.inner_scores(loaded, folds.n_blocks))
            refit(engine, loaded, choices, collectors)
    else:
        engine.reserve(folds.n_blocks, n_targets)
        for draw in range(len(asked)):
            scores = np.empty(
                (folds.n_blocks, n_lags, len(grid.components), len(grid.alphas), n_targets)
            )
            for chunk in engine.chunks(1, n_targets, draw):
                loaded = engine.load(responses, asked, chunk)
                scores[..., chunk[0].targets] = engine.inner_scores(loaded, folds.n_blocks)
            choices = engine.choose(scores)
            for chunk in engine.chunks(1, n_targets, draw):
                loaded = engine.load(responses, asked, chunk)
                part = [choice_of(choice, chunk[0].targets) for choice in choices]
                refit(engine, loaded, part, collectors)
    return [collector.readout() for collector in collectors]


def cross_validated_ridge(
    design: Array | FittedFeatures,
    responses: Array,
    folds: BlockedFolds,
    grid: RidgeGrid,
    *,
    unpenalised: Array | None = None,
    linear_map: LinearMap | None = None,
    form: Form = "auto",
    compute: Compute | None = None,
) -> RidgeFit:
    """Choose lag, penalty and components with every block as validation block in turn, then fit on all rows.

    Parameters are those of `nested_ridge`; two blocks are enough.
    """
    check_inputs(responses, folds, unpenalised=unpenalised, form=form, fewest_blocks=2)
    n_lags, _, n_targets = responses.shape
    whole: Held = frozenset()
    validation = {frozenset({block}): [(0, folds.rows(block))] for block in range(folds.n_blocks)}
    engine = Engine(
        design,
        folds,
        grid,
        validation,
        {whole: []},
        unpenalised=unpenalised,
        linear_map=linear_map,
        form=form,
        compute=compute or Compute(),
        n_columns=n_lags * n_targets,
        n_lags=n_lags,
    )
    fits = list(_whole_fits(engine, responses))
    choices, best, weights, nuisance, intercept = zip(*fits, strict=True)
    native = (lambda x: x) if not isinstance(responses, np.ndarray) else engine.be.host
    return RidgeFit(
        np.concatenate([c.lag for c in choices]),
        np.concatenate([c.alpha for c in choices]),
        np.asarray(grid.components)[np.concatenate([c.components for c in choices])],
        np.concatenate(best),
        native(engine.be.concatenate(list(weights), 0)).T,
        native(engine.be.concatenate(list(nuisance), 0)).T,
        native(engine.be.concatenate(list(intercept), 0)),
    )


def _whole_fits(
    engine: Engine, responses: Array
) -> Iterator[tuple[Choice, FloatArray, Array, Array, Array]]:
    """Choice, best score, weights, weights of unpenalised columns and intercept of each chunk of targets."""
    n_targets = responses.shape[2]
    scores = None
    if not engine.grid.selection.alone:
        engine.reserve(1, n_targets)
        settings = (len(engine.grid.components), len(engine.grid.alphas))
        scores = np.empty((1, responses.shape[0], *settings, n_targets))
        for chunk in engine.chunks(1, n_targets):
            loaded = engine.load(responses, [None], chunk)
            scores[..., chunk[0].targets] = engine.inner_scores(loaded, 1)
        joint = engine.choose(scores)[0]
    for chunk in engine.chunks(1, n_targets):
        loaded = engine.load(responses, [None], chunk)
        if scores is None:
            own = engine.inner_scores(loaded, 1)
            choice = engine.choose(own)[0]
        else:
            own = scores[..., chunk[0].targets]
            choice = choice_of(joint, chunk[0].targets)
        axes = engine.trained(frozenset()).axes
        projected, coefficients = engine.fitted(
            axes, loaded, choice.lag, choice.alpha, choice.components
        )
        place = (choice.lag, choice.components, choice.alpha, np.arange(own.shape[-1]))
        columns = loaded.columns(choice.lag)
        yield (
            choice,
            own[0][place],
            *engine.raw_weights(axes, loaded, columns, projected, coefficients),
        )
