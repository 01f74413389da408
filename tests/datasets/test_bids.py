"""The reader of BIDS recordings against what its writer wrote, and against broken files."""

from __future__ import annotations

import os
import pickle
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dataset_writers.bids import (
    BAD_LABEL,
    FIRST_SAMPLE,
    FRAME,
    START,
    SYNC,
    BidsTruth,
    Datatype,
    leave_gap,
    sidecar,
    write_bids,
    write_dimensions,
)
from lpact.codes import Reason
from lpact.config import GridConfig
from lpact.datasets._bids import entities
from lpact.datasets._files.strict import TextTable
from lpact.datasets._mne import RawSeries
from lpact.datasets.base import DATASETS, Dataset, Recording, RecordingId, Stimulus, TimeSeries
from lpact.datasets.bids.events import Events, Heard, heard_words, merge_heard, place_words
from lpact.errors import ConfigError, InputError, RecordingError, StimulusError
from lpact.grid import build_grid

DATATYPES: tuple[Datatype, ...] = ("meg", "eeg", "ieeg")
TABLE = {"words": "stimuli/run-{run}_words.tsv", "sentence_column": "sentence"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, BidsTruth]]:
    written = {}
    for datatype in DATATYPES:
        folder = tmp_path_factory.mktemp(datatype)
        written[datatype] = folder, write_bids(folder, datatype=datatype)
    return written


@pytest.fixture
def eeg(folders: dict[str, tuple[Path, BidsTruth]], tmp_path: Path) -> Path:
    """A copy of the EEG folder that a test may break."""
    target = tmp_path / "copy"
    shutil.copytree(folders["eeg"][0], target)
    return target


@pytest.fixture
def ieeg(folders: dict[str, tuple[Path, BidsTruth]], tmp_path: Path) -> Path:
    """A copy of the iEEG folder that a test may break."""
    target = tmp_path / "copy"
    shutil.copytree(folders["ieeg"][0], target)
    return target


def opened(folder: Path, **options: Any) -> Dataset:
    return DATASETS.build("bids", options).open(name="story", path=folder, seed=0)


def first(folder: Path, **options: Any) -> Recording:
    dataset = opened(folder, **options)
    return dataset.recording(dataset.recording_ids()[0])


def series(recording: Recording) -> TimeSeries:
    assert isinstance(recording.signal, TimeSeries)
    return recording.signal


def planted(recording: Recording, stimulus: Stimulus, truth: BidsTruth) -> np.ndarray:
    """Codes at the words' samples, through the event grid."""
    config = GridConfig(lags_ms=(0.0,), window_ms=1000.0 / truth.rate_hz)
    grid = build_grid(recording, stimulus, config)
    scale = 1.0 if truth.datatype == "meg" else 1e6
    return np.asarray(grid.responses[0, :, 0] / (truth.code * scale))


def edit(path: Path, change: Callable[[str], str]) -> None:
    before = path.read_text(encoding="utf-8-sig")
    after = change(before)
    assert after != before
    path.write_text(after, encoding="utf-8")


def recording_file(folder: Path, subject: str = "01") -> Path:
    return next(
        path for path in sorted((folder / f"sub-{subject}").rglob("*eg.*")) if path.suffix in (".fif", ".edf", ".vhdr")
    )


@pytest.mark.parametrize("datatype", DATATYPES)
def test_words_in_events_meet_their_samples(folders: dict[str, tuple[Path, BidsTruth]], datatype: Datatype) -> None:
    """Clocks drift apart, and each recording lost another word's event."""
    folder, truth = folders[datatype]
    dataset = opened(folder, sentence_column="sentence")
    ids = dataset.recording_ids()
    assert ids == [RecordingId(s, "1", "01", "task-story_run-01") for s in truth.subjects]
    stimulus = dataset.stimulus(ids[0].stimulus)
    assert stimulus.words["word"].to_list() == list(truth.words["01"])
    for recording_id in ids:
        recording = dataset.recording(recording_id)
        samples = truth.samples[recording_id.subject, "01"]
        onsets = recording.word_onsets_s
        assert onsets is not None
        lost = np.flatnonzero(samples < 0)
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(onsets)), lost)
        heard = np.flatnonzero(samples >= 0)
        np.testing.assert_array_equal(np.rint(onsets[heard] * truth.rate_hz), samples[heard])
        np.testing.assert_allclose(planted(recording, stimulus, truth), heard + 1, atol=0.01)
        note = next(f for f in recording.findings if f.reason == Reason.TRIGGERS_DROPPED)
        assert note.found.startswith(f"1 of 40 words have no event here; the first is word {lost[0]}")


