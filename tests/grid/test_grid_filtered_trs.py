"""TRs that words reach through a filter, and finite impulse responses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from lpact.config import GridConfig
from lpact.datasets.base import Recording, RecordingId, Span, Stimulus, TimeSeries, Units
from lpact.errors import ConfigError, RecordingError
from lpact.grid import build_grid
from lpact.math.resample import HRFS

TR_S = 2.0
N_TRS = 40


def make(onsets_s, *, start_s=0.0, **kwargs):
    onset = np.asarray(onsets_s, dtype=float)
    table = pl.DataFrame(
        {
            "word": [f"w{i}" for i in range(onset.size)],
            "onset_s": onset,
            "offset_s": onset + 0.4,
            "sentence_id": np.arange(onset.size) // 4,
            "story_id": ["a"] * onset.size,
        },
        schema_overrides={"sentence_id": pl.Int64},
    )
    values = np.repeat(np.arange(float(N_TRS))[:, None], 2, axis=1)
    signal = TimeSeries(values, 1 / TR_S, start_s)
    units = Units(("a", "b"), ("r", "r"))
    recording = Recording(RecordingId("1", "1", "1", "s"), signal, units, "bold.nii", **kwargs)
    return recording, Stimulus(id="s", words=table, where="words.tsv")


HRF = GridConfig(events="trs", tr_features="hrf", lags_ms=(0.0,))
LANCZOS = GridConfig(events="trs", tr_features="lanczos", lags_ms=(0.0,))


def test_an_impulse_becomes_the_response_sampled_at_the_trs():
    recording, stimulus = make([10.3, 60.0])
    grid = build_grid(recording, stimulus, HRF)
    assert grid.onset_s.tolist() == [10.0 + TR_S * k for k in range(26)]
    assert grid.responses[0, :, 0].tolist() == [5.0 + k for k in range(26)]
    feature = grid.pool(np.array([[3.0], [0.0]]))[:, 0]
    np.testing.assert_allclose(feature, 3.0 * HRFS["spm"](grid.onset_s - 10.3), atol=1e-15)
    assert grid.exclusions == ()


def test_trs_without_words_are_kept_and_belong_to_the_sentence_before():
    recording, stimulus = make([0.0, 1.0, 2.0, 3.0, 20.0, 30.0])
    grid = build_grid(recording, stimulus, LANCZOS)
    assert grid.n_events == 16
    assert grid.sentence.tolist() == [0] * 10 + [1] * 6


def test_constant_features_stay_nearly_constant_where_words_are_dense():
    recording, stimulus = make(np.arange(0, 78, 0.5))
    grid = build_grid(recording, stimulus, LANCZOS)
    values = grid.pool(np.ones((156, 1)))[:, 0]
    inner = values[4:-4]
    assert inner.std() / inner.mean() < 1e-3


def test_lags_move_the_response_not_the_features():
    recording, stimulus = make([10.0, 30.0])
    config = GridConfig(events="trs", tr_features="lanczos", lags_ms=(0.0, 4000.0))
    grid = build_grid(recording, stimulus, config)
    np.testing.assert_array_equal(grid.responses[1] - grid.responses[0], 2.0)


FIR = LANCZOS.model_copy(update={"fir_ms": (0.0, 2000.0, 6000.0)})
DELAYS = (0, 1, 3)


def test_fir_puts_delays_side_by_side():
    """Where the row that a delay asks for is on the grid, the block holds that row, bit for bit."""
    recording, stimulus = make(np.arange(0, 60, 1.0))
    plain, grid = (build_grid(recording, stimulus, config) for config in (LANCZOS, FIR))
    assert (plain.n_delays, grid.n_delays, grid.fir_delays) == (1, 3, DELAYS)
    values = np.random.default_rng(0).standard_normal((60, 2))
    undelayed, rows = plain.pool(values), grid.pool(values)
    assert rows.shape == (grid.n_events, 6)
    longest = max(DELAYS)
    for j, delay in enumerate(DELAYS):
        own = undelayed[longest - delay : len(undelayed) - delay]
        np.testing.assert_array_equal(rows[longest:, 2 * j : 2 * j + 2], own)
    np.testing.assert_array_equal(grid.responses, plain.responses)


def test_a_delay_before_the_first_tr_sees_the_filter_there():
    """Nothing is filled in: before the first word the filter fades to nothing."""
    recording, stimulus = make(np.arange(7.0, 60, 1.0), start_s=5.0)
    grid = build_grid(recording, stimulus, FIR)
    rows = grid.pool(np.ones((53, 1)))
    middle_s = stimulus.words["onset_s"].to_numpy() + 0.2
    for event, time_s in enumerate(grid.onset_s[:4]):
        for j, delay in enumerate(DELAYS):
            u = (time_s - TR_S * delay - middle_s) / TR_S
            kernel = np.where(np.abs(u) < 3, np.sinc(u) * np.sinc(u / 3), 0.0)
            assert rows[event, j] == pytest.approx(kernel.sum(), abs=1e-12)


def test_trs_left_out_change_no_other_row():
    onsets = np.arange(0, 60, 1.0)
    values = np.random.default_rng(1).standard_normal((60, 2))
    whole = build_grid(*make(onsets), FIR)
    holed = build_grid(*make(onsets, bad_spans=(Span(20.0, 23.0, "motion"),)), FIR)
    at = dict(zip(whole.onset_s, whole.pool(values), strict=True))
    assert 0 < holed.n_events < whole.n_events
    assert np.diff(holed.onset_s).max() > TR_S
    for onset, row in zip(holed.onset_s, holed.pool(values), strict=True):
        np.testing.assert_array_equal(row, at[onset])


def test_rows_depend_on_words_within_reach_alone():
    """Words of a held-out stretch touch its rows, and those within the filter's reach and the longest delay of it."""
    onsets = np.arange(0, 78, 0.5)
    grid = build_grid(*make(onsets), FIR)
    values = np.random.default_rng(2).standard_normal((onsets.size, 2))
    spoiled = values.copy()
    held = (onsets >= 30.0) & (onsets < 44.0)
    spoiled[held] += 1000.0
    changed = (grid.pool(values) != grid.pool(spoiled)).any(axis=1)
    reach_s = 3 * TR_S
    within = (grid.onset_s > 30.2 - reach_s) & (grid.onset_s < 43.7 + reach_s + 6.0)
    assert changed.any()
    assert not changed[~within].any()
    assert changed[(grid.onset_s >= 30.0) & (grid.onset_s < 44.0)].all()


