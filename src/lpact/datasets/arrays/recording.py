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
from lpact.datasets.arrays.words import read_delimited
from lpact.datasets.base import Epochs, Signal, TimeSeries, Units
from lpact.datasets.series import StreamedSeries
from lpact.errors import RecordingError, did_you_mean
from lpact.math.types import FloatArray

COORDINATES = ("x_mm", "y_mm", "z_mm")
UNIT_COLUMNS = ("unit", "region", *COORDINATES, "status")
_MM = {"mm": 1.0, "um": 0.001, "m": 1000.0}
_RATE_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Loaded:
    """Signal and units of a recording; ``bad`` are units that the source marks, by their index."""

    signal: Signal
    units: Units
    bad: tuple[int, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class _Source:
    """An array and what its file says of it."""

    stored: StoredArray
    axes: tuple[str, ...]
    rate_hz: float | None = None
    start_s: float = 0.0
    physical_unit: str = ""
    gain: FloatArray | None = None
    offset: float = 0.0
    units: tuple[Units, tuple[Finding, ...]] | None = None


def data_files(path: Path, folder: SourceFolder) -> list[Path]:
    """Return the files of an array: itself, or all that lie in its folder."""
    return list(_inside(path, folder)) if path.is_dir() else [path]


def _inside(path: Path, folder: SourceFolder) -> Iterator[Path]:
    for parent, folders, files in os.walk(path):
        for name in (*folders, *files):
            entry = Path(parent, name)
            if entry.is_symlink():
                folder.optional(folder.relative(entry), RecordingError)
        yield from (Path(parent, name) for name in files)


def load(entry: RecordingEntry, folder: SourceFolder) -> Loaded:
    """Return signal and units; a big array is not read."""
    path = folder.file(entry.path(entry.file), RecordingError)
    data_files(path, folder)
    where = folder.where(path)
    source = _nwb(entry, path, where) if path.suffix.lower() == ".nwb" else _plain(entry, path)
    n_units = source.stored.shape[source.axes.index("unit")]
    units, bad, findings = _units(entry, folder, source)
    if len(units.ids) != n_units:
        raise _wrong_units(source, n_units, len(units.ids))
    if source.stored.unwritten:
        note = never_written_finding(source.stored.unwritten, field="array", where=where)
        findings = (*findings, note)
    return Loaded(_signal(entry, source, path), units, bad, findings)


def _plain(entry: RecordingEntry, path: Path) -> _Source:
    if not entry.axes:
        raise RecordingError(
            "the axes of an array are not said",
            where=f"recordings.toml, {entry.id}, key 'axes'",
            got="no axes",
            expected='axes = "time,unit" or "unit,time"; for epochs lag, word and unit in their order; "item,unit"',
            remedy="add the key",
        )
    file = open_array_file(path)
    stored = file.array(entry.key)
    _check_axes(stored, entry.axis_names)
    rate = file.number(entry.sampling_rate_key) if entry.sampling_rate_key else None
    return _Source(stored, entry.axis_names, rate)


def _nwb(entry: RecordingEntry, path: Path, where: str) -> _Source:
    from lpact.datasets.arrays.files.nwb import read_nwb

    axes = entry.axis_names or ("time", "unit")
    header = read_nwb(path, entry.key, entry.unit_column, axes)
    stored = open_array_file(path).array(header.data)
    _check_axes(stored, axes)
    if entry.physical_unit not in (None, header.physical_unit):
        raise RecordingError(
            "the table and the file disagree on the physical unit",
            where=f"{stored.where}; recordings.toml, {entry.id}, key 'physical_unit'",
            got=f"'{header.physical_unit}' in the file, '{entry.physical_unit}' in the table",
            expected="one unit; values are read in the file's",
            remedy="leave the key out",
        )
    units = None
    if header.units is not None:
        found = header.units
        places = None
        findings: tuple[Finding, ...] = ()
        if found.coordinates is not None and entry.coordinates_in is not None:
            places = found.coordinates * _MM[entry.coordinates_in]
        elif found.coordinates is not None:
            findings = (_unplaced(where),)
        units = (
            Units(
                found.ids,
                found.regions,
                places,
                entry.coordinate_frame,
                entry.comparable_units is not False,
            ),
            findings,
        )
    return _Source(
        stored,
        axes,
        header.sampling_rate_hz,
        header.start_s,
        header.physical_unit,
        header.gain,
        header.offset,
        units,
    )


def _signal(entry: RecordingEntry, source: _Source, path: Path) -> Signal:
    stored, unit_axis = source.stored, source.axes.index("unit")
    physical_unit = source.physical_unit or entry.physical_unit or ""
    small = stored.whole or stored.n_bytes < stored_arrays.STREAM_BYTES
    if "item" in source.axes:
        return Epochs(np.moveaxis(stored.all(), unit_axis, 1)[None], (0.0,), physical_unit)
    if entry.lags_ms is not None:
        order = [source.axes.index(axis) for axis in ("lag", "word", "unit")]
        values = stored.all().transpose(order)
        return Epochs(values, entry.lags_ms, physical_unit)
    rate_hz = _rate(entry, source, path)
    start_s = source.start_s if entry.start_s is None else entry.start_s
    series: FloatArray | StreamedSeries = StoredSeries(
        stored, unit_axis=unit_axis, gain=source.gain, offset=source.offset
    )
    if small:
        values = stored.all()
        series = values.T if unit_axis == 0 else values
        if source.gain is not None:
            series = series * source.gain + source.offset
    return TimeSeries(series, rate_hz, start_s, physical_unit)


def _rate(entry: RecordingEntry, source: _Source, path: Path) -> float:
    there, here = source.rate_hz, entry.sampling_rate_hz
    rate = there if here is None else here
    if rate is None:
        raise RecordingError(
            "the sampling rate of a recording is not said",
            where=f"recordings.toml, {entry.id}",
            got="neither sampling_rate_hz nor sampling_rate_key",
            expected="one of the two",
            remedy="add sampling_rate_hz, or say where the file keeps it (data@rate)",
        )
    if here is not None and there is not None and abs(here - there) > _RATE_TOLERANCE * there:
        raise RecordingError(
            "the table and the file disagree on the sampling rate",
            where=f"{path}; recordings.toml, {entry.id}, key 'sampling_rate_hz'",
            got=f"{there:g} Hz in the file, {here:g} Hz in the table",
            expected="one rate",
            remedy="find out which is right; leave sampling_rate_hz out if it is the file's",
        )
    return rate


def _units(
    entry: RecordingEntry, folder: SourceFolder, source: _Source
) -> tuple[Units, tuple[int, ...], tuple[Finding, ...]]:
    if entry.units is None:
        if source.units is None:
            raise RecordingError(
                "the units of a recording are not said",
                where=f"recordings.toml, {entry.id}, key 'units'",
                got="no table of units",
                expected="a TSV or CSV file with the columns " + ", ".join(UNIT_COLUMNS),
                remedy="write one with a line for each unit, in the order of the array: unit and region suffice",
            )
        return source.units[0], (), source.units[1]
    table = read_delimited(folder.file(entry.path(entry.units), RecordingError), RecordingError)
    table.require(("unit",))
    for column in table.columns:
        if column not in UNIT_COLUMNS:
            raise RecordingError(
                f"unknown column '{column}'",
                where=f"{table.path}, line 1, column '{column}'",
                got=column,
                expected="columns " + ", ".join(UNIT_COLUMNS),
                remedy=did_you_mean(column, UNIT_COLUMNS),
            )
    ids = table.text("unit")
    named = table.cells("region") if "region" in table.columns else [""] * len(ids)
    regions = [region if region.strip() not in ("", "n/a") else "unknown" for region in named]
    places = None
    if any(column in table.columns for column in COORDINATES):
        table.require(COORDINATES)
        places = np.array([table.numbers_or_nan(column) for column in COORDINATES]).T
    status = table.cells("status") if "status" in table.columns else ["good"] * len(ids)
    for row, cell in enumerate(status):
        if cell not in ("good", "bad"):
            raise table.wrong("status", row, "good or bad")
    bad = tuple(row for row, cell in enumerate(status) if cell == "bad")
    findings = tuple(
        _marked_bad(ids[row], folder.where(table.path), table.line(row)) for row in bad
    )
    units = Units(
        tuple(ids),
        tuple(regions),
        places,
        entry.coordinate_frame,
        entry.comparable_units is not False,
    )
    return units, bad, findings


def _check_axes(stored: StoredArray, axes: tuple[str, ...]) -> None:
    if len(stored.shape) != len(axes):
        raise RecordingError(
            "an array does not have the axes that the table says",
            where=stored.where,
            got=f"{len(stored.shape)} axes, shape {stored.shape}",
            expected=f"{len(axes)} axes: {', '.join(axes)}",
            remedy="fix 'axes', or name another array of the file with 'key'",
        )


def _wrong_units(source: _Source, n_units: int, n_listed: int) -> RecordingError:
    axes, shape = source.axes, source.stored.shape
    fitting = [axes[i] for i, length in enumerate(shape) if length == n_listed]
    remedy = "list every unit once, in the order of the array"
    if fitting:
        swap = {"unit": fitting[0], fitting[0]: "unit"}
        turned = ",".join(swap.get(axis, axis) for axis in axes)
        remedy = f'the axes seem to be told wrong: axes = "{turned}" would fit'
    return RecordingError(
        "the unit axis of an array and the list of units do not match",
        where=source.stored.where,
        got=f'{n_units} units (shape {shape}, axes "{",".join(axes)}")',
        expected=f"{n_listed} units, as listed",
        remedy=remedy,
    )


def _marked_bad(unit: str, where: str, line: int) -> Finding:
    return Finding(
        field=unit,
        reason=Reason.CHANNEL_MARKED_BAD,
        severity="excluded",
        where=where,
        found=f"status bad (line {line})",
        expected="status good",
        remedy="the unit is left out; fix the status to keep it",
    )


def _unplaced(where: str) -> Finding:
    return Finding(
        field="coordinates",
        reason=Reason.UNIT_WITHOUT_PLACE,
        severity="note",
        where=where,
        found="x, y and z of electrodes without a unit of length",
        expected="coordinates_in in recordings.toml",
        remedy='say what they are in: coordinates_in = "mm", "um" or "m"; until then they are not read',
    )