@pytest.mark.parametrize("datatype", DATATYPES)
def test_a_words_file_and_sync_events_follow_the_drift(
    folders: dict[str, tuple[Path, BidsTruth]], datatype: Datatype
) -> None:
    folder, truth = folders[datatype]
    dataset = opened(folder, **TABLE, sync_event=SYNC)
    for recording_id in dataset.recording_ids():
        recording = dataset.recording(recording_id)
        stimulus = dataset.stimulus(recording_id.stimulus)
        np.testing.assert_array_equal(stimulus.words["onset_s"].to_numpy(), truth.onset_s["01"])
        codes = planted(recording, stimulus, truth)
        np.testing.assert_allclose(codes, np.arange(1, 41), atol=0.01)
        found = {finding.reason for finding in recording.findings}
        assert {Reason.CLOCK_DRIFT, Reason.TRIGGERS_DROPPED} <= found


def test_a_words_file_and_a_start_event(tmp_path: Path) -> None:
    truth = write_bids(tmp_path, datatype="eeg", drift_ppm=0.0, runs=("01", "02"), n_words=20)
    dataset = opened(tmp_path, **TABLE, start_event=START)
    ids = dataset.recording_ids()
    assert len(ids) == 4
    assert {i.stimulus for i in ids} == {"stimuli_run-01_words", "stimuli_run-02_words"}
    for recording_id in ids:
        recording = dataset.recording(recording_id)
        assert recording.word_onsets_s is None
        start_s = truth.start_s[recording_id.subject, recording_id.run]
        assert series(recording).start_s == -start_s
        assert [span.start_s for span in recording.bad_spans] == pytest.approx([0.1 - start_s])
        stimulus = dataset.stimulus(recording_id.stimulus)
        assert stimulus.words["word_length"].to_list() == [len(w) for w in truth.words["01"]]
        codes = planted(recording, stimulus, truth)
        np.testing.assert_allclose(codes, np.arange(1, 21), atol=0.01)


@pytest.mark.parametrize(("datatype", "unit"), [("meg", "T"), ("eeg", "µV"), ("ieeg", "µV")])
def test_channels_and_marks(folders: dict[str, tuple[Path, BidsTruth]], datatype: Datatype, unit: str) -> None:
    folder, truth = folders[datatype]
    recording = first(folder)
    assert recording.units.ids == truth.good
    assert recording.units.comparable == (datatype != "ieeg")
    signal = series(recording)
    assert signal.physical_unit == unit
    assert signal.sampling_rate_hz == truth.rate_hz
    assert signal.n_samples == truth.n_samples
    by_reason = {finding.reason: finding for finding in recording.findings}
    assert by_reason[Reason.CHANNEL_MARKED_BAD].field == truth.bad
    assert truth.other in by_reason[Reason.CHANNEL_NOT_NEURAL].found
    (span,) = recording.bad_spans
    assert (span.start_s, span.stop_s, span.label) == (
        *map(pytest.approx, truth.bad_span_s),
        BAD_LABEL,
    )
    assert str(folder) not in recording.where


def test_places_and_regions(folders: dict[str, tuple[Path, BidsTruth]]) -> None:
    folder, truth = folders["ieeg"]
    units = first(folder).units
    assert units.coordinates_mm is not None
    np.testing.assert_allclose(units.coordinates_mm, truth.coordinates_mm)
    assert units.coordinate_frame == FRAME
    assert units.regions == ("STG", "MTG", "unknown")
    assert first(folders["eeg"][0]).units.coordinates_mm is None


def test_coordinates_in_metres(ieeg: Path, folders: dict[str, tuple[Path, BidsTruth]]) -> None:
    stem = ieeg / f"sub-01/ieeg/sub-01_space-{FRAME}"
    edit(Path(f"{stem}_coordsystem.json"), lambda text: text.replace('"mm"', '"m"'))
    places = first(ieeg).units.coordinates_mm
    assert places is not None
    np.testing.assert_allclose(places, 1000.0 * folders["ieeg"][1].coordinates_mm)
    edit(Path(f"{stem}_coordsystem.json"), lambda text: text.replace('"m"', '"pixels"'))
    recording = first(ieeg)
    assert recording.units.coordinates_mm is None
    assert any("'pixels'" in finding.found for finding in recording.findings)


def test_several_electrode_tables(ieeg: Path) -> None:
    stem = ieeg / "sub-01/ieeg/sub-01_space-"
    for kind in ("electrodes.tsv", "coordsystem.json"):
        shutil.copyfile(f"{stem}{FRAME}_{kind}", f"{stem}ACPC_{kind}")
    with pytest.raises(RecordingError, match="one electrode table") as caught:
        first(ieeg)
    assert "option 'space'" in str(caught.value)
    assert first(ieeg, space=FRAME).units.coordinate_frame == FRAME


