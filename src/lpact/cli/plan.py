"""``lpact plan``: what a run would compute, before it computes anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lpact.cli import _sources as sources
from lpact.cli._layout import Grid
from lpact.cli._machine import n_cores, program
from lpact.cli._outline import show_outline
from lpact.cli._render import console, counted, duration, heading, memory, roughly, say, show, whole
from lpact.cli._study import Models, Paths, StudyFile, load

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.run.plan import Plan


def command(
    study: StudyFile,
    path: Paths = None,
    model: Models = None,
) -> None:
    """Say what would be computed and what it would cost."""
    loaded = load(study, path, model)
    outline = loaded.outline()
    out = console()
    title = f"Plan of {loaded.config.name} (configuration {loaded.config.digest()[:12]})"
    if not outline.complete:
        say(out, title)
        show_outline(out, outline, loaded.config, program())
        return
    plan = loaded.plan()
    say(out, title)
    sources.show_roles(out, plan.audit)
    sources.show_findings(out, plan.audit)
    sources.show_controls(out, plan.audit)
    sources.show_ingredients(out, plan.audit)
    sources.show_reliability(out, plan.audit)
    _show_rows(out, plan)
    _show_cost(out, plan, loaded.run_config.workers)


def cost_line(plan: Plan, workers: int) -> str:
    """Size and time of a run in one line."""
    return (
        f"{counted(plan.n_claims, 'claim')}, {counted(plan.n_contexts, 'context')}, "
        f"{counted(plan.n_fits, 'readout')}; {roughly(plan.seconds_with(workers))} "
        f"with {counted(workers, 'worker')}; {memory(plan.peak_bytes)} of arrays in each"
    )


def extraction_line(plan: Plan) -> str:
    """What is to be extracted from language models first, in one line."""
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


def _show_cost(out: Console, plan: Plan, workers: int) -> None:
    heading(out, "Cost")
    if plan.extraction.n_sets:
        say(out, extraction_line(plan), indent=2)
    say(out, cost_line(plan, workers), indent=2)
    cores = n_cores()
    if cores > workers:
        faster = duration(plan.seconds_with(cores))
        say(out, f"with --workers {cores} (the cores of this machine): about {faster}", indent=2)
