"""``lpact diff``: which claims of two runs differ, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from lpact.cli._render import console, say

DIFFERS = 1
MOST_SHOWN = 20
"""Entries of every list on a terminal; JSON has all."""


def command(
    before: Annotated[Path, typer.Argument(help="Folder or archive of the first run.")],
    after: Annotated[Path, typer.Argument(help="Folder or archive of the second run.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Show which claims changed between two runs, and why. Exit status 1 if anything differs."""
    from lpact.archive.diff import comparison_json, comparison_text, diff_runs

    found = diff_runs(before, after)
    if as_json:
        document = comparison_json(found)
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        say(console(), comparison_text(found, most=MOST_SHOWN).rstrip("\n"))
    if not found.identical:
        raise typer.Exit(DIFFERS)
