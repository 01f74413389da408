"""Recordings on their event grids, cached on disk.

A signal of gigabytes becomes a grid of megabytes, which the audit and every worker process need. It is made once, and
made again when anything that it depends on changes: the dataset's files, the reader and its options, preprocessing and
grid options, or lpact itself. Nothing here changes a number.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import io
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from lpact.codes import Reason
from lpact.config import DatasetConfig
from lpact.datasets.base import DATASETS, Dataset, Finding, RecordingId, Stimulus, Units
from lpact.datasets.validate import check_recording
from lpact.errors import RunError
from lpact.grid import EventGrid, Exclusion, read_grid
from lpact.preprocess import preprocess
from lpact.store import SIGNAL_LIBRARIES, atomic_write_bytes, code_digest
from lpact.validation import json_digest

KEEP_AFTER_S = 1.0
"""A grid that took longer than this to make is cached."""


@dataclass(frozen=True)
class OnGrid:
    """A recording on its event grid.

    ``grid`` has all units, ``usable`` the indices of those that can be used; without samples, units or words there
    is no grid. ``findings`` are those of the reader, the preprocessing and the units.
    """

    where: str
    n_samples: int
    sampling_rate_hz: float | None
    n_units: int
    grid: EventGrid | None
    usable: tuple[int, ...]
    findings: tuple[Finding, ...]


Place = Callable[[Dataset, RecordingId, Stimulus, DatasetConfig], OnGrid]


def put_on_grid(dataset: Dataset, recording_id: RecordingId, stimulus: Stimulus, entry: DatasetConfig) -> OnGrid:
    """Read a recording, preprocess it, and take its responses to the words."""
    config = entry.preprocess
    recording = preprocess(dataset.recording(recording_id), config)
    check_recording(recording)
    shape = recording.signal.values.shape
    grid: EventGrid | None = None
    usable: tuple[int, ...] = ()
    findings = recording.findings
    if 0 not in (*shape[-2:], stimulus.words.height):
        read = read_grid(recording, stimulus, entry.grid, config)
        grid, usable = read.grid, tuple(read.usable)
        findings = (*findings, *read.findings)
    return OnGrid(
        where=recording.where,
        n_samples=shape[-2],
        sampling_rate_hz=getattr(recording.signal, "sampling_rate_hz", None),
        n_units=len(recording.units.ids),
        grid=grid,
        usable=usable,
        findings=findings,
    )


class GridCache:
    """Grids of one study's datasets, in a folder.

    ``known`` returns the digest of a dataset's files by its name, as it was when the study began. A grid is cached only
    if the files are still the same after the recording was read. A folder that cannot be written is not used.
    """

    def __init__(self, folder: Path, known: Callable[[str], str], *, keep_after_s: float = KEEP_AFTER_S) -> None:
        self._folder = folder
        self._known = known
        self._keep_after_s = keep_after_s

    def place(self, dataset: Dataset, recording_id: RecordingId, stimulus: Stimulus, entry: DatasetConfig) -> OnGrid:
        """Return a recording on its grid: the cached one, or a new one."""
        # One file for each recording and its options; the key identifies the sources.
        name = json_digest({"recording": asdict(recording_id), "entry": entry.model_dump(mode="json")})[:32]
        path = self._folder / f"{name}.npz"
        files = self._known(entry.name)
        key = _key(name, stimulus, entry, files)
        if (cached := _read(path, key)) is not None:
            return cached
        began = time.perf_counter()
        made = put_on_grid(dataset, recording_id, stimulus, entry)
        slow = time.perf_counter() - began > self._keep_after_s
        if slow and made.grid is not None and fingerprint(dataset) == files:
            with suppress(RunError):
                atomic_write_bytes(path, _pack(made, key))
        return made


def fingerprint(dataset: Dataset) -> str:
    """Digest of a dataset's files by path and content."""
    return json_digest({file.path: file.sha256 for file in dataset.source_files()})[:32]


def _key(name: str, stimulus: Stimulus, entry: DatasetConfig, files: str) -> str:
    """Digest of everything that a grid depends on."""
    words = hashlib.sha256()
    for column in ("word", "story_id", "sentence_id", "onset_s", "offset_s"):
        words.update("\x1f".join(map(str, stimulus.words[column])).encode())
    versions = {}
    for library in ("numpy", "scipy", *SIGNAL_LIBRARIES):
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[library] = importlib.metadata.version(library)
    parts = {"slot": name, "files": files, "reader": _reader(entry.reader), "words": words.hexdigest()}
    return json_digest(parts | {"code": code_digest(), "libraries": versions})[:32]


def _reader(name: str) -> str:
    """The reader's package, version and source: a plug-in may change while lpact does not."""
    source = inspect.getsourcefile(DATASETS.get(name))
    code = Path(source).read_bytes() if source else b""
    return f"{DATASETS.origin(name)} {hashlib.sha256(code).hexdigest()}"


# --- On disk: a tree of records as JSON, and its arrays ---------------------------------

_RECORDS = {record.__name__: record for record in (OnGrid, EventGrid, Units, Exclusion, Finding)}


def _pack(made: OnGrid, key: str) -> bytes:
    arrays: list[Any] = []
    tree = json.dumps({"key": key, "value": _plain(made, arrays)}).encode()
    buffer = io.BytesIO()
    np.savez(buffer, np.frombuffer(tree, dtype=np.uint8), *arrays)
    return buffer.getvalue()


def _plain(value: Any, arrays: list[Any]) -> Any:
    """A value of JSON for a record; arrays are appended to ``arrays`` and replaced by their numbers."""
    if is_dataclass(value):
        cells = {f.name: _plain(getattr(value, f.name), arrays) for f in fields(value)}
        return {"record": type(value).__name__, "cells": cells}
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": len(arrays)}
    if isinstance(value, sparse.csr_array):
        parts = [_plain(part, arrays) for part in (value.data, value.indices, value.indptr)]
        return {"csr": parts, "shape": value.shape}
    return [_plain(item, arrays) for item in value] if isinstance(value, tuple) else value


def _read(path: Path, key: str) -> OnGrid | None:
    """The cached grid; None if there is none, or it is of other sources, damaged, or from another lpact."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            tree = json.loads(stored["arr_0"].tobytes())
            found = _restored(tree["value"], stored) if tree["key"] == key else None
            return found if isinstance(found, OnGrid) else None
    except Exception:
        # A damaged file can fail in many ways, and costs no more than making the grid again.
        return None


def _restored(value: Any, stored: Mapping[str, Any]) -> Any:
    """The inverse of `_plain`."""
    if isinstance(value, list):
        return tuple(_restored(item, stored) for item in value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return stored[f"arr_{value['array']}"]
    if "csr" in value:
        return sparse.csr_array(_restored(value["csr"], stored), shape=tuple(value["shape"]))
    cells = {name: _restored(cell, stored) for name, cell in value["cells"].items()}
    if "reason" in cells:
        cells["reason"] = Reason(cells["reason"])
    return _RECORDS[value["record"]](**cells)
