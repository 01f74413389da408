"""Writer of small Brain Treebank folders, with every quirk of the real ones."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from lpact.extras import require
from lpact.math.types import FloatArray

RATE_HZ = 2048
PERIOD_S = 2
"""Seconds of film from trigger to trigger."""

MAX_GAP_S = 2.0
"""Words further than this from every trigger are not in the recording; the reader's default."""

LABELS = ("DC1", "LT1a1*", "LT1a2#", "LT1_a3", "TRIG7", "RF2b1", "RF2b2", "RF2b3*", "DC2")
IMPULSES = "LT1a1"
BAD = {"CHANNEL_NOT_NEURAL": ("DC1", "TRIG7", "DC2"), "CHANNEL_MARKED_BAD": ("RF2b1",)}
UNPLACED = "RF2b3"
_LINGUISTIC = (
    "text",
    "start",
    "end",
    "sentence",
    "is_onset",
    "idx_in_sentence",
    "pos",
    "bin_head",
)
_MEASURED = (
    "rms",
    "pitch",
    "delta_rms",
    "delta_pitch",
    "gpt2_surprisal",
    "word_length",
    "word_diff",
    "onset_diff",
    "face_num",
    "mean_pixel_brightness",
    "max_global_magnitude",
    "max_global_angle",
    "max_vector_magnitude",
    "max_vector_angle",
    "speaker",
)
COLUMNS = (*_LINGUISTIC, *_MEASURED)

_SENTENCES = (
    ("We", "'re", "gon", "na", "need", "a", "bigger", "boat", "."),
    ("No", "."),
    ("No", "."),
    ("He", "said", ",", '"', "run", '"', "and", "I", "ran", "."),
)
_WRITTEN = ("We're gonna need a bigger boat.", "No.", "No.", 'He said, "run" and I ran.')


@dataclass(frozen=True)
class TrialTruth:
    """What a trial holds: the sample of every kept word (-1: not in it), and what was planted in its timings."""

    name: str
    subject: str
    trial: str
    movie: str
    samples: tuple[int, ...]
    n_samples: int
    drift_ppm: float
    dropped: tuple[int, ...]
    pause_s: float


@dataclass(frozen=True)
class FilmTruth:
    """Kept words of a film, in order: text, onset, sentence and row; and the rows that must be left out."""

    words: tuple[str, ...]
    onsets_s: tuple[float, ...]
    sentences: tuple[int, ...]
    rows: tuple[int, ...]
    left_out: tuple[int, ...]
    glued: tuple[int, ...]


@dataclass(frozen=True)
class BrainTreebankTruth:
    """Trials by name, films by id, and labels of the electrodes that stay."""

    trials: dict[str, TrialTruth]
    films: dict[str, FilmTruth]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class _Plan:
    """A trial's timings. `PERIOD_S` of film are ``extra`` samples more than nominal.

    The film waits once it was shown for ``shown`` samples: nearer to one trigger than to the other, so that taking the
    nearest trigger is not enough to be right.
    """

    subject: str
    trial: str
    movie: str
    extra: int
    first_s: int
    dropped: tuple[int, ...]
    shown: float

    @property
    def rate_hz(self) -> float:
        """Samples in a second of film."""
        return RATE_HZ + self.extra / PERIOD_S

    @property
    def pause_s(self) -> float:
        """Film time at which the film waits; infinite if it never does."""
        return self.first_s + self.shown / self.rate_hz


_PLANS = (
    _Plan("1", "000", "the-sea", 1, 0, (6, 8, 18), 29_500),  # 14.4 s of film
    _Plan("1", "001", "the-hill", -1, 0, (), float("inf")),
    _Plan("2", "000", "the-sea", 0, 12, (24,), 11_500),  # 17.6 s of film
)
_AROUND_S = (14.15, 14.32, 14.48, 14.72, 17.2, 17.45, 17.7, 17.85)
"""There are words near these film times, on both sides of every pause."""

_START, _WAIT, _TAIL = 5_000, 4_500, 2_000


def write_brain_treebank(
    folder: Path,
    *,
    seed: int = 0,
    n_words: int = 64,
    film_s: int = 36,
    at_root: bool = False,
    overlap: bool = False,
    dtype: str = "float32",
    chunks: int | None = None,
    compression: str | None = None,
) -> BrainTreebankTruth:
    """Write two subjects, three trials and two films, and return what they hold.

    ``IMPULSES`` is 0 but at the sample of word i (from 0), where it is i + 1; other electrodes hold autocorrelated
    noise. With ``overlap``, speakers interrupt each other in the first film.
    """
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    films = {
        movie: _write_film(folder, movie, rng, n_words, film_s, overlap=overlap and movie == "the-sea")
        for movie in ("the-sea", "the-hill")
    }
    trials = {}
    for plan in _PLANS:
        truth = _write_trial(folder, plan, films[plan.movie], film_s)
        trials[truth.name] = truth
        storage = {"chunks": None if chunks is None else (chunks,), "compression": compression}
        path = folder / ("" if at_root else "all_subject_data") / f"{truth.name}.h5"
        path.parent.mkdir(exist_ok=True)
        _write_signal(path, truth, rng, dtype, storage)
    for subject in ("1", "2"):
        _write_electrodes(folder, subject, rng)
    _write_shared(folder, rng)
    bad = {label for labels in BAD.values() for label in labels}
    clean = [label.translate(str.maketrans("", "", "*#_")) for label in LABELS]
    return BrainTreebankTruth(trials, films, tuple(label for label in clean if label not in bad))


