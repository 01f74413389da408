"""``lpact demo``: the built-in simulated study, whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._machine import MOST_WORKERS, n_cores
from lpact.cli._render import console, counted, say
from lpact.cli._results import show_places, show_results, show_row_counts
from lpact.cli.report import add_report
from lpact.cli.run import How, compute

if TYPE_CHECKING:
    from lpact.study import Study


def command(
    out: Annotated[Path, typer.Option("--out", help="Folder of the run.")] = Path("demo"),
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, help=f"Processes; default: cores, at most {MOST_WORKERS}."
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Remove an earlier run first.")] = False,
) -> None:
    """Run a whole study on simulated recordings."""
    told = console()
    study = demo_study()
    config = study.config
    say(
        told,
        f"The demo runs {', '.join(config.analyses)} on {counted(len(config.models), 'simulated model')} and "
        f"{counted(len(config.datasets), 'simulated dataset')} whose truth is known, "
        f"with {len(config.controls.include)} severe controls.",
    )
    if fresh:
        remove_run(out)
    run = compute(
        told,
        study,
        out,
        How(workers or min(n_cores(), MOST_WORKERS), progress=True),
        if_taken="choose another folder with --out, or remove an earlier demo with --fresh",
    )
    show_results(told, run, every_claim=True)
    add_report(run)
    show_row_counts(told, run)
    show_places(told, run)


def demo_study() -> Study:
    """The study that ships with lpact."""
    from importlib.resources import files

    from lpact.study import study_from_text

    text = files("lpact.run").joinpath("demo.toml").read_text(encoding="utf-8")
    return study_from_text(text, where="the built-in demo study")


def remove_run(folder: Path) -> None:
    """Remove a folder that holds an earlier demo and nothing else."""
    import shutil

    from lpact.errors import RunError
    from lpact.report import report_contents
    from lpact.report.folder import clear_leftovers
    from lpact.run.status import LOG_NAME
    from lpact.store import read_manifest
    from lpact.store.manifest import MANIFEST_NAME, REPORT_FOLDER, refuse_locked

    if not folder.exists() and not folder.is_symlink():
        return
    refuse_locked(folder)
    manifest = read_manifest(folder)
    if manifest.study != demo_study().config.name:
        raise RunError(
            "the folder holds the run of another study and is not removed",
            where=str(folder),
            got=f"study '{manifest.study}'",
            expected="an earlier demo",
            remedy="choose another folder with --out",
        )
    clear_leftovers(folder / REPORT_FOLDER)
    own = {MANIFEST_NAME, LOG_NAME, *(file.path for file in manifest.outputs)}
    own |= {f"{REPORT_FOLDER}/{name}" for name in report_contents(folder / REPORT_FOLDER)}
    found = (p.relative_to(folder) for p in sorted(folder.rglob("*")) if not p.is_dir())
    foreign = [p for p in found if p.as_posix() not in own]
    if foreign or folder.is_symlink():
        raise RunError(
            "the folder holds more than a run and is not removed",
            where=str(folder),
            got=str(foreign[0]) if foreign else "a symbolic link",
            expected="a folder that holds nothing but a run",
            remedy="move the other files away, or choose another folder with --out",
        )
    shutil.rmtree(folder)
