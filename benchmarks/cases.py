"""What is measured beside other libraries: single-shot nested ridge, the full grid, and control draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.data import ALPHAS, COMPONENTS, Problem, simulate
from benchmarks.machine import threads
from benchmarks.report import Result
from benchmarks.timing import Seconds, in_turns, stopwatch
from lpact.math.ridge import Compute, Readout, RidgeGrid, nested_ridge, nested_ridge_draws
from lpact.math.splits import BlockedFolds, contiguous_folds

N_FOLDS = 5
ALL_BLOCKS = tuple(range(N_FOLDS))
TOLERANCE = {"float64": 1e-8, "float32": 1e-4}
"""Differences of held-out R² that rounding explains, where both chose the same settings."""

TARGETS: dict[str, dict[int, float]] = {
    "himalaya": {1_500: 4.0, 5_000: 8.0},
    "scikit-learn": {1_500: 1.5, 5_000: 2.0},
    "grid": {1_500: 14.0, 5_000: 42.0},
    "draws": {1_500: 15.0},
}
"""Ratios to reach, by the number of rows."""

FEW_ROWS = 2_000
"""Up to here a peer's full grid is run whole."""

SCALING = "the peer scales features once an outer block, ours on every inner training set too"
STACKED = "lags are the peer's targets side by side, so that they share its decompositions"


@dataclass(frozen=True)
class Settings:
    """Sizes and efforts of a run."""

    rows: tuple[int, ...]
    p: int
    t: int
    components: tuple[int, ...]
    draws: int
    targets: int
    """Targets of the memory case."""
    two_threads: bool = True
    """Whether two BLAS threads are put beside a busy loop, which can take long."""
    repeats: int = 3
    peers: bool = True


FULL = Settings((1_500, 5_000), 768, 250, COMPONENTS, 100, 90_000)
QUICK = Settings((100, 200), 24, 10, (4, 8, 0), 3, 3_000, two_threads=False)


SAME_CHOICES = 0.5
"""Share of settings that ours and a peer must choose alike, at least; the peers' inner work differs a little."""


@dataclass(frozen=True)
class Peer:
    """One way to do the same analysis with another library.

    ``outer`` are the outer blocks that are run, all of about the same size; the time is scaled to all of them.
    """

    name: str
    run: Callable[..., peers.Held]
    target: float | None
    same_work: bool = True
    precision: str = "float64"
    outer: tuple[int, ...] = ALL_BLOCKS
    note: str = SCALING

    @property
    def whole(self) -> float:
        """Times that the measured part goes into a whole run."""
        return N_FOLDS / len(self.outer)

    @property
    def remark(self) -> str:
        """The note, and what part was measured."""
        if self.outer == ALL_BLOCKS:
            return self.note
        part = f"peer measured on {len(self.outer)} of {N_FOLDS} outer blocks, times {self.whole:g}"
        return f"{self.note}; {part}"


class DisagreementError(AssertionError):
    """Ours and a peer differ where they must not: a fast wrong answer is worth nothing."""


def grid_of(components: tuple[int, ...] = (0,)) -> RidgeGrid:
    """The penalties of all cases, chosen by R² on validation blocks, per target."""
    return RidgeGrid(alphas=ALPHAS, components=components, metric="r2")


def fit(problem: Problem, folds: BlockedFolds, grid: RidgeGrid, precision: str) -> Readout:
    """Our nested ridge with held-out R², by NumPy."""
    compute = Compute(precision=precision)  # type: ignore[arg-type]
    return nested_ridge(problem.x, problem.y, folds, grid, metrics=("r2",), compute=compute)


def single_shot(settings: Settings) -> Iterator[Result]:
    """One lag, all features, every penalty."""
    for n in settings.rows:
        problem = simulate(n, settings.p, settings.t, n_lags=1)
        contenders = _single_shot_peers(n) if settings.peers else ()
        yield from _beside("single-shot nested ridge", problem, grid_of(), contenders, settings)


