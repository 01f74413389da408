"""Banded ridges on subsets of feature spaces, beside himalaya on the same folds, candidates and scaling.

The shape is that of sentences in fMRI: 384 rows in eight blocks, six feature spaces in five steps, all subsets of the
steps, 13 penalties. Columns are standard in every block and responses centred there, so that scaling on outer and
on inner training rows is the same and himalaya needs no intercept.

himalaya searches each subset in every outer block, over its seven inner blocks. Its `GroupRidgeCV` takes no weight of
0, so candidates that drop spaces are fits of the others, one for all candidates with the same spaces. Its
multiple-kernel ridge takes weights of 0 and kernels that are made once per outer block for all subsets: its fastest way
here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.cases import DisagreementError, Settings
from benchmarks.data import Floats
from benchmarks.machine import peak_bytes, threads
from benchmarks.report import Result
from benchmarks.timing import in_turns, stopwatch
from lpact.math.ridge import BandedGrid, BandedSubsets, banded_candidates
from lpact.math.splits import BlockedFolds, contiguous_folds

Subsets = tuple[tuple[int, ...], ...]

STEPS = ((0, 1), (2,), (3,), (4,), (5,))
"""Bands of every step."""
SIZES = (4, 1, 300, 300, 1600, 1600)
QUICK_SIZES = (4, 1, 10, 10, 40, 40)
SAMPLE = ((0,), (0, 1), (0, 3), (0, 1, 4))
"""Steps of the subsets that all contenders fit."""
N_BLOCKS = 8
OUTER = 1
"""Outer blocks that the peers are run on; they are of equal size."""
TARGET = 5.0
LARGEST = 1e-6
"""Difference of predictions, in units of the responses' spread, that is agreement."""
SAME = 0.995
"""Share of targets on which both must agree: rounding may decide between settings that are equally good."""


def grid(draws: int) -> BandedGrid:
    """All ways of dropping bands, then a fixed number of draws."""
    return BandedGrid(tuple(2.0**i for i in range(-5, 20, 2)), draws=draws, patience=max(1, draws), metric="r2")


def bands(steps: tuple[int, ...]) -> tuple[int, ...]:
    """Bands of some steps."""
    return tuple(band for step in steps for band in STEPS[step])


def every() -> Subsets:
    """All subsets of the steps."""
    return tuple(bands(own) for size in range(1, len(STEPS) + 1) for own in combinations(range(len(STEPS)), size))


@dataclass(frozen=True)
class SpacesProblem:
    """Feature spaces, responses [n, t] and folds."""

    spaces: tuple[Floats, ...]
    y: Floats
    folds: BlockedFolds


def simulate(n: int, sizes: tuple[int, ...], t: int) -> SpacesProblem:
    """Spaces that matter less and less, to targets of many signal-to-noise ratios."""
    rng = np.random.default_rng(0)
    folds = contiguous_folds(n, N_BLOCKS)
    spaces = tuple(rng.standard_normal((n, p)) for p in sizes)
    strength = rng.dirichlet(np.ones(len(sizes)), t) * rng.uniform(0.0, 1.5, (t, 1))
    y = rng.standard_normal((n, t))
    for space, own in zip(spaces, strength.T, strict=True):
        y += own * (space @ rng.standard_normal((space.shape[1], t))) / np.sqrt(space.shape[1])
    for block in range(N_BLOCKS):
        rows = folds.rows(block)
        y[rows] -= y[rows].mean(axis=0)
        for space in spaces:
            space[rows] = (space[rows] - space[rows].mean(axis=0)) / space[rows].std(axis=0)
    return SpacesProblem(spaces, y, folds)


def ours(problem: SpacesProblem, chosen: Subsets, draws: int) -> Floats:
    """Predictions of every subset, [S, n, t]."""
    fitted = BandedSubsets(problem.spaces, problem.y[None], problem.folds, grid(draws), chosen)
    return np.concatenate([predicted for *_, predicted in fitted.predictions()], axis=2)


# --- himalaya -------------------------------------------------------------------------------------------------------


