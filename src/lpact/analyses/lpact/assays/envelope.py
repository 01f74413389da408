"""Does the signal follow the sound? Held-out correlation with the envelope at several lags, against the wrong times.

A time course is a function of time on the stimulus' clock: its envelope, or a proxy made from word times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl

from lpact.analyses.lpact.assays.low_level import MIN_SHIFT_S
from lpact.analyses.lpact.assays.scores import Scores, by_gaps, held_out_pearson, rotated_rows, shift_parts
from lpact.analyses.lpact.assays.signal import TRS, Clock, OpenRecording, resampling, words_heard
from lpact.analyses.lpact.config import LPactConfig
from lpact.codes import Reason
from lpact.config import DatasetConfig, NuisanceConfig
from lpact.datasets.base import AbsentMedium, Stimulus
from lpact.features.acoustics import EnvelopeSettings, stimulus_envelope, why_no_envelope
from lpact.grid.words import times_s
from lpact.inputs.media import ACOUSTIC_COLUMNS, ENVELOPE, media_of
from lpact.math.columns import standard_columns
from lpact.math.resample import HRFS, hrf_weights
from lpact.math.surrogates import autocorrelation_time
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.splits import contiguous

ONSET_PULSE_S = 0.01
"""Length of the pulse at a word's onset; its area is 1."""
SILENCE_S = 60.0
"""A proxy is 0 for this long before the first and after the last word: more than any lag."""

PROXIES = ("speech_activity_boxcar", "transcript_derived_proxy", "word_onset_control")
BOXCAR, TRANSCRIPT, ONSETS = PROXIES
"""Options of ``controls/acoustic_proxy_alternatives`` that are no envelope."""
VALUES_AT_A_TIME = 2**22
"""Values of units, at the assay's rate, that are processed at a time."""
HRF_STEP_S = 0.1
"""Steps in which an envelope is convolved with a haemodynamic response."""


@dataclass(frozen=True)
class TimeCourse:
    """A function of time that is constant between ``edges_s`` [m + 1], which rise: ``values`` is [m, n_columns]."""

    edges_s: FloatArray
    values: FloatArray

    @property
    def span_s(self) -> tuple[float, float]:
        """Start and end."""
        return float(self.edges_s[0]), float(self.edges_s[-1])

    def mean_between(self, start_s: FloatArray, stop_s: FloatArray) -> FloatArray:
        """Return the mean over each interval, [n, n_columns]; NaN if it is not covered or an edge is NaN."""
        steps = np.diff(self.edges_s)[:, None] * self.values
        area = np.vstack([np.zeros((1, steps.shape[1])), np.cumsum(steps, axis=0)])
        first, last = self.span_s
        covered = (start_s >= first) & (stop_s <= last) & (stop_s > start_s)
        a, b = (np.where(covered, edge, first) for edge in (start_s, stop_s))
        width = np.where(covered, stop_s - start_s, 1.0)
        means = [(np.interp(b, self.edges_s, column) - np.interp(a, self.edges_s, column)) / width for column in area.T]
        return np.where(covered[:, None], np.stack(means, axis=1), np.nan)

    def reversed_between(self, start_s: float, stop_s: float) -> TimeCourse:
        """Return the course backwards: its value at t is that at ``start_s + stop_s − t``."""
        return TimeCourse(start_s + stop_s - self.edges_s[::-1], self.values[::-1])


def envelope_time_course(stimulus: Stimulus, config: NuisanceConfig) -> TimeCourse | AbsentMedium:
    """The acoustic envelope, the dataset's or its WAV file's, or why there is none.

    Sample k covers the time from half a step before its time to half a step after it. WAV files are read in pieces.
    """
    if why_no_envelope(stimulus) is not None:
        return media_of(stimulus).why_not(ENVELOPE)
    settings = EnvelopeSettings(config.envelope_rate_hz, config.envelope_lowpass_hz)
    envelope = stimulus_envelope(stimulus, settings)
    k = np.arange(envelope.values.size + 1, dtype=np.float64)
    edges_s = envelope.start_s + (k - 0.5) / envelope.sampling_rate_hz
    return TimeCourse(edges_s, np.asarray(envelope.values, dtype=np.float64)[:, None])