def full_grid(settings: Settings) -> Iterator[Result]:
    """Five lags, three PCA sizes, every penalty."""
    for n in settings.rows:
        problem = simulate(n, settings.p, settings.t, n_lags=5)
        contenders = _grid_peers(n, settings.components) if settings.peers else ()
        grid = grid_of(settings.components)
        yield from _beside("full grid, 5 lags x 3 PCA sizes", problem, grid, contenders, settings)


def draws(settings: Settings) -> Iterator[Result]:
    """The real responses and their circular shifts; the peer is refitted for every draw."""
    n = settings.rows[0]
    problem, folds, grid = (
        simulate(n, settings.p, settings.t, n_lags=1),
        contiguous_folds(n, N_FOLDS),
        grid_of(),
    )
    shifts = np.linspace(n // 10, n - n // 10, settings.draws).astype(int)
    orders = [None, *(np.roll(np.arange(n), shift) for shift in shifts)]
    name = f"real + {settings.draws} circular shifts"

    def ours() -> list[Readout]:
        return list(nested_ridge_draws(problem.x, problem.y, folds, grid, orders, metrics=("r2",)))

    if not settings.peers:
        seconds, _ = stopwatch(ours)
        yield _alone(name, seconds, problem)
        return
    peer = _himalaya(TARGETS["draws"].get(n))
    turns = iter(range(0, len(orders), max(1, len(orders) // settings.repeats)))

    def one_draw() -> tuple[int, peers.Held]:
        draw = next(turns)
        order = orders[draw]
        y = problem.y if order is None else problem.y[:, order]
        return draw, peer.run(Problem(problem.x, y), folds, ALL_BLOCKS)

    _warm_up(peer, grid)
    timed = in_turns(ours, one_draw, settings.repeats)
    draw, held = timed.peer_result
    agreed = agreement(timed.our_result[draw], held, grid, ALL_BLOCKS, "float64")
    note = f"{peer.note}; peer measured on {settings.repeats} draws, median times {len(orders)}"
    peer = replace(peer, name=f"{peer.name}, refitted a draw", note=note)
    seconds = timed.peer.times(len(orders))
    yield _compared(name, peer, timed.ours, seconds, problem, settings, agreed)


def agreement(
    ours: Readout, peer: peers.Held, grid: RidgeGrid, outer: tuple[int, ...], precision: str
) -> dict[str, float]:
    """Largest difference of held-out R² where both chose the same, and how often they did.

    Given the same settings both refit the same model on the same rows, so that they must agree to rounding. What they
    choose may differ where a note says that the peer's inner work is another.
    """
    rows = list(outer)
    places = {k: i for i, k in enumerate(grid.components)}
    size = np.vectorize(places.__getitem__)(ours.components[rows])
    same = (ours.lag[rows] == peer.lag) & (size == peer.components) & (ours.alpha[rows] == peer.alpha)
    if same.mean() < SAME_CHOICES:
        raise DisagreementError(f"only {same.mean():.0%} of the settings chosen are the same")
    largest = float(np.abs(ours.fold_scores("r2")[rows] - peer.r2)[same].max())
    if not largest <= TOLERANCE[precision]:
        raise DisagreementError(f"held-out R² differs by {largest:.2g} under the same settings")
    return {"max_difference": largest, "same_choices": float(same.mean())}


def _himalaya(target: float | None, **options: Any) -> Peer:
    """himalaya's RidgeCV on NumPy in double, or as the options say."""
    backend = options.pop("backend", "numpy")
    kernel = options.pop("kernel", False)

    def run(problem: Problem, folds: BlockedFolds, outer: tuple[int, ...]) -> peers.Held:
        return peers.himalaya_nested(
            problem.x, problem.y[0], folds, ALPHAS, backend=backend, outer=outer, kernel=kernel
        )

    model = "KernelRidgeCV" if kernel else "RidgeCV"
    return Peer(f"himalaya {model} {backend}", run, target, **options)


def _single_shot_peers(n: int) -> Iterator[Peer]:
    fast = TARGETS["himalaya"].get(n)
    yield _himalaya(fast)
    yield _himalaya(fast, backend="torch", precision="float32")
    if n <= FEW_ROWS:  # for more rows its kernel is far larger than the features' Gram matrix
        yield _himalaya(fast, backend="numpy", precision="float32")
        yield _himalaya(None, kernel=True, note=f"{SCALING}; not its RidgeCV, but faster here")

    def run(problem: Problem, folds: BlockedFolds, outer: tuple[int, ...]) -> peers.Held:
        return peers.sklearn_nested(problem.x, problem.y[0], folds, ALPHAS, outer=outer)

    note = "leave-one-out inside: one decomposition an outer block where ours has three"
    target = TARGETS["scikit-learn"].get(n)
    yield Peer("scikit-learn RidgeCV in a loop", run, target, False, note=note)


def _grid_peers(n: int, components: tuple[int, ...]) -> Iterator[Peer]:
    def run(
        problem: Problem,
        folds: BlockedFolds,
        outer: tuple[int, ...],
        *,
        backend: str,
        stacked: bool = False,
    ) -> peers.Held:
        return peers.himalaya_grid(
            problem.x,
            problem.y,
            folds,
            ALPHAS,
            components,
            backend=backend,
            outer=outer,
            stacked=stacked,
        )

    target = TARGETS["grid"].get(n)
    outer = (0,)
    less = "less work: scaling and PCA once an outer block, ours on every inner training set too"
    usual = partial(Peer, outer=outer, same_work=False, note=less)
    yield usual("himalaya RidgeCV numpy, a lag and size", partial(run, backend="numpy"), target)
    if n <= FEW_ROWS:
        yield usual(
            "himalaya RidgeCV torch, a lag and size",
            partial(run, backend="torch"),
            target,
            precision="float32",
        )
    yield usual(
        "himalaya RidgeCV numpy, lags stacked",
        partial(run, backend="numpy", stacked=True),
        None,
        note=f"{less}; {STACKED}",
    )


def _beside(
    name: str,
    problem: Problem,
    grid: RidgeGrid,
    contenders: Iterator[Peer] | tuple[()],
    settings: Settings,
) -> Iterator[Result]:
    """Ours and each of the contenders in turns on the same arrays; ours alone where there are none."""
    folds = contiguous_folds(len(problem.x), N_FOLDS)
    if not settings.peers:
        seconds, _ = stopwatch(lambda: fit(problem, folds, grid, "float64"))
        yield _alone(name, seconds, problem)
    for peer in contenders:
        own = problem.at(peer.precision)
        _warm_up(peer, grid)
        timed = in_turns(
            partial(fit, own, folds, grid, peer.precision),
            partial(peer.run, own, folds, peer.outer),
            settings.repeats,
        )
        agreed = agreement(timed.our_result, timed.peer_result, grid, peer.outer, peer.precision)
        seconds = timed.peer.times(peer.whole)
        yield _compared(name, peer, timed.ours, seconds, own, settings, agreed)


def _warm_up(peer: Peer, grid: RidgeGrid) -> None:
    """Imports and first calls of both, on a small problem."""
    largest = max(grid.components) + 8
    small = simulate(5 * largest, largest, 4, n_lags=2).at(peer.precision)
    folds = contiguous_folds(len(small.x), N_FOLDS)
    fit(small, folds, grid, peer.precision)
    peer.run(small, folds, (0,))


def _compared(
    name: str,
    peer: Peer,
    ours: Seconds,
    theirs: Seconds,
    problem: Problem,
    settings: Settings,
    agreed: dict[str, float],
) -> Result:
    return Result(
        name=name,
        peer=peer.name,
        ratio=theirs.wall / ours.wall,
        cpu_ratio=theirs.cpu / ours.cpu,
        target=peer.target,
        same_work=peer.same_work,
        seconds_ours=ours.wall,
        seconds_peer=theirs.wall,
        precision=peer.precision,
        threads=threads(),
        repeats=settings.repeats,
        note=peer.remark,
        **problem.sizes,
        **agreed,
    )


def _alone(name: str, seconds: Seconds, problem: Problem) -> Result:
    return Result(
        name=name,
        peer=None,
        ratio=None,
        target=None,
        same_work=True,
        seconds_ours=seconds.wall,
        threads=threads(),
        note="no peers were run",
        **problem.sizes,
    )
