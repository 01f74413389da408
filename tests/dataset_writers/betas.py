"""Writers of betas per trial: GLMsingle's arrays by session, images by run, and BOLD Moments as it is converted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset_writers._nifti import AFFINE, LABELS, REGIONS, SHAPE, atlas_volume, write_atlas
from lpact.extras import require
from lpact.math.types import FloatArray

TRAIN, TEST = tuple(f"vid{i:04d}" for i in range(1, 7)), ("vid1001", "vid1002", "vid1003")
SETS: Mapping[str, tuple[tuple[str, ...], int]] = {"train": (TRAIN, 2), "test": (TEST, 4)}
"""Items and repetitions of every set."""

VERTEX_REGIONS = ("V1", "V1", "", "MT", "V1", "MT", "FFC", "n/a")
GLMSINGLE = {
    "files": "glm/sub-{subject}/ses-{session}/TYPED_FITHRF_GLMDENOISE_RR.hdf5",
    "trials": "sub-{subject}/ses-{session}/func/*_events.tsv",
    "item_column": "stim_file",
    "set_column": "trial_type",
    "axes": "unit,trial",
    "key": "betasmd",
    "atlas": "vertices.tsv",
    "space": "fsLR32k",
}
"""Options for the folder that `write_betas` writes."""

GLM = "derivatives/versionB/fsLR32k/GLM"


@dataclass(frozen=True)
class BetasTruth:
    """What was written: ``values[subject][item]`` is [repetitions, units], in the order of presentation."""

    values: Mapping[str, Mapping[str, FloatArray]]
    regions: tuple[str, ...]


def _drawn(rng: np.random.Generator, n_units: int) -> dict[str, FloatArray]:
    """Betas of every item, exact in single precision."""
    return {
        item: np.round(rng.standard_normal((n, n_units)) * 1024) / 1024 for items, n in SETS.values() for item in items
    }


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _trials(rng: np.random.Generator) -> tuple[list[str], list[str]]:
    """Trials of two sessions: every item in both, equally often, in random order."""
    half = [item for items, n in SETS.values() for item in items for _ in range(n // 2)]
    first, second = (rng.permutation(half).tolist() for _ in range(2))
    return first, second


def _table(path: Path, items: list[str]) -> None:
    """Write trials as events, with an oddball without a stimulus in the middle."""
    rows = [f"{4 * i}.0\t3.0\t{'test' if item in TEST else 'train'}\t{item}" for i, item in enumerate(items)]
    rows.insert(len(rows) // 2, f"{4 * len(items)}.0\t3.0\toddball\tn/a")
    _write(path, ["onset\tduration\ttrial_type\tstim_file", *rows])


def write_betas(folder: Path, *, seed: int = 0) -> BetasTruth:
    """Write GLMsingle's HDF5 output, [units, 1, 1, trials], of two subjects with two sessions of two runs."""
    h5py: Any = require("h5py", extra="hdf5")
    rng = np.random.default_rng(seed)
    _write(folder / "vertices.tsv", ["region", *(name or "n/a" for name in VERTEX_REGIONS)])
    values = {}
    for subject in ("01", "02"):
        values[subject] = _drawn(rng, len(VERTEX_REGIONS))
        seen = dict.fromkeys((*TRAIN, *TEST), 0)
        for session, items in zip(("1", "2"), _trials(rng), strict=True):
            rows = []
            for item in items:
                rows.append(values[subject][item][seen[item]])
                seen[item] += 1
            home = folder / f"glm/sub-{subject}/ses-{session}"
            home.mkdir(parents=True)
            with h5py.File(home / "TYPED_FITHRF_GLMDENOISE_RR.hdf5", "w") as file:
                file["betasmd"] = np.array(rows, dtype=np.float32).T[:, None, None]
                file["R2"] = np.zeros(len(VERTEX_REGIONS))
            # Runs 2 and 10: the order of their numbers is not that of their names.
            func, half = folder / f"sub-{subject}/ses-{session}/func", len(items) // 2
            for run, own in (("2", items[:half]), ("10", items[half:])):
                _table(func / f"sub-{subject}_ses-{session}_task-videos_run-{run}_events.tsv", own)
    return BetasTruth(values, VERTEX_REGIONS)


