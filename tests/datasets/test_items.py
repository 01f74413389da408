"""Items that are not words, or words without times: what is unknown is named, and nothing is computed from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from lpact.codes import Reason
from lpact.config import DatasetConfig, GridConfig, NuisanceConfig, PreprocessConfig
from lpact.datasets.base import (
    DATASETS,
    WORD_COLUMNS,
    Epochs,
    Recording,
    RecordingId,
    Stimulus,
    TimeSeries,
    Units,
    items_table,
)
from lpact.datasets.folder import write_folder
from lpact.datasets.memory import memory_dataset
from lpact.datasets.validate import check_stimulus
from lpact.errors import InputError, RecordingError, StimulusError
from lpact.features.nuisance import NUISANCE, build_nuisance
from lpact.grid import build_grid, read_grid
from lpact.inputs.responses import read_responses
from lpact.responses import Responses

N_ITEMS = 6
PICTURES = pl.DataFrame({"item": ["7", "3", "cat", "dog", "cup", "car"], "size": [1, 2, 3, 4, 5, 6]})


def pictures() -> Stimulus:
    words, unknown = items_table(PICTURES, "pictures")
    return Stimulus("pictures", words, "items.tsv", unknown=unknown)


def recording(values: np.ndarray) -> Recording:
    units = Units(("a", "b", "c"), ("V1", "V1", "IT"))
    identity = RecordingId("01", "1", "1", "pictures")
    return Recording(identity, Epochs(values, (0.0,)), units, "neural.npy")


def test_placeholders_are_well_formed_and_named() -> None:
    stimulus = pictures()
    check_stimulus(stimulus)
    assert stimulus.unknown == frozenset(WORD_COLUMNS)
    assert stimulus.words["word"].to_list() == PICTURES["item"].to_list()
    assert stimulus.words["size"].to_list() == PICTURES["size"].to_list()
    assert not stimulus.has_text
    assert stimulus.lacks("onset_s", "word") == "its items have no columns 'onset_s', 'word'"
    words, unknown = items_table(
        pl.DataFrame({"word": list("abc"), "onset_s": [0.5, 1.0, 2.0], "sentence_id": ["x", "x", "y"]}),
        "story",
    )
    assert unknown == {"offset_s", "story_id"}
    assert words["offset_s"].to_list() == [0.5, 1.0, 2.0]
    assert words["sentence_id"].to_list() == [0, 0, 1]
    assert words["story_id"].to_list() == ["story"] * 3


def test_nuisance_features_are_computed_from_known_columns_alone() -> None:
    values, columns, missing = build_nuisance(pictures(), NuisanceConfig(include=tuple(NUISANCE)))
    assert set(columns) == {f"position_in_story_{i}" for i in range(5)}
    np.testing.assert_allclose(values[:, 0], np.arange(N_ITEMS) / (N_ITEMS - 1))
    assert set(missing) == set(NUISANCE) - {"position_in_story"}
    assert {m.reason for m in missing.values()} == {Reason.NUISANCE_NOT_OFFERED}
    assert "its items have no column 'word'" in missing["log_frequency"].detail
    words, unknown = items_table(pl.DataFrame({"word": ["a", "tree"]}), "s")
    _, columns, missing = build_nuisance(
        Stimulus("s", words, "w", unknown=unknown),
        NuisanceConfig(include=("word_length", "word_rate", "sentence_length")),
    )
    assert columns == ("word_length",)
    assert set(missing) == {"word_rate", "sentence_length"}


def test_epochs_of_items_are_events() -> None:
    values = np.random.default_rng(0).normal(size=(1, N_ITEMS, 3))
    grid = build_grid(recording(values), pictures(), GridConfig())
    np.testing.assert_array_equal(grid.responses, values)
    assert grid.lags_ms == (0.0,)
    features = np.arange(12.0).reshape(N_ITEMS, 2)
    np.testing.assert_array_equal(grid.pool(features), features)


def test_a_time_series_needs_times() -> None:
    series = TimeSeries(np.random.default_rng(0).normal(size=(100, 3)), 10.0)
    with pytest.raises(RecordingError, match="needs the times of its items") as error:
        build_grid(replace(recording(np.zeros((1, 1, 3))), signal=series), pictures(), GridConfig())
    assert "onset_s" in str(error.value.remedy)


@pytest.mark.parametrize("missing_events", [False, True])
def test_missing_epochs_cost_units_or_events(missing_events: bool) -> None:
    values = np.random.default_rng(0).normal(size=(1, N_ITEMS, 3))
    values[0, 2, 1] = np.nan
    values[0, :, 2] = np.nan
    rules = PreprocessConfig(missing="drop_events" if missing_events else "drop_units")
    read = read_grid(recording(values), pictures(), GridConfig(), rules)
    if not missing_events:
        assert read.usable == [0]
        assert read.grid.n_events == N_ITEMS
        return
    assert read.usable == [0, 1], "a unit without any value stays unusable"
    kept = [0, 1, 3, 4, 5]
    np.testing.assert_array_equal(read.grid.responses[..., :2], values[:, kept, :2])
    assert read.grid.first_word.tolist() == kept
    assert read.grid.n_candidate_events == N_ITEMS
    (exclusion,) = read.grid.exclusions
    assert (exclusion.reason, exclusion.n_events) == (Reason.MISSING_SAMPLES, 1)
    assert exclusion.detail.startswith("epoch 2 ")


def test_a_folder_of_items_is_read_as_it_was_written(tmp_path: Path) -> None:
    responses = Responses.from_numpy(
        np.random.default_rng(0).normal(size=(N_ITEMS, 2, 3)),
        stimulus_ids=PICTURES["item"].to_list(),
        regions=["V1", "V1", "IT"],
        coordinates_mm=[[1.0, 2.0, 3.0], [np.nan] * 3, [4.0, 5.0, 6.0]],
        coordinate_frame="MNI",
        comparable_units=False,
        subject="s7",
    )
    made = memory_dataset([responses], PICTURES)
    write_folder(made, tmp_path / "data")
    assert (tmp_path / "data" / "stimuli" / "stimuli" / "items.tsv").is_file()
    read = DATASETS.build("memory").open(name="data", path=tmp_path / "data", seed=0)
    assert read.recording_ids() == made.recording_ids()
    stimulus, own = read.stimulus("stimuli"), made.stimulus("stimuli")
    assert stimulus.words.equals(own.words.select(stimulus.words.columns))
    assert stimulus.unknown == own.unknown
    for recording_id in read.recording_ids():
        a, b = read.recording(recording_id), made.recording(recording_id)
        np.testing.assert_array_equal(a.signal.values, b.signal.values)
        assert a.units.comparable is False
        assert a.units.coordinates_mm is not None
        np.testing.assert_array_equal(a.units.coordinates_mm, b.units.coordinates_mm)


def test_a_stimulus_has_one_table(tmp_path: Path) -> None:
    made = memory_dataset([Responses.from_numpy(np.eye(3))])
    write_folder(made, tmp_path / "data")
    folder = tmp_path / "data" / "stimuli" / "stimuli"
    (folder / "words.tsv").write_text("word\na\n")
    with pytest.raises(StimulusError, match="a table of words and a table of items"):
        DATASETS.build("folder").open(name="data", path=tmp_path / "data", seed=0)
    (folder / "words.tsv").unlink()
    (folder / "items.tsv").write_text("name\na\nb\nc\n")
    read = DATASETS.build("folder").open(name="data", path=tmp_path / "data", seed=0)
    with pytest.raises(StimulusError, match="the column 'item' is missing"):
        read.stimulus("stimuli")


def test_arrays_of_items(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(3, N_ITEMS))
    np.save(tmp_path / "betas.npy", values)
    (tmp_path / "pictures.csv").write_text("name,story\n" + "".join(f"{i},a\n" for i in range(6)))
    (tmp_path / "units.tsv").write_text("unit\tregion\na\tV1\nb\tV1\nc\tIT\n")
    table = (
        '[dataset]\nsource = "x"\nversion = "1"\nlicence = "CC0"\n'
        '[[stimuli]]\nid = "pictures"\nitems = "pictures.csv"\n'
        'columns = {{ item = "name", story_id = "story" }}\n'
        '[[recordings]]\nsubject = "01"\nstimulus = "pictures"\nfile = "betas.npy"\n'
        'units = "units.tsv"\naxes = "{axes}"\n'
    )
    (tmp_path / "recordings.toml").write_text(table.format(axes="unit,item"))
    dataset = DATASETS.build("arrays").open(name="mine", path=tmp_path, seed=0)
    (recording_id,) = dataset.recording_ids()
    signal = dataset.recording(recording_id).signal
    assert isinstance(signal, Epochs)
    np.testing.assert_array_equal(signal.values, values.T[None])
    stimulus = dataset.stimulus("pictures")
    assert stimulus.unknown == {"word", "onset_s", "offset_s", "sentence_id"}
    assert stimulus.words["item"].to_list() == [str(i) for i in range(6)]
    assert "pictures.csv" in {file.path for file in dataset.source_files()}
    (tmp_path / "recordings.toml").write_text(table.format(axes="item,unit"))
    with pytest.raises(InputError, match="do not match"):
        DATASETS.build("arrays").open(name="mine", path=tmp_path, seed=0).recording(recording_id)


def test_arrays_of_repetitions_of_training_and_test_items(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(2, 2, N_ITEMS, 3))
    values[1, 1, 4] = np.nan
    sets = ["train"] * 4 + ["test"] * 2
    lines = ["item\tstory_id", *(f"v{i}\t{own}" for i, own in enumerate(sets))]
    (tmp_path / "videos.tsv").write_text("\n".join(lines) + "\n")
    (tmp_path / "units.tsv").write_text("unit\tregion\na\tV1\nb\tV1\nc\tIT\n")
    table = (
        '[dataset]\nsource = "x"\nversion = "1"\nlicence = "CC0"\n'
        '[[stimuli]]\nid = "videos"\nitems = "videos.tsv"\n'
        '[defaults]\nstimulus = "videos"\nfile = "{subject}-{run}.npy"\n'
        'units = "units.tsv"\naxes = "item,unit"\ncomparable_units = true\n'
    )
    for subject in (0, 1):
        for run in (0, 1):
            np.save(tmp_path / f"s{subject}-{run}.npy", values[subject, run])
            table += f'[[recordings]]\nsubject = "s{subject}"\nrun = "{run}"\n'
    (tmp_path / "recordings.toml").write_text(table)
    dataset = DATASETS.build("arrays").open(name="mine", path=tmp_path, seed=0)
    entry = DatasetConfig(name="mine", reader="arrays", preprocess=PreprocessConfig(missing="keep"))
    for subject in (0, 1):
        read = read_responses(dataset, entry, subject=f"s{subject}")
        np.testing.assert_array_equal(read.values, values[subject].transpose(1, 0, 2))
        assert read.stimulus_ids == tuple(f"v{i}" for i in range(N_ITEMS))
        assert read.groups == tuple(sets)
        assert read.regions == ("V1", "V1", "IT")
        assert read.comparable_units
