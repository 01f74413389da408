"""``lpact verify``: is a run, or an archive of one, still what was locked, and do its tables give its verdicts?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from lpact.cli._machine import MOST_WORKERS, n_cores
from lpact.cli._render import console

DIFFERS = 1


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
    """Check a run against its lock, and decide again from it."""
    from rich.console import Console

    from lpact.archive import verify_run
    from lpact.cli._problems import show_verification

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
