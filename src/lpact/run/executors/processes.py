"""Tasks in several processes of this machine, one BLAS thread each.

A process that dies (memory, a signal) takes no other task's result with it: what was running is run again, each alone,
so that a task that kills its process is known by name and fails without the others.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import cache

from lpact.analyses.base import Task
from lpact.errors import RunError
from lpact.inputs.workspace import Workspace
from lpact.run.executors.base import Ended, Setup, failure, perform
from lpact.run.executors.threads import VARIABLES, OneThread
from lpact.run.records import TaskRecord
from lpact.store import code_digest

PARENT_CHECK_S = 1.0
MOST_DEATHS = 3
"""Processes that a task may lose while it runs alone, before it is given up."""

DEAD = "a process that died"

MOST_FALSE_STARTS = 6
"""Times that processes may die with no task at work, or before one has answered, before the run is given up."""

MOST_GIVEN_UP = 20
"""Tasks that may be given up without any finished in between: then it is not the tasks."""

IN_HAND = 2
"""Tasks handed out a process: the one at work and the next, so that an interruption has little to wait for."""


class Processes:
    """Runs tasks in ``workers`` processes, as a context manager; ``lost`` is called with tasks whose process died."""

    def __init__(self, setup: Setup, workers: int, lost: Callable[[list[Task]], None]) -> None:
        self.workers = workers
        self._setup = setup
        self._lost = lost
        self._pool: ProcessPoolExecutor | None = None
        self._deaths: Counter[str] = Counter()
        self._answers: list[Future[int]] = []
        self._n_processes = 0
        self._false_starts = self._given_up = 0

    def __enter__(self) -> Processes:
        self._start(self.workers)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # An interrupted run does not wait for its tasks; they are run again later.
        self._stop(at_once=kind is not None and issubclass(kind, KeyboardInterrupt))

    def run(self, tasks: Iterable[Task]) -> Iterator[Ended]:
        """Run tasks as processes get free; the order in which they end is not fixed."""
        waiting, suspects = iter(tasks), deque[Task]()
        running: dict[Future[Ended], Task] = {}
        while True:
            broken = not self._hand_out(waiting, suspects, running)
            if not running and not broken:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED) if running else ((), ())
            for future in done:
                try:
                    ended = future.result()
                except BrokenProcessPool:
                    broken = True  # every other future is broken, too, and stays in ``running``
                else:
                    del running[future]
                    self._false_starts = self._given_up = 0
                    yield ended
            if broken:
                at_work = []
                for future, task in running.items():
                    if future.exception() is None:
                        self._false_starts = self._given_up = 0
                        yield future.result()
                    else:
                        at_work.append(task)
                running.clear()
                yield from self._after_a_death(at_work, suspects)

    def _hand_out(
        self, waiting: Iterator[Task], suspects: deque[Task], running: dict[Future[Ended], Task]
    ) -> bool:
        """Give processes work; False where a process had died meanwhile, so that none can be given any."""
        alone = bool(suspects)
        while len(running) < (1 if alone else IN_HAND * self.workers):
            task = suspects.popleft() if alone else next(waiting, None)
            if task is None:
                return True
            if not alone and not running and self._n_processes < self.workers:
                self._stop()
                self._start(self.workers)  # no suspects are left
            try:
                self._submit(task, running)
            except BrokenProcessPool:
                suspects.appendleft(task)  # never begun, so that the death is none of its doing
                return False
        return True

    def _submit(self, task: Task, running: dict[Future[Ended], Task]) -> None:
        if self._pool is None:
            raise RuntimeError("the processes are used outside their context")
        running[self._pool.submit(_perform, task)] = task

    def _after_a_death(self, at_work: list[Task], suspects: deque[Task]) -> Iterator[Ended]:
        """Start new processes; a task that was alone and did so too often is given up.

        One whose result was kept before its process died is finished; what it cost is not known. Suspects are run one
        by one in the only process that there is then. Processes that die idle, or before any has answered, are no
        task's doing.
        """
        self._lost(at_work)
        started = any(answer.done() and answer.exception() is None for answer in self._answers)
        if not (started and at_work):
            self._false_starts += 1
        if self._false_starts >= MOST_FALSE_STARTS:
            raise _none_starts()
        alone = started and self._n_processes == 1 and len(at_work) == 1
        for task in at_work:
            if self._setup.results.fault(task.key) is None:
                yield TaskRecord(task.name, task.key, 0.0, 0, 0, DEAD)
                continue
            self._deaths[task.key] += alone
            if self._deaths[task.key] >= MOST_DEATHS:
                self._given_up += 1
                yield failure(task, _process_died(), DEAD)
            elif alone:
                # At once again, so that one task after the other is known for what it is.
                suspects.appendleft(task)
            else:
                suspects.append(task)
        if self._given_up >= MOST_GIVEN_UP:
            raise _all_die()
        self._stop()
        self._start(1 if suspects else self.workers)

    def _start(self, n_processes: int) -> None:
        with _environment(VARIABLES), _interrupts_ignored():
            self._n_processes = n_processes
            self._pool = ProcessPoolExecutor(
                n_processes,
                # Polars keeps threads, and a forked process would inherit their locks.
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_start,
                initargs=(self._setup, os.getpid()),
            )
            self._answers = []
            with suppress(BrokenProcessPool):  # one that died already is noticed by the next task
                for _ in range(n_processes):  # each starts a process while none is idle
                    self._answers.append(self._pool.submit(os.getpid))

    def _stop(self, *, at_once: bool = False) -> None:
        if self._pool is not None:
            if at_once:
                for process in list((self._pool._processes or {}).values()):
                    process.kill()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def _none_starts() -> RunError:
    return RunError(
        "worker processes die before they begin to work",
        where="the start of the workers",
        got=f"{MOST_FALSE_STARTS} attempts",
        expected="processes that start",
        remedy="in a script, start the run under `if __name__ == '__main__':`; memory may be short: see `lpact plan`; "
        "`--workers 1` needs no other process",
    )


def _all_die() -> RunError:
    return RunError(
        "worker processes die with every task",
        where="the workers",
        got=f"{MOST_GIVEN_UP} tasks given up in a row, each after {MOST_DEATHS} processes that died",
        expected="workers that live until the run ends",
        remedy="memory may be short: see `lpact plan`; `lpact status` names the tasks; what was finished is kept",
    )


def _process_died() -> RunError:
    return RunError(
        "a worker process died",
        where="processes that ran the task alone",
        got=f"{MOST_DEATHS} processes that ended without a result",
        expected="workers that live until the run ends",
        remedy="memory may be short: see `lpact plan`, and use fewer workers; in a script, start the run under "
        "`if __name__ == '__main__':`; then run again to resume; readout.memory_gib can be lowered too, but that is "
        "another configuration: everything is computed again",
    )


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


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
_setup: Setup | None = None
_one_thread = OneThread()


def _start(setup: Setup, parent: int) -> None:
    """Give a worker process its own workspace; an interruption is the main process's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    global _workspace, _setup
    threading.Thread(target=_die_with, args=(parent,), daemon=True).start()
    _workspace, _setup = setup.workspace(), setup


@cache
def _other_plugins() -> str:
    """Which plugins have other code here than where the run began; this process keeps those that it has loaded."""
    return _setup.other_plugins() if _setup is not None else ""


def _perform(task: Task) -> Ended:
    if _workspace is None or _setup is None:
        raise RuntimeError("the worker process was not initialised")
    if code_digest() != _setup.code:
        raise RunError(
            "lpact's own code has changed since the run began",
            where="a worker process that was started later",
            got=code_digest(),
            expected=_setup.code,
            remedy="run again: results of the code as it was are kept under their own keys",
        )
    if other := _other_plugins():
        raise RunError(
            "plugins have changed since the run began",
            where="a worker process that was started later",
            got=other,
            expected="plugins that stay as they are while a study runs",
            remedy="run again: results of the code as it was are kept under their own keys",
        )
    _one_thread.hold()
    return perform(task, _workspace, _setup.results)
