"""Strict reading of ``.npy`` files: of a header alone, of a part, or of the whole array. Nothing is unpickled."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpact.datasets._files.stored import Index, StoredArray
from lpact.datasets._files.strict import ErrorType

MMAP_BYTES = 64 * 2**20
"""Arrays from this size on that are asked for as a whole are mapped, not read."""


def stored_npy(path: Path, error: ErrorType) -> StoredArray:
    """Return the array of an ``.npy`` file of real numbers, of which the header alone is read.

    A file that is shorter or longer than its header says is refused. Parts are read from the file when they are asked
    for: those at a range of the axis that runs slowest, of which the wanted ones are taken.
    """
    try:
        with path.open("rb") as stream:
            version = np.lib.format.read_magic(stream)
            read_header = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, fortran, dtype = read_header(stream)
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
    if dtype.kind not in "fiu":
        raise error(
            "an array file does not hold real numbers",
            where=str(path),
            got=f"dtype {dtype}" + (" (pickled Python objects)" if dtype.hasobject else ""),
            expected="a floating-point or integer dtype",
            remedy="convert the array, such as with array.astype('float64'), and save it again",
        )
    n_expected = header_bytes + math.prod(shape) * dtype.itemsize
    if n_bytes != n_expected:
        raise _wrong_length(path, n_bytes, n_expected, f"shape {shape} and dtype {dtype}", error)

    def read(index: Index) -> npt.NDArray[Any]:
        # In C order the first axis runs slowest; an array in Fortran order is the transpose of one in C order.
        turned = shape[::-1] if fortran else shape
        wanted = index[::-1] if fortran else index
        row = math.prod(turned[1:])
        first, stop, _ = wanted[0].indices(turned[0])
        count = max(0, stop - first) * row
        with path.open("rb") as stream:
            stream.seek(header_bytes + first * row * dtype.itemsize)
            values = np.fromfile(stream, dtype=dtype, count=count)
        if values.size != count:
            there = path.stat().st_size
            raise _wrong_length(path, there, n_expected, "what was there when it was opened", error)
        part = values.reshape(-1, *turned[1:])[(slice(None), *wanted[1:])]
        return part.T if fortran else part

    return StoredArray(str(path), shape, dtype, read, fortran=fortran)


def load_npy(path: Path, error: ErrorType) -> npt.NDArray[Any]:
    """Return the array of an ``.npy`` file of real numbers as a whole; a big one is mapped, read-only."""
    mapped = stored_npy(path, error).n_bytes >= MMAP_BYTES
    array: npt.NDArray[Any] = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    return array


def _wrong_length(
    path: Path, n_bytes: int, n_expected: int, why: str, error: ErrorType
) -> Exception:
    return error(
        "an array file is truncated" if n_bytes < n_expected else "an array file is too long",
        where=str(path),
        got=f"{n_bytes} bytes",
        expected=f"{n_expected} bytes for {why}",
        remedy="copy or write the file again",
    )