def test_a_series_is_read_anew_everywhere(folders: dict[str, tuple[Path, BidsTruth]]) -> None:
    """It can be sent to other processes, read by several threads, and by any units in any order."""
    values = series(first(folders["ieeg"][0])).values
    assert isinstance(values, RawSeries)
    whole = values.read(range(3))
    np.testing.assert_array_equal(values.read([2, 0]), whole[:, [2, 0]])
    again = pickle.loads(pickle.dumps(values))
    np.testing.assert_array_equal(again.read([1]), whole[:, [1]])
    with ThreadPoolExecutor(4) as pool:
        for unit, read in enumerate(pool.map(lambda unit: values.read([unit]), [0, 1, 2])):
            np.testing.assert_array_equal(read[:, 0], whole[:, unit])


def test_annotations_of_a_file_whose_first_sample_is_not_0(
    folders: dict[str, tuple[Path, BidsTruth]], tmp_path: Path
) -> None:
    mne = pytest.importorskip("mne")
    target = tmp_path / "copy"
    shutil.copytree(folders["meg"][0], target)
    path = recording_file(target)
    raw = mne.io.read_raw_fif(path, preload=True, verbose="error")
    assert raw.first_samp > 0
    raw.set_annotations(mne.Annotations([2.0], [0.5], ["BAD_jump"]))
    raw.save(path, overwrite=True, verbose="error")
    jump = next(span for span in first(target).bad_spans if span.label == "BAD_jump")
    assert (jump.start_s, jump.stop_s) == (pytest.approx(2.0), pytest.approx(2.5))


def test_units_of_several_kinds_keep_their_scales(folders: dict[str, tuple[Path, BidsTruth]], tmp_path: Path) -> None:
    """A magnetometer, an EEG channel and a gradiometer are in T, µV and T/m, in whatever order they are read."""
    mne = pytest.importorskip("mne")
    target = tmp_path / "copy"
    shutil.copytree(folders["meg"][0], target)
    path = recording_file(target)
    raw = mne.io.read_raw_fif(path, preload=True, verbose="error")
    values = np.random.default_rng(3).normal(size=(4, 400)) * [[1e-13], [2e-5], [1e-12], [1e-13]]
    info = mne.create_info(raw.ch_names[:4], raw.info["sfreq"], ["mag", "eeg", "grad", "mag"])
    mne.io.RawArray(values, info, verbose="error").save(path, overwrite=True, verbose="error")
    rows = [("MEGMAG", "T"), ("EEG", "V"), ("MEGGRADPLANAR", "T/m"), ("MEGMAG", "T")]
    lines = [f"{n}\t{k}\t{u}\tgood" for n, (k, u) in zip(raw.ch_names, rows, strict=False)]
    sidecar(path, "channels.tsv").write_text("\n".join(["name\ttype\tunits\tstatus", *lines]) + "\n", encoding="utf-8")
    sidecar(path, "meg.json").unlink()
    recording = first(target, channel_types=["mag", "eeg", "grad"])
    signal = series(recording)
    assert signal.physical_unit == "T, T/m, µV"
    expected = (values * [[1.0], [1e6], [1.0], [1.0]]).T
    for units in ([1], [2, 1, 0], [3, 1], [0, 1, 2, 3], [2]):
        np.testing.assert_allclose(signal.read(units), expected[:, units], rtol=1e-6)
    assert not [f for f in recording.findings if f.field == "units" and "in the file" in f.found]


def unit_notes(recording: Recording) -> list[str]:
    return [
        finding.found
        for finding in recording.findings
        if finding.field == "units" and finding.reason == Reason.SIDECAR_DISAGREES
    ]


@pytest.mark.parametrize("unit", ["", "UV", "Boolean"])
def test_a_unit_that_only_the_table_states(eeg: Path, folders: dict[str, tuple[Path, BidsTruth]], unit: str) -> None:
    """MNE takes every dimension but µV and mV for volts; ``UV`` is µV all the same."""
    truth = folders["eeg"][1]
    path = recording_file(eeg)
    write_dimensions(path, unit, channels=[0])
    recording = first(eeg)
    codes = series(recording).read([1, 0])[truth.all_samples["01", "01"], 1]
    np.testing.assert_allclose(codes, np.arange(1, codes.size + 1), atol=0.01)
    told = ["1 channel(s); the first is EEG1: no unit in the file, µV in channels.tsv"]
    assert unit_notes(recording) == ([] if unit == "UV" else told)


