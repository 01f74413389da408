"""One recording of a folder of arrays: signal, units, word times, bad spans and confounds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets._files import stored as stored_arrays
from lpact.datasets._files.hdf5 import never_written_finding
from lpact.datasets._files.source_folder import SourceFolder, check_regular
from lpact.datasets._files.stored import StoredSeries
from lpact.datasets._files.strict import TextTable
from lpact.datasets._folder_dataset import UNKNOWN
from lpact.datasets.arrays.formats import Source, open_array_file
from lpact.datasets.arrays.nwb import read_nwb
from lpact.datasets.arrays.table import RecordingEntry
from lpact.datasets.base import Epochs, Finding, Findings, Signal, Span, TimeSeries, Units
from lpact.datasets.folder import COORDINATE_COLUMNS, check_known_columns, read_coordinates
from lpact.datasets.triggers import TriggerClock
from lpact.errors import RecordingError
from lpact.math.types import BoolArray, FloatArray

UNIT_COLUMNS = ("unit", "region", *COORDINATE_COLUMNS, "status")
_MM = {"mm": 1.0, "um": 0.001, "m": 1000.0}
_RATE_TOLERANCE = 1e-6
_MOST_OUTSIDE = 0.5
_FEW_OUTSIDE = 0.25


def data_files(path: Path, folder: SourceFolder) -> Iterator[Path]:
    """Yield the files of an array: itself, or all files in its folder; links must stay inside."""
    if not path.is_dir():
        yield path
    for parent, folders, files in os.walk(path):
        for entry in (Path(parent, name) for name in (*folders, *files)):
            if entry.is_symlink():
                folder.optional(folder.relative(entry), RecordingError)
        found = [Path(parent, name) for name in files]
        check_regular(found, RecordingError)
        yield from found


def load(entry: RecordingEntry, folder: SourceFolder) -> tuple[Signal, Units, tuple[int, ...], tuple[Finding, ...]]:
    """Return signal, units, indices of bad units, and findings; a big array is not read yet."""
    path = folder.file(entry.path(entry.file), RecordingError)
    list(data_files(path, folder))
    where = folder.where(path)
    source = _nwb(entry, path) if path.suffix.lower() == ".nwb" else _plain(entry, path)
    if len(source.stored.shape) != len(source.axes):
        raise RecordingError(
            "an array does not have the axes of the table",
            where=source.stored.where,
            got=f"{len(source.stored.shape)} axes, shape {source.stored.shape}",
            expected=f"{len(source.axes)} axes: {', '.join(source.axes)}",
            remedy="fix 'axes', or name another array of the file with 'key'",
        )
    units, bad, findings = _units(entry, folder, source, where)
    _check_unit_axis(source, len(units.ids))
    if source.stored.unwritten:
        unwritten = never_written_finding(source.stored.unwritten, field="array", where=where)
        findings = (*findings, unwritten)
    return _signal(entry, source, path), units, bad, findings


def _plain(entry: RecordingEntry, path: Path) -> Source:
    if not entry.axes:
        raise _missing_key(
            entry, "axes", 'axes = "time,unit" or "unit,time"; for epochs lag, word and unit in any order; "item,unit"'
        )
    file = open_array_file(path)
    rate = file.number(entry.sampling_rate_key) if entry.sampling_rate_key else None
    return Source(file.array(entry.key), entry.axis_names, rate)


def _nwb(entry: RecordingEntry, path: Path) -> Source:
    source = read_nwb(path, entry.key, entry.unit_column, entry.axis_names or ("time", "unit"))
    if entry.physical_unit not in (None, source.physical_unit):
        raise RecordingError(
            "the table and the file disagree on the physical unit",
            where=f"{source.stored.where}; recordings.toml, {entry.id}, key 'physical_unit'",
            got=f"'{source.physical_unit}' in the file, '{entry.physical_unit}' in the table",
            remedy="leave the key out: values are read in the file's unit",
        )
    return source


def _signal(entry: RecordingEntry, source: Source, path: Path) -> Signal:
    stored, unit_axis = source.stored, source.axes.index("unit")
    physical_unit = source.physical_unit or entry.physical_unit or ""
    if "item" in source.axes:
        return Epochs(np.moveaxis(stored.all(), unit_axis, 1)[None], (0.0,), physical_unit)
    if entry.lags_ms is not None:
        order = [source.axes.index(axis) for axis in ("lag", "word", "unit")]
        return Epochs(stored.all().transpose(order), entry.lags_ms, physical_unit)
    rate_hz = _rate(entry, source, path)
    start_s = source.start_s if entry.start_s is None else entry.start_s
    if not stored.whole and stored.n_bytes >= stored_arrays.STREAM_BYTES:
        series = StoredSeries(stored, unit_axis=unit_axis, gain=source.gain, offset=source.offset)
        return TimeSeries(series, rate_hz, start_s, physical_unit)
    values = np.moveaxis(stored.all(), unit_axis, 1)
    if source.gain is not None:
        values = values * source.gain + source.offset
    return TimeSeries(values, rate_hz, start_s, physical_unit)


def _rate(entry: RecordingEntry, source: Source, path: Path) -> float:
    stored_hz, given_hz = source.rate_hz, entry.sampling_rate_hz
    if given_hz is None and stored_hz is None:
        raise _missing_key(entry, "sampling_rate_hz", "sampling_rate_hz, or sampling_rate_key")
    if given_hz is None or stored_hz is None:
        return given_hz or stored_hz or 0.0
    if abs(given_hz - stored_hz) > _RATE_TOLERANCE * stored_hz:
        raise RecordingError(
            "the table and the file disagree on the sampling rate",
            where=f"{path}; recordings.toml, {entry.id}, key 'sampling_rate_hz'",
            got=f"{stored_hz:g} Hz in the file, {given_hz:g} Hz in the table",
            remedy="find out which is right; leave sampling_rate_hz out if it is the file's",
        )
    return given_hz


def _units(
    entry: RecordingEntry, folder: SourceFolder, source: Source, where: str
) -> tuple[Units, tuple[int, ...], tuple[Finding, ...]]:
    """Units of the table that the recording names, or of the file's electrodes."""
    comparable = entry.comparable_units is not False
    if entry.units is None:
        if not source.ids:
            columns = ", ".join(UNIT_COLUMNS)
            raise _missing_key(entry, "units", f"a TSV or CSV file with the columns {columns}")
        places, notes = _places_mm(entry, source, where)
        frame = entry.coordinate_frame
        return Units(source.ids, source.regions, places, frame, comparable), (), notes
    table = _own_table(entry, entry.units, folder)
    table.require(("unit",))
    check_known_columns(table, UNIT_COLUMNS)
    ids = table.text("unit")
    named = table.cells("region") if "region" in table.columns else [""] * len(ids)
    regions = tuple(UNKNOWN if region.strip() in ("", "n/a") else region for region in named)
    status = table.cells("status") if "status" in table.columns else ["good"] * len(ids)
    for row, cell in enumerate(status):
        if cell not in ("good", "bad"):
            raise table.wrong("status", row, "good or bad")
    bad = tuple(row for row, cell in enumerate(status) if cell == "bad")
    findings = Findings(folder.where(table.path))
    for row in bad:
        found = f"status bad (line {table.line(row)})"
        remedy = "the unit is left out; fix the status to keep it"
        findings.excluded(ids[row], Reason.CHANNEL_MARKED_BAD, found, "status good", remedy)
    places = read_coordinates(table)
    units = Units(tuple(ids), regions, places, entry.coordinate_frame, comparable)
    return units, bad, tuple(findings)


