"""``lpact verify``: is a run, or an archive of one, still what was locked, and do its tables give its verdicts?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._machine import MOST_WORKERS, n_cores
from lpact.cli._render import broken, console, counted, heading, say, width_of

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.archive import Verification

DIFFERS = 1
MOST_SHOWN = 10
"""Problems of one kind that are listed; JSON has all."""
TITLES = {
    "lock": "The lock",
    "file": "Files",
    "option": "Options of the configuration",
    "input": "Source files that the manifest names",
    "manifest": "The manifest",
    "table": "Rows and columns of tables",
    "consistency": "Tables that disagree with each other",
    "decision": "Decisions and labels: made again from the tables → stored",
    "registration": "The preregistration: compared again → stored",
    "report": "The report",
    "crate": "The description of the archive",
}


def command(
    run: Annotated[
        Path, typer.Argument(help="Folder of a finished run, or an archive of `lpact export`.")
    ],
    digest: Annotated[
        str | None, typer.Option("--digest", help="Root digest that was quoted for the run.")
    ] = None,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Make the report again, too.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Check a run against its lock, and decide it again."""
    from rich.console import Console

    from lpact.archive import verify_run

    with Console(stderr=True, markup=False).status("reading the run") as status:
        found = verify_run(
            run,
            digest=digest,
            report=report,
            workers=min(n_cores(), MOST_WORKERS),
            tell=status.update,
        )
    if as_json:
        typer.echo(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
    else:
        show_verification(console(), found)
    if not found.ok:
        raise typer.Exit(DIFFERS)


def show_verification(out: Console, found: Verification) -> None:
    """Print what was checked, the problems by kind, the notes, and the result."""
    say(out, f"{found.path}: {'locked' if found.locked else 'not locked'}")
    if found.digest is not None:
        say(out, f"root digest {found.digest}", indent=2)
    for text in found.checked:
        say(out, text, indent=2)
    for kind, title in TITLES.items():
        own = [problem for problem in found.problems if problem.kind == kind]
        if not own:
            continue
        heading(out, f"{title} ({len(own)})")
        for problem in own[:MOST_SHOWN]:
            for line in broken(problem.text, width_of(out), 2, 2):
                out.print(line, soft_wrap=True)
        if len(own) > MOST_SHOWN:
            say(out, f"and {len(own) - MOST_SHOWN} more; --json lists all", indent=2)
    if found.notes:
        heading(out, "Notes")
        for text in found.notes:
            say(out, text, indent=2)
    heading(out, _result(found))


def _result(found: Verification) -> str:
    if found.problems:
        return f"{counted(len(found.problems), 'problem')} found."
    if not found.locked:
        return "Nothing differs, but the run is not locked."
    return "Nothing differs: the run is as it was locked."