def test_a_unit_that_is_stated_nowhere(eeg: Path) -> None:
    path = recording_file(eeg)
    write_dimensions(path, "")
    edit(sidecar(path, "channels.tsv"), lambda text: text.replace("\tµV\t", "\tn/a\t"))
    with pytest.raises(RecordingError, match="V, mV, µV or nV") as caught:
        first(eeg)
    assert f"{path}, channel 'EEG1'" in str(caught.value)
    assert "no unit in the file; 'n/a' in the column 'units'" in str(caught.value)
    assert "add the unit" in str(caught.value)
    sidecar(path, "channels.tsv").unlink()
    with pytest.raises(RecordingError, match=r"none in channels\.tsv"):
        first(eeg)


def test_units_that_disagree(eeg: Path, folders: dict[str, tuple[Path, BidsTruth]]) -> None:
    truth = folders["eeg"][1]
    path = recording_file(eeg)
    table = sidecar(path, "channels.tsv")
    edit(table, lambda text: text.replace("\tµV\t", "\tV\t"))
    recording = first(eeg)
    assert unit_notes(recording) == ["3 channel(s); the first is EEG1: µV in the file, V in channels.tsv"]
    samples = truth.all_samples["01", "01"]
    np.testing.assert_allclose(series(recording).read([0])[samples, 0], np.arange(1, samples.size + 1), atol=0.01)
    edit(table, lambda text: text.replace("\tV\t", "\tmV\t"))
    with pytest.raises(RecordingError, match="the same unit in the recording") as caught:
        first(eeg)
    assert f"{table}, channel 'EEG1', column 'units'" in str(caught.value)
    assert "'mV' in the table" in str(caught.value)
    write_dimensions(path, "nV")
    edit(table, lambda text: text.replace("\tmV\t", "\tnV\t"))
    np.testing.assert_allclose(
        series(first(eeg)).read([0])[samples, 0], np.arange(1, samples.size + 1) / 1000, atol=1e-5
    )


def test_microvolts_in_brainvision_are_checked_too(ieeg: Path) -> None:
    table = sidecar(recording_file(ieeg), "channels.tsv")
    edit(table, lambda text: text.replace("µV", "nV"))
    with pytest.raises(RecordingError, match="the same unit in the recording"):
        first(ieeg)
    edit(table, lambda text: text.replace("nV", "µV"))
    edit(recording_file(ieeg), lambda text: re.sub("(Ch2=IEEG2,.*,)µV", r"\g<1>C", text))
    with pytest.raises(RecordingError, match="V, mV, µV or nV") as caught:
        first(ieeg)
    assert "channel 'IEEG2'" in str(caught.value)


def test_gaps_in_an_edf_file(eeg: Path, folders: dict[str, tuple[Path, BidsTruth]]) -> None:
    """MNE yields the samples of such a file as if there were no gap."""
    path = recording_file(eeg)
    leave_gap(path, record=4, seconds=0)
    truth = folders["eeg"][1]
    recording = first(eeg)
    np.testing.assert_array_equal(
        np.flatnonzero(series(recording).read([0])[:, 0] > 0.5), truth.all_samples["01", "01"]
    )
    leave_gap(path, record=4, seconds=10)
    with pytest.raises(RecordingError, match="records without gaps") as caught:
        first(eeg)
    assert f"{path}, record 5 of " in str(caught.value)
    assert "EDF+D with 1 gap(s); this record begins +10 s" in str(caught.value)
    assert "cut the file at its gaps" in str(caught.value)


def test_gaps_in_a_bdf_file(eeg: Path) -> None:
    """Its samples have three bytes."""
    mne = pytest.importorskip("mne")
    path = recording_file(eeg)
    raw = mne.io.read_raw_edf(path, preload=True, verbose="error")
    bdf = path.with_suffix(".bdf")
    mne.export.export_raw(bdf, raw, fmt="bdf", verbose="error")
    path.unlink()
    values = series(first(eeg)).read([0, 1])
    np.testing.assert_allclose(values, 1e6 * raw.get_data([0, 1]).T, atol=0.01)
    leave_gap(bdf, record=7, seconds=0)
    np.testing.assert_array_equal(series(first(eeg)).read([0, 1]), values)
    leave_gap(bdf, record=7, seconds=3)
    with pytest.raises(RecordingError, match="records without gaps") as caught:
        first(eeg)
    assert f"{bdf}, record 8 of " in str(caught.value)