def _places_mm(entry: RecordingEntry, source: Source, where: str) -> tuple[FloatArray | None, tuple[Finding, ...]]:
    """Coordinates of a file's electrodes in mm; not read, with a note, if their unit of length is not given."""
    if source.coordinates is None:
        return None, ()
    if entry.coordinates_in is not None:
        return source.coordinates * _MM[entry.coordinates_in], ()
    findings = Findings(where)
    findings.note(
        "coordinates",
        Reason.UNIT_WITHOUT_PLACE,
        "x, y and z of electrodes without a unit of length",
        "coordinates_in in recordings.toml",
        'set coordinates_in = "mm", "um" or "m"; until then coordinates are not read',
    )
    return None, tuple(findings)


def _missing_key(entry: RecordingEntry, key: str, expected: str) -> RecordingError:
    return RecordingError(
        f"'{key}' of a recording is not given",
        where=f"recordings.toml, {entry.id}, key '{key}'",
        got="nothing",
        expected=expected,
        remedy="add the key",
    )


def _check_unit_axis(source: Source, n_listed: int) -> None:
    axes, shape = source.axes, source.stored.shape
    n_units = shape[axes.index("unit")]
    if n_units == n_listed:
        return
    fitting = [axes[i] for i, length in enumerate(shape) if length == n_listed]
    remedy = "list every unit once, in the order of the array"
    if fitting:
        swap = {"unit": fitting[0], fitting[0]: "unit"}
        turned = ",".join(swap.get(axis, axis) for axis in axes)
        remedy = f'check the axes: axes = "{turned}" would fit'
    raise RecordingError(
        "the unit axis of an array and the list of units do not match",
        where=source.stored.where,
        got=f'{n_units} units (shape {shape}, axes "{",".join(axes)}")',
        expected=f"{n_listed} units, as listed",
        remedy=remedy,
    )


