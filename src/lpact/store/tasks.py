"""Results of finished tasks by key, kept so that an interrupted run can go on where it stopped."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import polars as pl

from lpact.errors import RunError
from lpact.store import bundle
from lpact.store.bundle import BundleError
from lpact.store.disk import storage_errors
from lpact.store.shelves import FolderShelf, Shelf

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
    """Results on a shelf: one bundle per task. It holds no handle, so worker processes can share it.

    ``mark`` is written with every result, and says under which registration it was made.
    """

    shelf: Shelf
    mark: str = ""

    @classmethod
    def at(cls, folder: Path) -> TaskStore:
        """Results in a folder."""
        return cls(FolderShelf(folder))

    def save(self, key: str, frames: Mapping[str, pl.DataFrame]) -> int:
        """Keep the frames of a finished task, in place of an earlier result of the same key."""
        content = bundle.pack(key, frames, self.mark)
        self.shelf.write(file_name(key), content)
        return len(content)

    def put(self, key: str, content: bytes) -> None:
        """Keep a bundle that was packed elsewhere; one that arrived damaged is a `RunError`."""
        try:
            bundle.check(lambda start, n: content[start : start + n], key, len(content))
        except _UNREADABLE as error:
            raise self._damaged(key, error) from error
        self.shelf.write(file_name(key), content)

    def content(self, key: str) -> bytes:
        """The whole bundle of a finished task, as it lies there."""
        name = file_name(key)
        with storage_errors(Path(self.shelf.where(name)), "a finished task cannot be read"):
            return self.shelf.read(name, 0, self.shelf.size(name) or 0)

    def load(self, key: str, names: Collection[str] | None = None) -> dict[str, pl.DataFrame]:
        """Return frames of a finished task; raises `RunError` where it is missing or damaged."""
        name = file_name(key)
        with storage_errors(Path(self.shelf.where(name)), "a finished task cannot be read"):
            try:
                return bundle.read_frames(
                    lambda start, n: self.shelf.read(name, start, n), key, names
                )
            except _UNREADABLE as error:
                raise self._damaged(key, error) from error

    def names(self, key: str) -> tuple[str, ...]:
        """Return the names of a task's frames."""
        return tuple(entry.name for entry in self._header(key).frames)

    def mark_of(self, key: str) -> str:
        """Return the mark of a finished task; empty where it was saved without one."""
        return self._header(key).mark

    def has(self, key: str) -> bool:
        """Whether something lies in a task's place; it is not read."""
        return self.shelf.size(file_name(key)) is not None

    def fault(self, key: str) -> str | None:
        """Return None for a whole result, ``""`` where there is none, or what is wrong with it."""
        name = file_name(key)
        size = self.shelf.size(name)
        if size is None:
            return ""
        with storage_errors(Path(self.shelf.where(name)), "a finished task cannot be read"):
            try:
                bundle.check(lambda start, n: self.shelf.read(name, start, n), key, size)
            except _UNREADABLE as error:
                return f"{self.shelf.where(name)}: {error}"
        return None

    def find(self, key: str) -> dict[str, pl.DataFrame] | None:
        """Return the frames of a finished task, or None; a damaged one is removed."""
        fault = self.fault(key)
        if fault is None:
            return self.load(key)
        if fault:
            self.remove(key)
        return None

    def remove(self, key: str) -> None:
        """Forget a task's result."""
        self.shelf.remove(file_name(key))

    def _header(self, key: str) -> bundle.Header:
        name = file_name(key)
        with storage_errors(Path(self.shelf.where(name)), "a finished task cannot be read"):
            try:
                return bundle.read_header(lambda start, n: self.shelf.read(name, start, n), key)
            except _UNREADABLE as error:
                raise self._damaged(key, error) from error

    def _damaged(self, key: str, error: Exception) -> RunError:
        return RunError(
            "the result of a finished task is damaged",
            where=self.shelf.where(file_name(key)),
            got=str(error),
            expected="the file as lpact wrote it",
            remedy="run again: it is computed anew",
        )


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
        """Return None for a result that is there, else ``""``."""
        return None if key in self.frames else ""

    def remove(self, key: str) -> None:
        """Forget a task's result."""
        self.frames.pop(key, None)


def file_name(key: str) -> str:
    """Name of a task's file; any text can be a key."""
    return f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.task"
