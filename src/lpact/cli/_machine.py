"""The machine that commands run on: its cores, and how lpact is called there."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lpact.config import RunConfig

MOST_WORKERS = 4
"""Processes that a command uses unless it is given a number."""

Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        help=f"Processes; default: the study file's, else one per core, at most {MOST_WORKERS}.",
    ),
]


def chosen_workers(given: int | None, settings: RunConfig) -> int:
    """Processes of a command: the option's, else the study file's, else one per core."""
    if given is not None:
        return given
    if "workers" in settings.model_fields_set:
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