def _own_table(entry: RecordingEntry, name: str, folder: SourceFolder) -> TextTable:
    return TextTable(folder.file(entry.path(name), RecordingError), RecordingError)


def _stop_s(signal: TimeSeries) -> float:
    return signal.start_s + signal.n_samples / signal.sampling_rate_hz


def _outside(signal: TimeSeries, times_s: FloatArray) -> BoolArray:
    """Which times are more than a sample outside the recording; never NaN."""
    samples = (times_s - signal.start_s) * signal.sampling_rate_hz
    return (samples < -1.0) | (samples > signal.n_samples)


def _likely_cause(signal: TimeSeries, times_s: FloatArray) -> str:
    """Suggest another unit or start that would put most times inside the recording."""
    readings = {"counted from another start than start_s": times_s - min(times_s) + signal.start_s}
    if max(times_s) > _stop_s(signal):
        readings["milliseconds"] = times_s / 1000.0
        readings["counts of samples"] = signal.start_s + times_s / signal.sampling_rate_hz
    likely = [n for n, times in readings.items() if _outside(signal, times).mean() < _FEW_OUTSIDE]
    return f"the times may be {' or '.join(likely)}; " if likely else ""


def word_times(
    entry: RecordingEntry, folder: SourceFolder, signal: TimeSeries, words: pl.DataFrame
) -> tuple[FloatArray | None, tuple[Finding, ...]]:
    """Return word onsets on the recording's clock, or None if the words' own times are on it.

    The grid leaves out words outside the recording. If most words are, a finding says so; if all are, it is an error.
    """
    onsets: FloatArray | None = None
    findings: tuple[Finding, ...] = ()
    name = next(name for name in (entry.word_onsets, entry.triggers, entry.file) if name)
    if entry.word_onsets is not None:
        onsets = _word_onsets(entry, entry.word_onsets, folder, signal, words)
    elif entry.triggers is not None:
        onsets, findings = _triggered(entry, entry.triggers, folder, signal, words)
    times_s = words["onset_s"].to_numpy() if onsets is None else onsets
    path = folder.root / entry.path(name)
    return onsets, (*findings, *_mostly_outside(entry, folder, path, signal, times_s))


def bad_spans(entry: RecordingEntry, folder: SourceFolder) -> tuple[Span, ...]:
    """Read ``start_s``, ``stop_s`` and, if there is one, ``label``."""
    if entry.bad_spans is None:
        return ()
    table = _own_table(entry, entry.bad_spans, folder)
    table.require(("start_s", "stop_s"))
    starts, stops = table.numbers("start_s"), table.numbers("stop_s")
    labels = table.text("label") if "label" in table.columns else ["bad"] * table.n_rows
    for row, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        if not stop > start:
            raise table.wrong("stop_s", row, f"a time after start_s, {start:g} s")
    return tuple(Span(*span) for span in zip(starts, stops, labels, strict=True))


def confounds(entry: RecordingEntry, folder: SourceFolder, n_samples: int) -> pl.DataFrame | None:
    """Read one row per sample, one column per series; NaN for a missing number."""
    if entry.confounds is None:
        return None
    table = _own_table(entry, entry.confounds, folder)
    table.require_rows(n_samples, "sample", "give confounds for every sample, in order")
    return pl.DataFrame({name: table.numbers_or_nan(name) for name in table.columns})