def test_a_story_is_heard_into_the_next_one():
    """Stories of one recording follow each other in time: what was heard six seconds ago may be the one before."""
    recording, stimulus = make(np.arange(0, 60, 1.0))
    words = stimulus.words.with_columns(story_id=pl.Series(["a"] * 28 + ["b"] * 32))
    values = np.random.default_rng(3).standard_normal((60, 1))
    one = build_grid(recording, stimulus, FIR)
    two = build_grid(recording, replace(stimulus, words=words), FIR)
    assert np.unique(two.story).tolist() == [0, 1]
    np.testing.assert_array_equal(one.pool(values), two.pool(values))


def test_a_delay_between_trs_is_named():
    recording, stimulus = make(np.arange(0, 60, 1.0))
    config = LANCZOS.model_copy(update={"fir_ms": (0.0, 3000.0)})
    with pytest.raises(RecordingError) as error:
        build_grid(recording, stimulus, config)
    assert "grid.fir_ms" in error.value.where
    assert error.value.remedy == "use 2000 or 4000 ms instead"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tr_features": "hrf"}, 'requires events = "trs"'),
        ({"events": "trs", "fir_ms": (0.0,)}, 'requires tr_features = "lanczos"'),
        ({"events": "trs", "tr_features": "lanczos", "fir_ms": (2.0, 2.0)}, "lists a value twice"),
    ],
)
def test_options_that_do_not_go_together(options, message):
    with pytest.raises(ConfigError, match=message):
        GridConfig(**options)