def _position(plan: _Plan, film_time_s: FloatArray) -> FloatArray:
    """True position of film times, in samples: s₀ + (t − t₀) (2048 + extra / period) + the pause, once it is over."""
    waited = np.where(film_time_s > plan.pause_s, _WAIT, 0)
    position: FloatArray = _START + (film_time_s - plan.first_s) * plan.rate_hz + waited
    return position


def _onsets(rng: np.random.Generator, n_words: int, film_s: int) -> FloatArray:
    """Rising onsets on a grid of 1/2048 s, away from the middle between triggers, where drift is half a sample."""
    every = np.arange(400, (film_s - 1) * RATE_HZ, 160)
    near = np.array([np.argmin(np.abs(every - time * RATE_HZ)) for time in _AROUND_S])
    others = rng.choice(np.delete(every, near), n_words - near.size, replace=False)
    ticks = np.sort(np.append(every[near], others))
    period = PERIOD_S * RATE_HZ
    ticks = np.where(np.abs(ticks % period - period // 2) < 100, ticks + 220, ticks)
    onsets: FloatArray = np.sort(ticks) / RATE_HZ
    return onsets


def _write_film(
    folder: Path, movie: str, rng: np.random.Generator, n_words: int, film_s: int, *, overlap: bool
) -> FilmTruth:
    onsets = _onsets(rng, n_words, film_s)
    rows: list[dict[str, Any]] = []
    numbers: list[int] = []
    which = place = number = 0
    for row, onset in enumerate(onsets.tolist()):
        text = _SENTENCES[which][place]
        values: dict[str, Any] = {name: f"{rng.standard_normal():.6f}" for name in _MEASURED}
        values |= {"text": text, "start": repr(onset), "end": repr(onset + 0.05), "pos": "VERB"}
        values |= {"sentence": _WRITTEN[which], "is_onset": int(place == 0), "bin_head": row % 2}
        values |= {"idx_in_sentence": place, "speaker": ("Ann", "")[row % 2], "word_diff": ""}
        rows.append(values)
        numbers.append(number)
        place += 1
        if place == len(_SENTENCES[which]):
            which, place, number = (which + 1) % len(_SENTENCES), 0, number + 1
    rows[6]["start"] = rows[6]["end"] = ""
    rows[30]["text"] = ""
    rows[40]["end"] = ""
    if overlap:
        # Word 21 of one sentence begins after words 22 and 23 of the next.
        rows[21]["start"] = repr(float(onsets[23]) + 0.01)
        rows[21]["end"] = repr(float(onsets[23]) + 0.03)
    path = folder / "transcripts" / movie / "features.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["", *COLUMNS])
        writer.writerows([row, *(values[name] for name in COLUMNS)] for row, values in enumerate(rows))
    return _film_truth(rows, numbers)


def _film_truth(rows: list[dict[str, Any]], numbers: list[int]) -> FilmTruth:
    kept = [row for row, values in enumerate(rows) if values["start"] and values["text"]]
    kept.sort(key=lambda row: float(rows[row]["start"]))
    sentences: list[int] = []
    for place, row in enumerate(kept):
        new = place > 0 and numbers[row] != numbers[kept[place - 1]]
        sentences.append((sentences[-1] if sentences else 0) + new)
    pairs = {("We", "'re"), ("gon", "na"), ("boat", "."), ("No", "."), ("said", ","), ('"', "run")}
    pairs |= {("run", '"'), ("ran", ".")}
    glued = [
        place
        for place, (a, b) in enumerate(pairwise(kept))
        if b == a + 1 and numbers[a] == numbers[b] and (rows[a]["text"], rows[b]["text"]) in pairs
    ]
    return FilmTruth(
        words=tuple(rows[row]["text"] for row in kept),
        onsets_s=tuple(float(rows[row]["start"]) for row in kept),
        sentences=tuple(sentences),
        rows=tuple(kept),
        left_out=tuple(row for row in range(len(rows)) if row not in kept),
        glued=tuple(glued),
    )


def _write_trial(folder: Path, plan: _Plan, film: FilmTruth, film_s: int) -> TrialTruth:
    name = f"sub_{plan.subject}_trial{plan.trial}"
    metadata = folder / "subject_metadata" / f"{name}_metadata.json"
    metadata.parent.mkdir(exist_ok=True)
    metadata.write_text(json.dumps({"title": plan.movie.title(), "filename": plan.movie}))
    last_s = film_s - 8
    times = [k for k in range(plan.first_s, last_s + 1, PERIOD_S) if k not in plan.dropped]
    triggers = np.array(times, dtype=np.float64)
    samples = _position(plan, triggers)
    rows = [("beginning", int(samples[0]), triggers[0])]
    rows += [("trigger", int(sample), time) for time, sample in zip(triggers.tolist(), samples.tolist(), strict=True)]
    anchors = triggers
    if np.isfinite(plan.pause_s):
        stopped = _START + int(plan.shown)
        place = 1 + int(np.searchsorted(triggers, plan.pause_s))
        rows.insert(place, ("unpause", stopped + _WAIT, plan.pause_s))
        rows.insert(place, ("pause", stopped, plan.pause_s))
        anchors = np.append(triggers, plan.pause_s)
    rows.append(("end", int(samples[-1]), triggers[-1]))
    path = folder / "subject_timings" / f"{name}_timings.csv"
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["type", "index", "movie_time", "start_time", "end_time", "trig_type", "diff"])
        for kind, sample, time in rows:
            wall = 1.5e9 + sample / RATE_HZ
            writer.writerow([kind, sample, repr(float(time)), f"{wall:.6f}", "", "", ""])
    onsets = np.array(film.onsets_s)
    positions = np.rint(_position(plan, onsets)).astype(np.int64)
    away = np.abs(onsets[:, None] - anchors[None, :]).min(axis=1)
    positions[away > MAX_GAP_S] = -1
    return TrialTruth(
        name=name,
        subject=plan.subject,
        trial=plan.trial,
        movie=plan.movie,
        samples=tuple(positions.tolist()),
        n_samples=int(max(positions.max(), samples[-1])) + _TAIL,
        drift_ppm=1e6 * plan.extra / (RATE_HZ * PERIOD_S),
        dropped=plan.dropped,
        pause_s=plan.pause_s,
    )


def _write_signal(path: Path, truth: TrialTruth, rng: np.random.Generator, dtype: str, storage: dict[str, Any]) -> None:
    h5py = require("h5py", extra="hdf5")
    with h5py.File(path, "w") as file:
        group = file.create_group("data")
        for position, label in enumerate(LABELS):
            if label.startswith(IMPULSES):
                values = np.zeros(truth.n_samples)
                for code, sample in enumerate(truth.samples, start=1):
                    if sample >= 0:
                        values[sample] = code
            else:
                values = _noise(rng, truth.n_samples)
            group.create_dataset(f"electrode_{position}", data=values.astype(dtype), **storage)


def _noise(rng: np.random.Generator, n_samples: int) -> FloatArray:
    """Return autocorrelated noise in µV: white noise over 32 samples, summed."""
    steps = np.cumsum(rng.standard_normal(n_samples + 32))
    noise: FloatArray = (steps[32:] - steps[:-32]) * 10.0
    return noise


def _write_electrodes(folder: Path, subject: str, rng: np.random.Generator) -> None:
    path = folder / "electrode_labels" / f"sub_{subject}" / "electrode_labels.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(list(LABELS)))
    table = folder / "localization" / f"sub_{subject}" / "depth-wm.csv"
    table.parent.mkdir(parents=True, exist_ok=True)
    rows: list[Sequence[object]] = [["Electrode", "L", "I", "P", "DesikanKilliany", "Destrieux", "DKT"]]
    for label in LABELS:
        if label.startswith(("DC", "TRIG", UNPLACED)):
            continue
        side = "lh" if label.startswith("L") else "rh"
        regions = [f"ctx-{side}-superiortemporal", f"ctx_{side}_G_temp_sup-Lateral", f"{side}-stg"]
        rows.append([label, *rng.integers(20, 230, 3).tolist(), *regions])
    _write_csv(table, rows)


def _write_shared(folder: Path, rng: np.random.Generator) -> None:
    # Subject 1's list holds a label with its mark, and one that is no electrode.
    (folder / "corrupted_elec.json").write_text(json.dumps({"sub_1": ["RF2b1*", "DC10"], "sub_2": ["RF2b1"]}))
    rows: list[Sequence[object]] = [["Subject", "Electrode", "X", "Y", "Z", "Region"]]
    for subject in ("sub_1", "sub_2"):
        for label in LABELS[1:4]:
            clean = label.replace("*", "").replace("#", "")
            rows.append([subject, clean, *rng.normal(0, 30, 3).round(2).tolist(), "temporal"])
    _write_csv(folder / "localization" / "elec_coords_full.csv", rows)


def _write_csv(path: Path, rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(rows)