def _recording_times(
    entry: RecordingEntry, table: TextTable, seconds: str, signal: TimeSeries
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
    outside = (samples < 0) | (samples >= signal.n_samples)
    if outside.any():
        row = int(np.argmax(outside))
        last = signal.n_samples - 1 + entry.first_sample
        raise table.wrong(
            "sample",
            row,
            f"a sample of the recording, {entry.first_sample} to {last}, or n/a "
            f"(first_sample = {entry.first_sample} says how they are counted)",
        )
    return "sample", signal.start_s + samples / signal.sampling_rate_hz


def _word_onsets(
    entry: RecordingEntry, name: str, folder: SourceFolder, signal: TimeSeries, words: pl.DataFrame
) -> FloatArray:
    table = _own_table(entry, name, folder)
    noun = f"word of the stimulus '{entry.stimulus}'"
    table.require_rows(words.height, noun, "write n/a for a word that the recording does not have")
    if "word" in table.columns:
        pairs = zip(table.cells("word"), words["word"], strict=True)
        for row, (here, there) in enumerate(pairs):
            if here != there:
                raise table.wrong("word", row, f"{there!r}, as in the words table")
    column, times_s = _recording_times(entry, table, "onset_s", signal)
    heard = np.flatnonzero(np.isfinite(times_s))
    falls = np.diff(times_s[heard]) < 0
    if falls.any():
        at = int(np.argmax(falls))
        row, before = int(heard[at + 1]), table.cells(column)[int(heard[at])]
        raise table.wrong(column, row, f"a time that is not before the previous word's, {before}")
    return times_s


def _triggered(
    entry: RecordingEntry, name: str, folder: SourceFolder, signal: TimeSeries, words: pl.DataFrame
) -> tuple[FloatArray, tuple[Finding, ...]]:
    table = _own_table(entry, name, folder)
    table.require(("stimulus_s",))
    stimulus_s = np.array(table.numbers("stimulus_s"), dtype=np.float64)
    column, recording_s = _recording_times(entry, table, "recording_s", signal)
    kept = np.isfinite(recording_s)
    if (outside := _outside(signal, recording_s)).any():
        row = int(np.argmax(outside))
        raise RecordingError(
            "a trigger is outside the recording",
            where=f"{table.path}, line {table.line(row)}, column '{column}'",
            got=f"{table.cells(column)[row]} ({int(outside.sum())} of {kept.size} triggers are outside)",
            expected=f"a time within the recording, {signal.start_s:.3f} to {_stop_s(signal):.3f} s, or n/a",
            remedy=_likely_cause(signal, recording_s[kept]) + "check the column's unit, start_s and the sampling rate",
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
    findings = Findings(where)
    findings += mapping.findings(where)
    if not kept.all():
        lost = int(np.argmin(kept))
        findings[:] = [f for f in findings if f.reason is not Reason.TRIGGERS_DROPPED]
        findings.note(
            "triggers",
            Reason.TRIGGERS_DROPPED,
            f"{int((~kept).sum())} of {kept.size} not in the recording, the first at "
            f"{stimulus_s[lost]:.3f} s (line {table.line(lost)})",
            "a time in the recording for every trigger",
            "nothing to do: the neighbouring triggers are used",
        )
    return mapping.to_recording(words["onset_s"].to_numpy()), tuple(findings)


def _mostly_outside(
    entry: RecordingEntry, folder: SourceFolder, path: Path, signal: TimeSeries, times_s: FloatArray
) -> tuple[Finding, ...]:
    """Report that most words are outside the recording; raise if all are."""
    heard = times_s[np.isfinite(times_s)]
    outside = _outside(signal, heard)
    if not signal.n_samples or not outside.sum() > _MOST_OUTSIDE * heard.size:
        return ()
    found = f"{int(outside.sum())} of {heard.size} words, the first at {heard[np.argmax(outside)]:.3f} s"
    expected = f"words within the recording, {signal.start_s:.3f} to {_stop_s(signal):.3f} s"
    shared = entry.word_onsets is None and entry.triggers is None
    check = "times_in of the stimulus" if shared else "the columns of the table"
    remedy = _likely_cause(signal, heard) + f"check {check}, start_s and the sampling rate"
    if outside.all():
        what = "no word of the stimulus is in the recording"
        raise RecordingError(what, where=str(path), got=found, expected=expected, remedy=remedy)
    findings = Findings(folder.where(path))
    findings.excluded("words", Reason.WORDS_OUTSIDE_RECORDING, found, expected, remedy)
    return tuple(findings)
