"""Signals and units of a folder of arrays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lpact.codes import Reason
from lpact.datasets._files import stored as stored_arrays
from lpact.datasets._files.hdf5 import never_written_finding
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.stored import StoredArray, StoredSeries
from lpact.datasets._finding import Finding
from lpact.datasets.arrays.files import open_array_file
from lpact.datasets.arrays.table import RecordingEntry
from lpact.datasets.base import Epochs, Signal, TimeSeries, Units
from lpact.datasets.folder import COORDINATE_COLUMNS, check_known_columns, read_coordinates
from lpact.datasets.series import StreamedSeries
from lpact.datasets.words_table import read_delimited
from lpact.errors import RecordingError
from lpact.math.types import FloatArray

UNIT_COLUMNS = ("unit", "region", *COORDINATE_COLUMNS, "status")
_MM = {"mm": 1.0, "um": 0.001, "m": 1000.0}
_RATE_TOLERANCE = 1e-6


@dataclass(frozen=True)
class _Source:
    """An array and what its file says about it."""

    stored: StoredArray
    axes: tuple[str, ...]
    rate_hz: float | None = None
    start_s: float = 0.0
    physical_unit: str = ""
    gain: FloatArray | None = None
    offset: float = 0.0
    units: Units | None = None
    findings: tuple[Finding, ...] = ()


def data_files(path: Path, folder: SourceFolder) -> list[Path]:
    """Return the files of an array: itself, or all files in its folder; links must stay inside."""
    return list(_files_in(path, folder)) if path.is_dir() else [path]


def _files_in(path: Path, folder: SourceFolder) -> Iterator[Path]:
    for parent, folders, files in os.walk(path):
        for entry in (Path(parent, name) for name in (*folders, *files)):
            if entry.is_symlink():
                folder.optional(folder.relative(entry), RecordingError)
        yield from (Path(parent, name) for name in files)


def load(
    entry: RecordingEntry, folder: SourceFolder
) -> tuple[Signal, Units, tuple[int, ...], tuple[Finding, ...]]:
    """Return signal, units, indices of bad units, and findings; a big array is not read yet."""
    path = folder.file(entry.path(entry.file), RecordingError)
    data_files(path, folder)
    where = folder.where(path)
    source = _nwb(entry, path, where) if path.suffix.lower() == ".nwb" else _plain(entry, path)
    units, bad, findings = _units(entry, folder, source)
    _check_unit_axis(source, len(units.ids))
    if source.stored.unwritten:
        note = never_written_finding(source.stored.unwritten, field="array", where=where)
        findings = (*findings, note)
    return _signal(entry, source, path), units, bad, findings


def _plain(entry: RecordingEntry, path: Path) -> _Source:
    if not entry.axes:
        raise _missing_key(
            entry,
            "axes",
            'axes = "time,unit" or "unit,time"; for epochs lag, word and unit in any order; "item,unit"',
        )
    file = open_array_file(path)
    stored = file.array(entry.key)
    _check_axes(stored, entry.axis_names)
    rate = file.number(entry.sampling_rate_key) if entry.sampling_rate_key else None
    return _Source(stored, entry.axis_names, rate)


def _nwb(entry: RecordingEntry, path: Path, where: str) -> _Source:
    from lpact.datasets.arrays.nwb import read_nwb

    axes = entry.axis_names or ("time", "unit")
    header = read_nwb(path, entry.key, entry.unit_column, axes)
    stored = open_array_file(path).array(header.data)
    _check_axes(stored, axes)
    if entry.physical_unit not in (None, header.physical_unit):
        raise RecordingError(
            "the table and the file disagree on the physical unit",
            where=f"{stored.where}; recordings.toml, {entry.id}, key 'physical_unit'",
            got=f"'{header.physical_unit}' in the file, '{entry.physical_unit}' in the table",
            remedy="leave the key out: values are read in the file's unit",
        )
    places, findings = header.coordinates, ()
    if places is not None and entry.coordinates_in is None:
        places = None
        note = Finding(
            field="coordinates",
            reason=Reason.UNIT_WITHOUT_PLACE,
            severity="note",
            where=where,
            found="x, y and z of electrodes without a unit of length",
            expected="coordinates_in in recordings.toml",
            remedy='set coordinates_in = "mm", "um" or "m"; until then coordinates are not read',
        )
        findings = (note,)  # type: ignore[assignment]
    elif places is not None and entry.coordinates_in is not None:
        places = places * _MM[entry.coordinates_in]
    return _Source(
        stored,
        axes,
        header.sampling_rate_hz,
        header.start_s,
        header.physical_unit,
        header.gain,
        header.offset,
        _named_units(entry, header.ids, header.regions, places) if header.ids else None,
        findings,
    )


def _signal(entry: RecordingEntry, source: _Source, path: Path) -> Signal:
    stored, unit_axis = source.stored, source.axes.index("unit")
    physical_unit = source.physical_unit or entry.physical_unit or ""
    if "item" in source.axes:
        return Epochs(np.moveaxis(stored.all(), unit_axis, 1)[None], (0.0,), physical_unit)
    if entry.lags_ms is not None:
        order = [source.axes.index(axis) for axis in ("lag", "word", "unit")]
        return Epochs(stored.all().transpose(order), entry.lags_ms, physical_unit)
    rate_hz = _rate(entry, source, path)
    start_s = source.start_s if entry.start_s is None else entry.start_s
    series: FloatArray | StreamedSeries
    if stored.whole or stored.n_bytes < stored_arrays.STREAM_BYTES:
        values = stored.all()
        series = values.T if unit_axis == 0 else values
        if source.gain is not None:
            series = series * source.gain + source.offset
    else:
        series = StoredSeries(stored, unit_axis=unit_axis, gain=source.gain, offset=source.offset)
    return TimeSeries(series, rate_hz, start_s, physical_unit)


def _rate(entry: RecordingEntry, source: _Source, path: Path) -> float:
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
    entry: RecordingEntry, folder: SourceFolder, source: _Source
) -> tuple[Units, tuple[int, ...], tuple[Finding, ...]]:
    if entry.units is None:
        if source.units is None:
            columns = ", ".join(UNIT_COLUMNS)
            raise _missing_key(entry, "units", f"a TSV or CSV file with the columns {columns}")
        return source.units, (), source.findings
    table = read_delimited(folder.file(entry.path(entry.units), RecordingError), RecordingError)
    table.require(("unit",))
    check_known_columns(table, UNIT_COLUMNS)
    ids = table.text("unit")
    named = table.cells("region") if "region" in table.columns else [""] * len(ids)
    regions = [region if region.strip() not in ("", "n/a") else "unknown" for region in named]
    status = table.cells("status") if "status" in table.columns else ["good"] * len(ids)
    for row, cell in enumerate(status):
        if cell not in ("good", "bad"):
            raise table.wrong("status", row, "good or bad")
    bad = tuple(row for row, cell in enumerate(status) if cell == "bad")
    findings = tuple(
        Finding(
            field=ids[row],
            reason=Reason.CHANNEL_MARKED_BAD,
            severity="excluded",
            where=folder.where(table.path),
            found=f"status bad (line {table.line(row)})",
            expected="status good",
            remedy="the unit is left out; fix the status to keep it",
        )
        for row in bad
    )
    units = _named_units(entry, tuple(ids), tuple(regions), read_coordinates(table))
    return units, bad, findings


def _named_units(
    entry: RecordingEntry,
    ids: tuple[str, ...],
    regions: tuple[str, ...],
    coordinates_mm: FloatArray | None,
) -> Units:
    comparable = entry.comparable_units is not False
    return Units(ids, regions, coordinates_mm, entry.coordinate_frame, comparable)


def _missing_key(entry: RecordingEntry, key: str, expected: str) -> RecordingError:
    return RecordingError(
        f"'{key}' of a recording is not given",
        where=f"recordings.toml, {entry.id}, key '{key}'",
        got="nothing",
        expected=expected,
        remedy="add the key",
    )


def _check_axes(stored: StoredArray, axes: tuple[str, ...]) -> None:
    if len(stored.shape) != len(axes):
        raise RecordingError(
            "an array does not have the axes of the table",
            where=stored.where,
            got=f"{len(stored.shape)} axes, shape {stored.shape}",
            expected=f"{len(axes)} axes: {', '.join(axes)}",
            remedy="fix 'axes', or name another array of the file with 'key'",
        )


def _check_unit_axis(source: _Source, n_listed: int) -> None:
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
