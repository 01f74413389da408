"""``lpact run``: compute a study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._render import console, say
from lpact.cli._results import (
    DECISIONS,
    show_outcome,
    show_places,
    show_positive_controls,
    show_verdict_counts,
)
from lpact.cli._study import Models, Paths, StudyFile, load
from lpact.cli.plan import cost_line, extraction_line
from lpact.cli.report import add_report

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.study import Run, Study


def command(
    study: StudyFile,
    out: Annotated[Path, typer.Option("--out", help="Folder of the run; new, or interrupted.")],
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes; default: the study file's.")
    ] = None,
    progress: Annotated[
        bool | None, typer.Option("--progress/--no-progress", help="Show progress.")
    ] = None,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write the page and its figures too.")
    ] = True,
    path: Paths = None,
    model: Models = None,
) -> None:
    """Compute a study, or resume it."""
    told = console()
    loaded = load(study, path, model)
    run = compute(told, loaded, out, workers=workers, progress=progress)
    if report:
        add_report(run)
    show_verdict_counts(told, run.table(DECISIONS))
    if run.decisions.is_empty():
        say(told, f"No claim could be made: `lpact audit {study}` says why.", indent=2)
    show_outcome(told, run)
    show_positive_controls(told, run)
    show_places(told, run)


def compute(
    told: Console,
    study: Study,
    out: Path,
    *,
    workers: int | None,
    progress: bool | None,
    if_taken: str = "choose another folder, or move this one away",
) -> Run:
    """Say what a run costs, then make it; a complete one is opened as it is.

    ``if_taken`` is the remedy when something else is at ``out``.
    """
    from lpact.errors import RunError
    from lpact.store import existing_run
    from lpact.study import Run

    state = existing_run(out, study.config.digest())
    if state == "complete":
        run = study.reopen(out, study.audit())
        say(told, f"{out} holds this run already, complete: nothing to compute.")
        return run
    if state == "other":
        raise RunError(
            "the output folder is not empty",
            where=str(out),
            got="other files, or a run of another configuration",
            expected="a new or empty folder, or an interrupted run of this study",
            remedy=if_taken,
        )
    say(told, f"{study.config.name}: looking at the sources …")
    plan = study.plan()
    if plan.extraction.n_sets:
        say(told, extraction_line(plan))
    say(told, cost_line(plan, workers or study.run_config.workers))
    if out.absolute().with_name(f"{out.absolute().name}.partial").exists():
        say(told, "A working folder is there: what was finished of this very study is used again.")
    study.run(out, workers=workers, progress=progress, plan=plan)
    # Opened by the path that was typed, so that lines to copy are short.
    return Run(out)
