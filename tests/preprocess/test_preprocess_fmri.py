"""Cleaning of fMRI series against closed forms: what was planted vanishes, what is orthogonal stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from nilearn import signal as nilearn_signal
from small_recordings import noise, processed, recording, values_of

from lpact.codes import Reason
from lpact.config import GridConfig
from lpact.datasets.base import Stimulus
from lpact.errors import RecordingError
from lpact.grid import read_grid
from lpact.preprocess.fmri import Cleaning

N = 240
TR_S = 1.5


def cosine(k: int) -> np.ndarray:
    """Return the cosine with period 2 N TR / k, a column of the discrete cosine transform."""
    return np.cos(np.pi * k * (np.arange(N) + 0.5) / N)


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def clean_series(values: np.ndarray, **options: Any) -> np.ndarray:
    return Cleaning.of(len(values), **options)(values.copy())


def test_without_options_nothing_changes() -> None:
    values = rng().standard_normal((N, 3))
    np.testing.assert_array_equal(clean_series(values, tr_s=TR_S), values)
    empty = np.empty((N, 0))
    np.testing.assert_array_equal(clean_series(values, tr_s=TR_S, confounds=empty), values)


def test_detrending_leaves_the_residual_of_a_straight_line() -> None:
    values = rng().standard_normal((N, 3)) + np.arange(N)[:, None] * [0.0, 0.1, -2.0] + 100.0
    line = np.stack([np.ones(N), np.arange(N)], axis=1)
    expected = values - line @ np.linalg.lstsq(line, values, rcond=None)[0]
    np.testing.assert_allclose(clean_series(values, tr_s=TR_S, detrend=True), expected, atol=1e-9)


def test_the_high_pass_takes_slow_cosines_and_leaves_fast_ones() -> None:
    # Periods are 720 s / k: with a cut-off of 120 s, k = 1 to 6 go and k = 7 stays.
    slow, fast = cosine(6), cosine(7)
    values = np.stack([slow, fast, 3.0 * cosine(1) + fast + 50.0], axis=1)
    cleaned = clean_series(values, tr_s=TR_S, highpass_s=120.0)
    expected = np.stack([np.zeros(N), fast, fast + 50.0], axis=1)
    np.testing.assert_allclose(cleaned, expected, atol=1e-10)


def test_a_planted_confound_vanishes_and_an_orthogonal_signal_stays() -> None:
    confounds = np.stack([cosine(20), cosine(31) + 7.0], axis=1)
    signal = cosine(50)
    values = (signal + 4.0 * confounds[:, 0] - 2.0 * confounds[:, 1] + 10.0)[:, None]
    cleaned = clean_series(values, tr_s=TR_S, confounds=confounds)
    np.testing.assert_allclose(cleaned[:, 0] - cleaned.mean(), signal, atol=1e-9)
    assert cleaned.mean() == pytest.approx(values.mean())


def test_confounds_high_pass_and_line_together_are_one_least_squares_fit() -> None:
    generator = rng()
    confounds = generator.standard_normal((N, 4)).cumsum(axis=0)
    values = generator.standard_normal((N, 5)).cumsum(axis=0)
    cleaned = clean_series(values, tr_s=TR_S, detrend=True, highpass_s=100.0, confounds=confounds)
    line = np.stack([np.ones(N), np.arange(N)], axis=1)
    cosines = np.stack([cosine(k) for k in range(1, 8)], axis=1)
    design = np.hstack([line, cosines, confounds])
    expected = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    np.testing.assert_allclose(cleaned, expected, atol=1e-8)


def test_a_drifting_confound_does_not_switch_the_high_pass_off() -> None:
    # It correlates with the first cosine above 0.9.
    confounds = (-np.arange(N, dtype=float) + rng().standard_normal(N))[:, None]
    assert np.corrcoef(confounds[:, 0], cosine(1))[0, 1] > 0.9
    cleaned = clean_series(cosine(5)[:, None], tr_s=TR_S, highpass_s=120.0, confounds=confounds)
    np.testing.assert_allclose(cleaned, 0.0, atol=1e-9)


def test_units_do_not_mix_and_gaps_stay_in_their_unit() -> None:
    values = rng().standard_normal((N, 4)).cumsum(axis=0)
    options = {"tr_s": TR_S, "highpass_s": 90.0, "confounds": cosine(40)[:, None]}
    together = clean_series(values, **options)
    apart = np.hstack([clean_series(values[:, [unit]], **options) for unit in range(4)])
    np.testing.assert_allclose(together, apart, atol=1e-10)
    holed = values.copy()
    holed[7, 2] = np.nan
    cleaned = clean_series(holed, **options)
    assert np.isnan(cleaned[:, 2]).any()
    np.testing.assert_allclose(cleaned[:, [0, 1, 3]], together[:, [0, 1, 3]], atol=1e-10)


def test_a_gap_in_the_first_row_takes_the_second_rows_value() -> None:
    generator = rng()
    motion = generator.standard_normal(N)
    derivative = np.concatenate([[np.nan], np.diff(motion)])
    filled = np.concatenate([[motion[1] - motion[0]], np.diff(motion)])
    values = generator.standard_normal((N, 2))
    given = clean_series(values, tr_s=TR_S, confounds=np.stack([motion, derivative], axis=1))
    meant = clean_series(values, tr_s=TR_S, confounds=np.stack([motion, filled], axis=1))
    np.testing.assert_array_equal(given, meant)


def test_gaps_after_the_first_row_are_named() -> None:
    confounds = rng().standard_normal((N, 3))
    confounds[17, 1] = np.nan
    with pytest.raises(RecordingError) as caught:
        clean_series(np.ones((N, 1)), tr_s=TR_S, confounds=confounds, where="dataset 'x', run 3")
    message = str(caught.value)
    assert "dataset 'x', run 3, confound number 2" in message
    assert "row 18" in message


def test_confounds_of_another_run_are_named() -> None:
    with pytest.raises(RecordingError, match="one row per volume") as caught:
        clean_series(np.ones((N, 1)), tr_s=TR_S, confounds=np.ones((N - 1, 2)), where="run 3")
    assert f"{N - 1} rows" in str(caught.value)


def test_a_series_that_is_too_short_for_the_cut_off_is_named() -> None:
    with pytest.raises(RecordingError, match="too short") as caught:
        clean_series(np.ones((20, 1)), tr_s=TR_S, highpass_s=128.0, where="run 3")
    assert "20 volumes of 1.5 s" in str(caught.value)
    assert "at most 60 s" in str(caught.value)


@pytest.mark.parametrize("detrend", [False, True])
def test_the_result_is_that_of_nilearn(detrend: bool) -> None:
    generator = rng()
    values = generator.standard_normal((N, 30)).cumsum(axis=0) + 500.0
    confounds = generator.standard_normal((N, 6)).cumsum(axis=0)
    cleaned = clean_series(values, tr_s=TR_S, detrend=detrend, highpass_s=100.0, confounds=confounds)
    expected = nilearn_signal.clean(
        values,
        detrend=detrend,
        standardize=None,
        confounds=np.hstack([confounds, *([cosine(k)[:, None] for k in range(1, 8)])]),
        filter=False,
        ensure_finite=False,
    )
    np.testing.assert_allclose(cleaned, expected, atol=1e-10)


@pytest.mark.parametrize(
    ("n_confounds", "highpass_s", "found"),
    [
        (260, None, "260 confound(s), 0 cosine(s) out of 240 volumes: 0 degrees of freedom"),
        (220, None, "220 confound(s), 0 cosine(s) out of 240 volumes: 19 degrees of freedom"),
        (0, 3.0, "0 confound(s), 239 cosine(s) out of 240 volumes: 0 degrees of freedom"),
        (30, 3.8, "30 confound(s), 189 cosine(s) out of 240 volumes: 20 degrees of freedom"),
    ],
)
def test_cleaning_that_leaves_too_little_is_named(n_confounds: int, highpass_s: float | None, found: str) -> None:
    generator = rng()
    with pytest.raises(RecordingError, match="leaves too little of the series") as caught:
        clean_series(
            generator.standard_normal((N, 2)),
            tr_s=TR_S,
            highpass_s=highpass_s,
            confounds=generator.standard_normal((N, n_confounds)),
            where="run 3",
        )
    message = str(caught.value)
    assert "run 3, options 'preprocess.confounds', 'highpass_s'" in message
    assert found in message
    assert "at least 24" in message
    assert "fewer confounds" in message


def test_confounds_that_repeat_each_other_cost_their_rank_only() -> None:
    generator = rng()
    few = generator.standard_normal((N, 5)) + 40.0
    values = generator.standard_normal((N, 3))
    constant, line = np.full((N, 1), 1e6 + 0.1), np.arange(N)[:, None] * 1e3
    many = np.hstack([few @ generator.standard_normal((5, 300)), constant])
    options = {"tr_s": TR_S, "where": "run 3"}
    np.testing.assert_allclose(
        clean_series(values, confounds=many, **options),
        clean_series(values, confounds=few, **options),
        atol=1e-9,
    )
    np.testing.assert_allclose(
        clean_series(values, confounds=np.hstack([few, line]), detrend=True, **options),
        clean_series(values, confounds=few, detrend=True, **options),
        atol=1e-10,
    )


@pytest.mark.parametrize("detrend", [False, True])
def test_a_unit_that_confounds_explain_wholly_is_constant_and_found(detrend: bool) -> None:
    values = noise(N, 3) * 1e4
    values[:, 1] = 3e5 + 2.0 * values[:, 0]
    table = pl.DataFrame({"m": values[:, 0]})
    source = recording(values[:, 1:], rate_hz=1.0 / TR_S, confounds=table)
    cleaned = processed(source, confounds=("m",), detrend=detrend)
    result = values_of(cleaned)
    assert np.unique(result[:, 0]).size == 1
    assert result[0, 0] == pytest.approx(0.0 if detrend else values[:, 1].mean())
    assert np.unique(result[:, 1]).size > 1
    words = pl.DataFrame(
        {
            "word": ["w"] * 50,
            "onset_s": np.arange(50) * 6.0,
            "offset_s": np.arange(50) * 6.0 + 1.0,
            "sentence_id": np.arange(50) // 5,
            "story_id": ["a"] * 50,
        }
    )
    read = read_grid(cleaned, Stimulus("story", words, "here"), GridConfig(lags_ms=(0.0,)))
    assert list(read.usable) == [1]
    [finding] = read.findings
    assert finding.reason == Reason.CONSTANT_UNIT
    assert finding.field == "LA1"


def test_a_fast_recording_is_cleaned_without_a_square_matrix() -> None:
    n, rate_hz = 40_000, 512.0
    slow = np.cos(np.pi * 3 * (np.arange(n) + 0.5) / n)
    fast = np.cos(np.pi * 400 * (np.arange(n) + 0.5) / n)
    source = recording(np.stack([slow + fast, fast], axis=1) + 2.0, rate_hz=rate_hz)
    cleaned = values_of(processed(source, highpass_s=20.0))
    np.testing.assert_allclose(cleaned, np.stack([fast, fast], axis=1) + 2.0, atol=1e-9)


def test_a_design_that_is_too_large_for_memory_is_named() -> None:
    source = recording(np.lib.stride_tricks.as_strided(rng().random(1), (10**7, 1), (0, 0)))
    with pytest.raises(RecordingError, match="need too much memory") as caught:
        processed(source, highpass_s=100.0)
    message = str(caught.value)
    assert "small recording, options 'preprocess.confounds' and 'preprocess.highpass_s'" in message
    assert "10000000 samples × 400 columns" in message
    assert "these options are for fMRI" in message
    assert "highpass_hz" in message
