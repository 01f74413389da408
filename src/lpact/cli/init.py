"""``lpact init``: a starter study file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from lpact.cli._options import program
from lpact.cli._terminal import say


def command(
    path: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("study.toml"),
    analysis: Annotated[
        list[str] | None,
        typer.Option("--analysis", help="Analysis to include (default: lpact); may be repeated."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a commented starter study file that runs as it is."""
    from lpact.errors import ConfigError
    from lpact.run.starter import starter_text

    text = starter_text(tuple(dict.fromkeys(analysis or ["lpact"])))
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(
            "the study file cannot be written",
            where=str(path),
            got=error.strerror or str(error),
            expected="a path that does not exist, in a folder that can be written to",
            remedy="choose another path, or overwrite a file with --force",
        ) from None
    say(f"Wrote {path}: every option, with its explanation and default.")
    typed = shlex.quote(str(path))
    say(f"Next: {program()} plan {typed}")
    say(f"      {program()} run {typed} --out runs/first")
