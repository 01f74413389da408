"""``lpact report``: figures and a page that explains a finished run, from its tables alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._options import RunFolder, chosen_workers
from lpact.cli._terminal import console, say
from lpact.wording import counted

if TYPE_CHECKING:
    from lpact.report.write import WrittenReport
    from lpact.study import Run


def command(
    run: RunFolder,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the report; default: RUN/report.")
    ] = None,
    tables: Annotated[
        bool, typer.Option("--tables/--no-tables", help="Write every table as CSV and LaTeX too.")
    ] = True,
) -> None:
    """Write the figures and the page of a finished run."""
    import lpact

    written = make(lpact.open_run(run), out=out, tables=tables)
    say(f"Report: {written.page}")
    figures = (
        f"{counted(len(written.figures), 'figure')} in it and in {written.folder / 'figures'}/"
    )
    say(f"{figures}; {written.page_bytes / 1e6:.1f} MB, one file, no network needed.", indent=2)
    if written.n_tables:
        n_tables = counted(written.n_tables, "table")
        say(f"{n_tables} as CSV and LaTeX in {written.folder / 'tables'}/.", indent=2)
    for own in written.missing:
        say(f"Not drawn: {own.title}. {own.reason}", indent=2)


def make(run: Run, *, out: Path | None = None, tables: bool = True) -> WrittenReport:
    """Write the report of a run; a terminal shows the current step."""
    with console(stderr=True).status("reading the tables") as status:
        return run.report(out, tables=tables, workers=chosen_workers(None), tell=status.update)


def add_report(run: Run) -> None:
    """Write the report of a run that has none yet; the run stays complete if its report cannot be written."""
    from lpact.errors import LPactError
    from lpact.report.folder import REPORT_PAGE
    from lpact.run.journal import logged_stage
    from lpact.run.stages import REPORT
    from lpact.run.status import LOG_NAME
    from lpact.store.manifest import REPORT_FOLDER

    if (run.root / REPORT_FOLDER / REPORT_PAGE).is_file():
        return
    # On a terminal, `make` shows the current step.
    if not sys.stderr.isatty():
        typer.echo("report: drawing figures, writing page and tables", err=True)
    try:
        with logged_stage(run.root / LOG_NAME, REPORT):
            make(run)
    except Exception as error:  # the run is finished, and its claims must be shown whatever happens
        kind = "" if isinstance(error, LPactError) else f"{type(error).__name__}: "
        message = f"The run is complete, but its report could not be written: {kind}{error}"
        typer.echo(message, err=True)
