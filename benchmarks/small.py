"""Small nested fits, as calibration makes them by the thousand, beside the engine that large fits use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases import N_FOLDS, DisagreementError, Settings
from benchmarks.data import Problem, simulate
from benchmarks.machine import threads
from benchmarks.report import Result
from benchmarks.timing import in_turns
from lpact.math.ridge import NestedRidge, Readout, RidgeGrid, nested_ridge_draws
from lpact.math.splits import BlockedFolds, contiguous_folds

SIZES = ((300, 42, 10, 1), (450, 60, 16, 3))
"""Rows, columns, targets and lags."""
FITS = 20
GRID = RidgeGrid((1.0, 100.0, 10_000.0))
METRICS = ("pearson",)
TARGETS = {"an array": 2.5, "fitted": 2.0}
"""Fitted features cost both the same to make."""
TOLERANCE = 1e-10


def small(settings: Settings) -> Iterator[Result]:
    """Features as an array, and features fitted on the training rows."""
    for n, p, t, n_lags in SIZES:
        problem = simulate(n, p, t, n_lags=n_lags)
        folds = contiguous_folds(n, N_FOLDS, gap=3)
        designs = {"an array": problem.x, "fitted": partial(_regressed, problem.x)}
        for kind, design in designs.items():
            name = f"{FITS} small nested fits, {n_lags} lags, features {kind}"
            result = _beside_engine(name, design, problem, folds, settings)
            yield replace(result, target=TARGETS[kind])


def _regressed(x: Any, train: Any) -> Any:
    """A variable regressed out of all columns, on the training rows."""
    m = x[:, 0] + np.linspace(0.0, 1.0, len(x))
    m = m - m[train].mean()
    slopes = (x[train] - x[train].mean(axis=0)).T @ m[train] / (m[train] @ m[train])
    return x - np.outer(m, slopes)


def _small_fits(design: Any, problem: Problem, folds: BlockedFolds) -> Readout:
    shared = NestedRidge(problem.y, folds, GRID, metrics=METRICS)
    return [shared.fit(design) for _ in range(FITS)][-1]


def _engine_fits(design: Any, problem: Problem, folds: BlockedFolds) -> Readout:
    fit = partial(nested_ridge_draws, design, problem.y, folds, GRID, [None], metrics=METRICS)
    return [fit()[0] for _ in range(FITS)][-1]


def _beside_engine(name: str, design: Any, problem: Problem, folds: BlockedFolds, settings: Settings) -> Result:
    ours = partial(_small_fits, design, problem, folds)
    engine = partial(_engine_fits, design, problem, folds)
    in_turns(ours, engine, 1)
    timed = in_turns(ours, engine, settings.repeats)
    a, b = timed.our_result, timed.peer_result
    largest = float(np.abs(a.fold_scores("pearson") - b.fold_scores("pearson")).max())
    same = float(((a.lag == b.lag) & (a.alpha == b.alpha)).mean())
    if not (largest <= TOLERANCE and same == 1.0):
        raise DisagreementError(f"scores differ by {largest:.2g}, {same:.0%} of settings are same")
    return Result(
        name=name,
        peer="our engine for large fits",
        ratio=timed.peer.wall / timed.ours.wall,
        cpu_ratio=timed.peer.cpu / timed.ours.cpu,
        target=None,
        same_work=True,
        seconds_ours=timed.ours.wall,
        seconds_peer=timed.peer.wall,
        threads=threads(),
        repeats=settings.repeats,
        max_difference=largest,
        same_choices=same,
        **problem.sizes,  # type: ignore[arg-type]
    )
