"""A locked run as one zip archive that another group can verify: the same run gives the same bytes."""

from __future__ import annotations

import os
import shutil
import stat
import zipfile
from dataclasses import dataclass
from datetime import date as Day
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from lpact.archive.crate import crate_bytes
from lpact.archive.lock import CRATE_FILE, Lock, read_lock
from lpact.archive.verify import verify_run
from lpact.archive.zipped import check_entries
from lpact.config import study_config
from lpact.errors import ConfigError, RunError
from lpact.store import RunTables, StoredRun, atomic_write, read_manifest, sha256_file, storage_errors
from lpact.store.manifest import LOCK_FILE, refuse_locked
from lpact.wording import listed

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
