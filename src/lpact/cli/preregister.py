"""``lpact preregister``: freeze a study before its outcomes are known, and compare a run with that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._layout import Grid
from lpact.cli._render import console, counted, heading, say, show
from lpact.cli._study import Models, Paths, load
from lpact.errors import ConfigError

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from lpact.run.preregistration import Registration

NOT_FOLLOWED = 1
SUFFIX = ".preregistration.json"


def command(
    study: Annotated[
        Path, typer.Argument(help="Study file (TOML); with --check, a registration (JSON).")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", help=f"File to write; default: beside the study, NAME{SUFFIX}."),
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
    if check is not None:
        _refuse_others(out, run, after_the_fact, path, model)
        _check(study, check, registered_digest)
    elif registered_digest is not None:
        raise ConfigError(
            "--registered-digest is for comparing a run with a registration",
            where="lpact preregister",
            got="--registered-digest without --check",
            expected="a registration, --check RUN and --registered-digest",
            remedy="leave --registered-digest out: the digest is printed when the registration is made",
        )
    else:
        target = study.with_name(study.stem + SUFFIX) if out is None else out
        _register(study, target, run or [], after_the_fact, path, model)


def _refuse_others(
    out: Path | None,
    run: list[Path] | None,
    after_the_fact: bool,
    path: list[str] | None,
    model: list[str] | None,
) -> None:
    given = {
        "--out": out,
        "--run": run,
        "--after-the-fact": after_the_fact,
        "--path": path,
        "--model": model,
    }
    for option, value in given.items():
        if value:
            raise ConfigError(
                f"{option} is for making a registration, --check for reading one",
                where="lpact preregister",
                got=f"--check and {option}",
                expected="one of the two",
                remedy=f"leave {option} out",
            )


def _register(
    study: Path,
    target: Path,
    runs: list[Path],
    after_the_fact: bool,
    path: list[str] | None,
    model: list[str] | None,
) -> None:
    from lpact.run.preregistration import refuse_taken

    refuse_taken(target)
    _refuse_missing(runs)
    loaded = load(study, path, model)
    terminal = console()
    say(terminal, f"{loaded.config.name}: auditing the sources; nothing is fitted …")
    made = loaded.preregister(target, runs=runs, after_the_fact=after_the_fact)
    show_registration(terminal, made)
    heading(terminal, f"Wrote {target}")
    say(terminal, f"digest {made.digest}", indent=2)
    say(
        terminal,
        "Deposit the digest, or the file, where it gets a date that nobody can change, such as a registry of studies "
        "or a public commit. The time in the file proves nothing by itself.",
        indent=2,
    )
    run = (
        f"lpact run {study} --preregistration {target} --registered-digest {made.digest} --out RUN"
    )
    say(terminal, f"Then: {run}", indent=2)


def _refuse_missing(runs: list[Path]) -> None:
    """Name a missing run before the sources are audited."""
    from lpact.store import partial_folder

    for run in runs:
        if not run.exists() and not partial_folder(run.absolute()).exists():
            raise ConfigError(
                "there is no run to search for earlier results",
                where=f"--run {run}",
                got="no such folder",
                expected="the folder of a finished or interrupted run",
                remedy="name its folder, or leave the option out",
            )


def show_registration(out: Console, made: Registration) -> None:
    """What was registered, in a few lines."""
    from lpact.run.preregistration.earlier import KEPT, NOTED, UNREADABLE

    content = made.content
    grid = Grid(("registered", ""))
    grid.add("configuration", content.config_digest)
    grid.add("seed", content.seed)
    grid.add("input files", f"{len(content.inputs):,} with SHA-256")
    for name, audited in content.audit.items():
        grid.add("audit", f"{counted(len(audited), 'row')} of {name}")
    for name, claims in content.claims.items():
        grid.add("claims", f"{len(claims):,} of {name}")
    grid.add("rows", f"of {counted(len(content.rows), 'table')}")
    grid.add("lpact", f"{content.lpact_version}, code {content.lpact_code}")
    grid.add("registered at", made.registered_at)
    kept = sum(run.state in (KEPT, NOTED, UNREADABLE) for run in content.earlier_runs)
    grid.add("earlier runs searched", len(content.earlier_runs) - kept or "none was named")
    if kept:
        grid.add("own store of results", "searched")
    if damaged := [run.study for run in content.earlier_runs if run.state == UNREADABLE]:
        grid.add("NOT READ THERE", f"damaged notes of earlier runs: {', '.join(damaged)}")
    if content.after_the_fact:
        grid.add("made", "AFTER THE FACT: every later statement says so")
    show(out, grid)


def _check(registration: Path, run: Path, digest: str | None) -> None:
    from lpact.run.preregistration import check_run, read_registration
    from lpact.study import open_run

    items = check_run(read_registration(registration), open_run(run), deposited=digest)
    show_followed(console(), items)
    if not items["followed"].all():
        raise typer.Exit(NOT_FOLLOWED)


def show_followed(out: Console, items: pl.DataFrame) -> None:
    """Whether a preregistration was followed: the statement, every deviation, and counts by group."""
    from lpact.report.page.preregistration import followed

    result = followed(items)
    say(out, result.sentence)
    if result.deviations:
        heading(out, counted(len(result.deviations), "deviation"))
        for own in result.deviations:
            say(out, f"{own.group}: {own.item}", indent=2)
            for name, value in (("registered", own.registered), ("found", own.found)):
                say(out, f"{name:<10}  {value}", indent=4)
            say(out, own.detail, indent=4)
    heading(out, "Items followed")
    grid = Grid(("group", "followed", "of"), right=frozenset({"followed", "of"}))
    for group, n_followed, n_items in result.groups:
        grid.add(group, n_followed, n_items)
    show(out, grid)
