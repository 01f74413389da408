"""All measured tables of a study: tasks in their order, and tables put together from their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import polars as pl

from lpact.analyses.base import Frames, Keys, Task
from lpact.analyses.lpact.brain_sources import partners
from lpact.analyses.lpact.jobs import BrainJob, CeilingJob, ContextJob
from lpact.analyses.lpact.levels import ceiling, predictive
from lpact.analyses.lpact.tables.ceilings import (
    BRAIN_CEILING,
    NORMALIZED_PREDICTIVE,
    NORMALIZED_SCORES,
)
from lpact.analyses.lpact.tables.predictive import CONTROL_DELTAS, CONTROL_NULLS
from lpact.analyses.lpact.tables.relational import PROFILE_DELTAS
from lpact.config import RunConfig, StudyConfig
from lpact.datasets.base import RecordingId
from lpact.inputs.workspace import Workspace
from lpact.run.audit import StudyAudit, audit_study
from lpact.run.conduct import Conductor, Watched
from lpact.run.executors.here import Here
from lpact.run.journal.progress import Silent
from lpact.run.stages import BRAINS, CEILINGS, LEVELS
from lpact.store import MemoryTasks, Results, concat
from lpact.tables import RUN_TABLES, Table

BrainKeys = Mapping[str, Mapping[RecordingId, str]]
"""Keys of brain patterns by dataset and recording."""


class MeasuredTables(Mapping[str, pl.DataFrame]):
    """Tables of a study by name, put together from the results of tasks whenever they are asked for.

    Nothing is held: who looks at a table twice keeps it.
    """

    def __init__(
        self, audit: StudyAudit, results: Results, tasks: Sequence[Task], declared: Sequence[Table]
    ) -> None:
        self._audit = audit
        self._results = results
        self._declared = {table.name: table for table in declared}
        self._made: dict[str, Callable[[], pl.DataFrame]] = {}
        self._sources: dict[str, list[str]] = {}
        for task in tasks:
            for name in results.names(task.key):
                self._sources.setdefault(name, []).append(task.key)

    def derive(self, name: str, make: Callable[[], pl.DataFrame]) -> None:
        """Let a table be made from others."""
        self._made[name] = make

    def measured(self, name: str) -> pl.DataFrame:
        """Rows of a table as tasks gave them; a table that no task filled is empty, not absent."""
        parts = (self._results.load(key, [name])[name] for key in self._sources.get(name, ()))
        return concat(self._declared[name].measured(), parts)

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name in self._made:
            return self._made[name]()
        if name in self._audit.tables:
            return self._audit.tables[name]
        return self.measured(name)

    def __contains__(self, name: object) -> bool:
        return name in self._audit.tables or name in self._declared or name in self._made

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._audit.tables, *self._declared, *self._made]))

    def __len__(self) -> int:
        return len(set(self))


class Layered(Mapping[str, pl.DataFrame]):
    """Several mappings as one, in which the first that has a table gives it; nothing is read before."""

    def __init__(self, *layers: Mapping[str, pl.DataFrame]) -> None:
        self._layers = layers

    def __getitem__(self, name: str) -> pl.DataFrame:
        for layer in self._layers:
            if name in layer:
                return layer[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for layer in self._layers for name in layer))

    def __len__(self) -> int:
        return len(set(self))


def measure_in_memory(config: StudyConfig, settings: RunConfig | None = None) -> Frames:
    """All measured tables of a study, audit included, computed in this process and written nowhere."""
    workspace = Workspace(config, settings or RunConfig())
    audit = audit_study(workspace, Silent())
    results = MemoryTasks()
    conductor = Conductor(results, Here(workspace, results), Watched(Silent()))
    tables = measure(config, audit, conductor).tables
    conductor.check()
    return dict(tables)


class Measured:
    """What measuring leaves: tasks by dataset, for those who build on their results, and the tables."""

    def __init__(self, config: StudyConfig, audit: StudyAudit, conductor: Conductor) -> None:
        self.config = config
        self.audit = audit
        self.conductor = conductor
        self.keys = Keys(config, audit)
        self.tasks: list[Task] = []
        self.brains: dict[str, dict[RecordingId, str]] = {}
        self.ceilings: dict[str, str] = {}

    def measure_brains(self) -> None:
        """Run the brain patterns of every recording."""
        tasks = self.keys.tasks(brain_jobs(self.audit))
        self.brains = {name: {} for name in self.audit.datasets}
        for task in tasks:
            assert isinstance(task.job, BrainJob)
            self.brains[task.job.dataset][task.job.recording] = task.key
        self._run(BRAINS, tasks)

    def measure_contexts(self) -> None:
        """Run levels 1 to 3."""
        self._run(LEVELS, self.keys.tasks(_context_jobs(self.config, self.audit, self.brains)))

    def measure_ceilings(self) -> None:
        """Run the reliabilities of every dataset."""
        tasks = self.keys.tasks(_ceiling_jobs(self.audit, self.brains))
        self.ceilings = {
            task.job.dataset: task.key for task in tasks if isinstance(task.job, CeilingJob)
        }
        self._run(CEILINGS, tasks)

    def _run(self, stage: str, tasks: list[Task]) -> None:
        self.tasks += tasks
        self.conductor.run(stage, tasks)

    @property
    def tables(self) -> MeasuredTables:
        """Audit and measured tables; raises `RunError` where tasks failed."""
        self.conductor.check()
        tables = MeasuredTables(self.audit, self.conductor.results, self.tasks, MEASURED)
        _derive(tables)
        return tables


def _derive(tables: MeasuredTables) -> None:
    """Let tables be made that need all rows of others."""
    tables.derive(
        CONTROL_NULLS.name, lambda: predictive.correct(tables.measured(CONTROL_NULLS.name))
    )
    tables.derive(
        NORMALIZED_SCORES.name,
        lambda: ceiling.normalize_relational(
            tables[BRAIN_CEILING.name], tables[PROFILE_DELTAS.name]
        ),
    )
    tables.derive(
        NORMALIZED_PREDICTIVE.name,
        lambda: ceiling.normalize_predictive(
            tables[BRAIN_CEILING.name], tables[CONTROL_DELTAS.name]
        ),
    )


def measure(config: StudyConfig, audit: StudyAudit, conductor: Conductor) -> Measured:
    """Levels 1 to 4 of a study."""
    measured = Measured(config, audit, conductor)
    measured.measure_brains()
    measured.measure_contexts()
    measured.measure_ceilings()
    return measured


def measure_brains(config: StudyConfig, audit: StudyAudit, conductor: Conductor) -> Measured:
    """Brain patterns and ceilings alone: what can be said of brains without any model."""
    measured = Measured(config, audit, conductor)
    measured.measure_brains()
    measured.measure_ceilings()
    return measured


def brain_jobs(audit: StudyAudit) -> list[BrainJob]:
    """The jobs that a run begins with: all others of levels 1 to 4 need their results."""
    return [BrainJob(name, r.id) for name, a in audit.datasets.items() for r in a.recordings]


def _context_jobs(config: StudyConfig, audit: StudyAudit, brains: BrainKeys) -> list[ContextJob]:
    """One job a recording, model and layer; those of a recording follow one another, and share what is read."""
    source = config.relational.brain_patterns_from
    jobs = []
    for name, dataset in audit.datasets.items():
        offers: dict[RecordingId, list[tuple[str, int]]] = {}
        for offer in dataset.contexts:
            offers.setdefault(offer.recording, []).append((offer.model, offer.layer))
        for recording in dataset.recordings:
            own = recording.id
            read = dict.fromkeys([own, *partners(source, own, brains[name])])
            if source == "other_subject" and not recording.comparable:
                read = {own: None}
            needed = tuple((r, brains[name][r]) for r in read)
            for model, layer in offers.get(own, ()):
                jobs.append(
                    ContextJob(
                        name, own, model, layer, dataset.confirmatory, recording.comparable, needed
                    )
                )
    return jobs


def _ceiling_jobs(audit: StudyAudit, brains: BrainKeys) -> list[CeilingJob]:
    return [
        CeilingJob(name, tuple((r.id, brains[name][r.id]) for r in dataset.recordings))
        for name, dataset in audit.datasets.items()
        if dataset.recordings
    ]


def joined(results: Results, tasks: Iterable[Task]) -> dict[str, list[pl.DataFrame]]:
    """Frames of finished tasks by table."""
    parts: dict[str, list[pl.DataFrame]] = {}
    for task in tasks:
        for name, table in results.load(task.key).items():
            parts.setdefault(name, []).append(table)
    return parts


MEASURED: tuple[Table, ...] = tuple(
    table
    for name, table in RUN_TABLES.items()
    if name.split("/")[0] in {"predictive", "relational", "causal", "ceilings"}
    and table.name
    not in {
        "predictive/predictive_failure_modes",
        NORMALIZED_SCORES.name,
        NORMALIZED_PREDICTIVE.name,
    }
)
"""Tables that tasks fill."""
