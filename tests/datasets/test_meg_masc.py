"""The MEG-MASC reader gives back what the writer of its layout planted, and names what is wrong."""

from __future__ import annotations

import json
import re
import shutil
import wave
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dataset_writers.meg_masc import MegMascTruth, write_meg_masc
from lpact.codes import Reason
from lpact.config import GridConfig
from lpact.datasets.base import DATASETS, Dataset, Findings, Recording, RecordingId
from lpact.datasets.meg_masc.events import RecordingEvents, WordEvent, story_words
from lpact.errors import InputError, RecordingError, StimulusError
from lpact.grid import build_grid

pytest.importorskip("mne")

MEG = "sub-01/ses-0/meg/sub-01_ses-0_task-0"
FIRST = RecordingId("01", "0", "0", "lw1")
SECOND = RecordingId("01", "1", "0", "lw1")


def open_folder(folder: Path, options: Mapping[str, Any] | None = None) -> Dataset:
    return DATASETS.build("meg_masc", options).open(name="masc", path=folder, seed=0)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, MegMascTruth]:
    folder = tmp_path_factory.mktemp("masc") / "data"
    return folder, write_meg_masc(folder)


@pytest.fixture(scope="module")
def dataset(written: tuple[Path, MegMascTruth]) -> Dataset:
    return open_folder(written[0])


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with one story in two sessions, to be spoilt."""
    write_meg_masc(tmp_path / "data", n_subjects=1, tasks=(0,), n_dropped=1)
    return tmp_path / "data"


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8-sig").splitlines()


def rewrite(path: Path, lines: list[str]) -> None:
    path.write_text("\ufeff" + "\n".join(lines) + "\n", encoding="utf-8")


def word_lines(lines: list[str]) -> list[int]:
    return [i for i, line in enumerate(lines) if "'kind': 'word'" in line]


def edit_cell(line: str, column: int, value: str) -> str:
    cells = line.split("\t")
    cells[column] = value
    return "\t".join(cells)


def reasons(findings: Any) -> list[Reason]:
    return [finding.reason for finding in findings]


# What was planted


def test_every_subject_session_and_story_is_a_recording(dataset: Dataset) -> None:
    assert dataset.recording_ids() == [
        RecordingId(subject, session, task, story)
        for subject in ("01", "02")
        for session in ("0", "1")
        for task, story in (("0", "lw1"), ("3", "the_black_willow"))
    ]


def test_word_times_are_exact_to_the_sample(dataset: Dataset, written: tuple[Path, MegMascTruth]) -> None:
    _, truth = written
    one_sample = GridConfig(lags_ms=(0.0,), reference_lag_ms=0.0, window_ms=1.0)
    for recording_id in dataset.recording_ids():
        stimulus = dataset.stimulus(recording_id.stimulus)
        recording = dataset.recording(recording_id)
        rows = truth.rows(recording_id.stimulus)
        samples = truth.samples[str(recording_id)][rows]
        assert recording.word_onsets_s is not None
        assert (np.isnan(recording.word_onsets_s) == (samples < 0)).all()

        grid = build_grid(recording, stimulus, one_sample)

        kept = samples >= 0
        assert (grid.first_word == np.flatnonzero(kept)).all()
        codes = (np.array(rows) + 1)[kept] * 1e-15
        np.testing.assert_allclose(grid.responses[0, :, 0], codes, rtol=1e-9)
        assert abs(truth.drift_ppm[str(recording_id)]) > 1.0


def test_the_signal_is_in_tesla_and_read_by_unit(dataset: Dataset, written: tuple[Path, MegMascTruth]) -> None:
    _, truth = written
    recording = dataset.recording(FIRST)
    assert recording.signal.physical_unit == "T"
    assert recording.signal.sampling_rate_hz == 1000.0  # type: ignore[union-attr]
    series = recording.signal.read([0])[:, 0]  # type: ignore[union-attr]
    expected = np.zeros(series.size)
    heard = truth.heard[str(FIRST)]
    expected[heard] = np.arange(1, heard.size + 1) * 1e-15
    np.testing.assert_allclose(series, expected, rtol=1e-9)


def test_units_are_sensors_with_places(dataset: Dataset, written: tuple[Path, MegMascTruth]) -> None:
    places = written[1].places_m
    units = dataset.recording(FIRST).units
    assert units.ids == ("MEG 001", "MEG 002", "MEG 003", "MEG 004")
    assert set(units.regions) == {"unknown"}
    assert units.coordinate_frame == "device"
    in_mm = 1000 * np.stack([-places[:, 1], places[:, 0], places[:, 2]], axis=1)
    np.testing.assert_allclose(units.coordinates_mm, in_mm)  # type: ignore[arg-type]


def test_recordings_of_a_story_share_their_words(dataset: Dataset, written: tuple[Path, MegMascTruth]) -> None:
    _, truth = written
    words = dataset.stimulus("the_black_willow").words
    spoken = [truth.words["the_black_willow"][i] for i in truth.rows("the_black_willow")]
    assert words["word"].to_list() == [word.word for word in spoken]
    assert words["sound"].to_list() == [word.sound for word in spoken]
    assert words["sequence_id"].to_list() == [word.sequence_id for word in spoken]
    assert words["word_index"].to_list() == [word.word_index for word in spoken]
    assert set(words["condition"]) == {"sentence"}
    assert set(words["pronounced"]) == {1.0}
    assert set(words["story_id"]) == {"the_black_willow"}
    # Three sentences of three words in each of two sounds.
    assert words["sentence_id"].to_list() == list(np.repeat(np.arange(6), 3))
    first = np.array([word.sound.endswith("_0") for word in spoken])
    start_s = np.array([word.start_s for word in spoken])
    onset_s = words["onset_s"].to_numpy()
    np.testing.assert_allclose(onset_s[first], start_s[first], atol=1e-9)
    later = onset_s[~first] - start_s[~first]
    np.testing.assert_allclose(later, later[0], atol=1e-9)
    duration_s = (words["offset_s"] - words["onset_s"]).to_numpy()
    np.testing.assert_allclose(duration_s, [word.duration_s for word in spoken], atol=1e-9)


def test_what_was_left_out_or_noticed_is_told(dataset: Dataset) -> None:
    stimulus = dataset.stimulus("the_black_willow")
    assert reasons(stimulus.findings) == [
        Reason.SOURCE_ROWS_LEFT_OUT,
        Reason.SOURCE_VALUES_CORRECTED,
    ]
    assert "6 word(s) in 'pseudo_words', 6 word(s) in 'word_list'" in stimulus.findings[0].found
    assert "'The_Black_Willow'" in stimulus.findings[1].found
    recording = dataset.recording(SECOND)
    told = {finding.reason: finding for finding in recording.findings}
    assert "3 channel(s) (1 megrefmag, 2 misc)" in told[Reason.CHANNEL_NOT_NEURAL].found
    assert "2 of 18 words" in told[Reason.WORDS_WITHOUT_TIME].found
    assert Reason.CLOCK_DRIFT in told
    assert not any("/tmp" in finding.where for finding in recording.findings)


def test_conditions_are_chosen(written: tuple[Path, MegMascTruth]) -> None:
    folder, truth = written
    chosen = ("sentence", "word_list", "pseudo_words")
    words = open_folder(folder, {"conditions": list(chosen)}).stimulus("lw1").words
    assert words["word"].to_list() == [word.word for word in truth.words["lw1"]]
    assert words["sentence_id"].n_unique() == 10
    lists = open_folder(folder, {"conditions": ["word_list"]}).stimulus("lw1")
    assert lists.words.height == 6
    assert reasons(lists.findings) == [Reason.SOURCE_ROWS_LEFT_OUT]


def test_sounds_become_an_envelope_on_the_clock_of_the_words(dataset: Dataset) -> None:
    stimulus = dataset.stimulus("lw1")
    assert stimulus.media == {"audio": "stimuli/audio"}
    assert stimulus.envelope is not None
    rate_hz = stimulus.envelope.sampling_rate_hz
    words = stimulus.words.filter((stimulus.words["offset_s"] - stimulus.words["onset_s"]) > 0.2)
    assert words.height >= 4
    middle = ((words["onset_s"] + words["offset_s"]) / 2 * rate_hz).round().cast(int).to_numpy()
    # A tone of amplitude 0.5 while a word is spoken; silence between the sounds.
    np.testing.assert_allclose(stimulus.envelope.values[middle], 0.5, atol=0.08)
    second = stimulus.words.filter(stimulus.words["word_index"] == 0)["onset_s"][3]
    assert abs(stimulus.envelope.values[int((second - 0.4) * rate_hz)]) < 0.01


def test_source_files_are_those_that_are_read(written: tuple[Path, MegMascTruth]) -> None:
    found = open_folder(written[0], {"subjects": ["02"]}).source_files()
    paths = [file.path for file in found]
    assert f"{MEG.replace('01', '02')}_meg.con" in paths
    assert "stimuli/audio/lw1_0.wav" in paths
    assert not any("sub-01" in path or path.endswith((".mrk", ".pos")) for path in paths)


def test_a_folder_bids_anonym_is_entered(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "outer").mkdir()
    shutil.move(copy, tmp_path / "outer" / "bids_anonym")
    assert open_folder(tmp_path / "outer").recording_ids() == [FIRST, SECOND]


# Quirks


def test_a_sound_that_the_first_recording_lacks_is_placed_by_another(copy: Path) -> None:
    whole = open_folder(copy).stimulus("lw1").words
    path = copy / f"{MEG}_events.tsv"
    rewrite(path, [line for line in lines_of(path) if "lw1_1.0.wav" not in line])

    dataset = open_folder(copy)
    stimulus = dataset.stimulus("lw1")

    # The word that the second recording has dropped in that sound is in no recording any more.
    assert whole.height - 1 <= stimulus.words.height <= whole.height
    second = stimulus.words.filter(stimulus.words["sound"] == "lw1_1")
    steps = second.join(whole, on=["sound", "sequence_id", "word_index"])
    apart = (steps["onset_s"] - steps["onset_s_right"]).to_numpy()
    np.testing.assert_allclose(apart, apart[0], atol=1e-9)
    assert Reason.TRIGGERS_DROPPED in reasons(stimulus.findings)
    onsets_s = dataset.recording(FIRST).word_onsets_s
    assert onsets_s is not None
    in_second = (stimulus.words["sound"] == "lw1_1").to_numpy()
    assert np.isnan(onsets_s[in_second]).all()
    assert np.isfinite(onsets_s[~in_second]).all()


def test_word_times_of_a_resampled_recording(tmp_path: Path) -> None:
    truth = write_meg_masc(tmp_path, n_subjects=1, tasks=(0,), sampling_rate_hz=500.0)
    recording = open_folder(tmp_path).recording(FIRST)
    assert recording.word_onsets_s is not None
    samples = truth.samples[str(FIRST)][truth.rows("lw1")]
    np.testing.assert_allclose(recording.word_onsets_s * 500, samples, atol=0.51)


def test_events_of_the_original_in_a_resampled_copy_are_refused(tmp_path: Path) -> None:
    for rate_hz in (1000.0, 500.0):
        write_meg_masc(tmp_path / f"{rate_hz:g}", n_subjects=1, tasks=(0,), sampling_rate_hz=rate_hz)
    path = tmp_path / "500" / f"{MEG}_events.tsv"
    shutil.copyfile(tmp_path / "1000" / f"{MEG}_events.tsv", path)
    dataset = open_folder(tmp_path / "500")
    with pytest.raises(RecordingError, match="onset · 500 Hz = sample") as caught:
        dataset.recording(FIRST)
    for text in (f"{path}, columns 'onset' and 'sample'", "first: line 2", "remove the column"):
        assert text in str(caught.value)
    # The story and the other session do not depend on these events.
    assert Reason.RECORDING_NOT_READ in reasons(dataset.stimulus("lw1").findings)
    assert dataset.recording(SECOND).word_onsets_s is not None
    # Without the samples, the times in seconds are used.
    rewrite(path, [line.rpartition("\t")[0] for line in lines_of(path)])
    original = open_folder(tmp_path / "1000").recording(FIRST).word_onsets_s
    np.testing.assert_array_equal(open_folder(tmp_path / "500").recording(FIRST).word_onsets_s, original)  # type: ignore[arg-type]


def test_a_sound_that_does_not_fit_its_words_is_noted(copy: Path) -> None:
    path = copy / f"{MEG}_events.tsv"
    before = open_folder(copy).recording(FIRST)
    lines = lines_of(path)
    row = next(i for i, line in enumerate(lines) if "'kind': 'sound'" in line)
    sample = int(lines[row].split("\t")[4]) - 200
    lines[row] = edit_cell(edit_cell(lines[row], 0, str(sample / 1000)), 4, str(sample))
    rewrite(path, lines)
    recording = open_folder(copy).recording(FIRST)
    np.testing.assert_array_equal(recording.word_onsets_s, before.word_onsets_s)  # type: ignore[arg-type]
    assert not [f for f in before.findings if f.field == "sound"]
    note = next(f for f in recording.findings if f.field == "sound")
    assert "by +200 ms" in note.found


def test_lines_out_of_order_are_sorted_and_told(copy: Path) -> None:
    path = copy / f"{MEG}_events.tsv"
    lines = lines_of(path)
    one, two = word_lines(lines)[1:3]
    before = open_folder(copy).recording(FIRST).word_onsets_s
    lines[one], lines[two] = lines[two], lines[one]
    rewrite(path, lines)
    recording = open_folder(copy).recording(FIRST)
    np.testing.assert_array_equal(recording.word_onsets_s, before)  # type: ignore[arg-type]
    assert Reason.SOURCE_ROWS_SORTED in reasons(recording.findings)


def test_a_word_that_is_written_twice_counts_once(copy: Path) -> None:
    path = copy / f"{MEG}_events.tsv"
    lines = lines_of(path)
    row = word_lines(lines)[2]
    height = open_folder(copy).stimulus("lw1").words.height
    rewrite(path, [*lines[: row + 1], lines[row], *lines[row + 1 :]])
    dataset = open_folder(copy)
    assert dataset.stimulus("lw1").words.height == height
    told = next(f for f in dataset.recording(FIRST).findings if f.reason is Reason.SOURCE_ROWS_LEFT_OUT)
    assert told.severity == "excluded"
    assert f"line {row + 2}" in told.found


def test_cells_that_a_csv_writer_has_quoted_are_read(copy: Path) -> None:
    path = copy / f"{MEG}_events.tsv"
    lines = lines_of(path)
    before = open_folder(copy).stimulus("lw1").words
    quoted = [edit_cell(line, 2, '"' + line.split("\t")[2].replace('"', '""') + '"') for line in lines[1:]]
    rewrite(path, [lines[0], *quoted])
    assert open_folder(copy).stimulus("lw1").words.equals(before)


def test_a_channel_that_is_marked_bad_is_left_out(copy: Path) -> None:
    path = copy / f"{MEG}_channels.tsv"
    text = path.read_text(encoding="utf-8-sig")
    text = text.replace("MEG 002\tMEGMAG\tT\tgood", "MEG 002\tMEGMAG\tT\tbad")
    path.write_text(text + "MEG 999\tMEGMAG\tT\tbad\n", encoding="utf-8")
    recording = open_folder(copy).recording(FIRST)
    assert recording.units.ids == ("MEG 001", "MEG 003", "MEG 004")
    told = {finding.reason: finding for finding in recording.findings}
    assert told[Reason.CHANNEL_MARKED_BAD].field == "MEG 002"
    assert "MEG 999" in told[Reason.SIDECAR_DISAGREES].found
    assert recording.signal.read([0, 1, 2]).shape[1] == 3  # type: ignore[union-attr]


def test_missing_sounds_are_told(copy: Path) -> None:
    (copy / "stimuli/audio/lw1_1.wav").unlink()
    stimulus = open_folder(copy).stimulus("lw1")
    assert stimulus.envelope is None
    assert not stimulus.media
    assert stimulus.media_absent["audio"].reason is Reason.MEDIA_NOT_OFFERED
    assert "lw1_1.wav" in stimulus.media_absent["audio"].detail
    assert "lw1_0.wav" not in stimulus.media_absent["audio"].detail


def test_a_story_of_one_sound_has_that_file(tmp_path: Path) -> None:
    write_meg_masc(tmp_path, n_subjects=1, tasks=(3,), n_sounds=1, sessions=("0",))
    stimulus = open_folder(tmp_path).stimulus("the_black_willow")
    assert stimulus.media == {"audio": "stimuli/audio/the_black_willow_0.wav"}
    assert stimulus.media_path("audio").is_file()
    with wave.open(str(stimulus.media_path("audio"))) as sound:
        assert sound.getnframes() / sound.getframerate() > stimulus.words["offset_s"][-1]


def test_broken_events_of_one_recording_do_not_hide_the_story(copy: Path) -> None:
    path = copy / "sub-01/ses-1/meg/sub-01_ses-1_task-0_events.tsv"
    lines = lines_of(path)
    lines[-1] = edit_cell(lines[-1], 2, "{'kind': ")
    rewrite(path, lines)
    dataset = open_folder(copy)
    note = next(f for f in dataset.stimulus("lw1").findings if f.reason is Reason.RECORDING_NOT_READ)
    assert note.field == "sub-01_ses-1_run-0"
    assert dataset.recording(FIRST).word_onsets_s is not None
    with pytest.raises(RecordingError, match="Python literal"):
        dataset.recording(SECOND)


# Bad files


def spoil_events(change: Callable[[list[str]], list[str]]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        path = folder / f"{MEG}_events.tsv"
        rewrite(path, change(lines_of(path)))

    return spoil


def with_word(change: Callable[[str], str]) -> Callable[[Path], None]:
    def changed(lines: list[str]) -> list[str]:
        row = word_lines(lines)[3]
        lines[row] = change(lines[row])
        return lines

    return spoil_events(changed)


def swap_times(lines: list[str]) -> list[str]:
    one, two = word_lines(lines)[3:5]
    cells = [line.split("\t") for line in lines]
    for column in (0, 4):
        cells[one][column], cells[two][column] = cells[two][column], cells[one][column]
    return ["\t".join(row) for row in cells]


def later_twin(lines: list[str]) -> list[str]:
    row = word_lines(lines)[-1]
    onset_s = float(lines[row].split("\t")[0]) + 0.25
    twin = edit_cell(edit_cell(lines[row], 0, str(onset_s)), 4, str(round(onset_s * 1000)))
    return [*lines, twin]


def latin(folder: Path) -> None:
    path = folder / f"{MEG}_events.tsv"
    path.write_bytes(path.read_bytes() + "1.0\t0.1\tcafé\t1\t1\n".encode("latin-1"))


def cut(n_bytes: int) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        path = folder / f"{MEG}_meg.con"
        path.write_bytes(path.read_bytes()[:n_bytes])

    return spoil


def wrong_rate(folder: Path) -> None:
    path = folder / f"{MEG}_meg.json"
    about = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**about, "SamplingFrequency": 500}), encoding="utf-8")


PHONEME = "9.9\t0.1\t{'kind': 'phoneme', 'story': 'lw1', %s}\t1\t9900"

BAD_RECORDINGS: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "broken literal": (
        with_word(lambda line: edit_cell(line, 2, "{'kind': 'word', 'word': ")),
        ("events.tsv, line 15, column 'trial_type'", "{'kind': 'word', 'word': ", "fix the file"),
    ),
    "a call is not a literal": (
        with_word(lambda line: edit_cell(line, 2, "{'kind': open('touched', 'w')}")),
        ("events.tsv, line", "open(", "Python literal"),
    ),
    "not a dict": (
        with_word(lambda line: edit_cell(line, 2, "['word']")),
        ("events.tsv, line", "['word']", "a dict of texts"),
    ),
    "unknown kind": (
        with_word(lambda line: line.replace("'kind': 'word'", "'kind': 'wrod'")),
        ("the kind 'wrod'", "sound, word or phoneme"),
    ),
    "a broken literal of a phoneme": (
        spoil_events(lambda lines: [*lines, PHONEME % "'phoneme': BROKEN("]),
        ("Python literal", "column 'trial_type'", "BROKEN(", "fix the file"),
    ),
    "no start": (
        with_word(lambda line: line.replace("'start'", "'begin'")),
        ("'start' is None", "Field required", "fix the file"),
    ),
    "a start beyond all numbers": (
        with_word(lambda line: re.sub(r"'start': [0-9.]+", f"'start': 1{'0' * 400}", line)),
        ("events.tsv, line 15", "'start' is 10000", "valid number"),
    ),
    "an index beyond whole numbers": (
        with_word(lambda line: re.sub(r"'word_index': [0-9.]+", "'word_index': 1e30", line)),
        ("events.tsv, line 15", "'word_index' is 1e+30"),
    ),
    "no onset": (
        with_word(lambda line: edit_cell(line, 0, "n/a")),
        ("column 'onset'", "'n/a'", "a finite number"),
    ),
    "mixed encodings": (latin, ("events.tsv", "UnicodeDecodeError", "encoding")),
    "times go backwards": (
        spoil_events(swap_times),
        ("times that rise", "events.tsv, lines", "in the order in which"),
    ),
    "a word at two times": (
        spoil_events(later_twin),
        ("every word of a sound file once", "events.tsv, lines"),
    ),
    "two stories": (
        with_word(lambda line: line.replace("'story': 'lw1'", "'story': 'easy_money'")),
        ("one story for all", "'lw1' (line 2), 'easy_money' (line 15)", "download"),
    ),
    "column missing": (
        spoil_events(lambda lines: [lines[0].replace("duration", "length"), *lines[1:]]),
        ("the column 'duration' is missing", "events.tsv, line 1", "length"),
    ),
    "truncated data": (
        cut(20_000),
        ("truncated", "task-0_meg.con", "20000 bytes", "download the file again"),
    ),
    "truncated header": (
        cut(100),
        ("truncated", "task-0_meg.con", "download the file again"),
    ),
    "no recording": (
        lambda folder: (folder / f"{MEG}_meg.con").unlink(),
        ("task-0_meg.con' is missing", "sub-01_ses-0_task-0_channels.tsv", "download it"),
    ),
    "sampling rate": (
        wrong_rate,
        ("task-0_meg.json, key 'SamplingFrequency'", "500 in the sidecar, 1000 Hz", "find out"),
    ),
}


def test_provenance_follows_the_description(copy: Path) -> None:
    path = copy / "dataset_description.json"
    path.unlink(missing_ok=True)
    info = open_folder(copy).info
    assert (info.version, info.licence) == ("2023", "CC0 1.0")
    path.write_text('{"Name": "MASC", "License": "CC BY 4.0"}', encoding="utf-8")
    dataset = open_folder(copy)
    info = dataset.info
    assert (info.source, info.version, info.licence) == ("MASC", "2023", "CC BY 4.0")
    assert "dataset_description.json" in [file.path for file in dataset.source_files()]


@pytest.mark.parametrize("name", BAD_RECORDINGS)
def test_a_bad_recording_is_named(copy: Path, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spoil, told = BAD_RECORDINGS[name]
    spoil(copy)
    monkeypatch.chdir(tmp_path)
    dataset = open_folder(copy)
    with pytest.raises(RecordingError) as caught:
        dataset.recording(FIRST)
    for text in (*told, "remedy:"):
        assert text in str(caught.value), str(caught.value)
    assert not (tmp_path / "touched").exists()


BAD_FOLDERS: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "no events": (
        lambda folder: (folder / f"{MEG}_events.tsv").unlink(),
        ("task-0_events.tsv' is missing", "task-0_meg.con", "download it"),
    ),
    "no story": (
        spoil_events(lambda lines: [lines[0], "1.0\t0.1\tword\t1\t1000"]),
        ("no event that states the story", "events.tsv", "download"),
    ),
    "file name": (
        lambda folder: shutil.move(folder / f"{MEG}_meg.con", folder / f"{MEG}_run-1_meg.con"),
        ("sub-X_ses-Y_task-Z", "run-1_meg.con", "rename"),
    ),
    "empty": (
        lambda folder: shutil.rmtree(folder / "sub-01"),
        ("no such recordings", "the folder of MEG-MASC", "give the folder"),
    ),
}


@pytest.mark.parametrize("name", BAD_FOLDERS)
def test_a_bad_folder_is_named(copy: Path, name: str) -> None:
    spoil, told = BAD_FOLDERS[name]
    spoil(copy)
    with pytest.raises(InputError) as caught:
        open_folder(copy)
    for text in (*told, "remedy:"):
        assert text in str(caught.value), str(caught.value)


def overlapping_sounds(lines: list[str]) -> list[str]:
    """The second sound begins while the first is playing."""

    def moved(line: str) -> str:
        if "lw1_1.0.wav" not in line:
            return line
        sample = int(line.split("\t")[4]) - 3000
        return edit_cell(edit_cell(line, 0, str(sample / 1000)), 4, str(sample))

    return [moved(line) for line in lines]


def test_sounds_that_overlap_are_an_error(copy: Path) -> None:
    spoil_events(overlapping_sounds)(copy)
    with pytest.raises(StimulusError, match="that follow one another") as caught:
        open_folder(copy).stimulus("lw1")
    assert "'lw1_0'" in str(caught.value)


@pytest.mark.parametrize("stop", [0, 30, -1000])
def test_a_torn_sound_is_named(copy: Path, stop: int) -> None:
    path = copy / "stimuli/audio/lw1_0.wav"
    path.write_bytes(path.read_bytes()[:stop])
    with pytest.raises(StimulusError, match="damaged, empty") as caught:
        open_folder(copy).stimulus("lw1")
    assert "lw1_0.wav" in str(caught.value)


def test_an_unknown_subject_is_named(written: tuple[Path, MegMascTruth]) -> None:
    with pytest.raises(InputError, match="there is no subject '3'"):
        open_folder(written[0], {"subjects": ["3"]})


def test_a_recording_is_not_read_to_be_opened(dataset: Dataset, monkeypatch: Any) -> None:
    import mne

    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("values were read")

    monkeypatch.setattr(mne.io.kit.kit.RawKIT, "_read_segment_file", never)
    recording: Recording = dataset.recording(FIRST)
    assert recording.signal.values.shape[1] == 4
    with pytest.raises(RecordingError, match="values were read"):
        recording.signal.read([0])  # type: ignore[union-attr]


def test_words_that_start_within_a_millisecond_are_the_same_and_two_at_one_place_are_noted() -> None:
    def recording(name: str, *words: tuple[str, int, float]) -> RecordingEvents:
        made = [
            WordEvent(
                line=i,
                time_s=10.0 + start,
                story="s",
                sound="a",
                start=start,
                duration_s=0.1,
                word=word,
                sequence_id=0,
                word_index=index,
                condition="c",
            )
            for i, (word, index, start) in enumerate(words)
        ]
        return RecordingEvents(Path(name), "s", {w.key: w for w in made}, {"a": 10.0}, [])

    one = recording("one", ("w0", 0, 0.1), ("w1", 1, 0.5))
    two = recording("two", ("w0", 0, 0.1), ("w1", 1, 0.50051), ("other", 1, 0.9))
    story = story_words("s", {"one": one, "two": two}, ["c"], "here")
    assert story.table["word"].to_list() == ["w0", "w1", "other"]
    assert [finding.reason for finding in story.findings] == [Reason.SIDECAR_DISAGREES]
    assert "first: 'w1', 0.5 s" in story.findings[0].found
    times = story.times_s(two, Findings("here"))
    np.testing.assert_allclose(times, [10.1, 10.50051, 10.9])
