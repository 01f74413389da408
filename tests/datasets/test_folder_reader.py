"""The folder reader: what it reads, and every way in which a folder can be malformed."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest

from lpact.datasets._files import stored
from lpact.datasets.base import DATASETS, Dataset, Epochs, FeatureKey, RecordingId, TimeSeries
from lpact.datasets.series import StreamedSeries
from lpact.errors import FeatureError, InputError, RecordingError, StimulusError

WORDS = (
    "word\tonset_s\toffset_s\tsentence_id\tstory_id\tlog_frequency\ttag\tcount\n"
    'the\t0.5\t0.7\t0\tone\t-1.5\tDET\t1\n"cat"\t0.8\t1.1\t0\tone\t-4\tNOUN\t2\n'
    "ran\t1.2\t1.5\t1\tone\t-3.25\tVERB\t3\n"
)
RECORDING = 'subject = "01"\nsession = "1"\nrun = "1"\nstimulus = "talk"\n'
SERIES = RECORDING + "sampling_rate_hz = 10\nstart_s = -0.5\n"
TALK, ONE, TWO = Path("stimuli/talk"), Path("recordings/one"), Path("recordings/two")
FULL = TALK / "features/m/full"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with everything that the layout knows."""
    root = tmp_path / "data"
    for folder in (FULL, TALK / "features/m/untrained", ONE, TWO):
        (root / folder).mkdir(parents=True)
    (root / "dataset.toml").write_text('source = "s"\nversion = "1"\nlicence = "CC0-1.0"\n')
    (root / "README.md").write_text("not part of the layout")
    (root / ".hidden").write_text("ignored")
    (root / TALK / "words.tsv").write_text(WORDS)
    (root / TALK / "mechanisms.tsv").write_text("surprisal\tupdate\n1\t.5\n2e0\t1\n3\t-2\n")
    (root / TALK / "envelope.toml").write_text("sampling_rate_hz = 50\nstart_s = 0\n")
    (root / TALK / "audio.wav").write_bytes(b"RIFF")
    np.save(root / TALK / "envelope.npy", np.arange(5.0))
    np.save(root / FULL / "layer-0.npy", np.ones((3, 2), np.float32))
    np.save(root / FULL / "layer-10.npy", np.ones((3, 2)))
    np.save(root / TALK / "features/m/untrained/layer-0_draw-1.npy", np.zeros((3, 2)))
    (root / ONE / "recording.toml").write_text(SERIES)
    (root / ONE / "units.tsv").write_text("unit\tregion\tx_mm\ty_mm\tz_mm\na\tSTG\t1\t2\t3\nb\tIFG\t4\t5\t6\n")
    np.save(root / ONE / "neural.npy", np.arange(40, dtype=np.int16).reshape(20, 2))
    (root / TWO / "recording.toml").write_text(RECORDING.replace("01", "02") + "lags_ms = [0, 100.5]\n")
    (root / TWO / "units.tsv").write_text("region\tunit\r\nSTG\ta\r\n")
    np.save(root / TWO / "neural.npy", np.arange(6.0).reshape(2, 3, 1))
    return root


def open_folder(path: Path | None) -> Dataset:
    return DATASETS.build("folder").open(name="mine", path=path, seed=0)


def read_all(path: Path) -> None:
    dataset = open_folder(path)
    for recording_id in dataset.recording_ids():
        dataset.recording(recording_id)
        stimulus = dataset.stimulus(recording_id.stimulus)
        for key in stimulus.features:
            stimulus.features[key].load()


