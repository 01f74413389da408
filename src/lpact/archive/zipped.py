"""A locked run as one zip archive: the same run gives the same bytes; entries are checked before they are unpacked."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date as Day
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from lpact.archive.crate import crate_bytes
from lpact.archive.lock import CRATE_FILE, MOST_JSON_BYTES, NOT_LOCKED, Lock, list_files, parse_lock, read_lock
from lpact.config import study_config
from lpact.errors import ConfigError, RunError
from lpact.store import RunTables, StoredRun, atomic_write, read_manifest, sha256_file, storage_errors
from lpact.store.manifest import LOCK_FILE, refuse_locked
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


_TIME = (1980, 1, 1, 0, 0, 0)
_CHUNK = 2**20
_MODE = (stat.S_IFREG | 0o444) << 16
_UNIX = 3


@dataclass(frozen=True)
class Exported:
    """An archive that was written: ``digest`` is the root digest of the run, ``sha256`` that of the file."""

    path: Path
    digest: str
    sha256: str
    n_files: int
    n_bytes: int
    date: str
    licence: str | None


def export_run(path: str | Path, out: str | Path, *, date: str | None = None, licence: str | None = None) -> Exported:
    """Write the locked run at ``path`` to the new zip file ``out``, with RO-Crate metadata.

    Parameters
    ----------
    path, out
        Folder of the locked run, and the archive.
    date
        Day of publication (``2026-01-31``); by default the day of the lock. The root digest does not cover it.
    licence
        URL of a licence, or its SPDX name; by default the metadata name none.
    """
    from lpact.archive.verify import verify_run

    root, target = Path(path), Path(out)
    config = read_manifest(root).config
    lock = read_lock(root)
    date, licence = _day(date or lock.locked_on), _licence(licence)
    _check_target(target)
    if problems := verify_run(root, report=False).problems:
        raise RunError(
            "the run differs from its lock and was not exported",
            where=str(root),
            got=listed([problem.text for problem in problems], 5, "; "),
            expected="a run that passes `lpact verify`",
            remedy=f"see all problems with `lpact verify {root}`; restore the run from a copy",
        )
    study = study_config(config, where=str(root))
    description = crate_bytes(root, lock, study, RunTables(StoredRun(root)), date, licence)
    atomic_write(target, lambda handle: _write_entries(handle, root, lock, description))
    return Exported(
        path=target,
        digest=lock.root_digest,
        sha256=sha256_file(target),
        n_files=len(lock.content.files) + 2,
        n_bytes=target.stat().st_size,
        date=date,
        licence=licence,
    )


def _day(text: str) -> str:
    try:
        return Day.fromisoformat(text).isoformat()
    except ValueError:
        raise ConfigError(
            "the day of publication is not a date",
            where="option --date",
            got=text,
            expected="year, month and day, as in 2026-01-31",
            remedy="write the day like that, or leave the option out",
        ) from None


def _licence(text: str | None) -> str | None:
    if text is None:
        return None
    url = text if "://" in text else f"https://spdx.org/licenses/{text}"
    parts = urlsplit(url)
    allowed = all(letter.isalnum() or letter in "-._~:/?#@+=&%" for letter in url)
    if parts.scheme not in ("http", "https") or not parts.netloc or not allowed or not text:
        raise ConfigError(
            "the licence is neither an SPDX name nor a URL",
            where="option --licence",
            got=text,
            expected="an SPDX name such as CC-BY-4.0, or a URL",
            remedy="look the name up at https://spdx.org/licenses/",
        )
    return url


def _check_target(target: Path) -> None:
    """Refuse a name that is not that of a zip file, a place in a locked run, and a file that exists."""
    if target.suffix.lower() != ".zip":
        raise ConfigError(
            "the archive has no .zip ending",
            where=str(target),
            got=f"the ending '{target.suffix}'" if target.suffix else "no ending",
            expected="a name that ends with .zip",
            remedy=f"call it {target.with_suffix('.zip').name}",
        )
    refuse_locked(target)
    with storage_errors(target, "the archive cannot be written"):
        if os.path.lexists(target):
            raise RunError(
                "the archive exists already",
                where=str(target),
                got="a file, folder or link",
                expected="a new file",
                remedy="choose another name, or remove it",
            )


def _write_entries(handle: BinaryIO, root: Path, lock: Lock, description: bytes) -> None:
    """Entries in the order of their names, with one time and one permission."""
    with zipfile.ZipFile(handle, "w", compresslevel=6) as archive:
        for name in sorted({*lock.content.files, LOCK_FILE, CRATE_FILE}):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = _UNIX
            entry.external_attr = _MODE
            if name == CRATE_FILE:
                archive.writestr(entry, description)
                continue
            entry.file_size = (root / name).stat().st_size
            large = entry.file_size >= 2**31
            with (
                (root / name).open("rb") as source,
                archive.open(entry, "w", force_zip64=large) as made,
            ):
                shutil.copyfileobj(source, made, _CHUNK)
        # An archive beyond the limits could not be opened again.
        check_entries(archive.infolist(), handle.tell(), root)
