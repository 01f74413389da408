"""From the clock of a stimulus to the clock of a recording, by triggers that both of them know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from lpact.datasets._files.strict import ErrorType
from lpact.datasets._finding import Finding
from lpact.errors import RecordingError
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.reasons import Reason

Rule = Literal["linear", "nearest", "next"]

MAX_DRIFT = 0.01
"""Clocks that differ by more than this fraction do not drift: one of the rates is wrong."""

_JUMP_S = 0.05
"""Two triggers whose distance differs by more than this (and `MAX_DRIFT`) have a pause between them."""

_DRIFT_NOTE_S = 0.001
_REGULAR = 0.1
_MOSTLY = 0.8


class TriggerClock:
    """Map times of a stimulus to times of a recording through pairs of trigger times.

    With triggers ``(s_k, r_k)`` and ``ratio`` recording seconds in a stimulus second, a time t goes to

    - ``linear``: ``r_k + (t − s_k) (r_{k+1} − r_k) / (s_{k+1} − s_k)`` for ``s_k ≤ t < s_{k+1}``, so that drift is
      followed; before the first and after the last trigger the slope of all of them counts (least squares). Where the
      recording ran on while the stimulus paused, the nearest trigger and that slope count.
    - ``nearest``: ``r_k + (t − s_k) ratio`` with the trigger k nearest to t (the earlier of two equally near).
    - ``next``: the same with the first trigger that is not before t; after the last trigger, with the last.

    Two triggers at one stimulus time are a pause: times before it take the first of them, others the last.

    Parameters
    ----------
    stimulus_s, recording_s
        [n_triggers] each, finite; stimulus times never fall, recording times rise. Seconds on the two clocks.
    rule
        See above.
    max_gap_s
        A time further than this from its nearest trigger is not in the recording (NaN). None: no limit.
    ratio
        Nominal recording seconds in a stimulus second; 1 unless one of the two is not in seconds.
    where, labels, error
        File of the triggers, a name for each of them (``line 17``), and the type of the error, for messages.
    """

    def __init__(
        self,
        stimulus_s: npt.ArrayLike,
        recording_s: npt.ArrayLike,
        *,
        rule: Rule = "linear",
        max_gap_s: float | None = None,
        ratio: float = 1.0,
        where: str = "triggers",
        labels: Sequence[str] | None = None,
        error: ErrorType = RecordingError,
    ) -> None:
        self.stimulus_s: FloatArray = np.asarray(stimulus_s, dtype=np.float64)
        self.recording_s: FloatArray = np.asarray(recording_s, dtype=np.float64)
        self.rule = rule
        self.max_gap_s = np.inf if max_gap_s is None else max_gap_s
        self.ratio = ratio
        self._where = where
        self._error = error
        self._labels = labels or [f"trigger {k}" for k in range(self.stimulus_s.size)]
        self._check()
        lengths = np.diff(self.stimulus_s)
        excess = np.abs(np.diff(self.recording_s) - ratio * lengths)
        self.jumps: BoolArray = excess > np.maximum(_JUMP_S * ratio, MAX_DRIFT * ratio * lengths)
        self.slope = self._mean_slope(lengths)
        self._check_rates(lengths)

    def _mean_slope(self, lengths: FloatArray) -> float:
        """Slope of the line through all triggers by least squares, with pauses taken out of both clocks."""
        smooth = ~self.jumps
        stimulus = np.append(0.0, np.cumsum(lengths * smooth))
        ahead = np.diff(self.recording_s) - self.ratio * lengths
        residual = np.append(0.0, np.cumsum(ahead * smooth))
        centred = stimulus - stimulus.mean()
        spread = float(centred @ centred)
        return self.ratio + (float(centred @ residual) / spread if spread > 0.0 else 0.0)

    @property
    def drift_ppm(self) -> float:
        """How much faster the recording's clock runs than nominal, in millionths; pauses do not count."""
        return (self.slope / self.ratio - 1.0) * 1e6

    @property
    def dropped(self) -> IntArray:
        """Triggers missing in each interval, [n_triggers − 1]; all 0 where triggers do not come regularly."""
        lengths = np.diff(self.stimulus_s)
        missing = np.zeros(lengths.size, dtype=np.int64)
        period = float(np.median(lengths)) if lengths.size else 0.0
        if period <= 0.0:
            return missing
        steps = np.rint(lengths / period)
        regular = (steps == 1) & (np.abs(lengths - period) <= _REGULAR * period)
        if regular.mean() < _MOSTLY:
            return missing
        multiple = np.abs(lengths - steps * period) <= _REGULAR * period * np.maximum(steps, 1)
        counted: IntArray = np.where(multiple, np.maximum(steps - 1, 0), 0).astype(np.int64)
        return counted

    def to_recording(self, times_s: npt.ArrayLike) -> FloatArray:
        """Return stimulus times on the recording's clock; NaN further than ``max_gap_s`` from every trigger.

        A NaN stays a NaN.
        """
        times = np.asarray(times_s, dtype=np.float64)
        stimulus, last = self.stimulus_s, self.stimulus_s.size - 1
        before = np.searchsorted(stimulus, times, side="right") - 1
        left, right = np.clip(before, 0, last), np.clip(before + 1, 0, last)
        nearest = np.where(times - stimulus[left] <= stimulus[right] - times, left, right)
        nearest = np.where(before < 0, 0, np.where(before >= last, last, nearest))
        if self.rule == "next":
            exact = (before >= 0) & (stimulus[left] == times)
            anchor, slope = np.where(exact, left, right), np.full(times.shape, self.ratio)
        elif self.rule == "nearest":
            anchor, slope = nearest, np.full(times.shape, self.ratio)
        else:
            anchor, slope = self._linear(before, nearest)
        mapped: FloatArray = self.recording_s[anchor] + (times - stimulus[anchor]) * slope
        near = np.abs(times - stimulus[nearest]) <= self.max_gap_s
        return np.where(near, mapped, np.nan)

    def _linear(self, before: IntArray, nearest: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the trigger from which each time is counted, and the slope from there."""
        n_intervals = self.jumps.size
        inside = (before >= 0) & (before < n_intervals)
        interval = np.clip(before, 0, max(0, n_intervals - 1))
        if n_intervals == 0:
            return nearest, np.full(before.shape, self.slope)
        inside &= ~self.jumps[interval]
        lengths = np.diff(self.stimulus_s)
        slopes = np.diff(self.recording_s) / np.where(lengths > 0.0, lengths, 1.0)
        return np.where(inside, before, nearest), np.where(inside, slopes[interval], self.slope)

    def findings(self, where: str, *, field: str = "triggers") -> tuple[Finding, ...]:
        """Return notes on drift that matters, pauses, and triggers that are missing."""
        found = []
        span = float(self.stimulus_s[-1] - self.stimulus_s[0])
        apart_s = (self.slope - self.ratio) * span
        n_jumps = int(self.jumps.sum())
        if abs(apart_s) > _DRIFT_NOTE_S or n_jumps:
            pauses = f"; {n_jumps} pause(s) between triggers" if n_jumps else ""
            found.append(
                Finding(
                    field=field,
                    reason=Reason.CLOCK_DRIFT,
                    severity="note",
                    where=where,
                    found=f"{self.drift_ppm:+.1f} ppm, {1000 * apart_s:+.1f} ms over {span:.1f} s{pauses}",
                    expected=f"clocks that stay within {1000 * _DRIFT_NOTE_S:g} ms",
                    remedy=f"none is needed: word times follow the triggers (rule '{self.rule}')",
                )
            )
        missing = self.dropped
        if missing.any():
            first = int(np.argmax(missing > 0))
            found.append(
                Finding(
                    field=field,
                    reason=Reason.TRIGGERS_DROPPED,
                    severity="note",
                    where=where,
                    found=f"{int(missing.sum())} missing, the first after {self._labels[first]} "
                    f"at {self.stimulus_s[first]:.3f} s",
                    expected=f"one every {np.median(np.diff(self.stimulus_s)):g} s",
                    remedy="check the largest gap; words in it take the triggers around it",
                )
            )
        return tuple(found)

    def _check(self) -> None:
        if self.stimulus_s.ndim != 1 or self.stimulus_s.shape != self.recording_s.shape:
            raise self._wrong(
                "there is not one recording time for every stimulus time",
                None,
                got=f"{self.stimulus_s.shape} stimulus and {self.recording_s.shape} recording times",
                expected="two lists of equal length",
            )
        if self.stimulus_s.size == 0:
            raise self._wrong("there are no triggers", None, got="none", expected="at least one")
        for name, times in (("stimulus", self.stimulus_s), ("recording", self.recording_s)):
            finite = np.isfinite(times)
            if not finite.all():
                row = int(np.argmin(finite))
                raise self._wrong(
                    f"a trigger's {name} time is not finite",
                    row,
                    got=repr(float(times[row])),
                    expected="a finite number",
                )
            falls = np.diff(times) < 0 if name == "stimulus" else np.diff(times) <= 0
            if falls.any():
                row = int(np.argmax(falls)) + 1
                raise self._wrong(
                    f"triggers are not in order of {name} time",
                    row,
                    got=f"{times[row]:.9g} after {times[row - 1]:.9g}",
                    expected="times that never fall" if name == "stimulus" else "times that rise",
                )

    def _check_rates(self, lengths: FloatArray) -> None:
        """Raise where the clocks differ by more than any drift explains."""
        moving = lengths > 0.0
        if not moving.any():
            return
        slopes = np.diff(self.recording_s)[moving] / lengths[moving]
        mostly_jumps = self.jumps[moving].mean() > 0.5
        rate = (float(np.median(slopes)) if mostly_jumps else self.slope) / self.ratio
        apart_s = abs(rate - 1.0) * float(lengths.sum())
        if abs(rate - 1.0) > MAX_DRIFT and apart_s > _JUMP_S:
            raise self._error(
                "the clocks of stimulus and triggers run at different rates",
                where=self._where,
                got=f"{rate:.6g} recording seconds in a stimulus second",
                expected=f"1, within {100 * MAX_DRIFT:g} %",
                remedy="check the sampling rate, and whether both columns are in the units they should be in",
            )

    def _wrong(self, what: str, row: int | None, *, got: str, expected: str) -> Exception:
        place = "" if row is None else f", {self._labels[row]}"
        return self._error(
            what,
            where=self._where + place,
            got=got,
            expected=expected,
            remedy="mend the table of triggers, or leave the broken ones out",
        )