def _peer(backend: str, search: Callable[..., Floats], problem: SpacesProblem, chosen: Subsets, draws: int) -> Floats:
    """Predictions of the first outer blocks, [S, rows, t]."""
    from himalaya.backend import set_backend
    from himalaya.scoring import r2_score
    from sklearn.model_selection import PredefinedSplit

    set_backend(backend)
    if backend == "torch":
        import torch

        as_array: Any = torch.as_tensor
    else:
        as_array = np.asarray
    block_of_row = np.repeat(np.arange(N_BLOCKS), problem.folds.test_sizes())
    found = []
    for outer in range(OUTER):
        train, test = np.flatnonzero(block_of_row != outer), problem.folds.rows(outer)
        own = {
            "cv": PredefinedSplit(block_of_row[train]),
            "alphas": as_array(np.array(grid(draws).alphas)),
            "score_func": r2_score,
            "progress_bar": False,
        }
        xs = [(as_array(x[train]), as_array(x[test])) for x in problem.spaces]
        found.append(search(as_array, xs, as_array(problem.y[train]), chosen, draws, own))
    return np.concatenate(found, axis=1)


def _kernels(as_array: Any, xs: list[Any], y: Any, chosen: Subsets, draws: int, options: dict[str, Any]) -> Floats:
    """Multiple-kernel ridge, kernels made once."""
    from himalaya.backend import get_backend
    from himalaya.kernel_ridge import solve_multiple_kernel_ridge_random_search

    be = get_backend()
    kernels = be.stack([train @ train.T for train, _ in xs])
    cross = be.stack([test @ train.T for train, test in xs])
    found = []
    for subset in chosen:
        own = list(subset)
        gamma = as_array(banded_candidates(len(own), grid(draws)).gamma)
        with np.errstate(divide="ignore"):
            deltas, weights, _ = solve_multiple_kernel_ridge_random_search(
                kernels[own], y, n_iter=gamma, return_weights="dual", **options
            )
        found.append(be.to_numpy((be.exp(deltas)[:, None] * (cross[own] @ weights)).sum(0)))
    return np.stack(found)


def _groups(as_array: Any, xs: list[Any], y: Any, chosen: Subsets, draws: int, options: dict[str, Any]) -> Floats:
    """Banded ridge, one fit for all candidates with the same spaces."""
    from himalaya.backend import get_backend
    from himalaya.ridge import GroupRidgeCV

    be = get_backend()
    options = dict(options)
    cv = options.pop("cv")
    found = []
    for subset in chosen:
        gamma = banded_candidates(len(subset), grid(draws)).gamma
        supports = [tuple(np.flatnonzero(row).tolist()) for row in gamma]
        best = np.full(y.shape[1], -np.inf)
        predicted = np.empty((xs[0][1].shape[0], y.shape[1]))
        for support in dict.fromkeys(supports):
            tried = [row for row, s in zip(gamma, supports, strict=True) if s == support]
            columns = [xs[subset[g]] for g in support]
            model = GroupRidgeCV(
                groups=np.repeat(np.arange(len(support)), [train.shape[1] for train, _ in columns]),
                cv=cv,
                solver_params={
                    "n_iter": as_array(np.array(tried)[:, list(support)]),
                    "warn": False,
                    **options,
                },
            ).fit(be.concatenate([train for train, _ in columns], 1), y)
            score = be.to_numpy(model.cv_scores_).max(axis=0)
            guess = be.to_numpy(model.predict(be.concatenate([test for _, test in columns], 1)))
            better = score > best
            best[better], predicted[:, better] = score[better], guess[:, better]
        found.append(predicted)
    return np.stack(found)


PEERS: dict[str, tuple[Callable[..., Floats], float | None]] = {
    "himalaya GroupRidgeCV numpy": (partial(_peer, "numpy", _groups), TARGET),
    "himalaya GroupRidgeCV torch": (partial(_peer, "torch", _groups), TARGET),
    "himalaya multiple-kernel ridge numpy": (partial(_peer, "numpy", _kernels), None),
    "himalaya multiple-kernel ridge torch": (partial(_peer, "torch", _kernels), None),
}


# --- the case -------------------------------------------------------------------------------------------------------


