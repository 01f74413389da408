"""Two cores used well: processes side by side, and one beside a busy loop."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.synchronize import Barrier, Event
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.cases import N_FOLDS, Settings, fit, grid_of
from benchmarks.data import Problem, simulate
from benchmarks.report import Result
from benchmarks.timing import Seconds, middle, stopwatch
from lpact.math.ridge import RidgeGrid
from lpact.math.splits import BlockedFolds, contiguous_folds

FITS = 3
"""Fits that a worker times; each stands for one context of a study."""


def contention(settings: Settings) -> Iterator[Result]:
    """Throughput of two processes, and the speed of one beside a busy loop, with one BLAS thread and with two."""
    n, repeats = settings.rows[0], settings.repeats
    sizes = {"n": n, "p": settings.p, "t": settings.t}
    spawn = multiprocessing.get_context("spawn")
    alone, together, beside = [], [], []
    for _ in range(repeats):
        alone.append(_seconds(spawn, 1, 1, sizes))
        together.append(_seconds(spawn, 2, 1, sizes))
        with _busy_loop(spawn):
            beside.append(_seconds(spawn, 1, 1, sizes))
    common: dict[str, Any] = {"target": None, "same_work": True, "repeats": repeats, **sizes}
    one, two, busy = middle(alone), middle(together), middle(beside)
    yield Result(
        name="two processes, contexts a second",
        peer="one process",
        ratio=2.0 * one.wall / two.wall,
        cpu_ratio=2.0 * one.cpu / two.cpu,
        seconds_ours=two.wall / 2.0,
        seconds_peer=one.wall,
        note=f"{FITS} contexts a process, one BLAS thread each; seconds per {FITS} contexts",
        **common,
    )
    yield Result(
        name="speed beside a busy loop",
        peer="alone",
        ratio=one.wall / busy.wall,
        cpu_ratio=one.cpu / busy.cpu,
        seconds_ours=busy.wall,
        seconds_peer=one.wall,
        note="one process, one BLAS thread; a loop in Python keeps another core busy",
        **common,
    )
    if settings.two_threads:
        alone = [_seconds(spawn, 1, 2, sizes) for _ in range(repeats)]
        with _busy_loop(spawn):
            beside = [_seconds(spawn, 1, 2, sizes) for _ in range(repeats)]
        one, busy = middle(alone), middle(beside)
        yield Result(
            name="two BLAS threads beside a busy loop",
            peer="two BLAS threads alone",
            ratio=one.wall / busy.wall,
            cpu_ratio=one.cpu / busy.cpu,
            seconds_ours=busy.wall,
            seconds_peer=one.wall,
            threads=2,
            note="why workers have one thread each: threads that wait for each other suffer from any other work",
            **common,
        )


def _seconds(spawn: Any, workers: int, n_threads: int, sizes: dict[str, int]) -> Seconds:
    """Time of the slowest of some workers, started together."""
    barrier, times = spawn.Barrier(workers), spawn.SimpleQueue()
    arguments = (barrier, times, n_threads, sizes)
    running = [spawn.Process(target=_work, args=arguments) for _ in range(workers)]
    for process in running:
        process.start()
    for process in running:
        process.join()
    if any(process.exitcode for process in running):
        raise RuntimeError("a worker failed")
    found = [times.get() for _ in running]
    return Seconds(max(t.wall for t in found), max(t.cpu for t in found))


def _work(barrier: Barrier, times: Any, n_threads: int, sizes: dict[str, int]) -> None:
    """Make the data, fit once to warm up, wait for the others, and time the fits."""
    problem = simulate(**sizes, n_lags=1)
    folds, grid = contiguous_folds(sizes["n"], N_FOLDS), grid_of()
    with threadpool_limits(n_threads):
        fit(problem, folds, grid, "float64")
        barrier.wait()
        times.put(stopwatch(partial(_fits, problem, folds, grid))[0])


def _fits(problem: Problem, folds: BlockedFolds, grid: RidgeGrid) -> None:
    for _ in range(FITS):
        fit(problem, folds, grid, "float64")


@contextmanager
def _busy_loop(spawn: Any) -> Iterator[None]:
    started = spawn.Event()
    process = spawn.Process(target=_spin, args=(started,), daemon=True)
    process.start()
    started.wait()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _spin(started: Event) -> None:
    started.set()
    while True:
        pass
