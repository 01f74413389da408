"""NWB files: the header of one series through PyNWB; its values through HDF5."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lpact.datasets._files.hdf5 import open_hdf5
from lpact.datasets.arrays.files.stored import the_key
from lpact.errors import RecordingError, did_you_mean
from lpact.extras import require
from lpact.math.types import FloatArray

_STEP = 1 << 20
_MOST_OFF = 0.25
"""Timestamps may be this many samples off a regular clock."""

_SHORT = {"volts": "V", "volt": "V", "microvolts": "µV", "tesla": "T", "n.a.": "", "unknown": ""}


@dataclass(frozen=True)
class NwbUnits:
    """Rows of the electrodes table that belong to a series, in its order."""

    ids: tuple[str, ...]
    regions: tuple[str, ...]
    coordinates: FloatArray | None


@dataclass(frozen=True)
class NwbSeries:
    """What an NWB file says of one series. Values are ``stored · gain + offset``, in ``physical_unit``."""

    data: str
    sampling_rate_hz: float
    start_s: float
    physical_unit: str
    gain: FloatArray
    offset: float
    units: NwbUnits | None


def read_nwb(
    path: Path, key: str | None, unit_column: str, axes: tuple[str, ...] = ("time", "unit")
) -> NwbSeries:
    """Read the header of the series at ``key`` (its name, or its path), or of the only electrical series.

    ``axes`` are those of its values; the standard has time first, and some writers have not.
    """
    with _open(path) as file:
        series = _find(file, key, path)
        where = f"{path}, series '{series.name}'"
        data = getattr(series.data, "name", None)
        if data is None or len(series.data.shape) != 2 or len(axes) != 2:
            raise RecordingError(
                "a series of an NWB file is not a table of samples and channels",
                where=where,
                got=f"shape {getattr(series.data, 'shape', None)}, axes {', '.join(axes)}",
                expected="two axes: time and unit",
                remedy='name another series: key = "…"',
            )
        rate, start = _clock(series, series.data.shape[axes.index("time")], where)
        gain = _gain(series, series.data.shape[axes.index("unit")], where)
        unit = str(series.unit)
        return NwbSeries(
            data=data,
            sampling_rate_hz=rate,
            start_s=start,
            physical_unit=_SHORT.get(unit.lower(), unit),
            gain=gain,
            offset=float(series.offset),
            units=_units(series, unit_column, where),
        )


def _gain(series: Any, n_units: int, where: str) -> FloatArray:
    """The conversion of the series times that of each channel, [n_units]."""
    gain = np.full(n_units, float(series.conversion))
    conversion = getattr(series, "channel_conversion", None)
    if conversion is None:
        return gain
    if len(conversion) != n_units:
        raise RecordingError(
            "a series does not have one conversion factor a channel",
            where=f"{where}, channel_conversion",
            got=f"{len(conversion)} factors, {n_units} channels (shape {series.data.shape})",
            expected="one factor for each channel",
            remedy='check that the axes are told right: axes = "time,unit" or "unit,time"',
        )
    return gain * np.asarray(conversion[:], dtype=np.float64)


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    pynwb = require("pynwb", extra="nwb")
    # PyNWB's messages on broken files do not name them; HDF5 itself tells whether the file is whole.
    with open_hdf5(path, RecordingError, extra="nwb"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        try:
            io = pynwb.NWBHDF5IO(str(path), mode="r")
        except Exception as problem:
            raise _not_nwb(path, problem) from None
        with io:
            try:
                file = io.read()
            except Exception as problem:
                raise _not_nwb(path, problem) from None
            yield file


def _not_nwb(path: Path, problem: Exception) -> RecordingError:
    return RecordingError(
        "a file is not a valid NWB file",
        where=str(path),
        got=f"{type(problem).__name__}: {problem}",
        expected="an NWB 2 file",
        remedy="check it with nwbinspector; a plain HDF5 file should be named .h5",
    )


def _find(file: Any, key: str | None, path: Path) -> Any:
    ecephys = require("pynwb.ecephys", extra="nwb")
    base = require("pynwb.base", extra="nwb")
    series = [item for item in file.objects.values() if isinstance(item, base.TimeSeries)]
    if key is None:
        electrical = [item for item in series if isinstance(item, ecephys.ElectricalSeries)]
        name = the_key(None, [_place(item) for item in electrical], path, "ElectricalSeries")
        return next(item for item in electrical if _place(item) == name)
    wanted = key.strip("/").removesuffix("/data")
    found = [item for item in series if wanted in (item.name, _place(item))]
    if len(found) > 1:
        raise RecordingError(
            f"there is more than one series '{key}'",
            where=str(path),
            got=", ".join(_place(item) for item in found),
            expected="one",
            remedy="name it by its path",
        )
    if not found:
        the_key(wanted, [_place(item) for item in series], path, "series")
    return found[0]


def _place(series: Any) -> str:
    """Path of a series in its file."""
    name = getattr(series.data, "name", None)
    return str(series.name) if name is None else str(name).strip("/").removesuffix("/data")


def _clock(series: Any, n_samples: int, where: str) -> tuple[float, float]:
    """Rate (Hz) and time of the first sample (s); timestamps must be regular."""
    if series.rate is not None:
        return float(series.rate), float(series.starting_time or 0.0)
    times = series.timestamps
    n = 0 if times is None else len(times)
    if n < 2 or n != n_samples:
        raise RecordingError(
            "a series has neither a rate nor a time for every sample",
            where=where,
            got=f"{n} timestamps for {n_samples} samples",
            expected="a rate, or one timestamp per sample",
            remedy="give the series a rate and a starting time",
        )
    start, stop = float(times[0]), float(times[n - 1])
    rate = (n - 1) / (stop - start) if stop > start else float("nan")
    for first in range(0, n, _STEP):
        part = np.asarray(times[first : first + _STEP], dtype=np.float64)
        off = np.abs((part - start) * rate - np.arange(first, first + part.size))
        if not (off <= _MOST_OFF).all():
            sample = first + int(np.argmax(~(off <= _MOST_OFF)))
            raise RecordingError(
                "the timestamps of a series are not regular",
                where=f"{where}, timestamps",
                got=f"sample {sample} at {float(times[sample]):.9g} s, "
                f"{off[sample - first]:.3g} samples off a clock of {rate:.9g} Hz",
                expected=f"samples within {_MOST_OFF:g} of a sample of a regular clock",
                remedy="split the series where the clock jumps, or resample it to a constant rate, and store the rate",
            )
    return rate, start


def _units(series: Any, unit_column: str, where: str) -> NwbUnits | None:
    region = getattr(series, "electrodes", None)
    if region is None:
        return None
    table, rows = region.table, [int(row) for row in region.data[:]]
    known = ("id", *table.colnames)
    if unit_column not in known:
        raise RecordingError(
            f"the electrodes table has no column '{unit_column}'",
            where=f"{where}, electrodes",
            got="columns " + ", ".join(known),
            expected="the column that names electrodes",
            remedy=did_you_mean(unit_column, known),
        )

    def column(name: str) -> list[Any]:
        values = table.id if name == "id" else table[name]
        return [values[row] for row in rows]

    coordinates = None
    if all(axis in table.colnames for axis in "xyz"):
        coordinates = np.array([column(axis) for axis in "xyz"], dtype=np.float64).T
    regions = column("location") if "location" in table.colnames else ["unknown"] * len(rows)
    return NwbUnits(
        tuple(str(name) for name in column(unit_column)),
        tuple(str(name).strip() or "unknown" for name in regions),
        coordinates,
    )
