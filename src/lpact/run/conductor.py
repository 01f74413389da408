"""Tasks of an analysis stage by stage: stored results are reused, the rest is computed, and tables are put together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

import polars as pl

from lpact.analyses.base import Analysis, Frames, Stage, Task, analyses_of
from lpact.config import RunConfig, StudyConfig
from lpact.errors import RunError
from lpact.inputs.workspace import Workspace
from lpact.run.audit import StudyAudit, audit_study, study_keys
from lpact.run.executors.local import Executor, InProcess, TaskFailure
from lpact.run.progress import FIRST, LAST, Reporter
from lpact.store import LazyTables, MemoryTasks, Results, concat
from lpact.tables import Table

MOST_SHOWN = 5
"""Causes that an error shows in full, and tasks that it names for each."""


class Conductor:
    """Runs the tasks of one stage after the other, on one executor, with one place for results."""

    def __init__(self, results: Results, executor: Executor, reporter: Reporter) -> None:
        self.results = results
        self.reporter = reporter
        self.failures: list[TaskFailure] = []
        self._executor = executor
        self._undone: set[str] = set()

    def run(self, stage: str, tasks: Sequence[Task]) -> None:
        """Finish a stage as far as it goes: tasks that fail, and those that need them, are left undone."""
        self.reporter.stage(stage, len(tasks))
        to_do = [task for task in tasks if not self._is_done(task)]
        self.reporter.resumed(len(tasks) - len(to_do))
        for ended in self._executor.run(task for task in to_do if self._can_be_done(task)):
            if isinstance(ended, TaskFailure):
                self.failures.append(ended)
                self._undone.add(ended.key)
                self.reporter.failed(ended)
            else:
                self.reporter.finished(ended)

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
            expected="every task finished" + (f"; {n_waiting} more waited for these" if n_waiting else ""),
            remedy="fix the cause and run the same command again: finished results are reused; "
            "`lpact status` lists the first failed tasks, log.jsonl has all of them with their tracebacks",
        )

    def _is_done(self, task: Task) -> bool:
        """Whether the result exists and is intact; a damaged one is reported and computed again.

        It is replaced, not removed: in a store that runs share, another run may just have written an intact one.
        """
        fault = self.results.fault(task.key)
        if fault:
            what = f"the result of {task.name} is damaged and computed again: {fault}"
            self.reporter.note("damaged_result", task=task.name, key=task.key, what=what)
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


class Measuring:
    """One analysis of a study at work: tasks in their stages, then tables, then the decision."""

    def __init__(
        self,
        study: StudyConfig,
        audit: StudyAudit,
        analysis: Analysis,
        stages: Collection[str] | None = None,
    ) -> None:
        self.study = study
        self.analysis = analysis
        self.audit = audit.of[analysis.name]
        keys = study_keys(study, audit, analysis.name)
        every = analysis.stages(study, self.audit, keys)
        self.stages = [stage for stage in every if stages is None or stage.name in stages]

    def label(self, stage: Stage) -> str:
        """A stage as progress, plan and log show it: with the analysis where another stage could have the name."""
        if len(self.study.analyses) > 1 or stage.name in (*FIRST, *LAST):
            return f"{self.analysis.name}: {stage.name}"
        return stage.name

    def run(self, conductor: Conductor) -> None:
        """Run every stage as far as it goes; failures are collected by the conductor."""
        for stage in self.stages:
            conductor.run(self.label(stage), stage.tasks)

    def tables(self, results: Results) -> LazyTables:
        """Audit, measured and derived tables, each read when it is needed; one that no task filled is empty."""
        sources: dict[str, list[str]] = {}
        for task in (task for stage in self.stages for task in stage.tasks):
            for name in results.names(task.key):
                sources.setdefault(name, []).append(task.key)

        def joined(table: Table) -> pl.DataFrame:
            name = table.name
            parts = (results.load(key, [name])[name] for key in sources.get(name, ()))
            return concat(table.measured(), parts)

        declared = self.analysis.run_tables(self.study)
        made = LazyTables({table.name: partial(joined, table) for table in declared})
        measured = LazyTables.layered(self.audit.tables, made)
        derived = self.analysis.derive(self.study, measured)
        return LazyTables(measured.makers | dict(derived))


def measure_in_memory(study: StudyConfig, analysis: str, settings: RunConfig | None = None) -> Frames:
    """Measured tables of one analysis, with those of the audit, computed in this process and not written."""
    workspace = Workspace(study, settings or RunConfig())
    audit = audit_study(workspace, Reporter())
    results = MemoryTasks()
    conductor = Conductor(results, InProcess(workspace, results), Reporter())
    measuring = Measuring(study, audit, analyses_of(study)[analysis])
    measuring.run(conductor)
    conductor.check()
    tables = measuring.tables(results)
    return dict(tables)