def test_record_times_that_cannot_be_read(eeg: Path) -> None:
    path = recording_file(eeg)
    leave_gap(path, record=0, seconds=0)
    content = path.read_bytes()
    assert content.count(b"+3\x14\x14") == 1
    path.write_bytes(content.replace(b"+3\x14\x14", b"soon"))
    with pytest.raises(RecordingError, match="the onset of each record") as caught:
        first(eeg)
    assert "record 4: b'soon" in str(caught.value)


def test_nan_stretches_are_kept(folders: dict[str, tuple[Path, BidsTruth]], tmp_path: Path) -> None:
    mne = pytest.importorskip("mne")
    target = tmp_path / "copy"
    shutil.copytree(folders["meg"][0], target)
    path = recording_file(target)
    raw = mne.io.read_raw_fif(path, preload=True, verbose="error")
    raw._data[1, 100:110] = np.nan
    raw.save(path, overwrite=True, verbose="error")
    read = series(first(target)).read([1])[:, 0]
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(read)), np.arange(100, 110))


def test_a_derivative_takes_the_sidecars_of_its_raw_recording(
    folders: dict[str, tuple[Path, BidsTruth]], tmp_path: Path
) -> None:
    target = tmp_path / "copy"
    shutil.copytree(folders["meg"][0], target)
    for subject in ("01", "02"):
        path = recording_file(target, subject)
        clean = target / f"derivatives/prep/sub-{subject}/meg"
        clean.mkdir(parents=True)
        shutil.copyfile(path, clean / path.name.replace("_meg.fif", "_desc-clean_meg.fif"))
    dataset = opened(target, derivative="derivatives/prep", description="clean")
    recording = dataset.recording(dataset.recording_ids()[0])
    assert "derivatives/prep" in recording.where
    truth = folders["meg"][1]
    heard = np.flatnonzero(truth.samples["01", "01"] >= 0)
    codes = planted(recording, dataset.stimulus("task-story_run-01"), truth)
    np.testing.assert_allclose(codes, heard + 1, atol=0.01)
    assert len(opened(target).recording_ids()) == 2


def test_provenance_and_source_files(folders: dict[str, tuple[Path, BidsTruth]]) -> None:
    dataset = opened(folders["ieeg"][0])
    assert (dataset.info.source, dataset.info.licence) == ("A small story", "CC0")
    listed = {file.path for file in dataset.source_files()}
    stem = "sub-02/ieeg/sub-02_task-story_run-01"
    assert {f"{stem}_ieeg{ending}" for ending in (".vhdr", ".eeg", ".vmrk", ".json")} <= listed
    assert {f"{stem}_events.tsv", f"{stem}_channels.tsv"} <= listed
    table = opened(folders["ieeg"][0], **TABLE)
    assert "stimuli/run-01_words.tsv" in {file.path for file in table.source_files()}


def test_files_that_a_header_names(ieeg: Path, tmp_path: Path) -> None:
    """Data and markers under names of their own are listed, and may not be links that lead out."""
    header = recording_file(ieeg)
    for key, ending in (("DataFile", ".eeg"), ("MarkerFile", ".vmrk")):
        header.with_suffix(ending).rename(header.with_name(f"other{ending}"))
        edit(header, lambda text, k=key, e=ending: re.sub(rf"{k}=.*", f"{k}=other{e}", text))
    edit(
        header.with_name("other.vmrk"),
        lambda text: re.sub("DataFile=.*", "DataFile=other.eeg", text),
    )
    dataset = opened(ieeg)
    expected = {"sub-01/ieeg/other.eeg", "sub-01/ieeg/other.vmrk"}
    assert expected <= {file.path for file in dataset.source_files()}
    dataset.recording(dataset.recording_ids()[0])
    again = opened(ieeg)
    again.recording(again.recording_ids()[0])
    assert again.source_files() == dataset.source_files()
    markers = header.with_name("other.vmrk")
    shutil.move(markers, tmp_path / "outside.vmrk")
    markers.symlink_to(tmp_path / "outside.vmrk")
    with pytest.raises(RecordingError, match="leads out of the dataset's folder") as caught:
        first(ieeg)
    assert str(markers) in str(caught.value)


def test_files_of_a_recording_that_is_torn(eeg: Path) -> None:
    path = recording_file(eeg)
    path.write_bytes(path.read_bytes()[:400])
    listed = {file.path for file in opened(eeg).source_files()}
    assert path.relative_to(eeg).as_posix() in listed


