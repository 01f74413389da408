"""The report of a run, made again from its tables and compared byte by byte."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection
from pathlib import Path

from lpact.decide.wording import count
from lpact.errors import LPactError
from lpact.report import REPORT_PAGE, verdict_pages
from lpact.sealed.files import list_files
from lpact.sealed.model import Problem, shown
from lpact.store import RunTables
from lpact.store.manifest import REPORT_FOLDER
from lpact.study import Run
from lpact.tables import find_table

THRESHOLDS = find_table("main_table_gate_threshold_sensitivity")
"""Table that only a report with sensitivity has."""
_TEXT = (".html", ".md", ".tex", ".bib", ".csv", ".svg", ".json")
_AROUND = 60


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
    before, now = stored.read_bytes(), made.read_bytes()
    if before == now:
        return ""
    if stored.suffix not in _TEXT:
        return f"is not what the tables give ({len(before)} bytes, made again {len(now)})"
    return f"is not what the tables give: {first_difference(before, now)}"


def first_difference(stored: bytes, made: bytes) -> str:
    """The first line in which two texts differ, around the place where they do."""
    first = stored.decode(errors="replace").splitlines(keepends=True)
    second = made.decode(errors="replace").splitlines(keepends=True)
    for number, (a, b) in enumerate(zip(first, second, strict=False), start=1):
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), 0)
            start = max(0, at - _AROUND // 2)
            here, there = (text[start : start + _AROUND].rstrip("\n") for text in (a, b))
            return f"line {number} reads {shown(here)}, made again {shown(there)}"
    if len(first) == len(second):
        return "bytes that are no text differ"
    return f"it has {len(first)} lines, made again {len(second)}"
