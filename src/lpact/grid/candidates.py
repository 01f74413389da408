"""Candidate events of a time series: words, sentences or TRs, and the samples that answer them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from lpact.config import GridConfig
from lpact.datasets.base import Recording, TimeSeries
from lpact.errors import RecordingError
from lpact.grid.event_grid import Exclusion
from lpact.grid.windows import nearest_sample, window_samples
from lpact.grid.words import slices, times_s
from lpact.math.types import FloatArray, IntArray
from lpact.reasons import Reason

_LAG_TOLERANCE_MS = 1.0
_TR_EDGE_TOLERANCE = 1e-6
"""In TRs: far above rounding error, far below any word's timing error."""


@dataclass(frozen=True)
class Candidates:
    """Events before it is known which of them the recording covers.

    The response of event i at lag l is the mean of the ``n_samples[i]`` samples from
    ``first_sample[l, i]`` on. ``exclusions`` lists events that were left out already; ``n_events``
    counts those too.
    """

    noun: str
    onset_s: FloatArray
    offset_s: FloatArray
    first_word: IntArray
    stop_word: IntArray
    first_sample: IntArray
    n_samples: IntArray
    exclusions: tuple[Exclusion, ...]
    n_events: int


def word_candidates(signal: TimeSeries, words: pl.DataFrame, config: GridConfig) -> Candidates:
    """One event a word; its window is ``[onset + lag, onset + lag + window)``."""
    first_word = np.arange(words.height)
    window_s = config.window_ms / 1000.0
    return _windowed("word", signal, words, config.lags_ms, (first_word, first_word + 1), window_s)


def sentence_candidates(signal: TimeSeries, words: pl.DataFrame, config: GridConfig) -> Candidates:
    """One event a sentence; its window is ``[first onset + lag, last offset + lag)``."""
    first_word, stop_word = slices(words, "sentence_id")
    return _windowed("sentence", signal, words, config.lags_ms, (first_word, stop_word), None)


def tr_candidates(signal: TimeSeries, words: pl.DataFrame, config: GridConfig) -> Candidates:
    """One event a TR with words; its response is the sample ``lag · fs`` later.

    A word belongs to TR ``k = floor((onset − start_s) · fs)``. An onset less than a millionth of
    a TR before an edge counts as on it, since rates such as 1 / 1.1 s have no exact binary form.
    """
    rate_hz = signal.sampling_rate_hz
    delays = _nearest_delays(signal, config.lags_ms)
    onset_s, _ = times_s(words)
    word_tr = np.floor((onset_s - signal.start_s) * rate_hz + _TR_EDGE_TOLERANCE).astype(np.int64)
    tr, first_word = np.unique(word_tr, return_index=True)
    n_candidates = int(tr[-1] - tr[0]) + 1 if tr.size else 0
    tr_onset_s = signal.start_s + tr / rate_hz
    return Candidates(
        noun="TR",
        onset_s=tr_onset_s,
        offset_s=tr_onset_s + 1.0 / rate_hz,
        first_word=first_word,
        stop_word=np.append(first_word[1:], words.height)[: tr.size],
        first_sample=delays[:, None] + tr,
        n_samples=np.ones(tr.size, dtype=np.int64),
        exclusions=_wordless_trs(tr, n_candidates - tr.size, signal),
        n_events=n_candidates,
    )


def _windowed(
    noun: str,
    signal: TimeSeries,
    words: pl.DataFrame,
    lags_ms: tuple[float, ...],
    event_words: tuple[IntArray, IntArray],
    window_s: float | None,
) -> Candidates:
    """Events that answer in a window of ``window_s``; None: as long as the event itself."""
    first_word, stop_word = event_words
    word_onset_s, word_offset_s = times_s(words)
    onset_s, offset_s = word_onset_s[first_word], word_offset_s[stop_word - 1]
    rate_hz = signal.sampling_rate_hz
    lag_s = np.array(lags_ms)[:, None] / 1000.0
    length_s = offset_s - onset_s if window_s is None else np.full(onset_s.size, window_s)
    return Candidates(
        noun=noun,
        onset_s=onset_s,
        offset_s=offset_s,
        first_word=first_word,
        stop_word=stop_word,
        first_sample=nearest_sample(
            onset_s + lag_s, start_s=signal.start_s, sampling_rate_hz=rate_hz
        ),
        n_samples=window_samples(length_s, sampling_rate_hz=rate_hz),
        exclusions=(),
        n_events=onset_s.size,
    )


def check_tr_lags(recording: Recording, signal: TimeSeries, config: GridConfig) -> None:
    """Raise `RecordingError` where a lag is not a whole number of TRs, within 1 ms."""
    tr_ms = 1000.0 / signal.sampling_rate_hz
    for lag_ms, delay in zip(config.lags_ms, _nearest_delays(signal, config.lags_ms), strict=True):
        if abs(lag_ms - delay * tr_ms) <= _LAG_TOLERANCE_MS:
            continue
        below_ms = np.floor(lag_ms / tr_ms) * tr_ms
        raise RecordingError(
            "a lag is not a whole number of TRs",
            where=f"{recording.where}, option 'grid.lags_ms'",
            got=f"lag {lag_ms:g} ms with a TR of {tr_ms:g} ms",
            expected=f"multiples of {tr_ms:g} ms, within {_LAG_TOLERANCE_MS:g} ms",
            remedy=f"use {below_ms:g} or {below_ms + tr_ms:g} ms instead",
        )


def _nearest_delays(signal: TimeSeries, lags_ms: tuple[float, ...]) -> IntArray:
    """Return each lag in whole TRs."""
    return np.rint(np.array(lags_ms) / 1000.0 * signal.sampling_rate_hz).astype(np.int64)


def _wordless_trs(tr: IntArray, n_wordless: int, signal: TimeSeries) -> tuple[Exclusion, ...]:
    if n_wordless == 0:
        return ()
    wordless = int(tr[np.argmax(np.diff(tr) > 1)]) + 1
    time_s = signal.start_s + wordless / signal.sampling_rate_hz
    detail = f"TR {wordless} at {time_s:.3f} s: no word begins in it"
    return (Exclusion(Reason.NO_WORDS_IN_TR, n_wordless, detail),)
