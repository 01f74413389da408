r"""Results of finished tasks by key, kept so that an interrupted run can resume.

A result is one file, written in one step: frames as Arrow IPC behind a header with their checksums.

::

    lpact-task 2 <SHA-256 of the header>\n
    <header: JSON with the task's key, a mark, and name, size and SHA-256 of every frame>\n
    <frames, one after the other>

The mark is the digest of the registration under which a result was made.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import polars as pl

from lpact.errors import RunError, TableError
from lpact.store.disk import TEMPORARY, atomic_write_bytes, storage_errors

MAGIC = "lpact-task 2"
OLD_S = 24 * 3600.0
_CANNOT_BE_READ = "a finished task cannot be read"


class DamagedResultError(ValueError):
    """Bytes that are not the complete result of the task."""


_UNREADABLE = (DamagedResultError, KeyError, TypeError, ValueError, pl.exceptions.PolarsError)


def pack(key: str, frames: Mapping[str, pl.DataFrame], mark: str = "") -> bytes:
    """A task's frames as the bytes of its file."""
    parts = {name: _to_ipc(name, frames[name]) for name in sorted(frames)}
    entries = [[name, len(content), _sha256(content)] for name, content in parts.items()]
    values = {"key": key, "mark": mark, "frames": entries}
    header = json.dumps(values, separators=(",", ":")).encode()
    return b"".join([f"{MAGIC} {_sha256(header)}\n".encode(), header, b"\n", *parts.values()])


def unpack(content: bytes, key: str) -> dict[str, pl.DataFrame]:
    """All frames of the task ``key``, from the bytes of its file."""
    return _read_frames(io.BytesIO(content), key)


def _read_header(file: BinaryIO, key: str) -> dict[str, Any]:
    """The checked header of a result, with the file at the first frame."""
    first = file.readline(len(MAGIC) + 66).decode("ascii", "replace")
    magic, _, digest = first.rstrip("\n").rpartition(" ")
    if magic != MAGIC:
        raise DamagedResultError("it does not begin like the result of a task")
    body = file.readline()
    if _sha256(body[:-1]) != digest:
        raise DamagedResultError("its header does not have its checksum")
    header: dict[str, Any] = json.loads(body)
    if header["key"] != key:
        raise DamagedResultError(f"it is the result of another task, {header['key'][:80]}")
    start, size = file.tell(), file.seek(0, io.SEEK_END)
    end = start + sum(n_bytes for _, n_bytes, _ in header["frames"])
    if end != size:
        raise DamagedResultError(f"it has {size} bytes instead of {end}")
    file.seek(start)
    return header


def _contents(file: BinaryIO, key: str, names: Collection[str] | None = None) -> Iterator[tuple[str, bytes]]:
    """Checked bytes of every frame, or of those in ``names``."""
    for name, n_bytes, digest in _read_header(file, key)["frames"]:
        if names is not None and name not in names:
            file.seek(n_bytes, io.SEEK_CUR)
            continue
        content = file.read(n_bytes)
        if _sha256(content) != digest:
            raise DamagedResultError(f"its frame '{name}' does not have its checksum")
        yield name, content


def _read_frames(file: BinaryIO, key: str, names: Collection[str] | None = None) -> dict[str, pl.DataFrame]:
    return {name: pl.read_ipc(io.BytesIO(own)) for name, own in _contents(file, key, names)}


def _check(file: BinaryIO, key: str) -> None:
    for _ in _contents(file, key):
        pass


