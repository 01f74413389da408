"""From a recording and its stimulus to the event grid."""

from __future__ import annotations

import numpy as np

from lpact.config import GridConfig
from lpact.datasets.base import Epochs, Recording, Stimulus, TimeSeries
from lpact.datasets.validate import check_recording, check_stimulus
from lpact.errors import RecordingError
from lpact.grid.candidates import (
    Candidates,
    check_tr_lags,
    sentence_candidates,
    tr_candidates,
    word_candidates,
)
from lpact.grid.event_grid import EventGrid, Exclusion
from lpact.grid.windows import mean_slices
from lpact.grid.words import story_codes, times_s
from lpact.math.types import BoolArray
from lpact.reasons import Reason

_CANDIDATES = {
    "words": word_candidates,
    "sentences": sentence_candidates,
    "trs": tr_candidates,
}


def build_grid(recording: Recording, stimulus: Stimulus, config: GridConfig) -> EventGrid:
    """Return the events of a recording with their responses at every candidate lag.

    For a time series, the response is the mean over the samples of the event's window; an event is
    kept only if its windows at all lags lie within the recording, so that all lags share the same
    rows. Epoched data are taken as they are, with their own lags. The definitions are in
    ``docs/explanation/event-grid.md``.

    Without words, or if no event survives, the grid has zero events; its exclusions say why.

    Raises
    ------
    RecordingError
        If the recording is malformed, or does not fit the words or the configured events.
    StimulusError
        If the stimulus is malformed.
    """
    check_recording(recording)
    check_stimulus(stimulus)
    if isinstance(recording.signal, Epochs):
        return _epoch_grid(recording, recording.signal, stimulus, config)
    return _series_grid(recording, recording.signal, stimulus, config)


def _series_grid(
    recording: Recording, signal: TimeSeries, stimulus: Stimulus, config: GridConfig
) -> EventGrid:
    if config.events == "trs":
        check_tr_lags(recording, signal, config)
    words = stimulus.words
    candidates = _CANDIDATES[config.events](signal, words, config)
    n_samples = len(signal.values)
    stop_sample = candidates.first_sample + candidates.n_samples
    covered = (candidates.first_sample >= 0) & (stop_sample <= n_samples)
    kept = covered.all(axis=0)
    values = np.asarray(signal.values, dtype=np.float64)
    responses = np.empty((len(config.lags_ms), int(kept.sum()), values.shape[1]))
    for lag, starts in enumerate(candidates.first_sample[:, kept]):
        responses[lag] = mean_slices(values, starts, candidates.n_samples[kept])
    first_word = candidates.first_word[kept]
    return EventGrid(
        onset_s=candidates.onset_s[kept],
        offset_s=candidates.offset_s[kept],
        sentence=words["sentence_id"].to_numpy()[first_word],
        story=story_codes(words)[first_word],
        responses=responses,
        lags_ms=config.lags_ms,
        reference_lag=_reference_lag(config.lags_ms, config.reference_lag_ms),
        units=recording.units,
        first_word=first_word,
        stop_word=candidates.stop_word[kept],
        n_words=words.height,
        pooling=config.pooling,
        exclusions=candidates.exclusions + _uncovered(candidates, covered, signal, config.lags_ms),
        n_candidate_events=candidates.n_events,
    )


def _epoch_grid(
    recording: Recording, signal: Epochs, stimulus: Stimulus, config: GridConfig
) -> EventGrid:
    words = stimulus.words
    if config.events != "words":
        raise RecordingError(
            f"epoched data cannot be put on an event grid of {config.events}",
            where=f"{recording.where}, option 'grid.events'",
            got=f"events = '{config.events}' with one epoch a word",
            expected="events = 'words', or a continuous time series",
            remedy="set events = 'words' for this dataset, or provide the continuous recording",
        )
    if signal.values.shape[1] != words.height:
        raise RecordingError(
            "the epochs and the words do not match",
            where=recording.where,
            got=f"{signal.values.shape[1]} epochs a lag (shape {signal.values.shape})",
            expected=f"{words.height} epochs, one a word of {stimulus.where}",
            remedy="cut the epochs again from this words table",
        )
    onset_s, offset_s = times_s(words)
    first_word = np.arange(words.height)
    return EventGrid(
        onset_s=onset_s,
        offset_s=offset_s,
        sentence=words["sentence_id"].to_numpy(),
        story=story_codes(words),
        responses=np.ascontiguousarray(signal.values, dtype=np.float64),
        lags_ms=signal.lags_ms,
        reference_lag=_reference_lag(signal.lags_ms, config.reference_lag_ms),
        units=recording.units,
        first_word=first_word,
        stop_word=first_word + 1,
        n_words=words.height,
        pooling=config.pooling,
        exclusions=(),
        n_candidate_events=words.height,
    )


def _reference_lag(lags_ms: tuple[float, ...], wanted_ms: float | None) -> int:
    """Index of the wanted lag; of the middle one if none is wanted or epochs lack it."""
    return lags_ms.index(wanted_ms) if wanted_ms in lags_ms else len(lags_ms) // 2


def _uncovered(
    candidates: Candidates, covered: BoolArray, signal: TimeSeries, lags_ms: tuple[float, ...]
) -> tuple[Exclusion, ...]:
    """Return the exclusion of events with a window outside the recording, if there are any."""
    outside = ~covered.all(axis=0)
    if not outside.any():
        return ()
    event = int(np.argmax(outside))
    lag = int(np.argmin(covered[:, event]))
    first = int(candidates.first_sample[lag, event])
    last = first + int(candidates.n_samples[event]) - 1
    detail = (
        f"{candidates.noun} at {candidates.onset_s[event]:.3f} s: at lag {lags_ms[lag]:g} ms "
        f"it needs samples {first} to {last}; the recording has {len(signal.values)}, "
        f"from {signal.start_s:.3f} s on"
    )
    return (Exclusion(Reason.WORDS_OUTSIDE_RECORDING, int(outside.sum()), detail),)
