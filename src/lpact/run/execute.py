"""From a study to a published run directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from lpact.analyses.base import Frames, Task, analyses_of, decided
from lpact.config import RunConfig, StudyConfig
from lpact.errors import LPactError, RunError
from lpact.inputs.workspace import Workspace
from lpact.run.audit import StudyAudit, audit_study, check_device, extract_features, provenance
from lpact.run.conductor import Conductor, Measuring
from lpact.run.executors.local import open_executor
from lpact.run.journal import Journal, announced
from lpact.run.progress import AUDIT, DECISION, TABLES, Reporter
from lpact.run.status import LOG_NAME
from lpact.store import LazyTables, Results, RunWriter, StoredRun, TaskStore
from lpact.tables import PREREGISTRATION_ITEMS

if TYPE_CHECKING:
    from lpact.run.preregistration.record import Registration


def execute(
    config: StudyConfig,
    *,
    settings: RunConfig,
    out: str | Path,
    workers: int,
    reporter: Reporter,
    audit: StudyAudit | None = None,
    expected: Mapping[str, float] | None = None,
    registration: Registration | None = None,
) -> StoredRun:
    """Audit the sources (unless that was done), compute what is missing, decide, and publish at ``out``.

    Faulty sources leave nothing behind, and ``out`` appears only when it is complete. ``expected`` holds the seconds of
    each stage, where a plan knows them. With a ``registration`` the run says whether it was followed.
    """
    check_device(config)
    workspace = Workspace(config, settings)
    if audit is None:
        with announced(out, config, workers, reporter) as journal:
            audit = audit_study(workspace, journal)
    else:
        workspace.hold(audit.seen, audit.fingerprints)
    tasks = TaskStore(Path(settings.tasks)) if settings.tasks else None
    with (
        RunWriter(out, provenance(config, audit), tasks) as writer,
        Journal(
            writer.partial,
            reporter,
            study=config.name,
            config_digest=config.digest(),
            workers=workers,
            expected=expected,
            cluster=settings.cluster,
        ) as journal,
    ):
        journal.known(AUDIT, audit.n_recordings, audit.seconds, audit.peak_bytes)
        if registration is not None:
            # Every result that is made now says under which registration that was.
            digest = registration.found_digest
            writer.tasks = replace(writer.tasks, mark=digest)
            journal.note("preregistration", digest=digest, registered_at=registration.registered_at)
        if extract_features(workspace, journal) or audit.sets_to_come:
            # What features offer is known only now; they are inputs like any other.
            workspace = Workspace(config, settings)
            audit = audit_study(workspace, journal)
            writer.provenance = provenance(config, audit)
        return _make(workspace, audit, writer, workers, journal, registration)


def _make(
    workspace: Workspace,
    audit: StudyAudit,
    writer: RunWriter,
    workers: int,
    journal: Journal,
    registration: Registration | None,
) -> StoredRun:
    """Measure, decide and publish: every analysis of the study."""
    config = workspace.config

    def lost(tasks: list[Task]) -> None:
        names = ", ".join(task.name for task in tasks)
        what = f"a worker was lost; its tasks are run again: {names or 'none'}"
        journal.note("worker_lost", tasks=names, what=what)

    measurings = [Measuring(config, audit, analysis) for analysis in analyses_of(config).values()]
    tasks = [task for measuring in measurings for stage in measuring.stages for task in stage.tasks]
    if n := sum(writer.tasks.has(task.key) for task in tasks):
        results = "1 finished result" if n == 1 else f"{n:,} finished results"
        journal.note("resuming", n_results=n, what=f"Resuming: reusing {results}")
    if workspace.run.tasks and not all(writer.tasks.has(task.key) for task in tasks):
        from lpact.run.preregistration.earlier import leave_note

        leave_note(writer.tasks, config, audit)
    # More processes than a stage has tasks would only fill memory.
    most = max((len(stage.tasks) for own in measurings for stage in own.stages), default=1)
    with open_executor(workspace, writer.tasks, min(workers, most), lost=lost, note=journal.note) as executor:
        conductor = Conductor(writer.tasks, executor, journal)
        for measuring in measurings:
            measuring.run(conductor)
        conductor.check()
    journal.stage(DECISION, len(measurings))
    layers: list[Mapping[str, pl.DataFrame]] = []
    for measuring in measurings:
        layers += _decided(measuring, writer.tasks)
        journal.advance()
    published = LazyTables.layered(*layers, audit.tables)
    journal.stage(TABLES, len(published))
    workspace.check_sources()
    return writer.publish(
        published,
        wrote=journal.advance,
        then=lambda n_rows: _followed(registration, writer, tasks, published, n_rows, journal),
        last=lambda: _records(journal, writer, registration),
    )


def _decided(measuring: Measuring, results: Results) -> tuple[Frames, LazyTables]:
    """Tables of a decision, and those it was made from. What it raises is a `RunError`; what was computed is kept."""
    name = measuring.analysis.name
    try:
        tables = measuring.tables(results)
        return decided(measuring.analysis, measuring.study, tables), tables
    except (LPactError, MemoryError):
        raise
    except Exception as error:
        raise RunError(
            f"the analysis '{name}' could not decide, and the run is not published",
            where=f"decision of '{name}'",
            got=f"{type(error).__name__}: {error}",
            expected="a label for every claim; what cannot be decided is a row with a reason",
            remedy="report this (`lpact --debug run …` shows where); all results are kept, and the same command with a "
            "corrected version decides without computing them again",
        ) from error


def _followed(
    registration: Registration | None,
    writer: RunWriter,
    tasks: Sequence[Task],
    tables: Mapping[str, pl.DataFrame],
    n_rows: Mapping[str, int],
    journal: Journal,
) -> Frames:
    """Whether the registration was followed, item by item; no table without one."""
    if registration is None:
        return {}
    from lpact.run.preregistration.compare import run_items
    from lpact.run.preregistration.earlier import reused_results

    reused = reused_results(writer.tasks, tasks, registration)
    if reused is not None:
        journal.note("results_reused", n_results=reused.n_results, what=reused.why)
    items = run_items(registration, writer.provenance, tables, n_rows, reused=reused)
    return {PREREGISTRATION_ITEMS.name: items}


def _records(journal: Journal, writer: RunWriter, registration: Registration | None) -> dict[str, bytes]:
    """The log as it stays with the run, and the registration that it was given."""
    journal.close("finished")
    path = writer.partial / LOG_NAME
    records = {LOG_NAME: path.read_bytes()} if path.is_file() else {}
    if registration is not None:
        from lpact.run.preregistration.record import REGISTRATION_NAME

        records[REGISTRATION_NAME] = registration.text().encode()
    return records