def test_reads_what_is_there(root: Path) -> None:
    dataset = open_folder(root)
    assert (dataset.info.source, dataset.info.version, dataset.info.licence) == (
        "s",
        "1",
        "CC0-1.0",
    )
    one, two = dataset.recording_ids()
    assert one == RecordingId("01", "1", "1", "talk")
    series = dataset.recording(one)
    assert isinstance(series.signal, TimeSeries)
    assert (series.signal.sampling_rate_hz, series.signal.start_s) == (10.0, -0.5)
    assert series.signal.values.dtype == np.int16
    assert (series.units.ids, series.units.regions) == (("a", "b"), ("STG", "IFG"))
    np.testing.assert_array_equal(series.units.coordinates_mm, [[1, 2, 3], [4, 5, 6]])
    epochs = dataset.recording(two)
    assert isinstance(epochs.signal, Epochs)
    assert epochs.signal.lags_ms == (0.0, 100.5)
    assert epochs.units.coordinates_mm is None
    assert (series.where, epochs.where) == (
        "dataset 'mine', recordings/one",
        "dataset 'mine', recordings/two",
    )


def test_reads_the_stimulus(root: Path) -> None:
    stimulus = open_folder(root).stimulus("talk")
    assert stimulus.words["word"].to_list() == ["the", '"cat"', "ran"]
    assert stimulus.words.schema["log_frequency"] == pl.Float64
    assert stimulus.words.schema["tag"] == pl.String
    assert stimulus.words.schema["count"] == pl.Int64
    np.testing.assert_array_equal(stimulus.mechanisms["update"], [0.5, 1.0, -2.0])
    assert stimulus.envelope is not None
    assert stimulus.envelope.sampling_rate_hz == 50.0
    assert stimulus.media == {"audio": "stimuli/talk/audio.wav"}
    assert stimulus.media_path("audio") == root / TALK / "audio.wav"
    assert stimulus.media_path("audio").read_bytes() == b"RIFF"
    assert stimulus.audio_start_s == 0.0
    assert set(stimulus.features) == {
        FeatureKey("m", 0, "full"),
        FeatureKey("m", 10, "full"),
        FeatureKey("m", 0, "untrained", 1),
    }
    assert stimulus.features[FeatureKey("m", 0, "full")].load().dtype == np.float32
    assert stimulus.features[FeatureKey("m", 10, "full")].where.endswith("full/layer-10.npy")


def test_audio_may_start_at_another_time(root: Path) -> None:
    (root / TALK / "audio.toml").write_text("start_s = -1.25\n")
    stimulus = open_folder(root).stimulus("talk")
    assert stimulus.audio_start_s == -1.25
    assert stimulus.media == {"audio": "stimuli/talk/audio.wav"}
    assert "stimuli/talk/audio.toml" in [f.path for f in open_folder(root).source_files()]


def test_missing_numbers_of_extra_columns_are_null(root: Path) -> None:
    (root / TALK / "words.tsv").write_text(WORDS.replace("-4", "n/a"))
    words = open_folder(root).stimulus("talk").words
    assert words["log_frequency"].to_list() == [-1.5, None, -3.25]


def test_optional_parts_may_be_missing(root: Path) -> None:
    shutil.rmtree(root / TALK / "features")
    for name in ("mechanisms.tsv", "envelope.npy", "envelope.toml", "audio.wav"):
        (root / TALK / name).unlink()
    stimulus = open_folder(root).stimulus("talk")
    assert (stimulus.features, stimulus.mechanisms, stimulus.envelope, stimulus.media) == (
        {},
        {},
        None,
        {},
    )


def test_nothing_to_read_is_not_an_error(root: Path) -> None:
    (root / TALK / "words.tsv").write_text(WORDS.split("\n", maxsplit=1)[0] + "\n")
    (root / TALK / "mechanisms.tsv").unlink()
    np.save(root / ONE / "neural.npy", np.zeros((0, 2)))
    dataset = open_folder(root)
    assert dataset.stimulus("talk").words.height == 0
    assert dataset.recording(dataset.recording_ids()[0]).signal.values.shape == (0, 2)


def test_opening_does_not_touch_neural_arrays(root: Path) -> None:
    (root / ONE / "neural.npy").write_bytes(b"not an array")
    one, two = open_folder(root).recording_ids()
    open_folder(root).recording(two)
    with pytest.raises(RecordingError, match=r"neural\.npy"):
        open_folder(root).recording(one)


