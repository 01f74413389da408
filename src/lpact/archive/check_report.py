"""The report of a run, made again from its tables and compared byte by byte."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import BinaryIO

import polars as pl

from lpact.analyses.lpact.gates.wording import count
from lpact.analyses.lpact.tables.decisions import DECISIONS, STUDY_OUTCOME
from lpact.archive.files import list_files
from lpact.archive.model import Problem, shown
from lpact.errors import LPactError
from lpact.report import REPORT_PAGE, verdict_pages
from lpact.report.folder import VERDICTS
from lpact.store import RunTables
from lpact.store.manifest import REPORT_FOLDER
from lpact.study import Run
from lpact.tables import find_table

Tables = Callable[[str], pl.DataFrame | None]

THRESHOLDS = find_table("main_table_gate_threshold_sensitivity")
"""Table that only a report with sensitivity has."""
_TEXT = (".html", ".md", ".tex", ".bib", ".csv", ".svg", ".json")
_AROUND = 60
_CHUNK = 2**20


def check_report(
    root: Path,
    *,
    names: Collection[str] | None = None,
    workers: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[list[Problem], str]:
    """Problems of the report, and what was done, in a sentence.

    ``names`` are the files that it should have, which tell how it was made; by default those that it has.
    """
    stored = list_files(root / REPORT_FOLDER).files if (root / REPORT_FOLDER).is_dir() else {}
    if not stored and not names:
        return [], "The run has no report."
    with tempfile.TemporaryDirectory(prefix="lpact-verify-") as folder:
        made = Path(folder) / REPORT_FOLDER
        try:
            _make(
                Run(root), made, set(stored if names is None else names), workers=workers, tell=tell
            )
        except LPactError as error:
            what = f"cannot be made again: {error.what}: {error.got}"
            return [Problem("report", REPORT_FOLDER, what)], "The report could not be made again."
        again = list_files(made).files
        problems = []
        for name in sorted(stored.keys() | again.keys()):
            what = _difference(stored.get(name), again.get(name))
            if what:
                problems.append(Problem("report", f"{REPORT_FOLDER}/{name}", what))
    return problems, f"The report was made again from the tables: {count(len(again), 'file')}."


def check_verdicts(root: Path, tables: Tables) -> list[Problem]:
    """The page of verdicts that a run writes by itself, made again; where there is none, nothing is wrong."""
    path = root / REPORT_FOLDER / VERDICTS
    measured = {table.name: tables(table.name) for table in (DECISIONS, STUDY_OUTCOME)}
    known = {name: frame for name, frame in measured.items() if frame is not None}
    if path.is_symlink() or not path.is_file() or len(known) < len(measured):
        return []
    again = verdict_pages(known)[VERDICTS].encode()
    with path.open("rb") as stored:
        found = first_difference(stored, io.BytesIO(again))
    where = f"{REPORT_FOLDER}/{VERDICTS}"
    return [Problem("report", where, f"is not what the tables give: {found}")] if found else []


def _make(
    run: Run, made: Path, names: set[str], *, workers: int, tell: Callable[[str], None]
) -> None:
    if REPORT_PAGE not in names:
        made.mkdir()
        for name, text in verdict_pages(RunTables(run)).items():
            (made / name).write_text(text, encoding="utf-8", newline="\n")
        return
    tables = any(name.startswith("tables/") for name in names)
    of_sensitivity = f"tables/{THRESHOLDS.name}.csv" if tables else "figures/sensitivity.svg"
    run.report(made, tables=tables, sensitivity=of_sensitivity in names, workers=workers, tell=tell)


def _difference(stored: Path | None, made: Path | None) -> str:
    if made is None:
        return "is in the report, but is not made from the tables"
    if stored is None:
        return "is made from the tables, but is not in the report"
    with stored.open("rb") as before, made.open("rb") as now:
        found = first_difference(before, now)
    if not found:
        return ""
    if stored.suffix not in _TEXT:
        sizes = f"({stored.stat().st_size} bytes, made again {made.stat().st_size})"
        return f"is not what the tables give {sizes}"
    return f"is not what the tables give: {found}"


def first_difference(stored: BinaryIO, made: BinaryIO) -> str:
    """The first line in which two texts differ, around the place where they do; empty where they do not.

    They are read in pieces: a file that somebody has put there may be of any size.
    """
    line, before = 1, b""
    while True:
        one, other = stored.read(_CHUNK), made.read(_CHUNK)
        if one != other:
            break
        if not one:
            return ""
        line, before = line + one.count(b"\n"), one[-_AROUND:]
    at = _common(one, other)
    line += one.count(b"\n", 0, at)
    start = (before + one[:at])[-_AROUND // 2 :].rpartition(b"\n")[2]
    here, there = (
        (start + text[at : at + _AROUND]).partition(b"\n")[0].decode(errors="replace")
        for text in (one, other)
    )
    return f"line {line} reads {shown(here)}, made again {shown(there)}"


def _common(one: bytes, other: bytes) -> int:
    """Bytes that two pieces begin with, found by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low
