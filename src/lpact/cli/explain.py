"""``lpact explain``: the claims of a run, or why one of them got its label."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._layout import Grid
from lpact.cli._machine import program
from lpact.cli._render import (
    broken,
    console,
    heading,
    label_styles,
    say,
    show,
    show_lines,
    width_of,
)

if TYPE_CHECKING:
    from lpact.study import Run


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    claim: Annotated[
        str | None,
        typer.Argument(help="A claim, such as dataset/model/layer/mechanism, or its first parts."),
    ] = None,
    analysis: Annotated[
        str | None, typer.Option("--analysis", help="Analysis of the run; default: the first.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", help="Gate profile; default: the analysis' first.")
    ] = None,
) -> None:
    """Say why a claim got its label, or list all claims."""
    import lpact
    from lpact.errors import RunError

    opened = lpact.open_run(run)
    if claim is None:
        for name in [opened.analysis(analysis).name] if analysis else list(opened.analyses):
            if len(opened.analyses) > 1:
                heading(console(), name)
            _list(opened, name, profile)
        return
    try:
        _print(str(opened.claim(claim, analysis, profile).explain()))
    except RunError:
        names = [opened.analysis(analysis).name] if analysis else list(opened.analyses)
        listed = [_list(opened, name, profile, f"{claim.rstrip('/')}/") for name in names]
        if not any(listed):
            raise


def _list(run: Run, analysis: str, profile: str | None, start: str = "") -> bool:
    """Print the claims whose ids begin with ``start``; returns whether there are any."""
    own = run.analyses[analysis].claims
    columns = ("label", *own.details)
    titles = ("claim", *(name.replace("_", " ") for name in columns))
    grid = Grid(titles, styles=label_styles(own.labels))
    for row in run.claims(analysis, profile).iter_rows(named=True):
        name = "/".join(str(row[key]) for key in own.key)
        if name.startswith(start):
            grid.add(name, *(row[column] for column in columns))
    if not grid.rows:
        return False
    out = console()
    show(out, grid, indent=0)
    say(out)
    which = f" --analysis {analysis}" if len(run.analyses) > 1 else ""
    folder, first = shlex.quote(str(run.root)), shlex.quote(grid.rows[0][0])
    say(out, f"One claim in full: {program()} explain {folder} {first}{which}")
    return True


def _print(text: str) -> None:
    """Marks in colour on terminals, long lines broken under their own indent."""
    from rich.text import Text

    out = console()
    lines = []
    for paragraph in text.split("\n"):
        indent = len(paragraph) - len(paragraph.lstrip())
        hanging = len("[pass] ") if paragraph.lstrip().startswith("[") else 0
        for part in broken(paragraph.strip(), width_of(out), indent, hanging):
            line = Text(part)
            line.highlight_words(["[pass]"], "green")
            line.highlight_words(["[fail]"], "red")
            lines.append(line)
    show_lines(out, lines)
