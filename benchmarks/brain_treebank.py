"""Put a session of the size of a Brain Treebank trial on the word grid, beside plain reading of the same bytes.

``python -m benchmarks.brain_treebank --folder /some/disk`` writes 150 electrodes × 2 h × 2048 Hz (about 9 GB) there,
measures, and deletes it; ``--quick`` takes a few MB. It needs h5py, and is no part of ``make bench``.

Each measurement is a process of its own. *Cold*: the file's pages are dropped from the cache before
(``posix_fadvise``; a virtual disk may keep them in its host's). *Warm*: the file was read just before. Both rows
have the same targets. Ours reads the next electrode, in a second thread, while it works on the last.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.machine import machine, peak_bytes, versions

RESULTS = Path(__file__).parent / "results" / "recordings.json"
RATE_HZ = 2048
TARGET_RATIO = 2.0
TARGET_BYTES = 2e9
NAME = "sub_1_trial000"
FILM = "a-film"

Row = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """A session: electrodes, hours, and words a second."""

    electrodes: int = 150
    hours: float = 2.0
    words_per_s: float = 1.6

    @property
    def n_samples(self) -> int:
        return int(self.hours * 3600 * RATE_HZ)

    @property
    def n_words(self) -> int:
        return int(self.hours * 3600 * self.words_per_s)

    @property
    def n_bytes(self) -> int:
        return 4 * self.electrodes * self.n_samples


def build(folder: Path, sizes: Sizes, *, chunks: int | None = None) -> Path:
    """Write the session in the layout of the release; return its neural file."""
    import h5py

    rng = np.random.default_rng(0)
    labels = ["DC1", *(f"LT{i // 16}a{i % 16}" for i in range(sizes.electrodes))]
    length_s = sizes.hours * 3600
    onsets = np.sort(rng.uniform(1.0, length_s - 2.0, sizes.n_words))
    texts = {
        "corrupted_elec.json": json.dumps({"sub_1": []}),
        "electrode_labels/sub_1/electrode_labels.json": json.dumps(labels),
        f"subject_metadata/{NAME}_metadata.json": json.dumps({"title": FILM, "filename": FILM}),
    }
    tables: dict[str, list[list[object]]] = {
        f"subject_timings/{NAME}_timings.csv": [
            ["type", "index", "movie_time"],
            *(["trigger", t * RATE_HZ, float(t)] for t in range(int(length_s))),
        ],
        f"transcripts/{FILM}/features.csv": [
            ["", "text", "start", "end", "sentence", "is_onset"],
            *([i, f"w{i % 997}", t, t + 0.1, f"s{i // 8}", int(i % 8 == 0)] for i, t in enumerate(onsets.tolist())),
        ],
    }
    for relative, text in texts.items():
        (folder / relative).parent.mkdir(parents=True, exist_ok=True)
        (folder / relative).write_text(text, encoding="utf-8")
    for relative, rows in tables.items():
        (folder / relative).parent.mkdir(parents=True, exist_ok=True)
        with (folder / relative).open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows(rows)
    noise = rng.standard_normal(sizes.n_samples, dtype=np.float32)
    path = folder / f"{NAME}.h5"
    layout = {} if chunks is None else {"chunks": (chunks,)}
    with h5py.File(path, "w") as file:
        for i in range(len(labels)):
            values = np.roll(noise, 1009 * i) * np.float32(10 + i)
            file.create_dataset(f"data/electrode_{i}", data=values, **layout)
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
    return path


def read_plainly(folder: Path) -> Row:
    """Read every neural electrode once, one after the other."""
    import h5py

    n_bytes = 0
    with h5py.File(folder / f"{NAME}.h5", "r") as file:
        for i in range(1, len(file["data"])):
            n_bytes += file["data"][f"electrode_{i}"][()].nbytes
    return {"read_bytes": n_bytes}


def read_on_grid(folder: Path) -> Row:
    """Open the dataset, its recording and stimulus, and build the default event grid."""
    from lpact.config import GridConfig
    from lpact.datasets.base import DATASETS
    from lpact.grid import read_grid

    dataset = DATASETS.build("brain_treebank", {}).open(name="bench", path=folder, seed=0)
    (recording_id,) = dataset.recording_ids()
    recording = dataset.recording(recording_id)
    opened = perf_counter()
    read = read_grid(recording, dataset.stimulus(recording_id.stimulus), GridConfig())
    return {
        "grid_s": perf_counter() - opened,
        "n_events": read.grid.n_events,
        "n_units": len(read.usable),
        "response_bytes": read.grid.responses.nbytes,
    }


def _import_everything() -> None:
    """Both kinds import the same, before time is taken; memory includes it."""
    import h5py  # noqa: F401

    from lpact.datasets.base import DATASETS
    from lpact.grid import read_grid  # noqa: F401

    DATASETS.names()


WORK = {"plain": read_plainly, "grid": read_on_grid}


def measure(kind: str, folder: Path, *, cold: bool) -> Row:
    """Run one measurement in a process of its own."""
    if cold:
        with (folder / f"{NAME}.h5").open("rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    command = [
        sys.executable,
        "-m",
        "benchmarks.brain_treebank",
        "--work",
        kind,
        "--folder",
        str(folder),
    ]
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **one_thread})
    if done.returncode:
        raise RuntimeError(f"'{kind}' failed:\n{done.stderr}")
    found: Row = json.loads(done.stdout)
    return found


def compare(folder: Path, sizes: Sizes, repeats: int, *, targets: bool) -> Iterator[Row]:
    """Both kinds in turns, cold and warm."""
    for cache in ("cold", "warm"):
        if cache == "warm":
            measure("plain", folder, cold=False)
        plain, grid = [], []
        for _ in range(repeats):
            plain.append(measure("plain", folder, cold=cache == "cold"))
            grid.append(measure("grid", folder, cold=cache == "cold"))
        seconds = median(run["seconds"] for run in grid)
        peer_seconds = median(run["seconds"] for run in plain)
        peak = max(run["peak_bytes"] for run in grid)
        yield {
            "name": f"recording to word grid, {cache} cache",
            "peer": "plain h5py reading of the same bytes",
            "ratio": seconds / peer_seconds,
            "target": TARGET_RATIO if targets else None,
            "same_work": False,
            "better": "lower",
            "seconds_ours": seconds,
            "seconds_peer": peer_seconds,
            "cpu_ours": median(run["cpu"] for run in grid),
            "cpu_peer": median(run["cpu"] for run in plain),
            "peak_bytes": peak,
            "target_bytes": TARGET_BYTES if targets else None,
            "met": _met(seconds / peer_seconds, peak) if targets else None,
            "load": round(os.getloadavg()[0], 1),
            "file_bytes": sizes.n_bytes,
            "repeats": repeats,
            **{key: grid[-1][key] for key in ("n_events", "n_units", "response_bytes")},
            "note": "ours also opens and checks everything, looks at every value for gaps, and averages 4 lags of "
            "200 ms a word; times without starting Python and importing",
            "machine": machine(),
            "versions": versions(),
        }


def _met(ratio: float, peak: int) -> bool:
    return ratio <= TARGET_RATIO and peak < TARGET_BYTES


@contextmanager
def _made_folder(parent: Path | None, *, keep: bool) -> Iterator[str]:
    made = tempfile.mkdtemp(dir=parent)
    try:
        yield made
    finally:
        if not keep:
            shutil.rmtree(made)


def main(arguments: list[str] | None = None) -> int:
    """Build, measure, write, delete."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="a disk with room for the file; default: a temporary folder")
    parser.add_argument("--electrodes", type=int, default=Sizes.electrodes)
    parser.add_argument("--hours", type=float, default=Sizes.hours)
    parser.add_argument("--chunks", type=int, help="samples in an HDF5 chunk; default: contiguous")
    parser.add_argument("--quick", action="store_true", help="4 electrodes × 2 minutes, no targets")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="do not delete the file")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--work", choices=WORK, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.work:
        _import_everything()
        begun, cpu = perf_counter(), process_time()
        found = WORK[asked.work](asked.folder)
        found |= {"seconds": perf_counter() - begun, "cpu": process_time() - cpu}
        print(json.dumps(found | {"peak_bytes": peak_bytes()}))
        return 0
    sizes = Sizes(4, 1 / 30) if asked.quick else Sizes(asked.electrodes, asked.hours)
    with _made_folder(asked.folder, keep=asked.keep) as made:
        build(Path(made), sizes, chunks=asked.chunks)
        rows = []
        for row in compare(Path(made), sizes, asked.repeats, targets=not asked.quick):
            rows.append(row)
            print(
                f"{row['name']:<40} {row['seconds_ours']:8.2f} s  plain {row['seconds_peer']:8.2f} s  "
                f"{row['ratio']:.2f} ×  {row['peak_bytes'] / 1e9:.2f} GB",
                flush=True,
            )
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return int(any(row["met"] is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
