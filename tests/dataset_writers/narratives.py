"""Writer of the layout of Narratives: small files with the quirks of the real ones."""

from __future__ import annotations

import json
import wave
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dataset_writers._nifti import (
    REGIONS,
    centres_mm,
    region_means,
    volume_of_words,
    word_times,
    write_atlas,
    write_bold,
)
from lpact.math.types import FloatArray, IntArray

TR_S = 1.5
SPACE = "MNI152NLin2009cAsym"

EVENTS: Mapping[str, tuple[tuple[float, float, str], ...]] = {
    "pieman": ((0.0, 13.0, "music"), (15.0, 422.0, "story")),
    "merlin": ((4.5, 25.0, "music"), (33.5, 886.0, "story")),
    "tunnel": ((3.0, 1534.0, "story"),),
    "milkyway": ((0.0, 18.0, "music"), (21.0, 404.0, "story")),
    "notthefallshortscram": ((4.5, 22.0, "music"), (29.5, 547.0, "story")),
}
"""Onset, duration and kind of the events of each task, as published. The audio starts with the first."""

SCANS = (
    ("001", "pieman", "1", "pieman"),
    ("001", "pieman", "2", "pieman"),
    ("002", "pieman", "", "pieman"),
    ("001", "merlin", "", "merlin"),
    ("002", "merlin", "", "merlin"),
    ("001", "tunnel", "", "tunnel"),
    ("004", "tunnel", "", "tunnel"),
    ("001", "milkyway", "", "milkywayoriginal"),
    ("002", "milkyway", "", "milkywayvodka"),
    ("002", "notthefallshortscram", "", "notthefallshortscram"),
)
"""Subject, task, run and story of every scan."""

EXCLUDED = ("004", "tunnel")
SHORT = ("002", "merlin")
"""The scan that ends before its story does."""

WITHOUT_TRANSCRIPT = "tunnel"


@dataclass(frozen=True)
class NarrativesTruth:
    """What was written. Keys of scans are ``sub-001_ses-1_run-pieman-1``; times are those of the audio.

    ``volumes`` holds the volume of every word with times, −1 outside of the scan; ``means`` the exact region means.
    ``n_unaligned`` counts words without times; ``start_s`` is the time of a scan's first volume.
    """

    volumes: Mapping[str, IntArray]
    means: Mapping[str, FloatArray]
    start_s: Mapping[str, float]
    onset_s: Mapping[str, FloatArray]
    words: Mapping[str, tuple[str, ...]]
    sentences: Mapping[str, IntArray]
    n_unaligned: Mapping[str, int]
    regions: tuple[str, ...]
    centres_mm: FloatArray
    excluded: tuple[str, str]
    without_alignment: str


def write_narratives(
    folder: Path, *, seed: int = 0, n_words: int = 60, pipeline: str = "afni-nosmooth"
) -> NarrativesTruth:
    """Write a small Narratives folder with an atlas; ``pipeline`` names the derivatives."""
    rng = np.random.default_rng(seed)
    write_atlas(folder)
    description = {"Name": "Narratives", "BIDSVersion": "1.3.0", "License": "CC0"}
    description["DatasetDOI"] = "10.18112/openneuro.ds002345.v1.1.4"
    _write(folder / "dataset_description.json", json.dumps(description))
    listed: dict[str, dict[str, list[str]]] = {task: {} for task in EVENTS}
    subject, task = EXCLUDED
    listed[task][f"sub-{subject}"] = [f"sub-{subject}_task-{task}"]
    _write(folder / "code/scan_exclude.json", json.dumps(listed, indent=2))
    stories = {story: task for _, task, _, story in SCANS if not task.endswith("scram")}
    told = {name: _story(folder, name, EVENTS[of], n_words, rng) for name, of in stories.items()}
    volumes, means, start_s = {}, {}, {}
    for subject, task, run, story in SCANS:
        key = f"sub-{subject}_ses-1_run-{task}" + (f"-{run}" if run else "")
        start_s[key] = -EVENTS[task][0][0]
        onset_s = told[story].onset_s if story in told else np.array([30.0])
        of_words = volume_of_words(onset_s, start_s[key], TR_S)
        short = (subject, task) == SHORT
        n_volumes = int(of_words.max()) + (-5 if short else 6)
        means[key], volumes[key] = region_means(rng, of_words, n_volumes)
        _scan(folder, pipeline, (subject, task, run, story), means[key])
    return NarrativesTruth(
        volumes=volumes,
        means=means,
        start_s=start_s,
        onset_s={name: story.onset_s for name, story in told.items()},
        words={name: story.words for name, story in told.items()},
        sentences={name: story.sentences for name, story in told.items()},
        n_unaligned={name: story.n_unaligned for name, story in told.items()},
        regions=REGIONS,
        centres_mm=centres_mm(),
        excluded=EXCLUDED,
        without_alignment="notthefallshortscram",
    )


