"""``lpact lock``: freeze a finished run, so that every later change can be found and named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._machine import program
from lpact.cli._render import console, counted, say

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.archive import LockedRun


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
) -> None:
    """Freeze a finished run and print the digest to quote."""
    from lpact.archive import lock_run
    from lpact.report.folder import REPORT_PAGE
    from lpact.store.manifest import REPORT_FOLDER

    locked = lock_run(run)
    told = console()
    if locked.verification is not None:
        _show_before(told, locked)
        return
    say(told, f"Locked {run}: root digest")
    say(told, locked.digest, indent=2)
    say(
        told,
        f"It stands for {counted(locked.n_files, 'file')}, {counted(locked.n_tables, 'table')} and the unit order of "
        f"{counted(locked.n_recordings, 'recording')}, for configuration, inputs and software. Quote it in a paper: "
        f"whoever has the run can check it with",
    )
    say(told, f"{program()} verify {run} --digest {locked.digest}", indent=2)
    say(told, "Files and folders of the run are read-only now.")
    if not (run / REPORT_FOLDER / REPORT_PAGE).is_file():
        say(
            told,
            f"It has no report; {program()} report {run} --out FOLDER writes one beside it.",
        )
    if locked.foreign:
        from lpact.archive.diff.text import plain

        named = ", ".join(plain(name) for name in locked.foreign[:5])
        more = f" and {len(locked.foreign) - 5} more" if len(locked.foreign) > 5 else ""
        say(told, f"Locked too, though lpact did not write them: {named}{more}.")


def _show_before(told: Console, locked: LockedRun) -> None:
    """A run that was locked before: what its verification found."""
    from lpact.cli._problems import show_verification

    if locked.verification is None:
        return
    say(told, "The run was locked before; it is verified, without its report.")
    show_verification(told, locked.verification)
    if not locked.verification.ok:
        raise typer.Exit(1)
