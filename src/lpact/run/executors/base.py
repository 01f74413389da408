"""What every way to run tasks shares: one task from start to end, with its errors caught and its cost measured."""

from __future__ import annotations

import os
import platform
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lpact.analyses.base import Frames, Task
from lpact.config import RunConfig, StudyConfig
from lpact.errors import ConfigError, LPactError
from lpact.inputs.sources import Owner, Seen, keeps_changing
from lpact.inputs.workspace import Workspace
from lpact.math.ridge import TooLittleMemory
from lpact.run.audit import plugin_code
from lpact.run.memory import peak_bytes
from lpact.run.records import TaskFailure, TaskRecord
from lpact.store import Results, code_digest

Ended = TaskRecord | TaskFailure

MOST_ATTEMPTS = 3
"""How often a task is run whose sources are written again, with the same content, while it reads them."""


class Executor(Protocol):
    """Runs tasks."""

    @property
    def workers(self) -> int:
        """How many tasks run at a time."""
        ...

    def run(self, tasks: Iterable[Task]) -> Iterator[Ended]:
        """Run every task and yield each as it ends; results are kept before they are yielded.

        An error of a task is yielded too; an error of the disk ends the iteration, since all other tasks would fail.
        """
        ...


@dataclass(frozen=True)
class Setup:
    """What another process needs to take tasks of a study: plain values that can be sent to it.

    ``code`` and ``plugin_code`` are of lpact and of plugins of other packages, as they are here: keys of results say
    that this code made them.
    """

    config: StudyConfig
    settings: RunConfig
    fingerprints: dict[str, str]
    results: Results
    code: str
    plugin_code: tuple[tuple[str, str], ...]
    seen: Mapping[Owner, tuple[Seen, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, workspace: Workspace, results: Results) -> Setup:
        """The set-up that corresponds to a workspace."""
        return cls(
            workspace.config,
            workspace.resolved(),
            workspace.fingerprints,
            results,
            code_digest(),
            plugin_code(workspace.config),
            dict(workspace.watch.seen),
        )

    def other_plugins(self) -> str:
        """Which plugins have other code in this process, in words; empty where none has."""
        own, asked = dict(plugin_code(self.config)), dict(self.plugin_code)
        return "; ".join(
            f"the code of plugin {name} is {own.get(name, 'not in use')[:16]} there "
            f"and {asked.get(name, 'not in use')[:16]} here"
            for name in sorted(own.keys() | asked.keys())
            if own.get(name) != asked.get(name)
        )

    def workspace(self) -> Workspace:
        """A workspace of one's own."""
        return Workspace(self.config, self.settings, self.fingerprints, self.seen)


def perform(task: Task, workspace: Workspace, results: Results) -> Ended:
    """Run one task and keep its result, if its sources are what the audit saw."""
    began = time.perf_counter()
    try:
        frames = _undisturbed(task, workspace, results)
    except Exception as error:  # whatever it is, it is this task's, and the others go on
        return failure(task, error)
    seconds = time.perf_counter() - began
    n_bytes = results.save(task.key, frames)
    return TaskRecord(task.name, task.key, seconds, peak_bytes(), n_bytes, worker_name())


def _undisturbed(task: Task, workspace: Workspace, results: Results) -> Frames:
    """A task's tables, from sources that stayed as they are while it read them."""
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
    """Name of this process among all that work on a study."""
    return f"{platform.node()}:{os.getpid()}"
