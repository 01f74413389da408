"""The reader of BIDS recordings against what its writer wrote, and against broken files."""

from __future__ import annotations

import pickle
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpact.config import GridConfig
from lpact.datasets._files.strict import TsvFile
from lpact.datasets._mne.series import RawSeries
from lpact.datasets.base import DATASETS, Dataset, Recording, RecordingId, Stimulus, TimeSeries
from lpact.datasets.bids.events import Events, Heard, heard_words, merge_heard, place_words
from lpact.errors import ConfigError, InputError, RecordingError, StimulusError
from lpact.grid import build_grid
from lpact.reasons import Reason
from lpact.testing.bids import (
    BAD_LABEL,
    FRAME,
    START,
    SYNC,
    BidsTruth,
    Datatype,
    sidecar,
    write_bids,
)

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
        path
        for path in sorted((folder / f"sub-{subject}").rglob("*eg.*"))
        if path.suffix in (".fif", ".edf", ".vhdr")
    )


@pytest.mark.parametrize("datatype", DATATYPES)
def test_words_in_events_meet_their_samples(
    folders: dict[str, tuple[Path, BidsTruth]], datatype: Datatype
) -> None:
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
        assert note.found.startswith(
            f"1 of 40 words have no event here; the first is word {lost[0]}"
        )


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
def test_channels_and_marks(
    folders: dict[str, tuple[Path, BidsTruth]], datatype: Datatype, unit: str
) -> None:
    folder, truth = folders[datatype]
    recording = first(folder)
    assert recording.units.ids == truth.good
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
    with pytest.raises(RecordingError, match="several electrode tables") as caught:
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
    assert {f"{stem}_events.tsv", f"{stem}_channels.tsv", "participants.tsv"} <= listed
    table = opened(folders["ieeg"][0], **TABLE)
    assert "stimuli/run-01_words.tsv" in {file.path for file in table.source_files()}


def test_filters(folders: dict[str, tuple[Path, BidsTruth]]) -> None:
    folder = folders["eeg"][0]
    assert [i.subject for i in opened(folder, subjects=["02"]).recording_ids()] == ["02"]
    with pytest.raises(InputError, match="holds no such recording") as caught:
        opened(folder, task="rest")
    assert "task-story" in str(caught.value)
    with pytest.raises(InputError, match="holds no such recording"):
        opened(folder, datatype="meg", task="story")


def test_datatype_and_task_must_be_clear(eeg: Path) -> None:
    path = recording_file(eeg)
    shutil.copyfile(path, path.with_name(path.name.replace("task-story", "task-rest")))
    with pytest.raises(InputError, match="which task is meant") as caught:
        opened(eeg)
    assert "rest, story" in str(caught.value)
    assert len(opened(eeg, task="story").recording_ids()) == 2


def test_a_wrong_sampling_rate_in_the_sidecar(eeg: Path) -> None:
    path = sidecar(recording_file(eeg), "eeg.json")
    edit(path, lambda text: re.sub(r'("SamplingFrequency": )[0-9.]+', r"\g<1>1000.0", text))
    with pytest.raises(RecordingError, match="another sampling rate") as caught:
        first(eeg)
    message = str(caught.value)
    assert "key 'SamplingFrequency'" in message
    assert "1000.0 in the sidecar, 256 Hz" in message
    assert "mend the sidecar" in message


def test_a_duration_that_disagrees_is_noted(eeg: Path) -> None:
    path = sidecar(recording_file(eeg), "eeg.json")
    edit(path, lambda text: re.sub(r'("RecordingDuration": )[0-9.]+', r"\g<1>3000.0", text))
    found = [f for f in first(eeg).findings if f.reason == Reason.SIDECAR_DISAGREES]
    assert found[0].found.startswith("3000 s in the sidecar")


def test_duplicated_subjects(eeg: Path) -> None:
    edit(eeg / "participants.tsv", lambda text: text + "sub-02\tn/a\n")
    with pytest.raises(InputError, match="'sub-02' is listed more than once") as caught:
        opened(eeg)
    assert "participants.tsv" in str(caught.value)


def test_two_files_for_one_recording(eeg: Path) -> None:
    path = recording_file(eeg)
    shutil.copyfile(path, path.with_name(path.name.replace("_run-01", "_acq-b_run-01")))
    with pytest.raises(RecordingError, match="two files are the same recording") as caught:
        opened(eeg)
    assert "acq-b" in str(caught.value)
    assert len(opened(eeg, acquisition="b").recording_ids()) == 1


