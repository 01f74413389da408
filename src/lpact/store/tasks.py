"""Finished pieces of a run, kept so that an interrupted run can go on where it stopped.

One folder a task: an Arrow IPC file for each frame, and an index (its own checksum, then JSON with
theirs). The index is written last, so that a task exists completely or not at all.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from lpact.errors import TableError
from lpact.store._disk import atomic_write_bytes, storage_errors

INDEX_NAME = "index"


@dataclass(frozen=True)
class TaskStore:
    """Task results under one folder. It holds no handle, so worker processes can share it."""

    root: Path

    def folder(self, key: str) -> Path:
        """Return the folder of a task; any text can be a key."""
        return self.root / hashlib.sha256(key.encode()).hexdigest()[:32]

    def save_task(self, key: str, frames: Mapping[str, pl.DataFrame]) -> None:
        """Keep the frames of a finished task, in place of an earlier result of the same key."""
        folder = self.folder(key)
        self._remove(folder)
        entries = []
        for number, name in enumerate(sorted(frames)):
            content = _to_ipc(name, frames[name])
            file = f"{number:03d}.arrow"
            atomic_write_bytes(folder / file, content)
            entries.append({"name": name, "file": file, "sha256": _sha256(content)})
        body = json.dumps({"key": key, "frames": entries}).encode()
        atomic_write_bytes(folder / INDEX_NAME, f"{_sha256(body)}\n".encode() + body)

    def load_task(self, key: str) -> dict[str, pl.DataFrame] | None:
        """Return the frames of a finished task, or None; a damaged or unfinished one is removed."""
        folder = self.folder(key)
        with storage_errors(folder, "a finished task cannot be read"):
            if not folder.is_dir():
                return None
            try:
                return _read_task(folder, key)
            except (FileNotFoundError, KeyError, TypeError, ValueError, pl.exceptions.PolarsError):
                self._remove(folder)
                return None

    def _remove(self, folder: Path) -> None:
        with storage_errors(folder, "an old task cannot be removed"):
            if folder.exists():
                # Without its index a task is absent, should the removal be cut short.
                (folder / INDEX_NAME).unlink(missing_ok=True)
                shutil.rmtree(folder)


def _read_task(folder: Path, key: str) -> dict[str, pl.DataFrame]:
    checksum, _, body = (folder / INDEX_NAME).read_bytes().partition(b"\n")
    if _sha256(body).encode() != checksum:
        raise ValueError("the index does not have its checksum")
    index: dict[str, Any] = json.loads(body)
    if index["key"] != key:
        raise ValueError(f"the folder holds the task {index['key']}")
    frames = {}
    for entry in index["frames"]:
        content = (folder / Path(entry["file"]).name).read_bytes()
        if _sha256(content) != entry["sha256"]:
            raise ValueError(f"{entry['file']} does not have its checksum")
        frames[entry["name"]] = pl.read_ipc(io.BytesIO(content))
    return frames


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
