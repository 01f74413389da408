"""The folder of a report: replaced as a whole, and only where it is a report."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from lpact.errors import RunError
from lpact.store import storage_errors

REPORT_PAGE = "report.html"
"""The page that explains a run."""

VERDICTS = "verdicts.md"
"""Verdicts in plain words, which a run writes by itself."""

CONTENTS = "contents.json"
"""What a report wrote, with checksums: a later one knows by it which files it may replace."""


def _write_contents(folder: Path) -> None:
    """What the folder holds, with checksums: a later report knows by it which files it may replace."""
    listed = {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    (folder / CONTENTS).write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")


def report_contents(folder: Path) -> set[str]:
    """Files of a report folder that lpact wrote, by their path in it."""
    try:
        listed = json.loads((folder / CONTENTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        listed = {}
    return {CONTENTS, VERDICTS, *(listed if isinstance(listed, dict) else {})}


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder that is not new, empty, or an earlier report."""
    if not folder.exists() and not folder.is_symlink():
        return
    refused = {
        "where": str(folder),
        "expected": "a new or empty folder, or an earlier report",
        "remedy": "choose another folder with --out, or move the other files away",
    }
    if folder.is_symlink() or not folder.is_dir():
        raise RunError("the report cannot be put there", got="not a plain folder", **refused)
    own = report_contents(folder)
    found = (p.relative_to(folder).as_posix() for p in sorted(folder.rglob("*")) if not p.is_dir())
    foreign = next((path for path in found if path not in own), None)
    if foreign is not None:
        raise RunError(
            "the folder holds more than a report, and is not replaced", got=foreign, **refused
        )


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder that takes the place of ``target`` when the block ends well, and vanishes when it does not."""
    target = Path(os.path.abspath(target))
    made = target.with_name(f".{target.name}.{uuid.uuid4().hex}.partial")
    before = target.with_name(f".{target.name}.{uuid.uuid4().hex}.before")
    with storage_errors(target, "the report cannot be written"):
        made.mkdir(parents=True)
        try:
            yield made
            _write_contents(made)
            if target.exists():
                target.rename(before)
            try:
                made.rename(target)
            except OSError:
                if before.exists():
                    before.rename(target)
                raise
        finally:
            shutil.rmtree(made, ignore_errors=True)
            shutil.rmtree(before, ignore_errors=True)
