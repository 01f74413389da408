"""Writing a run directory: exclusive, resumable, and published in one step.

::

    <out>.partial/            while the run is being made
        lock                  held by the process that makes it
        tasks/<identity>/     finished tasks (`lpact.store.tasks`)
        run/                  the tables and the manifest, just before they are published
    <out>/                    appears by one rename, complete
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Self

import polars as pl

from lpact.errors import RunError
from lpact.store._disk import atomic_write_bytes, storage_errors, sync_folder
from lpact.store._lock import FolderLock
from lpact.store.files import write_table
from lpact.store.manifest import (
    REPORT_FOLDER,
    Provenance,
    build_manifest,
    code_digest,
    library_versions,
    lpact_version,
    write_manifest,
)
from lpact.store.stored import StoredRun, existing_run
from lpact.store.tasks import TaskStore
from lpact.tables import find_table


class RunWriter:
    """The one process that may make the run ``out``; use it as a context manager.

    Opening it refuses an ``out`` that is not empty and takes the lock. Tasks saved by an
    interrupted run are found again by a run of the same configuration, inputs and versions.
    Leaving the block before `publish` keeps them.
    """

    def __init__(self, out: str | Path, provenance: Provenance) -> None:
        self.out = Path(os.path.abspath(out))
        self.provenance = provenance
        self._refuse_unmovable()
        self._refuse_existing()
        self.partial = self.out.with_name(f"{self.out.name}.partial")
        self._lock = FolderLock(self.partial)
        try:
            # Another process may have published between the first look and the lock.
            self._refuse_existing()
        except RunError:
            self._remove_unused_partial()
            self._lock.release()
            raise
        self.tasks = TaskStore(self.partial / "tasks" / run_identity(provenance))

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

    def save_task(self, key: str, frames: Mapping[str, pl.DataFrame]) -> None:
        """Keep the frames of a finished task."""
        self.tasks.save_task(key, frames)

    def load_task(self, key: str) -> dict[str, pl.DataFrame] | None:
        """Return the frames of a finished task, or None."""
        return self.tasks.load_task(key)

    def publish(
        self, frames: Mapping[str, pl.DataFrame], report: Mapping[str, str] | None = None
    ) -> StoredRun:
        """Write the tables (by name) and the manifest, move them into place, remove the tasks.

        ``report`` holds pages and pictures by file name; they go into ``report/``, beside the tables they are made of.
        """
        run = self.partial / "run"
        with storage_errors(run, "an earlier attempt to publish cannot be removed"):
            if run.exists():
                shutil.rmtree(run)
            run.mkdir()
        for name in sorted(frames):
            write_table(frames[name], find_table(name), run)
        for name, text in sorted((report or {}).items()):
            atomic_write_bytes(run / REPORT_FOLDER / name, text.encode())
        write_manifest(run, build_manifest(run, self.provenance))
        with storage_errors(self.out, "the finished run cannot be moved to its place"):
            # Replaces an empty folder at most; fails on one that has been filled meanwhile.
            run.rename(self.out)
            sync_folder(self.out.parent)
        with storage_errors(self.partial, "the run is published, but its working folder remains"):
            shutil.rmtree(self.partial)
        self.close()
        return StoredRun(self.out)

    def _refuse_unmovable(self) -> None:
        """A link or a mount point cannot be replaced by a rename; better said now than after the work."""
        kind = "a symbolic link" if self.out.is_symlink() else "a mount point"
        if self.out.is_symlink() or os.path.ismount(self.out):
            raise RunError(
                "the output folder cannot be published to",
                where=str(self.out),
                got=kind,
                expected="a folder that does not exist yet, or an empty one",
                remedy=f"name a folder inside it, such as {self.out / 'run'}",
            )

    def _refuse_existing(self) -> None:
        state = existing_run(self.out, self.provenance.config_digest)
        if state == "complete":
            raise RunError(
                "the run is complete already",
                where=str(self.out),
                got="a published run of the same configuration",
                expected="a new or empty folder",
                remedy="read it as it is, or choose another output folder",
            )
        if state == "other":
            raise RunError(
                "the output folder is not empty",
                where=str(self.out),
                got="other files, or a run of another configuration",
                expected="a new or empty folder",
                remedy="choose another output folder, or move this one away",
            )

    def _remove_unused_partial(self) -> None:
        if not (self.partial / "tasks").exists():
            shutil.rmtree(self.partial, ignore_errors=True)


def run_identity(provenance: Provenance) -> str:
    """Name of what a task's result depends on: configuration, inputs and versions."""
    inputs = sorted((file.dataset, file.path, file.sha256) for file in provenance.inputs)
    parts = [
        provenance.config_digest,
        inputs,
        lpact_version(),
        code_digest(),
        sorted(library_versions(provenance.config).items()),
        provenance.plugins,
    ]
    return sha256(json.dumps(parts).encode()).hexdigest()[:16]
