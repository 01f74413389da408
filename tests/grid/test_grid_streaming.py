"""Signals that are read a few units at a time, words with their own times, gaps and artefacts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from lpact.codes import Reason
from lpact.config import GridConfig, PreprocessConfig
from lpact.datasets.base import Recording, RecordingId, Span, Stimulus, TimeSeries, Units
from lpact.datasets.series import StreamedSeries, take_units, unit_blocks
from lpact.errors import RecordingError
from lpact.grid import build_grid, read_grid

N_WORDS = 30
RATE = 50.0
ONE_SAMPLE = GridConfig(lags_ms=(0.0,), window_ms=20.0)


class Counted(StreamedSeries):
    """An array behind the interface of a file; counts what is read."""

    def __init__(self, values, *, unit_major):
        self._values = values
        self.shape = values.shape
        self.dtype = values.dtype
        self.unit_major = unit_major
        self.reads = []

    def read(self, units):
        self.reads.append(list(units))
        return self._values[:, list(units)]


def words():
    onset = np.arange(N_WORDS) * 0.5 + 1.0
    return pl.DataFrame(
        {
            "word": [f"w{i}" for i in range(N_WORDS)],
            "onset_s": onset,
            "offset_s": onset + 0.3,
            "sentence_id": np.arange(N_WORDS) // 5,
            "story_id": ["a"] * N_WORDS,
        },
        schema_overrides={"sentence_id": pl.Int64},
    )


STIMULUS = Stimulus(id="s", words=words(), where="words.tsv")


def recording(values, **kwargs):
    n_units = values.shape[1]
    units = Units(tuple(f"u{i}" for i in range(n_units)), ("roi",) * n_units)
    signal = TimeSeries(values, RATE, physical_unit="µV")
    return Recording(RecordingId("1", "1", "1", "s"), signal, units, "signal.h5", **kwargs)


def noise(n_units=6, n_samples=1000, dtype=np.float64):
    return np.random.default_rng(0).standard_normal((n_samples, n_units)).astype(dtype)


@pytest.mark.parametrize("unit_major", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_stream_gives_what_the_array_gives(unit_major, dtype):
    values = noise(dtype=dtype)
    config = GridConfig(lags_ms=(0.0, 100.0), window_ms=300.0)
    expected = build_grid(recording(values), STIMULUS, config)
    stream = Counted(values, unit_major=unit_major)
    grid = build_grid(recording(stream), STIMULUS, config)
    np.testing.assert_array_equal(grid.responses, expected.responses)
    reads = [[i] for i in range(6)] if unit_major else [list(range(6))]
    assert stream.reads == reads


def test_blocks_are_as_wide_as_memory_allows():
    stream = Counted(noise(n_samples=10), unit_major=False)
    blocks = [units for units, _ in unit_blocks(stream, block_bytes=2 * 10 * 8)]
    assert blocks == [range(2), range(2, 4), range(4, 6)]
    assert [units for units, _ in unit_blocks(stream, block_bytes=1)] == [range(i, i + 1) for i in range(6)]


def test_taking_units_reads_nothing():
    stream = Counted(noise(), unit_major=True)
    taken = take_units(stream, [4, 1])
    assert (taken.shape, stream.reads) == ((1000, 2), [])
    np.testing.assert_array_equal(taken.read([1, 0]), noise()[:, [1, 4]])


def test_units_are_judged_in_the_same_pass():
    values = noise()
    values[17, 2] = np.nan
    values[:, 4] = 3.0
    stream = Counted(values, unit_major=True)
    read = read_grid(recording(stream), STIMULUS, ONE_SAMPLE)
    assert read.usable == [0, 1, 3, 5]
    assert [(f.field, f.reason) for f in read.findings] == [
        ("u2", Reason.NON_FINITE_NEURAL),
        ("u4", Reason.CONSTANT_UNIT),
    ]
    assert "sample 17" in read.findings[0].found
    assert len(stream.reads) == 6


def test_words_follow_the_recordings_own_clock():
    """A clock that runs 0.3 % fast, and two words whose triggers were dropped."""
    heard_s = words()["onset_s"].to_numpy() * 1.003 + 0.5
    samples = np.rint(heard_s * RATE).astype(int)
    values = noise()
    values[:, 0] = 0.0
    values[samples, 0] = np.arange(N_WORDS) + 1.0
    heard_s[[3, 17]] = np.nan
    grid = build_grid(recording(values, word_onsets_s=heard_s), STIMULUS, ONE_SAMPLE)
    kept = [i for i in range(N_WORDS) if i not in (3, 17)]
    assert grid.responses[0, :, 0].tolist() == [i + 1.0 for i in kept]
    assert grid.onset_s.tolist() == words()["onset_s"].gather(kept).to_list()
    assert grid.n_candidate_events == N_WORDS
    (left_out,) = grid.exclusions
    assert (left_out.reason, left_out.n_events) == (Reason.WORDS_WITHOUT_TIME, 2)
    assert "word at 2.500 s" in left_out.detail


def test_sentences_follow_the_clock_of_their_first_word():
    heard_s = words()["onset_s"].to_numpy() + 2.0
    heard_s[5] = np.nan  # the first word of sentence 1
    values = np.repeat(np.arange(1000.0)[:, None], 2, axis=1)
    config = GridConfig(events="sentences", lags_ms=(0.0,))
    grid = build_grid(recording(values, word_onsets_s=heard_s), STIMULUS, config)
    assert grid.sentence.tolist() == [0, 2, 3, 4, 5]
    n_window = round((2.0 + 0.3) * RATE)
    starts = np.array([(1.0 + 2.5 * s + 2.0) * RATE for s in grid.sentence])
    np.testing.assert_allclose(grid.responses[0, :, 0], starts + (n_window - 1) / 2)


def test_own_word_times_must_fit_the_words():
    with pytest.raises(RecordingError, match="do not fit the words"):
        build_grid(recording(noise(), word_onsets_s=np.zeros(3)), STIMULUS, ONE_SAMPLE)
    backwards = words()["onset_s"].to_numpy().copy()
    backwards[8] = 0.0
    with pytest.raises(RecordingError) as error:
        build_grid(recording(noise(), word_onsets_s=backwards), STIMULUS, ONE_SAMPLE)
    assert error.value.got == "0.0 s after 4.5 s"


def slow(rate_hz, **kwargs):
    read = recording(noise(n_samples=40), **kwargs)
    return replace(read, signal=TimeSeries(read.signal.values, rate_hz))


def test_trs_have_one_clock():
    heard_s = words()["onset_s"].to_numpy()
    config = GridConfig(events="trs", lags_ms=(0.0,))
    with pytest.raises(RecordingError, match="with its own word times"):
        build_grid(slow(0.5, word_onsets_s=heard_s), STIMULUS, config)


def test_fast_samples_are_no_volumes():
    with pytest.raises(RecordingError) as error:
        build_grid(recording(noise()), STIMULUS, GridConfig(events="trs", lags_ms=(0.0,)))
    assert error.value.got == "events = 'trs' with 50 samples per second"


@pytest.mark.parametrize("events", ["words", "sentences"])
def test_volumes_are_no_answers_to_single_words(events):
    config = GridConfig(events=events, lags_ms=(0.0,))
    if events == "sentences":  # of 2.3 s, one or two volumes each
        assert build_grid(slow(0.5), STIMULUS, config).n_events == 6
        return
    with pytest.raises(RecordingError) as error:
        build_grid(slow(0.5), STIMULUS, config)
    assert "one sample every 2 s" in error.value.got
    assert "set events = 'trs'" in error.value.remedy


def test_events_that_touch_a_bad_span_are_left_out():
    spans = (Span(2.95, 3.05, "BAD_move"), Span(100.0, 200.0, "BAD_end"))
    config = GridConfig(lags_ms=(0.0, 200.0), window_ms=100.0)
    grid = build_grid(recording(noise(), bad_spans=spans), STIMULUS, config)
    # Windows [t, t + 0.1) and [t + 0.2, t + 0.3) of words at 1.0, 1.5, …: that at 3.0 s touches it.
    assert 3.0 not in grid.onset_s
    assert grid.n_events == N_WORDS - 1
    (left_out,) = grid.exclusions
    assert (left_out.reason, left_out.n_events) == (Reason.BAD_SPAN, 1)
    assert "BAD_move" in left_out.detail


def test_artefacts_in_enough_units_cost_the_event():
    values = noise(n_units=10)
    values[100, :3] = 99.0  # the word at 2.0 s
    values[125, :1] = -99.0  # the word at 2.5 s, one unit in ten
    rules = PreprocessConfig(artefact_threshold=50.0, artefact_units=0.1)
    grid = build_grid(recording(values), STIMULUS, ONE_SAMPLE, rules)
    assert (2.0 in grid.onset_s, 2.5 in grid.onset_s) == (False, True)
    (left_out,) = grid.exclusions
    assert (left_out.reason, left_out.n_events) == (Reason.BAD_SPAN, 1)
    assert "beyond 50" in left_out.detail


def test_gaps_cost_units_or_events():
    values = noise()
    values[95:130, 1] = np.nan  # words at 2.0 and 2.5 s
    values[:, 3] = np.nan
    read = read_grid(recording(values), STIMULUS, ONE_SAMPLE)
    assert read.usable == [0, 2, 4, 5]
    assert read.grid.n_events == N_WORDS
    read = read_grid(recording(values), STIMULUS, ONE_SAMPLE, PreprocessConfig(missing="drop_events"))
    assert read.usable == [0, 1, 2, 4, 5]
    assert read.grid.n_events == N_WORDS - 2
    assert np.isfinite(read.grid.responses[..., read.usable]).all()
    (left_out,) = read.grid.exclusions
    assert (left_out.reason, left_out.n_events) == (Reason.MISSING_SAMPLES, 2)


def test_gaps_and_artefacts_together():
    values = noise()
    values[100, 1] = np.nan
    values[150] = 99.0
    rules = PreprocessConfig(artefact_threshold=50.0, artefact_units=0.0, missing="drop_events")
    grid = build_grid(recording(values), STIMULUS, ONE_SAMPLE, rules)
    assert [e.reason for e in grid.exclusions] == [Reason.BAD_SPAN, Reason.MISSING_SAMPLES]
    assert grid.n_events == N_WORDS - 2
    assert np.isfinite(grid.responses).all()


def test_a_malformed_stream_is_named():
    stream = Counted(noise(n_units=3), unit_major=True)
    wrong = replace(recording(stream), units=Units(("a", "b"), ("r", "r")))
    with pytest.raises(RecordingError, match="the neural values and the units do not match"):
        build_grid(wrong, STIMULUS, ONE_SAMPLE)


def test_a_sentence_lasts_as_long_as_its_words_do_in_the_recording():
    """A clock that runs 1 % slow: the window ends with the last word as this recording holds it."""
    heard_s = words()["onset_s"].to_numpy() * 1.01
    values = np.repeat(np.arange(1000.0)[:, None], 2, axis=1)
    config = GridConfig(events="sentences", lags_ms=(0.0,))
    grid = build_grid(recording(values, word_onsets_s=heard_s), STIMULUS, config)
    first, last = heard_s[0::5], heard_s[4::5] + 0.3
    start, length = np.rint(first * RATE), np.rint((last - first) * RATE)
    np.testing.assert_allclose(grid.responses[0, :, 0], start + (length - 1) / 2)


def test_a_sentence_with_a_word_without_time_is_left_out():
    heard_s = words()["onset_s"].to_numpy().copy()
    heard_s[[7, 14]] = np.nan  # inside sentence 1; the last word of sentence 2
    config = GridConfig(events="sentences", lags_ms=(0.0,))
    grid = build_grid(recording(noise(), word_onsets_s=heard_s), STIMULUS, config)
    assert grid.sentence.tolist() == [0, 3, 4, 5]
    assert grid.exclusions[0].reason is Reason.WORDS_WITHOUT_TIME


def test_a_sentence_in_which_the_film_stood_still_is_left_out():
    heard_s = words()["onset_s"].to_numpy().copy()
    heard_s[7:] += 3.0
    config = GridConfig(events="sentences", lags_ms=(0.0,))
    grid = build_grid(recording(noise(), word_onsets_s=heard_s), STIMULUS, config)
    assert grid.sentence.tolist() == [0, 2, 3, 4, 5]
    (left_out,) = grid.exclusions
    assert (left_out.reason, left_out.n_events) == (Reason.BAD_SPAN, 1)
    assert "3.000 s" in left_out.detail


@pytest.mark.parametrize(
    ("span", "lost"),
    [
        ((-20.0, -10.0), []),
        ((-1.0, 0.0), []),
        ((-1.0, 0.03), [0.0]),
        ((0.0, 0.0), [0.0]),
        ((99.0, 100.0), []),
    ],
)
def test_spans_at_the_edges(span, lost):
    early = words().with_columns(onset_s=pl.Series(np.arange(N_WORDS) * 0.5))
    early = early.with_columns(offset_s=pl.col("onset_s") + 0.3)
    stimulus = Stimulus(id="s", words=early, where="words.tsv")
    spoilt = recording(noise(), bad_spans=(Span(*span, "BAD"),))
    grid = build_grid(spoilt, stimulus, ONE_SAMPLE)
    assert sorted(set(early["onset_s"]) - set(grid.onset_s)) == lost
