"""``lpact audit``: look at the sources only."""

from __future__ import annotations

from typing import Annotated

import typer

from lpact.cli._render import console, counted, say, show_blocks
from lpact.cli._study import Models, Paths, StudyFile, load, progress_on_terminals


def command(
    study: StudyFile,
    path: Paths = None,
    model: Models = None,
    every: Annotated[
        bool, typer.Option("--all", help="List every finding, however many there are.")
    ] = False,
) -> None:
    """Look at the sources only: what do they allow?"""
    loaded = load(study, path, model)
    with progress_on_terminals() as bar:
        audit = loaded.audit(bar)
    out = console()
    n_datasets = counted(len(loaded.config.datasets), "dataset")
    recordings = counted(audit.n_recordings, "recording")
    say(out, f"Source audit of {loaded.config.name}: {n_datasets}, {recordings}.")
    for name, analysis in loaded.analyses.items():
        show_blocks(out, analysis.audit_blocks(audit.of[name], full=every))
