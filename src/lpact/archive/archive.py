"""Reading an archive: into a fresh folder, after all of it was looked at, and never more than it says."""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from lpact.archive.apart import apart
from lpact.archive.bounded_json import MOST_JSON_BYTES
from lpact.archive.check_files import bounded_manifest, check_files, check_twins, expected_files
from lpact.archive.check_tables import unreadable_tables
from lpact.archive.files import UNSEALED, list_files
from lpact.archive.lockfile import Lock, parse_lock, read_lock
from lpact.archive.zip_layout import check_end, check_entries, check_places, refuse
from lpact.errors import RunError
from lpact.report.folder import CONTENTS
from lpact.run.preregistration import REGISTRATION_NAME
from lpact.store import storage_errors
from lpact.store.locked import LOCK_FILE
from lpact.store.manifest import MANIFEST_NAME, REPORT_FOLDER

PARSED = UNSEALED | {MANIFEST_NAME, REGISTRATION_NAME, f"{REPORT_FOLDER}/{CONTENTS}"}
"""JSON files that are parsed when a run is verified or read."""
_CHUNK = 2**20


@contextmanager
def opened_run(path: str | Path) -> Iterator[Path]:
    """The folder of a run: ``path`` itself, or, for an archive, a fresh folder that is gone when the block ends.

    An archive is held against its lock before any of it is parsed, and its tables are read by another process first:
    whoever gets the folder may read all of it.
    """
    with unpacked_run(path) as root:
        if root != Path(path):
            lock = read_lock(root)
            files = check_files(list_files(root), expected_files(lock, None), locked=True)
            refuse(path, [problem.text for problem in files.problems])
            bounded_manifest(root)
            with apart() as reader:
                refuse(path, unreadable_tables(root, reader))
        yield root


@contextmanager
def unpacked_run(path: str | Path) -> Iterator[Path]:
    """The same, for those who check all of it themselves: nothing but the lock was read."""
    source = Path(path)
    if source.is_dir() or not source.exists():
        yield source
        return
    if not source.is_file():
        raise RunError(
            "a run is a folder or an archive",
            where=str(source),
            got="a pipe, a device or something else that is no plain file",
            expected="the folder of a run, or an archive of `lpact export`",
            remedy="check the path; write what comes from a pipe into a file first",
        )
    with tempfile.TemporaryDirectory(prefix="lpact-archive-") as folder:
        root = Path(folder) / "run"
        unpack(source, root)
        yield root


def unpack(source: Path, root: Path) -> None:
    """Unpack an archive of a locked run into the new folder ``root``, or refuse it."""
    with storage_errors(source, "the archive cannot be read"), source.open("rb") as handle:
        try:
            end = check_end(handle, source)
            with zipfile.ZipFile(handle) as archive:
                entries = archive.infolist()
                if (archive.start_dir, len(entries)) != (end.start, end.n_entries):
                    refuse(source, ["it has two directories, or one of another length"])
                files = check_entries(entries, source)
                check_places(handle, entries, end.start, source)
                _check_against_lock(archive, files, source)
                _check_room(files, root)
                root.mkdir()
                for entry in files:
                    _extract(archive, entry, root, source)
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            UnicodeError,
            NotImplementedError,
            struct.error,
        ) as error:
            refuse(source, [f"it is damaged: {str(error) or type(error).__name__}"])


def _check_against_lock(
    archive: zipfile.ZipFile, files: list[zipfile.ZipInfo], source: Path
) -> Lock:
    """The lock says which files there are and how large they are; others are not unpacked."""
    sizes = {entry.filename: entry.file_size for entry in files}
    if LOCK_FILE not in sizes:
        raise RunError(
            "the file is not an archive of a locked run",
            where=str(source),
            got=f"no {LOCK_FILE} at its top",
            expected="an archive as `lpact export` writes it",
            remedy="if the run lies in a folder of the archive, unpack it yourself and verify that folder",
        )
    refuse(
        source,
        [
            f"{name} is {sizes[name]} bytes large; at most {MOST_JSON_BYTES} are read"
            for name in sorted(PARSED & sizes.keys())
            if sizes[name] > MOST_JSON_BYTES
        ],
    )
    content = b"".join(_chunks(archive, archive.getinfo(LOCK_FILE), source))
    lock = parse_lock(content, where=f"{source}, {LOCK_FILE}")
    locked = {name: file.n_bytes for name, file in lock.sealed.files.items()}
    faults = [
        f"{name} is not part of the run"
        for name in sizes
        if name not in locked and name not in UNSEALED
    ]
    faults += [
        f"{name} is {sizes[name]} bytes large, by the lock {n_bytes}"
        for name, n_bytes in locked.items()
        if name in sizes and sizes[name] != n_bytes
    ]
    faults += [f"{name} is missing" for name in locked if name not in sizes]
    faults += [problem.text for problem in check_twins(expected_files(lock, None))]
    refuse(source, faults)
    return lock


def _check_room(files: list[zipfile.ZipInfo], root: Path) -> None:
    needed = sum(entry.file_size for entry in files)
    free = shutil.disk_usage(root.parent).free
    if needed > free:
        raise RunError(
            "there is no room to unpack the archive",
            where=str(root.parent),
            got=f"{free} bytes free",
            expected=f"{needed} bytes",
            remedy="free space there, or set TMPDIR to a folder on another disk",
        )


def _extract(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, root: Path, source: Path) -> None:
    target = root / entry.filename
    target.parent.mkdir(parents=True, exist_ok=True)
    number = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(number, "wb") as made:
        for chunk in _chunks(archive, entry, source):
            made.write(chunk)


def _chunks(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, source: Path) -> Iterator[bytes]:
    """The bytes of an entry: as many as it says, and an error where there are more or fewer."""
    left = entry.file_size
    opened: BinaryIO
    with archive.open(entry) as opened:  # type: ignore[assignment]
        while chunk := opened.read(min(_CHUNK, left + 1)):
            left -= len(chunk)
            refuse(source, [f"{entry.filename} holds more than it says"] if left < 0 else [])
            yield chunk
    refuse(source, [f"{entry.filename} holds less than it says"] if left else [])
