"""``lpact export``: a locked run as one archive that another group can verify without the raw data."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from lpact.cli._machine import program
from lpact.cli._render import console, counted, memory, say

STATED = (
    "The day is the one that lock.json states. The root digest does not cover it, and whoever can write to the run can "
    "change it: it proves nothing. --date names the day of publication."
)


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a locked run.")],
    archive: Annotated[Path, typer.Argument(help="The new archive, such as study.zip.")],
    date: Annotated[
        str | None,
        typer.Option(
            "--date",
            help="Day of publication, as in 2026-01-31; default: the day that the lock states.",
        ),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option("--licence", "--license", help="SPDX name or address of the run's licence."),
    ] = None,
) -> None:
    """Write a locked run as one archive, with RO-Crate metadata."""
    from lpact.archive import export_run

    made = export_run(run, archive, date=date, licence=licence)
    told = console()
    say(
        told,
        f"Wrote {made.path}: {counted(made.n_files, 'file')}, {memory(made.n_bytes)}, dated {made.date}.",
    )
    if date is None:
        say(told, STATED)
    say(told, f"SHA-256 of the archive  {made.sha256}", indent=2)
    say(told, f"root digest of the run  {made.digest}", indent=2)
    if made.licence is None:
        say(told, "No licence is stated: others may not know what they may do (--licence).")
    say(told, "Whoever has it can check it, without the raw data:")
    say(told, f"{program()} verify {shlex.quote(str(archive))} --digest {made.digest}", indent=2)
