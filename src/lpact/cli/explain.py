"""``lpact explain``: the chain of evidence of a claim, in plain words."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lpact.cli._layout import Grid
from lpact.cli._machine import program
from lpact.cli._render import VERDICT_STYLES, broken, console, say, show, show_lines, width_of


class Profile(StrEnum):
    """Gate profiles, as the command line takes them."""

    paper = "paper"
    calibrated = "calibrated"


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    claim: Annotated[
        str | None,
        typer.Argument(help="dataset/model/layer/mechanism, or dataset/model/layer."),
    ] = None,
    profile: Annotated[
        Profile, typer.Option("--profile", help="Gate profile: point rules, or every gate a test.")
    ] = Profile.paper,
) -> None:
    """Say why a claim got its verdict."""
    import lpact
    from lpact.tables import CLAIM_KEY

    opened = lpact.open_run(run)
    out = console()
    if claim is not None:
        _print_styled(opened.explain(claim, profile.value))
        return
    claims = Grid(("claim", "verdict", "first failed gate"), styles=VERDICT_STYLES)
    for row in opened.verdicts(profile.value).iter_rows(named=True):
        name = "/".join(str(row[key]) for key in CLAIM_KEY)
        claims.add(name, row["label"], row["first_failed_gate"])
    show(out, claims, indent=0)
    if claims.rows:
        say(out)
        folder = shlex.quote(str(run))
        say(out, f"One claim in full: {program()} explain {folder} {claims.rows[0][0]}")


def _print_styled(text: str) -> None:
    """Marks in colour on terminals, long lines broken under their own indent."""
    from rich.text import Text

    out = console()
    lines = []
    for paragraph in text.split("\n"):
        indent = len(paragraph) - len(paragraph.lstrip())
        hanging = len("[pass] ") if paragraph.lstrip().startswith("[") else 0
        for part in broken(paragraph.strip(), width_of(out), indent, hanging):
            line = Text(part)
            line.highlight_words(["[pass]"], "green")
            line.highlight_words(["[fail]"], "red")
            lines.append(line)
    show_lines(out, lines)
