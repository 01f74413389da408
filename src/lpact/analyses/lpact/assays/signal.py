"""The preprocessed signal that positive controls of the stimulus use, read a few units at a time, and its clock.

Samples that the source marks as bad, or that exceed the study's artefact threshold, are missing, unit by unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy

from lpact.config import DatasetConfig, PreprocessConfig
from lpact.datasets.base import Dataset, Recording, RecordingId, Stimulus, TimeSeries
from lpact.datasets.series import block_width
from lpact.datasets.validate import UnitScan, check_recording
from lpact.grid.candidates import FASTEST_TR_HZ, PAUSE_S, PAUSE_SHARE
from lpact.grid.words import times_s
from lpact.math.surrogates import autocorrelation_time
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.math.windows import nearest_sample
from lpact.preprocess import preprocess
from lpact.preprocess.filters import ratio_of_rates

PROBED_UNITS = 8
PROBE_HZ = 25.0
DRIFT_S = 10.0
"""Slower changes count as drift, not as autocorrelation: a shift within a story does not undo them."""

SERIES, TRS, EPOCHS = "time_series", "trs", "epochs"


@dataclass(frozen=True)
class OpenRecording:
    """A preprocessed recording; ``kind`` is `SERIES`, `TRS` or `EPOCHS`."""

    recording: Recording
    kind: str
    preprocess: PreprocessConfig

    @property
    def series(self) -> TimeSeries:
        """The continuous signal; epochs have none."""
        assert isinstance(self.recording.signal, TimeSeries)
        return self.recording.signal


def open_recording(dataset: Dataset, recording_id: RecordingId, entry: DatasetConfig) -> OpenRecording:
    """Open and preprocess a recording; a streamed one is not read yet."""
    recording = preprocess(dataset.recording(recording_id), entry.preprocess)
    check_recording(recording)
    rate_hz = getattr(recording.signal, "sampling_rate_hz", None)
    return OpenRecording(recording, kind_of(rate_hz, entry), entry.preprocess)


def kind_of(rate_hz: float | None, entry: DatasetConfig) -> str:
    """How a signal is sampled: epochs (which have no rate), one sample per TR, or samples faster than words."""
    if rate_hz is None:
        return EPOCHS
    return TRS if rate_hz <= FASTEST_TR_HZ or entry.grid.events == "trs" else SERIES


def usable_columns(opened: OpenRecording) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield indices and values [n_samples, n] of usable units, block by block; NaN marks missing samples."""
    config, series = opened.preprocess, opened.series
    scan = UnitScan(opened.recording, gaps_allowed=config.missing != "drop_units")
    bad = bad_samples(opened)
    for indices, block in series.blocks():
        scan.add(indices, block)
        usable = np.flatnonzero(scan.usable_in(indices))
        if usable.size:
            yield indices.start + usable, _cleaned(block[:, usable], bad, config)


def bad_samples(opened: OpenRecording) -> BoolArray:
    """Samples that the source marks as unusable, [n_samples]."""
    series = opened.series
    flags = np.zeros(series.n_samples, dtype=np.bool_)
    for span in opened.recording.bad_spans:
        first, stop = nearest_sample(
            np.array([span.start_s, span.stop_s]),
            start_s=series.start_s,
            sampling_rate_hz=series.sampling_rate_hz,
        ).tolist()
        flags[max(0, first) : max(0, stop, first + 1)] = True
    return flags


def _cleaned(columns: FloatArray, bad: BoolArray, config: PreprocessConfig) -> FloatArray:
    values: FloatArray = np.array(columns, dtype=np.float64, order="F")
    values[bad] = np.nan
    values[~np.isfinite(values)] = np.nan
    if config.artefact_threshold is not None:
        values[np.abs(values) > config.artefact_threshold] = np.nan
    return values


def resampling(rate_hz: float, wanted_hz: float) -> Fraction:
    """Return new over old sampling rate; 1 where the signal is slower already."""
    return Fraction(1) if wanted_hz >= rate_hz else ratio_of_rates(wanted_hz, rate_hz)


def resampled(columns: FloatArray, ratio: Fraction) -> FloatArray:
    """Return [n_samples, n] at the new rate, low-passed; NaN wherever the low-pass spans a missing sample.

    New sample k is at the time of old sample ``k / ratio``.
    """
    if ratio == 1:
        return columns
    values = np.empty((math.ceil(len(columns) * ratio), columns.shape[1]), order="F")
    up, down = ratio.numerator, ratio.denominator
    for place, column in enumerate(columns.T):
        values[:, place] = scipy.signal.resample_poly(column, up, down, padtype="edge")
    return values


def autocorrelation_s(opened: OpenRecording) -> float:
    """Seconds until autocorrelation is below 1/e, without a running mean of ten seconds: the longest of eight units."""
    series = opened.series
    ratio = resampling(series.sampling_rate_hz, PROBE_HZ)
    rate_hz = series.sampling_rate_hz * float(ratio)
    n_units = series.values.shape[1]
    picked = np.linspace(0, n_units - 1, min(PROBED_UNITS, n_units)).round().astype(int).tolist()
    bad = bad_samples(opened)
    length = max(20, round(DRIFT_S * rate_hz))
    longest, width = 1, block_width(series.values)
    for first in range(0, len(picked), width):
        some = _cleaned(series.read(picked[first : first + width]), bad, opened.preprocess)
        for column in resampled(some, ratio).T:
            finite = column[np.isfinite(column)]
            if finite.size > length and finite.min() < finite.max():
                fast = finite - scipy.ndimage.uniform_filter1d(finite, length)
                longest = max(longest, autocorrelation_time(fast[:, None]))
    return longest / rate_hz


@dataclass(frozen=True)
class Clock:
    """Maps times of a recording to times of its stimulus; without separate word times, both have one clock.

    Times between two words are interpolated; before the first and after the last, time runs at the same pace. Where the
    stimulus paused or jumped between two words (by more than 0.25 s and 2 %, as for events of the grid), times are NaN.
    """

    heard_s: FloatArray
    said_s: FloatArray

    @classmethod
    def of(cls, recording: Recording, stimulus: Stimulus) -> Clock:
        """From the times of words."""
        own = recording.word_onsets_s
        if own is None:
            return cls(np.empty(0), np.empty(0))
        onset_s, _ = times_s(stimulus.words)
        known = np.isfinite(own)
        heard_s, first = np.unique(own[known], return_index=True)
        return cls(heard_s, onset_s[known][first])

    def stimulus_s(self, recording_s: FloatArray) -> FloatArray:
        """Times of the stimulus at these times of the recording."""
        heard, said = self.heard_s, self.said_s
        if heard.size == 0:
            return recording_s
        inside = np.clip(recording_s, heard[0], heard[-1])
        moment: FloatArray = np.interp(inside, heard, said) + (recording_s - inside)
        lasted_s = np.diff(said)
        extra_s = np.abs(np.diff(heard) - lasted_s)
        broken = np.flatnonzero(extra_s > np.maximum(PAUSE_S, PAUSE_SHARE * lasted_s))
        for gap in broken.tolist():
            between = (recording_s > heard[gap]) & (recording_s < heard[gap + 1])
            moment[between] = np.nan
        return moment


def words_heard(recording: Recording, stimulus: Stimulus) -> tuple[FloatArray, FloatArray]:
    """Onset and offset of every word on the recording's clock, [n_words]; words last as long as in the stimulus."""
    onset_s, offset_s = times_s(stimulus.words)
    if recording.word_onsets_s is None:
        return onset_s, offset_s
    return recording.word_onsets_s, recording.word_onsets_s + offset_s - onset_s
