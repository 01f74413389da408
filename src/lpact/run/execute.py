"""From a study to a published run directory."""

from __future__ import annotations

from pathlib import Path

from lpact.config import RunConfig, StudyConfig
from lpact.decide import decide
from lpact.levels.prepare import check_device
from lpact.report import verdict_pages
from lpact.run.assay import run_assay
from lpact.run.features import extract_features
from lpact.run.inspect import StudyAudit, audit_study, plugin_packages
from lpact.run.jobs import Frames
from lpact.run.measure import measure
from lpact.run.pool import open_pool
from lpact.run.progress import Reporter
from lpact.run.workspace import Workspace
from lpact.store import InputFile, Provenance, RunWriter, StoredRun
from lpact.tables.audit import MODEL_FILES, SOURCE_FILES


def execute(
    config: StudyConfig,
    *,
    settings: RunConfig,
    out: str | Path,
    workers: int,
    reporter: Reporter,
    audit: StudyAudit | None = None,
) -> StoredRun:
    """Audit the sources (unless that was done), compute what is not computed yet, decide, and publish at ``out``.

    Nothing is written before the audit is clean, and ``out`` appears only when it is complete.
    """
    check_device(config.readout)
    workspace = Workspace(config, settings)
    if audit is None:
        audit = audit_study(workspace, reporter)
    if extract_features(workspace, reporter):
        workspace = Workspace(config, settings)
        audit = audit_study(workspace, reporter)
    with (
        RunWriter(out, provenance(config, audit)) as writer,
        open_pool(workspace, workers) as pool,
    ):
        measured = measure(config, audit, writer, pool, reporter)
        controls: Frames = {}
        if config.assay.enabled:
            controls = run_assay(config, audit, measured, writer, pool, reporter)
        reporter.stage("decision", 2)
        decided = decide(measured, gates=config.gates, primary_metric=config.readout.primary_metric)
        reporter.advance()
        run = writer.publish(measured | decided | controls, report=verdict_pages(decided))
        reporter.advance()
    return run


def provenance(config: StudyConfig, audit: StudyAudit) -> Provenance:
    """What the run is made from."""
    files = audit.tables[SOURCE_FILES.name].select("dataset", "path", "n_bytes", "sha256")
    inputs = [InputFile(**row) for row in files.iter_rows(named=True)]
    models = audit.tables[MODEL_FILES.name].select("model", "path", "n_bytes", "sha256")
    inputs += [
        InputFile(dataset=f"model {model}", path=path, n_bytes=n_bytes, sha256=sha256)
        for model, path, n_bytes, sha256 in models.iter_rows()
    ]
    return Provenance(
        study=config.name,
        seed=config.seed,
        config=config.model_dump(mode="json"),
        inputs=tuple(inputs),
        plugins=plugin_packages(config),
    )