def test_a_split_recording(folders: dict[str, tuple[Path, BidsTruth]], tmp_path: Path) -> None:
    mne = pytest.importorskip("mne")
    target = tmp_path / "copy"
    shutil.copytree(folders["meg"][0], target)
    path = recording_file(target)
    raw = mne.io.read_raw_fif(path, preload=True, verbose="error")
    raw = mne.concatenate_raws([raw.copy() for _ in range(14)], verbose="error")
    raw.save(path, overwrite=True, split_size="2MB", buffer_size_sec=1.0, verbose="error")
    part = path.with_name(path.name.replace(".fif", "-1.fif"))
    assert part.is_file()
    listed = {file.path for file in opened(target).source_files()}
    assert {one.relative_to(target).as_posix() for one in (path, part)} <= listed


def test_filters(folders: dict[str, tuple[Path, BidsTruth]]) -> None:
    folder = folders["eeg"][0]
    assert [i.subject for i in opened(folder, subjects=["02"]).recording_ids()] == ["02"]
    with pytest.raises(InputError, match="has no such recordings") as caught:
        opened(folder, task="rest")
    assert "task-story" in str(caught.value)
    with pytest.raises(InputError, match="has no such recordings"):
        opened(folder, datatype="meg", task="story")


def test_datatype_and_task_must_be_clear(eeg: Path) -> None:
    path = recording_file(eeg)
    shutil.copyfile(path, path.with_name(path.name.replace("task-story", "task-rest")))
    with pytest.raises(InputError, match="more than one task") as caught:
        opened(eeg)
    assert "rest, story" in str(caught.value)
    assert len(opened(eeg, task="story").recording_ids()) == 2


def test_a_wrong_sampling_rate_in_the_sidecar(eeg: Path) -> None:
    path = sidecar(recording_file(eeg), "eeg.json")
    edit(path, lambda text: re.sub(r'("SamplingFrequency": )[0-9.]+', r"\g<1>1000.0", text))
    with pytest.raises(RecordingError, match="different sampling rates") as caught:
        first(eeg)
    message = str(caught.value)
    assert "key 'SamplingFrequency'" in message
    assert "1000.0 in the sidecar, 256 Hz" in message
    assert "fix the sidecar" in message


def test_two_files_for_one_recording(eeg: Path) -> None:
    path = recording_file(eeg)
    shutil.copyfile(path, path.with_name(path.name.replace("_run-01", "_acq-b_run-01")))
    with pytest.raises(RecordingError, match="one file for every subject") as caught:
        opened(eeg)
    assert "acq-b" in str(caught.value)
    assert len(opened(eeg, acquisition="b").recording_ids()) == 1


