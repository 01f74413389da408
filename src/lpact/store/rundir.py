"""Run directories: a finished one opened for reading, and a new one written exclusively and published in one step.

::

    <out>.partial/            while the run is being made
        lock                  locked by the process that makes it
        study                 digest of the configuration
        tasks/                results of finished tasks (`lpact.store.tasks`)
        log.jsonl             what happened so far, and status.json (`lpact.run.journal`)
        run/                  the tables and the manifest, just before they are published
    <out>/                    appears by one rename, complete
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, Self

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from lpact.config import StudyConfig, study_config
from lpact.errors import RunError, did_you_mean
from lpact.store.disk import (
    LOCK_NAME,
    TEMPORARY,
    FolderLock,
    atomic_write_bytes,
    sha256_file,
    storage_errors,
    sync_folder,
)
from lpact.store.frames import read_table, table_path, write_table
from lpact.store.manifest import (
    MANIFEST_NAME,
    Manifest,
    Provenance,
    build_manifest,
    read_manifest,
    refuse_locked,
    write_manifest,
)
from lpact.store.tasks import TaskStore
from lpact.tables import Table, declared_tables, find_table
from lpact.wording import listed

STUDY_NAME = "study"
TASKS_NAME = "tasks"
WORKING = frozenset({LOCK_NAME, STUDY_NAME, TASKS_NAME, "run", "log.jsonl", "status.json"})
"""Names in a working folder."""

RunState = Literal["absent", "complete", "other"]


class StoredRun:
    """A published run: its manifest, and its tables, read once and compared with their checksums."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.manifest: Manifest = read_manifest(self.root)
        self._checksums = {file.path: file.sha256 for file in self.manifest.outputs}
        self._frames: dict[str, pl.DataFrame] = {}

    def __repr__(self) -> str:
        return f"StoredRun({str(self.root)!r})"

    @cached_property
    def config(self) -> StudyConfig:
        """The configuration that the run was made with; a `ConfigError` if it cannot be read here."""
        return study_config(self.manifest.config, where=f"{self.root}, {MANIFEST_NAME}")

    def tables(self) -> list[Table]:
        """Return the tables of the run, in the order of their declaration."""
        names = {path.removesuffix(".parquet") for path in self._checksums if path.endswith(".parquet")}
        declared = declared_tables()
        if unknown := sorted(names - declared.keys()):
            raise RunError(
                "the run has tables of an analysis that is not installed",
                where=str(self.root / MANIFEST_NAME),
                got=", ".join(unknown[:3]),
                expected="an installed analysis that declares them",
                remedy=f"install {', '.join(self.manifest.plugins) or 'the package that made the run'}",
            )
        return [table for name, table in declared.items() if name in names]

    def find_table(self, name: str) -> Table:
        """The declaration of a table by name; a short name that several analyses use is that of this run."""
        return find_table(name, [path.removesuffix(".parquet") for path in self._checksums])

    def table(self, name: str) -> pl.DataFrame:
        """Return a table by name; its folder may be left out."""
        declared = self.find_table(name)
        if declared.name not in self._frames:
            self._frames[declared.name] = self._read(declared)
        return self._frames[declared.name]

    def n_rows(self, name: str) -> int:
        """Rows of a table, from the file's footer where it has not been read."""
        declared = self.find_table(name)
        if declared.name in self._frames:
            return self._frames[declared.name].height
        try:
            return int(pq.read_metadata(table_path(self.root, declared)).num_rows)
        except (OSError, pa.ArrowException):
            return self.table(name).height

    def _read(self, table: Table) -> pl.DataFrame:
        path, checksum = table_path(self.root, table), self.checksum(table)
        if path.is_file() and sha256_file(path) != checksum:
            raise table_changed(path, table, "another SHA-256 than the manifest lists", checksum)
        return read_table(self.root, table)

    def checksum(self, table: Table) -> str:
        """SHA-256 of a table's Parquet file as the manifest lists it; a `RunError` if the run has no such table."""
        listed = self._checksums.get(f"{table.name}.parquet")
        if listed is None:
            raise RunError(
                f"the run has no table '{table.name}'",
                where=str(self.root / MANIFEST_NAME),
                got=f"{len(self.tables())} other tables",
                expected="a table that the run wrote",
                remedy=did_you_mean(table.name, [present.name for present in self.tables()]),
            )
        return listed


def table_changed(path: Path, table: Table, got: str, expected: str) -> RunError:
    """The error about a table's file that is not the one that was published."""
    return RunError(
        f"the table '{table.name}' has changed since the run was published",
        where=str(path),
        got=got,
        expected=expected,
        remedy="restore the file from a copy, or run the study again",
    )


class LazyTables(Mapping[str, pl.DataFrame]):
    """Tables by full name, each made by a function whenever it is read."""

    def __init__(self, makers: Mapping[str, Callable[[], pl.DataFrame]]) -> None:
        self.makers = dict(makers)

    @classmethod
    def layered(cls, *tables: Mapping[str, pl.DataFrame]) -> LazyTables:
        """Several mappings as one: the first that has a table gives it."""
        first = {name: own for own in reversed(tables) for name in own}
        return cls({name: partial(own.__getitem__, name) for name, own in first.items()})

    def __getitem__(self, name: str) -> pl.DataFrame:
        return self.makers[name]()

    def __contains__(self, name: object) -> bool:
        return name in self.makers  # the inherited test would make the table

    def __iter__(self) -> Iterator[str]:
        return iter(self.makers)

    def __len__(self) -> int:
        return len(self.makers)


