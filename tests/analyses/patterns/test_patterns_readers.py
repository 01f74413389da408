"""Populations of regions from files: betas per trial, BIDS fMRI with an atlas, and arrays hold what was written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lpact
from dataset_writers._nifti import LABELS, REGIONS, atlas_volume, write_atlas, write_bold
from lpact.analyses.patterns.plan import DatasetPlan, audit_study
from lpact.analyses.patterns.populations import populations_of
from lpact.errors import InputError
from lpact.extras import require
from lpact.inputs.workspace import Workspace
from lpact.math.types import FloatArray

SUBJECTS = ("01", "02", "03")
TRAIN, TEST = tuple(f"a{i:02d}.mp4" for i in range(24)), tuple(f"b{i:02d}.mp4" for i in range(20))
REPETITIONS = {"train": 3, "test": 10}
SETS = {"train": TRAIN, "test": TEST}
VOXELS = atlas_volume().reshape(-1, order="F")
UNIT_REGIONS = tuple(dict(zip(LABELS, REGIONS, strict=True))[k] for k in VOXELS[VOXELS > 0])

Trials = Mapping[str, Mapping[str, FloatArray]]
"""By subject and item, [repetitions, units]."""


def drawn() -> Trials:
    """Responses to two items of every set that some trials lack, and to all others."""
    rng = np.random.default_rng(3)
    trials = {
        who: {
            item: rng.standard_normal((REPETITIONS[name], len(UNIT_REGIONS))).round(3)
            for name, items in SETS.items()
            for item in items
        }
        for who in SUBJECTS
    }
    trials["01"][TRAIN[3]] = trials["01"][TRAIN[3]][:1]
    trials["02"][TEST[5]] = trials["02"][TEST[5]][:7]
    return trials


def runs_of(trials: Mapping[str, FloatArray]) -> list[list[tuple[str, str, FloatArray]]]:
    """Trials of a subject in runs: set, item, response. The k-th run has the k-th presentations, training first."""
    return [
        [
            (name, item, trials[item][k])
            for name, items in SETS.items()
            for item in items[:: -1 if k % 2 else 1]
            if k < len(trials[item])
        ]
        for k in range(max(REPETITIONS.values()))
    ]


def table(path: Path, header: str, rows: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


def write_betas(folder: Path, trials: Trials) -> dict[str, Any]:
    """A file of betas per session."""
    table(folder / "atlas.tsv", "region", list(UNIT_REGIONS))
    for who, own in trials.items():
        runs = runs_of(own)
        for session, part in (("1", runs[:2]), ("2", runs[2:])):
            rows = [trial for run in part for trial in run]
            stem = folder / f"sub-{who}_ses-{session}"
            table(Path(f"{stem}_trials.tsv"), "set\titem", [f"{a}\t{b}" for a, b, _ in rows])
            np.save(f"{stem}_betas.npy", np.array([values for *_, values in rows]))
    options = {
        "files": "sub-{subject}_ses-{session}_betas.npy",
        "trials": "sub-{subject}_ses-{session}_trials.tsv",
        "set_column": "set",
        "atlas": "atlas.tsv",
        "space": "fsLR32k",
    }
    return {"reader": "betas", "options": options}


def write_bids(folder: Path, trials: Trials) -> dict[str, Any]:
    """A series per run: an item every 8 s, and its response 4 s after its onset."""
    nibabel: Any = require("nibabel", extra="fmri")
    write_atlas(folder)
    inside = np.flatnonzero(VOXELS)
    for who, own in trials.items():
        for k, rows in enumerate(runs_of(own), start=1):
            stem = folder / f"sub-{who}/func/sub-{who}_task-video_run-{k:02d}"
            lines = [f"{8 * i}\t3\t{name}\t{item}" for i, (name, item, _) in enumerate(rows)]
            table(Path(f"{stem}_events.tsv"), "onset\tduration\ttrial_type\tstim_file", lines)
            path = Path(f"{stem}_bold.nii.gz")
            write_bold(path, np.zeros((2 * len(rows), 3)), tr_s=4.0)
            image = nibabel.load(path)
            flat = np.asarray(image.dataobj).reshape(-1, 2 * len(rows), order="F")
            flat[inside, 1::2] = np.array([values for *_, values in rows]).T
            series = flat.reshape(image.shape, order="F").astype(np.float32)
            nibabel.Nifti1Image(series, image.affine, image.header).to_filename(path)
    options = {
        "derivatives": "",
        "desc": "",
        "words": "events",
        "item_column": "stim_file",
        "story_column": "trial_type",
        "atlas": "atlas.nii.gz",
        "atlas_labels": "atlas.tsv",
        "mask": "atlas.nii.gz",
    }
    return {"reader": "bids_fmri", "options": options, "grid": {"lags_ms": [4000.0]}}


def write_arrays(folder: Path, trials: Trials) -> dict[str, Any]:
    """An array per subject, set and repetition, with rows of NaN for missing trials."""
    text = '[dataset]\nsource = "own"\nversion = "1"\nlicence = "CC0-1.0"\n'
    for name, items in SETS.items():
        table(folder / f"{name}.tsv", "item\tstory_id", [f"{item}\t{name}" for item in items])
        text += f'[[stimuli]]\nid = "{name}"\nitems = "{name}.tsv"\n'
    text += '[defaults]\naxes = "item,unit"\nunits = "units.tsv"\ncomparable_units = true\n'
    units = [f"u{i}\t{region}" for i, region in enumerate(UNIT_REGIONS)]
    table(folder / "units.tsv", "unit\tregion", units)
    for who, own in trials.items():
        for name, items in SETS.items():
            for k in range(REPETITIONS[name]):
                missing = np.full(len(UNIT_REGIONS), np.nan)
                rows = [own[item][k] if k < len(own[item]) else missing for item in items]
                file = f"sub-{who}_{name}-{k + 1:02d}.npy"
                np.save(folder / file, np.array(rows))
                text += f'[[recordings]]\nsubject = "{who}"\nrun = "{name}-{k + 1:02d}"\n'
                text += f'stimulus = "{name}"\nfile = "{file}"\n'
    (folder / "recordings.toml").write_text(text, encoding="utf-8")
    return {"reader": "arrays"}


WRITERS = {"betas": write_betas, "bids_fmri": write_bids, "arrays": write_arrays}


def workspace_of(folder: Path, dataset: dict[str, Any]) -> Workspace:
    study = lpact.load_study(
        {
            "name": "files",
            "datasets": [{"name": "own", "grid": {"lags_ms": [0.0]}} | dataset],
            "models": [{"name": "m", "source": "precomputed", "layers": [0]}],
            "patterns": {"min_units": 3},
            "run": {"paths": {"own": str(folder)}},
        }
    )
    return Workspace(study.config, study.run_config)


def audited(workspace: Workspace) -> tuple[DatasetPlan, Mapping[str, Any]]:
    problems: list[InputError] = []
    audit = audit_study(workspace, problems, lambda: None)
    assert problems == []
    (plan,) = audit.detail
    return plan, audit.tables


@pytest.mark.parametrize("kind", WRITERS)
def test_populations_are_the_trials_that_were_written(kind: str, tmp_path: Path) -> None:
    trials = drawn()
    workspace = workspace_of(tmp_path, WRITERS[kind](tmp_path, trials))
    plan, tables = audited(workspace)
    place = plan.place
    assert place.subjects == SUBJECTS
    assert sorted(place.regions) == sorted(REGIONS)
    seen = tables["patterns/subjects"]
    assert seen["n_repetitions_train"].to_list() == [3, 3, 3]
    assert seen["n_repetitions_test"].to_list() == [10, 10, 10]
    assert seen["n_train"].to_list() == [24] * 3
    assert seen["n_test"].to_list() == [20] * 3
    own = populations_of(workspace, "own", place.lag_ms, place.subjects, place.regions)
    assert sorted(own.stimuli[: own.n_train]) == sorted(TRAIN)
    assert sorted(own.stimuli[own.n_train :]) == sorted(TEST)
    assert own.comparable == ({*REGIONS} if kind != "bids_fmri" else set())
    for who in SUBJECTS:
        means = np.array([trials[who][item].mean(axis=0) for item in own.stimuli])
        train = means[: own.n_train]
        expected = (means - train.mean(axis=0)) / train.std(axis=0)
        for region in REGIONS:
            wanted = expected[:, np.array(UNIT_REGIONS) == region]
            np.testing.assert_allclose(own.of(who, region), wanted, rtol=1e-4, atol=1e-4)