def _to_ipc(name: str, frame: pl.DataFrame) -> bytes:
    for column, dtype in frame.schema.items():
        if dtype == pl.Object:
            raise TableError(
                "a task can keep plain columns only",
                where=f"frame '{name}', column '{column}'",
                got="Python objects",
                expected="numbers, text, booleans or lists of them",
                remedy="build the frame with lpact.store.frame",
            )
    buffer = io.BytesIO()
    frame.write_ipc(buffer, compression="zstd")
    return buffer.getvalue()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class TaskStore:
    """Results in a folder, one file per task. It keeps no file open, so worker processes can share it.

    Files are two levels deep, so that no folder has very many. ``mark`` is written with every result.
    """

    root: Path
    mark: str = ""

    def path(self, key: str) -> Path:
        """The file of a task; any text can be a key."""
        name = f"{_sha256(key.encode())[:40]}.task"
        return self.root / name[:2] / name

    def save(self, key: str, frames: Mapping[str, pl.DataFrame]) -> int:
        """Store the frames of a finished task, replacing an earlier result."""
        content = pack(key, frames, self.mark)
        atomic_write_bytes(self.path(key), content)
        return len(content)

    def put(self, key: str, content: bytes) -> None:
        """Store a result that was packed elsewhere; one that arrived damaged is a `RunError`."""
        with self._errors(key):
            _check(io.BytesIO(content), key)
        atomic_write_bytes(self.path(key), content)

    def content(self, key: str) -> bytes:
        """The bytes of a finished task; damaged ones are a `RunError`."""
        with self._errors(key), self._open(key) as file:
            _check(file, key)
            file.seek(0)
            return file.read()

    def load(self, key: str, names: Collection[str] | None = None) -> dict[str, pl.DataFrame]:
        """Frames of a finished task; a missing or damaged result is a `RunError`."""
        with self._errors(key), self._open(key) as file:
            return _read_frames(file, key, names)

    def names(self, key: str) -> tuple[str, ...]:
        """Names of a task's frames."""
        with self._errors(key), self._open(key) as file:
            return tuple(name for name, *_ in _read_header(file, key)["frames"])

    def mark_of(self, key: str) -> str:
        """The mark of a finished task; empty without one."""
        with self._errors(key), self._open(key) as file:
            return str(_read_header(file, key)["mark"])

    def has(self, key: str) -> bool:
        """Whether there is a file for a task; it is not read."""
        with self._errors(key):
            return self.path(key).exists()

    def fault(self, key: str) -> str | None:
        """None for an intact result, ``""`` without a result, or what is wrong with it."""
        with storage_errors(self.path(key), _CANNOT_BE_READ):
            try:
                with self._open(key) as file:
                    _check(file, key)
            except FileNotFoundError:
                return ""
            except _UNREADABLE as error:
                return f"{self.path(key)}: {error}"
        return None

    def sweep(self) -> None:
        """Remove unfinished files that are older than a day: other runs may be writing here."""
        with storage_errors(self.root, "leftovers of earlier runs cannot be removed"):
            for path in self.root.rglob(f".*{TEMPORARY}"):
                with suppress(FileNotFoundError):
                    if time.time() - path.stat().st_mtime > OLD_S:
                        path.unlink()

    def _open(self, key: str) -> BinaryIO:
        path = self.path(key)
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would block
            raise OSError(errno.EISDIR, "not a regular file", str(path))
        return path.open("rb")

    @contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        with storage_errors(self.path(key), _CANNOT_BE_READ):
            try:
                yield
            except _UNREADABLE as error:
                raise RunError(
                    "the result of a finished task is damaged",
                    where=str(self.path(key)),
                    got=str(error),
                    expected="the file as lpact wrote it",
                    remedy="run again: it is computed again",
                ) from error


@dataclass(frozen=True)
class MemoryTasks:
    """Results in this process alone, never written."""

    frames: dict[str, dict[str, pl.DataFrame]] = field(default_factory=dict)

    def save(self, key: str, frames: Mapping[str, pl.DataFrame]) -> int:
        """Keep the frames of a finished task."""
        self.frames[key] = dict(frames)
        return 0

    def load(self, key: str, names: Collection[str] | None = None) -> dict[str, pl.DataFrame]:
        """Frames of a finished task."""
        kept = self.frames[key]
        return {name: kept[name] for name in kept if names is None or name in names}

    def names(self, key: str) -> tuple[str, ...]:
        """Names of a task's frames."""
        return tuple(sorted(self.frames[key]))

    def fault(self, key: str) -> str | None:
        """None for an existing result, else ``""``."""
        return None if key in self.frames else ""


Results: TypeAlias = TaskStore | MemoryTasks
"""Results of tasks by key."""
