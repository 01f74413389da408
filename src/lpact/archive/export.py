"""A locked run as one archive: the same run, the same bytes."""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
import zlib
from dataclasses import dataclass
from datetime import date as Day
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from lpact.archive.bounded_json import parse_bounded
from lpact.archive.crate import Stated, crate_bytes
from lpact.archive.files import CRATE_FILE
from lpact.archive.lock import not_enough
from lpact.archive.lockfile import Lock, read_lock
from lpact.archive.verify import verify_run
from lpact.archive.zip_layout import MOST_RATIO, SMALL, name_faults
from lpact.errors import ConfigError, RunError
from lpact.store import StoredRun, atomic_write, read_manifest, sha256_file, storage_errors
from lpact.store.locked import LOCK_FILE, refuse_locked
from lpact.store.manifest import MANIFEST_NAME

_TIME = (1980, 1, 1, 0, 0, 0)
_LEVEL = 6
_CHUNK = 2**20
_MODE = (stat.S_IFREG | 0o444) << 16
_UNIX = 3
_MOST_NAMED = 5


@dataclass(frozen=True)
class Exported:
    """An archive that was written."""

    path: Path
    digest: str
    sha256: str
    n_files: int
    n_bytes: int
    date: str
    licence: str | None


def export_run(
    path: str | Path, out: str | Path, *, date: str | None = None, licence: str | None = None
) -> Exported:
    """Write the locked run at ``path`` as the new zip file ``out``, with a description of it.

    Parameters
    ----------
    path, out
        Folder of the locked run, and the archive.
    date
        Day of publication (``2026-01-31``); by default the day that the lock states. The root
        digest does not cover that day.
    licence
        Address of a licence, or its SPDX name; without it, the description names none.
    """
    root, target = Path(path), Path(out)
    if not (root / MANIFEST_NAME).is_file():
        read_manifest(root)  # says that this is no finished run
    lock = read_lock(root)
    stated = Stated(_day(date or lock.locked_on), _licence(licence))
    _refuse_other_name(target)
    refuse_locked(target)
    _refuse_taken(target)
    _refuse_changed(root)
    description = crate_bytes(root, lock, stated, StoredRun(root).table)
    # Nobody could verify an archive with a larger one.
    parse_bounded(description, what="the description would be too large", where=CRATE_FILE)

    def write(handle: BinaryIO) -> None:
        _write(handle, root, lock, description)

    atomic_write(target, write)
    return Exported(
        path=target,
        digest=lock.root_digest,
        sha256=sha256_file(target),
        n_files=len(lock.sealed.files) + 2,
        n_bytes=target.stat().st_size,
        date=stated.date,
        licence=stated.licence,
    )


def _day(text: str) -> str:
    try:
        return Day.fromisoformat(text).isoformat()
    except ValueError:
        raise ConfigError(
            "the day of publication is none",
            where="option --date",
            got=text,
            expected="year, month and day, as in 2026-01-31",
            remedy="give the day like that, or leave the option out",
        ) from None


def _licence(text: str | None) -> str | None:
    if text is None:
        return None
    address = text if "://" in text else f"https://spdx.org/licenses/{text}"
    parts = urlsplit(address)
    plain = all(letter.isalnum() or letter in "-._~:/?#@+=&%" for letter in address)
    if parts.scheme not in ("http", "https") or not parts.netloc or not plain or not text:
        raise ConfigError(
            "the licence cannot be named like that",
            where="option --licence",
            got=text,
            expected="an SPDX name such as CC-BY-4.0, or an address",
            remedy="look the name up at https://spdx.org/licenses/",
        )
    return address


def _refuse_other_name(target: Path) -> None:
    if target.suffix.lower() != ".zip":
        raise ConfigError(
            "the archive's name does not say what it is",
            where=str(target),
            got=f"the ending '{target.suffix}'" if target.suffix else "no ending",
            expected="a name that ends with .zip",
            remedy=f"call it {target.with_suffix('.zip').name}",
        )


def _refuse_taken(target: Path) -> None:
    with storage_errors(target, "the archive cannot be written"):
        if os.path.lexists(target):
            raise RunError(
                "there is something at the place of the archive",
                where=str(target),
                got="a file, folder or link",
                expected="a new file",
                remedy="choose another name, or remove it",
            )


def _refuse_changed(root: Path) -> None:
    found = verify_run(root, report=False)
    if found.problems and all(problem.kind == "limit" for problem in found.problems):
        raise not_enough(root, found.problems, done="exported")
    if found.problems:
        more = len(found.problems) - _MOST_NAMED
        raise RunError(
            "the run is not as it was locked, and is not exported",
            where=str(root),
            got="; ".join(problem.text for problem in found.problems[:_MOST_NAMED])
            + (f"; and {more} more" if more > 0 else ""),
            expected="a run that passes `lpact verify`",
            remedy=f"see all of it with `lpact verify {root}`; restore the run from a copy",
        )


def _write(handle: BinaryIO, root: Path, lock: Lock, description: bytes) -> None:
    """Entries in the order of their names, with one time and one permission."""
    names = sorted({*lock.sealed.files, LOCK_FILE, CRATE_FILE})
    for name in names:
        for fault in name_faults(name):
            raise RunError(
                "a file of the run has a name that archives must not hold",
                where=str(root / name),
                got=f"{name!r} {fault}",
                expected="plain names",
                remedy="copy the run without its lock, rename or remove the file, and lock the copy",
            )
    with zipfile.ZipFile(handle, "w", compresslevel=_LEVEL) as archive:
        for name in names:
            if name == CRATE_FILE:
                archive.writestr(_entry(name, zipfile.ZIP_DEFLATED), description)
                continue
            _add(archive, root / name, name, lock)


def _entry(name: str, method: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.compress_type = method
    entry.create_system = _UNIX
    entry.external_attr = _MODE
    return entry


def _add(archive: zipfile.ZipFile, path: Path, name: str, lock: Lock) -> None:
    """Add a file; what is read is hashed, so that nothing else gets in than what was locked."""
    digest = hashlib.sha256()
    n_bytes = path.stat().st_size
    entry = _entry(name, _method(path, n_bytes))
    entry.file_size = n_bytes
    with path.open("rb") as source, archive.open(entry, "w", force_zip64=n_bytes >= 2**31) as made:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            made.write(chunk)
    facts = lock.sealed.files.get(name)
    if facts is not None and facts.sha256 != digest.hexdigest():
        raise RunError(
            "a file changed while it was exported",
            where=str(path),
            got=digest.hexdigest(),
            expected=facts.sha256,
            remedy="restore the run from a copy, and export again",
        )


def _method(path: Path, n_bytes: int) -> int:
    """How a file is packed: as it is where it would shrink so much that a reader takes it for a bomb."""
    if n_bytes <= SMALL:
        return zipfile.ZIP_DEFLATED
    packer, packed = zlib.compressobj(_LEVEL, zlib.DEFLATED, -15), 0
    with path.open("rb") as source:
        while chunk := source.read(_CHUNK):
            packed += len(packer.compress(chunk))
    packed += len(packer.flush())
    return zipfile.ZIP_DEFLATED if n_bytes < packed * MOST_RATIO // 2 else zipfile.ZIP_STORED
