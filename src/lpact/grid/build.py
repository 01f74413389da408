"""From a recording and its stimulus to the event grid."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lpact.codes import Reason
from lpact.config import GridConfig, PreprocessConfig
from lpact.datasets.base import Epochs, Finding, Recording, Stimulus, TimeSeries
from lpact.datasets.validate import UnitScan, check_recording, check_stimulus, check_word_onsets, unit_findings
from lpact.errors import RecordingError
from lpact.grid.candidates import Candidates, fir_delays, usable_events
from lpact.grid.event_grid import EventGrid, Exclusion
from lpact.grid.words import slices, story_codes, times_s
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.math.windows import mean_slices, touches


@dataclass(frozen=True)
class ReadGrid:
    """A grid over all units of a recording, the indices of usable ones, and findings on the others."""

    grid: EventGrid
    usable: list[int]
    findings: tuple[Finding, ...]


def build_grid(
    recording: Recording,
    stimulus: Stimulus,
    config: GridConfig,
    rules: PreprocessConfig | None = None,
) -> EventGrid:
    """Return the events of a recording with their responses at every lag; docs/explanation/event-grid.md defines them.

    An event is kept only if its windows at all lags lie within the recording, so that all lags share the same rows. A
    grid without events lists the reasons in its exclusions.
    """
    return read_grid(recording, stimulus, config, rules).grid


def read_grid(
    recording: Recording,
    stimulus: Stimulus,
    config: GridConfig,
    rules: PreprocessConfig | None = None,
) -> ReadGrid:
    """Return a recording's grid and the findings on its units, in one pass over the signal.

    ``rules`` say which events are left out because of their signal: ``artefact_threshold``, ``artefact_units``,
    ``missing``.
    """
    check_recording(recording)
    check_stimulus(stimulus)
    check_word_onsets(recording, stimulus)
    rules = rules or PreprocessConfig()
    gaps_allowed = rules.missing != "drop_units"
    if isinstance(recording.signal, Epochs):
        usable, findings = unit_findings(recording, gaps_allowed=gaps_allowed)
        grid = _epoch_grid(recording, recording.signal, stimulus, config)
        if rules.missing == "drop_events":
            grid = _without_gaps(grid, usable)
        return ReadGrid(grid, usable, tuple(findings))
    if lacking := stimulus.lacks("onset_s"):
        raise RecordingError(
            "a continuous recording needs the times of its items",
            where=recording.where,
            got=f"stimulus '{stimulus.id}' ({stimulus.where}): {lacking}",
            expected="a time in seconds for each item",
            remedy="add the column 'onset_s', or provide one response per item (epochs)",
        )
    return _series_grid(recording, recording.signal, stimulus, config, rules)


def _series_grid(
    recording: Recording,
    signal: TimeSeries,
    stimulus: Stimulus,
    config: GridConfig,
    rules: PreprocessConfig,
) -> ReadGrid:
    words = stimulus.words
    events = usable_events(recording, signal, words, config)
    events, responses, scan = _read_responses(recording, signal, events, rules)
    usable, findings = scan.result()
    grid = EventGrid(
        onset_s=events.onset_s,
        offset_s=events.offset_s,
        sentence=words["sentence_id"].to_numpy()[events.first_word],
        story=story_codes(words)[events.first_word],
        responses=responses,
        lags_ms=config.lags_ms,
        reference_lag=_reference_lag(config.lags_ms, config.reference_lag_ms),
        units=recording.units,
        first_word=events.first_word,
        stop_word=events.stop_word,
        n_words=words.height,
        pooling=config.pooling,
        exclusions=events.exclusions,
        n_candidate_events=events.n_events,
        weights=events.weights,
        fir_delays=fir_delays(signal, config),
    )
    return ReadGrid(grid, usable, tuple(findings))


def _read_responses(
    recording: Recording, signal: TimeSeries, events: Candidates, rules: PreprocessConfig
) -> tuple[Candidates, FloatArray, UnitScan]:
    """Read a signal once, a few units at a time: events that are not rejected, and their responses.

    A response is the mean over an event's window, [n_lags, n_events, n_units].
    """
    gaps_allowed, threshold = rules.missing != "drop_units", rules.artefact_threshold
    scan = UnitScan(recording, gaps_allowed=gaps_allowed)
    n_lags, n_events = events.first_sample.shape
    values = np.empty((n_lags, n_events, signal.values.shape[1]))
    beyond = np.zeros((n_lags, n_events), dtype=np.int64)
    for units, block in signal.blocks():
        scan.add(units, block)
        for lag, starts in enumerate(events.first_sample):
            values[lag][:, units.start : units.stop] = mean_slices(block, starts, events.n_samples)
        if threshold is not None:
            beyond += _beyond(block, threshold, scan.usable_in(units), events)
    usable, _ = scan.result()
    if threshold is not None:
        kept = np.asarray((beyond <= rules.artefact_units * len(usable)).all(axis=0))
        detail = f"more than {rules.artefact_units:.0%} of the units beyond {threshold:g}"
        events, values = events.without(kept, Reason.BAD_SPAN, detail), values[:, kept]
    if rules.missing == "drop_events":
        kept = np.asarray(np.isfinite(values[..., usable]).all(axis=(0, 2)))
        detail = "values that are not finite"
        events, values = events.without(kept, Reason.MISSING_SAMPLES, detail), values[:, kept]
    return events, np.ascontiguousarray(values), scan


def _beyond(block: FloatArray, threshold: float, usable: BoolArray, events: Candidates) -> IntArray:
    """Usable units of a block that exceed the threshold, by lag and event."""
    counts = np.zeros(events.first_sample.shape, dtype=np.int64)
    for column in np.flatnonzero(usable):
        with np.errstate(invalid="ignore"):
            flags = np.abs(block[:, column]) > threshold
        for lag, starts in enumerate(events.first_sample):
            counts[lag] += touches(flags, starts, events.n_samples)
    return counts


def _epoch_grid(recording: Recording, signal: Epochs, stimulus: Stimulus, config: GridConfig) -> EventGrid:
    """One event per epoch: a word (or another item), or a sentence."""
    words = stimulus.words
    if config.events == "trs":
        raise RecordingError(
            "epoched data cannot be put on an event grid of TRs",
            where=f"{recording.where}, option 'grid.events'",
            got="events = 'trs' with one epoch per event",
            expected="events = 'words' or 'sentences', or a continuous time series",
            remedy="set events = 'words' or 'sentences', or provide the continuous recording",
        )
    first_word = np.arange(words.height)
    stop_word = first_word + 1
    if config.events == "sentences":
        first_word, stop_word = slices(words, "sentence_id")
    if signal.values.shape[1] != first_word.size:
        noun = config.events.removesuffix("s")
        raise RecordingError(
            f"the epochs and the {config.events} do not match",
            where=recording.where,
            got=f"{signal.values.shape[1]} epochs per lag (shape {signal.values.shape})",
            expected=f"{first_word.size} epochs, one per {noun} of {stimulus.where}",
            remedy=f"cut the epochs again from this words table, or set 'grid.events' to what an "
            f"epoch is ({words.height} words, {words['sentence_id'].n_unique()} sentences)",
        )
    onset_s, offset_s = times_s(words)
    return EventGrid(
        onset_s=onset_s[first_word],
        offset_s=offset_s[stop_word - 1],
        sentence=words["sentence_id"].to_numpy()[first_word],
        story=story_codes(words)[first_word],
        responses=np.ascontiguousarray(signal.values, dtype=np.float64),
        lags_ms=signal.lags_ms,
        reference_lag=_reference_lag(signal.lags_ms, config.reference_lag_ms),
        units=recording.units,
        first_word=first_word,
        stop_word=stop_word,
        n_words=words.height,
        pooling=config.pooling,
        exclusions=(),
        n_candidate_events=first_word.size,
    )


def _without_gaps(grid: EventGrid, usable: list[int]) -> EventGrid:
    """Leave out epochs in which a usable unit is not finite at some lag."""
    kept = np.isfinite(grid.responses[..., usable]).all(axis=(0, 2))
    if kept.all():
        return grid
    event = int(np.argmin(kept))
    detail = f"epoch {event} (from 0): values that are not finite"
    rows = ("onset_s", "offset_s", "sentence", "story", "first_word", "stop_word")
    return replace(
        grid,
        responses=np.ascontiguousarray(grid.responses[:, kept]),
        exclusions=(Exclusion(Reason.MISSING_SAMPLES, int((~kept).sum()), detail),),
        **{name: getattr(grid, name)[kept] for name in rows},
    )


def _reference_lag(lags_ms: tuple[float, ...], wanted_ms: float | None) -> int:
    """Index of the reference lag; of the middle one if there is none or epochs do not have it."""
    return lags_ms.index(wanted_ms) if wanted_ms in lags_ms else len(lags_ms) // 2
