"""``lpact report``: figures and a page that explains a finished run, from its tables alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._machine import MOST_WORKERS, n_cores
from lpact.cli._render import console, counted, say, whole

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.report import WrittenReport
    from lpact.study import Run


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the report; default: RUN/report.")
    ] = None,
    tables: Annotated[
        bool, typer.Option("--tables/--no-tables", help="Write every table as CSV and LaTeX too.")
    ] = True,
) -> None:
    """Write the figures and the page of a finished run."""
    import lpact

    show_written(console(), make(lpact.open_run(run), out=out, tables=tables))


def make(run: Run, *, out: Path | None = None, tables: bool = True) -> WrittenReport:
    """Write the report of a run, and say on a terminal what is being done."""
    from rich.console import Console

    with Console(stderr=True, markup=False).status("reading the tables") as status:
        return run.report(
            out,
            tables=tables,
            workers=min(n_cores(), MOST_WORKERS),
            tell=status.update,
        )


def show_written(out: Console, written: WrittenReport) -> None:
    """Where the report is, and what is in it."""
    say(out, f"Report: {written.page}")
    size = f"{written.page_bytes / 1e6:.1f} MB, one file, no network needed"
    say(
        out,
        f"{counted(len(written.figures), 'figure')} in it and in {written.folder / 'figures'}/; {size}.",
        indent=2,
    )
    if written.n_tables:
        say(
            out,
            f"{whole(written.n_tables)} tables as CSV and LaTeX in {written.folder / 'tables'}/.",
            indent=2,
        )
    for own in written.missing:
        say(out, f"Not drawn: {own.title}. {own.reason}", indent=2)


def add_report(run: Run) -> None:
    """Write the report of a run that has none yet; a run stays good when its report cannot be written."""
    from lpact.errors import LPactError
    from lpact.report import REPORT_PAGE
    from lpact.run.journal import LOG_NAME, logged_stage
    from lpact.run.stages import REPORT
    from lpact.store.manifest import REPORT_FOLDER

    if (run.root / REPORT_FOLDER / REPORT_PAGE).is_file():
        return
    # On a terminal, `make` says what it is doing.
    if not sys.stderr.isatty():
        typer.echo("report: drawing figures, writing page and tables", err=True)
    try:
        with logged_stage(run.root / LOG_NAME, REPORT):
            make(run)
    except Exception as error:  # the run is finished, and its claims must be shown whatever happens
        kind = "" if isinstance(error, LPactError) else f"{type(error).__name__}: "
        typer.echo(
            f"The run is complete, but its report could not be written: {kind}{error}", err=True
        )
