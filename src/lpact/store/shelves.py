"""Where files of bytes are stored by name: in a folder, or in an object store that Arrow can open by its URL.

``s3://bucket/folder?region=…&endpoint_override=host:port&scheme=https``: the query is Arrow's. Keys are never part of
the URL, which messages show: they come from the environment or the machine's role.
"""

from __future__ import annotations

import errno
import os
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from lpact.errors import ConfigError, RunError
from lpact.store.disk import TEMPORARY, atomic_write_bytes, storage_errors

OLD_S = 24 * 3600.0
_OBJECT_STORES = ("s3", "gcs", "abfs")
"""Stores in which a file appears when it is complete; elsewhere it gets its name in a second step."""


class Shelf(Protocol):
    """A place for files. It holds no handle, so that other processes can be given it."""

    def size(self, name: str) -> int | None:
        """Bytes of a file, or None if there is none."""
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
        """Remove a file, if it exists."""
        ...

    def where(self, name: str) -> str:
        """The place of a file, for messages."""
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
        """Remove a file, if it exists."""
        path = self.path(name)
        with storage_errors(path, "an old task cannot be removed"):
            path.unlink(missing_ok=True)

    def where(self, name: str) -> str:
        """Return the path."""
        return str(self.path(name))

    def sweep(self) -> None:
        """Remove unfinished files that are older than a day: other runs may be writing here."""
        with storage_errors(self.root, "leftovers of earlier runs cannot be removed"):
            for path in self.root.rglob(f".*{TEMPORARY}"):
                with suppress(FileNotFoundError):
                    if time.time() - path.stat().st_mtime > OLD_S:
                        path.unlink()


def _look(path: Path) -> os.stat_result:
    """The status of a regular file; a pipe would block."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EISDIR, "not a regular file", str(path))
    return found


def open_shelf(place: str) -> Shelf:
    """The shelf at a folder or URL; `ConfigError` for a URL that cannot be understood."""
    if "://" not in place:
        return FolderShelf(Path(place))
    parts = urlsplit(place)
    if parts.username is not None or parts.password is not None:
        raise ConfigError(
            "a URL must not contain a key: logs and messages show it",
            where="option 'run.tasks'",
            got=f"{parts.scheme}://…@{parts.hostname or ''}",
            expected=f"{parts.scheme}://bucket/folder",
            remedy="set keys in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or use the machine's role",
        )
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or parts.query:
            raise _no_place(place, "a file URL with a host or a query")
        return FolderShelf(Path(unquote(parts.path)))
    shelf = RemoteShelf(place)
    _, folder = shelf.opened()
    if not folder.strip("/"):
        raise _no_place(place, "a URL without a bucket")
    return shelf


@dataclass(frozen=True)
class RemoteShelf:
    """Files behind a URL; every process opens its own connection."""

    url: str

    def opened(self) -> tuple[Any, str]:
        """The file system and the folder in it."""
        return _opened(self.url)

    def size(self, name: str) -> int | None:
        """Return the bytes of a file, or None."""
        system, path = self._place(name)
        with self._errors(name, "the place for results cannot be looked into"):
            found = system.get_file_info(path)
        return int(found.size) if found.is_file else None

    def read(self, name: str, offset: int, n_bytes: int) -> bytes:
        """Return a part of a file."""
        system, path = self._place(name)
        try:
            with (
                self._errors(name, "a finished task cannot be read"),
                system.open_input_file(path) as file,
            ):
                n_there = max(0, min(n_bytes, file.size() - offset))
                return bytes(file.read_at(n_there, offset)) if n_there else b""
        except RunError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise error.__cause__ from None
            raise

    def write(self, name: str, content: bytes) -> None:
        """Make or replace a file: all of it, or nothing."""
        system, path = self._place(name)
        at_once = system.type_name in _OBJECT_STORES
        first = path if at_once else f"{path}.{uuid.uuid4().hex}.tmp"
        with self._errors(name, "a finished task cannot be written"):
            if not at_once:
                system.create_dir(path.rpartition("/")[0], recursive=True)
            try:
                with system.open_output_stream(first) as file:
                    file.write(content)
            except BaseException:
                # Closing a stream keeps what has arrived so far.
                _remove_part(system, first, len(content))
                raise
            if not at_once:
                system.move(first, path)

    def names(self, start: str) -> list[str]:
        """Return the names of files that begin with ``start``, sorted."""
        from pyarrow.fs import FileSelector

        system, folder = self.opened()
        under = f"{folder.rstrip('/')}/{start[:2]}"
        with self._errors(start, "a place for results cannot be listed"):
            found = system.get_file_info(FileSelector(under, allow_not_found=True))
        names = (str(file.base_name) for file in found if file.is_file)
        return sorted(name for name in names if name.startswith(start))

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        system, path = self._place(name)
        with self._errors(name, "an old task cannot be removed"):
            if system.get_file_info(path).is_file:
                system.delete_file(path)

    def where(self, name: str) -> str:
        """Return the URL, without its query."""
        return f"{self.url.partition('?')[0].rstrip('/')}/{_under(name)}"

    def _place(self, name: str) -> tuple[Any, str]:
        system, folder = self.opened()
        return system, f"{folder.rstrip('/')}/{_under(name)}"

    @contextmanager
    def _errors(self, name: str, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(
                what,
                where=self.where(name),
                got=str(error),
                expected="a store that can be reached, with a bucket that may be read and written",
                remedy="check address, bucket and keys (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, or the machine's "
                "role) on this machine, then run again: finished tasks are kept",
            ) from error


def _remove_part(system: Any, path: str, n_bytes: int) -> None:
    """Remove what an interrupted write left; a file of the full size is an earlier, complete one."""
    with suppress(OSError):
        found = system.get_file_info(path)
        if found.is_file and found.size != n_bytes:
            system.delete_file(path)


def _under(name: str) -> str:
    """As in a folder: the first two characters, then the name."""
    return f"{name[:2]}/{name}"


@lru_cache(maxsize=8)
def _opened(url: str) -> tuple[Any, str]:
    import pyarrow
    from pyarrow import fs

    try:
        system, folder = fs.FileSystem.from_uri(url)
    except (pyarrow.ArrowException, OSError) as error:
        raise _no_place(url, str(error).partition("\n")[0]) from error
    return system, str(folder)


def _no_place(url: str, why: str) -> ConfigError:
    return ConfigError(
        "there is no place for results at this URL",
        where="option 'run.tasks'",
        got=f"{url.partition('?')[0]}: {why}",
        expected="a folder, or s3://bucket/folder?region=…&endpoint_override=…&scheme=… as Arrow reads it",
        remedy="fix the URL; gs:// and hdfs:// work where Arrow has their libraries",
    )
