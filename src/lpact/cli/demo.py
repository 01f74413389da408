"""``lpact demo``: the built-in simulated study, whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._options import MOST_WORKERS, chosen_workers
from lpact.cli._results import show_places, show_results
from lpact.cli._terminal import heading, say, show_table
from lpact.cli.report import add_report
from lpact.cli.run import How, compute
from lpact.wording import counted

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
    study = demo_study()
    config = study.config
    say(
        f"The demo runs {', '.join(config.analyses)} on {counted(len(config.models), 'simulated model')} and "
        f"{counted(len(config.datasets), 'simulated dataset')} whose truth is known, "
        f"with {counted(len(config.controls.include), 'severe control')}."
    )
    if fresh:
        remove_run(out)
    how = How(chosen_workers(workers), progress=True)
    remedy = "choose another folder with --out, or remove an earlier demo with --fresh"
    run = compute(study, out, how, if_taken=remedy)
    show_results(run, every_claim=True)
    add_report(run)
    heading("Tables")
    counts = {table.name: run.n_rows(table.name) for table in run.tables()}
    show_table(("table", "rows"), counts.items())
    say(f"{counted(len(counts), 'table')}, {counted(sum(counts.values()), 'row')}", indent=2)
    show_places(run)


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
    from lpact.report.folder import clear_leftovers, report_contents
    from lpact.run.status import LOG_NAME
    from lpact.store import read_manifest
    from lpact.store.manifest import MANIFEST_NAME, REPORT_FOLDER, refuse_locked

    if not folder.exists() and not folder.is_symlink():
        return
    refuse_locked(folder)
    manifest = read_manifest(folder)
    clear_leftovers(folder / REPORT_FOLDER)
    own = {MANIFEST_NAME, LOG_NAME, *(file.path for file in manifest.outputs)}
    own |= {f"{REPORT_FOLDER}/{name}" for name in report_contents(folder / REPORT_FOLDER)}
    found = (p.relative_to(folder) for p in sorted(folder.rglob("*")) if not p.is_dir())
    foreign = [str(p) for p in found if p.as_posix() not in own]
    if folder.is_symlink():
        foreign = ["a symbolic link"]
    if manifest.study != demo_study().config.name:
        foreign = [f"the run of the study '{manifest.study}'"]
    if foreign:
        raise RunError(
            "the folder holds more than an earlier demo and is not removed",
            where=str(folder),
            got=foreign[0],
            expected="an earlier demo, and nothing else",
            remedy="move the other files away, or choose another folder with --out",
        )
    shutil.rmtree(folder)
