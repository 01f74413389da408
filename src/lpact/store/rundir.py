"""Writing a run directory: exclusive, resumable, and published in one step.

::

    <out>.partial/            while the run is being made
        lock                  held by the process that makes it
        study                 digest of the configuration
        tasks/                results of finished tasks (`lpact.store.tasks`)
        log.jsonl             what happened so far, and status.json (`lpact.run.journal`)
        run/                  the tables and the manifest, just before they are published
    <out>/                    appears by one rename, complete
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import polars as pl

from lpact.errors import RunError
from lpact.store.disk import TEMPORARY, atomic_write_bytes, storage_errors, sync_folder
from lpact.store.files import write_table
from lpact.store.folder_lock import LOCK_NAME, FolderLock
from lpact.store.manifest import (
    Provenance,
    build_manifest,
    refuse_locked,
    write_manifest,
)
from lpact.store.shelves import FolderShelf
from lpact.store.stored import StoredRun, existing_run
from lpact.store.tasks import TaskStore
from lpact.tables import find_table


class RunWriter:
    """The one process that may make the run ``out``; use it as a context manager.

    Opening it refuses an ``out`` that is not empty and takes the lock. ``tasks`` keeps results of
    finished tasks by content, in the working folder unless another place is given; those of an
    interrupted run are found again. Leaving the block before `publish` keeps them.
    """

    def __init__(
        self, out: str | Path, provenance: Provenance, tasks: TaskStore | None = None
    ) -> None:
        self.out = Path(os.path.abspath(out))
        self.provenance = provenance
        refuse_locked(self.out)
        self._refuse_taken()
        self.partial = partial_folder(self.out)
        refuse_foreign(self.partial)
        self._lock = FolderLock(self.partial)
        try:
            self.tasks = self._open(tasks)
        except BaseException:
            # Nobody has this object, so nobody could let go of its lock.
            self._lock.release()
            raise

    def _open(self, tasks: TaskStore | None) -> TaskStore:
        """Make the working folder ready, now that it is locked; returns the place for results."""
        try:
            # Another process may have published between the first look and the lock.
            self._refuse_taken()
        except RunError:
            self._remove_unused_partial()
            raise
        _sweep(self.partial)
        atomic_write_bytes(self.partial / STUDY_NAME, self.provenance.config_digest.encode())
        if tasks is not None and isinstance(tasks.shelf, FolderShelf):
            tasks.shelf.sweep()
        return tasks or TaskStore.at(self.partial / TASKS_NAME)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the lock; finished tasks stay for the next run."""
        self._lock.release()

    def publish(
        self,
        tables: Mapping[str, pl.DataFrame],
        *,
        wrote: Callable[[], None] = lambda: None,
        then: Callable[[Mapping[str, int]], Mapping[str, pl.DataFrame]] = lambda _: {},
        last: Callable[[], Mapping[str, bytes]] = dict,
    ) -> StoredRun:
        """Write the tables (by name) and the manifest, move them into place, remove the working folder.

        Tables are read one at a time. ``wrote`` is called after each, ``then`` with the number of rows of all: it may
        return further tables. ``last`` is called at the end and returns files to write beside the manifest.
        """
        run = self.partial / "run"
        with storage_errors(run, "an earlier attempt to publish cannot be removed"):
            if run.exists():
                shutil.rmtree(run)
            run.mkdir()
        n_rows = {}
        for name in sorted(tables):
            frame = tables[name]
            write_table(frame, find_table(name), run)
            n_rows[name] = frame.height
            wrote()
        for name, frame in then(n_rows).items():
            write_table(frame, find_table(name), run)
        write_manifest(run, build_manifest(run, self.provenance))
        for name, content in last().items():
            atomic_write_bytes(run / name, content)
        with storage_errors(self.out, "the finished run cannot be moved to its place"):
            # Replaces an empty folder at most; fails on one that has been filled meanwhile.
            run.rename(self.out)
            sync_folder(self.out.parent)
        # What a process that is about to end still writes there is removed when the run is opened again.
        _remove(self.partial)
        self.close()
        return StoredRun(self.out)

    def _refuse_taken(self) -> None:
        """Refuse an output folder to which the run cannot be moved at the end."""
        found, remedy = "", "choose another output folder, or move this one away"
        if self.out.is_symlink() or os.path.ismount(self.out):
            found = "a symbolic link" if self.out.is_symlink() else "a mount point"
            remedy = f"name a folder inside it, such as {self.out / 'run'}"
        elif (state := existing_run(self.out, self.provenance.config_digest)) == "complete":
            found = "a published run of the same configuration"
        elif state == "other":
            found = "other files, or a run of another configuration"
        if found:
            raise RunError(
                "the output folder is taken",
                where=str(self.out),
                got=found,
                expected="a folder that does not exist yet, or an empty one",
                remedy=remedy,
            )

    def _remove_unused_partial(self) -> None:
        if not (self.partial / TASKS_NAME).exists():
            shutil.rmtree(self.partial, ignore_errors=True)


