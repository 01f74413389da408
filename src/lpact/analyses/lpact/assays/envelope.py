"""Does the signal follow the sound? Held-out correlation with the envelope at several lags, against the wrong times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from lpact.analyses.lpact.assays.clock import Clock, words_heard
from lpact.analyses.lpact.assays.courses import Course
from lpact.analyses.lpact.assays.held_out import by_gaps, held_out_pearson
from lpact.analyses.lpact.assays.low_level import MIN_SHIFT_S, Scores
from lpact.analyses.lpact.assays.shifts import rotated_rows, shift_parts
from lpact.analyses.lpact.assays.signal import TRS, OpenRecording, resampling
from lpact.analyses.lpact.config import LPactConfig
from lpact.codes import Reason
from lpact.config import DatasetConfig
from lpact.datasets.base import Stimulus
from lpact.math.columns import standard_columns
from lpact.math.resample import HRFS, hrf_weights
from lpact.math.surrogates import autocorrelation_time
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.splits import contiguous

VALUES_AT_A_TIME = 2**22
"""Values of units, at the assay's rate, that are worked on at a time."""
HRF_STEP_S = 0.1
"""Steps in which an envelope is convolved with a haemodynamic response."""


@dataclass(frozen=True)
class Lags:
    """How the signal's samples look back at the stimulus."""

    lags_ms: tuple[float, ...]
    centred: bool
    """Whether a sample stands for the time around it, or, as a TR does, for the time that follows."""
    hrf: str | None

    @classmethod
    def of(cls, opened: OpenRecording, config: LPactConfig, entry: DatasetConfig) -> Lags:
        """The assay's lags; for TRs, which are slower than those, the delays of the dataset's grid."""
        if opened.kind != TRS:
            return cls(config.assay.envelope_lags_ms, True, None)
        grid = entry.grid
        hrf = grid.hrf if grid.tr_features == "hrf" else None
        return cls(grid.fir_ms or grid.lags_ms, False, hrf)


def meeting_rate(opened: OpenRecording, config: LPactConfig) -> Fraction:
    """Return the rate at which signal and stimulus meet, over that of the signal."""
    return resampling(opened.series.sampling_rate_hz, config.assay.envelope_rate_hz)


