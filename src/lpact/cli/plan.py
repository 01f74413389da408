"""``lpact plan``: what a run would compute and cost, before it computes anything."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._layout import Grid
from lpact.cli._machine import Workers, chosen_workers, n_cores, program
from lpact.cli._outline import show_outline
from lpact.cli._render import (
    console,
    counted,
    duration,
    heading,
    memory,
    roughly,
    say,
    show,
    show_blocks,
    whole,
)
from lpact.cli._study import Models, Paths, Report, StudyFile, load, progress_on_terminals

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.run.plan import Plan


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
    terminal = console()
    title = f"Plan of {loaded.config.name} (configuration {loaded.config.digest()[:12]})"
    if not outline.complete:
        say(terminal, title)
        show_outline(terminal, outline, program())
        return
    with progress_on_terminals() as bar:
        plan = loaded.plan(bar)
    say(terminal, title)
    for name, analysis in loaded.analyses.items():
        show_blocks(terminal, analysis.audit_blocks(plan.audit.of[name]))
    _show_rows(terminal, plan)
    n_workers = chosen_workers(workers, loaded.run_config)
    _show_cost(terminal, plan, n_workers, report=report)
    features = Path(loaded.run_config.features)
    problem = plan.refusal(workers=n_workers, out=out, features=features, report=report)
    if problem is not None:
        typer.echo(str(problem), err=True)
        raise typer.Exit(1)


def cost_line(plan: Plan, workers: int, *, report: bool = True) -> str:
    """Size and cost of a run in one line."""
    return (
        f"{counted(plan.n_claims, 'claim')}, {counted(plan.n_tasks, 'task')}; "
        f"{_time(plan.seconds_with(workers, report=report))} with {counted(workers, 'worker')}; "
        f"{memory(plan.memory_with(workers, report=report))} of memory, "
        f"{memory(plan.disk_with(report=report))} on disk"
    )


def _time(seconds: float) -> str:
    """A first estimate in words."""
    return "time not known before the first tasks" if isnan(seconds) else roughly(seconds)


def extraction_line(plan: Plan) -> str:
    """What must be extracted from language models first, in one line."""
    cost = plan.extraction
    return (
        f"first, {counted(cost.n_sets, 'feature set')} from language models: {whole(cost.tokens)} tokens, "
        f"{roughly(cost.seconds)}, {memory(cost.n_bytes)} on disk"
    )


def _show_rows(out: Console, plan: Plan) -> None:
    heading(out, "Rows per table (≤: at most)")
    grid = Grid(("table", "rows"), right=frozenset({"rows"}))
    for name, n_rows in plan.rows.items():
        bound = "≤ " if name in plan.at_most else ""
        grid.add(name, f"{bound}{whole(n_rows)}")
    show(out, grid)


def _show_cost(out: Console, plan: Plan, workers: int, *, report: bool) -> None:
    from lpact.run.costs import FACTOR
    from lpact.run.stages import REPORT

    heading(out, "Cost per stage, with one worker (about)")
    columns = ("stage", "tasks", "time", "memory per process", "on disk")
    grid = Grid(columns, right=frozenset(columns[1:]))
    for stage in plan.stages:
        if stage.n_tasks and (report or stage.stage != REPORT):
            disk = memory(stage.disk_bytes) if stage.disk_bytes else "–"
            time = "–" if isnan(stage.seconds) else duration(stage.seconds)
            grid.add(stage.stage, whole(stage.n_tasks), time, memory(stage.peak_bytes), disk)
    show(out, grid)
    say(
        out,
        "Estimated from counts of operations and the speed of this machine: expect errors of up to a factor of "
        f"{FACTOR}. While the run goes on, the first finished tasks refine the estimate.",
        indent=2,
    )
    heading(out, "Cost")
    for name, claims in plan.claims.items():
        say(out, f"{name}: {counted(len(claims), 'claim')}", indent=2)
    if plan.extraction.n_sets:
        say(out, extraction_line(plan), indent=2)
    say(out, cost_line(plan, workers, report=report), indent=2)
    cores = n_cores()
    if cores > workers:
        faster = _time(plan.seconds_with(cores, report=report))
        most = memory(plan.memory_with(cores, report=report))
        say(
            out,
            f"with --workers {cores} (the cores of this machine): {faster}, {most} of memory",
            indent=2,
        )
