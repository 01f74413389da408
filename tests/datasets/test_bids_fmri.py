"""The reader of generic BIDS fMRI, and what all fMRI readers share: volumes, atlases, masks, side files."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
from nilearn.image import resample_to_img
from nilearn.maskers import NiftiLabelsMasker, NiftiMasker

from dataset_writers._nifti import AFFINE, SHAPE, atlas_volume, write_atlas, write_bold, write_volume
from dataset_writers.bids_fmri import BidsFmriTruth, write_bids_fmri
from lpact.codes import Reason
from lpact.config import DatasetConfig, GridConfig
from lpact.datasets import _fmri_volumes as nifti
from lpact.datasets.base import DATASETS, Dataset, Finding, RecordingId
from lpact.datasets.series import BLOCK_BYTES, StreamedSeries, unit_blocks
from lpact.errors import ConfigError, InputError, RecordingError, StimulusError
from lpact.grid import build_grid
from lpact.inputs.responses import read_responses
from lpact.math.types import FloatArray

ATLAS = {"atlas": "atlas.nii.gz", "atlas_labels": "atlas.tsv"}
WORDS = "stimuli/{task}_words.tsv"
FUNC = "derivatives/fmriprep/sub-01/ses-a/func"
STEM = "sub-01_ses-a_task-listen_run-1"
BOLD = f"{FUNC}/{STEM}_space-MNI152NLin6Asym_res-2_desc-preproc_bold.nii.gz"
KEY = RecordingId("01", "a", "1", "listen_words")


@dataclass(frozen=True)
class Written:
    folder: Path
    truth: BidsFmriTruth


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("bids")
    return Written(folder, write_bids_fmri(folder))


@pytest.fixture
def copy(written: Written, tmp_path: Path) -> Path:
    """A copy that a test may break."""
    return Path(shutil.copytree(written.folder, tmp_path / "copy"))


def opened(folder: Path, **options: Any) -> Dataset:
    given = {**ATLAS, "words": WORDS, "start_event": "start", **options}
    return DATASETS.build("bids_fmri", given).open(name="bids", path=folder, seed=0)


def test_regions_are_means_over_voxels(written: Written) -> None:
    dataset = opened(written.folder)
    assert [str(key) for key in dataset.recording_ids()] == sorted(written.truth.means)
    for key in dataset.recording_ids():
        recording = dataset.recording(key)
        means = written.truth.means[str(key)]
        assert isinstance(recording.signal.values, StreamedSeries)
        np.testing.assert_allclose(recording.signal.read(range(3)), means, atol=1e-12)
        np.testing.assert_allclose(recording.signal.read([2, 0]), means[:, [2, 0]], atol=1e-12)
        assert recording.signal.start_s == written.truth.start_s[str(key)]
        assert recording.signal.sampling_rate_hz == pytest.approx(1 / 1.1)
    assert recording.units.regions == written.truth.regions
    assert recording.units.coordinate_frame == "MNI152NLin6Asym"
    np.testing.assert_allclose(recording.units.coordinates_mm, written.truth.centres_mm)


def test_every_word_meets_its_volume(written: Written) -> None:
    dataset = opened(written.folder)
    stimulus = dataset.stimulus("listen_words")
    for key in dataset.recording_ids():
        config = GridConfig(events="trs", lags_ms=(0.0,))
        grid = build_grid(dataset.recording(key), stimulus, config)
        volumes = written.truth.volumes[str(key)]
        inside = volumes[volumes >= 0]
        np.testing.assert_array_equal(grid.responses[0, :, 0], np.unique(inside) + 1.0)
        counts = np.unique(inside, return_counts=True)[1]
        np.testing.assert_array_equal(grid.stop_word - grid.first_word, counts)
    assert inside.size < volumes.size, "the last run ends early"


def test_means_equal_those_of_nilearn(written: Written, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    folder = Path(shutil.copytree(written.folder, tmp_path / "copy"))
    image = nibabel.load(folder / BOLD)
    values = rng.standard_normal(image.shape).astype(np.float32) * 50 + 300
    scaled = nibabel.Nifti1Image(values, image.affine, image.header)
    scaled.set_data_dtype(np.int16)
    scaled.to_filename(folder / BOLD)
    masker = NiftiLabelsMasker(folder / "atlas.nii.gz", resampling_target=None, standardize=None)
    expected = masker.fit_transform(folder / BOLD)
    read = opened(folder).recording(KEY).signal.read(range(3))
    np.testing.assert_allclose(read, expected, rtol=1e-6)


def test_voxels_of_a_mask_equal_those_of_nilearn(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nifti, "CHUNK_BYTES", 7 * 8 * int(np.prod(SHAPE)))
    dataset = opened(written.folder, atlas="", atlas_labels="", mask="mask.nii.gz")
    recording = dataset.recording(KEY)
    assert len(recording.units.ids) == written.truth.n_mask_voxels
    assert set(recording.units.regions) == {"unknown"}
    expected = NiftiMasker(written.folder / "mask.nii.gz", standardize=None).fit_transform(written.folder / BOLD)
    read = recording.signal.read(range(written.truth.n_mask_voxels))
    assert sorted(read.T.tolist()) == sorted(expected.T.tolist())
    assert recording.units.coordinates_mm is not None
    image = nibabel.load(written.folder / BOLD)
    for unit in (0, 5, written.truth.n_mask_voxels - 1):
        place = np.append(recording.units.coordinates_mm[unit], 1.0)
        i, j, k, _ = np.rint(np.linalg.solve(image.affine, place)).astype(int)
        assert recording.units.ids[unit] == f"voxel-{i}-{j}-{k}"
        np.testing.assert_array_equal(read[:, unit], image.dataobj[i, j, k])


def test_blocks_of_voxels_are_the_voxels(written: Written) -> None:
    recording = opened(written.folder, mask="mask.nii.gz").recording(KEY)
    whole = recording.signal.read(range(len(recording.units.ids)))
    n_bytes = 8 * 5 * len(whole)
    assert n_bytes < BLOCK_BYTES
    blocks = [values for _, values in unit_blocks(recording.signal.values, n_bytes)]
    assert len(blocks) > 2
    np.testing.assert_array_equal(np.hstack(blocks), whole)


def test_an_atlas_names_the_regions_of_a_masks_voxels(written: Written) -> None:
    units = opened(written.folder, mask="mask.nii.gz").recording(KEY).units
    region = dict(zip(units.ids, units.regions, strict=True))
    assert region["voxel-0-1-1"] == "IFG_L"
    assert region["voxel-3-2-1"] == "STG_L"
    assert region["voxel-0-0-0"] == "unknown"
    assert "voxel-3-4-1" not in region


def test_a_region_without_voxels_is_left_out_and_told(written: Written) -> None:
    [finding] = opened(written.folder).recording(KEY).findings
    assert finding.field == "AnteriorNowhere"
    assert finding.reason == Reason.UNIT_WITHOUT_PLACE
    assert finding.severity == "excluded"
    assert "label 40" in finding.found
    assert str(written.folder) not in finding.where


def test_a_label_that_the_table_lacks_keeps_its_number(copy: Path) -> None:
    table = copy / "atlas.tsv"
    text = table.read_text(encoding="utf-8")
    table.write_text(text.replace("7\tSTG_L\n", ""), encoding="utf-8")
    recording = opened(copy).recording(KEY)
    assert recording.units.ids == ("IFG_L", "label-7", "STG_R")
    assert [f.severity for f in recording.findings if f.field == "label-7"] == ["note"]
    assert opened(copy, atlas_labels="").recording(KEY).units.ids[0] == "label-3"


def test_words_on_their_own_clock_make_one_stimulus(written: Written) -> None:
    dataset = opened(written.folder)
    assert {key.stimulus for key in dataset.recording_ids()} == {"listen_words"}
    stimulus = dataset.stimulus("listen_words")
    assert tuple(stimulus.words["word"]) == written.truth.words
    np.testing.assert_array_equal(stimulus.words["onset_s"], written.truth.onset_s)
    np.testing.assert_array_equal(stimulus.words["sentence_id"], np.arange(50) // 8)
    assert stimulus.words["log_frequency"][3] == 0.75
    assert stimulus.words["category"][:2].to_list() == ["even", "odd"]
    assert [f.reason for f in stimulus.findings] == [Reason.SENTENCES_BY_RULE]


def test_words_can_be_events_of_each_run(written: Written) -> None:
    for options in ({"start_event": "start"}, {"start_event": ""}):
        dataset = opened(written.folder, words="events", **options)
        for key in dataset.recording_ids():
            stimulus = dataset.stimulus(key.stimulus)
            assert tuple(stimulus.words["word"]) == written.truth.words
            config = GridConfig(events="trs", lags_ms=(0.0,))
            grid = build_grid(dataset.recording(key), stimulus, config)
            volumes = written.truth.volumes[str(key)]
            np.testing.assert_array_equal(grid.responses[0, :, 0], np.unique(volumes[volumes >= 0]) + 1.0)
    assert len({key.stimulus for key in dataset.recording_ids()}) == 4


ITEMS = (("a.mp4", "train"), ("b.mp4", "train"), ("c.mp4", "test"))
"""Stimuli of a run, in the order of the first run; the second run has them in reverse."""


def write_item_runs(folder: Path) -> FloatArray:
    """Write two runs with the same stimuli, and an oddball; return the means of every volume, [run, volume, region]."""
    write_atlas(folder)
    means = np.random.default_rng(5).integers(-99, 99, (2, 16, 3)).astype(np.float64)
    for run in (1, 2):
        func = folder / "sub-01/func"
        write_bold(func / f"sub-01_task-video_run-{run}_bold.nii.gz", means[run - 1], tr_s=2.0)
        order = ITEMS if run == 1 else ITEMS[::-1]
        rows = [f"{4 + 8 * i}\t3\t{kind}\t{item}" for i, (item, kind) in enumerate(order)]
        rows.insert(1, "8\t3\toddball\tn/a")
        lines = ["onset\tduration\ttrial_type\tstim_file", *rows]
        events = func / f"sub-01_task-video_run-{run}_events.tsv"
        events.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return means


def test_items_of_the_events_that_return_in_another_run_are_repetitions(tmp_path: Path) -> None:
    means = write_item_runs(tmp_path)
    dataset = opened(
        tmp_path,
        words="events",
        start_event="",
        derivatives="",
        desc="",
        mask="atlas.nii.gz",
        item_column="stim_file",
        story_column="trial_type",
    )
    stimulus = dataset.stimulus("sub-01_task-video_run-2")
    assert stimulus.words["item"].to_list() == ["c.mp4", "b.mp4", "a.mp4"]
    assert not stimulus.has_text
    entry = DatasetConfig(name="own", reader="bids_fmri", grid=GridConfig(lags_ms=(4000.0,)))
    read = read_responses(dataset, entry, subject="01")
    assert read.stimulus_ids == ("a.mp4", "b.mp4", "c.mp4")
    assert read.groups == ("train", "train", "test")
    assert read.regions is not None
    assert read.values.shape == (3, 2, len(read.regions))
    for column, region in enumerate(("IFG_L", "STG_L", "STG_R")):
        voxels = read.values[:, :, np.array(read.regions) == region].mean(axis=2)
        # Items begin at 4, 12 and 20 s: volumes 4, 8 and 12 are 4 s later.
        np.testing.assert_allclose(voxels[:, 0], means[0, [4, 8, 12], column])
        np.testing.assert_allclose(voxels[:, 1], means[1, [12, 8, 4], column])
    with pytest.raises(StimulusError, match="the column 'split' is missing"):
        opened(
            tmp_path,
            words="events",
            derivatives="",
            desc="",
            start_event="",
            item_column="stim_file",
            story_column="split",
        ).stimulus("sub-01_task-video_run-1")


def test_the_onset_can_be_an_option(written: Written) -> None:
    dataset = opened(written.folder, start_event="", stimulus_onset_s=3.5, tr_reference=0.5)
    assert dataset.recording(KEY).signal.start_s == pytest.approx(-3.5 + 0.55)


def test_confounds_come_with_the_recording(written: Written) -> None:
    dataset = opened(written.folder)
    for key in dataset.recording_ids():
        confounds = dataset.recording(key).confounds
        assert confounds is not None
        expected = written.truth.confounds[str(key)]
        assert confounds.columns == expected.columns
        np.testing.assert_array_equal(confounds.to_numpy(), expected.to_numpy())
        assert np.isnan(confounds["trans_x_derivative1"][0])


def test_sources_hold_every_file_and_an_atlas_from_elsewhere(written: Written, tmp_path: Path) -> None:
    atlas = tmp_path / "other.nii.gz"
    shutil.copy(written.folder / "atlas.nii.gz", atlas)
    dataset = opened(written.folder, atlas=str(atlas), atlas_labels="")
    names = [file.path for file in dataset.source_files()]
    assert len(names) == 4 * 4 + 2 + 1
    assert BOLD in names
    assert "stimuli/listen_words.tsv" in names
    assert names[-1] == "elsewhere/other.nii.gz"
    assert dataset.info.licence == "CC-BY-4.0"


def shifted_atlas(folder: Path) -> None:
    """Write an atlas with voxels half as large along the first axis, on the same brain."""
    affine = AFFINE.copy()
    affine[:, 0] /= 2
    affine[0, 3] += 0.75
    fine = np.repeat(atlas_volume(), 2, axis=0).astype(np.int16)
    nibabel.Nifti1Image(fine, affine).to_filename(folder / "fine.nii.gz")


def test_an_atlas_on_another_grid_is_refused_or_resampled(copy: Path) -> None:
    shifted_atlas(copy)
    dataset = opened(copy, atlas="fine.nii.gz")
    with pytest.raises(RecordingError, match="not on the same grid") as caught:
        dataset.recording(KEY)
    message = str(caught.value)
    assert "fine.nii.gz" in message
    assert "12x5x4" in message
    assert "6x5x4" in message
    assert "resample_atlas = true" in message
    recording = opened(copy, atlas="fine.nii.gz", resample_atlas=True).recording(KEY)
    bold = nibabel.load(copy / BOLD)
    there = resample_to_img(
        copy / "fine.nii.gz",
        bold.slicer[..., 0],
        interpolation="nearest",
        force_resample=True,
        copy_header=True,
    )
    labels = np.asarray(there.dataobj)
    expected = np.stack([np.asarray(bold.dataobj)[labels == label].mean(axis=0) for label in (3, 7, 12)], axis=1)
    np.testing.assert_allclose(recording.signal.read(range(3)), expected, rtol=1e-5, atol=1e-4)


def test_an_atlas_whose_affine_alone_differs_is_refused(copy: Path) -> None:
    affine = AFFINE.copy()
    affine[0, 3] += 0.5
    image = nibabel.Nifti1Image(atlas_volume().astype(np.int16), affine)
    image.to_filename(copy / "atlas.nii.gz")
    with pytest.raises(RecordingError, match="not on the same grid"):
        opened(copy).recording(KEY)


@pytest.mark.parametrize(
    ("volume", "told"),
    [
        (np.zeros(SHAPE), "no voxel above 0"),
        (np.full(SHAPE, 0.5), "one whole number"),
        (np.full(SHAPE, -1.0), "one whole number"),
        (np.ones((*SHAPE, 2)), "probabilistic"),
    ],
)
def test_an_atlas_that_is_none_is_named(copy: Path, volume: np.ndarray, told: str) -> None:
    write_volume(copy / "atlas.nii.gz", volume, "float32")
    with pytest.raises(RecordingError, match=told) as caught:
        opened(copy).recording(KEY)
    assert "atlas.nii.gz" in str(caught.value)


def test_regions_of_one_name_are_named(copy: Path) -> None:
    table = copy / "atlas.tsv"
    text = table.read_text(encoding="utf-8").replace("STG_R", "STG_L")
    table.write_text(text, encoding="utf-8")
    with pytest.raises(RecordingError, match="'STG_L' 2 times") as caught:
        opened(copy).recording(KEY)
    assert "hemisphere" in str(caught.value)


def test_without_atlas_and_mask_nothing_is_a_unit(written: Written) -> None:
    with pytest.raises(ConfigError, match="neither an atlas nor a mask"):
        opened(written.folder, atlas="", atlas_labels="").recording(KEY)


@pytest.mark.parametrize("name", ["nowhere.nii.gz", "/nowhere/atlas.nii.gz"])
def test_a_missing_atlas_is_named(written: Written, name: str) -> None:
    with pytest.raises(InputError, match=name):
        opened(written.folder, atlas=name)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.6])
def test_a_truncated_series_is_named(copy: Path, share: float) -> None:
    path = copy / BOLD
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(RecordingError, match="may be truncated") as caught:
        opened(copy).recording(KEY).signal.read([0])
    assert str(path) in str(caught.value)
    assert "download the file again" in str(caught.value)


def test_a_truncated_series_without_compression_is_named_at_once(copy: Path) -> None:
    path = copy / BOLD
    plain = path.with_suffix("")
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    path.unlink()
    np.testing.assert_array_equal(opened(copy).recording(KEY).signal.read([0]).min(), 0.0)
    plain.write_bytes(plain.read_bytes()[:-100])
    with pytest.raises(RecordingError, match="the header announces") as caught:
        opened(copy).recording(KEY)
    assert plain.name in str(caught.value)


def test_gaps_stay_in_their_region(copy: Path) -> None:
    image = nibabel.load(copy / BOLD)
    values = np.asarray(image.dataobj).copy()
    values[3, 2, 1, 4] = np.nan
    nibabel.Nifti1Image(values, image.affine, image.header).to_filename(copy / BOLD)
    read = opened(copy).recording(KEY).signal.read(range(3))
    assert np.argwhere(np.isnan(read)).tolist() == [[4, 1]]


def test_one_volume_is_not_a_series(copy: Path) -> None:
    image = nibabel.load(copy / BOLD)
    nibabel.Nifti1Image(np.asarray(image.dataobj)[..., 0], image.affine).to_filename(copy / BOLD)
    with pytest.raises(RecordingError, match="a series of volumes"):
        opened(copy).recording(KEY)


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({"RepetitionTime": 2.2}, "disagree about the repetition time"),
        ({"RepetitionTime": "fast"}, "disagree about the repetition time"),
        ([1.1], "a JSON object"),
    ],
)
def test_a_wrong_sidecar_is_named(copy: Path, stated: object, told: str) -> None:
    path = copy / BOLD.replace(".nii.gz", ".json")
    path.write_text(json.dumps(stated), encoding="utf-8")
    with pytest.raises(RecordingError, match=told) as caught:
        opened(copy).recording(KEY)
    assert path.name in str(caught.value)


def test_a_repetition_time_in_milliseconds_is_read(copy: Path) -> None:
    image = nibabel.load(copy / BOLD)
    image.header.set_xyzt_units("mm", "msec")
    image.header["pixdim"][4] = 1100.0
    nibabel.Nifti1Image(np.asarray(image.dataobj), None, image.header).to_filename(copy / BOLD)
    assert opened(copy).recording(KEY).signal.sampling_rate_hz == pytest.approx(1 / 1.1)


def test_a_series_without_repetition_time_is_named(copy: Path) -> None:
    image = nibabel.load(copy / BOLD)
    image.header["pixdim"][4] = 0.0
    nibabel.Nifti1Image(np.asarray(image.dataobj), None, image.header).to_filename(copy / BOLD)
    (copy / BOLD.replace(".nii.gz", ".json")).unlink()
    with pytest.raises(RecordingError, match="no file states the repetition time"):
        opened(copy).recording(KEY)
    assert opened(copy, tr_s=1.1).recording(KEY).signal.sampling_rate_hz == 1 / 1.1


def test_confounds_of_another_length_are_named(copy: Path) -> None:
    path = copy / f"{FUNC}/{STEM}_desc-confounds_timeseries.tsv"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
    with pytest.raises(RecordingError, match="one row per volume") as caught:
        opened(copy).recording(KEY)
    assert path.name in str(caught.value)


def test_words_without_times_are_left_out_and_told(copy: Path) -> None:
    path = copy / "stimuli/listen_words.tsv"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[3] = "\t".join(["word2", "n/a", "n/a", "0.5", "even"])
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    stimulus = opened(copy).stimulus("listen_words")
    assert stimulus.words.height == 49
    [told] = [f for f in stimulus.findings if f.reason == Reason.SOURCE_ROWS_LEFT_OUT]
    assert "1 of 50 words without times; first: line 4" in told.found


def test_words_that_run_backwards_are_named(copy: Path) -> None:
    path = copy / "stimuli/listen_words.tsv"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[3], lines[4] = lines[4], lines[3]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(StimulusError, match="breaks the order") as caught:
        opened(copy).stimulus("listen_words")
    assert "listen_words.tsv, column 'onset_s', row 4" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"words": ""}, ConfigError, "the option 'words' is missing"),
        ({"words": "stimuli/{run}.tsv"}, StimulusError, "'stimuli/1.tsv' is missing"),
        ({"audio": "stimuli/{run}.wav"}, StimulusError, "'stimuli/1.wav' is missing"),
        ({"audio": "{session}.wav"}, InputError, "names two files for the stimulus 'listen_words'"),
        ({"start_event": "begin"}, RecordingError, "trial_type 'begin'"),
        ({"task": "rest"}, InputError, "no volumes to read"),
        ({"subjects": ("03",)}, InputError, "there is no subject '03'"),
        ({"words": "events", "word_event": "token"}, StimulusError, "rows with trial_type 'token'"),
        ({"words": "events", "word_column": "text"}, StimulusError, "the column 'text' is missing"),
    ],
)
def test_options_that_do_not_fit_are_named(
    written: Written, options: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error) as caught:
        read_all(opened(written.folder, **options))
    assert told in str(caught.value)


def read_all(dataset: Dataset) -> None:
    for key in dataset.recording_ids():
        dataset.stimulus(key.stimulus)
        dataset.recording(key)


def test_several_tasks_and_spaces_must_be_told_apart(copy: Path) -> None:
    path = copy / BOLD
    shutil.copy(path, path.with_name(path.name.replace("MNI152NLin6Asym", "T1w")))
    with pytest.raises(InputError, match="several values of 'space-'") as caught:
        opened(copy)
    assert "MNI152NLin6Asym, T1w" in str(caught.value)
    assert len(opened(copy, space="MNI152NLin6Asym").recording_ids()) == 4
    shutil.copy(path, path.with_name(path.name.replace("listen", "rest")))
    with pytest.raises(InputError, match="several values of 'task-'"):
        opened(copy, space="MNI152NLin6Asym")


def test_the_audio_can_be_named(copy: Path) -> None:
    (copy / "stimuli/listen.wav").write_bytes(b"RIFF")
    dataset = opened(copy, audio="stimuli/{task}.wav")
    stimulus = dataset.stimulus("listen_words")
    assert stimulus.media == {"audio": "stimuli/listen.wav"}
    assert stimulus.media_path("audio") == (copy / "stimuli/listen.wav").resolve()
    assert stimulus.media_absent == {}
    assert "stimuli/listen.wav" in [file.path for file in dataset.source_files()]
    without = opened(copy).stimulus("listen_words")
    assert without.media == {}
    assert without.media_absent["audio"].reason == Reason.MEDIA_NOT_OFFERED


def test_a_folder_without_description_states_nothing(copy: Path) -> None:
    (copy / "dataset_description.json").unlink()
    info = opened(copy).info
    assert (info.version, info.licence) == ("not stated", "not stated")


def test_a_start_that_no_option_says_is_told(written: Written, copy: Path) -> None:
    (note,) = start_notes(opened(written.folder, start_event=""))
    assert (note.severity, note.reason) == ("note", Reason.STIMULUS_START_ASSUMED)
    assert "'start'" in note.found
    assert "first volume" in note.found
    assert 'start_event = "start"' in note.remedy
    assert "stimulus_onset_s" in note.expected
    assert f"{STEM}_events.tsv" in note.found
    # A study file's options reach the reader with every default filled in.
    options = {**ATLAS, "words": WORDS}
    filled = DATASETS.build("bids_fmri", options).options.model_dump()
    dataset = DATASETS.build("bids_fmri", filled).open(name="bids", path=written.folder, seed=0)
    assert start_notes(dataset) == [note]
    assert start_notes(opened(written.folder)) == []
    assert start_notes(opened(written.folder, start_event="", stimulus_onset_s=0.0)) == []
    assert start_notes(opened(written.folder, start_event="", words="events")) == []
    events = copy / f"sub-01/ses-a/func/{STEM}_events.tsv"
    events.write_text("onset\tduration\n0\t1\n")
    (note,) = start_notes(opened(copy, start_event=""))
    assert "'trial_type' is missing" in note.found
    events.unlink()
    assert start_notes(opened(copy, start_event="")) == []


def start_notes(dataset: Dataset) -> list[Finding]:
    recording = dataset.recording(dataset.recording_ids()[0])
    return [finding for finding in recording.findings if finding.field == "start_event"]


@pytest.mark.parametrize("what", ["atlas", "mask"])
def test_a_name_that_states_another_space_is_told(copy: Path, what: str) -> None:
    for name, n_notes in (
        ("tpl-MNI152NLin2009cAsym_dseg.nii.gz", 1),
        ("space-MNI152NLin2009cAsym_dseg.nii.gz", 1),
        ("tpl-MNI152NLin6Asym_dseg.nii.gz", 0),
    ):
        shutil.copy(copy / f"{what}.nii.gz", copy / name)
        findings = opened(copy, **{what: name}).recording(KEY).findings
        notes = [f for f in findings if f.reason is Reason.SIDECAR_DISAGREES]
        assert len(notes) == n_notes
        for note in notes:
            assert "MNI152NLin2009cAsym; the BOLD series is in MNI152NLin6Asym" in note.found
            assert name in note.found


def test_an_atlas_far_from_the_brain_is_named(copy: Path) -> None:
    affine = AFFINE.copy()
    affine[:3, 3] += 5000.0
    image = nibabel.Nifti1Image(atlas_volume().astype(np.int16), affine)
    nibabel.save(image, copy / "far.nii.gz")
    with pytest.raises(RecordingError, match="the atlas and the BOLD series do not overlap") as far:
        opened(copy, atlas="far.nii.gz", resample_atlas=True).recording(KEY)
    assert "far.nii.gz" in str(far.value)
    assert "affine" in str(far.value)


def test_a_torn_atlas_that_is_resampled_is_named(copy: Path) -> None:
    shifted_atlas(copy)
    whole = (copy / "atlas.nii.gz").read_bytes()
    (copy / "atlas.nii.gz").write_bytes(gzip.compress(gzip.decompress(whole)[:400]))
    with pytest.raises(RecordingError, match="truncated"):
        opened(copy, resample_atlas=True).recording(KEY)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"task": "listne"}, ("task-listen", "options derivatives, task")),
        ({"space": "T1w"}, ("space-MNI152NLin6Asym",)),
        ({"desc": "clean"}, ("desc-preproc",)),
        ({"derivatives": "derivatives/fmriprp"}, ("derivatives/: fmriprep",)),
    ],
)
def test_what_is_there_instead_is_listed(written: Written, options: dict[str, str], told: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="no volumes to read") as caught:
        opened(written.folder, **options)
    for text in (*told, "/sub-*/"):
        assert text in str(caught.value)
