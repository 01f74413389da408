"""``lpact preregister``: freeze a study before its outcomes are known, and compare a run with that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._options import Models, Paths, load
from lpact.cli._terminal import heading, say, show_table
from lpact.errors import ConfigError
from lpact.wording import counted

if TYPE_CHECKING:
    import polars as pl

    from lpact.run.preregistration.record import Registration

NOT_FOLLOWED = 1
SUFFIX = ".preregistration.json"


def command(
    study: Annotated[Path, typer.Argument(help="Study file (TOML); with --check, a registration (JSON).")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help=f"File to write; default: next to the study, NAME{SUFFIX}."),
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option("--run", help="Run to search for earlier results; may be repeated."),
    ] = None,
    after_the_fact: Annotated[
        bool,
        typer.Option("--after-the-fact", help="Register although results exist, and say so."),
    ] = False,
    check: Annotated[
        Path | None,
        typer.Option("--check", metavar="RUN", help="Compare a finished run with a registration."),
    ] = None,
    registered_digest: Annotated[
        str | None,
        typer.Option(
            "--registered-digest",
            metavar="HEX",
            help="With --check: the registration's digest as it was deposited.",
        ),
    ] = None,
    path: Paths = None,
    model: Models = None,
) -> None:
    """Freeze a study before its outcomes are known.

    Sources are read and sizes counted; nothing is fitted, and no response is compared with any feature. With --check,
    compare a run with the registration. Exit status: 0 if every item was followed, 1 if some were not, 2 for an error.
    """
    making = {"--out": out, "--run": run, "--after-the-fact": after_the_fact, "--path": path}
    checking = {"--registered-digest": registered_digest}
    unused = {**making, "--model": model} if check is not None else checking
    if given := [option for option, value in unused.items() if value]:
        used = "with" if check is None else "without"
        raise ConfigError(
            f"{given[0]} can only be used {used} --check",
            where="lpact preregister",
            got=f"{given[0]} {'with' if used == 'without' else 'without'} --check",
            expected="--check RUN compares a run with a registration; otherwise one is made",
            remedy=f"leave {given[0]} out",
        )
    if check is None:
        target = study.with_name(study.stem + SUFFIX) if out is None else out
        _register(study, target, run or [], after_the_fact, path, model)
        return
    from lpact.run.preregistration.compare import check_run
    from lpact.run.preregistration.record import read_registration
    from lpact.study import open_run

    items = check_run(read_registration(study), open_run(check), deposited=registered_digest)
    show_followed(items)
    if not items["followed"].all():
        raise typer.Exit(NOT_FOLLOWED)


def _register(
    study: Path,
    target: Path,
    runs: list[Path],
    after_the_fact: bool,
    path: list[str] | None,
    model: list[str] | None,
) -> None:
    from lpact.run.preregistration.record import refuse_taken

    refuse_taken(target)
    loaded = load(study, path, model)
    say(f"{loaded.config.name}: auditing the sources; nothing is fitted …")
    made = loaded.preregister(target, runs=runs, after_the_fact=after_the_fact)
    _show_registration(made)
    heading(f"Wrote {target}")
    say(f"digest {made.digest}", indent=2)
    say(
        "Deposit the digest or the file where it gets a date that nobody can change, such as a study registry or a "
        "public commit. The time in the file alone proves nothing.",
        indent=2,
    )
    options = f"--preregistration {target} --registered-digest {made.digest}"
    say(f"Then: lpact run {study} {options} --out RUN", indent=2)


def _show_registration(made: Registration) -> None:
    """Print what was registered, in a few lines."""
    from lpact.run.preregistration.earlier import KEPT

    content = made.registered
    kept = sum(run.state == KEPT for run in content.earlier_runs)
    rows = [
        ("configuration", content.config_digest),
        ("seed", str(content.seed)),
        ("input files", f"{len(content.inputs):,} with SHA-256"),
        *(("audit", f"{counted(len(own), 'row')} of {name}") for name, own in content.audit.items()),
        *(("claims", f"{len(own):,} of {name}") for name, own in content.claims.items()),
        ("rows", f"of {counted(len(content.rows), 'table')}"),
        ("lpact", f"{content.lpact_version}, code {content.lpact_code}"),
        ("registered at", str(made.registered_at)),
        ("earlier runs searched", str(len(content.earlier_runs) - kept or "none was named")),
    ]
    if kept:
        rows.append(("own store of results", "searched"))
    if content.after_the_fact:
        rows.append(("made", "AFTER THE FACT: every later statement says so"))
    show_table(("registered", ""), rows)


def show_followed(items: pl.DataFrame) -> None:
    """Print whether a preregistration was followed: the statement, every deviation, and counts by group."""
    from lpact.report.page import followed

    result = followed(items)
    say(result.sentence)
    if result.deviations:
        heading(counted(len(result.deviations), "deviation"))
    for own in result.deviations:
        say(f"{own['item_group']}: {own['item']}", indent=2)
        lines = f"registered  {own['registered']}", f"found       {own['found']}", own["detail"]
        for line in lines:
            say(line, indent=4)
    heading("Items followed")
    show_table(("group", "followed", "of"), result.groups)
