"""All measured tables of a study: jobs in their order, and what is computed from their results together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

import polars as pl

from lpact.config import RunConfig, StudyConfig
from lpact.datasets.base import RecordingId
from lpact.levels import ceiling, predictive
from lpact.run.brain_sources import brain_patterns
from lpact.run.inspect import StudyAudit, audit_study
from lpact.run.jobs import BrainJob, CeilingJob, ContextJob, Frames
from lpact.run.pool import Job, Pool, open_pool
from lpact.run.progress import Reporter, Silent
from lpact.run.workspace import Workspace
from lpact.store import concat
from lpact.tables import RUN_TABLES, Table
from lpact.tables.ceilings import BRAIN_CEILING, NORMALIZED_PREDICTIVE, NORMALIZED_SCORES
from lpact.tables.predictive import CONTROL_DELTAS, CONTROL_NULLS
from lpact.tables.relational import PROFILE_DELTAS

J = TypeVar("J", bound=Job)

Brains = dict[str, dict[RecordingId, Frames]]


class Tasks(Protocol):
    """Where finished jobs are kept."""

    def load_task(self, key: str) -> Frames | None:
        """Return the frames of a finished job, or None."""
        ...

    def save_task(self, key: str, frames: Frames) -> None:
        """Keep the frames of a finished job."""
        ...


class Nowhere:
    """Keeps nothing: for studies that are made, looked at and forgotten."""

    def load_task(self, key: str) -> Frames | None:  # noqa: ARG002
        """Return None."""
        return None

    def save_task(self, key: str, frames: Frames) -> None:
        """Forget the frames."""


def measure_in_memory(config: StudyConfig, settings: RunConfig | None = None) -> Frames:
    """All measured tables of a study, audit included, computed in this process and written nowhere."""
    workspace = Workspace(config, settings or RunConfig())
    audit = audit_study(workspace, Silent())
    with open_pool(workspace, 1) as pool:
        return measure(config, audit, Nowhere(), pool, Silent())


def measure(
    config: StudyConfig, audit: StudyAudit, writer: Tasks, pool: Pool, reporter: Reporter
) -> Frames:
    """All measured tables of the study."""
    brain_results, brains = _brain_patterns(audit, writer, pool, reporter)
    contexts = run_jobs(
        _context_jobs(config, audit, brains), writer, pool, reporter, "levels 1 to 3"
    )
    ceilings = run_jobs(_ceiling_jobs(audit, brains), writer, pool, reporter, "ceilings")
    results = [*brain_results, *(frames for _, frames in (*contexts, *ceilings))]
    measured = dict(audit.tables) | _concat(results)
    measured[CONTROL_NULLS.name] = predictive.correct(measured[CONTROL_NULLS.name])
    reliability = measured[BRAIN_CEILING.name]
    measured[NORMALIZED_SCORES.name] = ceiling.normalize_relational(
        reliability, measured[PROFILE_DELTAS.name]
    )
    measured[NORMALIZED_PREDICTIVE.name] = ceiling.normalize_predictive(
        reliability, measured[CONTROL_DELTAS.name]
    )
    return measured


def measure_brains(audit: StudyAudit, writer: Tasks, pool: Pool, reporter: Reporter) -> Frames:
    """Audit, brain patterns and ceilings alone: what can be said of brains without any model."""
    results, brains = _brain_patterns(audit, writer, pool, reporter)
    ceilings = run_jobs(_ceiling_jobs(audit, brains), writer, pool, reporter, "ceilings")
    return dict(audit.tables) | _concat([*results, *(frames for _, frames in ceilings)])


def _brain_patterns(
    audit: StudyAudit, writer: Tasks, pool: Pool, reporter: Reporter
) -> tuple[list[Frames], Brains]:
    """Brain patterns of every recording: as results of jobs, and by dataset and recording."""
    results = run_jobs(_brain_jobs(audit), writer, pool, reporter, "brain patterns")
    brains: Brains = {name: {} for name in audit.datasets}
    for job, frames in results:
        brains[job.dataset][job.recording] = frames
    return [frames for _, frames in results], brains


def _brain_jobs(audit: StudyAudit) -> list[BrainJob]:
    return [BrainJob(name, r.id) for name, a in audit.datasets.items() for r in a.recordings]


def _context_jobs(config: StudyConfig, audit: StudyAudit, brains: Brains) -> list[ContextJob]:
    source = config.relational.brain_patterns_from
    jobs = []
    for name, dataset in audit.datasets.items():
        for recording in dataset.recordings:
            patterns = brain_patterns(
                source, recording.id, brains[name], comparable=recording.comparable
            )
            offers = [c for c in dataset.contexts if c.recording == recording.id]
            for model in dict.fromkeys(c.model for c in offers):
                layers = tuple(c.layer for c in offers if c.model == model)
                jobs.append(
                    ContextJob(name, recording.id, model, layers, dataset.confirmatory, patterns)
                )
    return jobs


def _ceiling_jobs(audit: StudyAudit, brains: Brains) -> list[CeilingJob]:
    return [
        CeilingJob(name, tuple(r.id for r in dataset.recordings), brains[name])
        for name, dataset in audit.datasets.items()
        if dataset.recordings
    ]


def run_jobs(
    jobs: Sequence[J], writer: Tasks, pool: Pool, reporter: Reporter, stage: str
) -> list[tuple[J, Frames]]:
    """Results of all jobs, in order; those of an earlier, interrupted run are taken from disk."""
    reporter.stage(stage, len(jobs))
    results: dict[str, Frames] = {}
    for job in jobs:
        if (frames := writer.load_task(job.key)) is not None:
            results[job.key] = frames
    reporter.advance(len(results))
    for done, frames in pool.map([job for job in jobs if job.key not in results]):
        writer.save_task(done.key, frames)
        results[done.key] = frames
        reporter.advance()
    return [(job, results[job.key]) for job in jobs]


def _concat(results: Iterable[Frames]) -> Frames:
    """One frame a table; a table that no job filled is empty, not absent."""
    parts: dict[str, list[pl.DataFrame]] = {}
    for frames in results:
        for name, table in frames.items():
            parts.setdefault(name, []).append(table)
    return {table.name: concat(table.measured(), parts.get(table.name, [])) for table in MEASURED}


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
"""Tables that jobs fill."""
