"""``lpact plan`` and ``lpact audit``: what the sources allow and what a run would cost, before it computes anything."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._options import (
    Models,
    Paths,
    Report,
    StudyFile,
    Workers,
    chosen_workers,
    load,
    n_cores,
    program,
    progress_on_terminals,
)
from lpact.cli._terminal import heading, say, show_blocks, show_table
from lpact.cli.datasets import source_lines
from lpact.wording import MISSING, about, counted, duration, size

if TYPE_CHECKING:
    from lpact.run.plan import DatasetOutline, Outline, Plan


def command(
    study: StudyFile,
    out: Annotated[
        Path, typer.Option("--out", help="Folder that the run would be written to.")
    ] = Path(),
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
        typer.echo(str(problem), err=True)
        raise typer.Exit(1)


def audit(
    study: StudyFile,
    path: Paths = None,
    model: Models = None,
    every: Annotated[
        bool, typer.Option("--all", help="List every finding, however many there are.")
    ] = False,
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
    from lpact.run.stages import REPORT

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
    say(
        "Estimated from counts of operations and the speed of this machine: expect errors of up to a factor of "
        f"{FACTOR}. During the run, the first finished tasks refine the estimate.",
        indent=2,
    )
    heading("Cost")
    for name, claims in plan.claims.items():
        say(f"{name}: {counted(len(claims), 'claim')}", indent=2)
    if plan.extraction.n_sets:
        say(extraction_line(plan), indent=2)
    say(cost_line(plan, workers, report=report), indent=2)
    cores = n_cores()
    if cores > workers:
        time = _time(plan.seconds_with(cores, report=report))
        most = size(plan.memory_with(cores, report=report))
        say(f"with --workers {cores} (all cores): {time}, {most} of memory", indent=2)


def _show_outline(outline: Outline) -> None:
    """Print what a study without all of its data or models needs, how to get it, and what follows from the file."""
    from lpact.controls.base import CONTROLS

    missing = counted(outline.n_missing, "dataset or model", "datasets and models")
    say(f"{missing} missing: sizes, times and the source audit need them.")
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
    models = [
        (m.name, m.source, ", ".join(map(str, m.layers)), m.missing or "nothing")
        for m in outline.models
    ]
    show_table(("model", "source", "layers", "missing"), models)
    if outline.models:
        contexts = ", ".join(outline.models[0].contexts)
        say(f"contexts of features that the analyses read: {contexts}", indent=2)
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
