"""An array as it lies in a file, and the series of units that is read from it piece by piece."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lpact.datasets.series import StreamedSeries
from lpact.errors import RecordingError
from lpact.math.types import FloatArray

STREAM_BYTES = 64 * 2**20
"""Series from this size on are read a few units at a time, not as a whole."""

AHEAD_BYTES = 2**29
"""Bytes of units that are read at once, and kept for the next ones, where units do not lie by themselves."""

PIECE_BYTES = 8 * 2**20
"""Bytes of a file, all units together, that are gone through at a time where units do not lie by themselves."""

Index: TypeAlias = tuple[slice, ...]


@dataclass(frozen=True)
class StoredArray:
    """One array of a file, of which no value is read yet.

    ``read`` returns the part at one slice an axis. ``chunks`` is the shape of the pieces in which it is stored; None
    means in one piece, whose last axis runs fastest unless ``fortran``. ``whole`` says that any part costs as much as
    all of it. ``unwritten`` tells of parts that were never stored and read as a fill value.
    """

    where: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[Index], npt.NDArray[Any]]
    chunks: tuple[int, ...] | None = None
    fortran: bool = False
    whole: bool = False
    unwritten: str = ""

    @property
    def n_bytes(self) -> int:
        """Bytes of all values."""
        return math.prod(self.shape) * self.dtype.itemsize

    def all(self) -> npt.NDArray[Any]:
        """Return every value; raises `RecordingError` where they do not fit into memory."""
        try:
            return self.read((slice(None),) * len(self.shape))
        except MemoryError:
            raise self.too_big() from None

    def too_big(self) -> RecordingError:
        """Return the error of a part that does not fit into memory."""
        return RecordingError(
            "an array does not fit into memory",
            where=self.where,
            got=f"shape {self.shape}, dtype {self.dtype}: {self.n_bytes / 2**30:.3g} GiB",
            expected="units, or epochs, that fit",
            remedy="check that the shape is what was recorded; if so, split the array or use a bigger machine",
        )

    def lies_apart(self, axis: int) -> bool:
        """Whether the values at one index of an axis lie by themselves."""
        if self.chunks is not None:
            return self.chunks[axis] == 1
        return axis == (len(self.shape) - 1 if self.fortran else 0)


class StoredSeries(StreamedSeries):
    """Units of a stored array with a time and a unit axis, times a ``gain`` plus an ``offset`` where there are some.

    Where units do not lie by themselves, a file is gone through for every read, `PIECE_BYTES` at a time. More units
    than are asked for are read then, `AHEAD_BYTES` at most, and kept until others are wanted.
    """

    def __init__(
        self,
        stored: StoredArray,
        *,
        unit_axis: int,
        gain: FloatArray | None = None,
        offset: float = 0.0,
    ) -> None:
        self._stored = stored
        self._unit_axis = unit_axis
        self._gain = gain
        self._offset = offset
        self.shape = (stored.shape[1 - unit_axis], stored.shape[unit_axis])
        self.dtype = stored.dtype if gain is None else np.dtype(np.float64)
        self.unit_major = stored.lies_apart(unit_axis)
        self._ahead: tuple[int, npt.NDArray[Any]] | None = None

    def read(self, units: Sequence[int]) -> FloatArray:
        """Return the units at these indices in this order, [n_samples, len(units)]."""
        try:
            return self._read([int(unit) for unit in units])
        except MemoryError:
            raise self._stored.too_big() from None

    def _read(self, wanted: list[int]) -> FloatArray:
        n_samples = self.shape[0]
        values = (
            np.empty((len(wanted), n_samples)).T
            if self.unit_major
            else np.empty((n_samples, len(wanted)))
        )
        pieces = _pieces(wanted)
        if not self.unit_major and len(pieces) > 1 and _dense(wanted):
            low = min(wanted)
            values[:] = self._part(low, max(wanted) + 1)[:, [unit - low for unit in wanted]]
        else:
            for column, first, stop in pieces:
                values[:, column : column + stop - first] = self._part(first, stop)
        if self._gain is not None:
            values *= self._gain[wanted]
            values += self._offset
        return values

    def _part(self, first: int, stop: int) -> npt.NDArray[Any]:
        """Units ``first`` to ``stop``, [n_samples, stop − first], as they are stored."""
        if self.unit_major:
            return self._stored_part(slice(None), slice(first, stop))
        ahead = self._ahead
        if ahead is not None:
            start, kept = ahead
            if start <= first and stop <= start + kept.shape[1]:
                return kept[:, first - start : stop - start]
            # Neither name may keep the old part while the new one is read.
            self._ahead = ahead = None
            del kept
        n_samples, n_units = self.shape
        width = AHEAD_BYTES // max(1, n_samples * self._stored.dtype.itemsize)
        last = min(n_units, max(stop, first + width))
        coming = np.empty((n_samples, last - first), dtype=self._stored.dtype)
        step = self._step()
        for begin in range(0, n_samples, step):
            times = slice(begin, min(begin + step, n_samples))
            coming[times] = self._stored_part(times, slice(first, last))
        self._ahead = first, coming
        return coming[:, : stop - first]

    def _step(self) -> int:
        """Samples of a piece: whole chunks, so that none is read twice."""
        chunks = self._stored.chunks
        long = 1 if chunks is None else chunks[1 - self._unit_axis]
        n_bytes = long * self.shape[1] * self._stored.dtype.itemsize
        return long * max(1, PIECE_BYTES // max(1, n_bytes))

    def _stored_part(self, times: slice, units: slice) -> npt.NDArray[Any]:
        if self._unit_axis == 0:
            return self._stored.read((units, times)).T
        return self._stored.read((times, units))


def _pieces(units: Sequence[int]) -> list[tuple[int, int, int]]:
    """Runs of consecutive units, as (column of the first, first, one past the last)."""
    pieces: list[tuple[int, int, int]] = []
    for column, unit in enumerate(units):
        if pieces and pieces[-1][2] == unit:
            pieces[-1] = (*pieces[-1][:2], unit + 1)
        else:
            pieces.append((column, unit, unit + 1))
    return pieces


def _dense(units: Sequence[int]) -> bool:
    return max(units) - min(units) < 2 * len(units)
