"""The readers of betas per trial: values, sets, repetitions, units, and an error for every fault."""

from __future__ import annotations

import pickle
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

from dataset_writers.betas import (
    GLM,
    GLMSINGLE,
    TEST,
    TRAIN,
    VERTEX_REGIONS,
    BetasTruth,
    write_beta_volumes,
    write_betas,
    write_bold_moments,
    write_dlabel,
    write_gifti,
    write_surface,
)
from dataset_writers.bids_fmri import SPACE
from lpact.codes import Reason
from lpact.config import DatasetConfig
from lpact.datasets import betas as reader
from lpact.datasets._vertex_labels import CORTEX, GRAYORDINATES, VERTICES, read_vertex_labels
from lpact.datasets.base import DATASETS, Dataset, FeatureKey, RecordingId
from lpact.errors import ConfigError, InputError, RecordingError
from lpact.extras import require
from lpact.inputs.responses import read_responses

h5py: Any = require("h5py", extra="hdf5")
nibabel: Any = require("nibabel", extra="fmri")

VOLUMES = {
    "files": f"sub-{{subject}}/sub-{{subject}}_ses-{{session}}_space-{SPACE}_betas.nii.gz",
    "trials": f"sub-{{subject}}/sub-{{subject}}_ses-{{session}}_space-{SPACE}_trials.tsv",
    "item_column": "stim_file",
    "set_column": "trial_type",
    "atlas": "atlas.nii.gz",
    "atlas_labels": "atlas.tsv",
}
BMD = {"atlas": "glasser.dlabel.nii"}
KINDS: dict[str, tuple[str, Callable[[Path], BetasTruth], dict[str, str]]] = {
    "arrays": ("betas", write_betas, GLMSINGLE),
    "volumes": ("betas", write_beta_volumes, VOLUMES),
    "bold_moments": ("bold_moments", write_bold_moments, BMD),
}


def opened(kind: str, folder: Path, **options: Any) -> Dataset:
    name, _, own = KINDS[kind]
    return DATASETS.build(name, {**own, **options}).open(name="own", path=folder, seed=0)


