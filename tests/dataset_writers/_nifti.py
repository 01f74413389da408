"""Small NIfTI files with a known truth: an atlas, and BOLD series whose regions have given means."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lpact.extras import require
from lpact.math.types import FloatArray, IntArray

SHAPE = (6, 5, 4)
AFFINE = np.array([[-3.0, 0.0, 0.0, 9.0], [0.0, 3.0, 0.0, -12.0], [0.0, 0.0, 3.5, -6.0], [0.0, 0.0, 0.0, 1.0]])
REGIONS = ("IFG_L", "STG_L", "STG_R")
LABELS = (3, 7, 12)
"""Labels of the regions in the atlas; they are not consecutive."""

ABSENT = (40, "AnteriorNowhere")
"""A label that the table lists and the atlas does not hold."""


def atlas_volume() -> IntArray:
    """Return the label image: three blocks, 0 between them."""
    volume = np.zeros(SHAPE, dtype=np.int64)
    volume[0:2, 1:3, 1:3] = LABELS[0]
    volume[3, 0:5, 1] = LABELS[1]
    volume[4:6, 3:5, 2:4] = LABELS[2]
    return volume


def centres_mm() -> FloatArray:
    """Return the centre of every region, [n_regions, 3]."""
    volume = atlas_volume()
    return np.stack([AFFINE[:3, :3] @ np.argwhere(volume == k).mean(axis=0) + AFFINE[:3, 3] for k in LABELS])


def write_volume(path: Path, volume: IntArray | FloatArray, dtype: str = "int16") -> None:
    """Write one volume (an atlas, a mask) on the grid of the series."""
    nibabel: Any = require("nibabel", extra="fmri")
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.Nifti1Image(volume.astype(dtype), AFFINE).to_filename(path)


def write_atlas(folder: Path) -> None:
    """Write ``atlas.nii.gz`` and ``atlas.tsv``; the table lists a region too many."""
    write_volume(folder / "atlas.nii.gz", atlas_volume())
    rows = [(0, "Background"), *zip(LABELS, REGIONS, strict=True), ABSENT]
    lines = ["index\tname", *(f"{label}\t{name}" for label, name in rows)]
    (folder / "atlas.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_bold(path: Path, means: FloatArray, *, tr_s: float) -> None:
    """Write a series whose regions have these means, [n_volumes, n_regions].

    Voxels of a region differ from its mean by whole numbers that add up to 0, so that the means are exact; voxels
    outside are far off.
    """
    nibabel: Any = require("nibabel", extra="fmri")
    volume = atlas_volume()
    series = np.full((*SHAPE, len(means)), -1000.0, dtype=np.float32)
    for column, label in enumerate(LABELS):
        inside = volume == label
        spread = np.arange(inside.sum()) - (inside.sum() - 1) / 2
        series[inside] = means[:, column] + 8.0 * spread[:, None]
    image = nibabel.Nifti1Image(series, AFFINE)
    image.header.set_xyzt_units("mm", "sec")
    image.header.set_zooms((*image.header.get_zooms()[:3], tr_s))
    path.parent.mkdir(parents=True, exist_ok=True)
    image.to_filename(path)


def word_times(rng: np.random.Generator, n_words: int, first_s: float) -> tuple[FloatArray, FloatArray]:
    """Return onsets and offsets of words that follow each other, in milliseconds' steps, with some pauses."""
    steps = np.round(rng.uniform(0.15, 0.6, n_words) + 0.9 * (rng.random(n_words) < 0.15), 3)
    onset_s = np.round(first_s + np.concatenate([[0.0], np.cumsum(steps)[:-1]]), 3)
    return onset_s, np.round(onset_s + 0.9 * np.minimum(steps, 0.6), 3)


def volume_of_words(onset_s: Sequence[float] | FloatArray, start_s: float, tr_s: float) -> IntArray:
    """Return the volume during which each word begins, counted in whole milliseconds to be exact."""
    since_ms = np.rint((np.asarray(onset_s) - start_s) * 1000).astype(np.int64)
    return since_ms // round(tr_s * 1000)


def region_means(rng: np.random.Generator, volumes: IntArray, n_volumes: int) -> tuple[FloatArray, IntArray]:
    """Return means [n_volumes, n_regions] and the volume of every word, −1 for one outside of the series.

    Region 0 holds ``k + 1`` at every volume ``k`` during which a word begins, and 0 elsewhere. The others hold
    autocorrelated noise in steps that single precision holds exactly.
    """
    inside = (volumes >= 0) & (volumes < n_volumes)
    kept = np.where(inside, volumes, -1)
    means = np.zeros((n_volumes, len(REGIONS)))
    means[kept[inside], 0] = kept[inside] + 1
    noise = rng.standard_normal((n_volumes, len(REGIONS) - 1))
    for k in range(1, n_volumes):
        noise[k] += 0.8 * noise[k - 1]
    means[:, 1:] = np.round(noise * 1024) / 1024
    return means, kept
