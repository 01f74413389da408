"""``lpact explain``, ``tables``, ``explore`` and ``report``: look at a finished run."""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._options import RunFolder, chosen_workers, program
from lpact.cli._terminal import (
    broken,
    complain,
    console,
    heading,
    label_styles,
    line_width,
    safe,
    say,
    show_table,
    table_width,
)
from lpact.wording import counted

if TYPE_CHECKING:
    from lpact.report.write import WrittenReport
    from lpact.study import Run
    from lpact.tables import Table


def explain(
    run: RunFolder,
    claim: Annotated[
        str | None,
        typer.Argument(help="A claim, such as dataset/model/layer/mechanism, or its first parts."),
    ] = None,
    analysis: Annotated[str | None, typer.Option("--analysis", help="Analysis of the run; default: the first.")] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", help="Gate profile; default: the analysis' first.")
    ] = None,
) -> None:
    """Say why a claim got its label, or list all claims."""
    import lpact
    from lpact.errors import RunError

    opened = lpact.open_run(run)
    names = [opened.analysis(analysis).name] if analysis else list(opened.analyses)
    if claim is None:
        for name in names:
            if len(opened.analyses) > 1:
                heading(name)
            _list_claims(opened, name, profile)
        return
    try:
        _show_explanation(str(opened.claim(claim, analysis, profile).explain()))
    except RunError:
        listed = [_list_claims(opened, name, profile, f"{claim.rstrip('/')}/") for name in names]
        if not any(listed):
            raise


def _list_claims(run: Run, analysis: str, profile: str | None, start: str = "") -> bool:
    """Print the claims whose ids begin with ``start``; returns whether there are any."""
    own = run.analyses[analysis].claims
    columns = ("label", *own.details)
    rows = [
        ("/".join(str(row[key]) for key in own.key), *(row[column] for column in columns))
        for row in run.claims(analysis, profile).iter_rows(named=True)
    ]
    rows = [row for row in rows if row[0].startswith(start)]
    if not rows:
        return False
    titles = ("claim", *(name.replace("_", " ") for name in columns))
    show_table(titles, rows, styles=label_styles(own.labels), indent=0)
    which = f" --analysis {analysis}" if len(run.analyses) > 1 else ""
    folder, first = shlex.quote(str(run.root)), shlex.quote(rows[0][0])
    say(f"\nOne claim in full: {program()} explain {folder} {first}{which}")
    return True


def _show_explanation(text: str) -> None:
    """Marks in colour on terminals, long lines broken under their own indent."""
    from rich.text import Text

    out = console()
    for paragraph in text.split("\n"):
        hanging = len("[pass] ") if paragraph.lstrip().startswith("[") else 0
        for part in broken(safe(paragraph), line_width(), 0, hanging):
            line = Text(part)
            line.highlight_words(["[pass]"], "green")
            line.highlight_words(["[fail]"], "red")
            out.print(line, soft_wrap=True)


def tables(
    run: RunFolder,
    name: Annotated[str | None, typer.Argument(help="A table, with or without its folder. Without it: a list.")] = None,
    head: Annotated[int, typer.Option("--head", min=1, help="Rows to show.")] = 10,
    csv: Annotated[bool, typer.Option("--csv", help="Write the whole table as CSV.")] = False,
) -> None:
    """List the tables of a run, or show one."""
    import lpact

    opened = lpact.open_run(run)
    if name is None:
        rows = ((table.name, opened.n_rows(table.name), table.meaning) for table in opened.tables())
        show_table(("table", "rows", "meaning"), rows, indent=0)
    elif csv:
        _write_csv(opened, opened.find_table(name))
    else:
        _show_head(opened, opened.find_table(name), head)


def _show_head(run: Run, table: Table, n_rows: int) -> None:
    """A table if it fits the terminal, otherwise one block of lines per row."""
    frame = run.table(table.name)
    say(f"{table.name}: {table.meaning}")
    say(f"{counted(frame.height, 'row')}, {counted(frame.width, 'column')}\n")
    rows = frame.head(n_rows).rows()
    width = line_width()
    if width is None or table_width(table.column_names, rows) <= width:
        show_table(table.column_names, rows, indent=0)
        return
    for i, row in enumerate(rows, start=1):
        show_table((f"row {i}", ""), zip(table.column_names, row, strict=True), indent=0)
        say()


def _write_csv(run: Run, table: Table) -> None:
    """Write the whole table to standard output, as in its CSV file; a terminal gets it escaped."""
    from lpact.store.frames import write_csv

    if sys.stdout.isatty():
        made = io.BytesIO()
        write_csv(run.table(table.name), table, made)
        typer.echo(safe(made.getvalue().decode()), nl=False)
        return
    write_csv(run.table(table.name), table, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def explore(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs.", metavar="RUN...")],
    port: Annotated[
        int | None,
        typer.Option("--port", min=1, max=65535, help="Port; without it 8321, or a free one if it is taken."),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; the default is this machine only.")
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            help="Additional host name under which to serve the page; may be repeated. No patterns.",
        ),
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = False,
) -> None:
    """Look at runs in a browser: claims, evidence, tables."""
    from lpact.web import serve

    serve(runs, host=host, port=port, allowed_hosts=allow_host or (), open_browser=open_browser)


def report(
    run: RunFolder,
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the report; default: RUN/report.")] = None,
    tables: Annotated[
        bool, typer.Option("--tables/--no-tables", help="Write every table as CSV and LaTeX too.")
    ] = True,
) -> None:
    """Write the figures and the page of a finished run."""
    import lpact

    written = _make_report(lpact.open_run(run), out=out, tables=tables)
    say(f"Report: {written.page}")
    figures = f"{counted(len(written.figures), 'figure')} in it and in {written.folder / 'figures'}/"
    say(f"{figures}; {written.page_bytes / 1e6:.1f} MB, one file, no network needed.", indent=2)
    if written.n_tables:
        n_tables = counted(written.n_tables, "table")
        say(f"{n_tables} as CSV and LaTeX in {written.folder / 'tables'}/.", indent=2)
    for own in written.missing:
        say(f"Not drawn: {own.title}. {own.reason}", indent=2)


def _make_report(run: Run, *, out: Path | None = None, tables: bool = True) -> WrittenReport:
    """Write the report of a run; a terminal shows the current step."""
    with console(stderr=True).status("reading the tables") as status:
        return run.report(out, tables=tables, workers=chosen_workers(None), tell=status.update)


def add_report(run: Run) -> bool:
    """Write the report of a run that has none yet; False if it cannot be written, which leaves the run complete."""
    from lpact.errors import LPactError
    from lpact.report.folder import REPORT_PAGE
    from lpact.run.journal import logged_stage
    from lpact.run.progress import REPORT
    from lpact.run.status import LOG_NAME
    from lpact.store.manifest import REPORT_FOLDER

    if (run.root / REPORT_FOLDER / REPORT_PAGE).is_file():
        return True
    # On a terminal, `_make_report` shows the current step.
    if not sys.stderr.isatty():
        complain("report: drawing figures, writing page and tables")
    try:
        with logged_stage(run.root / LOG_NAME, REPORT):
            _make_report(run)
    except Exception as error:  # the run is finished, and its claims must be shown whatever happens
        kind = "" if isinstance(error, LPactError) else f"{type(error).__name__}: "
        complain(f"The run is complete, but its report could not be written: {kind}{error}")
        complain(f"Write it with {program()} report {shlex.quote(str(run.root))}")
        return False
    return True
