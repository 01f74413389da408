"""What commands share: options, study files with folders from the command line, workers, new output folders."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.errors import ConfigError, RunError

if TYPE_CHECKING:
    import polars as pl

    from lpact.config import RunConfig
    from lpact.run.progress import Reporter
    from lpact.study import Study

MOST_WORKERS = 4
"""Processes that a command uses unless it is given a number."""

StudyFile = Annotated[Path, typer.Argument(help="Study file (TOML).")]
RunFolder = Annotated[Path, typer.Argument(help="Folder of a finished run.")]
Paths = Annotated[
    list[str] | None,
    typer.Option("--path", metavar="NAME=FOLDER", help="Folder of a dataset; may be repeated."),
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="NAME=FOLDER", help="Folder or GGUF file of a model."),
]
Report = Annotated[bool, typer.Option("--report/--no-report", help="Include the report.")]
Progress = Annotated[bool | None, typer.Option("--progress/--no-progress", help="Show progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        help=f"Processes; default: the study file's, else one per core, at most {MOST_WORKERS}.",
    ),
]


def chosen_workers(given: int | None, settings: RunConfig | None = None) -> int:
    """Processes of a command: the option's, else the study file's, else one per core, at most four."""
    if given is not None:
        return given
    if settings is not None and "workers" in settings.model_fields_set:
        return settings.workers
    return min(n_cores(), MOST_WORKERS)


def n_cores() -> int:
    """Cores that this process may use."""
    from lpact.run.machine import usable_cores

    return usable_cores()


def program() -> str:
    """What a user types to call lpact: its name, or its path if the name is not found or is another program."""
    called = Path(sys.argv[0])
    found = shutil.which("lpact")
    if called.name != "lpact" or not called.exists() or (found and called.samefile(found)):
        return "lpact"
    return shlex.quote(sys.argv[0])


def load(
    study: Path,
    paths: list[str] | None = None,
    models: list[str] | None = None,
    analysis: str | None = None,
) -> Study:
    """Load a study, or one analysis of it; folders given here replace ``[run.paths]`` and ``[run.models]``."""
    import lpact

    loaded = lpact.load_study(study, paths=_folders("--path", paths or []), models=_folders("--model", models or []))
    return loaded if analysis is None else loaded.only(analysis)


def load_asking(analysis: str, study: Path, paths: list[str] | None, models: list[str] | None) -> Study:
    """Load one analysis of a study; raises `ConfigError` where the study does not ask it."""
    loaded = load(study, paths, models)
    if analysis not in loaded.config.analyses:
        raise ConfigError(
            f"the study has no analysis '{analysis}'",
            where=str(study),
            got=", ".join(loaded.config.analyses),
            expected=f"a study with a table [{analysis}]",
            remedy=f"add [{analysis}] to the study file",
        )
    return loaded.only(analysis)


def _folders(option: str, given: list[str]) -> dict[str, str]:
    """``NAME=FOLDER`` pairs; folders are relative to the current folder."""
    folders: dict[str, str] = {}
    for text in given:
        name, _, folder = text.partition("=")
        if not (name and folder) or name in folders:
            raise ConfigError(
                "a folder is not written as NAME=FOLDER, or is given twice for one name",
                where=f"option {option}",
                got=text,
                expected="a name from the study file, '=', and a folder",
                remedy=f"write {option} podcast=/data/podcast, once for each name",
            )
        folders[name] = str(Path(folder).expanduser().absolute())
    return folders


@contextmanager
def progress_on_terminals() -> Iterator[Reporter]:
    """Progress on standard error, for commands whose output may be redirected to a file."""
    from rich.console import Console

    from lpact.run.progress import reporter

    console = Console(stderr=True)
    with reporter(show=console.is_terminal, console=console) as bar:
        yield bar


def refuse_existing(out: Path, run: Path | None = None) -> None:
    """Refuse a folder that is not new or empty, is inside ``run``, or cannot be created; nothing is written.

    Call it at the beginning of a command, so that hours of work do not end with an error about a folder.
    """
    from lpact.store import storage_errors
    from lpact.store.manifest import refuse_locked

    with storage_errors(out, "the output folder cannot be read"):
        if run is not None and out.resolve().is_relative_to(run.resolve()):
            raise _refusal(out, f"it is inside the run {run}", "a folder outside of it")
        refuse_locked(out)
        if out.is_symlink() or (out.exists() and not (out.is_dir() and not any(out.iterdir()))):
            raise _refusal(out, "it is not empty, or not a folder", "a new or empty folder")
        target = Path(os.path.abspath(out))
        parent = next(folder for folder in target.parents if folder.exists())
        if not (parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)):
            raise _refusal(out, f"{parent} is not a writable folder", "a folder that can be made")
        if os.path.ismount(target):
            raise _refusal(out, "it is the root of a disk or volume", "a new folder inside of it")


def write_tables(tables: Mapping[str, pl.DataFrame], out: Path, files: Mapping[str, bytes] | None = None) -> None:
    """Write tables, by their names, and other ``files`` to the new or empty folder ``out``: all of them, or none."""
    from lpact.store import atomic_write_bytes, write_table
    from lpact.tables import find_table

    refuse_existing(out)
    target = Path(os.path.abspath(out))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{target.name}.", suffix=".partial", dir=target.parent) as folder:
            made = Path(folder) / "made"
            made.mkdir()
            for name, frame in tables.items():
                write_table(frame, find_table(name), made)
            for name, content in (files or {}).items():
                atomic_write_bytes(made / name, content)
            made.rename(target)
    except OSError as error:
        got = error.strerror or str(error)
        raise _refusal(out, got, "a folder that can be written") from None


def _refusal(out: Path, got: str, expected: str) -> RunError:
    return RunError(
        "the output folder cannot be used",
        where=str(out),
        got=got,
        expected=expected,
        remedy="choose another folder",
    )
