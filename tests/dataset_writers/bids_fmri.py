"""Writer of a generic BIDS dataset of functional MRI with fMRIPrep's derivatives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from dataset_writers._nifti import (
    REGIONS,
    atlas_volume,
    centres_mm,
    region_means,
    volume_of_words,
    word_times,
    write_atlas,
    write_bold,
    write_volume,
)
from lpact.math.types import FloatArray, IntArray

SPACE = "MNI152NLin6Asym"
TASK = "listen"


@dataclass(frozen=True)
class BidsFmriTruth:
    """What was written. Keys are ``sub-01_ses-a_run-1``.

    ``volumes`` is the volume of every word of the table (−1 outside of the series), ``means`` the exact region means,
    ``start_s`` the time of the first volume on the words' clock, ``confounds`` the table of each run.
    """

    volumes: Mapping[str, IntArray]
    means: Mapping[str, FloatArray]
    start_s: Mapping[str, float]
    words: tuple[str, ...]
    onset_s: FloatArray
    confounds: Mapping[str, pl.DataFrame]
    regions: tuple[str, ...]
    centres_mm: FloatArray
    n_mask_voxels: int


def write_bids_fmri(folder: Path, *, seed: int = 0, n_words: int = 50, tr_s: float = 1.1) -> BidsFmriTruth:
    """Write two subjects with two sessions each; the stimulus starts at another time in every run.

    ``stimuli/listen_words.tsv`` holds the words on the stimulus' clock, and every run's events hold them too, on the
    run's clock (trial_type ``word``), after an event ``start``.
    """
    rng = np.random.default_rng(seed)
    write_atlas(folder)
    mask = atlas_volume() > 0
    mask[3, 4, 1] = False
    mask[0, 0, 0] = True
    write_volume(folder / "mask.nii.gz", mask.astype(np.int64), "uint8")
    description = {"Name": "Listening", "BIDSVersion": "1.8.0", "License": "CC-BY-4.0"}
    _write(folder / "dataset_description.json", json.dumps(description))
    onset_s, offset_s = word_times(rng, n_words, 0.25)
    words = tuple(f"word{i}" + ("." if i % 8 == 7 else "") for i in range(n_words))
    rows = ["word\tonset\toffset\tlog_frequency\tcategory"]
    rows += [
        f"{word}\t{on:.3f}\t{off:.3f}\t{i / 4}\t{'odd' if i % 2 else 'even'}"
        for i, (word, on, off) in enumerate(zip(words, onset_s, offset_s, strict=True))
    ]
    _write(folder / f"stimuli/{TASK}_words.tsv", "\n".join(rows) + "\n")
    volumes, means, start_s, confounds = {}, {}, {}, {}
    for subject in ("01", "02"):
        for session in ("a", "b"):
            key = f"sub-{subject}_ses-{session}_run-1"
            begin_s = float(np.round(rng.uniform(2.0, 9.0), 3))
            start_s[key] = -begin_s
            of_words = volume_of_words(onset_s, -begin_s, tr_s)
            n_volumes = int(of_words.max()) + (-3 if key == "sub-02_ses-b_run-1" else 4)
            means[key], volumes[key] = region_means(rng, of_words, n_volumes)
            confounds[key] = _confounds(rng, n_volumes)
            spoken = list(zip(words, onset_s + begin_s, offset_s - onset_s, strict=True))
            names = (f"sub-{subject}", f"ses-{session}")
            _run(folder, names, spoken, begin_s, means[key], confounds[key], tr_s)
    return BidsFmriTruth(
        volumes=volumes,
        means=means,
        start_s=start_s,
        words=words,
        onset_s=onset_s,
        confounds=confounds,
        regions=REGIONS,
        centres_mm=centres_mm(),
        n_mask_voxels=int(mask.sum()),
    )


def _confounds(rng: np.random.Generator, n_volumes: int) -> pl.DataFrame:
    """Return motion and its derivative, which fMRIPrep leaves without a first value."""
    motion = np.round(rng.standard_normal((n_volumes, 2)).cumsum(axis=0), 4)
    columns = {"trans_x": motion[:, 0], "rot_z": motion[:, 1]}
    derivative = np.round(np.diff(motion[:, 0]), 4)
    columns["trans_x_derivative1"] = np.concatenate([[np.nan], derivative])
    return pl.DataFrame(columns)


def _run(
    folder: Path,
    names: tuple[str, str],
    spoken: list[tuple[str, float, float]],
    begin_s: float,
    means: FloatArray,
    confounds: pl.DataFrame,
    tr_s: float,
) -> None:
    subject, session = names
    root = f"{subject}_{session}_task-{TASK}_run-1"
    rows = ["onset\tduration\ttrial_type\tword", f"{begin_s}\t0\tstart\tn/a"]
    rows += [f"{on:.3f}\t{long:.3f}\tword\t{word}" for word, on, long in spoken]
    raw = folder / subject / session / "func"
    _write(raw / f"{root}_events.tsv", "\n".join(rows) + "\n")
    func = folder / "derivatives/fmriprep" / subject / session / "func"
    bold = func / f"{root}_space-{SPACE}_res-2_desc-preproc_bold.nii.gz"
    write_bold(bold, means, tr_s=tr_s)
    sidecar = {"RepetitionTime": tr_s, "SliceTimingCorrected": True, "StartTime": tr_s / 2}
    _write(bold.with_name(bold.name.replace(".nii.gz", ".json")), json.dumps(sidecar))
    lines = ["\t".join(confounds.columns)]
    lines += ["\t".join("n/a" if np.isnan(x) else str(x) for x in row) for row in confounds.rows()]
    _write(func / f"{root}_desc-confounds_timeseries.tsv", "\n".join(lines) + "\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