def proxy_time_course(stimulus: Stimulus, proxy: str) -> TimeCourse | AbsentMedium:
    """Return a proxy, or why there is none.

    ``speech_activity_boxcar`` is 1 while a word is spoken; ``transcript_derived_proxy`` has the acoustic columns of the
    words table, standardised over words; ``word_onset_control`` has a pulse at every onset. All are 0 elsewhere.
    """
    onset_s, offset_s = times_s(stimulus.words)
    if onset_s.size == 0:
        return AbsentMedium(Reason.EMPTY_RUN, "no words")
    if lacking := stimulus.lacks("onset_s"):
        return AbsentMedium(Reason.NUISANCE_NOT_OFFERED, lacking)
    if proxy == ONSETS:
        height = np.full((onset_s.size, 1), 1.0 / ONSET_PULSE_S)
        return _steps(onset_s, onset_s + ONSET_PULSE_S, height)
    if proxy == BOXCAR:
        spoken = _steps(onset_s, offset_s, np.ones((onset_s.size, 1)))
        return TimeCourse(spoken.edges_s, np.minimum(spoken.values, 1.0))
    columns = [
        column.cast(pl.Float64).to_numpy()
        for name in ACOUSTIC_COLUMNS
        if name in stimulus.words.columns
        and (column := stimulus.words[name]).dtype.is_numeric()
        and column.null_count() == 0
    ]
    known = [c for c in columns if np.isfinite(c).all() and c.min() < c.max()]
    if not known:
        detail = f"no column of {', '.join(ACOUSTIC_COLUMNS)} with a number for every word"
        return AbsentMedium(Reason.NUISANCE_NOT_OFFERED, detail)
    values = np.stack([(c - c.mean()) / c.std() for c in known], axis=1)
    return _steps(onset_s, offset_s, values)


def _steps(start_s: FloatArray, stop_s: FloatArray, heights: FloatArray) -> TimeCourse:
    """Sum of boxes from start to stop, one per word, of heights [n, n_columns]; 0 elsewhere."""
    stop_s = np.maximum(stop_s, start_s + ONSET_PULSE_S)
    at_s = np.concatenate([start_s, stop_s])
    edges_s, place = np.unique(at_s, return_inverse=True)
    jumps = np.zeros((edges_s.size, heights.shape[1]))
    np.add.at(jumps, place, np.concatenate([heights, -heights]))
    level = np.cumsum(jumps, axis=0)[:-1]
    silent = np.zeros((1, heights.shape[1]))
    around_s = ([edges_s[0] - SILENCE_S], edges_s, [edges_s[-1] + SILENCE_S])
    return TimeCourse(np.concatenate(around_s), np.vstack([silent, level, silent]))


def rate_ratio(opened: OpenRecording, config: LPactConfig) -> Fraction:
    """The rate at which signal and stimulus are compared, over that of the signal."""
    return resampling(opened.series.sampling_rate_hz, config.assay.envelope_rate_hz)


