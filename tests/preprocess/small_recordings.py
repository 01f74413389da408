"""Small recordings in memory and behind a stream."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from lpact.config import PreprocessConfig
from lpact.datasets.base import Recording, RecordingId, TimeSeries, Units
from lpact.datasets.series import StreamedSeries
from lpact.math.types import FloatArray
from lpact.preprocess import preprocess

ID = RecordingId("1", "1", "1", "story")


class Stream(StreamedSeries):
    """An array that can only be read a few units at a time; it counts what was read."""

    def __init__(self, values: FloatArray, *, unit_major: bool = True) -> None:
        self._values = values
        self.shape = (values.shape[0], values.shape[1])
        self.dtype = values.dtype
        self.unit_major = unit_major
        self.reads: list[tuple[int, ...]] = []

    def read(self, units: Sequence[int]) -> FloatArray:
        self.reads.append(tuple(units))
        return self._values[:, list(units)]


def recording(
    values: FloatArray | StreamedSeries,
    ids: Sequence[str] | None = None,
    *,
    rate_hz: float = 500.0,
    start_s: float = 0.0,
    regions: Sequence[str] | None = None,
    coordinates_mm: FloatArray | None = None,
    confounds: pl.DataFrame | None = None,
) -> Recording:
    names = tuple(ids) if ids is not None else tuple(f"LA{i + 1}" for i in range(values.shape[1]))
    return Recording(
        ID,
        TimeSeries(values, rate_hz, start_s, "µV"),
        Units(names, tuple(regions or ["unknown"] * len(names)), coordinates_mm, "MNI"),
        where="small recording",
        confounds=confounds,
    )


def processed(source: Recording, **options: object) -> Recording:
    return preprocess(source, PreprocessConfig.model_validate(options))


def values_of(source: Recording) -> FloatArray:
    """All units at once."""
    signal = source.signal
    assert isinstance(signal, TimeSeries)
    return np.asarray(signal.read(range(len(source.units.ids))), dtype=np.float64)


def noise(n_samples: int, n_units: int, seed: int = 0) -> FloatArray:
    """Autocorrelated noise, float64."""
    rng = np.random.default_rng(seed)
    white = rng.standard_normal((n_samples + 50, n_units))
    kernel = np.exp(-np.arange(50) / 10.0)
    columns = [np.convolve(column, kernel, mode="valid")[:n_samples] for column in white.T]
    return np.stack(columns, axis=1) + 3.0
