"""TRs that words reach through a filter, and finite impulse responses."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lpact.config import GridConfig
from lpact.datasets.base import Recording, RecordingId, Span, Stimulus, TimeSeries, Units
from lpact.errors import RecordingError
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


def test_fir_puts_delays_side_by_side():
    recording, stimulus = make(np.arange(0, 60, 1.0))
    config = LANCZOS.model_copy(update={"fir_ms": (0.0, 2000.0, 4000.0)})
    grid = build_grid(recording, stimulus, config)
    rows = np.random.default_rng(0).standard_normal((grid.n_events, 3))
    design = grid.design(rows)
    assert design.shape == (grid.n_events, 9)
    np.testing.assert_allclose(design[:, :3], rows, atol=1e-15)
    np.testing.assert_allclose(design[2:, 6:], rows[:-2], atol=1e-15)
    np.testing.assert_allclose(design[:2, 6:], np.tile(rows.mean(axis=0), (2, 1)), atol=1e-15)


def test_fir_does_not_reach_over_rows_that_were_left_out():
    spans = (Span(20.0, 23.0, "motion"),)
    recording, stimulus = make(np.arange(0, 60, 1.0), bad_spans=spans)
    config = LANCZOS.model_copy(update={"fir_ms": (0.0, 2000.0)})
    grid = build_grid(recording, stimulus, config)
    gap = int(np.flatnonzero(np.diff(grid.row_number) > 1)[0]) + 1
    rows = np.arange(grid.n_events, dtype=float)[:, None]
    design = grid.design(rows)
    assert design[gap, 1] == rows.mean()
    assert design[gap + 1, 1] == rows[gap, 0]


def test_without_fir_the_design_is_the_rows_themselves():
    recording, stimulus = make(np.arange(0, 60, 1.0))
    grid = build_grid(recording, stimulus, HRF)
    rows = np.ones((grid.n_events, 2))
    assert grid.design(rows) is rows


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
        ({"tr_features": "hrf"}, 'asks for events = "trs"'),
        ({"events": "trs", "fir_ms": (0.0,)}, 'asks for tr_features = "lanczos"'),
        ({"events": "trs", "tr_features": "lanczos", "fir_ms": (2.0, 2.0)}, "lists a delay twice"),
    ],
)
def test_options_that_do_not_go_together(options, message):
    with pytest.raises(ValueError, match=message):
        GridConfig(**options)
