"""``lpact run``: compute a study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._options import (
    Models,
    Paths,
    Progress,
    Report,
    StudyFile,
    Workers,
    chosen_workers,
    load,
    progress_on_terminals,
)
from lpact.cli._results import show_places, show_results
from lpact.cli._terminal import say
from lpact.cli.plan import cost_line, extraction_line
from lpact.cli.read import add_report

if TYPE_CHECKING:
    from lpact.run.plan import Plan
    from lpact.study import Run, Study


def command(
    study: StudyFile,
    out: Annotated[
        Path, typer.Option("--out", help="Output folder: a new one, or that of an interrupted run.")
    ],
    workers: Workers = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="ADDRESS", help="Dask scheduler (tcp://…), or slurm."),
    ] = None,
    preregistration: Annotated[
        Path | None,
        typer.Option(
            "--preregistration", help="File of `lpact preregister` to compare the run with."
        ),
    ] = None,
    registered_digest: Annotated[
        str | None,
        typer.Option(
            "--registered-digest",
            metavar="HEX",
            help="The registration's deposited digest; a file with another is refused.",
        ),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Run even if memory or disk seem too small.")
    ] = False,
    progress: Progress = None,
    report: Report = True,
    path: Paths = None,
    model: Models = None,
    analysis: Annotated[
        str | None,
        typer.Option("--analysis", help="Run this analysis alone (`lpact list analyses`)."),
    ] = None,
) -> None:
    """Compute a study, or resume it."""
    if workers != 1 and cluster is None:
        from lpact.run.executors import fork_server

        fork_server.start()
    loaded = load(study, path, model, analysis)
    loaded.run_config = loaded.settings(
        workers=chosen_workers(workers, loaded.run_config),
        cluster=cluster,
        preregistration=preregistration,
        progress=progress,
    )
    run = compute(loaded, out, registered_digest, anyway=anyway, report=report)
    show_results(run)
    registration = loaded.registration(digest=registered_digest)
    if registration is not None:
        from lpact.cli.preregister import show_followed
        from lpact.run.preregistration.compare import check_run

        show_followed(check_run(registration, run, deposited=registered_digest))
    if report:
        add_report(run)
    show_places(run)


def compute(
    study: Study, out: Path, digest: str | None = None, *, anyway: bool = False, report: bool = True
) -> Run:
    """Print what a run costs, then make it; a complete one is opened as it is."""
    from lpact.run.executors.local import too_many_workers
    from lpact.store import existing_run, partial_folder, refuse_held, refuse_other_run

    study.registration(digest=digest)
    refuse_held(partial_folder(out.absolute()))
    if existing_run(out, study.config.digest()) == "complete":
        with progress_on_terminals() as bar:
            run = study.reopen(out, study.audit(bar))
        say(f"{out} already holds this run, complete: nothing to compute.")
        return run
    refuse_other_run(out, study.config.digest())
    say(f"{study.config.name}: auditing the sources …")
    plan = _plan(study, out, anyway=anyway, report=report)
    if cluster := study.run_config.cluster:
        say(f"Tasks run on the workers of the cluster {cluster}.")
    elif warning := too_many_workers(study.run_config.workers):
        say(warning)
    return study.run(out, registered_digest=digest, plan=plan)


def _plan(study: Study, out: Path, *, anyway: bool, report: bool) -> Plan:
    """Audit the sources, and print what the run costs; `lpact status` shows the progress.

    A run that does not fit this machine is a `RunError`; the memory of a cluster is not ours to judge.
    """
    from lpact.errors import RunError
    from lpact.run.journal import announced
    from lpact.run.machine import machine_limits, size_of
    from lpact.run.progress import Several, reporter
    from lpact.store import partial_folder

    settings = study.run_config
    with announced(out, study.config, settings.workers) as journal:
        with reporter(show=settings.progress) as bar:
            plan = study.plan(Several(bar, journal))
        if plan.extraction.n_sets:
            say(extraction_line(plan))
        say(cost_line(plan, settings.workers, report=report))
        features = Path(settings.features)
        limits = machine_limits(out, features)
        if limits.out is not None:
            # What an earlier attempt has written is not written again.
            limits = replace(limits, out=limits.out + size_of(partial_folder(out.absolute())))
        if settings.cluster:
            limits = replace(limits, memory=None)
        refusal = plan.refusal(
            workers=settings.workers, out=out, features=features, limits=limits, report=report
        )
        if refusal is not None and not anyway:
            raise RunError(
                refusal.what,
                where=refusal.where,
                got=refusal.got,
                expected=refusal.expected,
                remedy=f"{refusal.remedy}; or run with --anyway",
            )
    return plan
