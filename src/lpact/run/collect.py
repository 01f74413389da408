"""Tables of an analysis: its stages run in order, and tables put together from the results of their tasks."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import polars as pl

from lpact.analyses.base import Analysis, Frames, Stage, analyses_of
from lpact.config import RunConfig, StudyConfig
from lpact.inputs.workspace import Workspace
from lpact.run.audit import StudyAudit, audit_study, study_keys
from lpact.run.conduct import Conductor
from lpact.run.executors.local import InProcess
from lpact.run.progress import Reporter
from lpact.run.stages import FIRST, LAST
from lpact.store import LazyTables, MemoryTasks, Results, concat
from lpact.tables import Table


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


def measure_in_memory(
    study: StudyConfig, analysis: str, settings: RunConfig | None = None
) -> Frames:
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
