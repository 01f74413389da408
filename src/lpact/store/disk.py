"""Bytes on disk: atomic replacement, checksums, and disk errors that say what to do."""

from __future__ import annotations

import errno
import hashlib
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from lpact.errors import RunError

TEMPORARY = ".tmp"
"""Ending of files that are being written; they begin with a dot."""

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}
_IN_THE_WAY = {errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENOTEMPTY}


@contextmanager
def storage_errors(path: Path, what: str) -> Iterator[None]:
    """Turn an `OSError` in the block into a `RunError` about ``path`` that begins with ``what``."""
    try:
        yield
    except OSError as error:
        raise RunError(
            what,
            where=str(error.filename or path),
            got=error.strerror or str(error),
            expected="a folder that can be read and written, with enough free space",
            remedy=_remedy(error.errno),
        ) from error


def _remedy(code: int | None) -> str:
    if code in _NO_SPACE:
        return "free disk space (or raise the quota) and run again; finished tasks are kept"
    if code in _NOT_ALLOWED:
        return "give yourself permission there, or choose another output folder"
    if code in _IN_THE_WAY:
        return "something else is in the way: move it, or choose another output folder"
    if code == errno.ENAMETOOLONG:
        return "choose a shorter output path"
    return "check the path and its disk, then run again"


def atomic_write(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Replace ``path`` by what ``write`` puts into the handle: all of it, or nothing.

    The bytes go to a temporary file in the same folder, are flushed to the disk, and take the
    name in one step. The file gets the permissions of the user's umask.
    """
    with storage_errors(path, "a file cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{uuid.uuid4().hex}{TEMPORARY}")
        try:
            with temporary.open("xb") as handle:
                write(handle)
                handle.flush()
                os.fsync(handle.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        sync_folder(path.parent)


def atomic_write_bytes(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content``: all of it, or nothing."""

    def write(handle: BinaryIO) -> None:
        handle.write(content)

    atomic_write(path, write)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to the disk, so that a rename survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256_file(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    with storage_errors(path, "a file cannot be read"), path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
