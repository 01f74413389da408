"""Tasks stage by stage: results of earlier runs are reused, the rest is computed, and errors are collected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lpact.analyses.base import Task
from lpact.errors import RunError
from lpact.run.executors.base import Executor
from lpact.run.journal.progress import Reporter
from lpact.run.records import TaskFailure, TaskRecord
from lpact.store import Results

MOST_SHOWN = 5
"""Causes that an error shows in full, and tasks that it names for each."""


class Watcher(Reporter, Protocol):
    """What tasks are reported to while they run (see `lpact.run.journal`)."""

    def resumed(self, n: int) -> None:
        """Some tasks of the stage were finished by an earlier run."""
        ...

    def finished(self, record: TaskRecord) -> None:
        """A task has ended well."""
        ...

    def failed(self, failure: TaskFailure) -> None:
        """A task has ended with an error."""
        ...

    def note(self, event: str, **fields: str | int | float) -> None:
        """Something else that a reader of the log will want to know."""
        ...


class Watched:
    """A watcher where there is only a reporter, and no log."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    def stage(self, name: str, total: int) -> None:
        """Begin a stage."""
        self._reporter.stage(name, total)

    def advance(self, steps: int = 1) -> None:
        """Count steps."""
        self._reporter.advance(steps)

    def resumed(self, n: int) -> None:
        """Count tasks of an earlier run."""
        self._reporter.advance(n)

    def finished(self, record: TaskRecord) -> None:  # noqa: ARG002
        """Count a task."""
        self._reporter.advance()

    def failed(self, failure: TaskFailure) -> None:  # noqa: ARG002
        """Count a task."""
        self._reporter.advance()

    def note(self, event: str, **fields: str | int | float) -> None:
        """Do nothing."""


class Conductor:
    """Runs the tasks of one stage after the other, on one executor, with one place for results."""

    def __init__(self, results: Results, executor: Executor, watcher: Watcher) -> None:
        self.results = results
        self.watcher = watcher
        self.failures: list[TaskFailure] = []
        self._executor = executor
        self._undone: set[str] = set()

    def run(self, stage: str, tasks: Sequence[Task]) -> None:
        """Finish a stage as far as it goes: tasks that fail, and those that need them, are left undone."""
        self.watcher.stage(stage, len(tasks))
        to_do = [task for task in tasks if not self._is_done(task)]
        self.watcher.resumed(len(tasks) - len(to_do))
        for ended in self._executor.run(task for task in to_do if self._can_be_done(task)):
            if isinstance(ended, TaskFailure):
                self.failures.append(ended)
                self._undone.add(ended.key)
                self.watcher.failed(ended)
            else:
                self.watcher.finished(ended)

    def check(self) -> None:
        """Raise `RunError` about all tasks that failed; those that did not are kept for the next run."""
        if not self.failures:
            return
        causes: dict[str, list[TaskFailure]] = {}
        for failure in self.failures:
            causes.setdefault(failure.what, []).append(failure)
        shown = "\n\n".join(_cause(what, causes[what]) for what in list(causes)[:MOST_SHOWN])
        more = sum(map(len, list(causes.values())[MOST_SHOWN:]))
        n_waiting = len(self._undone) - len(self.failures)
        raise RunError(
            f"{len(self.failures)} task(s) failed, and the run is not published",
            where="tasks of the study",
            got=f"{shown}" + (f"\n\nand {more} more" if more > 0 else ""),
            expected="every task finished"
            + (f"; {n_waiting} more waited for these" if n_waiting else ""),
            remedy="fix the cause and run the same command again: finished results are reused; "
            "`lpact status` lists the first failed tasks, log.jsonl has all of them with their tracebacks",
        )

    def _is_done(self, task: Task) -> bool:
        """Whether there is a whole result; a damaged one is named and made again.

        It is not removed but replaced by the new one: in a store that runs share, another run may just have put a
        whole one there.
        """
        fault = self.results.fault(task.key)
        if fault:
            what = f"the result of {task.name} is damaged and computed again: {fault}"
            self.watcher.note("damaged_result", task=task.name, key=task.key, what=what)
        return fault is None

    def _can_be_done(self, task: Task) -> bool:
        if self._undone.isdisjoint(task.job.needs):
            return True
        self._undone.add(task.key)
        return False


def _cause(what: str, failures: Sequence[TaskFailure]) -> str:
    """Tasks that failed for one reason, and the reason."""
    named = [f"[{failure.task}, key {failure.key[:12]}]" for failure in failures[:MOST_SHOWN]]
    if len(failures) > MOST_SHOWN:
        named.append(f"and {len(failures) - MOST_SHOWN} more with the same error:")
    return "\n".join([*named, what])
