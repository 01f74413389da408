"""Writes a small folder in the layout of the Podcast ECoG dataset, with the quirks of the real one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import wavfile

from lpact.extras import require
from lpact.math.types import FloatArray, IntArray

RATE_HZ = 512.0
NEURAL = ("G1", "G2", "G3", "DA1", "G9")
BAD = "G9"
OTHER = "EKG1"
UNPLACED = "DA1"
_SPACE = "MNI152NLin2009aSym"
_VOCABULARY = ("the", "monkey", "took", "a", "photo", "and", "so", "he", "was", "there")


@dataclass(frozen=True)
class PodcastTruth:
    """What was written.

    ``words``, ``start_s``, ``end_s``: the transcript as it is written. ``order``: its words by onset. ``samples``: the
    sample of each word by onset, [n_words], the same for every subject. ``surprisal_bits`` and ``entropy_bits``: of
    each word as it is written. ``layer`` [n_tokens, width] and ``token_word`` [n_tokens]: GPT-2's features.
    ``without_whisper``: words that Whisper's table lacks. ``coordinates_mm``: of the good channels of `NEURAL`.
    """

    words: tuple[str, ...]
    start_s: FloatArray
    end_s: FloatArray
    order: IntArray
    samples: IntArray
    subjects: tuple[str, ...]
    surprisal_bits: FloatArray
    entropy_bits: FloatArray
    layer: FloatArray
    token_word: IntArray
    vectors: FloatArray
    vector_word: IntArray
    without_whisper: tuple[int, ...]
    coordinates_mm: FloatArray
    n_samples: int


def write_podcast_ecog(
    folder: Path,
    *,
    seed: int = 0,
    n_subjects: int = 2,
    n_words: int = 60,
    transcript: bool = True,
    raw: bool = False,
) -> PodcastTruth:
    """Write the folder; ``transcript`` and ``raw`` say whether podcast_transcript.csv and the EDF files are written.

    Unit 0 of every recording holds i + 1 at the sample of the i-th word by onset, and 0 elsewhere: in the numbers of
    the envelope, which have no known unit, and in µV of the voltage. Two words start before the word that is written
    before them.
    """
    rng = np.random.default_rng(seed)
    words, start_s, end_s = _words(rng, n_words)
    order = np.argsort(start_s, kind="stable").astype(np.int64)
    samples = np.rint(start_s[order] * RATE_HZ).astype(np.int64)
    n_samples = int(np.ceil(end_s.max() + 1.0)) * int(RATE_HZ)
    subjects = tuple(f"{i + 1:02d}" for i in range(n_subjects))
    _write_about(folder, subjects)
    places = rng.uniform(-60.0, 60.0, size=(len(NEURAL) - 1, 3)).round(3)
    places[NEURAL.index(UNPLACED)] = np.nan
    for subject in subjects:
        _write_subject(folder, subject, _signal(rng, samples, n_samples), places, raw=raw, bad=(BAD,))
    stimuli = folder / "stimuli"
    stimuli.mkdir(parents=True, exist_ok=True)
    if transcript:
        rows = [f"{w},{s},{e}" for w, s, e in _rows(words, start_s, end_s)]
        _write(stimuli / "podcast_transcript.csv", ["word,start,end", *rows])
    tokens = _write_gpt2(stimuli / "gpt2-xl", rng, words, start_s, end_s)
    _write_spectral(stimuli / "spectral", words, start_s, end_s)
    _write_syntactic(stimuli / "syntactic", words, start_s, end_s)
    whisper = _write_whisper(stimuli / "whisper-medium", rng, words, start_s, end_s)
    _write_audio(stimuli / "podcast.wav", n_samples / RATE_HZ)
    return PodcastTruth(words, start_s, end_s, order, samples, subjects, *tokens, *whisper, places, n_samples)


def _words(rng: np.random.Generator, n_words: int) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
    """Words with times in whole milliseconds; two of them begin before their predecessors."""
    words = [str(word) for word in rng.choice(_VOCABULARY, size=n_words)]
    words[0] = "Act"
    for first in range(7, n_words, 7):
        words[first] = words[first].capitalize()
    words[1], words[-1] = "one,", "it."
    words[: len(_VOCABULARY)] = [words[0], words[1], *_VOCABULARY[2:]]
    start = (0.5 + np.cumsum(rng.uniform(0.15, 0.4, n_words))).round(3)
    end = (start + 0.1).round(3)
    for late in (n_words // 3, n_words // 2):
        start[late] = (start[late - 1] - 0.05).round(3)
        end[late] = (start[late] + 0.12).round(3)
    return tuple(words), start, end


def _signal(rng: np.random.Generator, samples: IntArray, n_samples: int) -> FloatArray:
    """Channels [n_channels, n_samples]: the impulse train first, autocorrelated noise in the others."""
    noise = rng.normal(size=(len(NEURAL) + 1, n_samples))
    for t in range(1, n_samples):
        noise[:, t] += 0.9 * noise[:, t - 1]
    noise[0] = 0.0
    noise[0, samples] = np.arange(1, samples.size + 1)
    return noise


def _write_subject(
    folder: Path,
    subject: str,
    values: FloatArray,
    places: FloatArray,
    *,
    raw: bool,
    bad: Sequence[str],
) -> None:
    mne = require("mne", extra="meeg")
    names = [*NEURAL, OTHER]
    types = ["ecog", "ecog", "ecog", "seeg", "ecog", "ecg"]
    info = mne.create_info(names, RATE_HZ, types)
    recording: Any = mne.io.RawArray(values, info, verbose="error")
    for index, place in enumerate(places):
        recording.info["chs"][index]["loc"][:3] = place / 1000.0
    recording.info["bads"] = list(bad)
    target = folder / "derivatives" / "ecogprep" / f"sub-{subject}" / "ieeg"
    target.mkdir(parents=True, exist_ok=True)
    name = f"sub-{subject}_task-podcast_desc-highgamma_ieeg.fif"
    recording.save(target / name, overwrite=True, verbose="error")
    beside = folder / f"sub-{subject}" / "ieeg"
    beside.mkdir(parents=True, exist_ok=True)
    listed = [(n, p) for n, p in zip(names, places, strict=False) if np.isfinite(p).all()]
    rows = [f"{n}\t{p[0]}\t{p[1]}\t{p[2]}\t4.15\tG" for n, p in listed]
    header = "name\tx\ty\tz\tsize\tgroup"
    _write(
        beside / f"sub-{subject}_space-{_SPACE}_electrodes.tsv",
        [header, *rows, "G64\t1\t2\t3\t4.15\tG"],
    )
    if raw:
        voltage = mne.io.RawArray(values * 1e-6, info, verbose="error")
        _write_raw(beside, subject, voltage, names, types, bad)


def _write_raw(
    folder: Path,
    subject: str,
    recording: Any,
    names: Sequence[str],
    types: Sequence[str],
    bad: Sequence[str],
) -> None:
    """Write the voltage as EDF, where every channel is an EEG channel, and the types beside it."""
    mne = require("mne", extra="meeg")
    stem = folder / f"sub-{subject}_task-podcast"
    plain = recording.copy().set_channel_types(dict.fromkeys(names, "eeg"), on_unit_change="ignore")
    plain.info["bads"] = []
    mne.export.export_raw(f"{stem}_ieeg.edf", plain, fmt="edf", overwrite=True, verbose="error")
    rows = [
        f"{name}\t{kind.upper()}\tµV\t{'bad' if name in bad else 'good'}"
        for name, kind in zip(names, types, strict=True)
    ]
    _write(Path(f"{stem}_channels.tsv"), ["name\ttype\tunits\tstatus", *rows])
    Path(f"{stem}_ieeg.json").write_text(
        json.dumps({"TaskName": "podcast", "SamplingFrequency": RATE_HZ}), encoding="utf-8"
    )


def _rows(words: Sequence[str], start: FloatArray, end: FloatArray) -> list[tuple[str, float, float]]:
    quoted = [f'"{word}"' if "," in word else word for word in words]
    return list(zip(quoted, start.tolist(), end.tolist(), strict=True))


def _write(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_about(folder: Path, subjects: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "Name": 'The "Podcast" ECoG dataset',
        "BIDSVersion": "1.10.0",
        "License": "CC0",
        "DatasetDOI": "doi:10.18112/openneuro.ds005574.v1.0.2",
    }
    (folder / "dataset_description.json").write_text(json.dumps(about), encoding="utf-8")
    rows = [f"sub-{subject}\t{660 + i}" for i, subject in enumerate(subjects)]
    _write(folder / "participants.tsv", ["participant_id\tnyu_id", *rows])


def _write_gpt2(
    folder: Path,
    rng: np.random.Generator,
    words: Sequence[str],
    start: FloatArray,
    end: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """Write tokens (two for words with punctuation) with probabilities, and two layers of features."""
    owner = [i for i, word in enumerate(words) for _ in range(2 if not word.isalpha() else 1)]
    token_word = np.array(owner, dtype=np.int64)
    probability = rng.uniform(0.001, 0.9, token_word.size)
    nats = rng.uniform(0.1, 6.0, token_word.size)
    header = "\tword_idx\tword\tstart\tend\thftoken\ttoken_id\trank\ttrue_prob\ttop_pred\tentropy"
    lines = [header]
    for row, i in enumerate(owner):
        second = row > 0 and owner[row - 1] == i
        token = words[i][-1] if second else "\u0120" + words[i].rstrip(".,")
        cells = (row, i, words[i], start[i], end[i], token, row, 1, probability[row], 0, nats[row])
        lines.append("\t".join(str(cell) for cell in cells))
    _write(folder / "transcript.tsv", lines)
    h5py = require("h5py", extra="hdf5")
    layer = rng.normal(size=(token_word.size, 8)).astype(np.float32)
    with h5py.File(folder / "features.hdf5", "w") as file:
        file["layer-24"] = layer
        file["layer-0"] = layer + 1.0
    surprisal = np.zeros(len(words))
    entropy = np.zeros(len(words))
    for row in range(token_word.size - 1, -1, -1):
        surprisal[owner[row]] -= np.log2(probability[row])
        entropy[owner[row]] = nats[row] / np.log(2.0)
    return surprisal, entropy, layer.astype(np.float64), token_word


def _write_spectral(folder: Path, words: Sequence[str], start: FloatArray, end: FloatArray) -> None:
    """One row per word; here the first column has a name."""
    rows = [f"{i}\t{i}\t{w}\t{start[i]}\t{end[i]}" for i, w in enumerate(words)]
    _write(folder / "transcript.tsv", ["index\tword_idx\tword\tstart\tend", *rows])


def _write_syntactic(folder: Path, words: Sequence[str], start: FloatArray, end: FloatArray) -> None:
    """Punctuation is a token of its own."""
    lines = ["\tword_idx\tword\tstart\tend\ttoken\tpos\tdep\tstop"]
    for i, word in enumerate(words):
        bare = word.rstrip(".,")
        tokens = [(bare, "NN", "nsubj"), *((c, c, "punct") for c in word[len(bare) :])]
        for token, pos, dep in tokens:
            lines.append(f"{len(lines) - 1}\t{i}\t{word}\t{start[i]}\t{end[i]}\t{token}\t{pos}\t{dep}\tFalse")
    _write(folder / "transcript.tsv", lines)


def _write_whisper(
    folder: Path,
    rng: np.random.Generator,
    words: Sequence[str],
    start: FloatArray,
    end: FloatArray,
) -> tuple[FloatArray, IntArray, tuple[int, ...]]:
    """Rows by onset, without two words, and with one word at another time, as in the release."""
    h5py = require("h5py", extra="hdf5")
    gone = (len(words) // 4, len(words) // 4 + 5)
    moved = len(words) // 5
    order = [int(i) for i in np.argsort(start, kind="stable") if i not in gone]
    lines = ["\tword_idx\tword\tstart\tend"]
    for row, i in enumerate(order):
        shift = 0.02 if i == moved else 0.0
        lines.append(f"{row}\t{i}\t{words[i]}\t{start[i] - shift:.3f}\t{end[i]}")
    _write(folder / "transcript.tsv", lines)
    vectors = rng.normal(size=(len(order), 6)).astype(np.float32)
    with h5py.File(folder / "features.hdf5", "w") as file:
        file["vectors"] = vectors
    return vectors.astype(np.float64), np.array(order, dtype=np.int64), gone


def _write_audio(path: Path, length_s: float) -> None:
    wavfile.write(path, 8000, np.zeros(int(8000 * length_s), dtype=np.int16))
