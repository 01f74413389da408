"""``lpact lock``: lock a finished run, so that every later change can be found and named."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lpact.cli._machine import program
from lpact.cli._render import console, counted, say


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
) -> None:
    """Lock a finished run and print the digest to quote."""
    from lpact.archive import lock_run
    from lpact.archive.problems import listed, plain
    from lpact.cli.verify import show_verification
    from lpact.report.folder import REPORT_PAGE
    from lpact.store.manifest import REPORT_FOLDER

    locked = lock_run(run)
    out = console()
    if locked.verification is not None:
        say(out, "The run was locked before; it was verified, without its report.")
        show_verification(out, locked.verification)
        raise typer.Exit(0 if locked.verification.ok else 1)
    say(out, f"Locked {run}: root digest")
    say(out, locked.digest, indent=2)
    say(
        out,
        f"It covers {counted(locked.n_files, 'file')} and {counted(locked.n_tables, 'table')}, the configuration, "
        f"inputs and software. Quote it in a paper: anyone who has the run can check it with",
    )
    say(out, f"{program()} verify {run} --digest {locked.digest}", indent=2)
    say(out, "Files and folders of the run are read-only now.")
    if not (run / REPORT_FOLDER / REPORT_PAGE).is_file():
        say(out, f"It has no report; {program()} report {run} --out FOLDER writes one elsewhere.")
    if locked.foreign:
        names = listed([plain(name) for name in locked.foreign], 5)
        say(out, f"Locked too, although lpact did not write them: {names}.")
