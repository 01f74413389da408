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

from lpact.math.ridge._arrays import FittedFeatures, Form
from lpact.math.ridge._engine import Engine, Fitted, HeldOutResults, Loaded, check_inputs, fit_all_rows
from lpact.math.ridge.compute import Array, Compute
from lpact.math.ridge.grid import METRICS, Readout, RidgeFit, RidgeGrid, check_known
from lpact.math.ridge.small import NotSmall, SmallRidge
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
    options: dict[str, Any] = {"unpenalised": unpenalised, "form": form, "compute": compute}
    data = (design, responses, folds, grid, [None])
    return nested_ridge_draws(*data, metrics=metrics, keep=keep, **options)[0]


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
        check_inputs(responses, folds, nested=True)
        check_known("metric", metrics, METRICS)
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
    checked = [None if order is None else _permutation(order, folds.n_rows) for order in orders]
    if not checked:
        return []
    options: dict[str, Any] = {"unpenalised": unpenalised, "form": form, "compute": compute}
    engine = Engine(design, responses, folds, grid, nested=True, orders=checked, **options)
    results = HeldOutResults(engine, metrics, keep)
    choices = []
    for loaded, choice, _ in engine.chosen():
        choices.append(choice)
        results.add(loaded, partial(engine.fit_chosen, loaded, choice))
    lag, components, alpha = np.concatenate(choices, axis=-1)
    components = np.asarray(grid.components)[components]
    n_targets = responses.shape[2]

    def readout(first: int) -> Readout:
        def own(values: Any) -> Any:
            return np.ascontiguousarray(values[..., first : first + n_targets])

        pooled, by_fold, kept = (
            {name: own(values) for name, values in found.items()}
            for found in (results.pooled, results.by_fold, results.kept)
        )
        return Readout(folds, own(lag), own(alpha), own(components), pooled, by_fold, **kept)

    return [readout(first) for first in range(0, engine.n_targets, n_targets)]


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
    data = (design, responses, folds, grid)
    engine = Engine(*data, nested=False, unpenalised=unpenalised, form=form, compute=compute)
    choices, best = [], []

    def fits() -> Iterator[tuple[Loaded, list[Fitted]]]:
        for loaded, choice, scores in engine.chosen():
            choices.append(choice[:, 0])
            best.append(scores[0][*choice[:, 0], np.arange(loaded.n_targets)])
            yield loaded, engine.fit_chosen(loaded, choice, 0, frozenset())

    weights = fit_all_rows(engine, fits())
    lag, components, alpha = np.concatenate(choices, axis=-1)
    components = np.asarray(grid.components)[components]
    return RidgeFit(lag, alpha, components, np.concatenate(best), *weights)


def _permutation(order: IntArray, n_rows: int) -> IntArray:
    checked = np.asarray(order)
    whole = checked.ndim == 1 and np.issubdtype(checked.dtype, np.integer)
    if not whole or not np.array_equal(np.sort(checked), np.arange(n_rows)):
        raise ValueError(
            f"an order must be a permutation of the row numbers 0 to {n_rows - 1}, as integers, got "
            f"shape {checked.shape} of {checked.dtype}"
        )
    return checked.astype(np.int64)
