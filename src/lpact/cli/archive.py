"""``lpact lock``, ``verify``, ``export`` and ``diff``: finished runs that others can check and compare."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._options import Json, RunFolder, chosen_workers, program
from lpact.cli._terminal import console, heading, print_json, say
from lpact.wording import counted, listed, size

if TYPE_CHECKING:
    from lpact.archive import Verification

DIFFERS = 1
MOST_PROBLEMS, MOST_CHANGES = 10, 20
"""Problems of one kind, and entries of a list of changes, that are printed; JSON has all."""
TITLES = {
    "lock": "The lock",
    "file": "Files",
    "option": "Options of the configuration",
    "input": "Source files that the manifest names",
    "manifest": "The manifest",
    "table": "Rows and columns of tables",
    "consistency": "Tables that disagree with each other",
    "decision": "Decisions and labels: recomputed from the tables → stored",
    "registration": "The preregistration: recomputed → stored",
    "report": "The report",
    "crate": "The description of the archive",
}


def lock(run: RunFolder) -> None:
    """Lock a finished run and print the digest to quote."""
    from lpact.archive import lock_run
    from lpact.report.folder import REPORT_PAGE
    from lpact.store.manifest import REPORT_FOLDER

    locked = lock_run(run)
    if locked.verification is not None:
        say("The run was locked before; it was verified, without its report.")
        _show_verification(locked.verification)
        raise typer.Exit(0 if locked.verification.ok else DIFFERS)
    say(f"Locked {run}: root digest")
    say(locked.digest, indent=2)
    say(
        f"It covers {counted(locked.n_files, 'file')} and {counted(locked.n_tables, 'table')}, the configuration, "
        "inputs and software. Quote it in a paper: anyone who has the run can check it with"
    )
    say(f"{program()} verify {shlex.quote(str(run))} --digest {locked.digest}", indent=2)
    say("Files and folders of the run are read-only now.")
    if not (run / REPORT_FOLDER / REPORT_PAGE).is_file():
        say(f"It has no report; {program()} report {run} --out FOLDER writes one elsewhere.")
    if locked.foreign:
        names = listed(locked.foreign, 5)
        say(f"Locked too, although lpact did not write them: {names}.")


def verify(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run, or an archive of `lpact export`.")],
    digest: Annotated[str | None, typer.Option("--digest", help="Root digest that was quoted for the run.")] = None,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Also rebuild the report and compare it.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Check a run against its lock, and decide it again."""
    from lpact.archive import verify_run

    with console(stderr=True).status("reading the run") as status:
        found = verify_run(run, digest=digest, report=report, workers=chosen_workers(None), tell=status.update)
    if as_json:
        print_json(found.as_json())
    else:
        _show_verification(found)
    if not found.ok:
        raise typer.Exit(DIFFERS)


def _show_verification(found: Verification) -> None:
    """Print what was checked, the problems by kind, the notes, and the result."""
    say(f"{found.path}: {'locked' if found.locked else 'not locked'}")
    if found.digest is not None:
        say(f"root digest {found.digest}", indent=2)
    for text in found.checked:
        say(text, indent=2)
    for kind, title in TITLES.items():
        own = [problem for problem in found.problems if problem.kind == kind]
        if own:
            heading(f"{title} ({len(own)})")
        for problem in own[:MOST_PROBLEMS]:
            say(problem.text, indent=2, hanging=2)
        if len(own) > MOST_PROBLEMS:
            say(f"and {len(own) - MOST_PROBLEMS} more; --json lists all", indent=2)
    if found.notes:
        heading("Notes")
        for text in found.notes:
            say(text, indent=2)
    if found.problems:
        heading(f"{counted(len(found.problems), 'problem')} found.")
    else:
        heading("Nothing differs.")
        say(found.proven)


def export(
    run: Annotated[Path, typer.Argument(help="Folder of a locked run.")],
    archive: Annotated[Path, typer.Argument(help="The archive to write, such as study.zip.")],
    date: Annotated[
        str | None,
        typer.Option("--date", help="Day of publication, as in 2026-01-31; default: the day of the lock."),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option("--licence", "--license", help="SPDX name or URL of the run's licence."),
    ] = None,
) -> None:
    """Write a locked run as one archive, with RO-Crate metadata."""
    from lpact.archive import export_run

    made = export_run(run, archive, date=date, licence=licence)
    n_files = counted(made.n_files, "file")
    say(f"Wrote {made.path}: {n_files}, {size(made.n_bytes)}, dated {made.date}.")
    if date is None:
        say(
            "The day is that of lock.json, which the root digest does not cover: anyone who can write to the run can "
            "change it. State the day of publication with --date."
        )
    say(f"SHA-256 of the archive  {made.sha256}", indent=2)
    say(f"root digest of the run  {made.digest}", indent=2)
    if made.licence is None:
        say("No licence is stated; state one with --licence, so that others know what they may do.")
    say("Anyone who has the archive can check it, without the raw data:")
    say(f"{program()} verify {shlex.quote(str(archive))} --digest {made.digest}", indent=2)


def diff(
    before: Annotated[Path, typer.Argument(help="Folder or archive of the first run.")],
    after: Annotated[Path, typer.Argument(help="Folder or archive of the second run.")],
    as_json: Json = False,
) -> None:
    """Show which claims changed between two runs, and why. Exit status 1 if anything differs."""
    from lpact.archive.diff import comparison_text, diff_runs

    found = diff_runs(before, after)
    if as_json:
        print_json(found.as_json())
    else:
        say(comparison_text(found, most=MOST_CHANGES).rstrip("\n"))
    if not found.identical:
        raise typer.Exit(DIFFERS)
