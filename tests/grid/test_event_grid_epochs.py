"""Event grids of epoched recordings: as given."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lpact.config import GridConfig
from lpact.datasets.base import Epochs, Recording, RecordingId, Stimulus, Units
from lpact.errors import RecordingError
from lpact.grid import build_grid


def make(values, n_words, lags_ms):
    words = pl.DataFrame(
        {
            "word": [f"w{i}" for i in range(n_words)],
            "onset_s": np.arange(n_words, dtype=float),
            "offset_s": np.arange(n_words) + 0.5,
            "sentence_id": np.arange(n_words) // 2,
            "story_id": ["a"] * n_words,
        },
        schema_overrides={"word": pl.String, "sentence_id": pl.Int64, "story_id": pl.String},
    )
    units = Units(("u0", "u1"), ("roi", "roi"))
    recording = Recording(RecordingId("1", "1", "1", "s"), Epochs(values, lags_ms), units, "epochs.npy")
    return recording, Stimulus(id="s", words=words, where="words.csv")


def test_epochs_are_taken_as_given_with_their_own_lags():
    values = np.random.default_rng(0).standard_normal((2, 5, 3)).transpose(1, 2, 0)
    recording, stimulus = make(values, 3, (-50.0, 0.0, 50.0, 100.0, 150.0))
    grid = build_grid(recording, stimulus, GridConfig(lags_ms=(7.0,), pooling="sum"))
    np.testing.assert_array_equal(grid.responses, values)
    assert grid.responses.flags.c_contiguous
    assert grid.lags_ms == (-50.0, 0.0, 50.0, 100.0, 150.0)
    assert grid.reference_lag == 2
    assert grid.sentence.tolist() == [0, 0, 1]
    assert (grid.n_events, grid.n_candidate_events, grid.exclusions) == (3, 3, ())
    np.testing.assert_array_equal(grid.pool(np.eye(3)), np.eye(3))


@pytest.mark.parametrize(("wanted_ms", "index"), [(100.0, 0), (300.0, 2), (200.0, 1)])
def test_reference_lag_is_the_wanted_one_or_the_middle(wanted_ms, index):
    recording, stimulus = make(np.zeros((3, 4, 2)), 4, (100.0, 150.0, 300.0))
    config = GridConfig(lags_ms=(100.0, 200.0, 300.0), reference_lag_ms=wanted_ms)
    assert build_grid(recording, stimulus, config).reference_lag == index


def test_epochs_have_no_trs():
    recording, stimulus = make(np.zeros((1, 4, 2)), 4, (0.0,))
    with pytest.raises(RecordingError) as error:
        build_grid(recording, stimulus, GridConfig(events="trs"))
    assert error.value.where == "epochs.npy, option 'grid.events'"
    assert "set events = 'words' or 'sentences'" in error.value.remedy


def test_epochs_can_be_sentences_whose_words_are_pooled():
    values = np.random.default_rng(1).standard_normal((1, 2, 2))
    recording, stimulus = make(values, 4, (0.0,))
    grid = build_grid(recording, stimulus, GridConfig(events="sentences", pooling="last"))
    np.testing.assert_array_equal(grid.responses, values)
    assert (grid.onset_s.tolist(), grid.offset_s.tolist()) == ([0.0, 2.0], [1.5, 3.5])
    assert grid.sentence.tolist() == [0, 1]
    np.testing.assert_array_equal(grid.pool(np.arange(4.0)[:, None]).ravel(), [1.0, 3.0])


def test_epochs_that_are_neither_words_nor_sentences_are_named():
    recording, stimulus = make(np.zeros((1, 3, 2)), 4, (0.0,))
    with pytest.raises(RecordingError) as error:
        build_grid(recording, stimulus, GridConfig(events="sentences"))
    assert "3 epochs" in error.value.got
    assert "2 epochs, one per sentence" in error.value.expected
    assert "4 words, 2 sentences" in error.value.remedy


@pytest.mark.parametrize("n_epochs", [0, 3, 5])
def test_there_is_one_epoch_a_word(n_epochs):
    recording, stimulus = make(np.zeros((1, n_epochs, 2)), 4, (0.0,))
    with pytest.raises(RecordingError, match="the epochs and the words do not match") as error:
        build_grid(recording, stimulus, GridConfig())
    assert error.value.got == f"{n_epochs} epochs per lag (shape (1, {n_epochs}, 2))"
    assert error.value.expected == "4 epochs, one per word of words.csv"


def test_no_words_give_an_empty_grid():
    recording, stimulus = make(np.zeros((1, 0, 2)), 0, (0.0,))
    grid = build_grid(recording, stimulus, GridConfig())
    assert grid.n_events == 0
    assert grid.pool(np.zeros((0, 3))).shape == (0, 3)
