"""``lpact init``: a starter study file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from lpact.cli._machine import program
from lpact.cli._render import console, say


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

    if path.exists() and (path.is_dir() or not force):
        raise ConfigError(
            "the file already exists",
            where=str(path),
            got="a folder" if path.is_dir() else "a file",
            expected="a path that does not exist",
            remedy="choose another path" + ("" if path.is_dir() else ", or add --force"),
        )
    text = starter_text(tuple(dict.fromkeys(analysis or ["lpact"])))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            "the study file cannot be written",
            where=str(path),
            got=error.strerror or str(error),
            expected="a folder that exists and can be written to",
            remedy="choose another path",
        ) from None
    out = console()
    say(out, f"Wrote {path}: every option, with its explanation and default.")
    typed = shlex.quote(str(path))
    say(out, f"Next: {program()} plan {typed}")
    say(out, f"      {program()} run {typed} --out runs/first")
