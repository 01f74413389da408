"""The Brain Treebank reader gives back what its layout's writer planted, to the sample, and names what is broken."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dataset_writers.brain_treebank import (
    LABELS,
    BrainTreebankTruth,
    TrialTruth,
    write_brain_treebank,
)
from lpact.codes import Reason
from lpact.config import GridConfig
from lpact.datasets.base import DATASETS, Dataset, Recording, RecordingId, TimeSeries
from lpact.datasets.series import StreamedSeries
from lpact.errors import InputError, RecordingError, StimulusError
from lpact.grid import build_grid, read_grid

h5py = pytest.importorskip("h5py")

RATE_HZ = 2048.0
SAMPLE_MS = 1000.0 / RATE_HZ
FIRST = RecordingId("1", "1", "000", "the-sea")
FIRST_H5 = "all_subject_data/sub_1_trial000.h5"
TIMINGS = "subject_timings/sub_1_trial000_timings.csv"
FEATURES = "transcripts/the-sea/features.csv"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BrainTreebankTruth]:
    folder = tmp_path_factory.mktemp("treebank") / "data"
    return folder, write_brain_treebank(folder)


@pytest.fixture
def broken(written: tuple[Path, BrainTreebankTruth], tmp_path: Path) -> Path:
    """A copy to break."""
    return shutil.copytree(written[0], tmp_path / "copy")


def opened(folder: Path, **options: Any) -> Dataset:
    return DATASETS.build("brain_treebank", options).open(name="bt", path=folder, seed=0)


def recorded(folder: Path, **options: Any) -> Recording:
    return opened(folder, **options).recording(FIRST)


def of(recording: Recording, reason: Reason) -> list[str]:
    return [finding.field for finding in recording.findings if finding.reason is reason]


def edit(path: Path, change: Callable[[list[str]], object]) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    change(lines)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def intact(planted: TrialTruth, onsets: np.ndarray) -> np.ndarray:
    """Words between two triggers (every 2 s) that are both there."""
    before = np.floor(onsets / 2) * 2
    return ~(np.isin(before, planted.dropped) | np.isin(before + 2, planted.dropped))


@pytest.mark.parametrize("clock", ["linear", "nearest", "next"])
def test_words_find_their_impulses_through_the_grid(written: tuple[Path, BrainTreebankTruth], clock: str) -> None:
    folder, truth = written
    dataset = opened(folder, clock=clock)
    config = GridConfig(lags_ms=(-SAMPLE_MS, 0.0, SAMPLE_MS), window_ms=SAMPLE_MS)
    for recording_id in dataset.recording_ids():
        planted = truth.trials[f"sub_{recording_id.subject}_trial{recording_id.run}"]
        recording = dataset.recording(recording_id)
        grid = build_grid(recording, dataset.stimulus(recording_id.stimulus), config)
        told = [word for word, sample in enumerate(planted.samples) if sample >= 0]
        assert grid.first_word.tolist() == told
        assert len(told) < len(planted.samples)
        impulses = grid.responses[:, :, 0]
        codes = grid.first_word + 1
        within_one = (impulses == codes).any(axis=0)
        if clock == "next":
            # By its rule, a word before a gap drifts over all of it.
            onsets = np.array(truth.films[planted.movie].onsets_s)[grid.first_word]
            within_one = within_one[intact(planted, onsets)]
        assert within_one.size > 20
        assert within_one.all()
        if clock == "linear":
            assert np.array_equal(impulses[1], codes)


@pytest.mark.parametrize("clock", ["linear", "nearest", "next"])
@pytest.mark.parametrize(("subject", "offset_s"), [("1", 0.4), ("2", 1.6)])
def test_no_rule_looks_over_a_pause(
    written: tuple[Path, BrainTreebankTruth], clock: str, subject: str, offset_s: float
) -> None:
    folder, truth = written
    planted = truth.trials[f"sub_{subject}_trial000"]
    # Between two triggers, and not in the middle: there the nearest trigger would be right by chance.
    assert planted.pause_s % 2 == pytest.approx(offset_s, abs=0.02)
    recording = opened(folder, clock=clock).recording(RecordingId(subject, "1", "000", "the-sea"))
    assert recording.word_onsets_s is not None
    onsets = np.array(truth.films["the-sea"].onsets_s)
    samples = np.array(planted.samples)
    for side in (-1, 1):
        away = side * (onsets - planted.pause_s)
        near = (away > 0) & (np.floor(onsets / 2) == np.floor(planted.pause_s / 2))
        assert near.sum() >= 2
        off = np.rint(recording.word_onsets_s[near] * RATE_HZ) - samples[near]
        # `next` counts backwards over at most 1.6 s of drift, which is 0.8 samples; `linear` follows it.
        assert np.abs(off).max() <= (0 if clock == "linear" else 1)
    (note,) = [f for f in recording.findings if f.reason is Reason.CLOCK_DRIFT]
    assert note.found.endswith("; 1 pause(s)")
    assert "never across a pause" in note.remedy


@pytest.mark.parametrize("clock", ["linear", "nearest", "next"])
@pytest.mark.parametrize("row", ["pause", "unpause"])
@pytest.mark.parametrize("how", ["gone", "empty", "astray"])
def test_words_near_a_pause_at_an_unknown_place_have_no_time(
    written: tuple[Path, BrainTreebankTruth], broken: Path, clock: str, row: str, how: str
) -> None:
    planted = written[1].trials["sub_1_trial000"]

    def spoil(lines: list[str]) -> None:
        at = next(k for k, line in enumerate(lines) if line.startswith(f"{row},"))
        cells = lines[at].split(",")
        if how == "gone":
            del lines[at]
        elif how == "empty":
            lines[at] = ",".join([cells[0], "", *cells[2:]])
        else:
            # Before the trigger at 14 s, or, where the film goes on, before the place at which it stopped.
            cells[2] = "13.9" if row == "pause" else str(planted.pause_s - 0.05)
            lines[at] = ",".join(cells)

    whole = recorded(broken, clock=clock).word_onsets_s
    edit(broken / TIMINGS, spoil)
    recording = recorded(broken, clock=clock)
    onsets = np.array(written[1].films["the-sea"].onsets_s)
    assert whole is not None
    assert recording.word_onsets_s is not None
    start, stop = (14.0, planted.pause_s) if row == "pause" else (planted.pause_s, 16.0)
    lost = (onsets > start) & (onsets < stop)
    assert lost.sum() >= 2
    assert np.isnan(recording.word_onsets_s[lost]).all()
    # With drift, the slope outside of the triggers follows all anchors; nothing else may change.
    np.testing.assert_allclose(recording.word_onsets_s[~lost], whole[~lost], atol=1e-4)
    (without,) = [f for f in recording.findings if f.reason is Reason.WORDS_WITHOUT_TIME]
    assert f"{lost.sum()} of them in stretches" in without.found
    (note,) = [f for f in recording.findings if f.reason is Reason.CLOCK_DRIFT]
    assert "1 pause(s); in 1 of them words have no time, the first after line" in note.found
    left_out = of(recording, Reason.SOURCE_ROWS_LEFT_OUT)
    assert left_out == ([] if how == "gone" else ["triggers"])


def test_what_comes_after_a_pause_that_never_ends_was_not_heard(
    written: tuple[Path, BrainTreebankTruth], broken: Path
) -> None:
    planted = written[1].trials["sub_1_trial000"]

    def stop(lines: list[str]) -> None:
        at = next(k for k, line in enumerate(lines) if line.startswith("unpause,"))
        del lines[at:]

    edit(broken / TIMINGS, stop)
    recording = recorded(broken)
    onsets = np.array(written[1].films["the-sea"].onsets_s)
    assert recording.word_onsets_s is not None
    assert np.isnan(recording.word_onsets_s[onsets > planted.pause_s]).all()
    assert np.isfinite(recording.word_onsets_s[onsets < planted.pause_s]).all()


def test_a_pause_at_the_very_sample_of_a_trigger_is_one_anchor(broken: Path) -> None:
    def double(lines: list[str]) -> None:
        for kind, below in (("pause", 0), ("unpause", 1)):
            at = next(k for k, line in enumerate(lines) if line.startswith(f"{kind},"))
            lines.insert(at + below, lines[at].replace(kind, "trigger"))

    whole = recorded(broken)
    edit(broken / TIMINGS, double)
    recording = recorded(broken)
    np.testing.assert_array_equal(recording.word_onsets_s, whole.word_onsets_s)  # type: ignore[arg-type]
    assert of(recording, Reason.SOURCE_ROWS_LEFT_OUT) == []


def test_nearest_is_exact_but_for_words_where_triggers_were_dropped(
    written: tuple[Path, BrainTreebankTruth],
) -> None:
    folder, truth = written
    planted = truth.trials["sub_1_trial000"]
    recording = recorded(folder)
    assert recording.word_onsets_s is not None
    onsets = np.array(truth.films["the-sea"].onsets_s)
    off = np.rint(recording.word_onsets_s * RATE_HZ) - np.array(planted.samples)
    whole = intact(planted, onsets) & (onsets < 28)
    assert whole.sum() > 20
    assert (off[whole] == 0).all()
    assert np.nanmax(np.abs(off[np.array(planted.samples) >= 0])) <= 1


def test_trials_are_as_planted(written: tuple[Path, BrainTreebankTruth]) -> None:
    folder, truth = written
    dataset = opened(folder)
    assert dataset.recording_ids() == [
        FIRST,
        RecordingId("1", "1", "001", "the-hill"),
        RecordingId("2", "1", "000", "the-sea"),
    ]
    recording = dataset.recording(FIRST)
    assert isinstance(recording.signal, TimeSeries)
    assert recording.signal.physical_unit == "µV"
    assert recording.signal.sampling_rate_hz == RATE_HZ
    assert recording.signal.n_samples == truth.trials["sub_1_trial000"].n_samples
    assert recording.where == f"dataset 'bt', {FIRST_H5}"
    assert recording.units.ids == truth.labels
    assert of(recording, Reason.CHANNEL_NOT_NEURAL) == ["DC1", "TRIG7", "DC2"]
    assert of(recording, Reason.CHANNEL_MARKED_BAD) == ["RF2b1"]
    assert of(recording, Reason.UNIT_WITHOUT_PLACE) == ["RF2b3"]
    (drift,) = [f for f in recording.findings if f.reason is Reason.CLOCK_DRIFT]
    assert "+244.1 ppm" in drift.found
    assert "1 pause(s)" in drift.found
    (dropped,) = [f for f in recording.findings if f.reason is Reason.TRIGGERS_DROPPED]
    assert "3 missing" in dropped.found
    ids = dataset.recording_ids()
    assert of(dataset.recording(ids[1]), Reason.TRIGGERS_DROPPED) == []


def test_an_electrode_is_its_place_in_the_unfiltered_labels(
    written: tuple[Path, BrainTreebankTruth],
) -> None:
    folder, _ = written
    recording = recorded(folder)
    signal = recording.signal
    assert isinstance(signal, TimeSeries)
    assert isinstance(signal.values, StreamedSeries)
    assert signal.values.unit_major
    assert signal.values.dtype == np.float32
    places = {label.strip("*#").replace("_", ""): place for place, label in enumerate(LABELS)}
    with h5py.File(folder / FIRST_H5) as file:
        for unit, label in enumerate(recording.units.ids):
            stored = file["data"][f"electrode_{places[label]}"][()]
            assert np.array_equal(signal.read([unit])[:, 0], stored)
    both = signal.read([3, 1])
    assert np.array_equal(both, np.hstack([signal.read([3]), signal.read([1])]))


@pytest.mark.parametrize(
    "storage",
    [
        {"at_root": True, "chunks": 1000, "compression": "gzip"},
        {"dtype": "float64", "chunks": 4096},
        {"dtype": "int16"},
    ],
)
def test_how_the_file_is_stored_changes_no_number(tmp_path: Path, storage: dict[str, Any]) -> None:
    truth = write_brain_treebank(tmp_path / "data", **storage)
    recording = recorded(tmp_path / "data", clock="linear")
    assert isinstance(recording.signal, TimeSeries)
    values = recording.signal.read([0])[:, 0]
    samples = [sample for sample in truth.trials["sub_1_trial000"].samples if sample >= 0]
    codes = [code for code, s in enumerate(truth.trials["sub_1_trial000"].samples, 1) if s >= 0]
    assert values[samples].tolist() == codes
    assert recording.signal.values.dtype == storage.get("dtype", "float32")


def test_words_keep_every_column(written: tuple[Path, BrainTreebankTruth]) -> None:
    folder, truth = written
    film = truth.films["the-sea"]
    stimulus = opened(folder).stimulus("the-sea")
    words = stimulus.words
    assert words["word"].to_list() == list(film.words)
    assert words["onset_s"].to_list() == list(film.onsets_s)
    assert words["sentence_id"].to_list() == list(film.sentences)
    assert words["source_row"].to_list() == list(film.rows)
    assert words["story_id"].unique().to_list() == ["the-sea"]
    assert words["space_after"].eq("no").arg_true().to_list() == list(film.glued)
    assert {
        "pos",
        "upos",
        "bin_head",
        "gpt2_surprisal",
        "rms",
        "pitch",
        "speaker",
        "face_num",
    } <= set(words.columns)
    assert words["gpt2_surprisal"].dtype.is_float()
    assert words["word_diff"].null_count() == words.height
    assert words["speaker"].drop_nulls().unique().to_list() == ["Ann"]
    (left_out,) = [f for f in stimulus.findings if f.reason is Reason.SOURCE_ROWS_LEFT_OUT]
    assert left_out.severity == "excluded"
    assert "2 of 64 rows" in left_out.found
    assert "line 8 'bigger'" in left_out.found
    (corrected,) = [f for f in stimulus.findings if f.reason is Reason.SOURCE_VALUES_CORRECTED]
    assert "line 42" in corrected.found
    assert stimulus.mechanisms == {}


def test_equal_sentences_in_a_row_are_two(written: tuple[Path, BrainTreebankTruth]) -> None:
    words = opened(written[0]).stimulus("the-sea").words
    sentences = words.group_by("sentence_id", maintain_order=True).agg("word")["word"].to_list()
    assert sentences[1:3] == [["No", "."], ["No", "."]]


def test_overlapping_speakers_are_sorted_and_noted(tmp_path: Path) -> None:
    truth = write_brain_treebank(tmp_path / "data", overlap=True)
    film = truth.films["the-sea"]
    stimulus = opened(tmp_path / "data").stimulus("the-sea")
    assert film.rows != tuple(sorted(film.rows))
    assert stimulus.words["source_row"].to_list() == list(film.rows)
    assert stimulus.words["sentence_id"].to_list() == list(film.sentences)
    reasons = [finding.reason for finding in stimulus.findings]
    assert Reason.SOURCE_ROWS_SORTED in reasons
    assert any("interrupt" in finding.found for finding in stimulus.findings)


def test_media_are_a_boundary_of_the_release(written: tuple[Path, BrainTreebankTruth], broken: Path) -> None:
    stimulus = opened(written[0]).stimulus("the-sea")
    assert stimulus.media == {}
    assert {kind: absent.reason for kind, absent in stimulus.media_absent.items()} == {
        "audio": Reason.MEDIA_NOT_RELEASED,
        "video": Reason.MEDIA_NOT_RELEASED,
    }
    assert "boxcar" in stimulus.media_absent["audio"].detail
    (broken / "media").mkdir()
    (broken / "media" / "the-sea.wav").write_bytes(b"RIFF")
    own = opened(broken).stimulus("the-sea")
    assert own.media == {"audio": "media/the-sea.wav"}
    assert set(own.media_absent) == {"video"}


def test_places_follow_the_options(written: tuple[Path, BrainTreebankTruth]) -> None:
    folder, _ = written
    units = recorded(folder).units
    assert units.regions[0] == "ctx-lh-superiortemporal"
    assert units.regions[-1] == "unknown"
    assert units.coordinate_frame == "subject LIP"
    assert units.coordinates_mm is not None
    assert np.isfinite(units.coordinates_mm).all(axis=1).tolist() == [True] * 4 + [False]
    units = recorded(folder, atlas="Destrieux", coordinates="standard").units
    assert units.regions[0] == "ctx_lh_G_temp_sup-Lateral"
    assert units.coordinate_frame == "MNI"
    assert units.coordinates_mm is not None
    assert np.isfinite(units.coordinates_mm).all(axis=1).tolist() == [True] * 3 + [False] * 2


def test_a_folder_without_localisation_is_read(broken: Path) -> None:
    shutil.rmtree(broken / "localization")
    recording = recorded(broken)
    assert set(recording.units.regions) == {"unknown"}
    assert recording.units.coordinates_mm is None
    assert len(of(recording, Reason.UNIT_WITHOUT_PLACE)) == 5


def test_trials_can_be_chosen(written: tuple[Path, BrainTreebankTruth]) -> None:
    folder, _ = written
    assert [i.subject for i in opened(folder, subjects=["2"]).recording_ids()] == ["2"]
    assert opened(folder, trials=["sub_1_trial000"]).recording_ids() == [FIRST]
    sessions = opened(folder, trials_are="sessions").recording_ids()
    assert [(i.session, i.run) for i in sessions] == [("000", "1"), ("001", "1"), ("000", "1")]
    with pytest.raises(InputError, match=r"option 'subjects'[\s\S]*found: +'3'[\s\S]*use one of: 1, 2"):
        opened(folder, subjects=["3"])
    with pytest.raises(InputError, match="did you mean 'sub_1_trial001'"):
        opened(folder, trials=["sub_1_trial010"])
    with pytest.raises(InputError, match="change the options subjects and trials"):
        opened(folder, subjects=["2"], trials=["sub_1_trial000"])


def test_every_file_that_is_read_is_a_source(written: tuple[Path, BrainTreebankTruth]) -> None:
    paths = [file.path for file in opened(written[0], trials=["sub_1_trial000"]).source_files()]
    assert paths == [
        FIRST_H5,
        "corrupted_elec.json",
        "electrode_labels/sub_1/electrode_labels.json",
        "localization/sub_1/depth-wm.csv",
        "subject_metadata/sub_1_trial000_metadata.json",
        TIMINGS,
        FEATURES,
    ]


def test_what_a_player_skipped_was_not_heard(broken: Path) -> None:
    def skip(lines: list[str]) -> None:
        # The film goes on 4 s further ahead from the trigger at 20 s on: nobody heard what lies between.
        for row, line in enumerate(lines[1:], start=1):
            cells = line.split(",")
            if float(cells[2]) >= 20:
                cells[2] = str(float(cells[2]) + 4.0)
            lines[row] = ",".join(cells)

    edit(broken / TIMINGS, skip)
    recording = recorded(broken)
    onsets = opened(broken).stimulus("the-sea").words["onset_s"].to_numpy()
    assert recording.word_onsets_s is not None
    # The trigger at 18 s is missing, so the stretch from 16 s to 24 s of film was skipped over.
    within = (onsets > 16) & (onsets < 24)
    assert within.any()
    assert np.isnan(recording.word_onsets_s[within]).all()
    assert np.isfinite(recording.word_onsets_s[(onsets > 24) & (onsets < 28)]).all()


def test_rows_of_other_types_are_no_triggers(broken: Path) -> None:
    before = recorded(broken).word_onsets_s
    edit(broken / TIMINGS, lambda lines: lines.insert(4, "speech,99999999,3.0,0,,,"))
    recording = recorded(broken)
    assert np.array_equal(recording.word_onsets_s, before, equal_nan=True)  # type: ignore[arg-type]
    (note,) = [f for f in recording.findings if f.reason is Reason.SOURCE_ROWS_LEFT_OUT]
    assert "1 of type 'speech'" in note.found


def test_jitter_of_triggers_never_turns_words_around(broken: Path) -> None:
    def late(lines: list[str]) -> None:
        # The trigger at 2 s comes 40 ms early: words after the middle fall back behind those before it.
        cells = lines[3].split(",")
        cells[1] = str(int(cells[1]) - 82)
        lines[3] = ",".join(cells)

    edit(broken / TIMINGS, late)

    def close(lines: list[str]) -> None:
        for row, start in ((2, "0.99"), (3, "1.01")):
            cells = lines[row].split(",")
            cells[2], cells[3] = start, "1.05"
            lines[row] = ",".join(cells)

    edit(broken / FEATURES, close)
    recording = recorded(broken)
    assert recording.word_onsets_s is not None
    told = recording.word_onsets_s[np.isfinite(recording.word_onsets_s)]
    assert (np.diff(told) >= 0).all()
    (note,) = [f for f in recording.findings if f.reason is Reason.SOURCE_VALUES_CORRECTED]
    assert "jitter" in note.found


def test_a_stretch_without_values_costs_its_electrode(broken: Path) -> None:
    with h5py.File(broken / FIRST_H5, "r+") as file:
        file["data"]["electrode_2"][1000:1100] = np.nan
    dataset = opened(broken)
    grid = read_grid(dataset.recording(FIRST), dataset.stimulus("the-sea"), GridConfig(lags_ms=(0.0,)))
    assert [(f.field, f.reason) for f in grid.findings] == [("LT1a2", Reason.NON_FINITE_NEURAL)]
    assert "100 of" in grid.findings[0].found
    assert "sample 1000" in grid.findings[0].found


def truncate(folder: Path) -> None:
    data = (folder / FIRST_H5).read_bytes()
    (folder / FIRST_H5).write_bytes(data[: len(data) // 2])


def drop_label(folder: Path) -> None:
    path = folder / "electrode_labels/sub_1/electrode_labels.json"
    path.write_text(json.dumps(list(LABELS[:-1])))


def drop_electrode(folder: Path) -> None:
    with h5py.File(folder / FIRST_H5, "r+") as file:
        del file["data"]["electrode_3"]


def shorten_electrode(folder: Path) -> None:
    with h5py.File(folder / FIRST_H5, "r+") as file:
        values = file["data"]["electrode_6"][:-5]
        del file["data"]["electrode_6"]
        file["data"]["electrode_6"] = values


def square_electrode(folder: Path) -> None:
    with h5py.File(folder / FIRST_H5, "r+") as file:
        del file["data"]["electrode_6"]
        file["data"]["electrode_6"] = np.zeros((4, 4))


def no_group(folder: Path) -> None:
    with h5py.File(folder / FIRST_H5, "w") as file:
        file["neural"] = np.zeros(3)


def swap_samples(folder: Path) -> None:
    def swap(lines: list[str]) -> None:
        a, b = lines[4].split(","), lines[5].split(",")
        a[1], b[1] = b[1], a[1]
        lines[4], lines[5] = ",".join(a), ",".join(b)

    edit(folder / TIMINGS, swap)


def half_rate(folder: Path) -> None:
    def halve(lines: list[str]) -> None:
        for row, line in enumerate(lines[1:], start=1):
            cells = line.split(",")
            cells[1] = str(int(cells[1]) // 2)
            lines[row] = ",".join(cells)

    edit(folder / TIMINGS, halve)


def no_triggers(folder: Path) -> None:
    def rename(lines: list[str]) -> None:
        lines[1:] = [line.replace("trigger", "beginning") for line in lines[1:]]

    edit(folder / TIMINGS, rename)


def negative_sample(folder: Path) -> None:
    edit(folder / TIMINGS, lambda lines: lines.__setitem__(2, "trigger,-5,0.0,0,,,"))


def late_trigger(folder: Path) -> None:
    edit(folder / TIMINGS, lambda lines: lines.insert(-1, "trigger,1000000000,30.0,0,,,"))


def late_pause(folder: Path) -> None:
    edit(folder / TIMINGS, lambda lines: lines.insert(-1, "pause,1000000000,30.0,0,,,"))


def external_link(folder: Path) -> None:
    with h5py.File(folder / FIRST_H5, "r+") as file:
        with h5py.File(folder.parent / "secret.h5", "w") as other:
            other["x"] = file["data"]["electrode_2"][()]
        del file["data"]["electrode_2"]
        file["data"]["electrode_2"] = h5py.ExternalLink(str(folder.parent / "secret.h5"), "x")


def link_to_link(folder: Path) -> None:
    external_link(folder)
    with h5py.File(folder / FIRST_H5, "r+") as file:
        file["data"].move("electrode_2", "hidden")
        file["data"]["electrode_2"] = h5py.SoftLink("/data/hidden")


def external_group(folder: Path) -> None:
    shutil.move(folder / FIRST_H5, folder.parent / "secret.h5")
    with h5py.File(folder / FIRST_H5, "w") as file:
        file["data"] = h5py.ExternalLink(str(folder.parent / "secret.h5"), "data")


def dangling_link(folder: Path) -> None:
    with h5py.File(folder / FIRST_H5, "r+") as file:
        del file["data"]["electrode_2"]
        file["data"]["electrode_2"] = h5py.SoftLink("/data/gone")


def virtual_electrode(folder: Path) -> None:
    external_link(folder)
    with h5py.File(folder / FIRST_H5, "r+") as file:
        n_samples = file["data"]["electrode_0"].shape[0]
        layout = h5py.VirtualLayout((n_samples,), "f4")
        layout[:] = h5py.VirtualSource(str(folder.parent / "secret.h5"), "x", (n_samples,), "f4")
        del file["data"]["electrode_2"]
        file["data"].create_virtual_dataset("electrode_2", layout)


def raw_storage(folder: Path) -> None:
    with h5py.File(folder / FIRST_H5, "r+") as file:
        values = file["data"]["electrode_2"][()]
        values.tofile(folder.parent / "secret.raw")
        del file["data"]["electrode_2"]
        raw = [(str(folder.parent / "secret.raw"), 0, values.nbytes)]
        file["data"].create_dataset("electrode_2", values.shape, values.dtype, external=raw)


def deep_corrupted(folder: Path) -> None:
    (folder / "corrupted_elec.json").write_text("[" * 100_000)


def deep_labels(folder: Path) -> None:
    path = folder / "electrode_labels/sub_1/electrode_labels.json"
    path.write_text("[" * 400 + "]" * 400)


def deep_metadata(folder: Path) -> None:
    path = folder / "subject_metadata/sub_1_trial000_metadata.json"
    path.write_text('{"filename": ' * 100_000)


def endless_number(folder: Path) -> None:
    (folder / "corrupted_elec.json").write_text('{"sub_1": ' + "9" * 5000 + "}")


def wrong_cell(folder: Path) -> None:
    edit(folder / TIMINGS, lambda lines: lines.__setitem__(2, "trigger,5000,soon,0,,,"))


def no_corrupted(folder: Path) -> None:
    (folder / "corrupted_elec.json").write_text('{"sub_2": []}')


def torn_json(folder: Path) -> None:
    (folder / "electrode_labels/sub_1/electrode_labels.json").write_text('["LT1a1", ')


def no_timings(folder: Path) -> None:
    (folder / TIMINGS).unlink()


def other_atlas(folder: Path) -> None:
    edit(
        folder / "localization/sub_1/depth-wm.csv",
        lambda lines: lines.__setitem__(0, lines[0].replace("DesikanKilliany", "DK")),
    )


def twice_localised(folder: Path) -> None:
    edit(folder / "localization/sub_1/depth-wm.csv", lambda lines: lines.append(lines[1]))


def twice(folder: Path) -> None:
    shutil.copy(folder / FIRST_H5, folder / "sub_1_trial000.h5")


def odd_name(folder: Path) -> None:
    (folder / FIRST_H5).rename(folder / "all_subject_data/sub_01_trial0.h5")


def climbing_film(folder: Path) -> None:
    path = folder / "subject_metadata/sub_1_trial000_metadata.json"
    path.write_text(json.dumps({"title": "X", "filename": "../../etc"}))


@pytest.mark.parametrize(
    ("breaks", "error", "file", "found", "remedy"),
    [
        (truncate, RecordingError, FIRST_H5, "bytes", "download the file again"),
        (drop_label, RecordingError, "data/electrode_8", "8 labels", "unlabelled = 'leave_out'"),
        (
            drop_electrode,
            RecordingError,
            "data/electrode_3",
            "'data/electrode_4'",
            "data/electrode_",
        ),
        (shorten_electrode, RecordingError, "data/electrode_6", "shape", "download"),
        (square_electrode, RecordingError, "data/electrode_6", "(4, 4)", "download"),
        (no_group, RecordingError, FIRST_H5, "neural", "neural"),
        (swap_samples, RecordingError, f"{TIMINGS}, line 6", "after", "leave the broken ones out"),
        (half_rate, RecordingError, TIMINGS, "0.5", "check the sampling rate"),
        (no_triggers, RecordingError, TIMINGS, "beginning", "download"),
        (negative_sample, RecordingError, f"{TIMINGS}, line 3", "sample -5", "same trial"),
        (late_trigger, RecordingError, f"{TIMINGS}, line 17", "sample 1000000000", "same trial"),
        (late_pause, RecordingError, f"{TIMINGS}, line 17", "sample 1000000000", "same trial"),
        (external_link, RecordingError, "data/electrode_2", "secret.h5", "copy the values"),
        (link_to_link, RecordingError, "data/electrode_2", "secret.h5", "copy the values"),
        (external_group, RecordingError, FIRST_H5, "secret.h5", "copy the values"),
        (
            dangling_link,
            RecordingError,
            "data/electrode_2",
            "without a target",
            "data/electrode_",
        ),
        (virtual_electrode, RecordingError, "data/electrode_2", "virtual", "copy the values"),
        (raw_storage, RecordingError, "data/electrode_2", "external storage", "copy the values"),
        (deep_corrupted, RecordingError, "corrupted_elec.json", "recursion", "download"),
        (deep_labels, RecordingError, "electrode_labels.json", "[[[", "download"),
        (deep_metadata, RecordingError, "trial000_metadata.json", "recursion", "download"),
        (endless_number, RecordingError, "corrupted_elec.json", "4300", "download"),
        (wrong_cell, RecordingError, f"{TIMINGS}, line 3", "soon", "fix the cell"),
        (no_corrupted, RecordingError, "corrupted_elec.json", "sub_2", "download"),
        (torn_json, RecordingError, "electrode_labels.json, line 1", "Expecting", "download"),
        (no_timings, RecordingError, TIMINGS, "sub_1_trial001_timings.csv", "download it"),
        (other_atlas, RecordingError, "depth-wm.csv", "DK", "add the column"),
        (twice_localised, RecordingError, "depth-wm.csv, line 7", "LT1a1", "fix the cell"),
        (twice, InputError, "sub_1_trial000.h5", "also", "keep one of the two"),
        (odd_name, InputError, "sub_01_trial0.h5", "sub_01_trial0.h5", "its name in the release"),
        (climbing_film, RecordingError, "key 'filename'", "../../etc", "download"),
    ],
)
def test_a_broken_trial_is_named(
    broken: Path,
    breaks: Callable[[Path], None],
    error: type[InputError],
    file: str,
    found: str,
    remedy: str,
) -> None:
    breaks(broken)
    with pytest.raises(error) as caught:
        recorded(broken)
    assert file in str(caught.value.where)
    assert found in str(caught.value.got)
    assert remedy in str(caught.value.remedy)


def test_a_film_that_runs_backwards_is_named(broken: Path) -> None:
    def rewind(lines: list[str]) -> None:
        cells = lines[7].split(",")
        cells[2] = "1.5"
        lines[7] = ",".join(cells)

    edit(broken / TIMINGS, rewind)
    with pytest.raises(RecordingError, match="stimulus times in order") as caught:
        recorded(broken)
    assert f"{TIMINGS}, line 8" in str(caught.value.where)
    assert "1.5 after" in str(caught.value.got)


def latin(folder: Path) -> None:
    text = (folder / FEATURES).read_text(encoding="utf-8")
    (folder / FEATURES).write_bytes(text.replace("bigger", "größer").encode("latin-1"))


def odd_onset(folder: Path) -> None:
    edit(
        folder / FEATURES,
        lambda lines: lines.__setitem__(1, lines[1].replace("boat.,1,0", "boat.,2,0")),
    )


def odd_start(folder: Path) -> None:
    edit(folder / FEATURES, lambda lines: lines.__setitem__(1, lines[1].replace(",We,", ",We,~")))


def no_sentence(folder: Path) -> None:
    edit(
        folder / FEATURES,
        lambda lines: lines.__setitem__(0, lines[0].replace(",sentence,", ",sent,")),
    )


@pytest.mark.parametrize(
    ("breaks", "place", "found"),
    [
        (latin, FEATURES, "UnicodeDecodeError"),
        (odd_onset, f"{FEATURES}, line 2, column 'is_onset'", "'2'"),
        (odd_start, f"{FEATURES}, line 2, column 'start'", "~"),
        (no_sentence, f"{FEATURES}, line 1, column 'sentence'", "sent"),
    ],
)
def test_a_broken_film_is_named(broken: Path, breaks: Callable[[Path], None], place: str, found: str) -> None:
    breaks(broken)
    with pytest.raises(StimulusError) as caught:
        opened(broken).stimulus("the-sea")
    assert place in str(caught.value.where)
    assert found in str(caught.value.got)
    assert caught.value.remedy


def test_the_last_sample_may_hold_a_trigger_and_the_next_may_not(
    written: tuple[Path, BrainTreebankTruth], broken: Path
) -> None:
    n_samples = written[1].trials["sub_1_trial000"].n_samples

    def end_at(sample: int) -> None:
        with h5py.File(broken / FIRST_H5, "r+") as file:
            for name in list(file["data"]):
                values = file["data"][name][:sample]
                del file["data"][name]
                file["data"][name] = values

    last = int((broken / TIMINGS).read_text().splitlines()[-1].split(",")[1])
    assert last < n_samples
    end_at(last + 1)
    assert recorded(broken).word_onsets_s is not None
    end_at(last)
    with pytest.raises(RecordingError, match="outside the recording") as caught:
        recorded(broken)
    assert caught.value.got == f"sample {last}"
    assert f"0 to {last - 1}" in str(caught.value.expected)


def test_a_row_that_is_no_anchor_may_lie_outside(broken: Path) -> None:
    before = recorded(broken).word_onsets_s

    def later(lines: list[str]) -> None:
        cells = lines[-1].split(",")
        assert cells[0] == "end"
        lines[-1] = ",".join([cells[0], "1000000000", *cells[2:]])

    edit(broken / TIMINGS, later)
    np.testing.assert_array_equal(recorded(broken).word_onsets_s, before)  # type: ignore[arg-type]


def test_a_link_within_the_file_is_followed(broken: Path) -> None:
    with h5py.File(broken / FIRST_H5, "r+") as file:
        stored = file["data"]["electrode_2"][()]
        file.move("data/electrode_2", "moved")
        file["data"]["electrode_2"] = h5py.SoftLink("/moved")
    signal = recorded(broken).signal
    assert isinstance(signal, TimeSeries)
    assert np.array_equal(signal.read([1])[:, 0], stored)


def test_parts_that_were_never_stored_are_noted(tmp_path: Path) -> None:
    write_brain_treebank(tmp_path / "data", chunks=5000)
    path = tmp_path / "data" / FIRST_H5
    with h5py.File(path, "r+") as file:
        n_samples = file["data"]["electrode_2"].shape[0]
        for name in ("electrode_2", "electrode_0"):
            del file["data"][name]
            file["data"].create_dataset(name, (n_samples,), "f4", chunks=(5000,))
        file["data"]["electrode_2"][:10_000] = 1.0
    recording = recorded(tmp_path / "data")
    # electrode_0 is no neural channel: nothing of it is read.
    (note,) = [f for f in recording.findings if f.reason is Reason.MISSING_SAMPLES]
    assert note.field == "LT1a2"
    assert note.where.endswith(f"{FIRST_H5}, electrode_2")
    n_chunks = -(-n_samples // 5000)
    assert f"{n_chunks - 2} of {n_chunks} chunks were never stored" in note.found


def test_torn_values_are_named_when_they_are_read_and_not_before(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    write_brain_treebank(folder, chunks=5000, compression="gzip")
    with h5py.File(folder / FIRST_H5) as file:
        chunk = file["data"]["electrode_2"].id.get_chunk_info(1)
    with (folder / FIRST_H5).open("r+b") as stream:
        stream.seek(chunk.byte_offset)
        stream.write(b"\xff" * chunk.size)
    recording = recorded(folder)
    assert isinstance(recording.signal, TimeSeries)
    assert recording.signal.read([0]).any()
    with pytest.raises(RecordingError, match="cannot be read") as caught:
        recording.signal.read([1])
    assert FIRST_H5 in str(caught.value.where)
    with pytest.raises(RecordingError, match="cannot be read"):
        build_grid(recording, opened(folder).stimulus("the-sea"), GridConfig(lags_ms=(0.0,)))


def test_unlabelled_electrodes_can_be_left_out(broken: Path) -> None:
    drop_label(broken)
    recording = recorded(broken, unlabelled="leave_out")
    assert of(recording, Reason.CHANNEL_NOT_SELECTED) == ["electrode_8"]
    assert len(recording.units.ids) == 5


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such recordings"):
        opened(tmp_path)


def test_the_whole_is_as_declared() -> None:
    reader = DATASETS.get("brain_treebank")
    assert reader.role == "primary"
    assert reader.extra == "hdf5"
    assert reader.download is not None
    (media,) = [part for part in reader.layout if part.boundary]
    assert not media.needed
    assert "never as the acoustic envelope" in media.boundary


def test_another_sampling_rate_can_be_given_for_a_subject(broken: Path) -> None:
    """Triggers tell the rate: half as many samples a second are read if the study says so, and refused if not."""
    dataset = opened(broken)
    first = dataset.recording_ids()[0]
    expected = dataset.recording(first).word_onsets_s
    (timings,) = broken.glob(f"subject_timings/sub_{first.subject}_trial{first.run}_timings.csv")

    def halve(lines: list[str]) -> None:
        index = lines[0].rstrip().split(",").index("index")
        for row in range(1, len(lines)):
            cells = lines[row].rstrip("\n").split(",")
            if cells[index]:
                cells[index] = str(int(float(cells[index])) // 2)
            lines[row] = ",".join(cells) + ("\n" if lines[row].endswith("\n") else "")

    edit(timings, halve)
    with pytest.raises(RecordingError):
        opened(broken).recording(first)
    slow = opened(broken, sampling_rates_hz={first.subject: 1024.0}).recording(first)
    assert slow.signal.sampling_rate_hz == 1024.0
    told = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(slow.word_onsets_s), told)
    np.testing.assert_allclose(slow.word_onsets_s[told], expected[told], atol=2 / 1024.0)


def test_a_trial_that_was_not_unpacked_is_told(broken: Path) -> None:
    first = opened(broken).recording_ids()[0]
    (neural,) = broken.rglob(f"sub_{first.subject}_trial{first.run}.h5")
    neural.rename(neural.with_name(neural.name + ".zip"))
    (note,) = opened(broken).findings
    assert note.reason is Reason.RECORDING_NOT_READ
    assert f"{neural.name}.zip, which is not unpacked" in note.found
    neural.with_name(neural.name + ".zip").unlink()
    (note,) = opened(broken).findings
    assert note.found == f"timings, and no {neural.name}"