def partial_folder(out: Path) -> Path:
    """The working folder of a run, beside it."""
    return out.with_name(f"{out.name}.partial")


def clear_leftovers(out: str | Path, config_digest: str) -> None:
    """Remove the working folder of a published run, where its process ended between publishing and removing it.

    A folder that holds anything else, or the work of another study, is left alone.
    """
    partial = partial_folder(Path(os.path.abspath(out)))
    if not partial.is_dir() or foreign(partial) or not _belongs(partial, config_digest):
        return
    try:
        lock = FolderLock(partial)
    except RunError:
        return  # somebody is at work there
    _remove(partial)
    lock.release()


def _belongs(partial: Path, config_digest: str) -> bool:
    """Whether a working folder is that of a configuration; one without its name has nothing left to lose."""
    try:
        return (partial / STUDY_NAME).read_text() == config_digest
    except FileNotFoundError:
        return not (partial / TASKS_NAME).exists()


def _remove(partial: Path) -> None:
    """Remove a working folder; whose it is, and that somebody is at it, is known until all else is gone."""
    last = (STUDY_NAME, LOCK_NAME)
    for name in [p.name for p in partial.iterdir() if p.name not in last] + list(last):
        path = partial / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink(missing_ok=True)
    with suppress(OSError):
        partial.rmdir()


STUDY_NAME = "study"
TASKS_NAME = "tasks"
WORKING = frozenset({LOCK_NAME, STUDY_NAME, TASKS_NAME, "run", "log.jsonl", "status.json"})
"""What a working folder holds."""


def foreign(partial: Path) -> list[str]:
    """Names in a working folder that are not lpact's."""
    with storage_errors(partial, "the working folder cannot be read"):
        if not partial.is_dir():
            return []
        names = sorted(path.name for path in partial.iterdir())
    return [name for name in names if name not in WORKING and not is_temporary(name)]


def refuse_foreign(partial: Path) -> None:
    """Raise `RunError` where the working folder's place is taken by something else, which would be removed with it."""
    if found := foreign(partial):
        raise RunError(
            "the place of the working folder is taken",
            where=str(partial),
            got=f"{found[0]} in it" + (f", and {len(found) - 1} more" if len(found) > 1 else ""),
            expected="no such folder, or one that an interrupted run has left",
            remedy="move it away, or choose another output folder",
        )


def is_temporary(name: str) -> bool:
    """Whether a file is one that was being written."""
    return name.startswith(".") and name.endswith(TEMPORARY)


def _sweep(folder: Path) -> None:
    """Remove what a process that was killed had begun to write; whoever holds the lock is the only one who writes."""
    with storage_errors(folder, "leftovers of an earlier attempt cannot be removed"):
        for path in folder.rglob(f".*{TEMPORARY}"):
            path.unlink(missing_ok=True)
