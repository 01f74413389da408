"""Locking a finished run, and its ``lock.json``: what the run consists of, and one digest of all of it.

::

    format_version   3
    root_digest      SHA-256 of ``content`` as canonical JSON: the digest to quote in a paper
    locked_on        the day, in UTC; not covered by the root digest
    checksum         SHA-256 of the three lines above as canonical JSON
    content          everything else

Canonical JSON has sorted keys, no spaces, and is encoded as UTF-8. The same run locked on another day has the same root
digest; locked with other software it has another one, because the software is part of the content.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from lpact.archive.problems import Verification
from lpact.errors import RunError
from lpact.report.folder import clear_leftovers, refuse_being_written, report_contents
from lpact.store import InputFile, atomic_write_bytes, code_digest, read_manifest, sha256_file, storage_errors
from lpact.store.manifest import LOCK_FILE, MANIFEST_NAME, REPORT_FOLDER, Record, is_locked, parse_record
from lpact.validation import json_digest
from lpact.wording import listed

LOCK_FORMAT = 3
CRATE_FILE = "ro-crate-metadata.json"
"""Description that an archive carries; it is made from the lock and is not part of it."""
NOT_LOCKED = frozenset({LOCK_FILE, CRATE_FILE})
"""Files that the lock does not list."""
REGISTRATION = "preregistration.json"
WRITTEN_BY_RUNS = frozenset({MANIFEST_NAME, "log.jsonl", "status.json", REGISTRATION})
"""Files that lpact writes into runs, other than tables and report."""
MOST_JSON_BYTES = 128 * 2**20
"""Size of the largest JSON file that is read."""
_WRITE = 0o222


class FileFacts(Record):
    """Size and SHA-256 of a file."""

    n_bytes: int
    sha256: str


class Software(Record):
    """What the run was made with (from its manifest), and what it was locked with."""

    made_by_version: str
    made_by_code: str
    made_with: dict[str, str]
    plugins: tuple[str, ...]
    locked_by_code: str
    system: dict[str, str]
    distributions: dict[str, str]


class Content(Record):
    """Everything that the root digest covers."""

    study: str
    seed: int
    config: dict[str, Any]
    config_digest: str
    inputs: tuple[InputFile, ...]
    software: Software
    files: dict[str, FileFacts]


class Lock(Record):
    """``lock.json``."""

    format_version: int
    root_digest: str
    locked_on: str
    checksum: str
    content: Content

    def problem(self, written: bytes) -> str:
        """How the lock, read from the bytes ``written``, was edited; empty if it was not."""
        again = make_lock(self.content, locked_on=self.locked_on)
        if again.root_digest != self.root_digest:
            return f"was edited: its content has the root digest {again.root_digest}"
        own = self.content
        if (own.study, own.seed) != (own.config.get("name"), own.config.get("seed")):
            return "was edited: its study or seed is not that of its configuration"
        if again.checksum != self.checksum:
            return f"was edited: its checksum does not match the day {self.locked_on!r}"
        return "" if lock_bytes(self) == written else "was edited: lpact formats it differently"


def make_lock(content: Content, *, locked_on: str) -> Lock:
    """The lock of this content."""
    head = {
        "format_version": LOCK_FORMAT,
        "root_digest": json_digest(content.model_dump(mode="json")),
        "locked_on": locked_on,
    }
    return Lock.model_validate({**head, "checksum": json_digest(head), "content": content})


def lock_bytes(lock: Lock) -> bytes:
    """The lock as it is written: sorted keys, one space, a newline at the end."""
    values = lock.model_dump(mode="json")
    text = json.dumps(values, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def read_lock(root: Path) -> Lock:
    """Read ``root/lock.json``; a missing, damaged or newer one is a `RunError`."""
    path = root / LOCK_FILE
    if path.is_symlink() or not path.is_file():
        raise RunError(
            "the run is not locked",
            where=str(root),
            got=f"{LOCK_FILE} is a link" if path.is_symlink() else f"no {LOCK_FILE}",
            expected="a run that `lpact lock` has locked",
            remedy=f"lock it first: lpact lock {root}",
        )
    return parse_lock(read_limited(path), where=str(path))


def read_limited(path: Path) -> bytes:
    """The bytes of a JSON file, or a `RunError` if it is larger than `MOST_JSON_BYTES`."""
    with storage_errors(path, "the file cannot be read"), path.open("rb") as handle:
        content = handle.read(MOST_JSON_BYTES + 1)
    if len(content) > MOST_JSON_BYTES:
        raise RunError(
            "the file is too large",
            where=str(path),
            got=f"{path.stat().st_size} bytes",
            expected=f"at most {MOST_JSON_BYTES} bytes",
            remedy="check where the file comes from; split the study if it is your own",
        )
    return content


def parse_lock(content: bytes, *, where: str) -> Lock:
    """The lock in these bytes; ``where`` names them in errors."""
    return parse_record(content, Lock, LOCK_FORMAT, where=where, verb="locked")


@dataclass(frozen=True)
class Listing:
    """Contents of a folder by relative path, with forward slashes."""

    files: dict[str, Path]
    others: dict[str, str]
    """Links, pipes and other special files, each with a description."""
    folders: tuple[Path, ...]


def list_files(root: Path) -> Listing:
    """List ``root`` without following links."""
    files: dict[str, Path] = {}
    others: dict[str, str] = {}
    folders = [root]
    with storage_errors(root, "the run directory cannot be read"):
        for folder in folders:
            with os.scandir(folder) as entries:
                for entry in entries:
                    path = Path(entry.path)
                    name = path.relative_to(root).as_posix()
                    if entry.is_symlink():
                        others[name] = f"a link to {os.readlink(path)!r}"
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(path)
                    elif stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                        files[name] = path
                    else:
                        others[name] = "not a regular file"
    return Listing(dict(sorted(files.items())), dict(sorted(others.items())), tuple(folders))


@cache
def distributions() -> dict[str, str]:
    """Versions of lpact and of every installed package that it depends on, directly or not.

    Optional dependencies of lpact count if they are installed, except those for its development. Optional dependencies
    of other packages do not count.
    """
    found: dict[str, str] = {}
    waiting = ["lpact"]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            own = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        found[name] = own.version
        for line in own.requires or ():
            extra = re.search(r"\bextra\s*==\s*['\"]([^'\"]+)['\"]", line)
            required = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line.strip())
            if required and (extra is None or (name == "lpact" and extra[1] != "dev")):
                waiting.append(re.sub(r"[-_.]+", "-", required[0]).lower())
    return dict(sorted(found.items()))


@dataclass(frozen=True)
class LockedRun:
    """A locked run."""

    root: Path
    digest: str
    n_files: int
    n_tables: int
    foreign: tuple[str, ...] = ()
    """Files that lpact did not write; they are locked too."""
    verification: Verification | None = None
    """The result of `verify_run` if the run was locked before."""


def lock_run(path: str | Path) -> LockedRun:
    """Lock the finished run at ``path``; verify it if it is locked already.

    A run that does not pass `verify_run` is refused. ``lock.json`` is written last and atomically; then all files and
    folders of the run become read-only.
    """
    from lpact.archive.verify import verify_run

    root = Path(path)
    if is_locked(root):
        verification = verify_run(root, report=False)
        if verification.ok:
            _make_read_only(list_files(root))  # an earlier attempt may have been interrupted before
        return _locked(root, read_lock(root), verification=verification)
    manifest = read_manifest(root)
    clear_leftovers(root / REPORT_FOLDER)
    refuse_being_written(root / REPORT_FOLDER)
    listing = list_files(root)
    _refuse_changed(root, listing, verify_run(root, report=False))
    content = Content(
        study=manifest.study,
        seed=manifest.seed,
        config=manifest.config,
        config_digest=manifest.config_digest,
        inputs=manifest.inputs,
        software=Software(
            made_by_version=manifest.lpact_version,
            made_by_code=manifest.lpact_code,
            made_with=manifest.versions,
            plugins=manifest.plugins,
            locked_by_code=code_digest(),
            system={
                "python": platform.python_version(),
                "implementation": platform.python_implementation(),
                "system": platform.system(),
                "machine": platform.machine(),
            },
            distributions=distributions(),
        ),
        files={
            name: FileFacts(n_bytes=path.stat().st_size, sha256=sha256_file(path))
            for name, path in listing.files.items()
            if name not in NOT_LOCKED
        },
    )
    lock = make_lock(content, locked_on=datetime.now(UTC).date().isoformat())
    atomic_write_bytes(root / LOCK_FILE, lock_bytes(lock))
    _make_read_only(list_files(root))
    own = {*WRITTEN_BY_RUNS, *NOT_LOCKED, *(file.path for file in manifest.outputs)}
    foreign = [name for name in listing.files if name not in own and not _of_report(name)]
    return _locked(root, lock, foreign=tuple(foreign))


def _of_report(name: str) -> bool:
    return name.startswith(f"{REPORT_FOLDER}/")


def _locked(root: Path, lock: Lock, **more: Any) -> LockedRun:
    files = lock.content.files
    n_tables = sum(name.endswith(".parquet") and not _of_report(name) for name in files)
    return LockedRun(root, lock.root_digest, len(files), n_tables, **more)


def _refuse_changed(root: Path, listing: Listing, verification: Verification) -> None:
    """Refuse a run that does not pass verification, and one with a report that was edited."""
    found = [problem.text for problem in verification.problems]
    own = {f"{REPORT_FOLDER}/{name}" for name in report_contents(root / REPORT_FOLDER)}
    found += [
        f"{name}: was changed or added after the report was written"
        for name in listing.files
        if _of_report(name) and name not in own
    ]
    if found:
        raise RunError(
            "the run does not pass verification and was not locked",
            where=str(root),
            got=listed(found, 8, "; "),
            expected="tables, decisions and report as lpact wrote them",
            remedy="restore the files from a copy, write the report again (lpact report), or run the study again",
        )


def _make_read_only(listing: Listing) -> None:
    """Remove the write permission from all files and folders."""
    for path in (*listing.files.values(), *reversed(listing.folders)):
        with storage_errors(path, "the run is locked, but a file could not be made read-only"):
            mode = path.stat().st_mode
            if mode & _WRITE:
                path.chmod(mode & ~_WRITE & 0o7777)
