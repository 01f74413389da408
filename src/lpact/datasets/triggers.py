"""From the clock of a stimulus to the clock of a recording, by triggers that both of them know."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntFlag
from typing import Literal

import numpy as np
import numpy.typing as npt

from lpact.codes import Reason
from lpact.datasets._files.strict import invalid
from lpact.datasets.base import Findings
from lpact.errors import InputError
from lpact.math.types import BoolArray, FloatArray, IntArray

Rule = Literal["linear", "nearest", "next"]


class Mark(IntFlag):
    """What a pair of times marks: a trigger, a pause, an unpause, or several of these."""

    TRIGGER = 1
    PAUSE = 2
    UNPAUSE = 4


MAX_DRIFT = 0.01
"""Clocks that differ by more than this fraction do not drift: one of the rates is wrong."""

_JUMP_S = 0.05
"""Two triggers whose distance differs by more than this (and `MAX_DRIFT`) have a pause between them."""

_DRIFT_NOTE_S = 0.001
_REGULAR = 0.1
_MOSTLY = 0.8


class TriggerClock:
    """Map times of a stimulus to times of a recording through pairs of trigger times.

    With triggers ``(s_k, r_k)``, a time t maps to

    - ``linear``: ``r_k + (t − s_k) (r_{k+1} − r_k) / (s_{k+1} − s_k)`` for ``s_k ≤ t < s_{k+1}``, so that drift is
      followed; before the first and after the last trigger the slope of all of them is used (least squares).
    - ``nearest``: ``r_k + t − s_k`` with the trigger k nearest to t (the earlier of two equally near).
    - ``next``: the same with the first trigger that is not before t; after the last trigger, with the last.

    No rule crosses a break: times before a pause use the triggers before it, later times those after it. Two
    triggers at one stimulus time are a pause whose place is known: times before it take the first of them, others the
    last. So are a pause and the unpause after it. Where the two clocks move apart between two triggers and
    nothing says where (a pause without marks, or a stretch that was skipped), a time between them maps to NaN.

    ``stimulus_s`` and ``recording_s`` are [n_triggers] seconds on the two clocks; stimulus times never fall, recording
    times rise. A time further than ``max_gap_s`` from its nearest trigger is not in the recording (NaN). ``marks`` say
    what each pair of times is (None: a trigger); nothing maps to the time from a pause to what follows it, or from what
    comes before an unpause to it. ``where`` and ``labels`` (``line 17``) name the triggers in messages.
    """

    def __init__(
        self,
        stimulus_s: npt.ArrayLike,
        recording_s: npt.ArrayLike,
        *,
        rule: Rule = "linear",
        max_gap_s: float | None = None,
        marks: Sequence[Mark] | None = None,
        where: str = "triggers",
        labels: Sequence[str] | None = None,
    ) -> None:
        self.stimulus_s: FloatArray = np.asarray(stimulus_s, dtype=np.float64)
        self.recording_s: FloatArray = np.asarray(recording_s, dtype=np.float64)
        self.rule = rule
        self.max_gap_s = np.inf if max_gap_s is None else max_gap_s
        self._where = where
        self._labels = labels or [f"trigger {k}" for k in range(self.stimulus_s.size)]
        marks = marks or [Mark.TRIGGER] * self.stimulus_s.size
        self._check()
        self._triggers: IntArray = _marked(marks, Mark.TRIGGER).nonzero()[0]
        lengths = np.diff(self.stimulus_s)
        stops, starts = _marked(marks, Mark.PAUSE), _marked(marks, Mark.UNPAUSE)
        self._still: BoolArray = stops[:-1] | starts[1:]
        ahead = self._ahead(self.stimulus_s, self.recording_s)
        self.jumps: BoolArray = self._still | (ahead != 0)
        self.skips: BoolArray = ahead < 0
        self._closed: BoolArray = np.concatenate([starts[:1], self.jumps, stops[-1:]])
        self.slope = self._mean_slope(lengths)
        self._check_rates(lengths)

    def _ahead(self, stimulus_s: FloatArray, recording_s: FloatArray) -> FloatArray:
        """How much further the recording went in each interval than the stimulus did; 0 within any drift."""
        nominal = np.diff(stimulus_s)
        ahead = np.diff(recording_s) - nominal
        most = np.maximum(_JUMP_S, MAX_DRIFT * nominal)
        return np.where(np.abs(ahead) > most, ahead, 0.0)

    def _mean_slope(self, lengths: FloatArray) -> float:
        """Slope of the line through all triggers by least squares, with pauses removed from both clocks."""
        smooth = ~self.jumps
        stimulus = np.append(0.0, np.cumsum(lengths * smooth))
        ahead = np.diff(self.recording_s) - lengths
        residual = np.append(0.0, np.cumsum(ahead * smooth))
        centred = stimulus - stimulus.mean()
        spread = float(centred @ centred)
        return 1.0 + (float(centred @ residual) / spread if spread > 0.0 else 0.0)

    @property
    def drift_ppm(self) -> float:
        """How much faster the recording's clock runs than nominal, in millionths; pauses do not count."""
        return (self.slope - 1.0) * 1e6

    @property
    def dropped(self) -> IntArray:
        """Triggers missing after each trigger but the last; all 0 where triggers do not come regularly.

        Pauses and unpauses do not count, nor does a stretch that was skipped.
        """
        rows = self._triggers
        lengths = np.diff(self.stimulus_s[rows])
        missing = np.zeros(lengths.size, dtype=np.int64)
        period = float(np.median(lengths)) if lengths.size else 0.0
        if period <= 0.0:
            return missing
        steps = np.rint(lengths / period)
        regular = (steps == 1) & (np.abs(lengths - period) <= _REGULAR * period)
        if regular.mean() < _MOSTLY:
            return missing
        multiple = np.abs(lengths - steps * period) <= _REGULAR * period * np.maximum(steps, 1)
        multiple &= self._ahead(self.stimulus_s[rows], self.recording_s[rows]) >= 0
        return np.where(multiple, np.maximum(steps - 1, 0), 0).astype(np.int64)

    def to_recording(self, times_s: npt.ArrayLike) -> FloatArray:
        """Return stimulus times on the recording's clock.

        NaN where `in_break`, and further than ``max_gap_s`` from every trigger. A NaN stays a NaN.
        """
        times = np.asarray(times_s, dtype=np.float64)
        stimulus = self.stimulus_s
        after, left, right = self._neighbours(times)
        nearest = np.where(times - stimulus[left] <= stimulus[right] - times, left, right)
        anchor, slope = nearest, np.ones(times.shape)
        if self.rule == "next":
            anchor = np.where(stimulus[left] == times, left, right)
        elif self.rule == "linear":
            lengths = np.diff(stimulus)
            slopes = np.diff(self.recording_s) / np.where(lengths > 0.0, lengths, 1.0)
            slopes = np.append(slopes, self.slope)
            inside = (after > 0) & (after < stimulus.size)
            anchor = np.where(inside, left, nearest)
            slope = np.where(inside, slopes[np.where(inside, left, -1)], self.slope)
        mapped: FloatArray = self.recording_s[anchor] + (times - stimulus[anchor]) * slope
        known = (np.abs(times - stimulus[nearest]) <= self.max_gap_s) & ~self.in_break(times)
        return np.where(known, mapped, np.nan)

    def in_break(self, times_s: npt.ArrayLike) -> BoolArray:
        """Whether each time is between two triggers with a pause or a skip somewhere between them."""
        times = np.asarray(times_s, dtype=np.float64)
        after, left, _ = self._neighbours(times)
        at_trigger = (after > 0) & (self.stimulus_s[left] == times)
        broken: BoolArray = self._closed[after] & ~at_trigger & np.isfinite(times)
        return broken

    def _neighbours(self, times: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return the number of triggers that are not after each time, and the triggers on both sides of it."""
        last = self.stimulus_s.size - 1
        after = np.searchsorted(self.stimulus_s, times, side="right")
        return after, np.clip(after - 1, 0, last), np.clip(after, 0, last)

    def findings(self, where: str) -> Findings:
        """Return notes on drift that matters, pauses, skips, and triggers that are missing."""
        found = Findings(where)
        span = float(self.stimulus_s[-1] - self.stimulus_s[0])
        apart_s = (self.slope - 1.0) * span
        if abs(apart_s) > _DRIFT_NOTE_S or self.jumps.any():
            found.note(
                "triggers",
                Reason.CLOCK_DRIFT,
                f"{self.drift_ppm:+.1f} ppm, {1000 * apart_s:+.1f} ms over {span:.1f} s" + self._breaks(),
                f"clocks that stay within {1000 * _DRIFT_NOTE_S:g} ms",
                f"nothing to do: word times follow the triggers (rule '{self.rule}'), never across a pause or a skip",
            )
        missing = self.dropped
        if missing.any():
            first = int(self._triggers[np.argmax(missing > 0)])
            period = float(np.median(np.diff(self.stimulus_s[self._triggers])))
            found.note(
                "triggers",
                Reason.TRIGGERS_DROPPED,
                f"{int(missing.sum())} missing, the first after {self._labels[first]} "
                f"at {self.stimulus_s[first]:.3f} s",
                f"one every {period:g} s",
                "check the largest gap; words in it take the triggers around it",
            )
        return found

    def _breaks(self) -> str:
        """Count pauses and skips, and those in which words have no time."""
        unknown = self.jumps & (np.diff(self.stimulus_s) > 0)
        text = ""
        for name, breaks in (("pause", self.jumps & ~self.skips), ("skip", self.skips)):
            if breaks.any():
                text += f"; {int(breaks.sum())} {name}(s)"
        if unknown.any():
            first = int(np.argmax(unknown))
            text += (
                f"; in {int(unknown.sum())} of them words have no time, the first after {self._labels[first]} "
                f"at {self.stimulus_s[first]:.3f} s"
            )
        return text

    def _check(self) -> None:
        if not self.stimulus_s.shape == self.recording_s.shape == (len(self._labels),):
            found = f"{self.stimulus_s.shape} stimulus and {self.recording_s.shape} recording times"
            raise self._wrong("", found, "one recording time for every stimulus time")
        if self.stimulus_s.size == 0:
            raise self._wrong("", "no triggers", "at least one")
        for name, times in (("stimulus", self.stimulus_s), ("recording", self.recording_s)):
            steps = np.diff(times)
            good = np.isfinite(times)
            good[1:] &= steps >= 0 if name == "stimulus" else steps > 0
            if not good.all():
                row = int(np.argmin(good))
                before = f" after {times[row - 1]:.9g}" if row else ""
                expected = f"finite {name} times in order"
                raise self._wrong(f", {self._labels[row]}", f"{times[row]:.9g}{before}", expected)

    def _check_rates(self, lengths: FloatArray) -> None:
        """Raise where the clocks differ by more than any drift explains."""
        moving = (lengths > 0.0) & ~self._still
        if not moving.any():
            return
        slopes = np.diff(self.recording_s)[moving] / lengths[moving]
        mostly_jumps = self.jumps[moving].mean() > 0.5
        rate = float(np.median(slopes)) if mostly_jumps else self.slope
        apart_s = abs(rate - 1.0) * float(lengths.sum())
        if abs(rate - 1.0) > MAX_DRIFT and apart_s > _JUMP_S:
            found = f"{rate:.6g} recording seconds in a stimulus second"
            remedy = "check the sampling rate, and the units of both columns"
            expected = f"two clocks that run at the same rate, within {100 * MAX_DRIFT:g} %"
            raise invalid(self._where, found, expected, remedy=remedy)

    def _wrong(self, label: str, got: str, expected: str) -> InputError:
        remedy = "fix the table of triggers, or leave the broken ones out"
        return invalid(f"{self._where}{label}", got, expected, remedy=remedy)


def _marked(marks: Sequence[Mark], mark: Mark) -> BoolArray:
    return np.array([mark in each for each in marks], dtype=np.bool_)
