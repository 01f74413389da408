"""Results of finished tasks by key, kept so that an interrupted run can go on where it stopped."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import polars as pl

from lpact.errors import RunError
from lpact.store import bundle
from lpact.store.bundle import BundleError
from lpact.store.disk import storage_errors
from lpact.store.shelves import FolderShelf, Shelf

CANNOT_BE_READ = "a finished task cannot be read"
_UNREADABLE = (BundleError, KeyError, TypeError, ValueError, pl.exceptions.PolarsError)


class Results(Protocol):
    """What tasks have given, by key."""

    def save(self, key: str, frames: Mapping[str, pl.DataFrame]) -> int:
        """Keep a task's frames in place of an earlier result; returns their size in bytes."""
        ...

    def load(self, key: str, names: Collection[str] | None = None) -> dict[str, pl.DataFrame]:
        """Frames of a finished task, all or those of ``names``; a missing or damaged result is a `RunError`."""
        ...

    def names(self, key: str) -> tuple[str, ...]:
        """Names of the frames of a finished task."""
        ...

    def remove(self, key: str) -> None:
        """Forget a task's result."""
        ...

    def fault(self, key: str) -> str | None:
        """Look for a task's result: None if it is whole, ``""`` where there is none, or what is wrong with it."""
        ...


@dataclass(frozen=True)
class TaskStore:
    """Results on a shelf, one bundle per task. It holds no handle, so worker processes can share it.

    ``mark`` is written with every result: the digest of the registration under which it was made.
    """

    shelf: Shelf
    mark: str = ""

    @classmethod
    def at(cls, folder: Path) -> TaskStore:
        """Results in a folder."""
        return cls(FolderShelf(folder))

    def save(self, key: str, frames: Mapping[str, pl.DataFrame]) -> int:
        """Store the frames of a finished task, in place of an earlier result."""
        content = bundle.pack(key, frames, self.mark)
        self.shelf.write(file_name(key), content)
        return len(content)

    def put(self, key: str, content: bytes) -> None:
        """Store a bundle that was packed elsewhere; one that arrived damaged is a `RunError`."""
        with self._errors(key):
            bundle.check(lambda start, n: content[start : start + n], key, len(content))
        self.shelf.write(file_name(key), content)

    def content(self, key: str) -> bytes:
        """The complete bundle of a finished task; a damaged one is a `RunError`."""
        name = file_name(key)
        with self._errors(key):
            content = self.shelf.read(name, 0, self.shelf.size(name) or 0)
            bundle.check(lambda start, n: content[start : start + n], key, len(content))
        return content

    def load(self, key: str, names: Collection[str] | None = None) -> dict[str, pl.DataFrame]:
        """Return frames of a finished task; a missing or damaged result is a `RunError`."""
        with self._errors(key):
            return bundle.read_frames(self._reader(key), key, names)

    def names(self, key: str) -> tuple[str, ...]:
        """Return the names of a task's frames."""
        with self._errors(key):
            return tuple(e.name for e in bundle.read_header(self._reader(key), key).frames)

    def mark_of(self, key: str) -> str:
        """Return the mark of a finished task; empty without one."""
        with self._errors(key):
            return bundle.read_header(self._reader(key), key).mark

    def has(self, key: str) -> bool:
        """Whether there is a file for a task; it is not read."""
        return self.shelf.size(file_name(key)) is not None

    def fault(self, key: str) -> str | None:
        """Return None for an intact result, ``""`` without a result, or what is wrong with it."""
        name = file_name(key)
        size = self.shelf.size(name)
        if size is None:
            return ""
        with storage_errors(Path(self.shelf.where(name)), CANNOT_BE_READ):
            try:
                bundle.check(self._reader(key), key, size)
            except _UNREADABLE as error:
                return f"{self.shelf.where(name)}: {error}"
        return None

    def remove(self, key: str) -> None:
        """Remove a task's result."""
        self.shelf.remove(file_name(key))

    def _reader(self, key: str) -> bundle.ReadRange:
        return lambda start, n: self.shelf.read(file_name(key), start, n)

    @contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        where = self.shelf.where(file_name(key))
        with storage_errors(Path(where), CANNOT_BE_READ):
            try:
                yield
            except _UNREADABLE as error:
                raise RunError(
                    "the result of a finished task is damaged",
                    where=where,
                    got=str(error),
                    expected="the file as lpact wrote it",
                    remedy="run again: it is computed again",
                ) from error


@dataclass(frozen=True)
class MemoryTasks:
    """Results in this process alone: for studies that are made, looked at and forgotten."""

    frames: dict[str, dict[str, pl.DataFrame]] = field(default_factory=dict)

    def save(self, key: str, frames: Mapping[str, pl.DataFrame]) -> int:
        """Keep the frames of a finished task."""
        self.frames[key] = dict(frames)
        return 0

    def load(self, key: str, names: Collection[str] | None = None) -> dict[str, pl.DataFrame]:
        """Return frames of a finished task."""
        kept = self.frames[key]
        return {name: kept[name] for name in kept if names is None or name in names}

    def names(self, key: str) -> tuple[str, ...]:
        """Return the names of a task's frames."""
        return tuple(sorted(self.frames[key]))

    def fault(self, key: str) -> str | None:
        """Return None for an existing result, else ``""``."""
        return None if key in self.frames else ""

    def remove(self, key: str) -> None:
        """Forget a task's result."""
        self.frames.pop(key, None)


def file_name(key: str) -> str:
    """Name of a task's file; any text can be a key."""
    return f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.task"
