"""``lpact run``: compute a study."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    how = How(
        chosen_workers(workers, loaded.run_config),
        cluster,
        preregistration,
        progress,
        anyway,
        registered_digest,
        report,
    )
    run = compute(loaded, out, how)
    show_results(run)
    registration = loaded.registration(preregistration, registered_digest)
    if registration is not None:
        from lpact.cli.preregister import show_followed
        from lpact.run.preregistration import check_run

        show_followed(check_run(registration, run, deposited=registered_digest))
    if report:
        add_report(run)
    show_places(run)


@dataclass(frozen=True)
class How:
    """How a run is made; nothing here changes a number."""

    workers: int
    cluster: str | None = None
    preregistration: Path | None = None
    progress: bool | None = None
    anyway: bool = False
    registered_digest: str | None = None
    report: bool = True


def compute(study: Study, out: Path, how: How) -> Run:
    """Print what a run costs, then make it; a complete one is opened as it is."""
    from lpact.errors import RunError
    from lpact.run.executors.local import too_many_workers
    from lpact.store import existing_run, partial_folder, refuse_held
    from lpact.study import Run

    study.registration(how.preregistration, how.registered_digest)
    if how.cluster is not None:
        study.settings(cluster=how.cluster)
    refuse_held(partial_folder(out.absolute()))
    state = existing_run(out, study.config.digest())
    if state == "complete":
        with progress_on_terminals() as bar:
            run = study.reopen(out, study.audit(bar))
        say(f"{out} already holds this run, complete: nothing to compute.")
        return run
    if state == "other":
        raise RunError(
            "the output folder is not empty, or is a file",
            where=str(out),
            got="other files, or a run of another configuration",
            expected="a new or empty folder, or an interrupted run of this study",
            remedy="choose another folder with --out, or move this one away",
        )
    say(f"{study.config.name}: auditing the sources …")
    plan = _plan(study, out, how)
    if cluster := how.cluster or study.run_config.cluster:
        say(f"Tasks run on the workers of the cluster {cluster}.")
    elif warning := too_many_workers(how.workers):
        say(warning)
    study.run(
        out,
        workers=how.workers,
        cluster=how.cluster,
        preregistration=how.preregistration,
        registered_digest=how.registered_digest,
        progress=how.progress,
        plan=plan,
    )
    return Run(out)


def _plan(study: Study, out: Path, how: How) -> Plan:
    """Audit the sources, and print what the run costs; `lpact status` shows the progress."""
    from lpact.run.journal import announced
    from lpact.run.progress import Several, reporter

    show = study.run_config.progress if how.progress is None else how.progress
    with announced(out, study.config, how.workers) as journal:
        with reporter(show=show) as bar:
            plan = study.plan(Several(bar, journal))
        if plan.extraction.n_sets:
            say(extraction_line(plan))
        say(cost_line(plan, how.workers, report=how.report))
        _refuse(plan, study, out, how)
    return plan


def _refuse(plan: Plan, study: Study, out: Path, how: How) -> None:
    """Raise `RunError` if the run does not fit this machine; the memory of a cluster is not ours to judge."""
    from lpact.errors import RunError
    from lpact.run.machine import machine_limits, size_of
    from lpact.store import partial_folder

    features = Path(study.run_config.features)
    limits = machine_limits(out, features)
    if limits.out is not None:
        # What an earlier attempt has written is not written again.
        limits = replace(limits, out=limits.out + size_of(partial_folder(out.absolute())))
    if how.cluster or study.run_config.cluster:
        limits = replace(limits, memory=None)
    refusal = plan.refusal(
        workers=how.workers, out=out, features=features, limits=limits, report=how.report
    )
    if refusal is not None and not how.anyway:
        raise RunError(
            refusal.what,
            where=refusal.where,
            got=refusal.got,
            expected=refusal.expected,
            remedy=f"{refusal.remedy}; or run with --anyway",
        )
