"""Tables of an analysis: its stages run in order, and tables put together from the results of their tasks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import polars as pl

from lpact.analyses.base import Analysis, Audit, Frames, Stage, Task, analyses_of
from lpact.config import RunConfig, StudyConfig
from lpact.inputs.workspace import Workspace
from lpact.run.audit import StudyAudit, audit_study, study_keys
from lpact.run.conduct import Conductor
from lpact.run.executors.local import InProcess
from lpact.run.progress import Reporter
from lpact.run.stages import FIRST, LAST
from lpact.store import MemoryTasks, Results, concat
from lpact.tables import Table


class MeasuredTables(Mapping[str, pl.DataFrame]):
    """Tables by name, put together from audit and results whenever they are asked for. Nothing is kept in memory."""

    def __init__(
        self, audit: Audit, results: Results, tasks: Sequence[Task], declared: Iterable[Table]
    ) -> None:
        self._audit = audit.tables
        self._results = results
        self._sources: dict[str, list[str]] = {}
        for task in tasks:
            for name in results.names(task.key):
                self._sources.setdefault(name, []).append(task.key)
        self._declared = {table.name: table for table in declared}

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name in self._audit:
            return self._audit[name]
        parts = (self._results.load(key, [name])[name] for key in self._sources.get(name, ()))
        return concat(self._declared[name].measured(), parts)

    def __contains__(self, name: object) -> bool:
        # The inherited test would put the whole table together.
        return name in self._audit or name in self._declared

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._audit, *self._declared]))

    def __len__(self) -> int:
        return len({*self._audit, *self._declared})


class Layered(Mapping[str, pl.DataFrame]):
    """Several mappings as one: the first that has a table gives it, and nothing is read before."""

    def __init__(self, *layers: Mapping[str, pl.DataFrame]) -> None:
        self._layers = layers

    def __getitem__(self, name: str) -> pl.DataFrame:
        for layer in self._layers:
            if name in layer:
                return layer[name]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(name in layer for layer in self._layers)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for layer in self._layers for name in layer))

    def __len__(self) -> int:
        return len(set(self))


class Made(Mapping[str, pl.DataFrame]):
    """Tables that functions make, each whenever it is asked for."""

    def __init__(self, makers: Mapping[str, Callable[[], pl.DataFrame]]) -> None:
        self._makers = makers

    def __getitem__(self, name: str) -> pl.DataFrame:
        return self._makers[name]()

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


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

    def tables(self, results: Results) -> Mapping[str, pl.DataFrame]:
        """Audit, measured and derived tables; one that no task filled is empty, not absent."""
        tasks = [task for stage in self.stages for task in stage.tasks]
        measured = MeasuredTables(self.audit, results, tasks, self.analysis.run_tables(self.study))
        return Layered(Made(self.analysis.derive(self.study, measured)), measured)


def measure_in_memory(
    study: StudyConfig, analysis: str, settings: RunConfig | None = None
) -> Frames:
    """Measured tables of one analysis, audit included, computed in this process and written nowhere."""
    workspace = Workspace(study, settings or RunConfig())
    audit = audit_study(workspace, Reporter())
    results = MemoryTasks()
    conductor = Conductor(results, InProcess(workspace, results), Reporter())
    measuring = Measuring(study, audit, analyses_of(study)[analysis])
    measuring.run(conductor)
    conductor.check()
    tables = measuring.tables(results)
    return dict(tables)
