"""Writes small BIDS folders of MEG, EEG or iEEG recordings, with drifting clocks and lost triggers."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lpact.extras import require
from lpact.math.types import FloatArray, IntArray

Datatype = Literal["meg", "eeg", "ieeg"]
TASK = "story"
START = "story/start"
SYNC = "sync"
BAD_LABEL = "BAD_movement"
FRAME = "MNI152NLin2009cAsym"
FIRST_SAMPLE = 700
"""Number of the first sample in FIF files: they do not start at 0."""

_FORMATS = {"meg": "FIF", "eeg": "EDF", "ieeg": "BrainVision"}
_TYPES = {"meg": "mag", "eeg": "eeg", "ieeg": "ecog"}
_OTHER = {"meg": "stim", "eeg": "eog", "ieeg": "ecg"}
_SCALE = {"meg": 1e-15, "eeg": 1e-6, "ieeg": 1e-6}
_RATE_HZ = {"meg": 500.0, "eeg": 256.0, "ieeg": 512.0}
_VOCABULARY = ("the", "old", "fox", "sees", "the", "hen", "and", "runs", "home", "again")


@dataclass(frozen=True)
class BidsTruth:
    """What was written.

    ``words``, ``onset_s`` and ``sentence``: of each run, on the clock of the stimulus. ``samples``: the sample of each
    word by (subject, run), or −1 where its event was dropped. ``code``: unit 0 holds ``(i + 1) code`` in SI units at
    the sample of word i (also of words whose event was dropped), and 0 elsewhere. ``good``: names of usable channels.
    """

    datatype: Datatype
    subjects: tuple[str, ...]
    runs: tuple[str, ...]
    rate_hz: float
    n_samples: int
    words: dict[str, tuple[str, ...]]
    onset_s: dict[str, FloatArray]
    samples: dict[tuple[str, str], IntArray]
    all_samples: dict[tuple[str, str], IntArray]
    start_s: dict[tuple[str, str], float]
    code: float
    good: tuple[str, ...]
    bad: str
    other: str
    bad_span_s: tuple[float, float]
    coordinates_mm: FloatArray


def write_bids(
    folder: Path,
    *,
    datatype: Datatype = "eeg",
    seed: int = 0,
    n_subjects: int = 2,
    runs: Sequence[str] = ("01",),
    n_words: int = 40,
    drift_ppm: float = 300.0,
    drop: bool = True,
) -> BidsTruth:
    """Write the folder, with words both in events.tsv and in ``stimuli/run-<run>_words.tsv``.

    Recordings start ``1 + k`` seconds (the k-th subject) before the story, and their clocks run ``drift_ppm`` apart
    from the story's. With ``drop``, every subject loses the event of another word, and one sync event.
    """
    rng = np.random.default_rng(seed)
    rate_hz = _RATE_HZ[datatype]
    subjects = tuple(f"{k + 1:02d}" for k in range(n_subjects))
    places = rng.uniform(-60.0, 60.0, size=(3, 3)).round(2)
    names = [f"{datatype.upper()}{i + 1}" for i in range(4)]
    words = {run: tuple(_VOCABULARY[i % 10] for i in range(n_words)) for run in runs}
    onset_s = {run: (0.3 + np.cumsum(rng.uniform(0.15, 0.4, n_words))).round(3) for run in runs}
    length = max(float(times[-1]) for times in onset_s.values()) + n_subjects + 3.0
    n_samples = int(np.ceil(length)) * int(rate_hz)
    samples, start_s, everything = {}, {}, {}
    for k, subject in enumerate(subjects):
        for run in runs:
            start = (1.0 + k) + 10 / rate_hz
            slope = 1.0 + (drift_ppm * 1e-6) * (1 if k % 2 else -1)
            heard = start + slope * onset_s[run]
            at = np.rint(heard * rate_hz).astype(np.int64)
            kept = np.ones(n_words, dtype=bool)
            if drop:
                kept[5 + k] = False
            raw = _raw(rng, datatype, names, at, n_samples)
            path = _write_raw(folder, subject, run, datatype, raw)
            clock = _Clock(start, slope, at / rate_hz, kept)
            _write_events(path, clock, words[run], onset_s[run], drop=drop)
            _mark_bad(path, names[-1])
            samples[subject, run] = np.where(kept, at, -1)
            everything[subject, run], start_s[subject, run] = at, start
        if datatype == "ieeg":
            _write_electrodes(folder, subject, names, places)
    for run in runs:
        _write_words(folder, run, words[run], onset_s[run])
    _write_about(folder, subjects)
    return BidsTruth(
        datatype=datatype,
        subjects=subjects,
        runs=tuple(runs),
        rate_hz=rate_hz,
        n_samples=n_samples,
        words=words,
        onset_s=onset_s,
        samples=samples,
        all_samples=everything,
        start_s=start_s,
        code=_SCALE[datatype],
        good=tuple(names[:-1]),
        bad=names[-1],
        other="OTHER",
        bad_span_s=(0.1, 0.3),
        coordinates_mm=places,
    )


@dataclass(frozen=True)
class _Clock:
    """Story times t are at ``start + slope t`` in the recording; words at ``word_s``, where their event is ``kept``."""

    start: float
    slope: float
    word_s: FloatArray
    kept: Any


def _raw(
    rng: np.random.Generator,
    datatype: Datatype,
    names: Sequence[str],
    samples: IntArray,
    n_samples: int,
) -> Any:
    mne = require("mne", extra="meeg")
    types = [_TYPES[datatype]] * len(names) + [_OTHER[datatype]]
    info = mne.create_info([*names, "OTHER"], _RATE_HZ[datatype], types)
    info["line_freq"] = 50.0
    noise = rng.normal(size=(len(types), n_samples))
    for t in range(1, n_samples):
        noise[:, t] += 0.9 * noise[:, t - 1]
    noise[0] = 0.0
    noise[0, samples] = np.arange(1, samples.size + 1)
    values = noise * _SCALE[datatype]
    if datatype == "meg":
        values[-1] = 0.0
    first = FIRST_SAMPLE if datatype == "meg" else 0
    return mne.io.RawArray(values, info, first_samp=first, verbose="error")


def _write_raw(folder: Path, subject: str, run: str, datatype: Datatype, raw: Any) -> Path:
    """Write with MNE-BIDS, but for its electrode table, which has no positions; return the recording's path."""
    mne_bids = require("mne_bids", extra="meeg")
    path = mne_bids.BIDSPath(subject=subject, task=TASK, run=run, root=folder, datatype=datatype, suffix=datatype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written = mne_bids.write_raw_bids(
            raw,
            path,
            format=_FORMATS[datatype],
            allow_preload=True,
            overwrite=True,
            verbose="error",
        )
    for kind in ("electrodes.tsv", "electrodes.json", "coordsystem.json"):
        (Path(written.fpath).parent / f"sub-{subject}_{kind}").unlink(missing_ok=True)
    return Path(written.fpath)


def sidecar(path: Path, name: str) -> Path:
    """Return a file beside a recording: ``sidecar(path, "events.tsv")``."""
    return path.with_name(f"{path.name.rpartition('_')[0]}_{name}")


def leave_gap(path: Path, record: int, seconds: int) -> None:
    """Make an EDF+D (or BDF+D) of an EDF+C: from this record on (counted from 0), all are ``seconds`` later.

    The samples stay as they are.
    """
    content, bdf = path.read_bytes(), path.suffix == ".bdf"
    n_channels, n_header = int(content[252:256]), int(content[184:192])
    labels = [content[256 + 16 * i : 272 + 16 * i].strip() for i in range(n_channels)]
    first = 256 + n_channels * 216
    sizes = [(3 if bdf else 2) * int(content[first + 8 * i : first + 8 * i + 8]) for i in range(n_channels)]
    kind = b"BDF" if bdf else b"EDF"
    times = labels.index(kind + b" Annotations")
    body = bytearray(content[:192] + (kind + b"+D").ljust(44) + content[236:])
    for k in range((len(content) - n_header) // sum(sizes)):
        start = n_header + k * sum(sizes) + sum(sizes[:times])
        onset, mark, rest = bytes(body[start : start + sizes[times]]).partition(b"\x14\x14")
        if mark != b"\x14\x14":
            raise ValueError(f"{path}: record {k} does not begin with its onset")
        later = float(onset) + (seconds if k >= record else 0)
        cell = f"+{later:g}".encode() + mark + rest.rstrip(b"\0") + b"\0"
        body[start : start + sizes[times]] = cell.ljust(sizes[times], b"\0")
    path.write_bytes(bytes(body))


def write_dimensions(path: Path, dimension: str, channels: Sequence[int] | None = None) -> None:
    """Write another physical dimension into an EDF header, for these channels (all that hold values)."""
    content = bytearray(path.read_bytes())
    n_channels = int(content[252:256])
    for i in range(n_channels - 1) if channels is None else channels:
        start = 256 + n_channels * 96 + 8 * i
        content[start : start + 8] = dimension.encode("latin-1").ljust(8)
    path.write_bytes(bytes(content))


def _write_events(path: Path, clock: _Clock, words: Sequence[str], onset_s: FloatArray, *, drop: bool) -> None:
    rows: list[tuple[object, ...]] = [
        (0.1, 0.2, BAD_LABEL, "n/a", "n/a", "n/a"),
        (clock.start, 0.0, START, "n/a", "n/a", 0),
    ]
    n_sync = int(onset_s[-1] // 2) + 2
    for k in range(n_sync):
        if not (drop and k == 2):
            time = 2.0 * k
            rows.append((clock.start + clock.slope * time, 0.0, SYNC, "n/a", "n/a", time))
    for i, word in enumerate(words):
        if clock.kept[i]:
            rows.append((float(clock.word_s[i]), 0.1, "word", word, i // 8, "n/a"))
    rows.sort(key=lambda row: float(str(row[0])))
    lines = ["onset\tduration\ttrial_type\tword\tsentence\tstimulus_time"]
    lines += ["\t".join(str(cell) for cell in row) for row in rows]
    _write(sidecar(path, "events.tsv"), lines)


def _mark_bad(path: Path, name: str) -> None:
    table = sidecar(path, "channels.tsv")
    lines = table.read_text(encoding="utf-8-sig").rstrip("\n").split("\n")
    status = lines[0].split("\t").index("status")
    for i, line in enumerate(lines):
        cells = line.split("\t")
        if cells[0] == name:
            cells[status] = "bad"
            lines[i] = "\t".join(cells)
    _write(table, lines)


def _write_electrodes(folder: Path, subject: str, names: Sequence[str], places: FloatArray) -> None:
    stem = folder / f"sub-{subject}" / "ieeg" / f"sub-{subject}_space-{FRAME}"
    rows = [
        f"{name}\t{p[0]}\t{p[1]}\t{p[2]}\tn/a\t{region}"
        for name, p, region in zip(names, places, ("STG", "MTG", "n/a"), strict=False)
    ]
    _write(Path(f"{stem}_electrodes.tsv"), ["name\tx\ty\tz\tsize\tregion", *rows])
    system = {"iEEGCoordinateSystem": FRAME, "iEEGCoordinateUnits": "mm"}
    Path(f"{stem}_coordsystem.json").write_text(json.dumps(system), encoding="utf-8")


def _write_words(folder: Path, run: str, words: Sequence[str], onset_s: FloatArray) -> None:
    rows = [f"{w}\t{t}\t{t + 0.1:.3f}\t{i // 8}\t{len(w)}" for i, (w, t) in enumerate(zip(words, onset_s, strict=True))]
    _write(
        folder / "stimuli" / f"run-{run}_words.tsv",
        ["word\tonset\toffset\tsentence\tWord Length", *rows],
    )


def _write_about(folder: Path, subjects: Sequence[str]) -> None:
    about = {"Name": "A small story", "BIDSVersion": "1.9.0", "License": "CC0"}
    (folder / "dataset_description.json").write_text(json.dumps(about), encoding="utf-8")
    rows = [f"sub-{subject}\tn/a" for subject in subjects]
    _write(folder / "participants.tsv", ["participant_id\tage", *rows])


def _write(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
