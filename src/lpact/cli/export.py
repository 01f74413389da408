"""``lpact export``: a locked run as one archive that another group can verify without the raw data."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from lpact.cli._machine import program
from lpact.cli._render import console, counted, memory, say

UNDATED = (
    "The day is that of lock.json, which the root digest does not cover: anyone who can write to the run can change "
    "it. State the day of publication with --date."
)


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a locked run.")],
    archive: Annotated[Path, typer.Argument(help="The archive to write, such as study.zip.")],
    date: Annotated[
        str | None,
        typer.Option(
            "--date",
            help="Day of publication, as in 2026-01-31; default: the day of the lock.",
        ),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option("--licence", "--license", help="SPDX name or URL of the run's licence."),
    ] = None,
) -> None:
    """Write a locked run as one archive, with RO-Crate metadata."""
    from lpact.archive import export_run

    made = export_run(run, archive, date=date, licence=licence)
    out = console()
    n_files, size = counted(made.n_files, "file"), memory(made.n_bytes)
    say(out, f"Wrote {made.path}: {n_files}, {size}, dated {made.date}.")
    if date is None:
        say(out, UNDATED)
    say(out, f"SHA-256 of the archive  {made.sha256}", indent=2)
    say(out, f"root digest of the run  {made.digest}", indent=2)
    if made.licence is None:
        say(
            out,
            "No licence is stated; state one with --licence, so that others know what they may do.",
        )
    say(out, "Anyone who has the archive can check it, without the raw data:")
    say(out, f"{program()} verify {shlex.quote(str(archive))} --digest {made.digest}", indent=2)
