"""``lpact audit``: look at the sources only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lpact.cli import _sources as sources
from lpact.cli._render import console, counted, say


def command(
    study: Annotated[Path, typer.Argument(help="Study file (TOML).")],
) -> None:
    """Look at the sources only: is every evidence chain closed?"""
    import lpact

    loaded = lpact.load_study(study)
    audit = loaded.audit()
    out = console()
    say(out, f"Source audit of {loaded.config.name}: {counted(len(audit.datasets), 'dataset')}.")
    sources.show_chain(out, audit)
    sources.show_roles(out, audit)
    sources.show_findings(out, audit)
    sources.show_controls(out, audit)
    sources.show_ingredients(out, audit)
    sources.show_correlations(out, audit)
    sources.show_reliability(out, audit)
    sources.show_media(out, audit)