@pytest.mark.parametrize("order", ["C", "F"])
def test_big_series_are_read_a_few_units_at_a_time(
    root: Path, order: Literal["C", "F"], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_values = np.arange(60, dtype=np.int16).reshape(20, 3)
    np.save(root / ONE / "neural.npy", stored_values.copy(order=order))
    (root / ONE / "units.tsv").write_text("unit\tregion\na\tx\nb\tx\nc\tx\n")
    dataset = open_folder(root)
    one = dataset.recording_ids()[0]
    plain = dataset.recording(one).signal.values
    monkeypatch.setattr(stored, "STREAM_BYTES", 1)
    monkeypatch.setattr(stored, "PIECE_BYTES", 24)
    signal = dataset.recording(one).signal
    assert isinstance(plain, np.ndarray)
    assert not isinstance(plain, np.memmap)
    assert isinstance(signal, TimeSeries)
    assert isinstance(signal.values, StreamedSeries)
    assert signal.values.unit_major == (order == "F")
    for units in ([0], [2, 0], [0, 1, 2]):
        np.testing.assert_array_equal(signal.read(units), stored_values[:, units])


def test_big_features_are_mapped(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer = open_folder(root).stimulus("talk").features
    key = FeatureKey("m", 0, "full")
    plain = offer[key].load()
    monkeypatch.setattr(stored, "STREAM_BYTES", 1)
    mapped = offer[key].load()
    assert not isinstance(plain, np.memmap)
    assert isinstance(mapped, np.memmap)
    np.testing.assert_array_equal(plain, mapped)


def test_links_inside_the_folder_are_fine(root: Path) -> None:
    (root / FULL / "layer-1.npy").symlink_to(root / FULL / "layer-0.npy")
    read_all(root)


def test_a_linked_folder_is_fine(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    read_all(tmp_path / "link")


def test_unknown_ids(root: Path) -> None:
    dataset = open_folder(root)
    with pytest.raises(RecordingError, match="there is no recording"):
        dataset.recording(RecordingId("03", "1", "1", "talk"))
    with pytest.raises(StimulusError, match="did you mean 'talk'"):
        dataset.stimulus("talks")


@pytest.mark.parametrize("path", [None, Path("/nowhere/at/all")])
def test_no_folder(path: Path | None) -> None:
    with pytest.raises(InputError, match=r"\[run\.paths\] mine"):
        open_folder(path)


def write(path: Path, text: str) -> Callable[[Path], object]:
    return lambda root: (root / path).write_text(text)


def edit(path: Path, old: str, new: str) -> Callable[[Path], object]:
    def apply(root: Path) -> None:
        text = (root / path).read_text()
        assert old in text
        (root / path).write_text(text.replace(old, new, 1))

    return apply


def remove(path: Path) -> Callable[[Path], object]:
    return lambda root: (root / path).unlink()


def move(path: str | Path, target: str | Path) -> Callable[[Path], object]:
    return lambda root: (root / path).rename(root / target)


def as_folder(path: Path) -> Callable[[Path], object]:
    def apply(root: Path) -> None:
        (root / path).unlink()
        (root / path).mkdir()

    return apply


def save(path: Path, array: np.ndarray) -> Callable[[Path], object]:
    return lambda root: np.save(root / path, array)


def truncate(path: Path) -> Callable[[Path], object]:
    return lambda root: (root / path).write_bytes((root / path).read_bytes()[:-3])


def lengthen(path: Path) -> Callable[[Path], object]:
    return lambda root: (root / path).write_bytes((root / path).read_bytes() + b"x")


def pickled(path: Path) -> Callable[[Path], object]:
    return lambda root: np.save(root / path, np.array([{"a": 1}], dtype=object))


def raw_pickle(path: Path) -> Callable[[Path], object]:
    return lambda root: (root / path).write_bytes(pickle.dumps([1, 2]))


def link_out(path: Path) -> Callable[[Path], object]:
    def apply(root: Path) -> None:
        outside = root.parent / "outside"
        (root / path).rename(outside)
        (root / path).symlink_to(outside)

    return apply


def pipe(path: Path) -> Callable[[Path], object]:
    def apply(root: Path) -> None:
        (root / path).unlink()
        os.mkfifo(root / path)

    return apply


def circle(path: Path) -> Callable[[Path], object]:
    def apply(root: Path) -> None:
        (root / path).unlink()
        (root / path).symlink_to(root / path)

    return apply


ABOUT = Path("dataset.toml")
TOML, TSV, UNITS = ONE / "recording.toml", TALK / "words.tsv", ONE / "units.tsv"
AUDIO = TALK / "audio.toml"
NEURAL, LAYER, MECHANISMS = ONE / "neural.npy", FULL / "layer-0.npy", TALK / "mechanisms.tsv"

MALFORMED: dict[str, tuple[Callable[[Path], object], type[InputError], str, str]] = {
    # what: (how, error, where it points, what else it says)
    "no dataset.toml": (remove(ABOUT), InputError, "dataset.toml", "missing"),
    "no stimuli": (move("stimuli", "stimulus"), InputError, "stimuli", "did you mean 'stimulus'"),
    "no recordings": (lambda r: shutil.rmtree(r / "recordings"), InputError, "recordings", "missing"),
    "dataset.toml is a folder": (as_folder(ABOUT), InputError, "dataset.toml", "cannot be read"),
    "no TOML": (write(ABOUT, "source = "), InputError, "dataset.toml", "not valid TOML"),
    "not UTF-8": (lambda r: (r / ABOUT).write_bytes(b'source = "\xff"'), InputError, "dataset.toml", "UTF-8"),
    "licence missing": (edit(ABOUT, "licence", "license"), InputError, "key 'licence'", "did you mean 'licence'"),
    "version not text": (edit(ABOUT, '"1"', "1"), InputError, "key 'version'", "a valid string (found 1)"),
    "no recording.toml": (remove(TOML), RecordingError, "one/recording.toml", "missing"),
    "no neural.npy": (remove(NEURAL), RecordingError, "one/neural.npy", "missing"),
    "no units.tsv": (remove(UNITS), RecordingError, "one/units.tsv", "missing"),
    "file among recordings": (write(Path("recordings/x"), ""), RecordingError, "recordings/x", "not part of"),
    "unknown file": (write(ONE / "nerual.npy", ""), RecordingError, "nerual.npy", "did you mean 'neural.npy'"),
    "unknown key": (edit(TOML, "start_s", "start"), RecordingError, "key 'start'", "did you mean 'start_s'"),
    "key missing": (edit(TOML, 'run = "1"', ""), RecordingError, "key 'run'", "missing"),
    "subject is a number": (edit(TOML, '"01"', "1"), RecordingError, "key 'subject'", "a valid string (found 1)"),
    "subject is no name": (edit(TOML, '"01"', '"../1"'), RecordingError, "key 'subject'", "'../1'"),
    "start missing": (edit(TOML, "start_s = -0.5", ""), RecordingError, "recording.toml", "and start_s"),
    "series and epochs": (edit(TOML, "start_s", "lags_ms = [1]\nstart_s"), RecordingError, "recording.toml", "lags_ms"),
    "rate is text": (edit(TOML, "= 10", '= "10"'), RecordingError, "key 'sampling_rate_hz'", "'10'"),
    "rate is true": (edit(TOML, "= 10", "= true"), RecordingError, "key 'sampling_rate_hz'", "True"),
    "start is nan": (edit(TOML, "-0.5", "nan"), RecordingError, "key 'start_s'", "a finite number"),
    "rate is zero": (edit(TOML, "= 10", "= 0"), RecordingError, "recordings/one", "0.0 Hz"),
    "lags are text": (edit(TWO / "recording.toml", "100.5", '"x"'), RecordingError, "key 'lags_ms.1'", "found 'x'"),
    "a lag too few": (edit(TWO / "recording.toml", ", 100.5", ""), RecordingError, "recordings/two", "1 lags"),
    "absent stimulus": (edit(TOML, "talk", "tale"), RecordingError, "key 'stimulus'", "did you mean 'talk'"),
    "same recording twice": (edit(TWO / "recording.toml", "02", "01"), InputError, "one, two", "sub-01_ses-1_run-1"),
    "neural is not an array": (write(NEURAL, "hello there"), RecordingError, "neural.npy", "numpy.save"),
    "neural is empty": (write(NEURAL, ""), RecordingError, "neural.npy", "numpy.save"),
    "neural is a pickle": (raw_pickle(NEURAL), RecordingError, "neural.npy", "numpy.save"),
    "neural holds objects": (pickled(NEURAL), RecordingError, "neural.npy", "pickled Python objects"),
    "neural holds text": (save(NEURAL, np.array([["a", "b"]])), RecordingError, "neural.npy", "dtype <U1"),
    "neural is truncated": (truncate(NEURAL), RecordingError, "neural.npy", "truncated"),
    "neural is too long": (lengthen(NEURAL), RecordingError, "neural.npy", "too long"),
    "neural has a column more": (save(NEURAL, np.zeros((4, 3))), RecordingError, "recordings/one", "3 columns"),
    "neural has one axis": (save(NEURAL, np.zeros(4)), RecordingError, "recordings/one", "wrong number of axes"),
    "neural leads out": (link_out(NEURAL), RecordingError, "neural.npy", "leads out"),
    "recording leads out": (link_out(ONE), RecordingError, "recordings/one", "leads out"),
    "neural is a pipe": (pipe(NEURAL), RecordingError, "neural.npy", "a pipe, a socket or a device"),
    "words are a pipe": (pipe(TSV), StimulusError, "words.tsv", "a pipe, a socket or a device"),
    "dataset.toml is a pipe": (pipe(ABOUT), InputError, "dataset.toml", "a pipe, a socket or a device"),
    "neural leads to itself": (circle(NEURAL), RecordingError, "neural.npy", "itself"),
    "unit column missing": (edit(UNITS, "region", "regoin"), RecordingError, "column 'region'", "mean 'regoin'"),
    "half a coordinate": (write(UNITS, "unit\tregion\tx_mm\na\tA\t1\n"), RecordingError, "column 'y_mm'", "missing"),
    "unknown unit column": (edit(UNITS, "x_mm", "xmm"), RecordingError, "column 'xmm'", "did you mean 'x_mm'"),
    "coordinate is text": (edit(UNITS, "\t5\t", "\tfive\t"), RecordingError, "line 3, column 'y_mm'", "'five'"),
    "unit is empty": (edit(UNITS, "b\tIFG", "\tIFG"), RecordingError, "line 3, column 'unit'", "''"),
    "unit twice": (edit(UNITS, "b\tIFG", "a\tIFG"), RecordingError, "recordings/one", "'a' is listed more than once"),
    "no words": (remove(TSV), StimulusError, "talk/words.tsv", "missing"),
    "stimulus has a bad name": (move(TALK, "stimuli/the talk"), StimulusError, "the talk", "rename"),
    "word column missing": (edit(TSV, "onset_s", "onset"), StimulusError, "column 'onset_s'", "did you mean 'onset'"),
    "column twice": (edit(TSV, "count", "tag"), StimulusError, "words.tsv, line 1", "used twice"),
    "cell missing": (edit(TSV, "\tNOUN", ""), StimulusError, "words.tsv, line 3", "7 cell(s)"),
    "words file is empty": (write(TSV, ""), StimulusError, "words.tsv, line 1", "header"),
    "onset is text": (edit(TSV, "0.8", "0,8"), StimulusError, "line 3, column 'onset_s'", "'0,8'"),
    "onset is nan": (edit(TSV, "0.8", "nan"), StimulusError, "line 3, column 'onset_s'", "a finite number"),
    "onset overflows": (edit(TSV, "0.8", "1e999"), StimulusError, "line 3, column 'onset_s'", "a finite number"),
    "sentence is a fraction": (edit(TSV, "1.1\t0", "1.1\t0.5"), StimulusError, "line 3, column 'sentence_id'", "whole"),
    "word is empty": (edit(TSV, "ran\t", "\t"), StimulusError, "line 4, column 'word'", "''"),
    "onsets fall": (edit(TSV, "1.2", "0.6"), StimulusError, "row 3", "order of their onsets"),
    "mechanism is text": (edit(MECHANISMS, "2e0", "two"), StimulusError, "mechanisms.tsv, line 3", "'two'"),
    "mechanism too short": (edit(MECHANISMS, "\n3\t-2", ""), StimulusError, "mechanism 'surprisal'", "(2,)"),
    "envelope without clock": (remove(TALK / "envelope.toml"), StimulusError, "envelope.toml", "missing"),
    "clock without envelope": (remove(TALK / "envelope.npy"), StimulusError, "envelope.npy", "missing"),
    "envelope not finite": (save(TALK / "envelope.npy", np.array([np.nan])), StimulusError, "envelope", "nan"),
    "envelope truncated": (truncate(TALK / "envelope.npy"), StimulusError, "envelope.npy", "truncated"),
    "audio's start is text": (write(AUDIO, 'start_s = "0"'), StimulusError, "audio.toml, key 'start_s'", "a valid"),
    "audio's start is nan": (write(AUDIO, "start_s = nan"), StimulusError, "audio.toml, key 'start_s'", "a finite"),
    "audio without start": (write(AUDIO, ""), StimulusError, "audio.toml, key 'start_s'", "missing"),
    "unknown key of audio": (write(AUDIO, "start = 1"), StimulusError, "key 'start_s'", "did you mean 'start_s'"),
    "start without audio": (move(TALK / "audio.wav", AUDIO), StimulusError, "audio.wav", "missing"),
    "two sounds": (write(TALK / "audio.mp3", ""), StimulusError, "stimuli/talk", "audio.mp3, audio.wav"),
    "unknown table": (write(TALK / "mechanism.tsv", ""), StimulusError, "mechanism.tsv", "mean 'mechanisms.tsv'"),
    "unknown context": (move(FULL, TALK / "features/m/ful"), FeatureError, "m/ful", "did you mean 'full'"),
    "bad layer name": (write(FULL / "layer_3.npy", ""), FeatureError, "layer_3.npy", "layer-<number>"),
    "layer twice": (save(FULL / "layer-0_draw-0.npy", np.ones((3, 2))), FeatureError, "draw-0.npy", "same features"),
    "file among models": (write(TALK / "features/m.npy", ""), FeatureError, "m.npy", "features/<model>/<context>"),
    "features hold objects": (pickled(LAYER), FeatureError, "layer-0.npy", "pickled"),
    "features truncated": (truncate(LAYER), FeatureError, "layer-0.npy", "truncated"),
    "features lead out": (link_out(LAYER), StimulusError, "layer-0.npy", "leads out"),
}  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_folders(root: Path, case: str) -> None:
    break_it, kind, where, said = MALFORMED[case]
    read_all(root)
    break_it(root)
    with pytest.raises(InputError) as caught:
        read_all(root)
    error = caught.value
    assert type(error) is kind
    assert error.where is not None
    assert where in error.where
    assert said in str(error)
    assert error.got
    assert error.remedy


def test_source_files_are_every_file_with_its_checksum(root: Path) -> None:
    sources = open_folder(root).source_files()
    expected = sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and path.name not in ("README.md", ".hidden")
    )
    assert [source.path for source in sources] == expected
    for source in sources:
        content = (root / source.path).read_bytes()
        assert source.sha256 == hashlib.sha256(content).hexdigest()
        assert source.n_bytes == len(content)
        assert source.licence == "CC0-1.0"
