"""Locked runs in zip archives: entries are checked before they are unpacked."""

from __future__ import annotations

import shutil
import stat
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lpact.archive.lock import MOST_JSON_BYTES, NOT_LOCKED, list_files, parse_lock, read_lock
from lpact.errors import RunError
from lpact.store import storage_errors
from lpact.store.manifest import LOCK_FILE
from lpact.wording import listed

MOST_ENTRIES = 100_000
MOST_BYTES = 256 * 2**30
"""Total uncompressed size."""
MOST_RATIO = 200
"""Uncompressed size over the size of the archive, for archives that unpack to more than `SMALL`."""
SMALL = 16 * 2**20
LONGEST_NAME = 1000
_ENCRYPTED = 0x1


@contextmanager
def opened_run(path: str | Path) -> Iterator[Path]:
    """The folder of a run: ``path`` itself, or a temporary folder with the content of an archive.

    Every file of an archive is compared with the lock before the folder is handed out.
    """
    with unpacked_run(path) as root:
        if root != Path(path):
            from lpact.archive.verify import check_files

            files = read_lock(root).content.files
            problems, _ = check_files(list_files(root), files, locked=True)
            refuse(path, [problem.text for problem in problems])
        yield root


@contextmanager
def unpacked_run(path: str | Path) -> Iterator[Path]:
    """The same without a comparison of contents, for `lpact.archive.verify_run`, which names all differences."""
    source = Path(path)
    if source.is_dir() or not source.exists():
        yield source
        return
    if not source.is_file():
        raise RunError(
            "a run is a folder or an archive",
            where=str(source),
            got="a pipe, a device or another special file",
            expected="the folder of a run, or an archive of `lpact export`",
            remedy="check the path; save the content of a pipe to a file first",
        )
    with tempfile.TemporaryDirectory(prefix="lpact-archive-") as folder:
        root = Path(folder) / "run"
        unpack(source, root)
        yield root


def refuse(path: Path | str, faults: Iterable[str]) -> None:
    """Raise `RunError` with the faults of an archive, if there are any."""
    found = list(faults)
    if found:
        raise RunError(
            "the archive is refused: lpact did not write it, or it was changed",
            where=str(path),
            got=listed(found, 5, "; "),
            expected="an archive as `lpact export` writes it",
            remedy="get the archive again from its source",
        )


def unpack(source: Path, root: Path) -> None:
    """Unpack the archive of a locked run into the new folder ``root``, or refuse it."""
    with storage_errors(source, "the archive cannot be read"), source.open("rb") as handle:
        try:
            with zipfile.ZipFile(handle) as archive:
                files = check_entries(archive.infolist(), source.stat().st_size, source)
                _check_lock(archive, files, source)
                _check_room(files, root)
                for entry in files:
                    archive.extract(entry, root)
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as error:
            refuse(source, [f"it is damaged: {str(error) or type(error).__name__}"])


def check_entries(entries: list[zipfile.ZipInfo], n_bytes: int, path: Path) -> list[zipfile.ZipInfo]:
    """Refuse unsafe names and special files, and archives that are too large; return the entries of files.

    ``n_bytes`` is the size of the archive itself.
    """
    faults = [f"{entry.orig_filename!r} {fault}" for entry in entries for fault in _faults(entry)]
    seen: dict[str, str] = {}
    for entry in entries:
        # Some file systems ignore case, or compose letters.
        folded = unicodedata.normalize("NFC", entry.filename.casefold()).removesuffix("/")
        if folded in seen:
            faults.append(f"{entry.filename!r} has the same name as {seen[folded]!r}")
        seen[folded] = entry.filename
    total = sum(entry.file_size for entry in entries)
    if len(entries) > MOST_ENTRIES:
        faults.append(f"it has {len(entries)} entries; the limit is {MOST_ENTRIES}")
    if total > MOST_BYTES:
        faults.append(f"it unpacks to {total} bytes; the limit is {MOST_BYTES}")
    if total > SMALL and total > MOST_RATIO * n_bytes:
        faults.append(f"it unpacks to {total // n_bytes} times its size; the limit is {MOST_RATIO}")
    refuse(path, faults)
    return [entry for entry in entries if not entry.is_dir()]


def _faults(entry: zipfile.ZipInfo) -> Iterator[str]:
    name = entry.orig_filename
    if name.startswith("/") or "\\" in name or ":" in name:
        yield "is an absolute path, or has a backslash or a colon"
    if any(part in ("", ".", "..") for part in name.removesuffix("/").split("/")):
        yield "leads out of the folder, or has an empty part"
    if any(unicodedata.category(letter)[0] == "C" for letter in name):
        yield "has control characters"
    if len(name) > LONGEST_NAME:
        yield "is too long"
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        yield "is a link or a special file"
    if entry.flag_bits & _ENCRYPTED:
        yield "is encrypted"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        yield f"uses compression method {entry.compress_type}, which is not supported"


def _check_lock(archive: zipfile.ZipFile, files: list[zipfile.ZipInfo], source: Path) -> None:
    """The entries must be the files of the lock, with their sizes."""
    sizes = {entry.filename: entry.file_size for entry in files}
    if LOCK_FILE not in sizes:
        raise RunError(
            "the file is not an archive of a locked run",
            where=str(source),
            got=f"no {LOCK_FILE} at its top level",
            expected="an archive as `lpact export` writes it",
            remedy="if the run is in a folder of the archive, unpack it yourself and verify that folder",
        )
    large = [n for n in sizes if n.endswith(".json") and sizes[n] > MOST_JSON_BYTES]
    refuse(source, [f"{name} has more than {MOST_JSON_BYTES} bytes" for name in large])
    lock = parse_lock(archive.read(LOCK_FILE), where=f"{source}, {LOCK_FILE}")
    locked = {name: file.n_bytes for name, file in lock.content.files.items()}
    faults = [f"{name} is not part of the run" for name in sizes.keys() - locked.keys() - NOT_LOCKED]
    faults += [f"{name} is missing" for name in locked.keys() - sizes.keys()]
    faults += [
        f"{name} has {sizes[name]} bytes instead of {n_bytes}"
        for name, n_bytes in locked.items()
        if sizes.get(name, n_bytes) != n_bytes
    ]
    refuse(source, sorted(faults))


def _check_room(files: list[zipfile.ZipInfo], root: Path) -> None:
    needed, free = sum(entry.file_size for entry in files), shutil.disk_usage(root.parent).free
    if needed > free:
        raise RunError(
            "not enough disk space to unpack the archive",
            where=str(root.parent),
            got=f"{free} bytes free",
            expected=f"{needed} bytes",
            remedy="free some space, or set TMPDIR to a folder on another disk",
        )
