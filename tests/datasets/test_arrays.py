"""Array files of every format come back as they were written, and words fall on the samples where they were planted."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numcodecs
import numpy as np
import polars as pl
import pynwb
import pytest
import scipy.io
import zarr

from dataset_writers.arrays import FORMATS, ArraysTruth, write_arrays
from lpact.codes import Reason
from lpact.config import GridConfig
from lpact.datasets._files import stored
from lpact.datasets.arrays import Arrays
from lpact.datasets.arrays import formats as array_files
from lpact.datasets.base import DATASETS, Epochs, Recording, RecordingId, Stimulus, TimeSeries
from lpact.datasets.series import StreamedSeries
from lpact.errors import ConfigError, InputError, LPactError, RecordingError, StimulusError
from lpact.grid import build_grid

Edit = Callable[[str, str], None]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ArraysTruth]:
    folder = tmp_path_factory.mktemp("arrays")
    return folder, write_arrays(folder, seed=3)


@pytest.fixture
def folder(written: tuple[Path, ArraysTruth], tmp_path: Path) -> Path:
    """A copy that a test may break."""
    return Path(shutil.copytree(written[0], tmp_path / "mine"))


@pytest.fixture
def edit(folder: Path) -> Edit:
    def replace(old: str, new: str) -> None:
        table = folder / "recordings.toml"
        text = table.read_text(encoding="utf-8")
        assert old in text
        table.write_text(text.replace(old, new), encoding="utf-8")

    return replace


def opened(folder: Path, **options: object) -> Arrays:
    dataset = DATASETS.build("arrays", options).open(name="mine", path=folder, seed=0)
    assert isinstance(dataset, Arrays)
    return dataset


def subject(kind: str) -> RecordingId:
    return RecordingId(kind.replace("_", ""), "1", "1", "talk")


def recording(folder: Path, kind: str) -> Recording:
    return opened(folder).recording(subject(kind))


def one_sample_grid(found: Recording, stimulus: Stimulus) -> np.ndarray:
    """The value of unit 0 at every word of the recording, by the word's number; 0 for words that are not in it."""
    assert isinstance(found.signal, TimeSeries)
    window_ms = 1000.0 / found.signal.sampling_rate_hz
    grid = build_grid(found, stimulus, GridConfig(lags_ms=(0.0,), window_ms=window_ms))
    values = np.zeros(grid.n_words)
    values[grid.first_word] = grid.responses[0, :, 0]
    return values


def failure(folder: Path, kind: str) -> LPactError:
    with pytest.raises(InputError) as caught:
        recording(folder, kind)
    return caught.value


def table_only(folder: Path, extra: str, *, file: str, axes: str = "time,unit") -> Path:
    """Replace the table by one that lists a single recording."""
    (folder / "recordings.toml").write_text(
        (folder / "recordings.toml").read_text(encoding="utf-8").partition("[[recordings]]")[0]
        + f'[[recordings]]\nsubject = "x"\nfile = "{file}"\naxes = "{axes}"\nunits = "units.tsv"\n{extra}\n',
        encoding="utf-8",
    )
    return folder


