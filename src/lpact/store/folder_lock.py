"""An exclusive lock on a working folder, held by one process at a time."""

from __future__ import annotations

import os
from pathlib import Path

from lpact.errors import RunError
from lpact.store.disk import storage_errors

LOCK_NAME = "lock"
_LOCKS = Path("/proc/locks")


MAKING = "another process is making this run"


class FolderLock:
    """Creates ``folder`` and holds ``folder/lock`` until `release` or the end of the process.

    ``busy`` says what another process is doing if it holds the lock.
    """

    def __init__(self, folder: Path, *, busy: str = MAKING) -> None:
        self._handle: int | None = None
        self._owner = os.getpid()
        self._path = path = folder / LOCK_NAME
        with storage_errors(path, "the working folder cannot be locked"):
            # The holder before us may have removed the folder between our opening the file and
            # locking it; a lock on a removed file excludes nobody, so try again on the new one.
            while self._handle is None:
                folder.mkdir(parents=True, exist_ok=True)
                handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
                try:
                    _lock(handle, path, busy)
                    if _is_file(handle, path):
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
        """Let go of the lock, and remove its file if asked to; a second call does nothing."""
        if self._handle is not None:
            if os.getpid() == self._owner:
                if remove:
                    self._path.unlink(missing_ok=True)
                # Forked workers share the lock and may outlive this call; closing alone would
                # leave it to them.
                _unlock(self._handle)
            os.close(self._handle)
            self._handle = None


def holder(folder: Path) -> int | None:
    """The process of this machine that holds the lock of ``folder``, or None; the lock is not touched.

    Trying to take it would lock out a run that starts at that very moment. Linux lists locks with the number of their
    file and process; elsewhere, the process that wrote its number into the file holds it for as long as it lives. A
    lock that is held on another machine, or in another container, is not seen.
    """
    path = folder / LOCK_NAME
    try:
        process = int(path.read_bytes()[:32])
        inode = path.stat().st_ino
        if process <= 0:
            return None
        if _LOCKS.exists():
            return process if _listed(_LOCKS.read_text(), process, inode) else None
    except (OSError, ValueError):
        return None
    return process if lives(process) else None


def refuse_held(folder: Path) -> None:
    """Raise `RunError` at once where another process holds ``folder``; the lock is not touched."""
    if (process := holder(folder)) is not None:
        raise _held(folder / LOCK_NAME, MAKING, str(process))


def lives(process: int) -> bool:
    """Whether there is a process of this number on this machine."""
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _held(path: Path, busy: str, process: str) -> RunError:
    return RunError(
        busy,
        where=str(path),
        got=f"a lock held by process {process or 'unknown'}",
        expected="one process per output folder",
        remedy="wait for it or stop it, or choose another output folder",
    )


def _listed(locks: str, process: int, inode: int) -> bool:
    """Whether ``/proc/locks`` has a lock of the process on the file; its device may be written in two ways."""
    held = (line.split() for line in locks.splitlines())
    return any(
        "FLOCK" in fields
        and "->" not in fields
        and fields[-4] == str(process)
        and fields[-3].rpartition(":")[2] == str(inode)
        for fields in held
        if len(fields) >= 8
    )


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
        holder = os.pread(handle, 32, 0).decode(errors="replace").strip()
        raise _held(path, busy, holder) from None


def _unlock(handle: int) -> None:
    import fcntl

    fcntl.flock(handle, fcntl.LOCK_UN)


def _is_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
