"""Arrays in files, read part by part: any stored array, ``.npy`` files, and series of units."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from lpact.datasets._files.strict import ErrorType, damaged
from lpact.datasets.series import StreamedSeries
from lpact.errors import RecordingError
from lpact.math.types import FloatArray

STREAM_BYTES = 64 * 2**20
"""Series of this size or more are read a few units at a time; other big arrays are mapped."""

AHEAD_BYTES = 2**29
"""Bytes of units to read at once, and keep, if units are interleaved in the file."""

PIECE_BYTES = 8 * 2**20
"""Bytes of the file to read at a time if units are interleaved."""

Index: TypeAlias = tuple[slice, ...]


@dataclass(frozen=True)
class StoredArray:
    """One array of a file.

    ``read`` returns the part at one slice per axis. ``chunks`` is the shape of the stored pieces; None means one piece,
    in C order unless ``fortran``. ``whole`` says that any part costs as much as all of it. ``unwritten`` describes
    parts that were never stored and read as a fill value.
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
        """Return every value; raises `RecordingError` if they do not fit into memory."""
        try:
            return self.read((slice(None),) * len(self.shape))
        except MemoryError:
            raise self.too_big() from None

    def too_big(self) -> RecordingError:
        """Return the error for a part that does not fit into memory."""
        return RecordingError(
            "an array does not fit into memory",
            where=self.where,
            got=f"shape {self.shape}, dtype {self.dtype}: {self.n_bytes / 2**30:.3g} GiB",
            remedy="check the shape; if it is right, split the array or use a bigger machine",
        )