class Follower:
    """One course of the stimulus compared with the signal, over all of the recording or where words are.

    Units are taken in a few at a time; nothing is kept of them but their scores.
    """

    def __init__(
        self,
        opened: OpenRecording,
        stimulus: Stimulus,
        course: Course,
        *,
        config: LPactConfig,
        entry: DatasetConfig,
        words_only: bool,
        autocorrelation_s: float,
        rng: np.random.Generator,
    ) -> None:
        series, self._lags = opened.series, Lags.of(opened, config, entry)
        ratio = meeting_rate(opened, config)
        self.rate_hz = series.sampling_rate_hz * float(ratio)
        n_rows = math.ceil(series.n_samples * ratio)
        times_s = series.start_s + np.arange(n_rows) / self.rate_hz
        clock = Clock.of(opened.recording, stimulus)
        rows = np.flatnonzero(
            _near_words(times_s, opened, stimulus) if words_only else np.ones(n_rows, np.bool_)
        )
        real = self._design(times_s[rows], course, clock)
        inside = np.isfinite(real).all(axis=1)
        rows, real = rows[inside], real[inside]
        self.n_rows = rows.size
        self._rows, self._real = rows, real
        if rows.size:
            edges_s = clock.stimulus_s(times_s[rows[[0, -1]]])
            backwards = course.reversed_between(float(edges_s[0]), float(edges_s[1]))
            turned = self._design(times_s[rows], backwards, clock)
            both = np.isfinite(turned).all(axis=1)
            self._rows, self._real, self._turned = rows[both], real[both], turned[both]
            self.n_rows = self._rows.size
        longest_s = max(abs(lag) for lag in self._lags.lags_ms) / 1000.0
        self._far_s = max(MIN_SHIFT_S, longest_s, autocorrelation_s)
        self._n_folds, self._n_shifts = config.readout.folds, config.assay.shifts
        self._fewest = config.readout.min_test_events
        self._parts = shift_parts(self._n_shifts, 1, rng)
        self._waiting: list[FloatArray] = []
        self._done: list[_Units] = []
        self.reason = self._why_not()

    def _design(self, times_s: FloatArray, course: Course, clock: Clock) -> FloatArray:
        """The course at every lag, [n, n_lags · n_columns], lag by lag; NaN where the stimulus has no such moment."""
        step_s = 1.0 / self.rate_hz
        before_s = step_s / 2 if self._lags.centred else 0.0
        blocks = []
        for lag_ms in self._lags.lags_ms:
            start_s = times_s - lag_ms / 1000.0 - before_s
            if self._lags.hrf is not None:
                blocks.append(through_hrf(start_s, course, self._lags.hrf))
                continue
            edges = (clock.stimulus_s(start_s), clock.stimulus_s(start_s + step_s))
            blocks.append(course.mean_between(*edges))
        return np.hstack(blocks)

    def _why_not(self) -> Reason:
        if self.n_rows < self._n_folds * self._fewest:
            return Reason.TOO_FEW_EVENTS
        if not (self._real.max(axis=0) > self._real.min(axis=0)).all():
            return Reason.UNDEFINED_SCORE
        if self._orders(self._real) is None:
            return Reason.SHIFT_NOT_POSSIBLE
        return Reason.OK

    def _orders(self, real: FloatArray) -> IntArray | None:
        far = max(math.ceil(self._far_s * self.rate_hz), autocorrelation_time(real))
        return rotated_rows(np.zeros(len(real), dtype=np.int64), far, self._parts)

    def add(self, columns: FloatArray) -> None:
        """Take in units, [n_samples, n] at the rate of `meeting_rate`; NaN marks missing samples."""
        if self.reason is not Reason.OK:
            return
        self._waiting += list(columns[self._rows].T)
        some = max(1, VALUES_AT_A_TIME // self.n_rows)
        while len(self._waiting) >= some:
            self._score(some)

    def _score(self, n_units: int) -> None:
        y = np.stack(self._waiting[:n_units], axis=1)
        del self._waiting[:n_units]
        done = _Units.undefined(n_units, self._n_shifts, len(self._lags.lags_ms))
        gap = math.ceil(self._far_s * self.rate_hz)
        for rows, columns in by_gaps(y):
            if rows.size < max(2 * gap + 2, self._n_folds * self._fewest):
                continue
            real, own = self._real[rows], y[np.ix_(rows, columns)]
            folds = contiguous(rows.size, self._n_folds, gap=gap).folds
            orders = self._orders(real)
            if orders is None or min(len(folds.train_rows(b)) for b in range(self._n_folds)) < (
                self._fewest
            ):
                continue
            found = held_out_pearson(real, own, folds, orders)
            done.real[columns], done.shifted[:, columns] = found[0], found[1:]
            done.turned[columns] = held_out_pearson(self._turned[rows], own, folds)[0]
            done.by_lag[:, columns] = self._by_lag(real, own)
        self._done.append(done)

    def _by_lag(self, real: FloatArray, y: FloatArray) -> FloatArray:
        """Squared correlation of each lag by itself with each unit, over its columns, [n_lags, n_units]."""
        a, b = standard_columns(real)[0], standard_columns(y)[0]
        squares = (a.T @ b / len(a)) ** 2
        by_lag: FloatArray = squares.reshape(len(self._lags.lags_ms), -1, y.shape[1]).mean(axis=1)
        return by_lag

    def result(self) -> Followed | Reason:
        """Return the scores of all units that were taken in, or why there are none."""
        if self._waiting:
            self._score(len(self._waiting))
        if self.reason is not Reason.OK:
            return self.reason
        if not self._done:
            return Reason.TOO_FEW_UNITS
        units = _Units.joined(self._done)
        real = np.where(np.isfinite(units.turned), units.real, np.nan)
        scores = Scores(real, units.shifted, self.n_rows, "median")
        if not scores.defined.any():
            return Reason.UNDEFINED_SCORE
        best = int(np.argmax(units.by_lag[:, scores.defined].mean(axis=1)))
        return Followed(scores, units.turned, self._lags.lags_ms[best])


@dataclass(frozen=True)
class Followed:
    """Scores of a course: real and shifted, reversed [n_units], and the lag at which it is nearest to the signal."""

    scores: Scores
    turned: FloatArray
    best_lag_ms: float


@dataclass
class _Units:
    real: FloatArray
    turned: FloatArray
    shifted: FloatArray
    by_lag: FloatArray

    @classmethod
    def undefined(cls, n_units: int, n_shifts: int, n_lags: int) -> _Units:
        shapes = ((n_units,), (n_units,), (n_shifts, n_units), (n_lags, n_units))
        return cls(*(np.full(shape, np.nan) for shape in shapes))

    @classmethod
    def joined(cls, parts: Sequence[_Units]) -> _Units:
        return cls(
            np.concatenate([p.real for p in parts]),
            np.concatenate([p.turned for p in parts]),
            np.concatenate([p.shifted for p in parts], axis=1),
            np.concatenate([p.by_lag for p in parts], axis=1),
        )


def _near_words(times_s: FloatArray, opened: OpenRecording, stimulus: Stimulus) -> BoolArray:
    """Whether each moment lies between the first word's onset and the last one's offset."""
    onset_s, offset_s = words_heard(opened.recording, stimulus)
    told = np.isfinite(onset_s)
    if not told.any():
        return np.zeros(times_s.size, dtype=np.bool_)
    near: BoolArray = (times_s >= onset_s[told].min()) & (times_s <= offset_s[told].max())
    return near


def through_hrf(start_s: FloatArray, course: Course, hrf: str) -> FloatArray:
    """The course through a haemodynamic response at these moments; before and after it nothing is heard."""
    first, stop = course.span_s
    bins_s = np.arange(first, stop - HRF_STEP_S, HRF_STEP_S)
    values = course.mean_between(bins_s, bins_s + HRF_STEP_S)
    heard = (start_s >= first) & (start_s <= stop)
    weights = hrf_weights(start_s, bins_s + HRF_STEP_S / 2, HRFS[hrf])
    convolved = np.asarray(weights @ values) * HRF_STEP_S
    return np.where(heard[:, None], convolved, np.nan)
