"""Event grids of time series against exact arithmetic and plain loops."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lpact.codes import Reason
from lpact.config import GridConfig
from lpact.datasets.base import Recording, RecordingId, Stimulus, TimeSeries, Units
from lpact.errors import FeatureError, RecordingError, StimulusError
from lpact.grid import build_grid

AWKWARD_RATES_HZ = (1000 / 3, 512.0, 2048.0, 99.9)
STARTS_S = (0.0, 0.35, 12.3456, 3600.1)


def make_stimulus(onset_s, offset_s=None, sentence_id=None, story_id=None):
    onset_s = np.asarray(onset_s, dtype=float)
    n = onset_s.size
    words = pl.DataFrame(
        {
            "word": [f"w{i}" for i in range(n)],
            "onset_s": onset_s,
            "offset_s": onset_s + 0.1 if offset_s is None else np.asarray(offset_s, dtype=float),
            "sentence_id": np.arange(n) if sentence_id is None else np.asarray(sentence_id),
            "story_id": ["story"] * n if story_id is None else story_id,
        },
        schema_overrides={"word": pl.String, "sentence_id": pl.Int64, "story_id": pl.String},
    )
    return Stimulus(id="stim", words=words, where="words.csv")


def make_recording(values, rate_hz, start_s=0.0):
    units = Units(tuple(f"u{i}" for i in range(values.shape[1])), ("roi",) * values.shape[1])
    return Recording(RecordingId("1", "1", "1", "stim"), TimeSeries(values, rate_hz, start_s), units, "run.npy")


def exact_sample(time_s, lag_ms, start_s, rate_hz):
    """Nearest sample in rational arithmetic, and its distance from a tie in samples."""
    position = (Fraction(time_s) + Fraction(lag_ms) / 1000 - Fraction(start_s)) * Fraction(rate_hz)
    sample = math.floor(position + Fraction(1, 2))
    return sample, abs(float(position - sample))


def loop_mean(values, first, n):
    total = np.zeros(values.shape[1])
    for j in range(first, first + n):
        total += values[j]
    return total / n


@pytest.mark.parametrize("rate_hz", AWKWARD_RATES_HZ)
@pytest.mark.parametrize("start_s", STARTS_S)
def test_impulses_land_in_their_own_sample(rate_hz, start_s):
    planted = np.array([30, 31, 100, 257, 511, 700, 997])
    values = np.zeros((1000, planted.size))
    values[planted, np.arange(planted.size)] = 1.0
    recording = make_recording(values, rate_hz, start_s)
    one_sample = GridConfig(lags_ms=(0.0,), window_ms=1000 / rate_hz)
    for jitter in (-0.49, 0.0, 0.49):
        stimulus = make_stimulus(start_s + (planted + jitter) / rate_hz)
        grid = build_grid(recording, stimulus, one_sample)
        np.testing.assert_array_equal(grid.responses[0], np.eye(planted.size))
    five_samples = GridConfig(lags_ms=(0.0,), window_ms=5000 / rate_hz)
    early = make_stimulus(start_s + np.arange(20, 40) / rate_hz)
    response = build_grid(recording, early, five_samples).responses[0, :, 0]
    assert np.flatnonzero(response).tolist() == [6, 7, 8, 9, 10]  # starts 26 … 30 hold sample 30
    np.testing.assert_array_equal(response[6:11], 0.2)


@settings(deadline=None, max_examples=150)
@given(
    rate_hz=st.sampled_from(AWKWARD_RATES_HZ) | st.floats(1.0, 3000.0),
    start_s=st.sampled_from((*STARTS_S, -0.35)) | st.floats(-100.0, 1e4),
    onset_samples=st.lists(st.floats(-20.0, 420.0), max_size=12),
    lag_samples=st.lists(st.integers(-30, 60), min_size=1, max_size=4, unique=True),
    window_samples=st.floats(0.1, 25.0),
)
def test_words_match_the_oracle(rate_hz, start_s, onset_samples, lag_samples, window_samples):
    lags_ms = tuple(1000.0 * lag / rate_hz for lag in lag_samples)
    assume(len(set(lags_ms)) == len(lags_ms))
    onset_s = start_s + np.sort(np.array(onset_samples, dtype=float)) / rate_hz
    onset_s = onset_s[onset_s >= 0]
    values = np.random.default_rng(0).standard_normal((400, 3))
    config = GridConfig(lags_ms=lags_ms, window_ms=1000.0 * window_samples / rate_hz)
    n_window = max(1, round(config.window_ms / 1000 * rate_hz))
    expected, kept = [], []
    for i, onset in enumerate(onset_s):
        first = []
        for lag_ms in lags_ms:
            sample, off = exact_sample(float(onset), lag_ms, start_s, rate_hz)
            assume(off < 0.5 - 1e-6)
            first.append(sample)
        if min(first) >= 0 and max(first) + n_window <= len(values):
            kept.append(i)
            expected.append([loop_mean(values, sample, n_window) for sample in first])
    grid = build_grid(make_recording(values, rate_hz, start_s), make_stimulus(onset_s), config)
    assert grid.first_word.tolist() == kept
    assert grid.responses.shape == (len(lags_ms), len(kept), 3)
    assert grid.responses.flags.c_contiguous
    assert grid.n_candidate_events == len(onset_s)
    assert sum(e.n_events for e in grid.exclusions) == len(onset_s) - len(kept)
    if kept:
        np.testing.assert_array_equal(grid.responses, np.swapaxes(expected, 0, 1))
        np.testing.assert_array_equal(grid.onset_s, onset_s[kept])
        np.testing.assert_array_equal(grid.offset_s, onset_s[kept] + 0.1)


@settings(deadline=None, max_examples=50)
@given(shift_samples=st.integers(0, 1000), order=st.permutations(range(4)))
def test_shifting_the_clock_or_permuting_units_changes_nothing_else(shift_samples, order):
    rng = np.random.default_rng(3)
    values = rng.standard_normal((300, 4))
    onset_s = np.sort(rng.uniform(0, 2.5, 20))
    config = GridConfig(lags_ms=(0.0, 120.0), window_ms=90.0)
    base = build_grid(make_recording(values, 128.0), make_stimulus(onset_s), config)
    shift_s = shift_samples / 128.0
    moved = build_grid(make_recording(values[:, order], 128.0, shift_s), make_stimulus(onset_s + shift_s), config)
    np.testing.assert_array_equal(moved.responses, base.responses[:, :, order])


def test_exclusions_name_the_first_word_and_its_samples():
    recording = make_recording(np.zeros((100, 1)), 10.0)
    stimulus = make_stimulus([0.0, 5.0, 9.2, 9.9])
    grid = build_grid(recording, stimulus, GridConfig(lags_ms=(-500.0, 0.0), window_ms=500.0))
    (exclusion,) = grid.exclusions
    assert exclusion.reason is Reason.WORDS_OUTSIDE_RECORDING
    assert exclusion.n_events == 2
    assert exclusion.detail == (
        "word at 0.000 s: at lag -500 ms it needs samples -5 to -1; the recording has 100, from 0.000 s on"
    )
    assert grid.onset_s.tolist() == [5.0, 9.2]
    assert grid.first_word.tolist() == [1, 2]


def test_a_window_may_touch_both_ends_of_the_recording():
    recording = make_recording(np.arange(10.0)[:, None], 10.0)
    stimulus = make_stimulus([0.0, 0.8, 0.9])
    grid = build_grid(recording, stimulus, GridConfig(lags_ms=(0.0,), window_ms=200.0))
    assert grid.responses[0, :, 0].tolist() == [0.5, 8.5]


def test_story_sentence_and_reference_lag():
    recording = make_recording(np.zeros((100, 2)), 10.0)
    stimulus = make_stimulus([1.0, 2.0, 3.0], None, [7, 7, 9], ["b", "b", "a"])
    grid = build_grid(recording, stimulus, GridConfig())
    assert grid.sentence.tolist() == [7, 7, 9]
    assert grid.story.tolist() == [0, 0, 1]
    assert (grid.lags_ms, grid.reference_lag) == ((0.0, 100.0, 200.0, 300.0), 2)
    assert grid.units is recording.units
    chosen = build_grid(recording, stimulus, GridConfig(reference_lag_ms=100.0))
    assert chosen.reference_lag == 1


@settings(deadline=None, max_examples=80)
@given(
    lengths=st.lists(st.integers(1, 5), max_size=8),
    rate_hz=st.sampled_from(AWKWARD_RATES_HZ),
    pooling=st.sampled_from(("last", "mean", "sum", "first")),
    seed=st.integers(0, 1000),
)
def test_sentences_match_the_oracle(lengths, rate_hz, pooling, seed):
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    onset_s = 5.0 + np.cumsum(rng.uniform(0.01, 0.3, n))
    offset_s = onset_s + rng.uniform(0.0, 0.2, n)
    sentence = np.repeat(np.arange(len(lengths)) * 3 + 1, lengths)
    values = rng.standard_normal((int(8 * rate_hz), 2))
    config = GridConfig(events="sentences", lags_ms=(-100.0, 0.0, 400.0), pooling=pooling, reference_lag_ms=400.0)
    word_values = rng.standard_normal((n, 3))
    reduce = {
        "last": lambda rows: rows[-1],
        "first": lambda rows: rows[0],
        "mean": lambda rows: rows.mean(axis=0),
        "sum": lambda rows: rows.sum(axis=0),
    }[pooling]
    expected, pooled, ids = [], [], []
    for sentence_id in dict.fromkeys(sentence.tolist()):
        rows = np.flatnonzero(sentence == sentence_id)
        begin_s, end_s = float(onset_s[rows[0]]), float(offset_s[rows[-1]])
        n_window = max(1, round((end_s - begin_s) * rate_hz))
        first = [exact_sample(begin_s, lag, 4.5, rate_hz)[0] for lag in config.lags_ms]
        if min(first) >= 0 and max(first) + n_window <= len(values):
            expected.append([loop_mean(values, sample, n_window) for sample in first])
            pooled.append(reduce(word_values[rows]))
            ids.append(sentence_id)
    stimulus = make_stimulus(onset_s, offset_s, sentence)
    grid = build_grid(make_recording(values, rate_hz, 4.5), stimulus, config)
    assert grid.sentence.tolist() == ids
    assert grid.reference_lag == 2
    assert grid.n_candidate_events == len(lengths)
    assert sum(e.n_events for e in grid.exclusions) == len(lengths) - len(ids)
    assert grid.pool(word_values).shape == (len(ids), 3)
    if ids:
        np.testing.assert_array_equal(grid.responses, np.swapaxes(expected, 0, 1))
        np.testing.assert_allclose(grid.pool(word_values), pooled, rtol=1e-13, atol=1e-13)


@settings(deadline=None, max_examples=120)
@given(
    tr_s=st.sampled_from((0.72, 1.1, 1.5, 2.0, 2.2)),
    start_s=st.sampled_from((0.0, -3.3, 33.3)),
    quarter_trs=st.lists(st.integers(-12, 100), max_size=40),
    delays=st.lists(st.integers(-1, 5), min_size=1, max_size=3, unique=True),
    pooling=st.sampled_from(("last", "mean", "sum", "first")),
)
def test_trs_match_the_oracle(tr_s, start_s, quarter_trs, delays, pooling):
    """Onsets lie on quarters of a TR, so that many fall on an edge, where they open the next TR."""
    quarters = np.sort(np.array(quarter_trs, dtype=int))
    quarters = quarters[start_s + quarters / 4 * tr_s >= 0]
    onset_s = start_s + quarters / 4 * tr_s
    n_samples = 20
    values = np.arange(n_samples * 2.0).reshape(n_samples, 2)
    word_values = np.random.default_rng(1).standard_normal((quarters.size, 2))
    lags_ms = tuple(1000.0 * tr_s * delay for delay in delays)
    config = GridConfig(events="trs", lags_ms=lags_ms, pooling=pooling)
    grid = build_grid(make_recording(values, 1 / tr_s, start_s), make_stimulus(onset_s), config)

    tr_of_word = [q // 4 for q in quarters.tolist()]
    candidates = range(tr_of_word[0], tr_of_word[-1] + 1) if tr_of_word else range(0)
    wordless = [k for k in candidates if k not in tr_of_word]
    kept = [k for k in candidates if k not in wordless and all(0 <= k + delay < n_samples for delay in delays)]
    reduce = {
        "last": lambda rows: rows[-1],
        "first": lambda rows: rows[0],
        "mean": lambda rows: rows.mean(axis=0),
        "sum": lambda rows: rows.sum(axis=0),
    }[pooling]
    np.testing.assert_allclose(grid.onset_s, [start_s + k * tr_s for k in kept], atol=1e-9)
    np.testing.assert_allclose(grid.offset_s, [start_s + (k + 1) * tr_s for k in kept], atol=1e-9)
    assert grid.n_candidate_events == len(candidates)
    counts = {e.reason: e.n_events for e in grid.exclusions}
    n_outside = len(candidates) - len(wordless) - len(kept)
    assert counts == {
        reason: n
        for reason, n in (
            (Reason.NO_WORDS_IN_TR, len(wordless)),
            (Reason.WORDS_OUTSIDE_RECORDING, n_outside),
        )
        if n
    }
    for exclusion in grid.exclusions:
        if exclusion.reason is Reason.NO_WORDS_IN_TR:
            assert exclusion.detail.startswith(f"TR {wordless[0]} at ")
    for lag, delay in enumerate(delays):
        np.testing.assert_array_equal(grid.responses[lag], values[[k + delay for k in kept]].reshape(len(kept), 2))
    pooled = [reduce(word_values[[j for j, tr in enumerate(tr_of_word) if tr == k]]) for k in kept]
    np.testing.assert_allclose(grid.pool(word_values), np.array(pooled).reshape(len(kept), 2), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("lag_ms", "fits"), [(3000.0, True), (3000.9, True), (3002.0, False)])
def test_tr_lags_are_whole_trs(lag_ms, fits):
    recording = make_recording(np.arange(20.0)[:, None], 1 / 1.5)
    stimulus = make_stimulus([0.1, 1.6])
    config = GridConfig(events="trs", lags_ms=(lag_ms,))
    if fits:
        assert build_grid(recording, stimulus, config).responses[0, :, 0].tolist() == [2.0, 3.0]
        return
    with pytest.raises(RecordingError) as error:
        build_grid(recording, stimulus, config)
    assert error.value.got == "lag 3002 ms with a TR of 1500 ms"
    assert error.value.expected == "multiples of 1500 ms, within 1 ms"
    assert error.value.remedy == "use 3000 or 4500 ms instead"


@pytest.mark.parametrize("events", ["words", "sentences", "trs"])
def test_no_words_and_no_survivors_give_an_empty_grid(events):
    recording = make_recording(np.zeros((10, 3)), 1.0)
    config = GridConfig(events=events, lags_ms=(0.0, 2000.0))
    for onset_s in ([], [500.0, 501.0]):
        stimulus = make_stimulus(onset_s)
        grid = build_grid(recording, stimulus, config)
        assert grid.n_events == 0
        assert grid.responses.shape == (2, 0, 3)
        assert grid.pool(np.zeros((len(onset_s), 4))).shape == (0, 4)
        assert grid.n_candidate_events == len(onset_s)
        assert sum(e.n_events for e in grid.exclusions) == len(onset_s)


def test_pooling_words_selects_rows_for_every_pooling():
    recording = make_recording(np.zeros((40, 1)), 10.0)
    stimulus = make_stimulus([0.0, 1.0, 2.0, 9.0])
    word_values = np.array([[0.1, 1e300], [0.2, -0.0], [0.3, np.nan], [0.4, 1.0]])
    for pooling in ("last", "mean", "sum", "first"):
        grid = build_grid(recording, stimulus, GridConfig(lags_ms=(0.0,), pooling=pooling))
        np.testing.assert_array_equal(grid.pool(word_values), word_values[:3])


@pytest.mark.parametrize("shape", [(3, 2), (4,), (5, 2)])
def test_pooling_features_of_other_words_is_an_error(shape):
    recording = make_recording(np.zeros((40, 1)), 10.0)
    grid = build_grid(recording, make_stimulus([0.0, 1.0, 2.0, 3.0]), GridConfig())
    with pytest.raises(FeatureError, match=r"shape \(4, columns\)"):
        grid.pool(np.zeros(shape))


def test_malformed_input_is_refused():
    sound = make_recording(np.zeros((40, 2)), 10.0)
    with pytest.raises(StimulusError, match="onset_s"):
        build_grid(sound, make_stimulus([1.0, 0.0]), GridConfig())
    with pytest.raises(RecordingError, match="nan Hz"):
        build_grid(make_recording(np.zeros((40, 2)), np.nan), make_stimulus([0.0]), GridConfig())
