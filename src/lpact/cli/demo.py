"""``lpact demo``: the built-in simulated study, whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._options import MOST_WORKERS, chosen_workers
from lpact.cli._results import show_places, show_results
from lpact.cli._terminal import heading, say, show_table
from lpact.cli.read import add_report
from lpact.cli.run import compute
from lpact.wording import counted

if TYPE_CHECKING:
    from lpact.study import Study


def command(
    out: Annotated[Path, typer.Option("--out", help="Folder of the run.")] = Path("demo"),
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, help=f"Processes; default: cores, at most {MOST_WORKERS}."
        ),
    ] = None,
) -> None:
    """Run a whole study on simulated recordings."""
    study = demo_study()
    config = study.config
    say(
        f"The demo runs {', '.join(config.analyses)} on {counted(len(config.models), 'simulated model')} and "
        f"{counted(len(config.datasets), 'simulated dataset')} whose truth is known, "
        f"with {counted(len(config.controls.include), 'severe control')}."
    )
    study.run_config = study.settings(workers=chosen_workers(workers), progress=True)
    run = compute(study, out)
    show_results(run, every_claim=True)
    add_report(run)
    heading("Tables")
    counts = {table.name: run.n_rows(table.name) for table in run.tables()}
    show_table(("table", "rows"), counts.items())
    say(f"{counted(len(counts), 'table')}, {counted(sum(counts.values()), 'row')}", indent=2)
    show_places(run)


def demo_study() -> Study:
    """The study that ships with lpact."""
    from importlib.resources import files

    from lpact.study import study_from_text

    text = files("lpact.run").joinpath("demo.toml").read_text(encoding="utf-8")
    return study_from_text(text, where="the built-in demo study")
