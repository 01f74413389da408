"""The folder of a report: replaced as a whole, and only where it is a report."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from lpact.errors import RunError
from lpact.store import FolderLock, holder, sha256_file, storage_errors
from lpact.store.manifest import refuse_locked

REPORT_PAGE = "report.html"
"""The page that explains a run."""

CONTENTS = "contents.json"
"""What a report wrote, with checksums; a later one replaces only these files."""


def report_contents(folder: Path) -> set[str]:
    """Files of a report folder that lpact wrote and nobody has changed since, by their path in it."""
    try:
        listed = json.loads((folder / CONTENTS).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        listed = {}
    own = {
        path
        for path, checksum in (listed.items() if isinstance(listed, dict) else ())
        if (folder / path).is_file() and sha256_file(folder / path) == checksum
    }
    return own | ({CONTENTS} if own else set())


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder that is not new, empty, or an earlier report, or that is inside a locked run."""
    refuse_locked(folder)
    if not folder.exists() and not folder.is_symlink():
        return
    refused = {
        "where": str(folder),
        "expected": "a new or empty folder, or an earlier report",
        "remedy": "choose another folder with --out, or move the other files away",
    }
    if folder.is_symlink() or not folder.is_dir() or os.path.ismount(folder):
        raise RunError("the report cannot be written to this place", got="not a plain folder", **refused)
    own = report_contents(folder)
    found = (p.relative_to(folder).as_posix() for p in sorted(folder.rglob("*")) if not p.is_dir())
    foreign = next((path for path in found if path not in own), None)
    if foreign is not None:
        raise RunError(
            "the folder holds files that lpact did not write, or that were changed since",
            got=foreign,
            **refused,
        )


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder that replaces ``target`` if the block succeeds and is removed if it fails."""
    target = Path(os.path.abspath(target))
    work = _work(target)
    with storage_errors(target, "the report cannot be written"):
        lock = FolderLock(work, busy="another process is writing this report")
        try:
            _restore(target)
            made = work / "new"
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            yield made
            listed = {
                path.relative_to(made).as_posix(): sha256(path.read_bytes()).hexdigest()
                for path in sorted(made.rglob("*"))
                if path.is_file()
            }
            (made / CONTENTS).write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
            # A file may have been put there in the meantime.
            refuse_foreign(target)
            _exchange(made, target)
        finally:
            _restore(target)
            shutil.rmtree(work, ignore_errors=True)
            lock.release()


def _work(target: Path) -> Path:
    """Folder next to a report that is being written: it holds the new one, the earlier one, and a file lock."""
    return target.with_name(f".{target.name}.partial")


def _exchange(made: Path, target: Path) -> None:
    """Put ``made`` in the place of ``target``."""
    if target.exists():
        target.rename(made.with_name("earlier"))
    made.rename(target)


def _restore(target: Path) -> None:
    """Put the earlier report back, if the new one did not take its place."""
    earlier = _work(target) / "earlier"
    if earlier.exists() and not target.exists():
        earlier.rename(target)


def clear_leftovers(target: Path) -> None:
    """Remove what a process that was killed while it wrote the report ``target`` has left next to it."""
    target = Path(os.path.abspath(target))
    if _work(target).is_dir() and report_writer(target) is None:
        with storage_errors(target, "leftovers of an earlier report cannot be removed"):
            _restore(target)
            shutil.rmtree(_work(target))


def refuse_being_written(target: Path) -> None:
    """Raise `RunError` while a process of this machine writes the report ``target``."""
    if (writer := report_writer(target)) is not None:
        raise RunError(
            "the report is being written",
            where=str(target),
            got=f"process {writer} is writing it",
            expected="a run that nobody is changing",
            remedy="wait until the report is finished, or stop that process",
        )


def report_writer(target: Path) -> int | None:
    """The process of this machine that is writing the report ``target``, if there is one."""
    return holder(_work(Path(os.path.abspath(target))))
