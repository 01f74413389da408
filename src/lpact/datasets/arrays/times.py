"""Tables that go with a recording of a folder of arrays: word times, triggers, bad spans, confounds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import TsvFile
from lpact.datasets._finding import Finding
from lpact.datasets.arrays.table import RecordingEntry
from lpact.datasets.base import Span
from lpact.datasets.triggers import TriggerClock
from lpact.datasets.words_table import read_delimited
from lpact.errors import RecordingError
from lpact.math.types import BoolArray, FloatArray

_MOST_OUTSIDE = 0.5
_FEW_OUTSIDE = 0.25


@dataclass(frozen=True)
class Clock:
    """Sampling rate and time of sample 0."""

    sampling_rate_hz: float
    start_s: float
    n_samples: int

    def time_of(self, samples: FloatArray) -> FloatArray:
        """Times of samples: ``start_s + sample / rate``."""
        return self.start_s + samples / self.sampling_rate_hz

    @property
    def stop_s(self) -> float:
        """Time at which the last sample ends."""
        return self.start_s + self.n_samples / self.sampling_rate_hz

    def outside(self, times_s: FloatArray) -> BoolArray:
        """Which times are more than a sample outside the recording; never NaN."""
        samples = (times_s - self.start_s) * self.sampling_rate_hz
        found: BoolArray = (samples < -1.0) | (samples > self.n_samples)
        return found

    def likely_cause(self, times_s: FloatArray) -> str:
        """Suggest another unit or start that would put most times inside the recording."""
        readings = {
            "counted from another start than start_s": times_s - min(times_s) + self.start_s
        }
        if max(times_s) > self.stop_s:
            readings["milliseconds"] = times_s / 1000.0
            readings["counts of samples"] = self.time_of(times_s)
        likely = [
            name for name, times in readings.items() if self.outside(times).mean() < _FEW_OUTSIDE
        ]
        return f"the times may be {' or '.join(likely)}; " if likely else ""


def word_times(
    entry: RecordingEntry, folder: SourceFolder, clock: Clock, words: pl.DataFrame
) -> tuple[FloatArray | None, tuple[Finding, ...]]:
    """Return word onsets on the recording's clock, or None if the words' own times are on it.

    The grid leaves out words outside the recording. If most words are, a finding says so; if all are, it is an error.
    """
    onsets: FloatArray | None = None
    findings: tuple[Finding, ...] = ()
    name = next(name for name in (entry.word_onsets, entry.triggers, entry.file) if name)
    if entry.word_onsets is not None:
        onsets = _word_onsets(entry, entry.word_onsets, folder, clock, words)
    elif entry.triggers is not None:
        onsets, findings = _triggered(entry, entry.triggers, folder, clock, words)
    times_s = words["onset_s"].to_numpy() if onsets is None else onsets
    path = folder.root / entry.path(name)
    return onsets, (*findings, *_mostly_outside(entry, folder, path, clock, times_s))


def bad_spans(entry: RecordingEntry, folder: SourceFolder) -> tuple[Span, ...]:
    """Read ``start_s``, ``stop_s`` and, if there is one, ``label``."""
    if entry.bad_spans is None:
        return ()
    table = _table(entry, entry.bad_spans, folder)
    table.require(("start_s", "stop_s"))
    starts, stops = table.numbers("start_s"), table.numbers("stop_s")
    labels = table.text("label") if "label" in table.columns else ["bad"] * table.n_rows
    for row, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        if not stop > start:
            raise table.wrong("stop_s", row, f"a time after start_s, {start:g} s")
    return tuple(Span(*span) for span in zip(starts, stops, labels, strict=True))


def confounds(entry: RecordingEntry, folder: SourceFolder, clock: Clock) -> pl.DataFrame | None:
    """Read one row per sample, one column per series; NaN for a missing number."""
    if entry.confounds is None:
        return None
    table = _table(entry, entry.confounds, folder)
    if table.n_rows != clock.n_samples:
        raise RecordingError(
            "the confounds do not have one row per sample",
            where=str(table.path),
            got=f"{table.n_rows} rows",
            expected=f"{clock.n_samples} rows",
            remedy="give confounds for every sample, in order",
        )
    return pl.DataFrame({name: table.numbers_or_nan(name) for name in table.columns})


def _table(entry: RecordingEntry, name: str, folder: SourceFolder) -> TsvFile:
    return read_delimited(folder.file(entry.path(name), RecordingError), RecordingError)


def _recording_times(
    entry: RecordingEntry, table: TsvFile, seconds: str, clock: Clock
) -> tuple[str, FloatArray]:
    """Times from the column ``sample``, or from one in seconds; NaN for an empty cell."""
    if ("sample" in table.columns) == (seconds in table.columns):
        raise RecordingError(
            f"a table needs one of the columns 'sample' and '{seconds}'",
            where=f"{table.path}, line 1",
            got="columns " + ", ".join(table.columns),
            expected=f"'sample', or '{seconds}' in seconds on the recording's clock",
            remedy="keep one of the two",
        )
    if seconds in table.columns:
        return seconds, np.array(table.numbers_or_nan(seconds), dtype=np.float64)
    samples = np.array(table.numbers_or_nan("sample"), dtype=np.float64) - entry.first_sample
    outside = (samples < 0) | (samples >= clock.n_samples)
    if outside.any():
        row = int(np.argmax(outside))
        last = clock.n_samples - 1 + entry.first_sample
        raise table.wrong(
            "sample",
            row,
            f"a sample of the recording, {entry.first_sample} to {last}, or n/a "
            f"(first_sample = {entry.first_sample} says how they are counted)",
        )
    return "sample", clock.time_of(samples)


def _word_onsets(
    entry: RecordingEntry, name: str, folder: SourceFolder, clock: Clock, words: pl.DataFrame
) -> FloatArray:
    table = _table(entry, name, folder)
    if table.n_rows != words.height:
        raise RecordingError(
            "the word onsets of a recording do not match the words",
            where=str(table.path),
            got=f"{table.n_rows} rows",
            expected=f"{words.height} rows, one per word of the stimulus '{entry.stimulus}'",
            remedy="write n/a for a word that the recording does not hold",
        )
    if "word" in table.columns:
        pairs = zip(table.cells("word"), words["word"], strict=True)
        for row, (here, there) in enumerate(pairs):
            if here != there:
                raise table.wrong("word", row, f"{there!r}, as in the words table")
    column, times_s = _recording_times(entry, table, "onset_s", clock)
    heard = np.flatnonzero(np.isfinite(times_s))
    falls = np.diff(times_s[heard]) < 0
    if falls.any():
        at = int(np.argmax(falls))
        row, before = int(heard[at + 1]), table.cells(column)[int(heard[at])]
        raise table.wrong(column, row, f"a time that is not before the previous word's, {before}")
    return times_s


def _triggered(
    entry: RecordingEntry, name: str, folder: SourceFolder, clock: Clock, words: pl.DataFrame
) -> tuple[FloatArray, tuple[Finding, ...]]:
    table = _table(entry, name, folder)
    table.require(("stimulus_s",))
    stimulus_s = np.array(table.numbers("stimulus_s"), dtype=np.float64)
    column, recording_s = _recording_times(entry, table, "recording_s", clock)
    kept = np.isfinite(recording_s)
    if (outside := clock.outside(recording_s)).any():
        row = int(np.argmax(outside))
        raise RecordingError(
            "a trigger lies outside the recording",
            where=f"{table.path}, line {table.line(row)}, column '{column}'",
            got=f"{table.cells(column)[row]} ({int(outside.sum())} of {kept.size} triggers lie outside)",
            expected=f"a time within the recording, {clock.start_s:.3f} to {clock.stop_s:.3f} s, or n/a",
            remedy=clock.likely_cause(recording_s[kept])
            + "check the column's unit, start_s and the sampling rate",
        )
    mapping = TriggerClock(
        stimulus_s[kept],
        recording_s[kept],
        rule=entry.trigger_rule,
        max_gap_s=entry.max_trigger_gap_s,
        where=str(table.path),
        labels=[f"line {table.line(int(row))}" for row in np.flatnonzero(kept)],
    )
    where = folder.where(table.path)
    findings = list(mapping.findings(where))
    if not kept.all():
        lost = int(np.argmin(kept))
        findings = [f for f in findings if f.reason is not Reason.TRIGGERS_DROPPED]
        findings.append(
            Finding(
                field="triggers",
                reason=Reason.TRIGGERS_DROPPED,
                severity="note",
                where=where,
                found=f"{int((~kept).sum())} of {kept.size} not in the recording, the first at "
                f"{stimulus_s[lost]:.3f} s (line {table.line(lost)})",
                expected="a time in the recording for every trigger",
                remedy="none is needed: the neighbouring triggers are used",
            )
        )
    return mapping.to_recording(words["onset_s"].to_numpy()), tuple(findings)


def _mostly_outside(
    entry: RecordingEntry, folder: SourceFolder, path: Path, clock: Clock, times_s: FloatArray
) -> tuple[Finding, ...]:
    """Report that most words are outside the recording; raise if all are."""
    heard = times_s[np.isfinite(times_s)]
    outside = clock.outside(heard)
    if not clock.n_samples or not outside.sum() > _MOST_OUTSIDE * heard.size:
        return ()
    found = f"{int(outside.sum())} of {heard.size} words, the first at {heard[np.argmax(outside)]:.3f} s"
    expected = f"words within the recording, {clock.start_s:.3f} to {clock.stop_s:.3f} s"
    shared = entry.word_onsets is None and entry.triggers is None
    check = "times_in of the stimulus" if shared else "the columns of the table"
    remedy = clock.likely_cause(heard) + f"check {check}, start_s and the sampling rate"
    if outside.all():
        what = "no word of the stimulus lies in the recording"
        raise RecordingError(what, where=str(path), got=found, expected=expected, remedy=remedy)
    return (
        Finding(
            field="words",
            reason=Reason.WORDS_OUTSIDE_RECORDING,
            severity="excluded",
            where=folder.where(path),
            found=found,
            expected=expected,
            remedy=remedy,
        ),
    )