class TestEveryFormat:
    @pytest.mark.parametrize("streamed", [False, True])
    @pytest.mark.parametrize("kind", FORMATS)
    def test_words_fall_on_the_planted_samples(
        self,
        written: tuple[Path, ArraysTruth],
        kind: str,
        streamed: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        folder, truth = written
        if streamed:
            monkeypatch.setattr(stored, "STREAM_BYTES", 0)
        dataset = opened(folder)
        found = dataset.recording(subject(kind))
        assert isinstance(found.signal, TimeSeries)
        # NPZ and MATLAB 5 can only be read as a whole.
        assert isinstance(found.signal.values, StreamedSeries) == (streamed and kind not in ("npz", "mat5"))
        samples = truth.samples[found.id]
        planted = np.where(samples >= 0, np.arange(samples.size) + 1.0, 0.0)
        assert (samples == -1).sum() == 5
        gain = 1e-6 if kind.startswith("nwb") else 1.0
        values = one_sample_grid(found, dataset.stimulus("talk"))
        np.testing.assert_allclose(values, gain * planted, rtol=1e-12)

    @pytest.mark.parametrize("streamed", [False, True])
    @pytest.mark.parametrize("kind", FORMATS)
    def test_values_units_and_clock_come_back(
        self,
        written: tuple[Path, ArraysTruth],
        kind: str,
        streamed: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        folder, truth = written
        if streamed:
            monkeypatch.setattr(stored, "STREAM_BYTES", 0)
        found = recording(folder, kind)
        signal = found.signal
        assert isinstance(signal, TimeSeries)
        assert signal.sampling_rate_hz == pytest.approx(512.0, rel=1e-12)
        assert signal.physical_unit == ("V" if kind.startswith("nwb") else "µV")
        expected = truth.values[found.id]
        assert signal.values.shape == expected.shape
        for units in ([0, 1, 2, 3], [2], [3, 1], [0, 2, 3], [1, 0, 3, 2]):
            np.testing.assert_allclose(signal.read(units), expected[:, units], rtol=1e-12)
        assert found.units.ids == truth.units
        assert found.where.startswith("dataset 'mine', ")
        assert str(folder) not in found.where

    def test_without_the_triggers_the_words_would_be_missed(self, written: tuple[Path, ArraysTruth]) -> None:
        folder, truth = written
        dataset = opened(folder)
        found = dataset.recording(subject("npy_fortran"))
        assert isinstance(found.signal, TimeSeries)
        assert found.word_onsets_s is not None
        samples = truth.samples[found.id]
        heard = samples >= 0
        # Taking the offset of the first heard word for all is off by several samples at the end.
        onset_s = truth.onset_s
        first = int(np.argmax(heard))
        shifted = found.word_onsets_s[first] + onset_s - onset_s[first] - found.signal.start_s
        assert np.abs(np.rint(shifted * 512.0) - samples)[heard].max() >= 5
        drift, dropped = found.findings
        assert drift.reason is Reason.CLOCK_DRIFT
        assert "+1200.0 ppm" in drift.found
        assert dropped.reason is Reason.TRIGGERS_DROPPED
        assert dropped.found.startswith(f"{truth.n_dropped[found.id]} of ")
        assert dropped.where == "dataset 'mine', npyfortran_triggers.tsv"

    def test_each_unit_lies_by_itself_where_it_does(
        self, written: tuple[Path, ArraysTruth], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stored, "STREAM_BYTES", 0)
        apart = {}
        for kind in FORMATS:
            values = recording(written[0], kind).signal.values
            if isinstance(values, StreamedSeries):
                apart[kind] = values.unit_major
        assert apart == {
            "npy": False,
            "npy_fortran": True,
            "hdf5": True,
            "hdf5_rows": False,
            "zarr2": True,
            "zarr3": True,
            "nwb": False,
            "nwb_timestamps": False,
            "mat73": True,
        }

    @pytest.mark.parametrize("ahead_bytes", [0, 40_000, 10**9])
    def test_reading_ahead_changes_no_value(
        self,
        written: tuple[Path, ArraysTruth],
        ahead_bytes: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        folder, truth = written
        monkeypatch.setattr(stored, "STREAM_BYTES", 0)
        monkeypatch.setattr(stored, "AHEAD_BYTES", ahead_bytes)
        for kind in ("npy", "hdf5_rows", "nwb"):
            found = recording(folder, kind)
            assert isinstance(found.signal, TimeSeries)
            for units in ([0], [1], [3], [2, 3], [0, 1, 2], [3, 0]):
                expected = truth.values[found.id][:, units]
                np.testing.assert_allclose(found.signal.read(units), expected, rtol=1e-12)

    @pytest.mark.parametrize("unit_axis", [0, 1])
    @pytest.mark.parametrize("chunks", [None, (1, 7), (7, 1), (4, 3)])
    @pytest.mark.parametrize("fortran", [False, True])
    def test_gains_and_pieces_of_any_stored_array(
        self,
        unit_axis: int,
        chunks: tuple[int, int] | None,
        fortran: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        rng = np.random.default_rng(0)
        values = rng.standard_normal((30, 5) if unit_axis else (5, 30)).astype(np.float32)
        gain, seen = rng.uniform(1.0, 2.0, 5), []

        def read(index: stored.Index) -> np.ndarray:
            part = values[index]
            seen.append(part.shape[1 - unit_axis])
            return part

        monkeypatch.setattr(stored, "PIECE_BYTES", 8 * 5 * 4)
        monkeypatch.setattr(stored, "AHEAD_BYTES", 2 * 30 * 4)
        array = stored.StoredArray("x", values.shape, values.dtype, read, chunks, fortran)
        series = stored.StoredSeries(array, unit_axis=unit_axis, gain=gain, offset=3.0)
        expected = (values if unit_axis else values.T) * gain + 3.0
        for units in ([0], [3], [4, 1], [2, 3], [1, 0, 4], [0, 1, 2, 3, 4]):
            np.testing.assert_allclose(series.read(units), expected[:, units], rtol=1e-12)
        # Where units do not lie by themselves, never more than a piece of the file is gone through at once.
        long = 1 if chunks is None else chunks[1 - unit_axis]
        assert max(seen) == (30 if series.unit_major else max(1, 8 // long) * long)

    def test_memory_stays_bounded_where_units_lie_side_by_side(self, tmp_path: Path) -> None:
        """256 MiB in rows of 64 units, of which 16 are read, four at a time."""
        path, n_samples = tmp_path / "big.npy", 2**20
        with path.open("wb") as stream:
            header = {"descr": "<f4", "fortran_order": False, "shape": (n_samples, 64)}
            np.lib.format.write_array_header_1_0(stream, header)
            stream.truncate(stream.tell() + n_samples * 64 * 4)
        code = (
            "import resource, sys\nfrom pathlib import Path\n"
            "from lpact.datasets._files import stored\nfrom lpact.errors import RecordingError\n"
            "stored.AHEAD_BYTES = 2**25\n"
            "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024\n"
            "before = peak()\n"
            "array = stored.stored_npy(Path(sys.argv[1]), RecordingError)\n"
            "series = stored.StoredSeries(array, unit_axis=1)\n"
            "for unit in range(0, 16, 4): series.read(range(unit, unit + 4))\n"
            "print(peak() - before)\n"
        )
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
        # Ahead 32 MiB, four units 32 MiB, a piece 32 MiB; mapping the file would take 256 MiB.
        assert int(done.stdout) < 160

    def test_source_files_are_all_that_the_table_names(self, written: tuple[Path, ArraysTruth]) -> None:
        folder, _ = written
        named = {source.path for source in opened(folder).source_files()}
        there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
        assert named == there


class TestWords:
    def test_any_table_becomes_a_words_table(self, written: tuple[Path, ArraysTruth]) -> None:
        folder, truth = written
        words = opened(folder).stimulus("talk").words
        assert words["word"].to_list() == list(truth.words)
        np.testing.assert_allclose(words["onset_s"], truth.onset_s, atol=1e-9)
        assert words["sentence_id"].to_list() == [i // 5 for i in range(40)]
        assert words["story_id"].to_list() == ["north"] * 20 + ["south"] * 20
        assert words["n_letters"].dtype == pl.Int64
        assert words["upos"].unique().to_list() == ["NOUN"]
        assert words["score"].to_list()[:2] == [None, 0.1]

    def test_mechanisms_media_and_transcripts(self, folder: Path, edit: Edit) -> None:
        (folder / "texts[1]").mkdir()
        (folder / "texts[1]" / "north.txt").write_text("Wörd0 word1.", encoding="utf-8")
        (folder / "talk.wav").write_bytes(b"RIFF")
        edit(
            'times_in = "ms"',
            'times_in = "ms"\nmechanisms = ["n_letters"]\naudio = "talk.wav"\naudio_start_s = 0.5\n'
            'transcripts = "texts[1]"',
        )
        dataset = opened(folder)
        stimulus = dataset.stimulus("talk")
        assert stimulus.mechanisms["n_letters"].tolist()[:2] == [5.0, 5.0]
        assert stimulus.media_path("audio") == folder / "talk.wav"
        assert stimulus.audio_start_s == 0.5
        assert stimulus.transcripts == {"north": "Wörd0 word1."}
        named = {source.path for source in dataset.source_files()}
        assert {"texts[1]/north.txt", "talk.wav"} <= named
        (folder / "texts[1]" / "nort.txt").write_text("?", encoding="utf-8")
        with pytest.raises(StimulusError, match=r"there is no story 'nort'(.|\n)*did you mean 'north'"):
            opened(folder).stimulus("talk")
        edit('["n_letters"]', '["upos"]')
        with pytest.raises(StimulusError, match="'upos' is not a column of numbers"):
            opened(folder).stimulus("talk")

    @pytest.mark.parametrize(
        ("rule", "n_sentences"),
        [('sentences = "punctuation"', 2), ('sentences = "pauses"\npause_s = 0.4', None)],
    )
    def test_sentences_by_rule_are_noted(self, folder: Path, edit: Edit, rule: str, n_sentences: int | None) -> None:
        edit(', sentence_id = "sentence"', "")
        with pytest.raises(StimulusError, match="no column 'sentence_id'") as caught:
            opened(folder).stimulus("talk")
        assert "punctuation" in str(caught.value.remedy)
        edit('times_in = "ms"', f'times_in = "ms"\n{rule}')
        stimulus = opened(folder).stimulus("talk")
        (note,) = stimulus.findings
        assert note.reason is Reason.SENTENCES_BY_RULE
        if n_sentences is None:
            onset = stimulus.words["onset_s"].to_numpy()
            breaks = (np.diff(onset) - 0.15 >= 0.4 - 1e-9) | (np.arange(1, 40) == 20)
            n_sentences = int(breaks.sum()) + 1
        assert stimulus.words["sentence_id"].n_unique() == n_sentences
        assert note.found.startswith(f"{n_sentences} sentences")

    def test_another_encoding_is_named(self, folder: Path) -> None:
        path = folder / "talk.csv"
        text = path.read_text(encoding="utf-8")
        half = text.index("word20")
        path.write_bytes(text[:half].encode() + text[half:].encode("latin-1"))
        with pytest.raises(StimulusError, match="cannot be read") as caught:
            opened(folder).stimulus("talk")
        assert caught.value.where == str(path)
        assert "0xf6" in str(caught.value.got)
        assert "encoding" in str(caught.value.remedy)

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ('word = "text"', 'word = "txt"', "did you mean 'text'"),
            ('word = "text"', 'wrod = "text"', "did you mean 'word'"),
            ('word = "text", ', "", 'columns = { word = "…" }'),
            ('"talk.csv"', '"talk.xlsx"', "'talk.xlsx' is missing"),
            ('"talk.csv"', '"rows.npy"', "a file cannot be read"),
            ('"talk.csv"', '"../talk.csv"', "leads out of the dataset's folder"),
        ],
    )
    def test_a_wrong_column_or_file_is_named(self, folder: Path, edit: Edit, old: str, new: str, message: str) -> None:
        (folder.parent / "talk.csv").write_text("outside")
        edit(old, new)
        with pytest.raises(StimulusError) as caught:
            opened(folder).stimulus("talk")
        assert message in str(caught.value)

    def test_two_columns_of_one_name_are_refused(self, folder: Path, edit: Edit) -> None:
        path = folder / "talk.csv"
        path.write_text(path.read_text(encoding="utf-8").replace("n_letters", "word"), encoding="utf-8")
        with pytest.raises(StimulusError, match="two columns would be 'word'"):
            opened(folder).stimulus("talk")


class TestTable:
    @pytest.mark.parametrize(
        ("old", "new", "messages"),
        [
            ("sampling_rate_hz =", "sampling_rat_hz =", ("recordings.0", "did you mean 'sampling_rate_hz'")),
            ("[defaults]\n", '[defaults]\nstimuls = "talk"\n', ("[defaults]", "did you mean 'stimulus'")),
            ('axes = "time,unit"', 'axes = "time,units"', ("recordings.0.axes", "found 'time,units'")),
            ('subject = "npyfortran"', 'subject = "npy"', ("sub-npy_ses-1_run-1", "more than once")),
            ('[defaults]\nstimulus = "talk"', '[defaults]\nstimulus = "walk"', ("walk", "did you mean 'talk'")),
            ('licence = "CC0-1.0"', "", ("dataset.licence", "missing")),
            ("[dataset]", "[dataset", ("not valid TOML", "recordings.toml")),
            ('id = "talk"', 'id = "a talk"', ("stimuli.0.id", "found 'a talk'")),
            ("start_s = ", "lags_ms = [0]\nstart_s = ", ("lags_ms", "lag, word and unit")),
            ('times_in = "ms"', 'pause_s = 0.4', ("stimuli.0", "sentences")),
            ('word_onsets = ', 'triggers = "t.tsv"\nword_onsets = ', ("word_onsets", "give one")),
        ],
    )  # fmt: skip
    def test_a_wrong_key_is_named(
        self, folder: Path, edit: Edit, old: str, new: str, messages: tuple[str, ...]
    ) -> None:
        edit(old, new)
        with pytest.raises(InputError) as caught:
            opened(folder)
        assert str(folder / "recordings.toml") in str(caught.value)
        for message in messages:
            assert message in str(caught.value)

    def test_a_folder_can_hold_several_tables(self, folder: Path) -> None:
        (folder / "recordings.toml").rename(folder / "pilot.toml")
        with pytest.raises(InputError, match=r"'recordings.toml' is missing"):
            opened(folder)
        assert len(opened(folder, table="pilot.toml").recording_ids()) == len(FORMATS)

    def test_what_is_not_listed_is_not_there(self, folder: Path) -> None:
        dataset = opened(folder)
        with pytest.raises(RecordingError, match="there is no recording"):
            dataset.recording(RecordingId("nobody", "1", "1", "talk"))
        with pytest.raises(StimulusError, match=r"did you mean 'talk'"):
            dataset.stimulus("talks")
        with pytest.raises(InputError, match="no path"):
            DATASETS.build("arrays").open(name="mine", path=None, seed=0)


class TestAxesAndUnits:
    def test_axes_told_wrong_are_found_out(self, folder: Path) -> None:
        table_only(folder, "sampling_rate_hz = 512.0", file="rows.npy", axes="unit,time")
        error = failure(folder, "x")
        assert 'axes = "time,unit" would fit' in str(error.remedy)
        assert "4 units, as listed" in str(error.expected)

    def test_a_unit_too_few_is_named(self, folder: Path) -> None:
        path = folder / "units.tsv"
        path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
        error = failure(folder, "hdf5")
        assert "4 units (shape (4, " in str(error.got)
        assert "3 units, as listed" in str(error.expected)
        assert "ecog/data" in str(error.where)

    def test_the_wrong_number_of_axes_is_named(self, folder: Path) -> None:
        np.save(folder / "flat.npy", np.zeros(100))
        error = failure(table_only(folder, "sampling_rate_hz = 9.0", file="flat.npy"), "x")
        assert "shape (100,)" in str(error.got)

    def test_what_is_not_said_is_not_guessed(self, folder: Path) -> None:
        error = failure(table_only(folder, "", file="rows.npy"), "x")
        assert error.what == "'sampling_rate_hz' of a recording is not given"
        table = folder / "recordings.toml"
        text = table.read_text(encoding="utf-8")
        table.write_text(text.replace('axes = "time,unit"', ""), encoding="utf-8")
        assert failure(folder, "x").what == "'axes' of a recording is not given"
        table.write_text(text.replace('units = "units.tsv"', "sampling_rate_hz = 9.0"), encoding="utf-8")
        assert failure(folder, "x").what == "'units' of a recording is not given"

    def test_regions_coordinates_and_bad_units(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (folder / "units.tsv").write_text(
            "unit\tregion\tx_mm\ty_mm\tz_mm\tstatus\nE1\tSTG\t1\t2\t3\tgood\nE2\tn/a\tn/a\tn/a\tn/a\tgood\n"
            "E3\tIFG\t1\t1\t1\tbad\nE4\tIFG\t4\t5\t6\tgood\n"
        )
        monkeypatch.setattr(stored, "STREAM_BYTES", 0)
        for kind in ("hdf5", "npz"):
            found = recording(folder, kind)
            assert found.units.ids == ("E1", "E2", "E4")
            assert found.units.regions == ("STG", "unknown", "IFG")
            assert found.units.coordinates_mm is not None
            np.testing.assert_array_equal(found.units.coordinates_mm, [[1, 2, 3], [np.nan] * 3, [4, 5, 6]])
            assert found.units.coordinate_frame == "MNI152NLin2009cAsym"
            assert found.signal.values.shape[1] == 3
            (note,) = [f for f in found.findings if f.reason is Reason.CHANNEL_MARKED_BAD]
            assert (note.field, note.severity) == ("E3", "excluded")

    @pytest.mark.parametrize("kind", ["npz", "npy", "hdf5"])
    @pytest.mark.parametrize("streamed", [False, True])
    def test_bad_units_are_the_right_ones(
        self,
        folder: Path,
        written: tuple[Path, ArraysTruth],
        kind: str,
        streamed: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        truth = written[1]
        (folder / "units.tsv").write_text("unit\tstatus\nE1\tgood\nE2\tbad\nE3\tgood\nE4\tgood\n")
        if streamed:
            monkeypatch.setattr(stored, "STREAM_BYTES", 0)
        found = recording(folder, kind)
        assert isinstance(found.signal, TimeSeries)
        left = truth.values[found.id][:, [0, 2, 3]]
        for units in ([0, 1, 2], [1], [2, 0]):
            np.testing.assert_array_equal(found.signal.read(units), left[:, units])
        for units, block in found.signal.blocks():
            np.testing.assert_array_equal(block, left[:, units])

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("unit\tarea\nE1\tx\n", "there is no column of units 'area'"),
            ("unit\tstatus\nE1\tok\n", "good or bad"),
            ("unit\tx_mm\nE1\t3\n", "the column 'y_mm' is missing"),
            ("unit\nE1\n\nE3\nE4\n", "3 units, as listed"),
            ("unit\nE1\nE1\nE3\nE4\n", "'E1' is listed more than once"),
        ],
    )
    def test_a_broken_list_of_units_is_named(self, folder: Path, text: str, message: str) -> None:
        (folder / "units.tsv").write_text(text)
        assert message in str(failure(folder, "npy"))

    def test_epochs_in_any_order_of_axes(self, folder: Path) -> None:
        epochs = np.random.default_rng(0).standard_normal((3, 40, 4))
        np.save(folder / "epochs.npy", epochs.transpose(1, 2, 0))
        table_only(folder, "lags_ms = [0, 100, 200]", file="epochs.npy", axes="word,unit,lag")
        found = recording(folder, "x")
        assert isinstance(found.signal, Epochs)
        np.testing.assert_array_equal(found.signal.values, epochs)
        assert found.signal.lags_ms == (0.0, 100.0, 200.0)
        np.save(folder / "epochs.npy", epochs.transpose(1, 2, 0)[:-1])
        assert "39 words" in str(failure(folder, "x").got)
        table = folder / "recordings.toml"
        table.write_text(
            table.read_text(encoding="utf-8").replace("lags_ms", "start_s = 0\nlags_ms"),
            encoding="utf-8",
        )
        with pytest.raises(InputError, match="epochs have no clock"):
            opened(folder)


class TestTimes:
    def test_rates_that_disagree_are_named(self, folder: Path, edit: Edit) -> None:
        edit('sampling_rate_key = "info/rate"\nsampling_rate_hz = 512.0',
             'sampling_rate_key = "info/rate"\nsampling_rate_hz = 500.0')  # fmt: skip
        error = failure(folder, "hdf5_rows")
        assert error.what == "the table and the file disagree on the sampling rate"
        assert error.got == "512 Hz in the file, 500 Hz in the table"
        edit('file = "rate.nwb"', 'file = "rate.nwb"\nsampling_rate_hz = 256.0')
        assert "512 Hz in the file, 256 Hz" in str(failure(folder, "nwb").got)

    def test_a_wrong_rate_shows_in_the_triggers(self, folder: Path, edit: Edit) -> None:
        edit('file = "columns.npy"\naxes = "time, unit"\nsampling_rate_hz = 512.0',
             'file = "columns.npy"\naxes = "time, unit"\nsampling_rate_hz = 500.0')  # fmt: skip
        error = failure(folder, "npy_fortran")
        assert "run at the same rate" in str(error.expected)
        assert "npyfortran_triggers.tsv" in str(error.where)

    @pytest.mark.parametrize(
        ("line", "message", "place"),
        [
            ("4.0\t5", "stimulus times in order", "line 5"),
            ("90.0\t3", "recording times in order", "line 5"),
            ("90.0\tsoon", "a cell of column 'sample'", "line 5"),
            ("90.0\t123456789", "a sample of the recording, 0 to", "line 5"),
            ("n/a\t1000", "a cell of column 'stimulus_s'", "line 5"),
        ],
    )
    def test_broken_triggers_are_named(self, folder: Path, line: str, message: str, place: str) -> None:
        path = folder / "npyfortran_triggers.tsv"
        path.write_text(f"stimulus_s\tsample\n3.0\t0\n4.0\t512\n5.0\t1024\n{line}\n")
        error = failure(folder, "npy_fortran")
        assert message in str(error)
        assert f"npyfortran_triggers.tsv, {place}" in str(error.where)

    def test_triggers_may_be_in_seconds_of_the_recording(self, folder: Path) -> None:
        found = recording(folder, "npy_fortran")
        assert isinstance(found.signal, TimeSeries)
        path = folder / "npyfortran_triggers.tsv"
        lines = ["stimulus_s\trecording_s"]
        for row in path.read_text().splitlines()[1:]:
            stimulus_s, sample = row.split("\t")
            at = sample if sample == "n/a" else found.signal.start_s + int(sample) / 512.0
            lines.append(f"{stimulus_s}\t{at}")
        path.write_text("\n".join(lines) + "\n")
        again = recording(folder, "npy_fortran")
        assert found.word_onsets_s is not None
        assert again.word_onsets_s is not None
        np.testing.assert_allclose(again.word_onsets_s, found.word_onsets_s, rtol=0, atol=1e-9)
        path.write_text("stimulus_s\n1.0\n")
        assert "'sample' and 'recording_s'" in str(failure(folder, "npy_fortran"))

    def test_words_far_from_every_trigger_are_not_in_the_recording(
        self, folder: Path, written: tuple[Path, ArraysTruth]
    ) -> None:
        truth = written[1]
        path = folder / "npyfortran_triggers.tsv"
        lines = path.read_text().splitlines()
        kept = [row for row in lines[1:] if float(row.split("\t")[0]) < 6.0]
        path.write_text("\n".join([lines[0], *kept]) + "\n")
        onsets = recording(folder, "npy_fortran").word_onsets_s
        assert onsets is not None
        last = float(kept[-1].split("\t")[0])
        np.testing.assert_array_equal(np.isnan(onsets), truth.onset_s > last + 2.0)

    @pytest.mark.parametrize(
        ("scale", "likely"),
        [(1000.0, "milliseconds"), (512.0, "counts of samples"), (1e9, None)],
    )
    def test_triggers_outside_the_recording_are_named(
        self, folder: Path, edit: Edit, scale: float, likely: str | None
    ) -> None:
        edit('triggers = "{subject}_triggers.tsv"', 'triggers = "t.tsv"')
        rows = [f"{t}\t{scale * t}" for t in (8.0, 9.0, 10.0, 11.0)]
        (folder / "t.tsv").write_text("\n".join(["stimulus_s\trecording_s", *rows]) + "\n")
        table = folder / "recordings.toml"
        text = re.sub(r"start_s = [-\d.]+", "start_s = 0.0", table.read_text(encoding="utf-8"))
        table.write_text(text, encoding="utf-8")
        error = failure(folder, "npy_fortran")
        assert error.what == "a trigger is outside the recording"
        assert f"{folder / 't.tsv'}, line 2, column 'recording_s'" == error.where
        assert f"{scale * 8.0} (4 of 4 triggers are outside)" == error.got
        if likely is None:
            assert "may be" not in str(error.remedy)
        else:
            assert likely in str(error.remedy)

    def test_the_last_trigger_may_fall_on_the_end(self, folder: Path, edit: Edit) -> None:
        found = recording(folder, "npy_fortran")
        assert isinstance(found.signal, TimeSeries)
        signal = found.signal
        stop_s = signal.start_s + signal.n_samples / signal.sampling_rate_hz
        (folder / "t.tsv").write_text(f"stimulus_s\trecording_s\n5.0\t{stop_s!r}\n")
        edit('triggers = "{subject}_triggers.tsv"', 'triggers = "t.tsv"')
        assert recording(folder, "npy_fortran").word_onsets_s is not None
        (folder / "t.tsv").write_text(f"stimulus_s\trecording_s\n5.0\t{stop_s + 0.01!r}\n")
        assert "outside" in failure(folder, "npy_fortran").what

    @pytest.mark.parametrize("n_outside", [20, 21, 40])
    def test_word_onsets_that_are_mostly_outside_are_told(self, folder: Path, edit: Edit, n_outside: int) -> None:
        (folder / "o.tsv").write_text(
            "\n".join(
                [
                    "onset_s",
                    *(f"{0.1 * i + (1e4 if i >= 40 - n_outside else 0)}" for i in range(40)),
                ]
            )
        )
        edit('file = "rows.npy"', 'file = "rows.npy"\nword_onsets = "o.tsv"')
        table = folder / "recordings.toml"
        text = re.sub(r"start_s = [-\d.]+", "start_s = 0.0", table.read_text(encoding="utf-8"))
        table.write_text(text, encoding="utf-8")
        if n_outside == 40:
            error = failure(folder, "npy")
            assert error.what == "no word of the stimulus is in the recording"
            assert "may be milliseconds" in str(error.remedy) or "another start" in str(error.remedy)
            assert error.where == str(folder / "o.tsv")
            return
        found = [
            finding for finding in recording(folder, "npy").findings if finding.reason is Reason.WORDS_OUTSIDE_RECORDING
        ]
        assert len(found) == (n_outside > 20)
        if found:
            assert found[0].severity == "excluded"
            assert found[0].found.startswith("21 of 40 words, the first at 10001.900 s")
            assert found[0].where == "dataset 'mine', o.tsv"

    def test_words_told_in_the_wrong_unit_are_found_out(self, folder: Path, edit: Edit) -> None:
        edit('times_in = "ms"', 'times_in = "s"')
        error = failure(folder, "npy")
        assert error.what == "no word of the stimulus is in the recording"
        assert "the times may be milliseconds" in str(error.remedy)
        assert "times_in" in str(error.remedy)

    def test_infinite_times_and_places_are_refused(self, folder: Path, edit: Edit) -> None:
        onsets = folder / "npz_onsets.tsv"
        onsets.write_text(re.sub(r"word20\t\d+", "word20\t1e999", onsets.read_text("utf-8")), "utf-8")
        triggers = folder / "npyfortran_triggers.tsv"
        triggers.write_text(re.sub(r"\t\d+\n$", "\t1e999\n", triggers.read_text()))
        for kind, path in (("npz", onsets), ("npy_fortran", triggers)):
            error = failure(folder, kind)
            assert error.got == "'1e999'"
            assert str(path) in str(error.where)
        units = folder / "units.tsv"
        units.write_text(units.read_text().replace("0.5", "1e999"))
        assert f"{units}, line 2, column 'x_mm'" == failure(folder, "npy").where

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("word10\t", "word11\t", "'word10', as in the words table"),
            ("word39\tn/a\n", "", "39 rows"),
            (r"word20\t\d+", "word20\t1", "not before the previous word's"),
            ("sample", "samples", "one of the columns 'sample' and 'onset_s'"),
        ],
    )
    def test_word_onsets_that_do_not_fit_are_named(self, folder: Path, old: str, new: str, message: str) -> None:
        path = folder / "npz_onsets.tsv"
        text = path.read_text(encoding="utf-8")
        assert re.search(old, text)
        text = re.sub(old, new, text)
        path.write_text(text, encoding="utf-8")
        error = failure(folder, "npz")
        assert message in str(error)
        assert str(path) in str(error.where)

    def test_bad_spans_and_confounds(self, folder: Path, edit: Edit) -> None:
        n_samples = recording(folder, "npy").signal.values.shape[0]
        (folder / "npy_bad.tsv").write_text("start_s\tstop_s\tlabel\n4.0\t5.5\tseizure\n")
        rows = [f"{i}\t{'n/a' if i == 0 else i / 2}" for i in range(n_samples)]
        (folder / "npy_motion.tsv").write_text("\n".join(["x\ty", *rows]) + "\n")
        edit('file = "rows.npy"',
             'file = "rows.npy"\nbad_spans = "{subject}_bad.tsv"\nconfounds = "{subject}_motion.tsv"')  # fmt: skip
        dataset = opened(folder)
        found = dataset.recording(subject("npy"))
        (span,) = found.bad_spans
        assert (span.start_s, span.stop_s, span.label) == (4.0, 5.5, "seizure")
        assert found.confounds is not None
        assert found.confounds["x"].to_list() == list(range(n_samples))
        assert np.isnan(found.confounds["y"][0])
        words = dataset.stimulus("talk").words["onset_s"].to_numpy()
        inside = (words >= 4.0) & (words < 5.5)
        assert inside.any()
        assert (one_sample_grid(found, dataset.stimulus("talk"))[inside] == 0).all()
        (folder / "npy_bad.tsv").write_text("start_s\tstop_s\n4.0\t3.5\n")
        assert "npy_bad.tsv, line 2, column 'stop_s'" in str(failure(folder, "npy").where)
        (folder / "npy_bad.tsv").write_text("start_s\tstop_s\n4.0\t4.5\n")
        (folder / "npy_motion.tsv").write_text("x\n1\n")
        assert f"{n_samples} rows" in str(failure(folder, "npy").expected)

    def test_a_stretch_without_values_is_kept_for_the_grid(self, folder: Path) -> None:
        values = np.load(folder / "rows.npy")
        values[1000:1512, 2] = np.nan
        np.save(folder / "rows.npy", values)
        found = recording(folder, "npy")
        assert isinstance(found.signal, TimeSeries)
        missing = np.isnan(found.signal.read([2]))[:, 0]
        assert np.flatnonzero(missing).tolist() == list(range(1000, 1512))


class TestBrokenFiles:
    @pytest.mark.parametrize(
        ("kind", "name", "message"),
        [
            ("npy", "rows.npy", "truncated"),
            ("npz", "named.npz", "may be truncated"),
            ("hdf5", "units.h5", "may be truncated"),
            ("nwb", "rate.nwb", "may be truncated"),
            ("mat5", "five.mat", "may be truncated"),
            ("mat73", "seven.mat", "may be truncated"),
        ],
    )
    @pytest.mark.parametrize("part", [0.02, 0.7])
    def test_a_truncated_file_is_named(self, folder: Path, kind: str, name: str, message: str, part: float) -> None:
        path = folder / name
        content = path.read_bytes()
        path.write_bytes(content[: int(part * len(content))])
        error = failure(folder, kind)
        assert message in error.what
        assert str(path) in str(error.where)
        assert "again" in str(error.remedy)

    def test_a_torn_chunk_is_named_when_it_is_read(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(stored, "STREAM_BYTES", 0)
        with h5py.File(folder / "units.h5", "r") as file:
            chunk = file["ecog/data"].id.get_chunk_info(2)
        with (folder / "units.h5").open("r+b") as stream:
            stream.seek(chunk.byte_offset)
            stream.write(bytes(chunk.size))
        next((folder / "format3.zarr" / "ieeg" / "data").rglob("c/0/0")).write_bytes(b"torn")
        for kind, name in (("hdf5", "units.h5"), ("zarr3", "format3.zarr")):
            found = recording(folder, kind)
            assert isinstance(found.signal, TimeSeries)
            with pytest.raises(RecordingError) as caught:
                found.signal.read([0, 1, 2, 3])
            assert name in str(caught.value.where)

    @pytest.mark.parametrize("name", ["ieeg/data/zarr.json", "ieeg/data/c/0/0"])
    def test_a_pipe_in_a_zarr_folder_is_refused(self, folder: Path, name: str) -> None:
        pipe = folder / "format3.zarr" / name
        pipe.unlink()
        os.mkfifo(pipe)
        assert failure(folder, "zarr3").where == str(pipe)

    @pytest.mark.parametrize("codec", ["GZip", "Zlib", "BZ2", "LZMA", "Blosc", "Zstd"])
    def test_a_truncated_chunk_is_named_whatever_its_codec(self, folder: Path, codec: str) -> None:
        path = folder / "torn.zarr"
        values = np.random.default_rng(0).standard_normal((600, 4))
        compressor = getattr(numcodecs, codec)()
        zarr.create_array(str(path), data=values, chunks=(300, 4), compressors=compressor, zarr_format=2)
        table_only(folder, "sampling_rate_hz = 30.0", file="torn.zarr")
        assert isinstance(recording(folder, "x").signal, TimeSeries)
        chunk = path / "1.0"
        chunk.write_bytes(chunk.read_bytes()[: chunk.stat().st_size // 2])
        error = failure(folder, "x")
        assert "may be truncated" in error.what
        assert error.where == str(path)

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_a_short_blosc_chunk_is_found_by_its_header(self, folder: Path, zarr_format: int) -> None:
        """Its decoder does not look where a chunk ends, and sometimes finds the rest in old memory."""
        path = folder / "torn.zarr"
        values = np.random.default_rng(0).standard_normal((600, 4))
        codec = numcodecs.Blosc() if zarr_format == 2 else zarr.codecs.BloscCodec()
        zarr.create_array(str(path), data=values, chunks=(300, 4), compressors=codec, zarr_format=zarr_format)
        table_only(folder, "sampling_rate_hz = 30.0", file="torn.zarr")
        assert isinstance(recording(folder, "x").signal, TimeSeries)
        chunk = path / ("1.0" if zarr_format == 2 else "c/1/0")
        size = chunk.stat().st_size
        chunk.write_bytes(chunk.read_bytes()[:-1])
        error = failure(folder, "x")
        assert f"has {size - 1} of {size} bytes" in str(error.got)

    def test_a_number_must_be_one_and_in_the_file(self, folder: Path, tmp_path: Path) -> None:
        with h5py.File(tmp_path / "elsewhere.h5", "w") as file:
            file.create_group("g").attrs["rate"] = 77.0
        with h5py.File(folder / "x.h5", "w") as file:
            file["x"] = np.zeros((20, 4))
            file.create_dataset("huge", (10**13,), "f8", chunks=(1000,))
            file["nan"] = np.nan
            file["text"] = "512"
            file["out"] = h5py.ExternalLink(str(tmp_path / "elsewhere.h5"), "/g")
            file["soft"] = h5py.SoftLink("/out")
            file["loop"] = h5py.SoftLink("/loop")
        group = zarr.open_group(str(folder / "x.zarr"), mode="w")
        group.create_array("x", shape=(20, 4), chunks=(20, 4), dtype="f8")
        group.create_array("huge", shape=(10**13,), chunks=(10**6,), dtype="f8")
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
        np.savez(folder / "x.npz", x=np.zeros((20, 4)))
        with zipfile.ZipFile(folder / "x.npz", "a") as archive:
            archive.writestr("huge.npy", header.getvalue())
        for name, key, found in (
            ("x.h5", "huge", "shape (10000000000000,)"),
            ("x.zarr", "huge", "shape (10000000000000,)"),
            ("x.npz", "huge", "shape (10000000000000,)"),
            ("x.h5", "nan", "nan"),
            ("x.h5", "text", "object"),
            ("x.h5", "soft@rate", "elsewhere.h5"),
            ("x.h5", "out@rate", "elsewhere.h5"),
            ("x.h5", "loop", "a link in a loop"),
            ("x.h5", "loop@rate", "a link in a loop"),
        ):
            extra = f'key = "x"\nsampling_rate_key = "{key}"'
            error = failure(table_only(folder, extra, file=name), "x")
            assert found in str(error.got), key
            assert name in str(error.where)
        error = failure(table_only(folder, 'key = "loop"\nsampling_rate_hz = 9.0', file="x.h5"), "x")
        assert "a link in a loop" in str(error.got)

    def test_an_array_beyond_all_memory_is_named(self, folder: Path) -> None:
        with h5py.File(folder / "x.h5", "w") as file:
            file.create_dataset("x", (10**13, 4), "f8", chunks=(10**6, 4))
            file.create_dataset("e", (1, 10**13, 4), "f8", chunks=(1, 10**6, 4))
        table_only(folder, 'key = "x"\nsampling_rate_hz = 9.0', file="x.h5")
        signal = recording(folder, "x").signal
        assert isinstance(signal, TimeSeries)
        with pytest.raises(RecordingError, match="does not fit into memory") as caught:
            signal.read([0])
        assert "(10000000000000, 4)" in str(caught.value.got)
        table_only(folder, 'key = "e"\nlags_ms = [0]', file="x.h5", axes="lag,word,unit")
        assert failure(folder, "x").what == "an array does not fit into memory"

    def test_a_file_that_shrinks_while_it_is_read_is_named(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(stored, "STREAM_BYTES", 0)
        signal = recording(folder, "npy").signal
        assert isinstance(signal, TimeSeries)
        path = folder / "rows.npy"
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(RecordingError, match=r"truncated(.|\n)*rows\.npy"):
            signal.read([0])

    @pytest.mark.parametrize("there", [False, True])
    def test_paths_out_of_the_folder_tell_nothing(self, folder: Path, edit: Edit, there: bool) -> None:
        (folder.parent / "neighbour.tsv").write_text("x")
        if there:
            (folder.parent / "t.tsv").write_text("x")
        edit('triggers = "{subject}_triggers.tsv"', 'triggers = "../t.tsv"')
        error = failure(folder, "npy_fortran")
        assert error.what == "a path leads out of the dataset's folder"
        assert "neighbour" not in str(error)

    @pytest.mark.parametrize(
        ("kind", "old", "new", "near"),
        [
            ("npz", 'key = "ecog"', 'key = "ecogs"', "did you mean 'ecog'"),
            ("npz", '"fs"', '"sf"', "use one of: ecog, fs"),
            ("hdf5", '"/ecog/data"', '"/ecog/dat"', "did you mean 'ecog/data'"),
            ("hdf5", '"/ecog/data"', '"/ecog"', "such as '/ecog/data'"),
            ("hdf5", "data@rate", "data@rats", "did you mean 'rate'"),
            ("zarr2", '"ieeg/data"', '"ieeg/dota"', "did you mean 'ieeg/data'"),
            ("zarr3", "data@sfreq", "data@freq", "did you mean 'sfreq'"),
            ("nwb", 'unit_column = "label"', 'unit_column = "lable"', "did you mean 'label'"),
            ("nwb", 'file = "rate.nwb"', 'file = "rate.nwb"\nkey = "Series"', "acquisition/ElectricalSeries"),
            ("mat5", "EEG.data", "EEG.date", "did you mean 'data'"),
            ("mat5", "EEG.data", "EGG.data", "did you mean 'EEG'"),
            ("mat73", 'key = "data"', 'key = "dta"', "did you mean 'data'"),
            ("npy", 'file = "rows.npy"', 'file = "rows.npy"\nkey = "data"', "leave the key out"),
        ],
    )  # fmt: skip
    def test_a_wrong_key_lists_what_there_is(
        self, folder: Path, edit: Edit, kind: str, old: str, new: str, near: str
    ) -> None:
        edit(old, new)
        assert near in str(failure(folder, kind).remedy)

    def test_which_array_must_be_said_where_there_are_several(self, folder: Path, edit: Edit) -> None:
        edit('key = "/ecog/data"\n', "")
        error = failure(folder, "hdf5")
        assert "'ecog/data', 'ecog/quality'" in str(error.got)
        assert "key" in str(error.remedy)

    def test_arrays_of_other_things_are_refused_unread(self, folder: Path) -> None:
        class Bomb:
            def __reduce__(self) -> tuple[object, ...]:
                return (Path.touch, (folder / "exploded",))

        bomb = np.array([[Bomb()] * 4], dtype=object)
        np.save(folder / "bomb.npy", bomb, allow_pickle=True)
        np.savez(folder / "bomb.npz", x=bomb)
        with h5py.File(folder / "text.h5", "w") as file:
            file["x"] = np.full((3, 4), b"text", dtype="S4")
        np.save(folder / "complex.npy", np.zeros((3, 4), complex))
        cells = np.empty((3, 4), dtype=object)
        cells[:] = "text"
        scipy.io.savemat(folder / "cells.mat", {"x": cells})
        for name, found in (
            ("bomb.npy", "object"),
            ("bomb.npz", "object"),
            ("text.h5", "S4"),
            ("complex.npy", "complex128"),
            ("cells.mat", "class cell"),
        ):
            extra = "sampling_rate_hz = 9.0" + ("" if name.endswith("npy") else '\nkey = "x"')
            error = failure(table_only(folder, extra, file=name), "x")
            assert found in str(error.got), name
            assert name in str(error.where)
        assert not (folder / "exploded").exists()

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_zarr_codecs_that_run_code_are_refused(self, folder: Path, zarr_format: int) -> None:
        root = folder / f"format{zarr_format}.zarr" / "ieeg" / "data"
        path = root / ("zarr.json" if zarr_format == 3 else ".zarray")
        metadata = json.loads(path.read_text())
        if zarr_format == 3:
            metadata["codecs"].append({"name": "numcodecs.pickle", "configuration": {}})
        else:
            metadata["filters"] = [{"id": "pickle", "protocol": 5}]
        path.write_text(json.dumps(metadata))
        error = failure(folder, f"zarr{zarr_format}")
        assert "pickle" in str(error.got)
        assert "ieeg/data" in str(error.where)

    @pytest.mark.parametrize("kind", ["zarr2", "zarr3", "hdf5"])
    def test_parts_that_were_never_stored_are_noted(self, folder: Path, kind: str) -> None:
        if kind == "hdf5":
            with h5py.File(folder / "units.h5", "r+") as file:
                rate, shape = file["ecog/data"].attrs["rate"], file["ecog/data"].shape
                del file["ecog/data"]
                data = file.create_dataset("ecog/data", shape, "f4", chunks=(1, shape[1]))
                data.attrs["rate"] = rate
                data[:3] = 1.0
        else:
            pattern = "0.1" if kind == "zarr2" else "c/0/1"
            (folder / f"format{kind[-1]}.zarr" / "ieeg" / "data" / pattern).unlink()
        note = recording(folder, kind).findings[0]
        assert note.reason is Reason.MISSING_SAMPLES
        assert note.found.startswith(("1 of 4 chunks", "1 of 16 chunks"))

    def test_zarr_arrays_without_a_group_and_with_shards(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        values = np.random.default_rng(0).standard_normal((4, 600))
        zarr.save_array(str(folder / "alone.zarr"), values, zarr_format=2)
        zarr.create_array(str(folder / "shards.zarr"), data=values, chunks=(1, 100), shards=(1, 600))
        monkeypatch.setattr(stored, "STREAM_BYTES", 0)
        for name in ("alone.zarr", "shards.zarr"):
            table_only(folder, "sampling_rate_hz = 9.0", file=name, axes="unit,time")
            found = recording(folder, "x")
            assert isinstance(found.signal, TimeSeries)
            np.testing.assert_array_equal(found.signal.read([3, 0]), values[[3, 0]].T)
            assert found.findings == ()

    def test_a_folder_without_zarr_metadata_is_named(self, folder: Path) -> None:
        (folder / "format2.zarr" / ".zgroup").unlink()
        error = failure(folder, "zarr2")
        assert error.what == "a Zarr folder has no metadata"

    def test_links_out_of_the_folder_are_refused(self, folder: Path, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        shutil.copy(folder / "rows.npy", outside)
        (folder / "rows.npy").unlink()
        (folder / "rows.npy").symlink_to(outside / "rows.npy")
        chunk = folder / "format2.zarr" / "ieeg" / "data" / "0.0"
        chunk.rename(outside / "chunk")
        chunk.symlink_to(outside / "chunk")
        shutil.copy(folder / "rows.hdf5", outside)
        (folder / "rows.hdf5").unlink()
        with h5py.File(folder / "rows.hdf5", "w") as file:
            file["data"] = h5py.ExternalLink(str(outside / "rows.hdf5"), "/data")
        for kind in ("npy", "zarr2"):
            assert failure(folder, kind).what == "a link leads out of the dataset's folder"
        table_only(folder, 'sampling_rate_hz = 9.0\nkey = "data"', file="rows.hdf5")
        error = failure(folder, "x")
        assert error.what == "a link leads out of an HDF5 file"
        assert "rows.hdf5" in str(error.got)

    def test_values_in_other_files_are_refused(self, folder: Path) -> None:
        layout = h5py.VirtualLayout(shape=(10, 4), dtype="f4")
        layout[:] = h5py.VirtualSource(str(folder / "rows.hdf5"), "data", shape=(7000, 4))[:10]
        with h5py.File(folder / "virtual.h5", "w") as file:
            file.create_virtual_dataset("v", layout)
            file.create_dataset("e", (10, 4), "f4", external=[("/etc/hostname", 0, 160)])
        for key in ("v", "e"):
            table_only(folder, f'sampling_rate_hz = 9.0\nkey = "{key}"', file="virtual.h5")
            assert "values in other files" in str(failure(folder, "x").got)

    def test_a_format_that_is_read_whole_has_a_limit(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(array_files, "WHOLE_BYTES", 1000)
        for kind, better in (("npz", ".npy"), ("mat5", "7.3")):
            error = failure(folder, kind)
            assert "too big for its format" in error.what
            assert better in str(error.remedy)

    def test_old_and_odd_matlab_variables_are_named(self, folder: Path) -> None:
        scipy.io.savemat(folder / "old.mat", {"x": np.zeros((9, 4))}, format="4")
        content = {"s": {"x": 1.0}, "t": "text", "l": np.ones((9, 4), dtype=bool)}
        scipy.io.savemat(folder / "odd.mat", content)
        extra = 'sampling_rate_hz = 9.0\nkey = "{}"'
        error = failure(table_only(folder, extra.format("x"), file="old.mat"), "x")
        assert "version 4" in str(error.got)
        for key, found in (("s", "class struct"), ("t", "class char"), ("l", "class logical")):
            error = failure(table_only(folder, extra.format(key), file="odd.mat"), "x")
            assert error.got == found
        with h5py.File(folder / "seven.mat", "r+") as file:
            file["data"].attrs["MATLAB_class"] = np.bytes_(b"function_handle")
        error = failure(table_only(folder, extra.format("data"), file="seven.mat"), "x")
        assert error.got == "class function_handle"

    def test_an_unknown_suffix_is_named(self, folder: Path) -> None:
        (folder / "data.edf").write_bytes(b"0")
        error = failure(table_only(folder, "sampling_rate_hz = 9.0", file="data.edf"), "x")
        assert ".npy, .npz, .h5" in str(error.expected)


class TestNwb:
    def test_electrodes_follow_the_series(self, written: tuple[Path, ArraysTruth]) -> None:
        found = recording(written[0], "nwb")
        assert found.units.ids == ("E1", "E2", "E3", "E4")
        assert found.units.regions == ("IFG", "unknown", "IFG", "STG")
        assert found.units.coordinates_mm is not None
        np.testing.assert_allclose(found.units.coordinates_mm[:, 0], [1.0, 2.0, 3.0, 4.0])

    def test_coordinates_without_a_unit_are_not_read(self, folder: Path, edit: Edit) -> None:
        edit('unit_column = "label"\ncoordinates_in = "um"\n', "")
        found = recording(folder, "nwb")
        assert found.units.ids == ("1", "2", "3", "4")
        assert found.units.coordinates_mm is None
        assert found.findings[0].reason is Reason.UNIT_WITHOUT_PLACE

    @pytest.mark.parametrize("streamed", [False, True])
    @pytest.mark.parametrize("timestamps", [False, True])
    def test_channels_may_come_first(
        self,
        written: tuple[Path, ArraysTruth],
        folder: Path,
        edit: Edit,
        timestamps: bool,
        streamed: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Some writers store channels in rows, against the standard."""
        name, kind = ("times.nwb", "nwb_timestamps") if timestamps else ("rate.nwb", "nwb")
        with h5py.File(folder / name, "r+") as file:
            series = file["acquisition/ElectricalSeries"]
            values, attributes = series["data"][:], dict(series["data"].attrs)
            del series["data"]
            series["data"] = values.T
            series["data"].attrs.update(attributes)
        edit(f'file = "{name}"', f'file = "{name}"\naxes = "unit,time"')
        if streamed:
            monkeypatch.setattr(stored, "STREAM_BYTES", 0)
        found = recording(folder, kind)
        assert isinstance(found.signal, TimeSeries)
        assert found.signal.sampling_rate_hz == pytest.approx(512.0, rel=1e-12)
        truth = written[1].values[found.id]
        for units in ([2], [3, 0], [0, 1, 2, 3]):
            np.testing.assert_allclose(found.signal.read(units), truth[:, units], rtol=1e-12)

    def test_axes_told_wrong_do_not_fit_the_channels(self, folder: Path, edit: Edit) -> None:
        edit('file = "rate.nwb"', 'file = "rate.nwb"\naxes = "unit,time"')
        error = failure(folder, "nwb")
        assert "4 factors" in str(error.got)
        assert "axes" in str(error.remedy)

    def test_irregular_timestamps_are_an_error(self, folder: Path) -> None:
        with h5py.File(folder / "times.nwb", "r+") as file:
            times = file["acquisition/ElectricalSeries/timestamps"]
            times[3000:] = times[3000:] + 0.5
        error = failure(folder, "nwb_timestamps")
        assert error.what == "the timestamps of a series are not regular"
        assert "split the series" in str(error.remedy)

    def test_the_series_must_be_named_where_there_are_two(self, folder: Path, edit: Edit) -> None:
        path = str(folder / "rate.nwb")
        with pynwb.NWBHDF5IO(path, "a") as io:
            file = io.read()
            file.add_acquisition(pynwb.TimeSeries(name="audio", data=np.zeros((100, 4)), unit="a.u.", rate=9.0))
            region = file.create_electrode_table_region([0], "one")
            file.add_acquisition(
                pynwb.ecephys.ElectricalSeries(name="other", data=np.zeros((100, 1)), electrodes=region, rate=9.0)
            )
            io.write(file)
        error = failure(folder, "nwb")
        assert "acquisition/ElectricalSeries" in str(error.got)
        assert "acquisition/other" in str(error.got)
        assert "audio" not in str(error.got)
        edit('file = "rate.nwb"', 'file = "rate.nwb"\nkey = "/acquisition/ElectricalSeries/data"')
        assert recording(folder, "nwb").signal.values.shape[1] == 4
        # Other series than electrical ones have no electrodes.
        table_only(folder, 'key = "audio"', file="rate.nwb")
        found = recording(folder, "x")
        assert isinstance(found.signal, TimeSeries)
        assert (found.signal.sampling_rate_hz, found.signal.physical_unit) == (9.0, "a.u.")

    def test_units_of_measurement_that_disagree_are_named(self, folder: Path, edit: Edit) -> None:
        edit('file = "rate.nwb"', 'file = "rate.nwb"\nphysical_unit = "µV"')
        assert failure(folder, "nwb").got == "'V' in the file, 'µV' in the table"

    def test_another_hdf5_file_is_not_nwb(self, folder: Path) -> None:
        shutil.copy(folder / "units.h5", folder / "rate.nwb")
        error = failure(folder, "nwb")
        assert error.what == "a file is not a valid NWB file"
        assert str(folder / "rate.nwb") == error.where


def test_a_missing_package_is_named(written: tuple[Path, ArraysTruth], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ConfigError, match=r"lpact\[zarr\]"):
        recording(written[0], "zarr2")
