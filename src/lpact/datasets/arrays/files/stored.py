"""An array as it lies in a file, and the series of units that is read from it piece by piece."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lpact.datasets.series import StreamedSeries
from lpact.errors import RecordingError, did_you_mean
from lpact.math.types import FloatArray

WHOLE_BYTES = 2**30
"""Most bytes of an array in a format that can only be read as a whole."""

AHEAD_BYTES = 2**29
"""Bytes of units that are read at once, and kept for the next ones, where units do not lie by themselves."""

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

    def lies_apart(self, axis: int) -> bool:
        """Whether the values at one index of an axis lie by themselves."""
        if self.chunks is not None:
            return self.chunks[axis] == 1
        return axis == (len(self.shape) - 1 if self.fortran else 0)


class ArrayFile(ABC):
    """A file with named arrays and numbers."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def array(self, key: str | None) -> StoredArray:
        """Return an array of real numbers; without a key, the only one that there is."""

    @abstractmethod
    def number(self, key: str) -> float:
        """Return one number that is kept in the file."""


class StoredSeries(StreamedSeries):
    """Units of a stored array with a time and a unit axis, times a ``gain`` plus an ``offset`` where there are some.

    Where units do not lie by themselves, a file is gone through for every read. More units than are asked for are read
    then, `AHEAD_BYTES` at most, and kept until others are wanted.
    """

    def __init__(
        self, stored: StoredArray, *, unit_axis: int, gain: FloatArray | None, offset: float
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
        wanted = [int(unit) for unit in units]
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
            return self._stored_part(first, stop)
        if self._ahead is not None:
            start, kept = self._ahead
            if start <= first and stop <= start + kept.shape[1]:
                return kept[:, first - start : stop - start]
            self._ahead = None
        width = AHEAD_BYTES // max(1, self.shape[0] * self._stored.dtype.itemsize)
        kept = self._stored_part(first, min(self.shape[1], max(stop, first + width)))
        self._ahead = first, kept
        return kept[:, : stop - first]

    def _stored_part(self, first: int, stop: int) -> npt.NDArray[Any]:
        index = [slice(None), slice(None)]
        index[self._unit_axis] = slice(first, stop)
        part = self._stored.read(tuple(index))
        return part.T if self._unit_axis == 0 else part


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


def check_real(dtype: np.dtype[Any], where: str) -> None:
    """Raise unless an array holds real numbers; nothing of it was read yet."""
    if dtype.kind not in "fiu":
        pickled = " (Python objects, which are never unpickled)" if dtype.hasobject else ""
        raise RecordingError(
            "an array does not hold real numbers",
            where=where,
            got=f"dtype {dtype}{pickled}",
            expected="floating-point or integer numbers",
            remedy="convert the array to numbers, and save it again",
        )


def check_size(n_bytes: int, where: str, better: str) -> None:
    """Raise where an array that can only be read as a whole is too big for that."""
    if n_bytes > WHOLE_BYTES:
        raise RecordingError(
            "an array is too big for its format, which can only be read as a whole",
            where=where,
            got=f"{n_bytes / 2**20:.0f} MiB",
            expected=f"at most {WHOLE_BYTES / 2**20:.0f} MiB",
            remedy=f"save it as {better}, which is read piece by piece",
        )


def the_key(key: str | None, names: Iterable[str], path: Path, noun: str) -> str:
    """Return the wanted name, or the only one; raise with what the file holds."""
    names = list(names)
    if key is None and len(names) == 1:
        return names[0]
    if key is not None and key in names:
        return key
    listed = ", ".join(f"'{name}'" for name in names[:12]) + (" …" if len(names) > 12 else "")
    raise RecordingError(
        f"a file does not hold the {noun} '{key}'" if key else f"which {noun} to read is not said",
        where=str(path),
        got=f"{len(names)} {noun}(s): {listed}" if names else f"no {noun}",
        expected=f"a {noun} named '{key}'" if key else f"one {noun}, or the key 'key'",
        remedy=did_you_mean(key, names) if key else 'name it: key = "…"',
    )


def torn(path: Path, problem: object) -> RecordingError:
    """Return the error of a file that cannot be read to its end."""
    return RecordingError(
        "an array file cannot be read; it may be truncated",
        where=str(path),
        got=f"{type(problem).__name__}: {problem}" if isinstance(problem, Exception) else problem,
        expected="a complete file",
        remedy="copy or write the file again, and compare its checksum",
    )


def one_number(value: Any, where: str) -> float:
    """Return a value that is one finite number."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise RecordingError(
            "a value of a file is not one finite number",
            where=where,
            got=f"shape {array.shape}, dtype {array.dtype}",
            expected="one finite number",
            remedy="name another place, or give the number in recordings.toml",
        )
    return float(array.reshape(()))
