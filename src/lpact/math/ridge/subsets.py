"""Readouts from many subsets of the same feature spaces, sharing Gram matrices or kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lpact.math.ridge.bands import Chunks, SpacesEngine
from lpact.math.ridge.checks import check_inputs
from lpact.math.ridge.compute import Array, Compute
from lpact.math.ridge.design import Form
from lpact.math.ridge.engine import Engine
from lpact.math.ridge.grid import RidgeGrid
from lpact.math.ridge.refit import Collector, choice_of, refit
from lpact.math.ridge.results import METRICS, Readout
from lpact.math.ridge.rows import nested_validation
from lpact.math.splits import BlockedFolds


def subset_readouts(
    spaces: Sequence[Array],
    responses: Array,
    folds: BlockedFolds,
    grid: RidgeGrid,
    subsets: Sequence[Sequence[int]],
    *,
    unpenalised: Array | None = None,
    metrics: Sequence[str] = METRICS,
    keep: Sequence[str] = (),
    form: Form = "auto",
    compute: Compute | None = None,
) -> list[Readout]:
    """Nested readouts from subsets of feature spaces, each as `nested_ridge` from the subset's columns side by side.

    What does not depend on the subset is made once: responses, their products with all columns, and Gram matrices or
    one kernel per feature space of every training set. A subset then costs its decompositions and validation scores.

    Parameters
    ----------
    spaces
        Feature spaces, [n, p_g] each.
    subsets
        Numbers of the feature spaces of every subset, in increasing order; see `space_subsets` for all of them.
    responses, folds, grid, unpenalised, metrics, keep, form, compute
        As in `nested_ridge`. The form is chosen for all spaces together.
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
    for subset in subsets:
        known = range(len(spaces))
        if not subset or list(subset) != sorted(set(subset)) or not set(subset) <= set(known):
            raise ValueError(
                f"a subset must be increasing numbers of the {len(spaces)} feature spaces, got {tuple(subset)}"
            )
    n_lags, _, n_targets = responses.shape
    engine = SpacesEngine(
        spaces,
        folds,
        grid,
        nested_validation(folds),
        {frozenset({block}): [folds.rows(block)] for block in range(folds.n_blocks)},
        unpenalised=unpenalised,
        form=form,
        compute=compute or Compute(),
        n_columns=n_lags * n_targets,
        n_lags=n_lags,
    )
    if not grid.selection.alone:
        engine.reserve(folds.n_blocks, n_targets)
    chunks = Chunks(engine, responses)
    keep_bytes = engine.decomposition_bytes // max(1, len(subsets))
    views, collectors = [], []
    for subset in subsets:
        gamma = np.zeros(len(spaces))
        gamma[list(subset)] = 1.0
        views.append(engine.weighted(gamma, keep_bytes=keep_bytes))
        collectors.append(Collector(engine, responses, metrics, keep))
    if grid.selection.alone:
        for _, loaded in chunks:
            for view, collector in zip(views, collectors, strict=True):
                choices = view.choose(view.inner_scores(loaded, folds.n_blocks))
                refit(view, loaded, choices, [collector])
    else:
        for view, collector in zip(views, collectors, strict=True):
            _pooled(view, collector, chunks, n_lags, n_targets)
    readouts = [collector.readout() for collector in collectors]
    return [_own_weights(r, engine, s) for r, s in zip(readouts, subsets, strict=True)]


def _pooled(
    view: Engine, collector: Collector, chunks: Chunks, n_lags: int, n_targets: int
) -> None:
    """Where targets choose together: all validation scores first, then all fits."""
    n_blocks, grid = view.folds.n_blocks, view.grid
    scores = np.empty((n_blocks, n_lags, len(grid.components), len(grid.alphas), n_targets))
    for targets, loaded in chunks:
        scores[..., targets] = view.inner_scores(loaded, n_blocks)
    choices = view.choose(scores)
    for targets, loaded in chunks:
        refit(view, loaded, [choice_of(choice, targets) for choice in choices], [collector])


def _own_weights(readout: Readout, engine: SpacesEngine, subset: Sequence[int]) -> Readout:
    """Weights of the subset's own columns alone."""
    if readout.weights is None:
        return readout
    columns = np.concatenate(
        [np.arange(s.start, s.stop) for s in (engine.slices[g] for g in subset)]
    )
    return replace(readout, weights=readout.weights[:, columns])
