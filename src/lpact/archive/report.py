"""The report of a run, made again from its tables and compared byte by byte."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import BinaryIO

from lpact.archive.lockfile import list_files
from lpact.archive.problems import Problem, shown
from lpact.config import study_config
from lpact.errors import LPactError
from lpact.report.folder import REPORT_PAGE
from lpact.store import StoredRun
from lpact.store.manifest import REPORT_FOLDER

_TEXT = (".html", ".md", ".tex", ".bib", ".csv", ".svg", ".json")
_AROUND = 60
_CHUNK = 2**20


def make_again(
    root: Path, made: Path, *, tables: bool, workers: int, tell: Callable[[str], None]
) -> None:
    """Write the report of a run into another folder."""
    from lpact.report.write import write_report

    run = StoredRun(root)
    config = study_config(run.manifest.config, where=f"{root}, manifest.json")
    write_report(run, config=config, out=made, with_tables=tables, workers=workers, tell=tell)


def check_report(
    root: Path,
    *,
    names: Collection[str] | None = None,
    workers: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[list[Problem], str]:
    """Problems of the report, and a sentence that says what was checked.

    ``names`` are the files that the report should have; by default those that it has.
    """
    stored = list_files(root / REPORT_FOLDER).files if (root / REPORT_FOLDER).is_dir() else {}
    expected = stored if names is None else names
    if REPORT_PAGE not in expected:
        return [], "The run has no report."
    with tempfile.TemporaryDirectory(prefix="lpact-verify-") as folder:
        made = Path(folder) / REPORT_FOLDER
        with_tables = any(name.startswith("tables/") for name in expected)
        try:
            make_again(root, made, tables=with_tables, workers=workers, tell=tell)
        except LPactError as error:
            what = f"cannot be made again: {error.what}: {error.got}"
            return [Problem("report", REPORT_FOLDER, what)], "The report could not be made again."
        again = list_files(made).files
        problems = [
            Problem("report", f"{REPORT_FOLDER}/{name}", what)
            for name in sorted(stored.keys() | again.keys())
            if (what := _difference(stored.get(name), again.get(name)))
        ]
    return problems, f"The report was made again from the tables: {len(again)} files."


def _difference(stored: Path | None, made: Path | None) -> str:
    if made is None:
        return "is in the report, but the tables do not give it"
    if stored is None:
        return "is missing: the tables give it"
    with stored.open("rb") as before, made.open("rb") as now:
        found = first_difference(before, now)
    if found and stored.suffix not in _TEXT:
        found = f"{stored.stat().st_size} bytes, made again {made.stat().st_size}"
    return f"differs from what the tables give: {found}" if found else ""


def first_difference(stored: BinaryIO, made: BinaryIO) -> str:
    """The first line in which two texts differ, around the first difference; empty if they are the same."""
    line, before = 1, b""
    while (one := stored.read(_CHUNK)) == (other := made.read(_CHUNK)):
        if not one:
            return ""
        line, before = line + one.count(b"\n"), one[-_AROUND:]
    shorter = min(len(one), len(other))
    at = next((i for i in range(shorter) if one[i] != other[i]), shorter)
    line += one.count(b"\n", 0, at)
    start = (before + one[:at])[-_AROUND // 2 :].rpartition(b"\n")[2]
    here, there = (
        (start + text[at : at + _AROUND]).partition(b"\n")[0].decode(errors="replace")
        for text in (one, other)
    )
    return f"line {line} reads {shown(here)}, made again {shown(there)}"
