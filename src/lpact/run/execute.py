"""From a study to a published run directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl

from lpact.analyses.base import Frames, Task
from lpact.analyses.lpact.gates import NEEDED, decide
from lpact.analyses.lpact.positive_controls import run_assay
from lpact.config import RunConfig, StudyConfig
from lpact.inputs.prepare import check_device
from lpact.inputs.workspace import Workspace
from lpact.report import verdict_pages
from lpact.run.audit import StudyAudit, audit_study
from lpact.run.conduct import Conductor
from lpact.run.executors.choose import open_executor
from lpact.run.features import extract_features
from lpact.run.journal.announce import announced
from lpact.run.journal.journal import Journal
from lpact.run.journal.log import LOG_NAME
from lpact.run.journal.progress import Reporter, Several
from lpact.run.journal.status import read_status
from lpact.run.measure import Layered, Measured, measure
from lpact.run.preregistration import (
    REGISTRATION_NAME,
    NotedFirst,
    Registration,
    leave_note,
    run_items,
    study_tasks,
    taken_over,
)
from lpact.run.provenance import provenance
from lpact.run.stages import AUDIT, DECISION, TABLES
from lpact.store import RunWriter, StoredRun, TaskStore
from lpact.store.remote import open_shelf
from lpact.tables import PREREGISTRATION_ITEMS


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
    """Audit the sources (unless that was done), compute what is not computed yet, decide, and publish at ``out``.

    Sources that must be mended leave nothing behind, and ``out`` appears only when it is complete. ``expected`` holds
    seconds a stage, where a plan knows them. With a ``registration`` the run says whether it was followed.
    """
    check_device(config.readout)
    workspace = Workspace(config, settings)
    if audit is None:
        with announced(out, config, workers) as journal:
            audit = audit_study(workspace, Several(reporter, journal))
    else:
        workspace.hold(audit.seen, audit.fingerprints)
    tasks = TaskStore(open_shelf(settings.tasks)) if settings.tasks else None
    with (
        RunWriter(out, provenance(config, audit), tasks) as writer,
        _journal(config, writer, reporter, workers, expected, settings.cluster) as journal,
    ):
        n_recordings = sum(len(dataset.recordings) for dataset in audit.datasets.values())
        journal.known(AUDIT, n_recordings, audit.seconds, audit.peak_bytes)
        if registration is not None:
            _mark(registration, writer, journal)
        if extract_features(workspace, journal) or audit.sets_to_come:
            # What features offer is known only now; they are inputs like any other.
            workspace = Workspace(config, settings)
            audit = audit_study(workspace, journal)
            writer.provenance = provenance(config, audit)
        return _make(workspace, audit, writer, workers, journal, registration)


@contextmanager
def _journal(
    config: StudyConfig,
    writer: RunWriter,
    reporter: Reporter,
    workers: int,
    expected: Mapping[str, float] | None,
    cluster: str,
) -> Iterator[Journal]:
    """The run's log and status; how it ends is the last thing that they say."""
    if not expected and (before := read_status(writer.partial)) is not None:
        expected = before.expected  # what an earlier attempt was told
    journal = Journal(
        writer.partial,
        reporter,
        study=config.name,
        config_digest=config.digest(),
        workers=workers,
        expected=expected,
        cluster=cluster,
    )
    try:
        yield journal
    except KeyboardInterrupt:
        journal.close("interrupted", "stopped by Ctrl-C or a signal to end")
        raise
    except BaseException as error:
        journal.close("failed", str(error))
        raise
    finally:
        journal.close("finished")


def _make(
    workspace: Workspace,
    audit: StudyAudit,
    writer: RunWriter,
    workers: int,
    journal: Journal,
    registration: Registration | None,
) -> StoredRun:
    """Measure, decide and publish."""
    config = workspace.config

    def lost(tasks: list[Task]) -> None:
        names = ", ".join(task.name for task in tasks)
        what = f"a worker was lost; what it was doing is run again: {names or 'nothing'}"
        journal.note("worker_lost", tasks=names, what=what)

    with open_executor(workspace, writer.tasks, workers, lost=lost, note=journal.note) as executor:
        if workspace.run.tasks:
            executor = NotedFirst(
                executor, lambda: leave_note(writer.tasks, config, audit, writer.provenance)
            )
        measured = measure(config, audit, Conductor(writer.tasks, executor, journal))
        controls: Frames = {}
        if config.assay.enabled:
            controls = run_assay(measured)
    tables = measured.tables
    journal.stage(DECISION, 1)
    needed = {table.name: tables[table.name] for table in NEEDED}
    decided = decide(needed, gates=config.gates, primary_metric=config.readout.primary_metric)
    journal.advance()
    published = Layered(decided, controls, needed, tables)
    journal.stage(TABLES, len(published))
    workspace.check_sources()
    return writer.publish(
        published,
        report=verdict_pages(decided),
        wrote=journal.advance,
        then=lambda n_rows: _followed(registration, writer, measured, published, n_rows),
        last=lambda: _records(journal, writer, registration),
    )


def _mark(registration: Registration, writer: RunWriter, journal: Journal) -> None:
    """Let every result that is made now say under which registration that was."""
    digest = registration.found_digest
    writer.tasks = replace(writer.tasks, mark=digest)
    journal.note("preregistration", digest=digest, registered_at=registration.registered_at)


def _followed(
    registration: Registration | None,
    writer: RunWriter,
    measured: Measured,
    tables: Mapping[str, pl.DataFrame],
    n_rows: Mapping[str, int],
) -> Frames:
    """Whether the registration was followed, item by item; no table without one."""
    if registration is None:
        return {}
    tasks = study_tasks(measured.config, measured.audit)
    taken = taken_over(writer.tasks, tasks, registration)
    if taken is not None:
        measured.conductor.watcher.note(
            "results_taken_over", n_results=taken.n_results, what=taken.why
        )
    items = run_items(registration, writer.provenance, tables, n_rows, taken=taken)
    return {PREREGISTRATION_ITEMS.name: items}


def _records(
    journal: Journal, writer: RunWriter, registration: Registration | None
) -> dict[str, bytes]:
    """The log as it stays with the run, and the registration that it was given."""
    journal.close("finished")
    path = writer.partial / LOG_NAME
    records = {LOG_NAME: path.read_bytes()} if path.is_file() else {}
    if registration is not None:
        records[REGISTRATION_NAME] = registration.text().encode()
    return records