class StoredSeries(StreamedSeries):
    """Units of a stored array with a time and a unit axis: ``stored · gain + offset``.

    If units are interleaved, a read goes through the file in pieces of `PIECE_BYTES`, and keeps up to `AHEAD_BYTES` of
    further units for the next reads.
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
        slowest = 1 if stored.fortran else 0
        self.unit_major = stored.chunks[unit_axis] == 1 if stored.chunks else unit_axis == slowest
        self._ahead: tuple[int, npt.NDArray[Any]] | None = None

    def read(self, units: Sequence[int]) -> FloatArray:
        """Return the units at these indices in this order, [n_samples, len(units)]."""
        try:
            return self._read([int(unit) for unit in units])
        except MemoryError:
            raise self._stored.too_big() from None

    def _read(self, wanted: list[int]) -> FloatArray:
        order = "F" if self.unit_major else "C"
        values = np.empty((self.shape[0], len(wanted)), order=order)  # type: ignore[call-overload]
        runs = _runs(wanted)
        dense = max(wanted, default=0) - min(wanted, default=0) < 2 * len(wanted)
        if not self.unit_major and len(runs) > 1 and dense:
            low = min(wanted)
            values[:] = self._part(low, max(wanted) + 1)[:, [unit - low for unit in wanted]]
        else:
            for column, first, stop in runs:
                values[:, column : column + stop - first] = self._part(first, stop)
        if self._gain is not None:
            values *= self._gain[wanted]
            values += self._offset
        return values  # type: ignore[no-any-return]

    def _part(self, first: int, stop: int) -> npt.NDArray[Any]:
        """Units ``first`` to ``stop``, [n_samples, stop − first], as they are stored."""
        if self.unit_major:
            return self._stored_part(slice(None), slice(first, stop))
        ahead = self._ahead
        if ahead is not None:
            start, kept = ahead
            if start <= first and stop <= start + kept.shape[1]:
                return kept[:, first - start : stop - start]
            # Free the old part before the new one is read.
            self._ahead = ahead = None
            del kept
        n_samples, n_units = self.shape
        item_bytes = self._stored.dtype.itemsize
        last = min(n_units, max(stop, first + AHEAD_BYTES // max(1, n_samples * item_bytes)))
        coming = np.empty((n_samples, last - first), dtype=self._stored.dtype)
        # A piece is made of whole chunks, so that none is read twice.
        chunks = self._stored.chunks
        long = 1 if chunks is None else chunks[1 - self._unit_axis]
        step = long * max(1, PIECE_BYTES // max(1, long * n_units * item_bytes))
        for begin in range(0, n_samples, step):
            times = slice(begin, min(begin + step, n_samples))
            coming[times] = self._stored_part(times, slice(first, last))
        self._ahead = first, coming
        return coming[:, : stop - first]

    def _stored_part(self, times: slice, units: slice) -> npt.NDArray[Any]:
        if self._unit_axis == 0:
            return self._stored.read((units, times)).T
        return self._stored.read((times, units))


def _runs(units: Sequence[int]) -> list[tuple[int, int, int]]:
    """Runs of consecutive units, as (column of the first, first, one past the last)."""
    runs: list[tuple[int, int, int]] = []
    for column, unit in enumerate(units):
        if runs and runs[-1][2] == unit:
            runs[-1] = (*runs[-1][:2], unit + 1)
        else:
            runs.append((column, unit, unit + 1))
    return runs


def npy_header(stream: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, Fortran order and dtype of an ``.npy`` stream, which is left at its values."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    return np.lib.format.read_array_header_2_0(stream)


def stored_npy(path: Path, error: ErrorType) -> StoredArray:
    """Open an ``.npy`` file of real numbers; only its header is read, and nothing is unpickled."""
    try:
        with path.open("rb") as stream:
            shape, fortran, dtype = npy_header(stream)
            header_bytes = stream.tell()
        n_bytes = path.stat().st_size
    except (OSError, ValueError) as problem:
        raise error(
            "an array file cannot be read",
            where=str(path),
            got=f"{type(problem).__name__}: {problem}",
            expected="an .npy file of format 1.0 or 2.0",
            remedy="write the array with numpy.save(path, array, allow_pickle=False)",
        ) from None
    check_real(dtype, str(path), error)
    n_expected = header_bytes + math.prod(shape) * dtype.itemsize
    expected = f"{n_expected} bytes, as its header says"
    if n_bytes != n_expected:
        fault = "truncated" if n_bytes < n_expected else "too long"
        raise damaged(path, f"the file is {fault}", error, expected)

    def read(index: Index) -> npt.NDArray[Any]:
        # An array in Fortran order is the transpose of one in C order, whose first axis varies slowest.
        turned = shape[::-1] if fortran else shape
        wanted = index[::-1] if fortran else index
        row = math.prod(turned[1:])
        first, stop, _ = wanted[0].indices(turned[0])
        count = max(0, stop - first) * row
        with path.open("rb") as stream:
            stream.seek(header_bytes + first * row * dtype.itemsize)
            values = np.fromfile(stream, dtype=dtype, count=count)
        if values.size != count:
            raise damaged(path, "values are missing", error, expected)
        part = values.reshape(-1, *turned[1:])[(slice(None), *wanted[1:])]
        return part.T if fortran else part

    return StoredArray(str(path), shape, dtype, read, fortran=fortran)


def load_npy(path: Path, error: ErrorType) -> npt.NDArray[Any]:
    """Return the array of an ``.npy`` file of real numbers; a big one is mapped, read-only."""
    mapped = stored_npy(path, error).n_bytes >= STREAM_BYTES
    array: npt.NDArray[Any] = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    return array


def check_real(dtype: np.dtype[Any], where: str, error: ErrorType = RecordingError) -> None:
    """Raise unless an array has real numbers; its values are not read yet."""
    if dtype.kind not in "fiu":
        raise error(
            "an array does not contain real numbers",
            where=where,
            got=f"dtype {dtype}" + (" (pickled Python objects)" if dtype.hasobject else ""),
            expected="a floating-point or integer dtype",
            remedy="convert the array, such as with array.astype('float64'), and save it again",
        )
