"""Nested, blocked, cross-validated ridge regression over lags × principal components × penalties.

Every outer block is predicted from the others; its lag, penalty and number of components are chosen on each of the
other blocks in turn. The training set without blocks {o, i} serves outer block o with validation block i and outer i
with validation o, so that F(F−1)/2 + F decompositions are enough for F blocks. Lags and row orders are applied to the
responses while the features stay: they cost products, no decomposition.

Reference: Hoerl & Kennard (1970), Technometrics 12:55–67. docs/explanation/engine.md derives the algorithm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from lpact.math.ridge._arrays import Held, nested_validation
from lpact.math.ridge._design import FittedFeatures, Form
from lpact.math.ridge._engine import Engine, Fitted, HeldOutResults, Loaded, fit_all_rows
from lpact.math.ridge._products import NotSmall
from lpact.math.ridge.compute import Array, Compute
from lpact.math.ridge.grid import METRICS, Choice, RidgeGrid
from lpact.math.ridge.results import Readout, RidgeFit
from lpact.math.ridge.small import SmallRidge
from lpact.math.splits import BlockedFolds
from lpact.math.types import IntArray


def nested_ridge(
    design: Array | FittedFeatures,
    responses: Array,
    folds: BlockedFolds,
    grid: RidgeGrid,
    *,
    unpenalised: Array | None = None,
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
        [n_lags, n, t], one array per candidate lag. Must be finite.
    folds
        Outer blocks; every other block validates. At least three.
    grid
        Penalties, component counts and how to choose.
    unpenalised
        [n, m]: columns whose weights are not penalised. An intercept is always included.
    metrics
        Held-out scores to compute.
    keep
        ``"predictions"``, ``"weights"``, or both, to include them in the result.
    form
        Decompose the Gram matrix of columns (``"primal"``) or of rows (``"kernel"``), or the smaller one.
    compute
        Device, precision and memory.
    """
    if unpenalised is None and not keep and form == "auto":
        return NestedRidge(responses, folds, grid, metrics=metrics, compute=compute).fit(design)
    (readout,) = nested_ridge_draws(
        design,
        responses,
        folds,
        grid,
        [None],
        unpenalised=unpenalised,
        metrics=metrics,
        keep=keep,
        form=form,
        compute=compute,
    )
    return readout


