"""The folder of a report: replaced as a whole, and only where it is a report."""

from __future__ import annotations

import glob
import json
import os
import platform
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from lpact.errors import RunError
from lpact.store import lives, sha256_file, storage_errors
from lpact.store.manifest import refuse_locked

REPORT_PAGE = "report.html"
"""The page that explains a run."""

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
    """Files of a report folder that lpact wrote and nobody has changed since, by their path in it."""
    try:
        listed = json.loads((folder / CONTENTS).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        listed = {}
    listed = listed if isinstance(listed, dict) else {}
    own = {
        path
        for path, checksum in listed.items()
        if (folder / path).is_file() and sha256_file(folder / path) == checksum
    }
    return own | ({CONTENTS} if own else set())


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder that is not new, empty, or an earlier report, or that lies in a locked run."""
    refuse_locked(folder)
    if not folder.exists() and not folder.is_symlink():
        return
    refused = {
        "where": str(folder),
        "expected": "a new or empty folder, or an earlier report",
        "remedy": "choose another folder with --out, or move the other files away",
    }
    if folder.is_symlink() or not folder.is_dir() or os.path.ismount(folder):
        raise RunError("the report cannot be put there", got="not a plain folder", **refused)
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
    """A folder that takes the place of ``target`` when the block ends well, and vanishes when it does not."""
    target = Path(os.path.abspath(target))
    clear_leftovers(target)
    writer = f"{os.getpid()}-{started(os.getpid())}"
    name = f".{target.name}.{_here()}-{writer}-{uuid.uuid4().hex[:8]}"
    made, before = target.with_name(name + MADE), target.with_name(name + BEFORE)
    with storage_errors(target, "the report cannot be written"):
        made.mkdir(parents=True)
        try:
            yield made
            _write_contents(made)
            # Somebody may have put a file there meanwhile.
            refuse_foreign(target)
            _exchange(made, target, before)
        finally:
            shutil.rmtree(made, ignore_errors=True)
            if target.exists():
                shutil.rmtree(before, ignore_errors=True)


MADE, BEFORE = ".partial", ".before"
"""Endings of a report that is being written, and of the one that it takes the place of."""


def clear_leftovers(target: Path) -> None:
    """Remove what a process that was killed while it wrote the report ``target`` has left beside it."""
    with storage_errors(target, "leftovers of an earlier report cannot be removed"):
        for path, writer in _beside(target):
            if writer is not None:
                continue
            if path.name.endswith(BEFORE) and not target.exists():
                path.rename(target)  # killed between the two renames
            else:
                shutil.rmtree(path)


def refuse_being_written(target: Path) -> None:
    """Raise `RunError` while a process of this machine writes the report ``target``."""
    if (writer := report_writer(target)) is not None:
        raise RunError(
            "the report is being written",
            where=str(target),
            got=f"process {writer} at work beside it",
            expected="a run that nobody is changing",
            remedy="wait until the report is finished, or stop that process",
        )


def report_writer(target: Path) -> int | None:
    """The process of this machine that is writing the report ``target``, if there is one."""
    return next((writer for _, writer in _beside(target) if writer is not None), None)


def _beside(target: Path) -> list[tuple[Path, int | None]]:
    """Folders beside a report that were begun on this machine, with the process that is still at work on them."""
    ending = f"(?:{re.escape(MADE)}|{re.escape(BEFORE)})"
    writer = r"(\d+)(?:-([0-9a-f]+))?"
    pattern = re.compile(rf"\.{re.escape(target.name)}\.{_here()}-{writer}-[0-9a-f]{{8}}{ending}")
    found = []
    for path in sorted(target.parent.glob(f".{glob.escape(target.name)}.*")):
        if (match := pattern.fullmatch(path.name)) and path.is_dir() and not path.is_symlink():
            process = int(match[1])
            at_work = lives(process) and match[2] == started(process)
            found.append((path, process if at_work else None))
    return found


def started(process: int) -> str:
    """When a process began, as a short word; ``0`` where that cannot be known.

    Numbers of processes are used again, so that one that lives need not be the one that wrote here.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        # The name of the program, in brackets, may hold anything.
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sha256(f"{boot} {fields[19]}".encode()).hexdigest()[:8]
    except (OSError, IndexError):
        return _started_by_ps(process)


def _started_by_ps(process: int) -> str:
    """The same where there is no ``/proc``, to the second."""
    asked = ["ps", "-o", "lstart=", "-p", str(process)]
    try:
        said = subprocess.run(  # noqa: S603
            asked, capture_output=True, check=False, timeout=10, env={**os.environ, "LC_ALL": "C"}
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return "0"
    return sha256(said.strip()).hexdigest()[:8] if said.strip() else "0"


def _here() -> str:
    """A short name of this machine: processes of others cannot be asked whether they live."""
    return sha256(platform.node().encode()).hexdigest()[:8]


def _exchange(made: Path, target: Path, before: Path) -> None:
    """Put ``made`` in the place of ``target``; whatever goes wrong, there is one of the two."""
    if not target.exists():
        made.rename(target)
        return
    target.rename(before)
    try:
        made.rename(target)
    except BaseException:
        if not target.exists():
            before.rename(target)
        raise