class TimeCourseScorer:
    """One time course of the stimulus compared with the signal, over the whole recording or only between words.

    Lags are those of the assay, or for TRs the delays of the dataset's grid. Units are added a few at a time.
    """

    def __init__(
        self,
        opened: OpenRecording,
        stimulus: Stimulus,
        course: TimeCourse,
        *,
        config: LPactConfig,
        entry: DatasetConfig,
        words_only: bool,
        autocorrelation_s: float,
        rng: np.random.Generator,
    ) -> None:
        series, grid = opened.series, entry.grid
        assay, readout = config.assay, config.readout
        self._trs = opened.kind == TRS
        self._lags_ms = grid.fir_ms or grid.lags_ms if self._trs else assay.envelope_lags_ms
        self._hrf = grid.hrf if self._trs and grid.tr_features == "hrf" else None
        ratio = rate_ratio(opened, config)
        self.rate_hz = series.sampling_rate_hz * float(ratio)
        times_s = series.start_s + np.arange(math.ceil(series.n_samples * ratio)) / self.rate_hz
        clock = Clock.of(opened.recording, stimulus)
        rows = np.arange(times_s.size)
        if words_only:
            rows = np.flatnonzero(_between_words(times_s, opened, stimulus))
        real = self._design(times_s[rows], course, clock)
        inside = np.isfinite(real).all(axis=1)
        rows, real = rows[inside], real[inside]
        backwards = real
        if rows.size:
            edges_s = clock.stimulus_s(times_s[rows[[0, -1]]])
            turned = course.reversed_between(float(edges_s[0]), float(edges_s[1]))
            backwards = self._design(times_s[rows], turned, clock)
        both = np.isfinite(backwards).all(axis=1)
        self._rows, self._real, self._reversed = rows[both], real[both], backwards[both]
        self.n_rows = self._rows.size
        longest_s = max(abs(lag) for lag in self._lags_ms) / 1000.0
        self._gap = math.ceil(max(MIN_SHIFT_S, longest_s, autocorrelation_s) * self.rate_hz)
        self._n_folds, self._n_shifts = readout.folds, assay.shifts
        self._fewest = readout.min_test_events
        self._parts = shift_parts(self._n_shifts, 1, rng)
        self._waiting: list[FloatArray] = []
        self._done: list[FloatArray] = []
        self.reason = self._why_not()

    def _design(self, times_s: FloatArray, course: TimeCourse, clock: Clock) -> FloatArray:
        """The course at every lag, [n, n_lags · n_columns], lag by lag; NaN if the stimulus has no such time."""
        step_s = 1.0 / self.rate_hz
        # A sample represents the time around it; a TR the time that follows.
        before_s = 0.0 if self._trs else step_s / 2
        blocks = []
        for lag_ms in self._lags_ms:
            start_s = times_s - lag_ms / 1000.0 - before_s
            if self._hrf is not None:
                blocks.append(through_hrf(start_s, course, self._hrf))
                continue
            edges = (clock.stimulus_s(start_s), clock.stimulus_s(start_s + step_s))
            blocks.append(course.mean_between(*edges))
        return np.hstack(blocks)

    def _why_not(self) -> Reason:
        if self.n_rows < self._n_folds * self._fewest:
            return Reason.TOO_FEW_EVENTS
        if not (self._real.max(axis=0) > self._real.min(axis=0)).all():
            return Reason.UNDEFINED_SCORE
        return Reason.OK if self._orders(self._real) is not None else Reason.SHIFT_NOT_POSSIBLE

    def _orders(self, real: FloatArray) -> IntArray | None:
        far = max(self._gap, autocorrelation_time(real))
        return rotated_rows(np.zeros(len(real), dtype=np.int64), far, self._parts)

    def add(self, columns: FloatArray) -> None:
        """Add units, [n_samples, n] at the rate of `rate_ratio`; NaN marks missing samples."""
        if self.reason is not Reason.OK:
            return
        self._waiting += list(columns[self._rows].T)
        some = max(1, VALUES_AT_A_TIME // self.n_rows)
        while len(self._waiting) >= some:
            self._score(some)

    def _score(self, n_units: int) -> None:
        """Scores of the first units waiting: real, reversed, at every shift, and squared correlation by lag."""
        y = np.stack(self._waiting[:n_units], axis=1)
        del self._waiting[:n_units]
        n_lags = len(self._lags_ms)
        scores = np.full((2 + self._n_shifts + n_lags, n_units), np.nan)
        self._done.append(scores)
        for rows, columns in by_gaps(y):
            if rows.size < max(2 * self._gap + 2, self._n_folds * self._fewest):
                continue
            real, own = self._real[rows], y[np.ix_(rows, columns)]
            folds = contiguous(rows.size, self._n_folds, gap=self._gap).folds
            orders = self._orders(real)
            shortest = min(len(folds.train_rows(b)) for b in range(self._n_folds))
            if orders is None or shortest < self._fewest:
                continue
            found = held_out_pearson(real, own, folds, orders)
            backwards = held_out_pearson(self._reversed[rows], own, folds)
            a, b = standard_columns(real)[0], standard_columns(own)[0]
            squares = (a.T @ b / len(a)) ** 2
            by_lag = squares.reshape(n_lags, -1, own.shape[1]).mean(axis=1)
            scores[:, columns] = np.concatenate([found[:1], backwards, found[1:], by_lag])

    def result(self) -> tuple[Scores, FloatArray, float] | Reason:
        """Scores of all added units, reversed scores [n_units] and the lag of the largest correlation; or why not."""
        if self._waiting:
            self._score(len(self._waiting))
        if self.reason is not Reason.OK:
            return self.reason
        if not self._done:
            return Reason.TOO_FEW_UNITS
        n = 2 + self._n_shifts
        (real, backwards), shifted, by_lag = np.split(np.hstack(self._done), [2, n])
        real = np.where(np.isfinite(backwards), real, np.nan)
        scores = Scores(real, shifted, self.n_rows, "median")
        if not scores.defined.any():
            return Reason.UNDEFINED_SCORE
        best = int(np.argmax(by_lag[:, scores.defined].mean(axis=1)))
        return scores, backwards, self._lags_ms[best]


def _between_words(times_s: FloatArray, opened: OpenRecording, stimulus: Stimulus) -> BoolArray:
    """Whether each time is between the first word's onset and the last one's offset."""
    onset_s, offset_s = words_heard(opened.recording, stimulus)
    known = np.isfinite(onset_s)
    first, last = onset_s[known].min(initial=np.inf), offset_s[known].max(initial=-np.inf)
    near: BoolArray = (times_s >= first) & (times_s <= last)
    return near


def through_hrf(start_s: FloatArray, course: TimeCourse, hrf: str) -> FloatArray:
    """The course convolved with a haemodynamic response at these times; NaN before and after the course."""
    first, stop = course.span_s
    bins_s = np.arange(first, stop - HRF_STEP_S, HRF_STEP_S)
    values = course.mean_between(bins_s, bins_s + HRF_STEP_S)
    heard = (start_s >= first) & (start_s <= stop)
    weights = hrf_weights(start_s, bins_s + HRF_STEP_S / 2, HRFS[hrf])
    convolved = np.asarray(weights @ values) * HRF_STEP_S
    return np.where(heard[:, None], convolved, np.nan)
