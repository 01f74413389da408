"""The Podcast ECoG reader against what its writer wrote, and against the real tables."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dataset_writers.bids import leave_gap, write_dimensions
from dataset_writers.podcast_ecog import (
    BAD,
    NEURAL,
    OTHER,
    UNPLACED,
    PodcastTruth,
    write_podcast_ecog,
)
from lpact.codes import Reason
from lpact.config import GridConfig
from lpact.datasets.base import DATASETS, Dataset, FeatureKey, Recording, Stimulus, TimeSeries
from lpact.datasets.podcast_ecog import PodcastEcog
from lpact.errors import FeatureError, InputError, RecordingError, StimulusError
from lpact.grid import build_grid
from shared_data import shared_data

ONE_SAMPLE_MS = 1000.0 / 512.0


@dataclass(frozen=True)
class Written:
    folder: Path
    truth: PodcastTruth


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("podcast")
    return Written(folder, write_podcast_ecog(folder, raw=True))


@pytest.fixture
def copy(written: Written, tmp_path: Path) -> Path:
    """A copy that a test may break."""
    target = tmp_path / "copy"
    shutil.copytree(written.folder, target)
    return target


def opened(folder: Path, **options: Any) -> Dataset:
    return DATASETS.build("podcast_ecog", options).open(name="podcast", path=folder, seed=0)


def first(dataset: Dataset) -> tuple[Recording, Stimulus]:
    return dataset.recording(dataset.recording_ids()[0]), dataset.stimulus("podcast")


def reasons(found: Recording | Stimulus) -> list[Reason]:
    return [finding.reason for finding in found.findings]


def highgamma(folder: Path, subject: str = "01") -> Path:
    name = f"sub-{subject}_task-podcast_desc-highgamma_ieeg.fif"
    return folder / "derivatives/ecogprep" / f"sub-{subject}" / "ieeg" / name


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.parametrize("signal", ["highgamma", "raw"])
def test_words_meet_their_samples(written: Written, signal: str) -> None:
    dataset = opened(written.folder, signal=signal)
    assert [i.subject for i in dataset.recording_ids()] == list(written.truth.subjects)
    for recording_id in dataset.recording_ids():
        recording = dataset.recording(recording_id)
        grid = build_grid(
            recording,
            dataset.stimulus("podcast"),
            GridConfig(lags_ms=(0.0,), window_ms=ONE_SAMPLE_MS),
        )
        codes = np.arange(1, len(written.truth.words) + 1)
        np.testing.assert_allclose(grid.responses[0, :, 0], codes, atol=0.01)


def test_audio_that_starts_later_shifts_the_words(written: Written) -> None:
    shift = 64
    recording, _ = first(opened(written.folder, audio_start_s=shift / 512.0))
    signal = recording.signal
    assert isinstance(signal, TimeSeries)
    first_word = written.truth.start_s[written.truth.order[0]]
    sample = round((first_word - signal.start_s) * 512.0)
    assert sample == written.truth.samples[0] + shift


def test_channels(written: Written) -> None:
    recording, _ = first(opened(written.folder))
    signal = recording.signal
    assert isinstance(signal, TimeSeries)
    assert signal.physical_unit == "a.u."
    assert signal.sampling_rate_hz == 512.0
    assert signal.n_samples == written.truth.n_samples
    assert recording.units.ids == tuple(name for name in NEURAL if name != BAD)
    assert set(recording.units.regions) == {"unknown"}
    assert not recording.units.comparable
    places = recording.units.coordinates_mm
    assert places is not None
    np.testing.assert_allclose(places, written.truth.coordinates_mm, atol=1e-3)
    assert recording.units.coordinate_frame == "MNI152NLin2009aSym"
    by_reason = {finding.reason: finding for finding in recording.findings}
    assert by_reason[Reason.CHANNEL_MARKED_BAD].field == BAD
    assert OTHER in by_reason[Reason.CHANNEL_NOT_NEURAL].found
    assert UNPLACED in by_reason[Reason.UNIT_WITHOUT_PLACE].found
    assert str(written.folder) not in recording.where


def test_raw_signal_takes_types_and_status_from_channels_tsv(written: Written) -> None:
    recording, _ = first(opened(written.folder, signal="raw"))
    assert recording.signal.physical_unit == "µV"
    assert recording.units.ids == tuple(name for name in NEURAL if name != BAD)
    places = recording.units.coordinates_mm
    assert places is not None
    np.testing.assert_allclose(places, written.truth.coordinates_mm, atol=1e-3)


def test_words_are_sorted_with_their_annotations(written: Written) -> None:
    _, stimulus = first(opened(written.folder))
    truth, order = written.truth, written.truth.order
    words = stimulus.words
    assert words["word"].to_list() == [truth.words[i] for i in order]
    np.testing.assert_array_equal(words["onset_s"].to_numpy(), truth.start_s[order])
    np.testing.assert_array_equal(words["word_idx"].to_numpy(), order)
    np.testing.assert_allclose(stimulus.mechanisms["surprisal"], truth.surprisal_bits[order])
    np.testing.assert_allclose(words["gpt2_entropy"].to_numpy(), truth.entropy_bits[order])
    assert set(words["pos"]) == {"NN"}
    assert stimulus.transcripts["podcast"].split() == words["word"].to_list()
    assert stimulus.media_path("audio").is_file()
    sorted_note = next(f for f in stimulus.findings if f.reason == Reason.SOURCE_ROWS_SORTED)
    assert sorted_note.found.startswith("2 word(s)")
    assert Reason.SENTENCES_BY_RULE in reasons(stimulus)
    assert Reason.SOURCE_ROWS_LEFT_OUT not in reasons(stimulus)


@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_gpt2_features(written: Written, pooling: str) -> None:
    _, stimulus = first(opened(written.folder, token_pooling=pooling))
    offer, truth = stimulus.features, written.truth
    assert list(offer) == [FeatureKey("gpt2-xl", k, "full") for k in (0, 24)]
    loaded = offer[FeatureKey("gpt2-xl", 24, "full")].load()
    for row, word in enumerate(truth.order):
        tokens = truth.layer[truth.token_word == word]
        expected = tokens.mean(axis=0) if pooling == "mean" else tokens[-1]
        np.testing.assert_allclose(loaded[row], expected)


def test_whisper_leaves_out_the_words_that_it_lacks(written: Written) -> None:
    _, stimulus = first(opened(written.folder, features=["gpt2-xl", "whisper-medium"]))
    truth = written.truth
    kept = [i for i in truth.order if i not in truth.without_whisper]
    assert stimulus.words["word_idx"].to_list() == kept
    offer = stimulus.features
    loaded = offer[FeatureKey("whisper-medium", 0, "full")].load()
    np.testing.assert_allclose(loaded, truth.vectors[[list(truth.vector_word).index(i) for i in kept]])
    assert len(offer[FeatureKey("gpt2-xl", 24, "full")].load()) == len(kept)
    assert len(stimulus.mechanisms["surprisal"]) == len(kept)
    left_out = next(f for f in stimulus.findings if f.reason == Reason.SOURCE_ROWS_LEFT_OUT)
    assert left_out.severity == "excluded"
    assert left_out.found.startswith("2 word(s) without features of whisper-medium")
    other_times = [f for f in stimulus.findings if f.reason == Reason.SIDECAR_DISAGREES]
    assert any("1 word(s) at other times" in finding.found for finding in other_times)


def test_source_files_and_provenance(written: Written) -> None:
    dataset = opened(written.folder)
    assert dataset.info.version == "1.0.2"
    assert dataset.info.licence == "CC0"
    listed = {file.path for file in dataset.source_files()}
    assert {
        "stimuli/podcast_transcript.csv",
        "stimuli/gpt2-xl/features.hdf5",
        "stimuli/podcast.wav",
        "sub-01/ieeg/sub-01_space-MNI152NLin2009aSym_electrodes.tsv",
        "derivatives/ecogprep/sub-02/ieeg/sub-02_task-podcast_desc-highgamma_ieeg.fif",
    } <= listed
    assert not any("whisper" in path or path.endswith(".edf") for path in listed)


def test_without_a_transcript_a_table_stands_in(written: Written, copy: Path) -> None:
    (copy / "stimuli/podcast_transcript.csv").unlink()
    (copy / "stimuli/podcast.wav").unlink()
    _, stimulus = first(opened(copy))
    _, usual = first(opened(written.folder))
    assert stimulus.words.equals(usual.words)
    note = next(f for f in stimulus.findings if f.reason == Reason.SOURCE_STANDS_IN)
    assert "stimuli/spectral/transcript.tsv" in note.where
    assert stimulus.media_absent["audio"].reason == Reason.MEDIA_NOT_OFFERED
    for name in ("spectral", "gpt2-xl", "syntactic"):
        shutil.rmtree(copy / "stimuli" / name)
    with pytest.raises(StimulusError, match=r"'stimuli/podcast_transcript\.csv' is missing"):
        opened(copy).stimulus("podcast")


def test_words_without_times_are_left_out(copy: Path, written: Written) -> None:
    truth = written.truth
    replace(
        copy / "stimuli/podcast_transcript.csv",
        f"{truth.words[4]},{truth.start_s[4]}",
        f"{truth.words[4]},",
    )
    _, stimulus = first(opened(copy))
    assert 4 not in stimulus.words["word_idx"].to_list()
    found = next(f for f in stimulus.findings if f.reason == Reason.SOURCE_ROWS_LEFT_OUT)
    assert "words without times; first: word 4" in found.found
    offer = stimulus.features
    assert len(offer[FeatureKey("gpt2-xl", 24, "full")].load()) == stimulus.words.height


def test_tables_that_number_other_words(copy: Path) -> None:
    replace(copy / "stimuli/syntactic/transcript.tsv", "\tone,\t", "\ttwo,\t")
    with pytest.raises(StimulusError, match="the words of the transcript") as caught:
        opened(copy).stimulus("podcast")
    assert "line 3" in str(caught.value)
    assert "word 1 is 'two,' here, and 'one,'" in str(caught.value)


def test_a_time_that_is_no_number(copy: Path) -> None:
    replace(copy / "stimuli/podcast_transcript.csv", "Act,", "Act,soon")
    with pytest.raises(StimulusError, match="a cell of column 'start' is not valid") as caught:
        opened(copy).stimulus("podcast")
    assert "podcast_transcript.csv, line 2" in str(caught.value)


def test_another_encoding(copy: Path) -> None:
    path = copy / "stimuli/podcast_transcript.csv"
    path.write_bytes(path.read_bytes().replace(b"Act", "Actè".encode("latin-1")))
    with pytest.raises(StimulusError, match="UTF-8"):
        opened(copy).stimulus("podcast")


def test_an_impossible_probability(copy: Path) -> None:
    path = copy / "stimuli/gpt2-xl/transcript.tsv"
    lines = path.read_text(encoding="utf-8").split("\n")
    cells = lines[1].split("\t")
    cells[8] = "0"
    path.write_text("\n".join([lines[0], "\t".join(cells), *lines[2:]]), encoding="utf-8")
    with pytest.raises(StimulusError, match="'true_prob'") as caught:
        opened(copy).stimulus("podcast")
    assert "a probability above 0" in str(caught.value)


def test_truncated_files(copy: Path) -> None:
    path = highgamma(copy)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    dataset = opened(copy)
    with pytest.raises(RecordingError, match="may be truncated") as caught:
        dataset.recording(dataset.recording_ids()[0])
    assert path.name in str(caught.value)
    hdf5 = copy / "stimuli/gpt2-xl/features.hdf5"
    hdf5.write_bytes(hdf5.read_bytes()[:800])
    with pytest.raises(FeatureError, match="may be truncated"):
        dataset.stimulus("podcast")
    assert opened(copy, features=[]).stimulus("podcast").features == {}


def test_features_that_do_not_fit_their_table(copy: Path) -> None:
    path = copy / "stimuli/gpt2-xl/transcript.tsv"
    path.write_text(re.sub(r"\n[^\n]*\n$", "\n", path.read_text(encoding="utf-8")), encoding="utf-8")
    offer = opened(copy).stimulus("podcast").features
    with pytest.raises(FeatureError, match=r"rows, as in .*transcript\.tsv"):
        offer[FeatureKey("gpt2-xl", 24, "full")].load()


def test_a_second_part_outside_the_folder(copy: Path, tmp_path: Path) -> None:
    """The first part of a split FIF file names the next one, which is a link."""
    mne = pytest.importorskip("mne")
    path = highgamma(copy)
    raw = mne.io.read_raw_fif(path, preload=True, verbose="error")
    big = mne.concatenate_raws([raw.copy() for _ in range(10)], verbose="error")
    big.save(path, overwrite=True, split_size="2MB", buffer_size_sec=1.0, verbose="error")
    part = path.with_name(path.name.replace(".fif", "-1.fif"))
    assert part.is_file()
    relative = part.relative_to(copy).as_posix()
    assert relative in {file.path for file in opened(copy).source_files()}
    shutil.move(part, tmp_path / "part.fif")
    part.symlink_to(tmp_path / "part.fif")
    dataset = opened(copy)
    with pytest.raises(RecordingError, match="leads out of the dataset's folder") as caught:
        dataset.recording(dataset.recording_ids()[0])
    assert part.name in str(caught.value)


@pytest.mark.parametrize("kind", ["link", "virtual"])
@pytest.mark.parametrize(("model", "name"), [("gpt2-xl", "layer-24"), ("whisper-medium", "vectors")])
def test_features_in_another_file(copy: Path, tmp_path: Path, kind: str, model: str, name: str) -> None:
    h5py = pytest.importorskip("h5py")
    path = copy / "stimuli" / model / "features.hdf5"
    with h5py.File(path, "a") as file, h5py.File(tmp_path / "other.hdf5", "w") as other:
        other[name] = file[name][...]
        del file[name]
        if kind == "link":
            file[name] = h5py.ExternalLink(str(tmp_path / "other.hdf5"), name)
        else:
            layout = h5py.VirtualLayout(other[name].shape, other[name].dtype)
            layout[...] = h5py.VirtualSource(other[name])
            file.create_virtual_dataset(name, layout)
    with pytest.raises(FeatureError, match="leads out of an HDF5 file") as caught:
        opened(copy, features=[model]).stimulus("podcast")
    assert f"{path}, '{name}'" in str(caught.value)
    assert "copy the values into the file" in str(caught.value)


def test_gaps_in_the_raw_signal(copy: Path) -> None:
    path = copy / "sub-01/ieeg/sub-01_task-podcast_ieeg.edf"
    leave_gap(path, record=6, seconds=4)
    dataset = opened(copy, signal="raw")
    with pytest.raises(RecordingError, match="records without gaps") as caught:
        dataset.recording(dataset.recording_ids()[0])
    assert f"{path}, record 7 of " in str(caught.value)
    assert "begins +4 s after the one" in str(caught.value)


def test_raw_signal_without_a_unit_in_its_file(copy: Path, written: Written) -> None:
    write_dimensions(copy / "sub-01/ieeg/sub-01_task-podcast_ieeg.edf", "")
    recording, _ = first(opened(copy, signal="raw"))
    signal = recording.signal
    assert isinstance(signal, TimeSeries)
    assert signal.physical_unit == "µV"
    codes = signal.read([0])[written.truth.samples, 0]
    np.testing.assert_allclose(codes, np.arange(1, codes.size + 1), atol=0.01)
    note = next(f for f in recording.findings if f.field == "units" and "no unit" in f.found)
    assert note.reason == Reason.SIDECAR_DISAGREES
    table = copy / "sub-01/ieeg/sub-01_task-podcast_channels.tsv"
    table.write_text(table.read_text(encoding="utf-8").replace("µV", "n/a"), encoding="utf-8")
    with pytest.raises(RecordingError, match="V, mV, µV or nV"):
        first(opened(copy, signal="raw"))


def test_bad_stretches_move_with_the_audio(copy: Path) -> None:
    """An annotation at 2 to 2.5 s of the file; the audio starts at 0.25 s of it."""
    mne = pytest.importorskip("mne")
    path = highgamma(copy)
    raw = mne.io.read_raw_fif(path, preload=True, verbose="error")
    raw.set_annotations(mne.Annotations([2.0], [0.5], ["BAD_spike"]))
    raw.save(path, overwrite=True, verbose="error")
    recording, _ = first(opened(copy, audio_start_s=0.25))
    (span,) = recording.bad_spans
    assert (span.start_s, span.stop_s) == (pytest.approx(1.75), pytest.approx(2.25))
    assert span.label == "BAD_spike"


def test_a_number_beyond_all_bounds(copy: Path, written: Written) -> None:
    path = copy / "stimuli/podcast_transcript.csv"
    replace(path, f",{written.truth.end_s[3]}", ",1e999")
    with pytest.raises(StimulusError, match="'end' is not valid") as caught:
        opened(copy).stimulus("podcast")
    assert f"{path.name}, line 5" in str(caught.value)
    assert "'1e999'" in str(caught.value)


def test_a_wrong_rate_in_the_sidecar_of_the_raw_signal(copy: Path) -> None:
    replace(copy / "sub-01/ieeg/sub-01_task-podcast_ieeg.json", "512.0", "2048")
    dataset = opened(copy, signal="raw")
    with pytest.raises(RecordingError, match="different sampling rates") as caught:
        dataset.recording(dataset.recording_ids()[0])
    assert "2048 in the sidecar, 512 Hz in sub-01_task-podcast_ieeg.edf" in str(caught.value)


def test_a_channel_that_is_not_in_the_table(copy: Path) -> None:
    replace(copy / "sub-01/ieeg/sub-01_task-podcast_channels.tsv", "G2\t", "G77\t")
    dataset = opened(copy, signal="raw")
    with pytest.raises(RecordingError, match="a row for each of the") as caught:
        dataset.recording(dataset.recording_ids()[0])
    assert "no row for G2" in str(caught.value)


def test_no_recordings(copy: Path) -> None:
    shutil.rmtree(copy / "derivatives")
    with pytest.raises(InputError, match=r"no such recordings[\s\S]*change the options signal"):
        opened(copy)


def test_real_word_tables(tmp_path: Path) -> None:
    """The published tables, with recordings of the writer in place of the real ones."""
    real = shared_data("podcast_ds005574")
    write_podcast_ecog(tmp_path, n_subjects=1, n_words=20)
    shutil.rmtree(tmp_path / "stimuli")
    shutil.copytree(real / "stimuli", tmp_path / "stimuli")
    name = "dataset_description.json"
    shutil.copyfile(real / name, tmp_path / name)
    dataset = opened(tmp_path)
    assert isinstance(dataset, PodcastEcog)
    assert dataset.info.version == "1.0.2"
    assert dataset.info.licence == "CC0"
    stimulus = dataset.stimulus("podcast")
    words = stimulus.words
    assert words.height == 5136
    tokens = (tmp_path / "stimuli/gpt2-xl/transcript.tsv").read_text(encoding="utf-8")
    assert tokens.count("\n") == 1 + 5491
    assert sorted(words["word_idx"].to_list()) == list(range(5136))
    assert words["word"].to_list()[:3] == ["Act", "one,", "monkey"]
    assert words["onset_s"][0] == 3.71
    assert words["offset_s"][-1] == 1799.367
    found = {finding.reason: finding for finding in stimulus.findings}
    assert found[Reason.SOURCE_ROWS_SORTED].found.startswith("19 word(s)")
    assert "'Oh' at 42.375 s" in found[Reason.SOURCE_ROWS_SORTED].found
    assert Reason.SOURCE_STANDS_IN in found
    assert Reason.SIDECAR_DISAGREES not in found
    n_sentences = words["sentence_id"].n_unique()
    assert 300 < n_sentences < 600
    first_bits = -np.log2(1.2075547e-05)
    second_bits = -np.log2(0.00034219088) - np.log2(0.05952017)
    np.testing.assert_allclose(stimulus.mechanisms["surprisal"][:2], [first_bits, second_bits])
    assert words["pos"].to_list()[:3] == ["NNP", "CD", "NN"]
    assert words["dep"].to_list()[:3] == ["ROOT", "nummod", "appos"]


def test_real_whisper_table_disagrees(tmp_path: Path) -> None:
    real = shared_data("podcast_ds005574")
    truth = write_podcast_ecog(tmp_path, n_subjects=1, n_words=20)
    vectors = tmp_path / "stimuli/whisper-medium/features.hdf5"
    kept = tmp_path / "kept.hdf5"
    shutil.move(vectors, kept)
    shutil.rmtree(tmp_path / "stimuli")
    shutil.copytree(real / "stimuli", tmp_path / "stimuli")
    shutil.move(kept, vectors)
    stimulus = opened(tmp_path, features=["whisper-medium"]).stimulus("podcast")
    assert stimulus.words.height == 5134
    notes = [f.found for f in stimulus.findings if f.reason == Reason.SIDECAR_DISAGREES]
    assert "2 word(s) not in it: 1561 \"he's\", 4314 'before'" in notes[0]
    assert "5 word(s) at other times; the first is word 1291, 'It'" in notes[1]
    offer = stimulus.features
    with pytest.raises(FeatureError, match=f"{len(truth.vectors)}"):
        offer[FeatureKey("whisper-medium", 0, "full")].load()


def test_real_electrode_tables(tmp_path: Path) -> None:
    real = shared_data("podcast_ds005574")
    write_podcast_ecog(tmp_path, n_subjects=1, n_words=20)
    target = tmp_path / "sub-01/ieeg/sub-01_space-MNI152NLin2009aSym_electrodes.tsv"
    shutil.copyfile(real / "sub-01_electrodes_MNI.tsv", target)
    recording, _ = first(opened(tmp_path))
    unlisted = next(f for f in recording.findings if f.field == "electrodes.tsv")
    assert "G1" in unlisted.found
