"""Writing a dataset into a folder: the round trip, and what cannot be written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from lpact.datasets.base import (
    DATASETS,
    Dataset,
    DatasetInfo,
    Recording,
    RecordingId,
    SourceFile,
    Span,
    Stimulus,
    TimeSeries,
    Units,
)
from lpact.datasets.folder import write_folder
from lpact.errors import InputError

SMALL = {"n_subjects": 2, "n_stories": 1, "sentences_per_story": 4, "n_units": 5, "n_regions": 2}
ID = RecordingId("01", "1", "1", "talk")
WORDS = pl.DataFrame(
    {
        "word": ["a", "b"],
        "onset_s": [0.1, 0.5],
        "offset_s": [0.2, 0.6],
        "sentence_id": [0, 0],
        "story_id": ["s", "s"],
    }
)


class OneRecording(Dataset):
    """A dataset in memory."""

    def __init__(self, stimulus: Stimulus, info: DatasetInfo, units: Units) -> None:
        self.info = info
        self._stimulus = stimulus
        self._units = units

    def recording_ids(self) -> list[RecordingId]:
        return [replace(ID, stimulus=self._stimulus.id)]

    def recording(self, recording_id: RecordingId) -> Recording:
        values = np.zeros((3, len(self._units.ids)), np.float32)
        return Recording(recording_id, TimeSeries(values, 1 / 3, 1e-5), self._units, "memory")

    def stimulus(self, stimulus_id: str) -> Stimulus:
        return self._stimulus

    def source_files(self) -> list[SourceFile]:
        return []


def in_memory(**changes: Any) -> OneRecording:
    stimulus = replace(Stimulus("talk", WORDS, "memory"), **changes)
    return OneRecording(stimulus, DatasetInfo("s", "1", "CC0"), Units(("u",), ("r",)))


def open_folder(path: Path) -> Dataset:
    return DATASETS.build("folder").open(name="mine", path=path, seed=0)


@pytest.mark.parametrize("modality", ["intracranial", "fmri", "epoched"])
def test_round_trip_is_exact(tmp_path: Path, modality: str) -> None:
    options = SMALL | {"modality": modality, "repeat_stimulus": modality != "intracranial"}
    written = DATASETS.build("simulated", options).open(name="sim", path=None, seed=1)
    write_folder(written, tmp_path / "deep" / "copy")
    read = open_folder(tmp_path / "deep" / "copy")
    assert read.info == written.info
    assert read.recording_ids() == written.recording_ids()
    for recording_id in written.recording_ids():
        one, two = written.recording(recording_id), read.recording(recording_id)
        assert type(one.signal) is type(two.signal)
        assert one.signal.values.dtype == two.signal.values.dtype
        np.testing.assert_array_equal(one.signal.values, two.signal.values)
        assert {k: v for k, v in vars(one.signal).items() if k != "values"} == {
            k: v for k, v in vars(two.signal).items() if k != "values"
        }
        assert (one.units.ids, one.units.regions) == (two.units.ids, two.units.regions)
        np.testing.assert_array_equal(one.units.coordinates_mm, two.units.coordinates_mm)
    stimulus_ids = {recording_id.stimulus for recording_id in written.recording_ids()}
    assert len(stimulus_ids) == (2 if modality == "intracranial" else 1)
    for stimulus_id in stimulus_ids:
        check_same_stimulus(written.stimulus(stimulus_id), read.stimulus(stimulus_id))


def check_same_stimulus(one: Stimulus, two: Stimulus) -> None:
    assert_frame_equal(one.words, two.words, check_exact=True)
    assert list(one.mechanisms) == list(two.mechanisms)
    for name, values in one.mechanisms.items():
        np.testing.assert_array_equal(values, two.mechanisms[name])
    assert one.envelope is not None
    assert two.envelope is not None
    np.testing.assert_array_equal(one.envelope.values, two.envelope.values)
    assert one.envelope.sampling_rate_hz == two.envelope.sampling_rate_hz
    assert set(one.features) == set(two.features)
    for key in one.features:
        np.testing.assert_array_equal(one.features[key].load(), two.features[key].load())


def test_writing_what_was_read_gives_the_same_files(tmp_path: Path) -> None:
    simulated = DATASETS.build("simulated", SMALL).open(name="sim", path=None, seed=1)
    write_folder(simulated, tmp_path / "one")
    write_folder(open_folder(tmp_path / "one"), tmp_path / "two")
    one, two = open_folder(tmp_path / "one"), open_folder(tmp_path / "two")
    assert one.source_files() == two.source_files()
    assert len(one.source_files()) > 100


@settings(deadline=None)
@given(
    word=st.text(st.characters(exclude_characters="\t\n\r\0", exclude_categories=["Cs"]), min_size=1),
    onset_s=st.floats(0, 1e9),
    source=st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
)
def test_any_text_and_number_survives(
    tmp_path_factory: pytest.TempPathFactory, word: str, onset_s: float, source: str
) -> None:
    words = WORDS[:1].with_columns(word=pl.lit(word), onset_s=pl.lit(onset_s), offset_s=pl.lit(onset_s))
    dataset = in_memory(words=words)
    dataset.info = DatasetInfo(source, "1", "x")
    target = tmp_path_factory.mktemp("any") / "copy"
    write_folder(dataset, target)
    read = open_folder(target)
    assert read.info == dataset.info
    assert_frame_equal(read.stimulus("talk").words, words, check_exact=True)


def test_media_are_copied(tmp_path: Path) -> None:
    sound = tmp_path / "sound.wav"
    sound.write_bytes(b"RIFF")
    write_folder(in_memory(media={"audio": str(sound)}), tmp_path / "copy")
    assert (tmp_path / "copy/stimuli/talk/audio.wav").read_bytes() == b"RIFF"
    assert open_folder(tmp_path / "copy").stimulus("talk").media == {"audio": "stimuli/talk/audio.wav"}


@pytest.mark.parametrize("start_s", [0.0, 1.5])
def test_media_survive_a_second_copy(tmp_path: Path, start_s: float) -> None:
    sound = tmp_path / "sound.wav"
    sound.write_bytes(b"RIFF")
    dataset = in_memory(media={"audio": str(sound)}, audio_start_s=start_s)
    write_folder(dataset, tmp_path / "one")
    sound.unlink()
    write_folder(open_folder(tmp_path / "one"), tmp_path / "two")
    stimulus = open_folder(tmp_path / "two").stimulus("talk")
    assert stimulus.audio_start_s == start_s
    assert stimulus.media_path("audio").read_bytes() == b"RIFF"
    assert (tmp_path / "two/stimuli/talk/audio.toml").exists() == bool(start_s)


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    write_folder(in_memory(), tmp_path / "copy")
    assert open_folder(tmp_path / "copy").recording_ids() == [ID]


@pytest.mark.parametrize("taken", ["folder", "file"])
def test_nothing_is_overwritten(tmp_path: Path, taken: str) -> None:
    target = tmp_path / "copy"
    kept = target / "mine.txt" if taken == "folder" else target
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("precious")
    with pytest.raises(InputError, match="exists already"):
        write_folder(in_memory(), target)
    assert kept.read_text() == "precious"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": "the talk"}, "name of a folder"),
        ({"words": WORDS.with_columns(word=pl.Series(["a\tb", "c"]))}, "column 'word'"),
        ({"words": WORDS.with_columns(word=pl.Series(["a\0b", "c"]))}, "column 'word'"),
        ({"words": WORDS.with_columns(extra=pl.Series([1.0, None]))}, "column 'extra'"),
        ({"words": WORDS.with_columns(extra=pl.Series([1.0, np.nan]))}, "column 'extra'"),
        ({"words": WORDS.with_columns(extra=pl.Series([True, False]))}, "column 'extra'"),
        ({"words": WORDS.with_columns(extra=pl.Series(["3", "12"]))}, "holds only numbers"),
        ({"media": {"audio": "/nowhere.wav"}}, "cannot be copied"),
    ],
)
def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        write_folder(in_memory(**changes), tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


def test_what_a_folder_cannot_hold_is_named(tmp_path: Path) -> None:
    class WithSpans(OneRecording):
        def recording(self, recording_id: RecordingId) -> Recording:
            read = super().recording(recording_id)
            return replace(read, bad_spans=(Span(0.0, 1.0, "BAD"),))

    made = WithSpans(Stimulus("talk", WORDS, "memory"), in_memory().info, Units(("u",), ("r",)))
    with pytest.raises(InputError) as error:
        write_folder(made, tmp_path / "made")
    assert error.value.got == "spans marked as bad"
    assert "'arrays'" in error.value.remedy