def test_words_out_of_order(eeg: Path) -> None:
    path = sidecar(recording_file(eeg), "events.tsv")
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    rows = [i for i, line in enumerate(lines) if "\tword\t" in line]
    lines[rows[3]], lines[rows[4]] = lines[rows[4]], lines[rows[3]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(RecordingError, match="not in order of time") as caught:
        first(eeg)
    assert f"{path}, line {rows[4] + 1}, column 'onset'" in str(caught.value)
    assert "sort the rows" in str(caught.value)


def test_sync_events_out_of_order(eeg: Path) -> None:
    path = sidecar(recording_file(eeg), "events.tsv")
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    rows = [i for i, line in enumerate(lines) if f"\t{SYNC}\t" in line]
    lines[rows[1]], lines[rows[2]] = lines[rows[2]], lines[rows[1]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(RecordingError, match="triggers are not in order") as caught:
        first(eeg, **TABLE, sync_event=SYNC)
    assert path.name in str(caught.value)


def test_a_broken_literal_in_the_events(eeg: Path) -> None:
    path = sidecar(recording_file(eeg), "events.tsv")
    edit(path, lambda text: re.sub(r"\n[0-9.]+(\t[0-9.]+\tword)", r"\n1,7O4\1", text, count=1))
    with pytest.raises(RecordingError, match="'onset' is not valid") as caught:
        first(eeg)
    assert "'1,7O4'" in str(caught.value)
    assert "mend the cell" in str(caught.value)


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
    with pytest.raises(RecordingError, match=r"has no events\.tsv") as caught:
        first(eeg)
    assert path.name in str(caught.value)
    assert first(eeg, **TABLE).word_onsets_s is None
    (eeg / "stimuli/run-01_words.tsv").unlink()
    with pytest.raises(StimulusError, match=r"run-01_words\.tsv' is missing"):
        opened(eeg, **TABLE).stimulus("stimuli_run-01_words")


def test_events_that_are_not_there(eeg: Path) -> None:
    with pytest.raises(RecordingError, match="hold no word") as caught:
        first(eeg, word_trial_type="wrd")
    assert "did you mean 'word'?" in str(caught.value)
    with pytest.raises(RecordingError, match="cannot be found") as caught:
        first(eeg, **TABLE, start_event="story/begin")
    assert "0 such event(s)" in str(caught.value)
    assert "start_event" in str(caught.value)
    with pytest.raises(ConfigError, match="place-holder"):
        opened(eeg, words="stimuli/{part}.tsv")


def test_a_channel_without_a_row(eeg: Path) -> None:
    edit(
        sidecar(recording_file(eeg), "channels.tsv"), lambda text: text.replace("EEG2\t", "EEG9\t")
    )
    with pytest.raises(RecordingError, match=r"not in channels\.tsv") as caught:
        first(eeg)
    assert "no row for EEG2" in str(caught.value)


def test_no_usable_channel(eeg: Path) -> None:
    edit(
        sidecar(recording_file(eeg), "channels.tsv"),
        lambda text: text.replace("\tEEG\t", "\tMISC\t"),
    )
    with pytest.raises(RecordingError, match="no usable neural channel") as caught:
        first(eeg)
    assert "4 misc" in str(caught.value)


@pytest.mark.parametrize("datatype", ["meg", "eeg"])
def test_a_truncated_recording(
    folders: dict[str, tuple[Path, BidsTruth]], tmp_path: Path, datatype: Datatype
) -> None:
    target = tmp_path / "copy"
    shutil.copytree(folders[datatype][0], target)
    path = recording_file(target)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(RecordingError, match="may be truncated") as caught:
        first(target)
    assert str(path) in str(caught.value)
    assert "checksum" in str(caught.value)


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


def heard_from(path: Path, words: list[str], onset_s: list[float]) -> Heard:
    rows = [f"{t}\t0.1\tword\t{w}" for t, w in zip(onset_s, words, strict=True)]
    path.write_text(
        "\n".join(["onset\tduration\ttrial_type\tword", *rows]) + "\n", encoding="utf-8"
    )
    table = TsvFile(path, RecordingError)
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
    with pytest.raises(RecordingError, match="different words") as caught:
        merge_heard([one, other])
    assert "'x' at 3 s" in str(caught.value)
    strange = heard_from(tmp_path / "strange.tsv", ["p", "q", "r", "d"], [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(RecordingError, match="1 of 4 words are shared"):
        merge_heard([one, strange])
