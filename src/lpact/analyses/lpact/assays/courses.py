"""Courses of a stimulus in time: its envelope, or a proxy made from word times, on the clock of its words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from lpact.analyses.lpact.levels.media import ACOUSTIC_COLUMNS, ENVELOPE, media_of
from lpact.codes import Reason
from lpact.config import NuisanceConfig
from lpact.datasets.base import AbsentMedium, Stimulus
from lpact.features.acoustics import EnvelopeSettings, stimulus_envelope, why_no_envelope
from lpact.grid.words import times_s
from lpact.math.types import FloatArray

ONSET_PULSE_S = 0.01
"""Length of the pulse that stands for a word's onset; its area is 1."""
SILENCE_S = 60.0
"""A proxy is 0 for this long before the first and after the last word: more than any lag."""

BOXCAR, TRANSCRIPT, ONSETS = (
    "speech_activity_boxcar",
    "transcript_derived_proxy",
    "word_onset_control",
)
PROXIES = (BOXCAR, TRANSCRIPT, ONSETS)
"""Options of ``controls/acoustic_proxy_alternatives`` that are no envelope."""


@dataclass(frozen=True)
class Course:
    """A function of time that is constant between ``edges_s`` [m + 1], which rise: ``values`` is [m, n_columns]."""

    edges_s: FloatArray
    values: FloatArray

    @property
    def span_s(self) -> tuple[float, float]:
        """Begin and end."""
        return float(self.edges_s[0]), float(self.edges_s[-1])

    def mean_between(self, start_s: FloatArray, stop_s: FloatArray) -> FloatArray:
        """Return the mean over each interval, [n, n_columns]; NaN where it is not covered or an edge is NaN."""
        steps = np.diff(self.edges_s)[:, None] * self.values
        area = np.vstack([np.zeros((1, steps.shape[1])), np.cumsum(steps, axis=0)])
        first, last = self.span_s
        covered = (start_s >= first) & (stop_s <= last) & (stop_s > start_s)
        a, b = (np.where(covered, edge, first) for edge in (start_s, stop_s))
        width = np.where(covered, stop_s - start_s, 1.0)
        means = [
            (np.interp(b, self.edges_s, column) - np.interp(a, self.edges_s, column)) / width
            for column in area.T
        ]
        return np.where(covered[:, None], np.stack(means, axis=1), np.nan)

    def reversed_between(self, start_s: float, stop_s: float) -> Course:
        """Return the course run backwards: its value at t is that at ``start_s + stop_s − t``."""
        return Course(start_s + stop_s - self.edges_s[::-1], self.values[::-1])


def envelope_course(stimulus: Stimulus, config: NuisanceConfig) -> Course | AbsentMedium:
    """Return the acoustic envelope, the dataset's or its WAV file's, or why there is none.

    Sample k holds from half a step before its time to half a step after it. WAV files are read in pieces.
    """
    if why_no_envelope(stimulus) is not None:
        return media_of(stimulus).why_not(ENVELOPE)
    settings = EnvelopeSettings(config.envelope_rate_hz, config.envelope_lowpass_hz)
    envelope = stimulus_envelope(stimulus, settings)
    k = np.arange(envelope.values.size + 1, dtype=np.float64)
    edges_s = envelope.start_s + (k - 0.5) / envelope.sampling_rate_hz
    return Course(edges_s, np.asarray(envelope.values, dtype=np.float64)[:, None])


def proxy_course(stimulus: Stimulus, proxy: str) -> Course | AbsentMedium:
    """Return a proxy, or why there is none.

    ``speech_activity_boxcar``: 1 while a word is spoken, else 0. ``transcript_derived_proxy``: what the dataset's
    makers measured of every word from the sound (loudness, pitch …), standardised over words, from onset to offset,
    else 0. ``word_onset_control``: a pulse at every word's onset.
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
        return Course(spoken.edges_s, np.minimum(spoken.values, 1.0))
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


def _steps(start_s: FloatArray, stop_s: FloatArray, heights: FloatArray) -> Course:
    """Sum of boxes from start to stop, one a word, of heights [n, n_columns]; 0 elsewhere."""
    stop_s = np.maximum(stop_s, start_s + ONSET_PULSE_S)
    at_s = np.concatenate([start_s, stop_s])
    edges_s, place = np.unique(at_s, return_inverse=True)
    jumps = np.zeros((edges_s.size, heights.shape[1]))
    np.add.at(jumps, place, np.concatenate([heights, -heights]))
    level = np.cumsum(jumps, axis=0)[:-1]
    silent = np.zeros((1, heights.shape[1]))
    around_s = ([edges_s[0] - SILENCE_S], edges_s, [edges_s[-1] + SILENCE_S])
    return Course(np.concatenate(around_s), np.vstack([silent, level, silent]))