@pytest.fixture(scope="module", params=KINDS)
def written(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp(request.param)
    return request.param, folder, KINDS[request.param][1](folder)


@pytest.fixture
def folder(request: Any, tmp_path: Path) -> Path:
    """A folder of the kind that the test's parameter names, for a test to break."""
    KINDS[request.param][1](tmp_path)
    return tmp_path


with_arrays = pytest.mark.parametrize("folder", ["arrays"], indirect=True)
with_volumes = pytest.mark.parametrize("folder", ["volumes"], indirect=True)
with_bold_moments = pytest.mark.parametrize("folder", ["bold_moments"], indirect=True)


def test_responses_are_stimuli_by_repetitions_by_units(
    written: tuple[str, Path, BetasTruth],
) -> None:
    kind, path, truth = written
    dataset = opened(kind, path)
    kept = [i for i, region in enumerate(truth.regions) if region not in ("", "n/a")]
    for subject, values in truth.values.items():
        read = read_responses(dataset, DatasetConfig(name="own", reader="betas"), subject=subject)
        assert sorted(read.stimulus_ids) == sorted((*TRAIN, *TEST))
        assert read.regions == tuple(truth.regions[i] for i in kept)
        assert read.comparable_units
        assert read.groups is not None
        assert read.values.shape == (9, 4, len(kept))
        for own, group, item in zip(read.values, read.groups, read.stimulus_ids, strict=True):
            assert group == ("test" if item in TEST else "train")
            n = len(values[item])
            np.testing.assert_array_equal(own[:n], values[item][:, kept])
            assert np.isnan(own[n:]).all()


def test_a_recording_is_a_repetition_of_a_set(written: tuple[str, Path, BetasTruth]) -> None:
    kind, path, _ = written
    dataset = opened(kind, path)
    runs = [f"test-{k:02d}" for k in (1, 2, 3, 4)] + ["train-01", "train-02"]
    assert dataset.recording_ids() == [
        RecordingId(subject, "1", run, run[:-3]) for subject in ("01", "02") for run in runs
    ]
    stimulus = dataset.stimulus("train")
    assert stimulus.words["item"].to_list() == list(TRAIN)
    assert stimulus.words["story_id"].unique().to_list() == ["train"]
    assert not stimulus.has_text
    recording = dataset.recording(dataset.recording_ids()[0])
    assert recording.signal.values.shape[:2] == (1, len(TEST))
    assert recording.findings == () or recording.findings[-1].severity == "excluded"


def test_only_the_chosen_regions_and_subjects_are_read(
    written: tuple[str, Path, BetasTruth],
) -> None:
    kind, path, truth = written
    region = truth.regions[3]
    dataset = opened(kind, path, regions=[region], subjects=["02"])
    assert {own.subject for own in dataset.recording_ids()} == {"02"}
    recording = dataset.recording(dataset.recording_ids()[-1])
    assert set(recording.units.regions) == {region}
    kept = np.array(truth.regions) == region
    expected = [truth.values["02"][item][1, kept] for item in TRAIN]
    np.testing.assert_array_equal(np.asarray(recording.signal.values)[0], expected)
    with pytest.raises(InputError, match="there is no region 'V9'"):
        opened(kind, path, regions=["V9"]).recording(dataset.recording_ids()[0])
    with pytest.raises(InputError, match="there is no subject '3'"):
        opened(kind, path, subjects=["3"])


def test_arrays_are_read_in_pieces_of_any_size(
    written: tuple[str, Path, BetasTruth], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, path, _ = written
    key = opened(kind, path).recording_ids()[-1]
    whole = np.asarray(opened(kind, path).recording(key).signal.values)
    monkeypatch.setattr(reader, "READ_BYTES", 1)
    np.testing.assert_array_equal(opened(kind, path).recording(key).signal.values, whole)


@with_arrays
@pytest.mark.parametrize("ending", ["npy", "npz", "mat"])
def test_other_formats_and_axes_give_the_same(folder: Path, ending: str) -> None:
    before = opened("arrays", folder)
    expected = {key: before.recording(key).signal.values for key in before.recording_ids()}
    for path in sorted(folder.glob("glm/*/*/*.hdf5")):
        with h5py.File(path) as file:
            values = file["betasmd"][:, 0, 0].T
        if ending == "npy":
            np.save(path.with_name("betas.npy"), np.asfortranarray(values))
        elif ending == "npz":
            np.savez(path.with_name("betas.npz"), betasmd=values)
        else:
            scipy.io.savemat(path.with_name("betas.mat"), {"betasmd": values})
    files = f"glm/sub-{{subject}}/ses-{{session}}/betas.{ending}"
    after = opened("arrays", folder, files=files, axes="trial,unit", key="")
    for key, values in expected.items():
        np.testing.assert_array_equal(after.recording(key).signal.values, values)


@with_arrays
def test_missing_presentations_are_missing_values_with_a_note(folder: Path) -> None:
    table = folder / "sub-01/ses-2/func/sub-01_ses-2_task-videos_run-10_events.tsv"
    lines = table.read_text().splitlines()
    row = next(i for i, line in enumerate(lines) if "train" in line)
    item = lines[row].split("\t")[3]
    lines[row] = lines[row].replace("train", "test").replace(item, "vid1001")
    table.write_text("\n".join(lines) + "\n")
    dataset = opened("arrays", folder)
    recording = dataset.recording(RecordingId("01", "1", "train-02", "train"))
    missing = np.isnan(np.asarray(recording.signal.values)[0]).all(axis=1)
    assert [TRAIN[i] for i in np.flatnonzero(missing)] == [item]
    (note, left_out) = recording.findings
    assert note.reason is Reason.MISSING_SAMPLES
    assert note.found == "1 of 6 stimuli have fewer presentations, and no value here"
    assert left_out.found == "2 of 8 units without a region in vertices.tsv"
    fifth = dataset.recording(RecordingId("01", "1", "test-05", "test"))
    assert fifth.findings[0].found.startswith("2 of 3 stimuli")
    assert not any(own.run == "test-05" and own.subject == "02" for own in dataset.recording_ids())


@with_arrays
def test_units_without_an_atlas_have_no_region_and_no_space(folder: Path) -> None:
    dataset = opened("arrays", folder, atlas="", space="")
    units = dataset.recording(dataset.recording_ids()[0]).units
    assert set(units.regions) == {"unknown"}
    assert units.ids[:2] == ("u0", "u1")
    assert not units.comparable


@with_arrays
def test_sets_may_be_unknown(folder: Path) -> None:
    dataset = opened("arrays", folder, set_column="")
    assert dataset.stimulus_ids() == ["stimuli"]
    assert dataset.stimulus("stimuli").words["item"].to_list() == sorted((*TRAIN, *TEST))


@with_volumes
def test_a_mask_chooses_voxels_and_native_space_is_not_comparable(folder: Path) -> None:
    image = nibabel.load(folder / "atlas.nii.gz")
    mask = np.asarray(image.dataobj) == 7
    nibabel.Nifti1Image(mask.astype("uint8"), image.affine).to_filename(folder / "mask.nii")
    dataset = opened("volumes", folder, mask="mask.nii", space="T1w")
    recording = dataset.recording(dataset.recording_ids()[0])
    assert set(recording.units.regions) == {"STG_L"}
    assert len(recording.units.ids) == int(mask.sum())
    assert not recording.units.comparable
    assert recording.units.coordinates_mm is not None


@with_volumes
def test_an_atlas_may_differ_between_subjects(folder: Path) -> None:
    for subject in ("01", "02"):
        shutil.copy(folder / "atlas.nii.gz", folder / f"rois-{subject}.nii.gz")
    image = nibabel.load(folder / "rois-02.nii.gz")
    own = np.asarray(image.dataobj).copy()
    own[own == 3] = 0
    nibabel.Nifti1Image(own, image.affine).to_filename(folder / "rois-02.nii.gz")
    dataset = opened("volumes", folder, atlas="rois-{subject}.nii.gz")
    regions = {key.subject: set(dataset.recording(key).units.regions) for key in dataset.recording_ids()}
    assert regions == {"01": {"IFG_L", "STG_L", "STG_R"}, "02": {"STG_L", "STG_R"}}
    listed = {file.path for file in dataset.source_files()}
    assert {"rois-01.nii.gz", "rois-02.nii.gz", "atlas.tsv"} <= listed


@with_bold_moments
def test_features_of_models_are_offered_by_set(folder: Path) -> None:
    values = np.arange(12.0).reshape(6, 2)
    home = folder / "stimuli/train/features/vjepa/full"
    home.mkdir(parents=True)
    np.save(home / "layer-3.npy", values)
    dataset = opened("bold_moments", folder)
    offered = dataset.stimulus("train").features
    np.testing.assert_array_equal(offered[FeatureKey("vjepa", 3, "full")].load(), values)
    assert dataset.stimulus("test").features == {}
    assert "stimuli/train/features/vjepa/full/layer-3.npy" in {file.path for file in dataset.source_files()}


@with_bold_moments
def test_hemispheres_are_merged_unless_the_option_says_otherwise(folder: Path) -> None:
    dataset = opened("bold_moments", folder, merge_hemispheres=False)
    units = dataset.recording(dataset.recording_ids()[0]).units
    expected = ("L_V1_ROI", "R_V1_ROI", "R_MT_ROI", "L_V1_ROI", "R_MT_ROI", "L_FFC_ROI")
    assert units.regions == expected
    assert units.ids == ("L0", "L1", "L3", "R0", "R1", "R2")


@with_bold_moments
def test_an_atlas_may_be_elsewhere(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("atlases") / "glasser.dlabel.nii"
    shutil.move(folder / "glasser.dlabel.nii", place)
    dataset = opened("bold_moments", folder, atlas=str(place))
    assert dataset.recording(dataset.recording_ids()[0]).units.regions[0] == "V1"
    assert "elsewhere/glasser.dlabel.nii" in {file.path for file in dataset.source_files()}


# --- labels of vertices ---


def test_gifti_labels_of_two_hemispheres_follow_each_other(tmp_path: Path) -> None:
    write_gifti(tmp_path / "L.label.gii", ("V1", "", "MT"))
    write_gifti(tmp_path / "R.label.gii", ("MT", "V1"))
    labels = read_vertex_labels((tmp_path / "L.label.gii", tmp_path / "R.label.gii"))
    assert labels.ids == ("L0", "L1", "L2", "R0", "R1")
    assert labels.regions == ("V1", "unknown", "MT", "MT", "V1")


@with_bold_moments
def test_the_reader_finds_gifti_labels_by_hemisphere(folder: Path) -> None:
    named = tuple("" if name == "n/a" else name for name in VERTEX_REGIONS)
    write_gifti(folder / "L.label.gii", named[:4])
    write_gifti(folder / "R.label.gii", named[4:])
    dataset = opened("bold_moments", folder, atlas="{hemi}.label.gii")
    units = dataset.recording(dataset.recording_ids()[0]).units
    assert units.regions == ("V1", "V1", "MT", "V1", "MT", "FFC")
    assert units.ids == ("L0", "L1", "L3", "R0", "R1", "R2")


@with_bold_moments
def test_a_surface_says_where_vertices_are(folder: Path) -> None:
    places = np.random.default_rng(0).normal(size=(2, 4, 3)).round(3) * 40
    for side, own in zip("LR", places, strict=True):
        write_surface(folder / f"{side}.midthickness.surf.gii", own)
    dataset = opened("bold_moments", folder, surface="{hemi}.midthickness.surf.gii")
    units = dataset.recording(dataset.recording_ids()[0]).units
    assert units.ids == ("L0", "L1", "L3", "R0", "R1", "R2")
    np.testing.assert_allclose(units.coordinates_mm, places[[0, 0, 0, 1, 1, 1], [0, 1, 3, 0, 1, 2]], rtol=1e-6)
    assert units.coordinate_frame == "fsLR32k"
    assert {"L.midthickness.surf.gii", "R.midthickness.surf.gii"} <= {file.path for file in dataset.source_files()}


@with_bold_moments
def test_surfaces_that_do_not_fit_are_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"surface lacks \{hemi\}"):
        opened("bold_moments", folder, surface="midthickness.surf.gii")
    with pytest.raises(ConfigError, match="these files are volumes"):
        opened("volumes", folder, surface="{hemi}.surf.gii")
    for side in "LR":
        write_gifti(folder / f"{side}.label.gii", ("V1",) * 4)
        write_surface(folder / f"{side}.surf.gii", np.zeros((4, 3)))
    dataset = opened("bold_moments", folder, surface="{hemi}.label.gii")
    with pytest.raises(RecordingError, match="0 arrays of points"):
        dataset.recording(dataset.recording_ids()[0])
    (folder / "table.tsv").write_text("region\n" + "V1\n" * 8)
    dataset = opened("bold_moments", folder, atlas="table.tsv", surface="{hemi}.surf.gii")
    with pytest.raises(RecordingError, match="vertices L0, L1, …, but units u0, u1, u2"):
        dataset.recording(dataset.recording_ids()[0])


@pytest.mark.parametrize(
    ("n_labels", "n_columns", "n_used"),
    [
        (CORTEX, CORTEX, CORTEX),
        (CORTEX, GRAYORDINATES, CORTEX),
        (VERTICES, VERTICES, VERTICES),
        (VERTICES, CORTEX, CORTEX),
        (VERTICES, GRAYORDINATES, CORTEX),
    ],
)
def test_the_medial_wall_and_subcortical_voxels_are_recognised(
    tmp_path: Path, n_labels: int, n_columns: int, n_used: int
) -> None:
    """The first vertices are the medial wall; vertex ids say which vertices are left."""
    wall = n_labels - CORTEX
    regions = ("",) * wall + ("V1",) * CORTEX
    lines = ["unit\tregion", *(f"v{i}\t{name}" for i, name in enumerate(regions))]
    (tmp_path / "atlas.tsv").write_text("\n".join(lines) + "\n")
    labels = read_vertex_labels((tmp_path / "atlas.tsv",))
    ids, regions = labels.of_columns(n_columns, Path("betas.npy"))
    assert len(ids) == len(regions) == n_used
    assert ids[0] == f"v{n_labels - n_used}"


@with_bold_moments
def test_labels_that_do_not_fit_are_refused(folder: Path) -> None:
    write_dlabel(folder / "small.dlabel.nii", ("V1", "MT"))
    dataset = opened("bold_moments", folder, atlas="small.dlabel.nii")
    with pytest.raises(RecordingError, match="2 labels, 2 of them used; 8 units in the array"):
        dataset.recording(dataset.recording_ids()[0])
    axes = (
        nibabel.cifti2.ScalarAxis(["map"]),
        nibabel.cifti2.BrainModelAxis.from_mask(np.ones(8), name="cortex_left"),
    )
    nibabel.Cifti2Image(np.zeros((1, 8), np.float32), axes).to_filename(folder / "map.dlabel.nii")
    dataset = opened("bold_moments", folder, atlas="map.dlabel.nii")
    with pytest.raises(RecordingError, match="axes ScalarAxis and BrainModelAxis"):
        dataset.recording(dataset.recording_ids()[0])
    (folder / "torn.dlabel.nii").write_bytes(b"n+2")
    dataset = opened("bold_moments", folder, atlas="torn.dlabel.nii")
    with pytest.raises(RecordingError, match="cannot be read"):
        dataset.recording(dataset.recording_ids()[0])
    (folder / "no_column.tsv").write_text("name\n" + "V1\n" * 8)
    dataset = opened("bold_moments", folder, atlas="no_column.tsv")
    with pytest.raises(RecordingError, match="the column 'region' is missing"):
        dataset.recording(dataset.recording_ids()[0])


# --- errors ---


@with_bold_moments
def test_pickled_betas_are_named_and_not_opened(folder: Path) -> None:
    for path in folder.glob(f"{GLM}/*/*/*.npy"):
        path.unlink()
        path.with_suffix(".pkl").write_bytes(pickle.dumps("anything"))
    with pytest.raises(InputError, match=r"4 pickled file\(s\), such as sub-01") as caught:
        opened("bold_moments", folder)
    assert "convert them once" in str(caught.value.remedy)
    np.save(
        folder / GLM / "sub-01/prepared_betas/sub-01_organized_betas_task-test_normalized.npy",
        np.array({"betasmd": 1}),
        allow_pickle=True,
    )
    with pytest.raises(RecordingError, match="pickled Python objects"):
        opened("bold_moments", folder)


@with_arrays
@pytest.mark.parametrize(
    ("options", "error", "found"),
    [
        ({"files": ""}, ConfigError, r"option 'files'[^§]*a path with \{subject\}"),
        ({"trials": ""}, ConfigError, r"option 'trials'[^§]*\{subject\}, \{session\}"),
        ({"files": "glm/*.hdf5"}, ConfigError, r"a path with \{subject\}"),
        ({"atlas": "{session}.tsv"}, ConfigError, r"option 'atlas'[^§]*\{session\}"),
        ({"files": "glm/sub-{subject}/{who}.hdf5"}, ConfigError, r"'glm/sub-\{subject\}/\{who\}"),
        ({"files": "glm/sub-{subject}.npy"}, InputError, "no such file"),
        ({"trials": "sub-{subject}_run-{run}.tsv"}, ConfigError, r"option 'trials'[^§]*\{run\}"),
        ({"trials": "sub-{subject}_events.tsv"}, RecordingError, "no such table"),
        ({"item_column": "video"}, RecordingError, "the column 'video' is missing"),
        ({"set_column": "split"}, RecordingError, "the column 'split' is missing"),
        ({"axes": "trial,unit"}, RecordingError, r"8 trials in the file \(shape \(8, 1, 1, 12\)"),
        ({"axes": "item,repetition,unit"}, RecordingError, r"shape \(8, 1, 1, 12\)"),
        ({"key": "betas"}, RecordingError, "has no dataset 'betas'"),
    ],
)
def test_options_that_do_not_fit_are_named(
    folder: Path, options: dict[str, str], error: type[Exception], found: str
) -> None:
    def read() -> None:
        dataset = opened("arrays", folder, **options)
        dataset.recording(dataset.recording_ids()[0])

    with pytest.raises(error, match=found):
        read()


@with_arrays
def test_tables_that_do_not_fit_are_named(folder: Path) -> None:
    table = folder / "sub-02/ses-1/func/sub-02_ses-1_task-videos_run-2_events.tsv"
    text = table.read_text()
    table.write_text(text.replace("oddball\tn/a", "oddball\tvid9999"))
    with pytest.raises(RecordingError, match="12 trials in the file") as caught:
        opened("arrays", folder)
    assert "13 rows with a stimulus" in str(caught.value)
    assert table.name in str(caught.value)
    first = text.splitlines()[1]
    table.write_text(text.replace(first, first.replace("\ttest\t", "\tx\t").replace("\ttrain\t", "\tx\t")))
    with pytest.raises(RecordingError, match=r"the stimulus 'vid\d+' in the sets '\w+' and '\w+'"):
        opened("arrays", folder)
    table.write_text(text.replace("\ttrain\t", "\tn/a\t"))
    with pytest.raises(RecordingError, match="column 'trial_type'"):
        opened("arrays", folder)


def test_files_of_a_subject_must_have_the_same_units(tmp_path: Path) -> None:
    write_beta_volumes(tmp_path)
    stem = tmp_path / f"sub-01/sub-01_ses-2_space-{SPACE}_betas.nii.gz"
    image = nibabel.load(stem)
    moved = image.affine.copy()
    moved[0, 3] += 3
    nibabel.Nifti1Image(np.asarray(image.dataobj), moved).to_filename(stem)
    dataset = opened("volumes", tmp_path)
    with pytest.raises(RecordingError, match="the units of the subject's other files"):
        dataset.recording(RecordingId("01", "1", "train-02", "train"))
    shutil.rmtree(tmp_path / "sub-01")
    shutil.rmtree(tmp_path / "sub-02")
    write_betas(tmp_path)

    path = tmp_path / "glm/sub-01/ses-2/TYPED_FITHRF_GLMDENOISE_RR.hdf5"
    with h5py.File(path, "r+") as file:
        values = file["betasmd"][:7]
        del file["betasmd"]
        file["betasmd"] = values
    dataset = opened("arrays", tmp_path)
    with pytest.raises(RecordingError, match="7 units") as caught:
        dataset.recording(RecordingId("01", "1", "train-02", "train"))
    assert "other files: 8" in str(caught.value)


@with_bold_moments
def test_the_how_to_converts_pickled_betas(folder: Path) -> None:
    before = opened("bold_moments", folder)
    expected = {key: before.recording(key) for key in before.recording_ids()}
    for path in folder.glob(f"{GLM}/*/*/*.npy"):
        items = path.with_suffix(".tsv").read_text().split()[1:]
        path.with_suffix(".pkl").write_bytes(pickle.dumps((np.load(path), items)))
        path.unlink()
        path.with_suffix(".tsv").unlink()
    page = Path(__file__).parents[2] / "docs/how-to/datasets/bold_moments.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    exec(code.replace("FOLDER", str(folder)), {})
    after = opened("bold_moments", folder)
    assert after.recording_ids() == list(expected)
    for key, recording in expected.items():
        values = after.recording(key).signal.values
        np.testing.assert_array_equal(values, recording.signal.values)


@pytest.mark.parametrize("normalise_set", ["", "train"])
@with_arrays
def test_trials_are_normalised_by_session(folder: Path, normalise_set: str) -> None:
    raw, own = (
        opened("arrays", folder, **options)
        for options in ({}, {"normalise": "session", "normalise_set": normalise_set})
    )
    # Every item is shown equally often in both sessions, so that half of the recordings are of each.
    for subject in ("01", "02"):
        for session in (0, 1):
            found = {"raw": [], "own": []}  # type: dict[str, list[np.ndarray]]
            for name, dataset in (("raw", raw), ("own", own)):
                for key in dataset.recording_ids():
                    n = 4 if key.stimulus == "test" else 2
                    late = int(key.run[-2:]) > n // 2
                    if key.subject == subject and late == bool(session):
                        found[name].append(np.asarray(dataset.recording(key).signal.values)[0])
            scale = found["raw"][-1:] if normalise_set else found["raw"]
            trials = np.concatenate(scale)
            expected = (np.concatenate(found["raw"]) - trials.mean(axis=0)) / trials.std(axis=0)
            np.testing.assert_allclose(np.concatenate(found["own"]), expected, atol=1e-12)


@with_arrays
def test_a_unit_that_is_constant_in_a_session_has_no_values_there(folder: Path) -> None:
    path = folder / "glm/sub-01/ses-2/TYPED_FITHRF_GLMDENOISE_RR.hdf5"
    with h5py.File(path, "r+") as file:
        file["betasmd"][0] = 0.1
    dataset = opened("arrays", folder, normalise="session")
    for key in dataset.recording_ids():
        values = np.asarray(dataset.recording(key).signal.values)[0]
        late = int(key.run[-2:]) > (2 if key.stimulus == "test" else 1)
        assert np.isnan(values[:, 0]).all() == (key.subject == "01" and late)
        assert np.isfinite(values[:, 1:]).all()


@with_arrays
def test_options_of_normalisation_that_fit_nothing(folder: Path) -> None:
    with pytest.raises(ConfigError, match="normalise_set without normalise"):
        opened("arrays", folder, normalise_set="train")
    with pytest.raises(ConfigError, match="lacks a placeholder") as caught:
        opened("arrays", folder, normalise="run")
    assert "{run}" in str(caught.value)
    with pytest.raises(InputError, match="no set of stimuli 'training'"):
        opened("arrays", folder, normalise="session", normalise_set="training")


@with_volumes
def test_a_session_without_the_set_that_gives_the_scale_is_named(folder: Path) -> None:
    path = folder / f"sub-01/sub-01_ses-2_space-{SPACE}_trials.tsv"
    path.write_text(path.read_text("utf-8").replace("train\tvid0", "test\tother"), "utf-8")
    dataset = opened("volumes", folder, normalise="session", normalise_set="train")
    last = next(key for key in dataset.recording_ids() if key.run == "test-04")
    with pytest.raises(RecordingError, match="no trial of 'train' in this session"):
        dataset.recording(last)
