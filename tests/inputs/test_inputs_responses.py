"""Responses that are read from datasets: the grid's numbers, with runs as repetitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lpact.config import DatasetConfig, GridConfig, PreprocessConfig
from lpact.datasets.base import DATASETS, Dataset
from lpact.datasets.memory import memory_dataset
from lpact.errors import InputError
from lpact.grid import build_grid
from lpact.inputs.responses import read_responses
from lpact.responses import Responses


def simulated(**options: Any) -> Dataset:
    small = {"n_subjects": 2, "n_runs": 3, "sentences_per_story": 4, "n_units": 6} | options
    return DATASETS.build("simulated", small).open(name="sim", path=None, seed=0)


@pytest.mark.parametrize("events", ["words", "sentences"])
def test_runs_of_one_stimulus_are_repetitions(events: Any) -> None:
    dataset = simulated()
    entry = DatasetConfig(name="sim", reader="simulated", grid=GridConfig(events=events))
    read = read_responses(dataset, entry, subject="02", lag_ms=200.0)
    runs = [i for i in dataset.recording_ids() if i.subject == "02"]
    stimulus = dataset.stimulus(runs[0].stimulus)
    assert read.n_repetitions == len(runs) == 3
    for repetition, recording_id in enumerate(runs):
        grid = build_grid(dataset.recording(recording_id), stimulus, entry.grid)
        np.testing.assert_array_equal(read.values[:, repetition], grid.responses[2])
    units = dataset.recording(runs[0]).units
    assert (read.unit_ids, read.regions) == (units.ids, units.regions)
    assert (read.subject, read.session) == ("02", "01")
    assert read.words is not None
    assert read.words["word"].to_list() == stimulus.words["word"].to_list()
    assert set(read.groups or ()) == set(stimulus.words["story_id"])


def test_filtered_scans_hold_the_words_that_begin_in_them() -> None:
    dataset = simulated(modality="fmri", n_runs=1)
    grid = GridConfig(events="trs", tr_features="hrf", lags_ms=(0.0,))
    read = read_responses(dataset, DatasetConfig(name="sim", reader="simulated", grid=grid), subject="01")
    stimulus = dataset.stimulus(dataset.recording_ids()[0].stimulus)
    assert read.words is not None
    assert read.words["word"].to_list() == stimulus.words["word"].to_list()
    assert read.onset_s is not None
    starts = dict(zip(read.stimulus_ids, read.onset_s.tolist(), strict=True))
    step_s = float(np.median(np.diff(read.onset_s)))
    for owner, onset_s in read.words.select("stimulus_id", "onset_s").iter_rows():
        assert starts[owner] <= onset_s < starts[owner] + step_s + 1e-9


def test_items_come_back_as_they_went_in() -> None:
    values = np.random.default_rng(0).normal(size=(5, 2, 3))
    values[1, 1, 0] = np.nan
    made = Responses.from_numpy(
        values,
        stimulus_ids=list("edcba"),
        regions=["x", "y", "y"],
        coordinates_mm=np.eye(3),
        coordinate_frame="MNI",
        groups=["g", "g", "h", "h", "h"],
        subject="s1",
        session="2",
    )
    missing = PreprocessConfig(missing="drop_events")
    entry = DatasetConfig(name="d", reader="memory", preprocess=missing)
    back = read_responses(memory_dataset([made]), entry, subject="s1", session="2")
    kept = made.values.copy()
    kept[1, 1] = np.nan
    np.testing.assert_array_equal(back.values, kept)
    for name in ("stimulus_ids", "unit_ids", "regions", "groups", "subject", "session"):
        assert getattr(back, name) == getattr(made, name), name
    np.testing.assert_array_equal(back.coordinates_mm, np.eye(3))  # type: ignore[arg-type]
    assert back.onset_s is None
    assert back.words is None
    keep = DatasetConfig(name="d", reader="memory", preprocess=PreprocessConfig(missing="keep"))
    same = read_responses(memory_dataset([made]), keep, subject="s1")
    np.testing.assert_array_equal(same.values, made.values)
    unusable = read_responses(memory_dataset([made]), subject="s1")
    assert np.isnan(unusable.values[:, 1, 0]).all(), "a unit with a gap is unusable in that run"
    assert unusable.n_missing == 5


def test_runs_with_other_units_are_joined_by_name() -> None:
    parts = [
        Responses.from_numpy(np.arange(6.0).reshape(3, 2), unit_ids=ids, session=session)
        for ids, session in ((["a", "b"], "1"), (["b", "c"], "2"))
    ]
    read = read_responses(memory_dataset(parts), subject="01")
    assert (read.unit_ids, read.session) == (("a", "b", "c"), "all")
    np.testing.assert_array_equal(read.values[:, 0, :2], parts[0].values[:, 0])
    np.testing.assert_array_equal(read.values[:, 1, 1:], parts[1].values[:, 0])
    assert read.n_missing == 6


def test_what_is_not_there_is_named() -> None:
    dataset = simulated(n_runs=1)
    with pytest.raises(InputError, match="no such recordings") as error:
        read_responses(dataset, subject="2")
    assert error.value.remedy == "did you mean '02'?"
    with pytest.raises(InputError, match="no lag in ms '50'") as error:
        read_responses(dataset, subject="01", lag_ms=50.0)
    assert error.value.expected == "one of 0, 100, 200, 300"


def test_regions_are_means_of_their_usable_units() -> None:
    values = np.random.default_rng(0).normal(size=(4, 3))
    values[1, 0] = np.nan
    made = Responses.from_numpy(values, regions=["x", "x", "y"])
    entry = DatasetConfig(name="d", reader="memory", grid=GridConfig(units="regions"))
    read = read_responses(memory_dataset([made]), entry, subject="01")
    assert read.unit_ids == ("x", "y")
    np.testing.assert_array_equal(read.values[:, 0], values[:, 1:])
