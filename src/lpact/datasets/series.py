"""Time series that are larger than memory, read a few units at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar, cast

import numpy as np

from lpact.math.types import FloatArray

T = TypeVar("T")

BLOCK_BYTES = 256 * 2**20
"""Bytes of values, as float64, in memory at a time; at least one unit."""


class StreamedSeries(ABC):
    """Neural values [n_samples, n_units] in a file.

    ``unit_major``: each unit is stored contiguously, so units are read one at a time. Otherwise every block of units
    costs one pass through the file, and blocks are as large as memory allows.
    """

    shape: tuple[int, int]
    dtype: np.dtype[np.generic] = np.dtype(np.float64)
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
    return values[:, list(units)]


def take_units(values: FloatArray | StreamedSeries, indices: Sequence[int]) -> FloatArray | StreamedSeries:
    """Return the series of these units; a streamed or very large one is not read."""
    if isinstance(values, StreamedSeries) or (values.ndim == 2 and values.nbytes > BLOCK_BYTES):
        return _Taken(values, indices)
    return values[..., list(indices)]


def block_width(values: FloatArray | StreamedSeries, block_bytes: int | None = None) -> int:
    """Number of units to read at a time: as many as memory allows, or one if each is stored contiguously."""
    unit_major = isinstance(values, StreamedSeries) and values.unit_major
    return 1 if unit_major else max(1, (block_bytes or BLOCK_BYTES) // max(1, 8 * values.shape[0]))


def unit_blocks(
    values: FloatArray | StreamedSeries, block_bytes: int | None = None
) -> Iterator[tuple[range, FloatArray]]:
    """Yield all units of a series in order, as ``(indices, [n_samples, n_indices])``.

    The next unit of a series that is stored unit by unit is read while the last one is processed.
    """
    n_units, width = values.shape[1], block_width(values, block_bytes)

    def read(first: int) -> tuple[range, FloatArray]:
        indices = range(first, min(first + width, n_units))
        if isinstance(values, StreamedSeries):
            return indices, values.read(indices)
        return indices, values[:, first : indices.stop]

    blocks = map(read, range(0, n_units, width))
    if isinstance(values, StreamedSeries) and values.unit_major:
        with ahead(blocks) as coming:
            yield from coming
    else:
        yield from blocks


@contextmanager
def ahead(items: Iterator[T]) -> Iterator[Iterator[T]]:
    """An iterator whose next item is made in another thread while the last one is processed."""
    with ThreadPoolExecutor(1, "lpact-ahead") as pool:
        end = object()
        coming = [pool.submit(next, items, end)]

        def one_by_one() -> Iterator[T]:
            while (item := coming.pop().result()) is not end:
                coming.append(pool.submit(next, items, end))
                yield cast(T, item)

        yield one_by_one()