@dataclass(frozen=True)
class _Story:
    words: tuple[str, ...]
    onset_s: FloatArray
    sentences: IntArray
    n_unaligned: int


def _story(
    folder: Path,
    name: str,
    events: tuple[tuple[float, float, str], ...],
    n_words: int,
    rng: np.random.Generator,
) -> _Story:
    """Write alignment, transcript and audio of one story; words begin after the music."""
    begin_s = next(onset for onset, _, kind in events if kind == "story") - events[0][0] + 0.11
    onset_s, offset_s = word_times(rng, n_words, begin_s)
    texts = ["Toto", "began", "his", "illustrious", "career", "don't", "stop", "Fordham"]
    words = [texts[i] for i in rng.integers(len(texts), size=n_words)]
    ends = np.zeros(n_words, dtype=np.int64)
    ends[7::9] = 1
    aligned = np.ones(n_words, dtype=np.bool_)
    aligned[[0, *rng.choice(np.arange(1, n_words), 3, replace=False)]] = False
    rows = []
    for i, word in enumerate(words):
        spoken = "<unk>" if word == "illustrious" else word.lower()
        times = f"{onset_s[i]:.3f},{offset_s[i]:.3f}" if aligned[i] else ","
        rows.append(f"{word},{spoken if aligned[i] else ''},{times}")
    _write(folder / f"stimuli/gentle/{name}/align.csv", "\n".join(rows) + "\n")
    if name != WITHOUT_TRANSCRIPT:
        marks = ["." if end else "," if i % 5 == 3 else "" for i, end in enumerate(ends)]
        text = " ".join(f"{word}{mark}" for word, mark in zip(words, marks, strict=True))
        _write(folder / f"stimuli/gentle/{name}/transcript.txt", text + "\n")
    with wave.open(str(folder / f"stimuli/{name}_audio.wav"), "wb") as audio:
        audio.setnchannels(1)
        audio.setsampwidth(2)
        audio.setframerate(8000)
        audio.writeframes(bytes(1600))
    sentences = np.concatenate([[0], np.cumsum(ends)[:-1]])
    return _Story(
        tuple(word for word, kept in zip(words, aligned, strict=True) if kept),
        onset_s[aligned],
        sentences[aligned],
        int((~aligned).sum()),
    )


def _scan(folder: Path, pipeline: str, scan: tuple[str, str, str, str], means: FloatArray) -> None:
    subject, task, run, story = scan
    root = f"sub-{subject}_task-{task}" + (f"_run-{run}" if run else "")
    rows = ["onset\tduration\ttrial_type\tstim_file"]
    rows += [f"{on}\t{long}\t{kind}\t{story}_audio.wav" for on, long, kind in EVENTS[task]]
    func = folder / f"sub-{subject}/func"
    _write(func / f"{root}_events.tsv", "\n".join(rows) + "\n")
    _write(func / f"{root}_bold.json", json.dumps({"RepetitionTime": TR_S, "TaskName": task}))
    desc = "preproc" if pipeline == "fmriprep" else "clean"
    to = folder / f"derivatives/{pipeline}/sub-{subject}/func"
    write_bold(to / f"{root}_space-{SPACE}_res-native_desc-{desc}_bold.nii.gz", means, tr_s=TR_S)
    if pipeline == "fmriprep":
        lines = ["trans_x\ttrans_x_derivative1", "0.5\tn/a"]
        lines += [f"{0.5 + 0.25 * k}\t0.25" for k in range(1, len(means))]
        _write(to / f"{root}_desc-confounds_regressors.tsv", "\n".join(lines) + "\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
