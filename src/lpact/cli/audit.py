"""``lpact audit``: look at the sources only."""

from __future__ import annotations

from typing import Annotated

import typer

from lpact.cli import _sources as sources
from lpact.cli._render import console, counted, say
from lpact.cli._study import Models, Paths, StudyFile, load, progress_on_terminals


def command(
    study: StudyFile,
    path: Paths = None,
    model: Models = None,
    every: Annotated[
        bool, typer.Option("--all", help="Tell every finding by itself, however many.")
    ] = False,
) -> None:
    """Look at the sources only: is every evidence chain closed?"""
    loaded = load(study, path, model)
    with progress_on_terminals() as bar:
        audit = loaded.audit(bar)
    out = console()
    say(out, f"Source audit of {loaded.config.name}: {counted(len(audit.datasets), 'dataset')}.")
    sources.show_chain(out, audit)
    sources.show_roles(out, audit)
    sources.show_findings(out, audit, every=every)
    sources.show_controls(out, audit)
    sources.show_ingredients(out, audit)
    sources.show_correlations(out, audit)
    sources.show_reliability(out, audit)
    sources.show_media(out, audit)
