"""Candidate events of a time series: words, sentences or TRs, and the samples of their responses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from scipy import sparse

from lpact.codes import Reason
from lpact.config import GridConfig
from lpact.datasets.base import Recording, Span, TimeSeries
from lpact.errors import RecordingError
from lpact.grid.event_grid import Exclusion
from lpact.grid.words import slices, times_s
from lpact.math.resample import HRFS, hrf_weights, lanczos_weights
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.math.windows import nearest_sample, touches, window_samples

FASTEST_TR_HZ = 5.0
"""No scanner acquires volumes faster than this."""
PAUSE_S, PAUSE_SHARE = 0.25, 0.02
"""An event that takes this much longer in a recording, and this share of it, was interrupted."""
_MIN_PACED = 20
"""Fewer events may share samples by chance."""
_LAG_TOLERANCE_MS = 1.0
_TR_EDGE_TOLERANCE = 1e-6
"""In TRs: far above rounding error, far below any word's timing error."""


@dataclass(frozen=True)
class Candidates:
    """Events of a recording, some of which it may not cover.

    The response of event i at lag l is the mean of the ``n_samples[i]`` samples from ``first_sample[l, i]`` on.
    ``exclusions`` lists events that were left out already; ``n_events`` counts those too.
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
    weights: sparse.csr_array | None = None
    n_delays: int = 1

    def take(self, kept: BoolArray) -> Candidates:
        """Return the events that are kept; ``n_events`` does not change."""
        rows = np.flatnonzero(np.repeat(kept, self.n_delays))
        return replace(
            self,
            onset_s=self.onset_s[kept],
            offset_s=self.offset_s[kept],
            first_word=self.first_word[kept],
            stop_word=self.stop_word[kept],
            first_sample=self.first_sample[:, kept],
            n_samples=self.n_samples[kept],
            weights=None if self.weights is None else self.weights[rows],
        )

    def without(self, kept: BoolArray, reason: Reason, detail: str) -> Candidates:
        """Return the events that are kept; the others become an exclusion, with the first of them in words."""
        if kept.all():
            return self
        first = f"{self.noun} at {self.onset_s[int(np.argmin(kept))]:.3f} s: {detail}"
        exclusion = Exclusion(reason, int((~kept).sum()), first)
        return replace(self.take(kept), exclusions=(*self.exclusions, exclusion))


def usable_events(recording: Recording, signal: TimeSeries, words: pl.DataFrame, config: GridConfig) -> Candidates:
    """Return the events of a time series, as the study defines them, whose windows the recording covers.

    Words answer in the window ``[onset + lag, onset + lag + window)``, sentences in ``[first onset + lag, last offset +
    lag)``. Events whose words the recording lacks or interrupts, and those in spans that the source marks as bad, are
    left out. Raises `RecordingError` if the configured events do not fit the sampling rate.
    """
    if config.events == "trs":
        _check_tr_lags(recording, signal, config)
        make = _pooled_trs if config.tr_features == "pool" else _filtered_trs
        events = make(signal, words, config)
    elif config.events == "sentences":
        events = _windowed(recording, signal, words, slices(words, "sentence_id"), None, config)
    else:
        word = np.arange(words.height)
        window_s = config.window_ms / 1000.0
        events = _windowed(recording, signal, words, (word, word + 1), window_s, config)
    _check_pace(recording, signal, events, config)
    events = _with_all_words(events, recording, words)
    events = _covered(events, signal, config.lags_ms)
    return _without_bad_spans(events, recording.bad_spans, signal)


def _filtered_trs(signal: TimeSeries, words: pl.DataFrame, config: GridConfig) -> Candidates:
    """One event per TR from the first word's onset to the last one's offset, with filtered word features.

    Features of TR k are evaluated at ``start_s + k / fs``; with delays of a finite impulse response, at
    ``start_s + (k - delay) / fs`` for each of them, whether or not a TR was recorded there. The sentence and story of a
    TR are those of the last word that began before its end.
    """
    rate_hz, start_s = signal.sampling_rate_hz, signal.start_s
    onset_s, offset_s = times_s(words)
    tr = np.arange(0)
    if onset_s.size:
        edges = (np.array([onset_s[0], offset_s.max()]) - start_s) * rate_hz + _TR_EDGE_TOLERANCE
        first, last = np.floor(edges).astype(np.int64).tolist()
        tr = np.arange(first, last + 1)
    delays = np.array(fir_delays(signal, config) or (0,))
    seen_s = (start_s + (tr[:, None] - delays) / rate_hz).ravel()
    if config.tr_features == "hrf":
        weights = hrf_weights(seen_s, onset_s, HRFS[config.hrf])
    else:
        middle_s = (onset_s + offset_s) / 2.0
        in_time = np.argsort(middle_s, kind="stable")
        weights = lanczos_weights(
            seen_s, middle_s[in_time], cutoff_hz=config.lanczos_cutoff * rate_hz, lobes=config.lanczos_lobes
        )[:, np.argsort(in_time)]
    ends_s = start_s + tr / rate_hz + 1.0 / rate_hz
    word = np.maximum(np.searchsorted(onset_s, ends_s, side="left") - 1, 0)
    events = _trs(signal, config, tr, word, word + 1)
    return replace(events, weights=weights, n_delays=delays.size)


def _pooled_trs(signal: TimeSeries, words: pl.DataFrame, config: GridConfig) -> Candidates:
    """One event per TR with words; its response is the sample ``lag · fs`` later.

    A word belongs to TR ``k = floor((onset − start_s) · fs)``. An onset less than a millionth of
    a TR before an edge counts as on it, since rates such as 1 / 1.1 s have no exact binary form.
    """
    rate_hz = signal.sampling_rate_hz
    onset_s, _ = times_s(words)
    word_tr = np.floor((onset_s - signal.start_s) * rate_hz + _TR_EDGE_TOLERANCE).astype(np.int64)
    tr, first_word = np.unique(word_tr, return_index=True)
    stop_word = np.append(first_word[1:], words.height)[: tr.size]
    events = _trs(signal, config, tr, first_word, stop_word)
    n_wordless = int(tr[-1] - tr[0]) + 1 - tr.size if tr.size else 0
    if n_wordless == 0:
        return events
    wordless = int(tr[np.argmax(np.diff(tr) > 1)]) + 1
    time_s = signal.start_s + wordless / rate_hz
    detail = f"TR {wordless} at {time_s:.3f} s: no word begins in it"
    exclusion = Exclusion(Reason.NO_WORDS_IN_TR, n_wordless, detail)
    return replace(events, exclusions=(exclusion,), n_events=tr.size + n_wordless)


def _trs(signal: TimeSeries, config: GridConfig, tr: IntArray, first_word: IntArray, stop_word: IntArray) -> Candidates:
    """Events at these TRs; the response is the sample ``lag · fs`` later."""
    onset_s = signal.start_s + tr / signal.sampling_rate_hz
    return Candidates(
        noun="TR",
        onset_s=onset_s,
        offset_s=onset_s + 1.0 / signal.sampling_rate_hz,
        first_word=first_word,
        stop_word=stop_word,
        first_sample=_nearest_delays(signal, config.lags_ms)[:, None] + tr,
        n_samples=np.ones(tr.size, dtype=np.int64),
        exclusions=(),
        n_events=tr.size,
    )


def _windowed(
    recording: Recording,
    signal: TimeSeries,
    words: pl.DataFrame,
    event_words: tuple[IntArray, IntArray],
    window_s: float | None,
    config: GridConfig,
) -> Candidates:
    """Events with a response window of ``window_s``; None: as long as the event.

    Words are timed by the recording's own clock where it has one; an event without a time gets sample 0, and
    `_with_all_words` removes it.
    """
    first_word, stop_word = event_words
    word_onset_s, word_offset_s = times_s(words)
    onset_s, offset_s = word_onset_s[first_word], word_offset_s[stop_word - 1]
    rate_hz = signal.sampling_rate_hz
    lag_s = np.array(config.lags_ms)[:, None] / 1000.0
    heard_s, ended_s = onset_s, offset_s
    if (recorded_s := recording.word_onsets_s) is not None:
        last = stop_word - 1
        heard_s = recorded_s[first_word]
        ended_s = recorded_s[last] + word_offset_s[last] - word_onset_s[last]
        timed = np.isfinite(heard_s) & np.isfinite(ended_s)
        heard_s, ended_s = (np.where(timed, t, signal.start_s) for t in (heard_s, ended_s))
    length_s = ended_s - heard_s if window_s is None else np.full(onset_s.size, window_s)
    return Candidates(
        noun=config.events.removesuffix("s"),
        onset_s=onset_s,
        offset_s=offset_s,
        first_word=first_word,
        stop_word=stop_word,
        first_sample=nearest_sample(heard_s + lag_s, start_s=signal.start_s, sampling_rate_hz=rate_hz),
        n_samples=window_samples(length_s, sampling_rate_hz=rate_hz),
        exclusions=(),
        n_events=onset_s.size,
    )


def _check_tr_lags(recording: Recording, signal: TimeSeries, config: GridConfig) -> None:
    """Raise `RecordingError` if a lag is not a whole number of TRs, within 1 ms, or words have their own times."""
    if recording.word_onsets_s is not None:
        raise RecordingError(
            "a recording with its own word times cannot be put on a grid of TRs",
            where=f"{recording.where}, option 'grid.events'",
            got="events = 'trs' with word times from the recording's triggers",
            expected="one clock for words and TRs, with the time of the first TR in start_s",
            remedy="set events = 'words' or 'sentences' for this dataset",
        )
    tr_ms = 1000.0 / signal.sampling_rate_hz
    for option, values_ms in (("lags_ms", config.lags_ms), ("fir_ms", config.fir_ms)):
        for lag_ms, delay in zip(values_ms, _nearest_delays(signal, values_ms), strict=True):
            if abs(lag_ms - delay * tr_ms) <= _LAG_TOLERANCE_MS:
                continue
            below_ms = np.floor(lag_ms / tr_ms) * tr_ms
            raise RecordingError(
                "a lag is not a whole number of TRs",
                where=f"{recording.where}, option 'grid.{option}'",
                got=f"lag {lag_ms:g} ms with a TR of {tr_ms:g} ms",
                expected=f"multiples of {tr_ms:g} ms, within {_LAG_TOLERANCE_MS:g} ms",
                remedy=f"use {below_ms:g} or {below_ms + tr_ms:g} ms instead",
            )


def fir_delays(signal: TimeSeries, config: GridConfig) -> tuple[int, ...]:
    """Delays of the finite impulse response in whole TRs."""
    return tuple(_nearest_delays(signal, config.fir_ms).tolist())


def _nearest_delays(signal: TimeSeries, lags_ms: tuple[float, ...]) -> IntArray:
    """Return each lag in whole TRs."""
    return np.rint(np.array(lags_ms) / 1000.0 * signal.sampling_rate_hz).astype(np.int64)


def _with_all_words(events: Candidates, recording: Recording, words: pl.DataFrame) -> Candidates:
    """Leave out events with a word that has no time in the recording, or that the recording interrupts."""
    heard_s = recording.word_onsets_s
    if heard_s is None:
        return events
    known = np.concatenate(([0], np.cumsum(np.isfinite(heard_s))))
    n_words = events.stop_word - events.first_word
    timed = np.asarray(known[events.stop_word] - known[events.first_word] == n_words)
    detail = "a word without a time in this recording"
    events = events.without(timed, Reason.WORDS_WITHOUT_TIME, detail)
    onset_s, _ = times_s(words)
    last = events.stop_word - 1
    lasted_s = onset_s[last] - onset_s[events.first_word]
    extra_s = np.abs(heard_s[last] - heard_s[events.first_word] - lasted_s)
    whole = extra_s <= np.maximum(PAUSE_S, PAUSE_SHARE * lasted_s)
    longest = f"{extra_s.max():.3f} s" if extra_s.size else ""
    detail = f"the stimulus paused or jumped within it (largest difference: {longest})"
    return events.without(whole, Reason.BAD_SPAN, detail)


def _check_pace(recording: Recording, signal: TimeSeries, events: Candidates, config: GridConfig) -> None:
    """Raise `RecordingError` if samples are too fast to be TRs, or if several events would share one slow sample."""
    rate_hz = signal.sampling_rate_hz
    where = f"{recording.where}, option 'grid.events'"
    if config.events == "trs" and rate_hz > FASTEST_TR_HZ:
        raise RecordingError(
            "the signal is too fast to be a series of TRs",
            where=where,
            got=f"events = 'trs' with {rate_hz:g} samples per second",
            expected=f"at most {FASTEST_TR_HZ:g} per second, one per TR",
            remedy="set events = 'words' or 'sentences' for this dataset",
        )
    if config.events == "trs" or rate_hz > FASTEST_TR_HZ or events.onset_s.size < _MIN_PACED:
        return
    starts = events.first_sample[0]
    shared = 1.0 - np.unique(starts).size / starts.size
    if (events.n_samples == 1).all() and shared > 0.2:
        raise RecordingError(
            f"the signal is slower than the {config.events}",
            where=where,
            got=f"events = '{config.events}' with one sample every {1 / rate_hz:g} s: "
            f"{shared:.0%} of the events would share the sample of another",
            expected="at least one sample per event",
            remedy="set events = 'trs' for this dataset, with tr_features = 'hrf' or 'lanczos' and "
            "lags that suit the haemodynamic response",
        )


def _covered(events: Candidates, signal: TimeSeries, lags_ms: tuple[float, ...]) -> Candidates:
    """Leave out events with a window outside the recording."""
    stop_sample = events.first_sample + events.n_samples
    covered = (events.first_sample >= 0) & (stop_sample <= signal.n_samples)
    kept = np.asarray(covered.all(axis=0))
    if kept.all():
        return events
    event = int(np.argmin(kept))
    lag = int(np.argmin(covered[:, event]))
    first = int(events.first_sample[lag, event])
    detail = (
        f"at lag {lags_ms[lag]:g} ms it needs samples {first} to {first + int(events.n_samples[event]) - 1}; "
        f"the recording has {signal.n_samples}, from {signal.start_s:.3f} s on"
    )
    return events.without(kept, Reason.WORDS_OUTSIDE_RECORDING, detail)


def _without_bad_spans(events: Candidates, spans: tuple[Span, ...], signal: TimeSeries) -> Candidates:
    """Leave out events with a window, at any lag, that overlaps a span marked as unusable in the source."""
    if not spans or not events.onset_s.size:
        return events
    flags = np.zeros(signal.n_samples, dtype=np.bool_)
    edges = np.array([(span.start_s, span.stop_s) for span in spans])
    rate_hz = signal.sampling_rate_hz
    samples = nearest_sample(edges, start_s=signal.start_s, sampling_rate_hz=rate_hz)
    for first, stop in samples.tolist():
        # A span touches at least the sample nearest to its start, if that is in the recording.
        flags[max(0, first) : max(0, stop, first + 1)] = True
    hits = [touches(flags, starts, events.n_samples) for starts in events.first_sample]
    bad: BoolArray = np.logical_or.reduce(hits)
    labels = ", ".join(sorted({span.label for span in spans}))
    return events.without(~bad, Reason.BAD_SPAN, f"marked in the source: {labels}")
