"""NWB files: PyNWB reads the header of a series; its values are read as HDF5."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lpact.datasets._files.hdf5 import open_hdf5
from lpact.datasets.arrays.formats import Hdf5File, Source, choose_key
from lpact.errors import RecordingError, require_known
from lpact.extras import require
from lpact.math.types import FloatArray

_STEP = 1 << 20
_MAX_DEVIATION = 0.25
"""Largest deviation of a timestamp from a regular clock, in samples."""

_SHORT = {"volts": "V", "volt": "V", "microvolts": "µV", "tesla": "T", "n.a.": "", "unknown": ""}


def read_nwb(path: Path, key: str | None, unit_column: str, axes: tuple[str, ...]) -> Source:
    """Open the series with this name or path, or the only electrical series.

    ``axes`` are those of its values; the standard has time first, but some writers do not.
    """
    with _open(path) as file:
        series = _find(file, key, path)
        where = f"{path}, series '{series.name}'"
        shape, data = getattr(series.data, "shape", ()), getattr(series.data, "name", None)
        if data is None or len(shape) != 2 or len(axes) != 2:
            raise RecordingError(
                "a series of an NWB file is not a table of samples and channels",
                where=where,
                got=f"shape {shape}, axes {', '.join(axes)}",
                expected="two axes: time and unit",
                remedy='name another series: key = "…"',
            )
        unit = str(series.unit)
        ids, regions, coordinates = _electrodes(series, unit_column, where)
        return Source(
            Hdf5File(path).array(data),
            axes,
            *_clock(series, shape[axes.index("time")], where),
            _SHORT.get(unit.lower(), unit),
            _gain(series, shape[axes.index("unit")], where),
            float(series.offset),
            ids,
            regions,
            coordinates,
        )


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    pynwb = require("pynwb", extra="nwb")
    # PyNWB's errors on damaged files do not name them; h5py's do.
    with open_hdf5(path, RecordingError, extra="nwb"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        io = None
        try:
            io = pynwb.NWBHDF5IO(str(path), mode="r")
            file = io.read()
        except Exception as problem:
            if io is not None:
                io.close()
            if isinstance(problem, MemoryError):
                raise
            raise RecordingError(
                "a file is not a valid NWB file",
                where=str(path),
                got=f"{type(problem).__name__}: {problem}",
                remedy="check it with nwbinspector; name a plain HDF5 file .h5",
            ) from None
        with io:
            yield file


def _find(file: Any, key: str | None, path: Path) -> Any:
    ecephys = require("pynwb.ecephys", extra="nwb")
    base = require("pynwb.base", extra="nwb")
    kind = ecephys.ElectricalSeries if key is None else base.TimeSeries
    series = {_place(item): item for item in file.objects.values() if isinstance(item, kind)}
    if key is None:
        return series[choose_key(None, series, path, "ElectricalSeries")]
    wanted = key.strip("/").removesuffix("/data")
    if wanted in series:
        return series[wanted]
    found = [place for place, item in series.items() if item.name == wanted]
    return series[found[0] if len(found) == 1 else choose_key(wanted, series, path, "series")]


def _place(series: Any) -> str:
    """Path of a series in its file."""
    name = getattr(series.data, "name", None)
    return str(series.name) if name is None else str(name).strip("/").removesuffix("/data")


def _gain(series: Any, n_units: int, where: str) -> FloatArray:
    """The conversion of the series times that of each channel, [n_units]."""
    gain = np.full(n_units, float(series.conversion))
    conversion = getattr(series, "channel_conversion", None)
    if conversion is None:
        return gain
    if len(conversion) != n_units:
        raise RecordingError(
            "a series does not have one conversion factor per channel",
            where=f"{where}, channel_conversion",
            got=f"{len(conversion)} factors, {n_units} channels (shape {series.data.shape})",
            remedy='check the order of the axes: axes = "time,unit" or "unit,time"',
        )
    return gain * np.asarray(conversion[:], dtype=np.float64)


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
            remedy="give the series a rate and a starting time",
        )
    start, stop = float(times[0]), float(times[n - 1])
    rate = (n - 1) / (stop - start) if stop > start else float("nan")
    for first in range(0, n, _STEP):
        part = np.asarray(times[first : first + _STEP], dtype=np.float64)
        off = np.abs((part - start) * rate - np.arange(first, first + part.size))
        if not (off <= _MAX_DEVIATION).all():
            at = int(np.argmax(~(off <= _MAX_DEVIATION)))
            raise RecordingError(
                "the timestamps of a series are not regular",
                where=f"{where}, timestamps",
                got=f"sample {first + at} at {part[at]:.9g} s, {off[at]:.3g} samples off a clock of {rate:.9g} Hz",
                expected=f"at most {_MAX_DEVIATION:g} samples off",
                remedy="split the series where the clock jumps, or resample it to a constant rate, and store the rate",
            )
    return rate, start


def _electrodes(
    series: Any, unit_column: str, where: str
) -> tuple[tuple[str, ...], tuple[str, ...], FloatArray | None]:
    region = getattr(series, "electrodes", None)
    if region is None:
        return (), (), None
    table, rows = region.table, [int(row) for row in region.data[:]]
    known = ("id", *table.colnames)
    place = f"{where}, electrodes"
    require_known(unit_column, known, "column", where=place, error=RecordingError)

    def column(name: str) -> list[Any]:
        values = table.id if name == "id" else table[name]
        return [values[row] for row in rows]

    coordinates = None
    if all(axis in table.colnames for axis in "xyz"):
        coordinates = np.array([column(axis) for axis in "xyz"], dtype=np.float64).T
    regions = column("location") if "location" in table.colnames else [""] * len(rows)
    return (
        tuple(str(name) for name in column(unit_column)),
        tuple(str(name).strip() or "unknown" for name in regions),
        coordinates,
    )
