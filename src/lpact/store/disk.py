"""Bytes on disk: atomic replacement, checksums, exclusive folders, and disk errors that say what to do."""

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

LOCK_NAME = "lock"
_LOCKS = Path("/proc/locks")
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
    if code == errno.ENOMEM:
        return "close other programs or use fewer workers, then run again; finished tasks are kept"
    if code in _NOT_ALLOWED:
        return "change the permissions there, or choose another output folder"
    if code in _IN_THE_WAY:
        return "something else is in the way: move it, or choose another output folder"
    if code == errno.ENAMETOOLONG:
        return "choose a shorter output path"
    return "check the path and its disk, then run again"


def atomic_write(path: Path, write: Callable[[BinaryIO], object]) -> None:
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
    atomic_write(path, lambda handle: handle.write(content))


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to the disk, so that a rename survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_state(path: Path) -> tuple[int, int, int, int]:
    """Size, times and inode of a file: while they are the same, so is its content."""
    state = path.stat()
    # A copy can keep the time of its content (mtime); the time of the file itself (ctime) always changes.
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino


def sha256_file(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    with storage_errors(path, "a file cannot be read"), path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


MAKING = "another process is making this run"


class FolderLock:
    """Creates ``folder`` and locks ``folder/lock`` until `release` or the end of the process.

    ``busy`` says what another process is doing if it has the lock.
    """

    def __init__(self, folder: Path, *, busy: str = MAKING) -> None:
        self._handle: int | None = None
        self._owner = os.getpid()
        self._path = path = folder / LOCK_NAME
        with storage_errors(path, "the working folder cannot be locked"):
            # The process before us may remove the folder between our opening the file and locking it; a lock on a
            # removed file excludes nobody, so try again on the new one.
            while self._handle is None:
                folder.mkdir(parents=True, exist_ok=True)
                handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
                try:
                    _lock(handle, path, busy)
                    with suppress(FileNotFoundError):
                        if os.path.samestat(os.fstat(handle), path.stat()):
                            self._handle = handle
                finally:
                    if self._handle is None:
                        os.close(handle)
            try:
                os.ftruncate(self._handle, 0)
                os.pwrite(self._handle, f"{self._owner}\n".encode(), 0)
            except OSError:
                self.release()
                raise

    def release(self, *, remove: bool = False) -> None:
        """Release the lock, and remove its file if ``remove``; a second call does nothing."""
        if self._handle is not None:
            if os.getpid() == self._owner:
                import fcntl

                if remove:
                    self._path.unlink(missing_ok=True)
                # Forked workers share the lock and may outlive this call: closing alone would leave it to them.
                fcntl.flock(self._handle, fcntl.LOCK_UN)
            os.close(self._handle)
            self._handle = None


def _lock(handle: int, path: Path, busy: str) -> None:
    try:
        import fcntl
    except ImportError:
        raise RunError(
            "this system cannot lock a run directory",
            where=str(path),
            got="a system without POSIX file locks",
            expected="Linux or macOS",
            remedy="make runs on Linux, macOS or WSL; finished runs can be read anywhere",
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        process = os.pread(handle, 32, 0).decode(errors="replace").strip()
        raise _held(path, busy, process) from None


def _held(path: Path, busy: str, process: str) -> RunError:
    return RunError(
        busy,
        where=str(path),
        got=f"a lock held by process {process or 'unknown'}",
        expected="one process per output folder",
        remedy="wait for it or stop it, or choose another output folder",
    )


def refuse_held(folder: Path) -> None:
    """Raise `RunError` if another process has locked ``folder``; the lock is not touched."""
    if (process := holder(folder)) is not None:
        raise _held(folder / LOCK_NAME, MAKING, str(process))


def holder(folder: Path) -> int | None:
    """The process of this machine that has locked ``folder``, or None; the lock is not touched.

    Acquiring it could block a run that starts at the same moment. Linux lists file locks with the number of their
    file and process; elsewhere, the process that wrote its number into the file has it while it is alive. A lock
    of another machine, or of another container, is not seen.
    """
    path, process = folder / LOCK_NAME, None
    try:
        process = int(path.read_bytes()[:32])
        inode = path.stat().st_ino
        if process <= 0:
            return None
        if not _LOCKS.exists():
            os.kill(process, 0)
            return process
        locks = [line.split() for line in _LOCKS.read_text().splitlines()]
    except PermissionError:  # it lives, and belongs to another user
        return process
    except (OSError, ValueError, OverflowError):
        return None
    # The file's device may be written in two ways; its inode is after the last colon.
    wanted = [str(process), str(inode)]
    return next(
        (
            process
            for fields in locks
            if len(fields) >= 8
            and "FLOCK" in fields
            and "->" not in fields
            and [fields[-4], fields[-3].rpartition(":")[2]] == wanted
        ),
        None,
    )
