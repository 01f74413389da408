"""One pass over a recording: responses of every event, and which units and events can be used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpact.codes import Reason
from lpact.datasets.base import Recording, Span, TimeSeries
from lpact.datasets.validate import Finding, UnitScan
from lpact.grid.candidates import Candidates
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.math.windows import mean_slices, nearest_sample, touches


@dataclass(frozen=True)
class Rejection:
    """Which events are rejected because of their signal.

    An event is left out if more than ``units`` of the usable units exceed ``threshold`` (absolute value, in the
    signal's physical unit) in one of its windows. With ``missing_events``, a unit with missing samples stays usable,
    and events whose windows include such a sample in any unit are left out; otherwise the unit is.
    """

    threshold: float | None = None
    units: float = 0.1
    missing_events: bool = False


@dataclass(frozen=True)
class ReadResponses:
    """Responses [n_lags, n_events, n_units] of the remaining events, usable units and findings."""

    events: Candidates
    values: FloatArray
    usable: list[int]
    findings: list[Finding]


def read_responses(
    recording: Recording, signal: TimeSeries, events: Candidates, rejection: Rejection
) -> ReadResponses:
    """Read a signal once, a few units at a time; the mean over an event's window is its response."""
    scan = UnitScan(recording, gaps_allowed=rejection.missing_events)
    n_lags, n_events = events.first_sample.shape
    values = np.empty((n_lags, n_events, signal.values.shape[1]))
    beyond = np.zeros((n_lags, n_events), dtype=np.int64)
    for units, block in signal.blocks():
        scan.add(units, block)
        for lag, starts in enumerate(events.first_sample):
            values[lag][:, units.start : units.stop] = mean_slices(block, starts, events.n_samples)
        if rejection.threshold is not None:
            beyond += _beyond(block, rejection.threshold, scan.usable_in(units), events)
    usable, findings = scan.result()
    if rejection.threshold is not None:
        kept = np.asarray((beyond <= rejection.units * len(usable)).all(axis=0))
        detail = f"more than {rejection.units:.0%} of the units beyond {rejection.threshold:g}"
        events, values = events.without(kept, Reason.BAD_SPAN, detail), values[:, kept]
    if rejection.missing_events:
        kept = np.asarray(np.isfinite(values[..., usable]).all(axis=(0, 2)))
        detail = "values that are not finite"
        events, values = events.without(kept, Reason.MISSING_SAMPLES, detail), values[:, kept]
    return ReadResponses(events, values, usable, findings)


def _beyond(block: FloatArray, threshold: float, usable: BoolArray, events: Candidates) -> IntArray:
    """Usable units of a block that exceed the threshold, by lag and event."""
    counts = np.zeros(events.first_sample.shape, dtype=np.int64)
    for column in np.flatnonzero(usable):
        with np.errstate(invalid="ignore"):
            flags = np.abs(block[:, column]) > threshold
        for lag, starts in enumerate(events.first_sample):
            counts[lag] += touches(flags, starts, events.n_samples)
    return counts


def without_bad_spans(
    events: Candidates, spans: tuple[Span, ...], signal: TimeSeries
) -> Candidates:
    """Leave out events with a window, at any lag, that overlaps a span marked as unusable in the source."""
    if not spans or not events.onset_s.size:
        return events
    flags = np.zeros(signal.n_samples, dtype=np.bool_)
    edges = np.array([(span.start_s, span.stop_s) for span in spans])
    rate_hz = signal.sampling_rate_hz
    samples = nearest_sample(edges, start_s=signal.start_s, sampling_rate_hz=rate_hz)
    for first, stop in samples.tolist():
        # A span touches at least the sample nearest to its start, if the recording holds it.
        flags[max(0, first) : max(0, stop, first + 1)] = True
    hits = [touches(flags, starts, events.n_samples) for starts in events.first_sample]
    bad: BoolArray = np.logical_or.reduce(hits)
    labels = ", ".join(sorted({span.label for span in spans}))
    return events.without(~bad, Reason.BAD_SPAN, f"marked in the source: {labels}")