def test_words_out_of_order(eeg: Path) -> None:
    path = sidecar(recording_file(eeg), "events.tsv")
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    rows = [i for i, line in enumerate(lines) if "\tword\t" in line]
    lines[rows[3]], lines[rows[4]] = lines[rows[4]], lines[rows[3]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(RecordingError, match="words in order of time") as caught:
        first(eeg)
    assert f"{path}, line {rows[4] + 1}, column 'onset'" in str(caught.value)
    assert "sort the rows" in str(caught.value)


def test_sync_events_out_of_order(eeg: Path) -> None:
    path = sidecar(recording_file(eeg), "events.tsv")
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    rows = [i for i, line in enumerate(lines) if f"\t{SYNC}\t" in line]
    lines[rows[1]], lines[rows[2]] = lines[rows[2]], lines[rows[1]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(RecordingError, match="stimulus times in order") as caught:
        first(eeg, **TABLE, sync_event=SYNC)
    assert path.name in str(caught.value)


def test_a_broken_literal_in_the_events(eeg: Path) -> None:
    path = sidecar(recording_file(eeg), "events.tsv")
    edit(path, lambda text: re.sub(r"\n[0-9.]+(\t[0-9.]+\tword)", r"\n1,7O4\1", text, count=1))
    with pytest.raises(RecordingError, match="'onset' is not valid") as caught:
        first(eeg)
    assert "'1,7O4'" in str(caught.value)
    assert "fix the cell" in str(caught.value)


def test_another_encoding_in_the_events(eeg: Path) -> None:
    path = sidecar(recording_file(eeg), "events.tsv")
    path.write_bytes(path.read_bytes().replace(b"\told\t", b"\tal\xe9\t"))
    with pytest.raises(RecordingError, match="UTF-8") as caught:
        first(eeg)
    assert path.name in str(caught.value)


def test_a_byte_order_mark_is_no_part_of_the_events(eeg: Path) -> None:
    path = sidecar(recording_file(eeg), "events.tsv")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert first(eeg).word_onsets_s is not None


def test_missing_files(eeg: Path) -> None:
    path = sidecar(recording_file(eeg), "events.tsv")
    path.unlink()
    with pytest.raises(RecordingError, match=r"no events\.tsv") as caught:
        first(eeg)
    assert path.name in str(caught.value)
    assert first(eeg, **TABLE).word_onsets_s is None
    (eeg / "stimuli/run-01_words.tsv").unlink()
    with pytest.raises(StimulusError, match=r"run-01_words\.tsv' is missing"):
        opened(eeg, **TABLE).stimulus("stimuli_run-01_words")


def test_events_that_are_not_there(eeg: Path) -> None:
    with pytest.raises(RecordingError, match="rows that are words") as caught:
        first(eeg, word_trial_type="wrd")
    assert "did you mean 'word'?" in str(caught.value)
    with pytest.raises(RecordingError, match="one event 'story/begin'") as caught:
        first(eeg, **TABLE, start_event="story/begin")
    assert "0 such event(s)" in str(caught.value)
    assert "start_event" in str(caught.value)
    for name in ("{part}", "{task.x}", "{task.__class__}", "{task[0]}", "{run!r}", "{run:>4}", "{"):
        with pytest.raises(ConfigError, match="placeholder") as config:
            opened(eeg, words=f"stimuli/{name}.tsv")
        assert "{task}, {run}, {session} and {subject} only" in str(config.value)


def test_a_channel_without_a_row(eeg: Path) -> None:
    edit(sidecar(recording_file(eeg), "channels.tsv"), lambda text: text.replace("EEG2\t", "EEG9\t"))
    with pytest.raises(RecordingError, match="a row for each of the") as caught:
        first(eeg)
    assert "no row for EEG2" in str(caught.value)


def test_no_usable_channel(eeg: Path) -> None:
    edit(
        sidecar(recording_file(eeg), "channels.tsv"),
        lambda text: text.replace("\tEEG\t", "\tMISC\t"),
    )
    with pytest.raises(RecordingError, match="that are not bad") as caught:
        first(eeg)
    assert "4 misc" in str(caught.value)


@pytest.mark.parametrize("datatype", ["meg", "eeg"])
def test_a_truncated_recording(folders: dict[str, tuple[Path, BidsTruth]], tmp_path: Path, datatype: Datatype) -> None:
    target = tmp_path / "copy"
    shutil.copytree(folders[datatype][0], target)
    path = recording_file(target)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(RecordingError, match="may be truncated") as caught:
        first(target)
    assert str(path) in str(caught.value)
    assert "checksum" in str(caught.value)


@pytest.mark.parametrize("named", ["", "elsewhere.eeg"])
def test_data_in_a_pipe_are_refused(ieeg: Path, tmp_path: Path, named: str) -> None:
    """Its reader would wait forever."""
    header = recording_file(ieeg)
    header.with_suffix(".eeg").unlink()
    pipe = tmp_path / named if named else header.with_suffix(".eeg")
    os.mkfifo(pipe)
    if named:
        edit(header, lambda text: re.sub("DataFile=.*", f"DataFile={pipe}", text))
    with pytest.raises(RecordingError, match="is a pipe") as caught:
        first(ieeg)
    assert caught.value.where == str(pipe)


def test_links_and_headers_that_lead_out(ieeg: Path, tmp_path: Path) -> None:
    header = recording_file(ieeg)
    data = header.with_suffix(".eeg")
    shutil.move(data, tmp_path / "outside.eeg")
    edit(header, lambda text: re.sub(r"DataFile=.*", f"DataFile={tmp_path / 'outside.eeg'}", text))
    with pytest.raises(RecordingError, match="outside the dataset's folder"):
        first(ieeg)
    shutil.move(header, tmp_path / "outside.vhdr")
    header.symlink_to(tmp_path / "outside.vhdr")
    with pytest.raises(RecordingError, match="leads out of the dataset's folder"):
        opened(ieeg)


def test_a_coordinate_system_that_is_a_link(ieeg: Path, tmp_path: Path) -> None:
    path = ieeg / f"sub-01/ieeg/sub-01_space-{FRAME}_coordsystem.json"
    shutil.move(path, tmp_path / "outside.json")
    path.symlink_to(tmp_path / "outside.json")
    for look in (first, lambda folder: opened(folder).source_files()):
        with pytest.raises(RecordingError, match="leads out of the dataset's folder") as caught:
            look(ieeg)
        assert str(path) in str(caught.value)


def number_samples(path: Path, rate_hz: float, first_sample: int = 0) -> None:
    """Add the column ``sample`` to an events.tsv."""
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    at = [f"{round(float(line.split(chr(9))[0]) * rate_hz) + first_sample}" for line in lines[1:]]
    rows = [f"{line}\t{sample}" for line, sample in zip(lines[1:], at, strict=True)]
    path.write_text("\n".join([f"{lines[0]}\tsample", *rows]) + "\n", encoding="utf-8")


@pytest.mark.parametrize("first_sample", [0, 1])
def test_samples_that_agree_with_onsets(eeg: Path, first_sample: int) -> None:
    path = sidecar(recording_file(eeg), "events.tsv")
    number_samples(path, 256.0, first_sample)
    assert not [f for f in first(eeg).findings if f.field == "sample"]


def test_samples_that_disagree_with_onsets(eeg: Path) -> None:
    path = sidecar(recording_file(eeg), "events.tsv")
    number_samples(path, 200.0)
    with pytest.raises(RecordingError, match="columns 'onset' and 'sample'") as caught:
        first(eeg)
    message = str(caught.value)
    assert f"{path}, line 2" in message
    assert "onset 0.1 s and sample 20" in message
    assert "onset · 256 Hz = sample, within 2.13" in message
    assert "remove the column 'sample'" in message


def test_samples_numbered_as_in_the_file(folders: dict[str, tuple[Path, BidsTruth]], tmp_path: Path) -> None:
    target = tmp_path / "copy"
    shutil.copytree(folders["meg"][0], target)
    number_samples(sidecar(recording_file(target), "events.tsv"), 500.0, FIRST_SAMPLE)
    recording = first(target)
    note = next(f for f in recording.findings if f.field == "sample")
    assert "'onset' is used" in note.remedy
    truth, onsets = folders["meg"][1], recording.word_onsets_s
    assert onsets is not None
    heard = truth.samples["01", "01"] >= 0
    np.testing.assert_allclose(onsets[heard] * 500.0, truth.samples["01", "01"][heard], atol=0.01)


def test_numbers_beyond_all_bounds(eeg: Path) -> None:
    """``1e999`` is written like a number, and is none."""
    events = sidecar(recording_file(eeg), "events.tsv")
    edit(events, lambda text: text.replace("\n0.1\t", "\n1e999\t", 1))
    with pytest.raises(RecordingError, match="'onset' is not valid"):
        first(eeg)


def heard_from(path: Path, words: list[str], onset_s: list[float]) -> Heard:
    rows = [f"{t}\t0.1\tword\t{w}" for t, w in zip(onset_s, words, strict=True)]
    path.write_text("\n".join(["onset\tduration\ttrial_type\tword", *rows]) + "\n", encoding="utf-8")
    table = TextTable(path, RecordingError)
    onsets = np.array(table.numbers("onset"))
    events = Events(path, table, onsets, np.full(onsets.size, 0.1))
    return heard_words(events, kind="word", kind_columns=("trial_type",), word_column="word")


def test_equal_words_are_told_apart_by_time(tmp_path: Path) -> None:
    words = ["a", "a", "a", "b", "a", "a", "c"]
    times = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    whole = heard_from(tmp_path / "whole.tsv", words, times)
    kept = [0, 2, 3, 5, 6]
    late = [3.0 + 1.0001 * times[i] for i in kept]
    part = heard_from(tmp_path / "part.tsv", [words[i] for i in kept], late)
    shared = merge_heard([part, whole])
    assert list(shared.words) == words
    onsets = place_words(part, shared)
    np.testing.assert_array_equal(np.flatnonzero(np.isfinite(onsets)), kept)
    np.testing.assert_allclose(onsets[kept], late)


def test_other_words_are_an_error(tmp_path: Path) -> None:
    one = heard_from(tmp_path / "one.tsv", ["a", "b", "c", "d"], [1.0, 2.0, 3.0, 4.0])
    other = heard_from(tmp_path / "other.tsv", ["a", "b", "x", "d"], [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(RecordingError, match="the same words in all") as caught:
        merge_heard([one, other])
    assert "'x' at 3 s" in str(caught.value)
    strange = heard_from(tmp_path / "strange.tsv", ["p", "q", "r", "d"], [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(RecordingError, match="1 of 4 words are shared"):
        merge_heard([one, strange])


def test_two_sidecars_that_fit_equally_well(eeg: Path) -> None:
    path = sidecar(recording_file(eeg), "events.tsv")
    for name in ("sub-01_events.tsv", f"task-{entities(path)['task']}_events.tsv"):
        shutil.copyfile(path, path.with_name(name))
    first(eeg)
    path.unlink()
    with pytest.raises(RecordingError, match=r"one events\.tsv that fits") as caught:
        first(eeg)
    assert "sub-01_events.tsv, task-" in str(caught.value)