def subsets(settings: Settings) -> Iterator[Result]:
    """A sample of subsets beside every peer; all of them beside the fastest; time and memory of all of them alone."""
    quick = settings.p < max(SIZES) // 4
    n, sizes, t, draws = (96, QUICK_SIZES, 30, 2) if quick else (384, SIZES, 1000, 10)
    problem = simulate(n, sizes, t)
    sample = tuple(bands(own) for own in SAMPLE)
    common: dict[str, Any] = {"n": n, "p": sum(sizes), "t": t, "threads": threads()}
    for name, (run, target) in PEERS.items() if settings.peers else ():
        yield _beside(name, run, target, problem, sample, draws, settings.repeats, common)
    alone = _alone("quick" if quick else "full")
    yield Result(
        name=f"{len(every())} subsets of feature spaces",
        peer=None,
        ratio=None,
        target=None,
        same_work=True,
        seconds_ours=alone["seconds"],
        note=f"{alone['candidates']:.0f} weights of {alone['listed']:.0f} that subsets list are distinct; peak memory "
        f"{alone['peak_bytes'] / 1e9:.2f} GB in a process of its own, of which data and predictions "
        f"{alone['data_bytes'] / 1e9:.2f} GB",
        **common,
    )
    if settings.peers:
        name = "himalaya multiple-kernel ridge numpy"
        yield _beside(name, PEERS[name][0], None, problem, every(), draws, 1, common)


def _beside(
    name: str,
    run: Callable[..., Floats],
    target: float | None,
    problem: SpacesProblem,
    chosen: Subsets,
    draws: int,
    repeats: int,
    common: dict[str, Any],
) -> Result:
    own = partial(ours, problem, chosen, draws)
    stopwatch(partial(run, problem, chosen[:1], 0))  # imports and first calls
    timed = in_turns(own, partial(run, problem, chosen, draws), repeats)
    rows = slice(0, timed.peer_result.shape[1])
    spread = problem.y.std(axis=0)
    apart = np.abs(timed.our_result[:, rows] - timed.peer_result).max(axis=1) / spread
    same = apart <= LARGEST
    if same.mean() < SAME:
        raise DisagreementError(f"only {same.mean():.1%} of the predictions agree with {name}")
    seconds = timed.peer.times(N_BLOCKS / OUTER)
    listed = sum(len(banded_candidates(len(s), grid(draws)).gamma) for s in chosen)
    return Result(
        name=f"{len(chosen)} subsets of feature spaces",
        peer=name,
        ratio=seconds.wall / timed.ours.wall,
        cpu_ratio=seconds.cpu / timed.ours.cpu,
        target=target,
        same_work=True,
        seconds_ours=timed.ours.wall,
        seconds_peer=seconds.wall,
        repeats=repeats,
        max_difference=float(apart[same].max()),
        same_choices=float(same.mean()),
        note=f"peer measured on {OUTER} of {N_BLOCKS} outer blocks, times {N_BLOCKS / OUTER:g}; {listed} weights in "
        "all subsets, of which ours tries each once; differences are of predictions, over the responses' spread",
        **common,
    )


def _alone(size: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.subsets", size]
    one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **one})
    if done.returncode:
        raise RuntimeError(f"the subsets failed:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(size: str) -> dict[str, float]:
    """Fit and predict all subsets, and look at the process's peak."""
    n, sizes, t, draws = (96, QUICK_SIZES, 30, 2) if size == "quick" else (384, SIZES, 1000, 10)
    problem, chosen = simulate(n, sizes, t), every()
    begun = perf_counter()
    predicted = ours(problem, chosen, draws)
    seconds = perf_counter() - begun
    listed = [
        (np.array(subset)[np.flatnonzero(row)].tobytes(), row[row > 0.0].tobytes())
        for subset in chosen
        for row in banded_candidates(len(subset), grid(draws)).gamma
    ]
    distinct = {own for own in listed if len(np.unique(np.frombuffer(own[1]))) == 1}
    data = predicted.nbytes + problem.y.nbytes + sum(x.nbytes for x in problem.spaces)
    drawn = sum(draws for subset in chosen if len(subset) > 1)
    return {
        "seconds": seconds,
        "peak_bytes": peak_bytes(),
        "data_bytes": data,
        "listed": len(listed),
        "candidates": len(distinct) + drawn,
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
