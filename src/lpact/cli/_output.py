"""Tables in a new folder: all of them, or none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from lpact.errors import RunError


def refuse_existing(out: Path, run: Path | None = None) -> None:
    """Refuse a folder that is not new or empty, is inside ``run``, or could not be made; nothing is created.

    It is for the beginning of a command, so that hours of work do not end with an error about a folder.
    """
    from lpact.store import storage_errors
    from lpact.store.manifest import refuse_locked

    with storage_errors(out, "the output folder cannot be read"):
        if run is not None and out.resolve().is_relative_to(run.resolve()):
            raise _refusal(
                "the output folder is inside the run",
                out,
                got=f"a folder of {run}",
                expected="a folder beside it: a finished run is not touched",
            )
        refuse_locked(out)
        if out.is_symlink() or (out.exists() and not (out.is_dir() and not any(out.iterdir()))):
            raise _refusal(
                "the output folder is not empty",
                out,
                got="files, or something that is not a folder",
                expected="a new or empty folder",
            )
        _check_place(out)


def _check_place(out: Path) -> None:
    """Whether a folder of that name could be put where it is wanted."""
    target = Path(os.path.abspath(out))
    place = next(folder for folder in target.parents if folder.exists())
    expected = "a folder that can be made"
    if not place.is_dir():
        raise _refusal(
            "the output folder cannot be made",
            out,
            got=f"{place} is not a folder",
            expected=expected,
        )
    if not os.access(place, os.W_OK | os.X_OK):
        raise _refusal(
            "the output folder cannot be made",
            out,
            got=f"{place} cannot be written to",
            expected=expected,
        )
    if os.path.ismount(target):
        raise _refusal(
            "the output folder cannot be replaced",
            out,
            got="the root of a disk or volume",
            expected="a new folder inside of it",
        )


def write_tables(
    tables: Mapping[str, pl.DataFrame],
    out: Path,
    *,
    what: str = "the tables",
    files: Mapping[str, bytes] | None = None,
) -> None:
    """Write tables, by their names, and other ``files`` beside ``out``; then move them there at once.

    ``out`` must be new or empty. Whatever goes wrong, it holds all or nothing. ``what`` names the tables in an error.
    """
    import tempfile

    from lpact.store import atomic_write_bytes, write_table
    from lpact.tables import find_table

    refuse_existing(out)
    target = Path(os.path.abspath(out))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f"{target.name}.", suffix=".partial", dir=target.parent
        ) as folder:
            made = Path(folder) / "made"
            made.mkdir()
            for name, frame in tables.items():
                write_table(frame, find_table(name), made)
            for name, content in (files or {}).items():
                atomic_write_bytes(made / name, content)
            made.rename(target)
    except OSError as error:
        raise _refusal(
            f"{what} cannot be written",
            out,
            got=error.strerror or str(error),
            expected="a folder that can be made",
        ) from None


def _refusal(what: str, out: Path, *, got: str, expected: str) -> RunError:
    from lpact.errors import RunError

    return RunError(
        what, where=str(out), got=got, expected=expected, remedy="choose another folder"
    )
