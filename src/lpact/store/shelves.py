"""Where files of bytes are kept by name: in a folder, or in an object store (`lpact.store.remote`)."""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lpact.store.disk import TEMPORARY, atomic_write_bytes, storage_errors

OLD_S = 24 * 3600.0


class Shelf(Protocol):
    """A place for files. It holds no handle, so that other processes can be given it."""

    def size(self, name: str) -> int | None:
        """Bytes of a file, or None where there is none."""
        ...

    def read(self, name: str, offset: int, n_bytes: int) -> bytes:
        """A part of a file; fewer bytes at its end. A missing file is a `FileNotFoundError`."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Make or replace a file: all of it, or nothing."""
        ...

    def names(self, start: str) -> list[str]:
        """Names of files that begin with ``start``, of two characters or more, sorted."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...

    def where(self, name: str) -> str:
        """A file's place, for messages."""
        ...


@dataclass(frozen=True)
class FolderShelf:
    """Files in a folder, two levels deep, so that no folder holds very many."""

    root: Path

    def path(self, name: str) -> Path:
        """Return where a file lies."""
        return self.root / name[:2] / name

    def size(self, name: str) -> int | None:
        """Return the bytes of a file, or None."""
        path = self.path(name)
        with storage_errors(path, "a finished task cannot be read"):
            try:
                return _look(path).st_size
            except FileNotFoundError:
                return None

    def read(self, name: str, offset: int, n_bytes: int) -> bytes:
        """Return a part of a file."""
        path = self.path(name)
        size = _look(path).st_size
        with path.open("rb") as handle:
            handle.seek(offset)
            return handle.read(min(n_bytes, size))  # a header may name any number

    def write(self, name: str, content: bytes) -> None:
        """Make or replace a file atomically."""
        atomic_write_bytes(self.path(name), content)

    def names(self, start: str) -> list[str]:
        """Return the names of files that begin with ``start``, sorted."""
        folder = self.root / start[:2]
        with storage_errors(folder, "a place for results cannot be listed"):
            if not folder.is_dir():
                return []
            return sorted(path.name for path in folder.iterdir() if path.name.startswith(start))

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        path = self.path(name)
        with storage_errors(path, "an old task cannot be removed"):
            path.unlink(missing_ok=True)

    def where(self, name: str) -> str:
        """Return the path."""
        return str(self.path(name))

    def sweep(self) -> None:
        """Remove files that were begun more than a day ago and never finished: others may be at work here."""
        with storage_errors(self.root, "leftovers of earlier runs cannot be removed"):
            for path in self.root.rglob(f".*{TEMPORARY}"):
                with suppress(FileNotFoundError):
                    if time.time() - path.stat().st_mtime > OLD_S:
                        path.unlink()


def _look(path: Path) -> os.stat_result:
    """What the system says of a file; a pipe, which would be waited for, is as little one as a folder."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EISDIR, "something that is no file", str(path))
    return found
