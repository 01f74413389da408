"""Time series that are larger than memory: read a few units at a time, never as a whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from lpact.math.types import FloatArray

BLOCK_BYTES = 256 * 2**20
"""Most bytes of values, as float64, that are held at a time; at least one unit is."""


class StreamedSeries(ABC):
    """Neural values [n_samples, n_units] behind a file.

    ``unit_major`` says that each unit lies by itself, so that units are best read one at a time; otherwise a file is
    gone through once for every block of units, and blocks are as large as memory allows.
    """

    shape: tuple[int, int]
    dtype: np.dtype[np.generic]
    unit_major: bool = False

    @abstractmethod
    def read(self, units: Sequence[int]) -> FloatArray:
        """Return the units at these indices in this order, [n_samples, len(units)], as real numbers.

        Raises `RecordingError` where the file turns out to be torn.
        """


class _Taken(StreamedSeries):
    """Some units of another series."""

    def __init__(self, source: StreamedSeries, indices: Sequence[int]) -> None:
        self._source = source
        self._indices = tuple(indices)
        self.shape = (source.shape[0], len(self._indices))
        self.dtype = source.dtype
        self.unit_major = source.unit_major

    def read(self, units: Sequence[int]) -> FloatArray:
        return self._source.read([self._indices[unit] for unit in units])


def read_units(values: FloatArray | StreamedSeries, units: Sequence[int]) -> FloatArray:
    """Return the units at these indices, [n_samples, len(units)]."""
    if isinstance(values, StreamedSeries):
        return values.read(units)
    picked: FloatArray = values[:, list(units)]
    return picked


def take_units(
    values: FloatArray | StreamedSeries, indices: Sequence[int]
) -> FloatArray | StreamedSeries:
    """Return the series of these units only; nothing is read of a streamed one."""
    if isinstance(values, StreamedSeries):
        return _Taken(values, indices)
    picked: FloatArray = values[..., list(indices)]
    return picked


class UnitBlocks:
    """All units of a series in order, as ``(indices, [n_samples, n_indices])``."""

    def __init__(self, values: FloatArray | StreamedSeries, block_bytes: int = BLOCK_BYTES) -> None:
        self._values = values
        n_samples, self._n_units = values.shape
        fitting = max(1, block_bytes // max(1, 8 * n_samples))
        one = isinstance(values, StreamedSeries) and values.unit_major
        self.width = 1 if one else fitting

    def __iter__(self) -> Iterator[tuple[range, FloatArray]]:
        blocks = (
            range(first, min(first + self.width, self._n_units))
            for first in range(0, self._n_units, self.width)
        )
        if isinstance(self._values, StreamedSeries) and self._values.unit_major:
            yield from _read_ahead(self._values, blocks)
            return
        for indices in blocks:
            yield indices, _contiguous(self._values, indices)


def _read_ahead(
    values: StreamedSeries, blocks: Iterator[range]
) -> Iterator[tuple[range, FloatArray]]:
    """Read the next block while the last one is worked on; two are held at a time."""
    indices = next(blocks, None)
    if indices is None:
        return
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="lpact-read") as reader:
        block = values.read(indices)
        for following in blocks:
            coming = reader.submit(values.read, following)
            yield indices, block
            indices, block = following, coming.result()
        yield indices, block


def _contiguous(values: FloatArray | StreamedSeries, indices: range) -> FloatArray:
    if isinstance(values, StreamedSeries):
        return values.read(indices)
    block: npt.NDArray[np.float64] = values[:, indices.start : indices.stop]
    return block
