"""Recordings on their event grids, kept on disk.

A signal of gigabytes becomes a grid of megabytes. The audit and every worker process need that grid; it is made once,
and made again when anything that it depends on changes: the dataset's files, the reader and its options, preprocessing
and grid options, or lpact itself. Nothing here changes a number.
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
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from lpact.codes import Reason
from lpact.config import DatasetConfig
from lpact.datasets.base import DATASETS, Dataset, RecordingId, Stimulus, Units
from lpact.datasets.validate import Finding
from lpact.errors import RunError
from lpact.grid import EventGrid, Exclusion
from lpact.inputs.on_grid import OnGrid, put_on_grid
from lpact.store import SIGNAL_LIBRARIES, atomic_write_bytes, code_digest

KEEP_AFTER_S = 1.0
"""A grid that took longer than this to make is kept."""

_GRID_ARRAYS = ("onset_s", "offset_s", "sentence", "story", "responses", "first_word", "stop_word")
_WEIGHTS = ("data", "indices", "indptr")
_REASONS = {reason.value: reason for reason in Reason}


class GridCache:
    """Grids of one study's datasets, in a folder.

    ``known`` gives the digest of a dataset's files by its name, as it was when the study began. A grid is kept only if
    the files are still the same after the recording was read. A folder that cannot be written is not used.
    """

    def __init__(
        self, folder: Path, known: Callable[[str], str], *, keep_after_s: float = KEEP_AFTER_S
    ) -> None:
        self._folder = folder
        self._known = known
        self._keep_after_s = keep_after_s

    def place(
        self, dataset: Dataset, recording_id: RecordingId, stimulus: Stimulus, entry: DatasetConfig
    ) -> OnGrid:
        """Return a recording on its grid: the kept one, or a new one."""
        path = self._folder / f"{self._slot(recording_id, entry)}.npz"
        files = self._known(entry.name)
        key = self._key(recording_id, stimulus, entry, files)
        if (kept := _read(path, key)) is not None:
            return kept
        began = time.perf_counter()
        made = put_on_grid(dataset, recording_id, stimulus, entry)
        slow = time.perf_counter() - began > self._keep_after_s
        if slow and made.grid is not None and fingerprint(dataset) == files:
            with suppress(RunError):
                atomic_write_bytes(path, _pack(made, made.grid, key))
        return made

    def _slot(self, recording_id: RecordingId, entry: DatasetConfig) -> str:
        """File name: one for each recording and way of looking at it, whatever its sources hold."""
        return _digest({"recording": asdict(recording_id), "entry": entry.model_dump(mode="json")})

    def _key(
        self, recording_id: RecordingId, stimulus: Stimulus, entry: DatasetConfig, files: str
    ) -> str:
        words = hashlib.sha256()
        for column in ("word", "story_id", "sentence_id", "onset_s", "offset_s"):
            words.update("\x1f".join(map(str, stimulus.words[column])).encode())
        return _digest(
            {
                "slot": self._slot(recording_id, entry),
                "files": files,
                "reader": _reader(entry.reader),
                "words": words.hexdigest(),
                "code": code_digest(),
                "libraries": _libraries(),
            }
        )


def fingerprint(dataset: Dataset) -> str:
    """Digest of a dataset's files by path and content."""
    return _digest({file.path: file.sha256 for file in dataset.source_files()})


def _reader(name: str) -> str:
    """The reader's package and version and its own source: a plugin may change while lpact does not."""
    source = inspect.getsourcefile(DATASETS.get(name))
    code = Path(source).read_bytes() if source else b""
    return f"{DATASETS.origin(name)} {hashlib.sha256(code).hexdigest()}"


def _libraries() -> dict[str, str]:
    """Versions of the libraries that signals are read and filtered with, where they are installed."""
    versions = {}
    for name in ("numpy", "scipy", *SIGNAL_LIBRARIES):
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def _digest(value: Mapping[str, object]) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _pack(made: OnGrid, grid: EventGrid, key: str) -> bytes:
    about = {
        "key": key,
        "where": made.where,
        "n_samples": made.n_samples,
        "sampling_rate_hz": made.sampling_rate_hz,
        "n_units": made.n_units,
        "usable": made.usable,
        "findings": [asdict(finding) for finding in made.findings],
        "lags_ms": grid.lags_ms,
        "reference_lag": grid.reference_lag,
        "n_words": grid.n_words,
        "pooling": grid.pooling,
        "exclusions": [asdict(exclusion) for exclusion in grid.exclusions],
        "n_candidate_events": grid.n_candidate_events,
        "fir_delays": grid.fir_delays,
        "unit_ids": grid.units.ids,
        "regions": grid.units.regions,
        "coordinate_frame": grid.units.coordinate_frame,
        "comparable": grid.units.comparable,
    }
    arrays: dict[str, Any] = {name: getattr(grid, name) for name in _GRID_ARRAYS}
    if grid.units.coordinates_mm is not None:
        arrays["coordinates_mm"] = grid.units.coordinates_mm
    if grid.weights is not None:
        arrays |= {f"weights_{part}": getattr(grid.weights, part) for part in _WEIGHTS}
    text = json.dumps(about, sort_keys=True).encode()
    buffer = io.BytesIO()
    np.savez(buffer, about=np.frombuffer(text, dtype=np.uint8), **arrays)
    return buffer.getvalue()


def _read(path: Path, key: str) -> OnGrid | None:
    """The kept grid, or None where there is none, or it is of other sources, torn, or from another lpact."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            about = json.loads(stored["about"].tobytes())
            if about["key"] != key:
                return None
            return _unpack(about, {name: stored[name] for name in stored.files})
    except Exception:
        # A damaged file can fail in many ways, and costs no more than making the grid again.
        return None


def _unpack(about: Mapping[str, Any], arrays: Mapping[str, Any]) -> OnGrid:
    units = Units(
        tuple(about["unit_ids"]),
        tuple(about["regions"]),
        arrays.get("coordinates_mm"),
        about["coordinate_frame"],
        about["comparable"],
    )
    n_words, n_delays = int(about["n_words"]), max(1, len(about["fir_delays"]))
    weights = None
    if "weights_data" in arrays:
        parts = tuple(arrays[f"weights_{part}"] for part in _WEIGHTS)
        weights = sparse.csr_array(parts, shape=(len(arrays["onset_s"]) * n_delays, n_words))
    grid = EventGrid(
        **{name: arrays[name] for name in _GRID_ARRAYS},
        lags_ms=tuple(about["lags_ms"]),
        reference_lag=int(about["reference_lag"]),
        units=units,
        n_words=n_words,
        pooling=about["pooling"],
        exclusions=tuple(
            Exclusion(_REASONS[e["reason"]], e["n_events"], e["detail"])
            for e in about["exclusions"]
        ),
        n_candidate_events=int(about["n_candidate_events"]),
        weights=weights,
        fir_delays=tuple(about["fir_delays"]),
    )
    return OnGrid(
        where=about["where"],
        n_samples=int(about["n_samples"]),
        sampling_rate_hz=about["sampling_rate_hz"],
        n_units=int(about["n_units"]),
        grid=grid,
        usable=tuple(about["usable"]),
        findings=tuple(Finding(**f | {"reason": _REASONS[f["reason"]]}) for f in about["findings"]),
    )