class NestedRidge:
    """`nested_ridge` of the same responses from one design after another.

    Statistics of the responses are computed once. Small fits solve all training sets at once (see
    `lpact.math.ridge.small`); others use `nested_ridge_draws`. A readout depends on its own design only.
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
        check_inputs(responses, folds, metrics=metrics, min_blocks=3)
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
        data = (design, self.responses, self.folds, self.grid, [None])
        (readout,) = nested_ridge_draws(*data, metrics=self.metrics, compute=self.compute)
        return readout


def nested_ridge_draws(
    design: Array | FittedFeatures,
    responses: Array,
    folds: BlockedFolds,
    grid: RidgeGrid,
    orders: Iterable[IntArray | None],
    *,
    unpenalised: Array | None = None,
    metrics: Sequence[str] = METRICS,
    keep: Sequence[str] = (),
    form: Form = "auto",
    compute: Compute | None = None,
) -> list[Readout]:
    """The same readout for several row orders of the responses, sharing everything that depends on the features.

    ``orders`` are permutations [n], None for the responses in their own order: event i of the features is paired with
    event ``order[i]`` of the responses, at every lag. Circular shifts, block and token shuffles are such orders.
    """
    check_inputs(
        responses,
        folds,
        metrics=metrics,
        keep=keep,
        unpenalised=unpenalised,
        form=form,
        min_blocks=3,
    )
    checked = [None if order is None else _permutation(order, folds.n_rows) for order in orders]
    if not checked:
        return []
    engine = Engine(
        design,
        responses,
        folds,
        grid,
        nested_validation(folds),
        nested_tests(folds),
        orders=checked,
        unpenalised=unpenalised,
        form=form,
        compute=compute,
    )
    results = HeldOutResults(engine, metrics, keep)
    choices = []
    for loaded, choice, _ in engine.chosen():
        choices.append(choice)
        results.add(loaded, partial(engine.fit_chosen, loaded, choice))
    every = joined_choice(choices)
    components = np.asarray(grid.components)[every.components]
    n_targets, readouts = responses.shape[2], []
    for first in range(0, engine.n_targets, n_targets):

        def own(values: Any, targets: slice = slice(first, first + n_targets)) -> Any:
            return np.ascontiguousarray(values[..., targets])

        readouts.append(
            Readout(
                folds,
                own(every.lag),
                own(every.alpha),
                own(components),
                {metric: own(scores) for metric, scores in results.pooled.items()},
                {metric: own(scores) for metric, scores in results.by_fold.items()},
                **{name: own(values) for name, values in results.kept.items()},
            )
        )
    return readouts


def cross_validated_ridge(
    design: Array | FittedFeatures,
    responses: Array,
    folds: BlockedFolds,
    grid: RidgeGrid,
    *,
    unpenalised: Array | None = None,
    form: Form = "auto",
    compute: Compute | None = None,
) -> RidgeFit:
    """Choose lag, penalty and components with every block as validation block in turn, then fit on all rows.

    Parameters are those of `nested_ridge`; two blocks are enough.
    """
    check_inputs(responses, folds, unpenalised=unpenalised, form=form, min_blocks=2)
    engine = Engine(
        design,
        responses,
        folds,
        grid,
        {frozenset({block}): [(0, folds.rows(block))] for block in range(folds.n_blocks)},
        {frozenset(): []},
        unpenalised=unpenalised,
        form=form,
        compute=compute,
    )
    choices, best = [], []

    def fits() -> Iterator[tuple[Loaded, list[Fitted]]]:
        for loaded, choice, scores in engine.chosen():
            lag, components, alpha = choice.lag[0], choice.components[0], choice.alpha[0]
            choices.append(choice)
            best.append(scores[0][lag, components, alpha, np.arange(loaded.n_targets)])
            yield loaded, engine.fit_chosen(loaded, choice, 0, frozenset())

    weights = fit_all_rows(engine, fits())
    every = joined_choice(choices)
    components = np.asarray(grid.components)[every.components[0]]
    return RidgeFit(every.lag[0], every.alpha[0], components, np.concatenate(best), *weights)


def joined_choice(choices: Sequence[Choice]) -> Choice:
    """The choices of all chunks of targets."""
    return Choice(
        np.concatenate([c.lag for c in choices], axis=-1),
        np.concatenate([c.components for c in choices], axis=-1),
        np.concatenate([c.alpha for c in choices], axis=-1),
    )


def nested_tests(folds: BlockedFolds) -> dict[Held, list[slice]]:
    """The rows that every outer training set predicts."""
    return {frozenset({block}): [folds.rows(block)] for block in range(folds.n_blocks)}


def check_inputs(
    responses: Array,
    folds: BlockedFolds,
    *,
    metrics: Sequence[str] = (),
    keep: Sequence[str] = (),
    unpenalised: Array | None = None,
    form: str = "auto",
    min_blocks: int,
) -> None:
    """Raise `ValueError` if shapes, folds or names are invalid."""
    if getattr(responses, "ndim", 0) != 3:
        shape = tuple(getattr(responses, "shape", ())) or type(responses).__name__
        raise ValueError(f"responses must be an array [n_lags, n, t], got {shape}")
    n_lags, n_rows, n_targets = responses.shape
    if n_lags == 0 or n_targets == 0:
        raise ValueError(
            f"responses need at least one lag and one target, got {n_lags} lags and {n_targets} targets"
        )
    if folds.n_rows != n_rows:
        raise ValueError(f"folds have {folds.n_rows} rows, responses have {n_rows}")
    if folds.n_blocks < min_blocks:
        work = "cross-validation" if min_blocks == 2 else "nested selection"
        raise ValueError(f"{work} needs at least {min_blocks} blocks, got {folds.n_blocks}")
    if unpenalised is not None and (unpenalised.ndim != 2 or unpenalised.shape[0] != n_rows):
        raise ValueError(
            f"unpenalised columns must be [{n_rows}, m], got shape {tuple(unpenalised.shape)}"
        )
    for name, given, known in (
        ("metrics", metrics, METRICS),
        ("keep", keep, ("predictions", "weights")),
        ("form", (form,), ("auto", "primal", "kernel")),
    ):
        if isinstance(given, str):
            raise ValueError(f"{name} must be a list, got the text '{given}'")
        unknown = [value for value in given if value not in known]
        if unknown:
            raise ValueError(f"{name}: unknown value '{unknown[0]}'; known: {', '.join(known)}")


def _permutation(order: IntArray, n_rows: int) -> IntArray:
    checked = np.asarray(order)
    whole = checked.ndim == 1 and np.issubdtype(checked.dtype, np.integer)
    if not whole or not np.array_equal(np.sort(checked), np.arange(n_rows)):
        raise ValueError(
            f"an order must be a permutation of the row numbers 0 to {n_rows - 1}, as integers, got "
            f"shape {checked.shape} of {checked.dtype}"
        )
    return checked.astype(np.int64)