def write_beta_volumes(folder: Path, *, seed: int = 0) -> BetasTruth:
    """Write an image per session, one volume per trial, of two subjects; units are the voxels of the atlas."""
    nibabel: Any = require("nibabel", extra="fmri")
    rng = np.random.default_rng(seed)
    write_atlas(folder)
    atlas = atlas_volume()
    inside = np.flatnonzero(atlas.reshape(-1, order="F"))
    labels = atlas.reshape(-1, order="F")[inside]
    values = {}
    for subject in ("01", "02"):
        values[subject] = _drawn(rng, inside.size)
        seen = dict.fromkeys((*TRAIN, *TEST), 0)
        for session, items in zip(("1", "2"), _trials(rng), strict=True):
            volumes = np.full((len(items), int(np.prod(SHAPE))), -99.0, dtype=np.float32)
            for trial, item in enumerate(items):
                volumes[trial, inside] = values[subject][item][seen[item]]
                seen[item] += 1
            stem = folder / f"sub-{subject}/sub-{subject}_ses-{session}_space-MNI152NLin6Asym"
            _table(stem.with_name(f"{stem.name}_trials.tsv"), items)
            image = np.stack([volume.reshape(SHAPE, order="F") for volume in volumes], axis=3)
            nibabel.Nifti1Image(image, AFFINE).to_filename(f"{stem}_betas.nii.gz")
    names = dict(zip(LABELS, REGIONS, strict=True))
    return BetasTruth(values, tuple(names[label] for label in labels.tolist()))


def write_bold_moments(folder: Path, *, seed: int = 0) -> BetasTruth:
    """Write converted betas of two subjects, [items, repetitions, vertices], and a label file."""
    rng = np.random.default_rng(seed)
    sides = ("L_", "R_")
    named = tuple(
        f"{sides[i % 2]}{name}_ROI" if name not in ("", "n/a") else "" for i, name in enumerate(VERTEX_REGIONS)
    )
    write_dlabel(folder / "glasser.dlabel.nii", named)
    values = {}
    for subject in ("01", "02"):
        values[subject] = _drawn(rng, len(VERTEX_REGIONS))
        for name, (items, _) in SETS.items():
            stem = f"sub-{subject}_organized_betas_task-{name}_normalized"
            home = folder / GLM / f"sub-{subject}/prepared_betas"
            _write(home / f"{stem}.tsv", ["item", *items])
            own = np.array([values[subject][item] for item in items], dtype=np.float32)
            np.save(home / f"{stem}.npy", own)
    return BetasTruth(values, VERTEX_REGIONS)


def write_dlabel(path: Path, regions: tuple[str, ...]) -> None:
    """Write a CIFTI label file: the first half of the vertices are those of the left cortex."""
    nibabel: Any = require("nibabel", extra="fmri")
    path.parent.mkdir(parents=True, exist_ok=True)
    half = len(regions) // 2
    table, keys = _keys(regions)
    table = {key: (name or "???", (1.0, 1.0, 1.0, 1.0)) for key, name in table.items()}
    models = [
        nibabel.cifti2.BrainModelAxis.from_surface(np.arange(n), 32492, name=name)
        for n, name in (
            (half, "CIFTI_STRUCTURE_CORTEX_LEFT"),
            (len(regions) - half, "CIFTI_STRUCTURE_CORTEX_RIGHT"),
        )
    ]
    axes = (nibabel.cifti2.LabelAxis(["atlas"], [table]), models[0] + models[1])
    nibabel.Cifti2Image(keys[None].astype(np.float32), axes).to_filename(path)


def write_gifti(path: Path, regions: tuple[str, ...]) -> None:
    """Write the label file of one hemisphere."""
    nibabel: Any = require("nibabel", extra="fmri")
    table, keys = _keys(regions)
    image = nibabel.GiftiImage(darrays=[nibabel.gifti.GiftiDataArray(keys.astype(np.int32))])
    for key, name in table.items():
        label = nibabel.gifti.GiftiLabel(key)
        label.label = name or "???"
        image.labeltable.labels.append(label)
    image.to_filename(path)


def write_surface(path: Path, places: FloatArray) -> None:
    """Write the surface of one hemisphere; its places are [vertices, 3], in mm."""
    nibabel: Any = require("nibabel", extra="fmri")
    points = nibabel.gifti.GiftiDataArray(places.astype(np.float32), intent="NIFTI_INTENT_POINTSET")
    nibabel.GiftiImage(darrays=[points]).to_filename(path)


def _keys(regions: tuple[str, ...]) -> tuple[dict[int, Any], npt.NDArray[np.int64]]:
    """Names by key, 0 for none, and the key of every vertex."""
    names = ["", *sorted({*regions} - {""})]
    return dict(enumerate(names)), np.array([names.index(region) for region in regions])
