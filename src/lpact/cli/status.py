"""``lpact status``: how a run is doing, asked from another terminal."""

from __future__ import annotations

import io
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpact.cli._render import console, heading, say

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.run.status import RunStatus

SECONDS_BETWEEN_LOOKS = 2.0
GOES_WELL = ("running", "finished")
NOT_WELL = 1


def command(
    run: Annotated[Path, typer.Argument(help="Folder that was given to `lpact run` as --out.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Look again every two seconds until the run ends.")
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show the tracebacks of failed tasks, too.")
    ] = False,
) -> None:
    """Say how far a run is, until when, and what failed.

    Exit status 0: it runs or is finished; 1: it failed, was interrupted, or is silent; 2: there is no such run.
    """
    from lpact.run.status import run_status

    out = console()
    if watch:
        # Ctrl-C ends the watching, not the run.
        with suppress(KeyboardInterrupt):
            _end(_watch(out, run, as_json=as_json, traceback=traceback))
        return
    status = run_status(run)
    _tell(out, status, as_json=as_json, traceback=traceback)
    _end(status)


def _end(status: RunStatus) -> None:
    if status.state not in GOES_WELL:
        raise typer.Exit(NOT_WELL)


def _tell(out: Console, status: RunStatus, *, as_json: bool, traceback: bool) -> None:
    from lpact.cli._status import show_status

    if as_json:
        typer.echo(json.dumps(_values(status)))
        return
    show_status(out, status)
    if traceback:
        _show_tracebacks(out, status)


def _values(status: RunStatus) -> dict[str, Any]:
    from lpact.run.status import summarise_log

    values = status.as_json()
    if status.state == "finished":
        from lpact.cli._status import finished_values

        values["finished"] = finished_values(status.out)
        values["history"] = summarise_log(status.log).as_json()
    return values


def _watch(out: Console, run: Path, *, as_json: bool, traceback: bool) -> RunStatus:
    """Look until the run ends: a picture that changes on terminals, a line for every change elsewhere."""
    from lpact.cli._status import status_line
    from lpact.run.status import run_status

    status = run_status(run)
    if out.is_terminal and not as_json:
        status = _watch_on_terminal(out, run, status)
    else:
        said = ""
        while status.state in ("running", "silent"):
            line = json.dumps(status.as_json()) if as_json else status_line(status)
            if line != said:
                said = line
                typer.echo(line)
            time.sleep(SECONDS_BETWEEN_LOOKS)
            status = run_status(run)
    _tell(out, status, as_json=as_json, traceback=traceback)
    return status


def _watch_on_terminal(out: Console, run: Path, status: RunStatus) -> RunStatus:
    from rich.live import Live

    from lpact.run.status import run_status

    with Live(console=out, auto_refresh=False, transient=True) as live:
        while status.state in ("running", "silent"):
            live.update(_picture(out, status), refresh=True)
            time.sleep(SECONDS_BETWEEN_LOOKS)
            status = run_status(run)
    return status


def _picture(out: Console, status: RunStatus) -> Any:
    """What `lpact status` prints, as one thing that can be shown and replaced."""
    from rich.console import Console
    from rich.text import Text

    from lpact.cli._status import show_status

    drawn = io.StringIO()
    paper = Console(
        file=drawn,
        width=out.width,
        force_terminal=True,
        no_color=out.no_color,
        markup=False,
        highlight=False,
        emoji=False,
    )
    show_status(paper, status)
    return Text.from_ansi(drawn.getvalue())


def _show_tracebacks(out: Console, status: RunStatus) -> None:
    from lpact.run.progress import plain
    from lpact.run.status import summarise_log

    failures = summarise_log(status.log).failures
    for failure in failures:
        heading(out, plain(f"{failure.get('task')} (key {failure.get('key')})"))
        for line in str(failure.get("trace", "")).splitlines():
            say(out, plain(line), indent=2)
    if not failures:
        say(out)
        say(out, f"No task of the last attempt failed, says {plain(str(status.log))}.")
