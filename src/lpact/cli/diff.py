"""``lpact diff``: which claims of two runs differ, and why."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._render import console, say, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lpact.archive import RowChange

DIFFERS = 1
MOST_SHOWN = 20
"""Entries of every list on a terminal; JSON holds all."""


def command(
    before: Annotated[Path, typer.Argument(help="Folder or archive of the first run.")],
    after: Annotated[Path, typer.Argument(help="Folder or archive of the second run.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Say which claims changed between two runs, and why. Exit status 1 where anything differs."""
    from lpact.archive import opened_run, row_changes
    from lpact.archive.diff import compare_runs, comparison_json, comparison_text
    from lpact.store import StoredRun

    with ExitStack() as stack:
        first, second = (StoredRun(stack.enter_context(opened_run(p))) for p in (before, after))
        found = compare_runs(first, second)
        rows = row_changes(first, second, [change.table for change in found.tables])
    if as_json:
        document = {**comparison_json(found), "rows": [asdict(change) for change in rows]}
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        told = console()
        say(told, comparison_text(found, most=MOST_SHOWN).rstrip("\n"))
        _show_rows(told, rows)
    if not found.identical:
        raise typer.Exit(DIFFERS)


def _show_rows(told: Console, rows: Sequence[RowChange]) -> None:
    if not rows:
        return
    say(told)
    say(told, f"Tables with other rows ({len(rows)})")
    for change in rows[:MOST_SHOWN]:
        counts = f"{whole(change.rows_before)} → {whole(change.rows_after)} rows"
        only = f"{whole(change.only_before)} only in the first run, {whole(change.only_after)} only in the second"
        say(told, f"{change.table}: {counts}; {only}", indent=2)
    if len(rows) > MOST_SHOWN:
        say(told, f"… and {len(rows) - MOST_SHOWN} more", indent=2)
