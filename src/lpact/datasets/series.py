"""Time series that are larger than memory, read a few units at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from lpact.math.types import FloatArray

BLOCK_BYTES = 256 * 2**20
"""Bytes of values, as float64, in memory at a time; at least one unit."""


class StreamedSeries(ABC):
    """Neural values [n_samples, n_units] in a file.

    ``unit_major``: each unit is stored contiguously, so units are read one at a time. Otherwise every block of units
    costs one pass through the file, and blocks are as large as memory allows.
    """

    shape: tuple[int, int]
    dtype: np.dtype[np.generic]
    unit_major: bool = False

    @abstractmethod
    def read(self, units: Sequence[int]) -> FloatArray:
        """Return the units at these indices in this order, [n_samples, len(units)]; a damaged file is an error."""


class _Taken(StreamedSeries):
    """Some units of another series."""

    def __init__(self, source: FloatArray | StreamedSeries, indices: Sequence[int]) -> None:
        self._source = source
        self._indices = tuple(indices)
        self.shape = (source.shape[0], len(self._indices))
        self.dtype = source.dtype
        self.unit_major = isinstance(source, StreamedSeries) and source.unit_major

    def read(self, units: Sequence[int]) -> FloatArray:
        return read_units(self._source, [self._indices[unit] for unit in units])


def read_units(values: FloatArray | StreamedSeries, units: Sequence[int]) -> FloatArray:
    """Return the units at these indices, [n_samples, len(units)]."""
    if isinstance(values, StreamedSeries):
        return values.read(units)
    picked: FloatArray = values[:, list(units)]
    return picked


def take_units(
    values: FloatArray | StreamedSeries, indices: Sequence[int]
) -> FloatArray | StreamedSeries:
    """Return the series of these units; a streamed or very large one is not read."""
    if isinstance(values, StreamedSeries) or (values.ndim == 2 and values.nbytes > BLOCK_BYTES):
        return _Taken(values, indices)
    picked: FloatArray = values[..., list(indices)]
    return picked


class UnitBlocks:
    """All units of a series in order, as ``(indices, [n_samples, n_indices])``."""

    def __init__(self, values: FloatArray | StreamedSeries, block_bytes: int = BLOCK_BYTES) -> None:
        self._values = values
        n_samples, n_units = values.shape
        self._unit_major = isinstance(values, StreamedSeries) and values.unit_major
        self.width = 1 if self._unit_major else max(1, block_bytes // max(1, 8 * n_samples))
        self._blocks = [
            range(first, min(first + self.width, n_units))
            for first in range(0, n_units, self.width)
        ]

    def __iter__(self) -> Iterator[tuple[range, FloatArray]]:
        if not self._unit_major:
            for indices in self._blocks:
                yield indices, self._read(indices)
            return
        # Reads the next block while the last one is processed.
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="lpact-read") as reader:
            coming = [reader.submit(self._read, indices) for indices in self._blocks[:1]]
            for number, indices in enumerate(self._blocks):
                block = coming.pop().result()
                coming = [reader.submit(self._read, i) for i in self._blocks[number + 1 :][:1]]
                yield indices, block

    def _read(self, indices: range) -> FloatArray:
        if isinstance(self._values, StreamedSeries):
            return self._values.read(indices)
        block: npt.NDArray[np.float64] = self._values[:, indices.start : indices.stop]
        return block
