"""Run jobs in this process or in several, one BLAS thread each, with the same bytes either way."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import Protocol

from threadpoolctl import threadpool_limits

from lpact.config import RunConfig, StudyConfig
from lpact.errors import RunError
from lpact.run.jobs import Frames
from lpact.run.workspace import Workspace

PARENT_CHECK_S = 1.0

ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
}


class Job(Protocol):
    """A piece of work with a name of its own."""

    @property
    def key(self) -> str:
        """Name of the job among all jobs of the study."""
        ...

    def run(self, workspace: Workspace) -> Frames:
        """Compute the job's tables."""
        ...


class Pool:
    """Runs jobs; use it as a context manager (see `open_pool`)."""

    def __init__(
        self, workspace: Workspace, executor: ProcessPoolExecutor | None, workers: int
    ) -> None:
        self._workspace = workspace
        self._executor = executor
        self._workers = workers

    def map(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Frames]]:
        """Yield every job with its result, as they finish."""
        if self._executor is None:
            for job in jobs:
                with threadpool_limits(1):
                    frames = job.run(self._workspace)
                yield job, frames
            return
        waiting = iter(jobs)
        running: dict[Future[Frames], Job] = {}
        while True:
            # Only a few jobs are handed out ahead, so that an interruption has little to wait for.
            for job in islice(waiting, max(0, 2 * self._workers - len(running))):
                running[self._executor.submit(_run, job)] = job
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                try:
                    frames = future.result()
                except BrokenProcessPool as error:
                    raise _worker_died(running[future]) from error
                yield running.pop(future), frames


@contextmanager
def open_pool(workspace: Workspace, workers: int) -> Iterator[Pool]:
    """A pool of ``workers`` processes, or this process where one is enough."""
    if workers == 1:
        yield Pool(workspace, None, 1)
        return
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    executor = ProcessPoolExecutor(
        workers,
        # Polars keeps threads, and a forked process would inherit their locks.
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start,
        initargs=(
            workspace.config,
            workspace.resolved(),
            workspace.fingerprints,
            os.getpid(),
        ),
    )
    try:
        with _interrupts_ignored():
            for _ in range(workers):  # each starts a process while none is idle
                executor.submit(os.getpid)
        yield Pool(workspace, executor, workers)
    except BaseException:
        executor.shutdown(wait=True, cancel_futures=True)
        raise
    finally:
        executor.shutdown(wait=True)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _worker_died(job: Job) -> RunError:
    return RunError(
        "a worker process died",
        where=f"job {job.key}, or one beside it",
        got="a process that ended without a result",
        expected="workers that live until the run ends",
        remedy="memory may be short: use fewer workers; in a script, start the run under "
        "`if __name__ == '__main__':`; then run again to resume",
    )


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Processes that are started inside ignore Ctrl-C from their first moment; it is the main process's to handle."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _die_with(parent: int) -> None:
    """End this worker when the process that started it is gone."""
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_S)
    os._exit(1)


_workspace: Workspace | None = None


def _start(config: StudyConfig, run: RunConfig, fingerprints: dict[str, str], parent: int) -> None:
    """Give a worker process its own workspace; an interruption is the main process's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    global _workspace  # noqa: PLW0603
    threading.Thread(target=_die_with, args=(parent,), daemon=True).start()
    _workspace = Workspace(config, run, fingerprints)


def _run(job: Job) -> Frames:
    if _workspace is None:
        raise RuntimeError("the worker process was not initialised")
    with threadpool_limits(1):
        return job.run(_workspace)
