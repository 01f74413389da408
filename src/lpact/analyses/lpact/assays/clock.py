"""From the clock of a recording to that of its stimulus."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpact.datasets.base import Recording, Stimulus
from lpact.grid.own_clock import PAUSE_S, PAUSE_SHARE
from lpact.grid.words import times_s
from lpact.math.types import FloatArray


@dataclass(frozen=True)
class Clock:
    """Which moment of the stimulus each moment of a recording holds.

    One clock for both: the same moment. Where the recording has word times of its own, moments between two words lie
    between the words' times, in proportion; before the first and after the last word, time runs on from that word at
    the same pace. Where the stimulus stood still or jumped between two words (by more than 0.25 s and 2 %, as for
    events of the grid) it cannot be told, and the moments between are NaN.
    """

    heard_s: FloatArray
    said_s: FloatArray

    @classmethod
    def of(cls, recording: Recording, stimulus: Stimulus) -> Clock:
        """Read the clock off the words' times."""
        own = recording.word_onsets_s
        if own is None:
            return cls(np.empty(0), np.empty(0))
        onset_s, _ = times_s(stimulus.words)
        told = np.isfinite(own)
        heard_s, first = np.unique(own[told], return_index=True)
        return cls(heard_s, onset_s[told][first])

    def stimulus_s(self, recording_s: FloatArray) -> FloatArray:
        """Return the moments of the stimulus at these moments of the recording."""
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
    """Return onset and offset of every word on the recording's clock, [n_words] each; NaN for one that is not told.

    A word lasts as long as in the stimulus.
    """
    onset_s, offset_s = times_s(stimulus.words)
    if recording.word_onsets_s is None:
        return onset_s, offset_s
    return recording.word_onsets_s, recording.word_onsets_s + offset_s - onset_s
