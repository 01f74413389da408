"""Checks of recordings: signal, units, ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from lpact.codes import Reason
from lpact.datasets._finding import Finding
from lpact.datasets.base import Epochs, Recording, RecordingId, Stimulus, TimeSeries, Units
from lpact.errors import InputError, RecordingError


def check_recording(recording: Recording) -> None:
    """Raise `RecordingError` unless signal, units and timing fit together.

    A time series is [n_samples, n_units] with a positive sampling rate; epochs are
    [n_lags, n_words, n_units] with distinct lags. No samples or no units is well-formed.
    """
    _check_units(recording.units, recording.where)
    signal, where = recording.signal, recording.where
    axes = ("samples", "units") if isinstance(signal, TimeSeries) else ("lags", "words", "units")
    n_units = len(recording.units.ids)
    if signal.values.dtype.kind not in "fiu":
        raise RecordingError(
            "the neural values are not real numbers",
            where=where,
            got=f"dtype {signal.values.dtype}",
            expected="floating-point or integer values",
            remedy="store real numbers",
        )
    if len(signal.values.shape) != len(axes):
        raise RecordingError(
            "the neural values have the wrong number of axes",
            where=where,
            got=f"shape {signal.values.shape}",
            expected=f"{len(axes)} axes: " + ", ".join(axes),
            remedy="arrange the axes as expected",
        )
    if signal.values.shape[-1] != n_units:
        raise RecordingError(
            "the neural values and the units do not match",
            where=where,
            got=f"{signal.values.shape[-1]} columns (shape {signal.values.shape})",
            expected=f"{n_units} columns, one per unit",
            remedy="list every unit once, in the order of the columns",
        )
    if isinstance(signal, TimeSeries):
        _check_clock(signal, where)
    else:
        _check_lags(signal, where)


def check_recording_ids(ids: Iterable[RecordingId], *, where: str) -> None:
    """Raise `InputError` if two recordings share subject, session and run."""
    for name, count in Counter(str(recording_id) for recording_id in ids).items():
        if count > 1:
            raise InputError(
                f"the recording '{name}' is there more than once",
                where=where,
                got=f"'{name}' {count} times",
                expected="one recording for every subject, session and run",
                remedy="give each its own run or session, or remove the duplicate",
            )


def unit_findings(
    recording: Recording, *, gaps_allowed: bool = False
) -> tuple[list[int], list[Finding]]:
    """Return the indices of usable units, and one finding for every unit that is not; see `UnitScan`."""
    scan = UnitScan(recording, gaps_allowed=gaps_allowed)
    signal = recording.signal
    if isinstance(signal, TimeSeries):
        for indices, block in signal.blocks():
            scan.add(indices, block)
    else:
        scan.add(range(signal.values.shape[-1]), signal.values)
    return scan.result()


class UnitScan:
    """Which units of a recording are usable, learned block by block.

    A unit is unusable if any of its values is not finite, or if all are equal (max = min, exactly).
    Without any value there is nothing to judge, and every unit counts as usable. With
    ``gaps_allowed``, values that are not finite are gaps, and the finite ones are judged.
    """

    def __init__(self, recording: Recording, *, gaps_allowed: bool = False) -> None:
        self._recording = recording
        self._gaps_allowed = gaps_allowed
        self._usable: dict[int, bool] = {}
        self._findings: list[Finding] = []

    def add(self, indices: range, block: npt.NDArray[Any]) -> None:
        """Look at a block of units, [..., n_indices]."""
        if block.size == 0:
            self._usable |= dict.fromkeys(indices, True)
            return
        axes = tuple(range(block.ndim - 1))
        low, high = block.min(axis=axes), block.max(axis=axes)
        for place, index in enumerate(indices):
            values = block[..., place]
            smallest, largest = float(low[place]), float(high[place])
            finite = bool(np.isfinite(smallest) and np.isfinite(largest))
            if not finite and self._gaps_allowed:
                kept = values[np.isfinite(values)]
                finite = kept.size > 0
                smallest, largest = (kept.min(), kept.max()) if finite else (0.0, 0.0)
            constant = finite and smallest == largest
            self._usable[index] = finite and not constant
            if not self._usable[index]:
                self._findings.append(self._finding(index, values, constant=constant))

    def _finding(self, index: int, values: npt.NDArray[Any], *, constant: bool) -> Finding:
        return Finding(
            field=self._recording.units.ids[index],
            reason=Reason.CONSTANT_UNIT if constant else Reason.NON_FINITE_NEURAL,
            severity="excluded",
            where=self._recording.where,
            found=_describe(values),
            expected="a signal that varies" if constant else "finite values",
            remedy="the unit is left out; fix it in the source to keep it",
        )

    def usable_in(self, indices: range) -> npt.NDArray[np.bool_]:
        """Whether each unit of a block that was looked at is usable."""
        return np.array([self._usable[index] for index in indices])

    def result(self) -> tuple[list[int], list[Finding]]:
        """Return the indices of usable units, and one finding for every unit that is not."""
        return [index for index, usable in self._usable.items() if usable], self._findings


def _describe(unit_values: npt.NDArray[Any]) -> str:
    bad = np.argwhere(~np.isfinite(unit_values))
    if len(bad) == 0:
        return f"the value {unit_values.flat[0]} throughout"
    first = tuple(int(i) for i in bad[0])
    place = f"sample {first[0]}" if len(first) == 1 else f"lag {first[0]}, word {first[1]}"
    return (
        f"{len(bad)} of {unit_values.size} values not finite; "
        f"first: {unit_values[first]} at {place} (from 0)"
    )


def check_word_onsets(recording: Recording, stimulus: Stimulus) -> None:
    """Raise `RecordingError` unless a recording's own word times fit the stimulus' words."""
    onsets_s = recording.word_onsets_s
    if onsets_s is None:
        return
    if onsets_s.shape != (stimulus.words.height,) or isinstance(recording.signal, Epochs):
        raise RecordingError(
            "a recording's word times do not fit the words",
            where=recording.where,
            got=f"times of shape {onsets_s.shape}"
            + (" for epochs" if isinstance(recording.signal, Epochs) else ""),
            expected=f"one time for each of {stimulus.words.height} words of a time series",
            remedy="read the times again from this words table",
        )
    told = onsets_s[np.isfinite(onsets_s)]
    if np.isinf(onsets_s).any() or (np.diff(told) < 0).any():
        row = int(np.argmax(np.diff(told) < 0)) if (np.diff(told) < 0).any() else 0
        raise RecordingError(
            "a recording's word times run backwards",
            where=recording.where,
            got=f"{told[row + 1] if told.size > row + 1 else told[row]} s after {told[row]} s",
            expected="times in the order of the words, or none for a word that is not there",
            remedy="check the recording's triggers",
        )


def _check_units(units: Units, where: str) -> None:
    for index, unit in enumerate(units.ids):
        if not unit.strip():
            raise RecordingError(
                "a unit has an empty id",
                where=where,
                got=f"unit number {index + 1} is {unit!r}",
                expected="a name for every unit",
                remedy="name the unit",
            )
    for unit, count in Counter(units.ids).items():
        if count > 1:
            raise RecordingError(
                f"the unit '{unit}' is listed more than once",
                where=where,
                got=f"'{unit}' {count} times",
                expected="every unit once",
                remedy="rename or remove the duplicates",
            )
    if len(units.regions) != len(units.ids):
        raise RecordingError(
            "the regions and the units do not match",
            where=where,
            got=f"{len(units.regions)} regions",
            expected=f"{len(units.ids)} regions, one per unit",
            remedy="give every unit one region label",
        )
    coordinates = units.coordinates_mm
    if coordinates is not None and coordinates.shape != (len(units.ids), 3):
        raise RecordingError(
            "the coordinates and the units do not match",
            where=where,
            got=f"shape {coordinates.shape}",
            expected=f"shape ({len(units.ids)}, 3)",
            remedy="give x, y and z of every unit, or no coordinates at all",
        )


def _check_clock(signal: TimeSeries, where: str) -> None:
    if not (np.isfinite(signal.sampling_rate_hz) and signal.sampling_rate_hz > 0):
        raise RecordingError(
            "the sampling rate is not positive",
            where=where,
            got=f"{signal.sampling_rate_hz} Hz",
            expected="a finite rate above 0 Hz",
            remedy="give samples per second",
        )
    if not np.isfinite(signal.start_s):
        raise RecordingError(
            "the start of the recording is not finite",
            where=where,
            got=f"{signal.start_s} s",
            expected="a finite time",
            remedy="give the time of sample 0 on the clock of the words",
        )


def _check_lags(signal: Epochs, where: str) -> None:
    lags_ms = signal.lags_ms
    if len(lags_ms) != signal.values.shape[0]:
        raise RecordingError(
            "the epochs and their lags do not match",
            where=where,
            got=f"{len(lags_ms)} lags, values of shape {signal.values.shape}",
            expected=f"{signal.values.shape[0]} lags, one for each layer of the first axis",
            remedy="list every lag once, in order",
        )
    for lag_ms in lags_ms:
        if not np.isfinite(lag_ms) or lags_ms.count(lag_ms) > 1:
            raise RecordingError(
                "a lag is listed twice or is not finite",
                where=where,
                got=f"{lag_ms} ms among {lags_ms}",
                expected="distinct, finite lags",
                remedy="list every lag once",
            )
