"""``lpact init``, ``plan``, ``audit``, ``run`` and ``demo``: from a study file to a finished run."""

from __future__ import annotations

import shlex
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.analyses import DEFAULT
from lpact.cli._options import (
    MOST_WORKERS,
    Models,
    Paths,
    Progress,
    Report,
    StudyFile,
    Workers,
    chosen_workers,
    load,
    n_cores,
    program,
    progress_on_terminals,
)
from lpact.cli._results import show_places, show_results
from lpact.cli._terminal import complain, heading, say, show_blocks, show_table
from lpact.cli.datasets import source_lines
from lpact.cli.read import add_report
from lpact.wording import MISSING, about, counted, duration, size

if TYPE_CHECKING:
    from lpact.run.plan import DatasetOutline, Outline, Plan
    from lpact.study import Run, Study


def init(
    path: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("study.toml"),
    analysis: Annotated[
        list[str] | None,
        typer.Option("--analysis", help="Analysis to include (default: lpact); may be repeated."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a commented starter study file that runs as it is."""
    from lpact.errors import ConfigError
    from lpact.run.starter import starter_text

    text = starter_text(tuple(dict.fromkeys(analysis or ["lpact"])))
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(
            "the study file cannot be written",
            where=str(path),
            got=error.strerror or str(error),
            expected="a path that does not exist, in a folder that can be written to",
            remedy="choose another path, or overwrite a file with --force",
        ) from None
    say(f"Wrote {path}: every option, with its explanation and default.")
    typed = shlex.quote(str(path))
    say(f"Next: {program()} plan {typed}")
    say(f"      {program()} run {typed} --out runs/first")


def plan(
    study: StudyFile,
    out: Annotated[Path, typer.Option("--out", help="Folder that the run would be written to.")] = Path(),
    workers: Workers = None,
    report: Report = True,
    path: Paths = None,
    model: Models = None,
) -> None:
    """Show what a run would compute and cost, and whether it fits."""
    loaded = load(study, path, model)
    outline = loaded.outline()
    title = f"Plan of {loaded.config.name} (configuration {loaded.config.digest()[:12]})"
    if not outline.complete:
        say(title)
        _show_outline(outline)
        return
    with progress_on_terminals() as bar:
        plan = loaded.plan(bar)
    say(title)
    for name, analysis in loaded.analyses.items():
        show_blocks(analysis.audit_blocks(plan.audit.of[name]))
    heading("Rows per table (≤: at most)")
    rows = {name: f"{'≤ ' if name in plan.at_most else ''}{n:,}" for name, n in plan.rows.items()}
    show_table(("table", "rows"), rows.items(), right=("rows",))
    n_workers = chosen_workers(workers, loaded.run_config)
    _show_cost(plan, n_workers, report=report)
    features = Path(loaded.run_config.features)
    problem = plan.refusal(workers=n_workers, out=out, features=features, report=report)
    if problem is not None:
        complain(problem)
        raise typer.Exit(1)


def audit(
    study: StudyFile,
    path: Paths = None,
    model: Models = None,
    every: Annotated[bool, typer.Option("--all", help="List every finding, however many there are.")] = False,
) -> None:
    """Audit the sources without planning or running anything."""
    loaded = load(study, path, model)
    with progress_on_terminals() as bar:
        audit = loaded.audit(bar)
    n_datasets = counted(len(loaded.config.datasets), "dataset")
    recordings = counted(audit.n_recordings, "recording")
    say(f"Source audit of {loaded.config.name}: {n_datasets}, {recordings}.")
    for name, analysis in loaded.analyses.items():
        show_blocks(analysis.audit_blocks(audit.of[name], full=every))


def cost_line(plan: Plan, workers: int, *, report: bool = True) -> str:
    """Size and cost of a run in one line."""
    workers = plan.busy_workers(workers)
    return (
        f"{counted(plan.n_claims, 'claim')}, {counted(plan.n_tasks, 'task')}; "
        f"{_time(plan.seconds_with(workers, report=report))} with {counted(workers, 'worker')}; "
        f"{size(plan.memory_with(workers, report=report))} of memory, "
        f"{size(plan.disk_with(report=report))} on disk"
    )


def _time(seconds: float) -> str:
    return "time not known before the first tasks" if isnan(seconds) else about(seconds)


def extraction_line(plan: Plan) -> str:
    """What must be extracted from language models first, in one line."""
    cost = plan.extraction
    return (
        f"first, {counted(cost.n_sets, 'feature set')} from language models: {counted(cost.tokens, 'token')}, "
        f"{about(cost.seconds)}, {size(cost.n_bytes)} on disk"
    )


def _show_cost(plan: Plan, workers: int, *, report: bool) -> None:
    from lpact.run.plan import FACTOR
    from lpact.run.progress import REPORT

    heading("Cost per stage, with one worker (about)")
    columns = ("stage", "tasks", "time", "memory per process", "on disk")
    rows = [
        (
            stage.stage,
            stage.n_tasks,
            MISSING if isnan(stage.seconds) else duration(stage.seconds),
            size(stage.peak_bytes),
            size(stage.disk_bytes) if stage.disk_bytes else None,
        )
        for stage in plan.stages
        if stage.n_tasks and (report or stage.stage != REPORT)
    ]
    show_table(columns, rows, right=columns[1:])
    readout = plan.config.readout
    faster = (
        "" if readout.on_processor else f" Times are those of the processor; '{readout.device}' can be much faster."
    )
    say(
        "Estimated from counts of operations and the speed of this machine: expect errors of up to a factor of "
        f"{FACTOR}.{faster} During the run, the first finished tasks refine the estimate.",
        indent=2,
    )
    heading("Cost")
    for name, claims in plan.claims.items():
        say(f"{name}: {counted(len(claims), 'claim')}", indent=2)
    if plan.extraction.n_sets:
        say(extraction_line(plan), indent=2)
    say(cost_line(plan, workers, report=report), indent=2)
    workers, cores = plan.busy_workers(workers), plan.busy_workers(n_cores())
    if cores > workers:
        time = _time(plan.seconds_with(cores, report=report))
        most = size(plan.memory_with(cores, report=report))
        say(f"with --workers {cores}: {time}, {most} of memory", indent=2)


def _show_outline(outline: Outline) -> None:
    """Print what a study without all of its data or models needs, how to get it, and what follows from the file."""
    from lpact.controls.base import CONTROLS

    missing = counted(outline.n_missing, "dataset or model", "datasets and models")
    say(f"{missing} missing: sizes, times and the source audit cannot be shown without them.")
    heading("Datasets")
    datasets = [(d.name, d.role, d.reader, d.missing or "found") for d in outline.datasets]
    show_table(("dataset", "role", "reader", "folder"), datasets)
    for dataset in outline.datasets:
        if dataset.missing:
            _show_source(dataset)
    for dataset in outline.datasets:
        if not dataset.missing and dataset.folder is not None:
            check = f"{program()} datasets check {dataset.reader} {dataset.folder}"
            say(f"Check {dataset.name}: {check}", indent=2)
    heading("Models")
    models = [(m.name, m.source, ", ".join(map(str, m.layers)), m.missing or "nothing") for m in outline.models]
    show_table(("model", "source", "layers", "missing"), models)
    if outline.models:
        contexts = ", ".join(outline.models[0].contexts)
        say(f"contexts of features that the analyses read: {contexts}", indent=2)
    if outline.controls:
        heading("Severe controls, where dataset and model allow them (draws: at most)")
        controls = [(name, n, CONTROLS.get(name).needs) for name, n in outline.controls.items()]
        show_table(("control", "draws", "needs"), controls)
    for blocks in outline.blocks.values():
        show_blocks(blocks)


def _show_source(dataset: DatasetOutline) -> None:
    say(f"\nHow to get {dataset.name}:", indent=2)
    if dataset.download is None:
        say(f"your own data, for the reader '{dataset.reader}'", indent=4)
        return
    lines = dict(source_lines(dataset.download))
    folder = dataset.folder or "FOLDER"
    lines["command"] = f"{program()} datasets fetch {dataset.reader} --to {folder}"
    if dataset.extra:
        lines["needs"] = f"pip install 'lpact[{dataset.extra}]'"
    for label, text in lines.items():
        say(f"{label + ':':<9}{text}", indent=4)


def run(
    study: StudyFile,
    out: Annotated[Path, typer.Option("--out", help="Output folder: a new one, or that of an interrupted run.")],
    workers: Workers = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="ADDRESS",
            envvar="LPACT_CLUSTER",
            help="Dask scheduler that you trust (tcp://…), or slurm.",
        ),
    ] = None,
    slurm: Annotated[
        Path | None,
        typer.Option("--slurm", envvar="LPACT_SLURM", help="File with the options of SLURM jobs (TOML)."),
    ] = None,
    preregistration: Annotated[
        Path | None,
        typer.Option("--preregistration", help="File of `lpact preregister` to compare the run with."),
    ] = None,
    registered_digest: Annotated[
        str | None,
        typer.Option(
            "--registered-digest",
            metavar="HEX",
            help="The registration's deposited digest; a file with another is refused.",
        ),
    ] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Run even if memory or disk seem too small.")] = False,
    progress: Progress = None,
    report: Report = True,
    path: Paths = None,
    model: Models = None,
    analysis: Annotated[
        str | None,
        typer.Option("--analysis", help="Run this analysis alone (`lpact list analyses`)."),
    ] = None,
) -> None:
    """Compute a study, or resume it.

    Exit status 0: done; 1: the run is complete, but its report could not be written; 2: an error.
    """
    from lpact.config import read_slurm_file

    if workers != 1 and cluster is None:
        from lpact.run.executors import fork_server

        fork_server.start()
    loaded = load(study, path, model, analysis)
    loaded.run_config = loaded.settings(
        workers=chosen_workers(workers, loaded.run_config),
        cluster=cluster,
        slurm=slurm and read_slurm_file(slurm).model_dump(),
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
    written = not report or add_report(run)
    show_places(run)
    if not written:
        raise typer.Exit(1)


def compute(study: Study, out: Path, digest: str | None = None, *, anyway: bool = False, report: bool = True) -> Run:
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
    from lpact.run.journal import announced
    from lpact.run.machine import machine_limits, size_of
    from lpact.run.progress import reporter
    from lpact.store import partial_folder

    settings = study.run_config
    with reporter(show=settings.progress) as bar, announced(out, study.config, settings.workers, bar) as journal:
        plan = study.plan(journal)
        features = Path(settings.features)
        limits = machine_limits(out, features)
        if limits.out is not None:
            # What an earlier attempt has written is not written again.
            limits = replace(limits, out=limits.out + size_of(partial_folder(out.absolute())))
        if settings.cluster:
            limits = replace(limits, memory=None)
        refusal = plan.refusal(workers=settings.workers, out=out, features=features, limits=limits, report=report)
        if refusal is not None and not anyway:
            raise refusal
    if plan.extraction.n_sets:
        say(extraction_line(plan))
    say(cost_line(plan, settings.workers, report=report))
    return plan


def demo(
    analysis: Annotated[str, typer.Argument(help="The analysis to show (`lpact list analyses`).")] = DEFAULT,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder of the run; default: `demo`, or `demo-ANALYSIS`."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help=f"Processes; default: cores, at most {MOST_WORKERS}."),
    ] = None,
) -> None:
    """Run a whole study on simulated recordings."""
    study = demo_study(analysis)
    config = study.config
    out = out or Path("demo" if analysis == DEFAULT else f"demo-{analysis}")
    say(
        f"The demo runs {', '.join(config.analyses)} on {counted(len(config.models), 'simulated model')} and "
        f"{counted(len(config.datasets), 'simulated dataset')} whose truth is known."
    )
    study.run_config = study.settings(workers=chosen_workers(workers), progress=True)
    run = compute(study, out)
    show_results(run, every_claim=True)
    written = add_report(run)
    heading("Tables")
    counts = {table.name: run.n_rows(table.name) for table in run.tables()}
    show_table(("table", "rows"), counts.items())
    say(f"{counted(len(counts), 'table')}, {counted(sum(counts.values()), 'row')}", indent=2)
    show_places(run)
    if not written:
        raise typer.Exit(1)


def demo_study(analysis: str = DEFAULT) -> Study:
    """The study that ships with an analysis: ``demo.toml`` in its package."""
    from importlib.resources import files

    from lpact.errors import ConfigError
    from lpact.registry import ANALYSES
    from lpact.study import study_from_text

    package = ANALYSES.get(analysis, where="lpact demo").__module__.rpartition(".")[0]
    text = files(package).joinpath("demo.toml")
    if not text.is_file():
        raise ConfigError(
            f"the analysis '{analysis}' has no demo",
            where="lpact demo",
            got=f"no demo.toml in {package}",
            expected="an analysis that ships with a study",
            remedy="run a study of your own: lpact init",
        )
    return study_from_text(text.read_text(encoding="utf-8"), where=f"the demo of '{analysis}'")