class RunTables(LazyTables):
    """The tables of a run by full name."""

    def __init__(self, run: StoredRun) -> None:
        super().__init__({table.name: partial(run.table, table.name) for table in run.tables()})


def existing_run(out: str | Path, digest: str) -> RunState:
    """What is at ``out``.

    ``absent``: nothing, or an empty folder. ``complete``: a published run of the configuration
    ``digest``; `lpact.store.differences` says whether its inputs or code have changed since.
    ``other``: anything else, which must not be overwritten.
    """
    out = Path(out)
    with storage_errors(out, "the output folder cannot be read"):
        if not out.exists() and not out.is_symlink():
            return "absent"
        if not out.is_dir():
            return "other"
        if next(out.iterdir(), None) is None:
            return "absent"
    try:
        manifest = read_manifest(out)
    except RunError:
        return "other"
    return "complete" if manifest.config_digest == digest else "other"


def refuse_other_run(out: Path, digest: str) -> None:
    """Refuse an output folder to which a run of the configuration ``digest`` cannot be moved at the end."""
    found, remedy = "", "choose another output folder (--out), or move this one away"
    if out.is_symlink() or os.path.ismount(out):
        found = "a symbolic link" if out.is_symlink() else "a mount point"
        remedy = f"name a folder inside it, such as {out / 'run'}"
    elif (state := existing_run(out, digest)) == "complete":
        found = "a published run of the same configuration"
    elif state == "other":
        found = "other files, or a run of another configuration"
    if found:
        raise RunError(
            "the output folder cannot be used",
            where=str(out),
            got=found,
            expected="a folder that does not exist yet, or an empty one",
            remedy=remedy,
        )


class RunWriter:
    """The one process that may make the run ``out``; use it as a context manager.

    Opening it refuses an ``out`` that is not empty and takes the lock. ``tasks`` keeps results of
    finished tasks by content, in the working folder unless another place is given; those of an
    interrupted run are found again. Leaving the block before `publish` keeps them.
    """

    def __init__(self, out: str | Path, provenance: Provenance, tasks: TaskStore | None = None) -> None:
        self.out = Path(os.path.abspath(out))
        self.provenance = provenance
        refuse_locked(self.out)
        refuse_other_run(self.out, provenance.config_digest)
        self.partial = partial_folder(self.out)
        refuse_foreign(self.partial)
        self._lock = FolderLock(self.partial)
        try:
            self.tasks = self._open(tasks)
        except BaseException:
            # The caller never gets this object, so its lock is released here.
            self._lock.release()
            raise

    def _open(self, tasks: TaskStore | None) -> TaskStore:
        """Make the working folder ready, now that it is locked; returns the place for results."""
        try:
            # Another process may have published between the first look and the lock.
            refuse_other_run(self.out, self.provenance.config_digest)
        except RunError:
            if not (self.partial / TASKS_NAME).exists():
                shutil.rmtree(self.partial, ignore_errors=True)
            raise
        # A process that was killed may have left unfinished files; only we write here now.
        with storage_errors(self.partial, "leftovers of an earlier attempt cannot be removed"):
            for path in self.partial.rglob(f".*{TEMPORARY}"):
                path.unlink(missing_ok=True)
        atomic_write_bytes(self.partial / STUDY_NAME, self.provenance.config_digest.encode())
        if tasks is not None:
            tasks.sweep()
        return tasks or TaskStore(self.partial / TASKS_NAME)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the lock; finished tasks stay for the next run."""
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
        return further tables. ``last`` is called at the end and returns files to write next to the manifest.
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


def partial_folder(out: Path) -> Path:
    """The working folder of a run, next to it."""
    return out.with_name(f"{out.name}.partial")


def clear_leftovers(out: str | Path, config_digest: str) -> None:
    """Remove the working folder of a published run, where its process ended between publishing and removing it.

    A folder with anything else, or with the work of another study, is left alone.
    """
    partial = partial_folder(Path(os.path.abspath(out)))
    if not partial.is_dir() or foreign(partial):
        return
    try:
        if (partial / STUDY_NAME).read_text() != config_digest:
            return
    except FileNotFoundError:
        if (partial / TASKS_NAME).exists():
            return
    try:
        lock = FolderLock(partial)
    except RunError:
        return  # another process is working there
    _remove(partial)
    lock.release()


def _remove(partial: Path) -> None:
    """Remove a working folder; study and lock go last."""
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


def foreign(partial: Path) -> list[str]:
    """Names in a working folder that are not lpact's."""
    with storage_errors(partial, "the working folder cannot be read"):
        if not partial.is_dir():
            return []
        names = sorted(path.name for path in partial.iterdir())
    return [name for name in names if name not in WORKING and not (name.startswith(".") and name.endswith(TEMPORARY))]


def refuse_foreign(partial: Path) -> None:
    """Raise `RunError` where the working folder's place is taken by something else, which would be removed with it."""
    if found := foreign(partial):
        raise RunError(
            "the working folder contains other files",
            where=str(partial),
            got=f"{listed(found, 1)} in it",
            expected="no such folder, or one that an interrupted run has left",
            remedy="move it away, or choose another output folder",
        )
