"""Blocks do not change results; z-scores; the whole chain on a stream and on the event grid."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import polars as pl
import pytest
from small_recordings import Stream, noise, processed, recording, values_of

from lpact.config import GridConfig
from lpact.datasets import series
from lpact.datasets.base import WORD_COLUMNS, Stimulus, TimeSeries
from lpact.datasets.series import unit_blocks
from lpact.errors import RecordingError
from lpact.grid import build_grid
from lpact.preprocess import apply

EVERYTHING: dict[str, Any] = {
    "drop_channels": ("LA7",),
    "notch_hz": (50.0,),
    "highpass_hz": 2.0,
    "lowpass_hz": 40.0,
    "envelope": "hilbert",
    "resample_hz": 100.0,
    "zscore": True,
}


@pytest.mark.parametrize("reference", ["none", "average", "bipolar", "laplacian"])
def test_results_do_not_depend_on_blocks(reference: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = noise(3000, 8).astype(np.float32)
    values[:, 4] = 1.0
    options = EVERYTHING | {"reference": reference}
    whole = processed(recording(values), **options)
    expected = values_of(whole)
    assert expected.shape[0] == 600
    for unit_major in (True, False):
        for n_bytes in (1, 8 * 3000 * 3):
            monkeypatch.setattr(series, "BLOCK_BYTES", n_bytes)
            result = processed(recording(Stream(values, unit_major=unit_major)), **options)
            assert result.units == whole.units
            assert result.findings == whole.findings
            for width in (1, 8 * 600 * 2, 8 * 600 * 100):
                blocks = unit_blocks(result.signal.values, width)
                read = np.concatenate([block for _, block in blocks], axis=1)
                np.testing.assert_array_equal(read, expected)
    # Out of order and repeated, too.
    np.testing.assert_array_equal(whole.signal.read([2, 0, 2]), expected[:, [2, 0, 2]])


def test_a_slow_result_does_not_read_many_fast_units_at_once() -> None:
    """256 MiB of a result at 10 Hz would be hundreds of units of its source."""
    stream = Stream(noise(3000, 8), unit_major=False)
    fitting = 8 * 3000 * 2
    slow = apply.Preprocessed(
        stream,
        apply.Chain.of(apply.PreprocessConfig(resample_hz=10.0), 500.0),
        block_bytes=fitting,
    )
    assert slow.read(range(8)).shape == (60, 8)
    assert stream.reads == [(0, 1), (2, 3), (4, 5), (6, 7)]


def test_a_large_array_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    values = noise(50_000, 20)
    monkeypatch.setattr(series, "BLOCK_BYTES", values.nbytes // 4)
    tracemalloc.start()
    try:
        result = processed(recording(values), drop_channels=("LA1",), lowpass_hz=40.0)
        first = result.signal.read([0])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert first.shape == (50_000, 1)
    assert peak < values.nbytes / 2


@pytest.mark.parametrize("missing", ["drop_units", "drop_events"])
def test_zscores_are_over_finite_samples(missing: str) -> None:
    values = noise(500, 3)
    values[10:20, 1] = np.nan
    values[:, 2] = 0.1
    result = processed(recording(values), zscore=True, missing=missing)
    scaled = values_of(result)
    np.testing.assert_allclose(np.nanmean(scaled[:, :2], axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(scaled[:, :2], axis=0), 1.0, atol=1e-12)
    assert np.isnan(scaled[10:20, 1]).all()
    assert (scaled[:, 2] == 0.1).all()
    assert result.signal.physical_unit == "standard deviations"


def test_steps_come_in_the_documented_order() -> None:
    """Selection, notch, reference, band, envelope, rate, z-score, each by a call of its own."""
    values = noise(4000, 5)
    at_once = processed(recording(values), **EVERYTHING | {"reference": "average"})
    step = recording(values)
    for options in (
        {"drop_channels": ("LA7",)},
        {"reference": "average"},
        {"notch_hz": (50.0,), "highpass_hz": 2.0, "lowpass_hz": 40.0},
        {"envelope": "hilbert"},
        {"resample_hz": 100.0},
        {"zscore": True},
    ):
        step = processed(step, **options)
    np.testing.assert_allclose(values_of(at_once), values_of(step), rtol=0, atol=1e-12)


def test_words_meet_the_same_moment_after_all_steps() -> None:
    """A burst of 100 Hz after every word is a peak of the envelope at that word, to one new sample."""
    rate_hz, start_s = 500.0, 1.3
    onsets_s = np.cumsum(np.random.default_rng(0).uniform(0.5, 1.5, size=20)) + 3.0
    times_s = start_s + np.arange(15_000) / rate_hz
    bursts = np.zeros(times_s.size)
    for onset in onsets_s:
        bursts += np.exp(-0.5 * ((times_s - onset) / 0.02) ** 2)
    values = noise(times_s.size, 2) * 0.01
    values[:, 0] += bursts * np.sin(2 * np.pi * 100 * times_s)
    result = processed(
        recording(values, start_s=start_s),
        highpass_hz=70.0,
        lowpass_hz=150.0,
        envelope="hilbert",
        resample_hz=100.0,
    )
    words = pl.DataFrame(
        {
            "word": ["word"] * 20,
            "onset_s": onsets_s,
            "offset_s": onsets_s + 0.1,
            "sentence_id": list(range(20)),
            "story_id": ["s"] * 20,
        },
        schema=WORD_COLUMNS,
    )
    lags_ms = tuple(float(lag) for lag in range(-50, 60, 10))
    grid = build_grid(result, Stimulus("story", words, "words"), GridConfig(lags_ms=lags_ms, window_ms=10.0))
    best = np.array(lags_ms)[np.argmax(grid.responses[:, :, 0], axis=0)]
    assert np.abs(best).max() <= 10.0
    assert np.abs(best).mean() < 5.0


def test_confounds_leave_with_their_samples() -> None:
    confounds = pl.DataFrame({"rot_x": np.arange(100.0)})
    source = recording(noise(100, 2), confounds=confounds)
    assert processed(source, zscore=True).confounds is confounds
    assert processed(source, resample_hz=100.0).confounds is None


def test_a_signal_of_whole_numbers_is_taken() -> None:
    values = np.round(noise(2000, 3) * 100).astype(np.int16)
    result = processed(recording(values), lowpass_hz=40.0, reference="average")
    expected = processed(recording(values.astype(np.float64)), lowpass_hz=40.0, reference="average")
    np.testing.assert_array_equal(values_of(result), values_of(expected))
    assert isinstance(result.signal, TimeSeries)
    assert result.signal.values.dtype == np.float64


# --- Cleaning of fMRI series ---------------------------------------------------------------------


def test_confounds_and_line_are_regressed_out() -> None:
    n_samples = 120
    rng = np.random.default_rng(1)
    motion = rng.standard_normal((n_samples, 3)).cumsum(axis=0)
    line = np.arange(n_samples)[:, None]
    values = noise(n_samples, 6) + motion @ rng.standard_normal((3, 6)) + 0.2 * line
    values[:, 4] = 2.5
    values[7, 5] = np.nan
    names = ("rot_x", "rot_y", "csf")
    confounds = pl.DataFrame(dict(zip(names, motion.T, strict=True)))
    source = recording(values, rate_hz=0.5, confounds=confounds)
    result = processed(source, detrend=True, confounds=("rot_*",))
    design = np.hstack([np.ones((n_samples, 1)), line, motion[:, :2]])
    weights = np.linalg.lstsq(design, values[:, :4], rcond=None)[0]
    cleaned = values_of(result)
    np.testing.assert_allclose(cleaned[:, :4], values[:, :4] - design @ weights, atol=1e-9)
    assert (cleaned[:, 4] == 2.5).all()
    assert np.isnan(cleaned[:, 5]).all()
    one_by_one = np.concatenate([result.signal.read([unit]) for unit in range(6)], axis=1)
    np.testing.assert_allclose(one_by_one, cleaned, rtol=0, atol=1e-12)


def test_slow_periods_are_taken_out() -> None:
    """300 volumes of 2 s: cosines with periods of 240 s and 20 s, which do not overlap."""
    slow, fast = (np.cos(np.pi * k * (np.arange(300) + 0.5) / 300) for k in (5, 60))
    source = recording((slow + fast)[:, None], rate_hz=0.5)
    cleaned = values_of(processed(source, highpass_s=128.0))[:, 0]
    np.testing.assert_allclose(cleaned, fast, atol=1e-9)


@pytest.mark.parametrize(("known", "remedy"), [(True, "did you mean 'rot_x'?"), (False, "none is")])
def test_a_confound_that_is_not_there(known: bool, remedy: str) -> None:
    confounds = pl.DataFrame({"rot_x": np.arange(50.0)}) if known else None
    with pytest.raises(RecordingError, match="there is no confound 'rotx'") as caught:
        processed(recording(noise(50, 2), confounds=confounds), confounds=("rotx",))
    assert "small recording, option 'preprocess.confounds'" in str(caught.value)
    assert remedy in str(caught.value)
