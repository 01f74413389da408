"""``lpact demo``: the built-in simulated study, whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._options import MOST_WORKERS, chosen_workers
from lpact.cli._results import show_places, show_results
from lpact.cli._terminal import heading, say, show_table
from lpact.cli.read import add_report
from lpact.cli.run import How, compute
from lpact.config.study import DEFAULT
from lpact.wording import counted

if TYPE_CHECKING:
    from lpact.study import Study


def command(
    analysis: Annotated[
        str, typer.Argument(help="The analysis to show (`lpact list analyses`).")
    ] = DEFAULT,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder of the run; default: `demo`, or `demo-ANALYSIS`."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, help=f"Processes; default: cores, at most {MOST_WORKERS}."
        ),
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
    run = compute(study, out, How(chosen_workers(workers), progress=True))
    show_results(run, every_claim=True)
    add_report(run)
    heading("Tables")
    counts = {table.name: run.n_rows(table.name) for table in run.tables()}
    show_table(("table", "rows"), counts.items())
    say(f"{counted(len(counts), 'table')}, {counted(sum(counts.values()), 'row')}", indent=2)
    show_places(run)


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
