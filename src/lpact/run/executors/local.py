"""Tasks on this machine: in this process, or in several with one BLAS thread each; and the choice of an executor.

Every executor runs a task from start to end with `perform`, which catches its errors and measures its cost. A process
that dies (memory, a signal) loses no other task's result: what was running runs again, each task alone, so that a task
that kills its process is found and fails without the others.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from threadpoolctl import threadpool_limits

from lpact.analyses.base import Frames, Task
from lpact.config import RunConfig, StudyConfig
from lpact.errors import ConfigError, LPactError, RunError
from lpact.inputs.sources import Owner, Seen, keeps_changing
from lpact.inputs.workspace import Workspace
from lpact.math.ridge import TooLittleMemory
from lpact.run.audit import plugin_code, plugin_packages
from lpact.run.executors import fork_server
from lpact.run.machine import peak_bytes, usable_cores
from lpact.store import Results, TaskStore, code_digest, library_versions

MOST_ATTEMPTS = 3
"""How often a task runs whose sources are rewritten, with the same content, while it reads them."""


@dataclass(frozen=True)
class TaskRecord:
    """A finished task: ``peak_bytes`` is the memory peak of its process so far, ``n_bytes`` the size of the result."""

    task: str
    key: str
    seconds: float
    peak_bytes: int
    n_bytes: int
    worker: str


@dataclass(frozen=True)
class TaskFailure:
    """A task that ended with an error: ``what`` is the message, ``trace`` the traceback."""

    task: str
    key: str
    what: str
    trace: str
    worker: str


Ended = TaskRecord | TaskFailure


def kept(task: Task) -> TaskRecord:
    """The record of a task whose worker stored the result and died before it could report it."""
    return TaskRecord(task.name, task.key, 0.0, 0, 0, "a worker that died")


class Executor(Protocol):
    """Runs tasks."""

    @property
    def workers(self) -> int:
        """How many tasks run at a time."""
        ...

    def run(self, tasks: Iterable[Task]) -> Iterator[Ended]:
        """Run every task and yield each when it ends; results are stored before.

        A task's error is yielded too. A disk error ends the iteration, because all other tasks would fail.
        """
        ...


@dataclass(frozen=True)
class Setup:
    """What another process needs to run tasks of a study; ``software`` is the client's (`software`)."""

    config: StudyConfig
    settings: RunConfig
    fingerprints: dict[str, str]
    software: dict[str, str]
    seen: Mapping[Owner, tuple[Seen, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, workspace: Workspace) -> Setup:
        """The setup of a workspace, with paths that mean the same in every folder."""
        run = workspace.resolved()
        paths = {name: os.path.abspath(path) for name, path in run.paths.items()}
        models = {name: os.path.abspath(path) for name, path in run.models.items()}
        folders = {"features": os.path.abspath(run.features), "grids": os.path.abspath(run.grids)}
        return cls(
            workspace.config,
            run.model_copy(update={"paths": paths, "models": models, **folders}),
            workspace.fingerprints,
            software(workspace.config),
            dict(workspace.watch.seen),
        )

    def other_software(self) -> list[str]:
        """How the code and the libraries of this process differ from the client's."""
        own = software(self.config)
        return [
            f"{name} is {own.get(name, 'not in use')} there and {self.software.get(name, 'not in use')} here"
            for name in sorted(own.keys() | self.software.keys())
            if own.get(name) != self.software.get(name)
        ]

    def workspace(self) -> Workspace:
        """A new workspace."""
        return Workspace(self.config, self.settings, self.fingerprints, self.seen)


def software(config: StudyConfig) -> dict[str, str]:
    """Code of lpact and of plug-ins, and versions of libraries, that results of a study depend on."""
    return {
        "lpact's code": code_digest(),
        "plug-in packages": ", ".join(plugin_packages(config)) or "none",
        **library_versions(config.model_dump(mode="json")),
        **{f"the code of plug-in {name}": code[:16] for name, code in plugin_code(config)},
    }


def perform(task: Task, workspace: Workspace, results: Results) -> Ended:
    """Run one task and store its result, if its sources are what the audit saw."""
    began = time.perf_counter()
    try:
        frames = _undisturbed(task, workspace, results)
    except Exception as error:  # of this task; the others continue
        return failure(task, error)
    seconds = time.perf_counter() - began
    n_bytes = results.save(task.key, frames)
    return TaskRecord(task.name, task.key, seconds, peak_bytes(), n_bytes, worker_name())


def _undisturbed(task: Task, workspace: Workspace, results: Results) -> Frames:
    """A task's tables, from sources that did not change while it read them."""
    scope = getattr(task.job, "scope", None)
    for _ in range(MOST_ATTEMPTS):
        frames = task.job.run(workspace, results)
        if scope is None or scope.dataset is None:
            return frames
        if not workspace.check_sources(scope.dataset, features=bool(scope.models)):
            return frames
    raise keeps_changing(f"task {task.name}")


def failure(task: Task, error: BaseException, worker: str | None = None) -> TaskFailure:
    """The record of a task that ended with an error."""
    shown = _about_memory(error) if isinstance(error, TooLittleMemory) else error
    what = str(shown) if isinstance(shown, LPactError) else f"{type(shown).__name__}: {shown}"
    trace = "".join(traceback.format_exception(error))
    return TaskFailure(task.name, task.key, what, trace, worker or worker_name())


def _about_memory(error: TooLittleMemory) -> ConfigError:
    """An error of the numerics in terms of the study file."""
    return ConfigError(
        "the working memory of readouts is too small for this study",
        where="option 'readout.memory_gib'",
        got=f"{error.memory_bytes / 2**30:.3g}",
        expected=f"more than {error.needed_bytes / 2**30:.3g}, for one unit at a time; the default is 2",
        remedy="raise readout.memory_gib in the study file, or leave it out",
    )


def worker_name() -> str:
    """Host and process number of this process."""
    return f"{platform.node()}:{os.getpid()}"


class OneThread:
    """Keeps this process to one BLAS thread, until `restore`.

    Looking through the loaded libraries takes milliseconds, so it is repeated only after new imports.
    """

    def __init__(self) -> None:
        self._limits: list[threadpool_limits] = []
        self._n_modules = 0

    def hold(self) -> None:
        """Limit every library that is loaded now; call it before each task."""
        if len(sys.modules) != self._n_modules:
            self._limits.append(threadpool_limits(1))
            self._n_modules = len(sys.modules)

    def restore(self) -> None:
        """Restore the number of threads of every library."""
        while self._limits:
            self._limits.pop().restore_original_limits()
        self._n_modules = 0


MOST_DEATHS = 3
"""Processes that a task may kill while it runs alone, before it is given up."""
MOST_FALSE_STARTS = 6
"""Times that processes may die without a task, or before one has started, before the run ends."""
MOST_GIVEN_UP = 20
"""Tasks that may be given up with none finished in between, before the run ends."""
PER_PROCESS = 2
"""Tasks submitted per process: the running one and the next, so that an interruption waits for few."""


class InProcess:
    """Runs tasks one after the other in this process, on one BLAS thread."""

    workers = 1

    def __init__(self, workspace: Workspace, results: Results) -> None:
        self._workspace = workspace
        self._results = results

    def run(self, tasks: Iterable[Task]) -> Iterator[Ended]:
        """Run one task after the other."""
        one_thread = OneThread()
        try:
            for task in tasks:
                one_thread.hold()
                yield perform(task, self._workspace, self._results)
        finally:
            one_thread.restore()


class Processes:
    """Runs tasks in ``workers`` processes, as a context manager; ``lost`` is called with tasks whose process died."""

    def __init__(
        self,
        workspace: Workspace,
        results: TaskStore,
        workers: int,
        lost: Callable[[list[Task]], None],
    ) -> None:
        self.workers = workers
        self._setup = Setup.of(workspace)
        self._results = results
        self._lost = lost
        self._pool: ProcessPoolExecutor | None = None
        self._started: list[Future[int]] = []
        self._n_processes = 0
        self._deaths: Counter[str] = Counter()
        self._false_starts = self._given_up = 0

    def __enter__(self) -> Processes:
        self._start(self.workers)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # An interrupted run does not wait for its tasks; they run again later.
        self._stop(at_once=kind is not None and issubclass(kind, KeyboardInterrupt))

    def run(self, tasks: Iterable[Task]) -> Iterator[Ended]:
        """Run tasks as processes become free; they end in any order."""
        waiting, suspects = iter(tasks), deque[Task]()
        running: dict[Future[Ended], Task] = {}
        while True:
            broken = not self._submit(waiting, suspects, running)
            if not running and not broken:
                return
            done = wait(running, return_when=FIRST_COMPLETED).done if running else ()
            broken = broken or any(isinstance(f.exception(), BrokenProcessPool) for f in done)
            # When a process dies, the pool breaks every future that has not ended.
            for future in list(running) if broken else done:
                if not isinstance(future.exception(), BrokenProcessPool):
                    del running[future]
                    self._false_starts = self._given_up = 0
                    yield future.result()
            if broken:
                yield from self._after_death(list(running.values()), suspects)
                running.clear()

    def _submit(self, waiting: Iterator[Task], suspects: deque[Task], running: dict[Future[Ended], Task]) -> bool:
        """Submit tasks to the pool; False if a process has died, so that it takes none."""
        alone = bool(suspects)
        while len(running) < (1 if alone else PER_PROCESS * self.workers):
            task = suspects.popleft() if alone else next(waiting, None)
            if task is None:
                return True
            if not alone and not running and self._n_processes < self.workers:
                self._stop()
                self._start(self.workers)  # no suspects are left
            try:
                assert self._pool is not None
                running[self._pool.submit(_perform, task)] = task
            except BrokenProcessPool:
                suspects.appendleft(task)
                return False
        return True

    def _after_death(self, at_work: list[Task], suspects: deque[Task]) -> Iterator[Ended]:
        """Start new processes; a task that killed too many while alone is given up.

        Suspects run one by one in a single process. Processes that die idle, or before any has started, are nobody's
        fault.
        """
        self._lost(at_work)
        started = any(answer.done() and answer.exception() is None for answer in self._started)
        if not (started and at_work):
            self._false_starts += 1
        if self._false_starts >= MOST_FALSE_STARTS:
            raise _died("before they start to work", f"{MOST_FALSE_STARTS} attempts")
        alone = started and self._n_processes == 1 and len(at_work) == 1
        for task in at_work:
            if self._results.fault(task.key) is None:
                yield kept(task)
                continue
            self._deaths[task.key] += alone
            if self._deaths[task.key] >= MOST_DEATHS:
                self._given_up += 1
                error = _died("when they run this task alone", f"{MOST_DEATHS} times")
                yield failure(task, error, "a process that died")
            elif alone:
                suspects.appendleft(task)  # at once, so that one task is judged after the other
            else:
                suspects.append(task)
        if self._given_up >= MOST_GIVEN_UP:
            raise _died("with every task", f"{MOST_GIVEN_UP} tasks given up in a row")
        self._stop()
        self._start(1 if suspects else self.workers)

    def _start(self, n_processes: int) -> None:
        with fork_server.one_thread_environment(), fork_server.interrupts_ignored():
            self._n_processes = n_processes
            self._pool = ProcessPoolExecutor(
                n_processes,
                mp_context=fork_server.context(),
                initializer=_start,
                initargs=(self._setup, self._results, dict(os.environ)),
            )
            self._started = []
            with suppress(BrokenProcessPool):  # a process that died already is noticed by the next task
                for _ in range(n_processes):  # each starts a process while none is idle
                    self._started.append(self._pool.submit(os.getpid))

    def _stop(self, *, at_once: bool = False) -> None:
        if self._pool is not None:
            if at_once:
                for process in list((self._pool._processes or {}).values()):
                    process.kill()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def _died(when: str, got: str) -> RunError:
    return RunError(
        f"worker processes die {when}",
        where="worker processes",
        got=got,
        expected="processes that live until the run ends",
        remedy="memory may be short: see `lpact plan`, and use fewer workers; in a script, start the run under "
        "`if __name__ == '__main__':`; then run again to resume",
    )


_worker: list[tuple[Workspace, TaskStore, list[str]]] = []
"""What `_start` gave this worker process."""
_one_thread = OneThread()


def _start(setup: Setup, results: TaskStore, environment: dict[str, str]) -> None:
    """Prepare a worker process; a fork server has the environment of an earlier moment."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(environment)
    threading.Thread(target=_die_with_main, daemon=True).start()
    _worker[:] = [(setup.workspace(), results, setup.other_software())]


def _die_with_main() -> None:
    """End this worker when the main process is gone, however it ended."""
    if (main := multiprocessing.parent_process()) is not None:
        main.join()
        os._exit(1)


def _perform(task: Task) -> Ended:
    ((workspace, results, other),) = _worker
    if other:
        raise RunError(
            "the code has changed since the run started",
            where="a worker process that started later",
            got="; ".join(other),
            expected="code that does not change while a study runs",
            remedy="run again: results of the earlier code are kept under other keys",
        )
    _one_thread.hold()
    return perform(task, workspace, results)


def too_many_workers(workers: int) -> str:
    """A warning about more workers than cores; empty otherwise."""
    n_cores = usable_cores()
    if workers <= n_cores:
        return ""
    return (
        f"{workers} workers on {n_cores} core(s): each keeps a core busy, so more workers than cores need more memory "
        f"and finish no sooner; `--workers {n_cores}` is enough"
    )


@contextmanager
def open_executor(
    workspace: Workspace,
    results: Results,
    workers: int,
    *,
    lost: Callable[[list[Task]], None] = lambda _: None,
    note: Callable[..., None] = lambda *_, **__: None,
) -> Iterator[Executor]:
    """The cluster of the run's settings, processes of this machine, or this process if one worker is enough.

    Results in memory are computed in this process. ``lost`` is called with tasks whose worker died, ``note`` with other
    events: a name, and ``what`` in words.
    """
    if isinstance(results, TaskStore) and workspace.run.cluster:
        from lpact.run.executors.cluster import OnDask, open_client

        with (
            open_client(workspace.run) as client,
            OnDask(client, workspace, results, lost=lost, note=note) as cluster,
        ):
            yield cluster
    elif isinstance(results, TaskStore) and workers > 1:
        with Processes(workspace, results, workers, lost) as processes:
            yield processes
    else:
        yield InProcess(workspace, results)


@contextmanager
def scratch_results() -> Iterator[TaskStore]:
    """A temporary store of results."""
    with tempfile.TemporaryDirectory(prefix="lpact-") as folder:
        yield TaskStore(Path(folder))
