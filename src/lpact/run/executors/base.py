"""What every executor shares: one task from start to end, with its errors caught and its cost measured."""

from __future__ import annotations

import os
import platform
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from threadpoolctl import threadpool_limits

from lpact.analyses.base import Frames, Task
from lpact.config import RunConfig, StudyConfig
from lpact.errors import ConfigError, LPactError
from lpact.inputs.sources import Owner, Seen, keeps_changing
from lpact.inputs.workspace import Workspace
from lpact.math.ridge import TooLittleMemory
from lpact.run.audit import plugin_code, plugin_packages
from lpact.run.machine import peak_bytes
from lpact.store import Results, code_digest, library_versions

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
