"""What files of all formats have in common: named arrays and numbers, and errors that name them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from lpact.datasets._files.stored import StoredArray
from lpact.errors import RecordingError, did_you_mean

WHOLE_BYTES = 2**30
"""Most bytes of an array in a format that can only be read as a whole."""


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


def check_one_number(shape: tuple[int, ...] | None, dtype: np.dtype[Any], where: str) -> None:
    """Raise unless an array is one real number; nothing of it was read yet."""
    if shape is None or math.prod(shape) != 1 or dtype.kind not in "fiu":
        raise _not_one_number(f"shape {shape}, dtype {dtype}", where)


def one_number(value: Any, where: str) -> float:
    """Return a value that is one finite number."""
    array = np.asarray(value)
    check_one_number(array.shape, array.dtype, where)
    number = float(array.reshape(()))
    if not math.isfinite(number):
        raise _not_one_number(str(number), where)
    return number


def _not_one_number(found: str, where: str) -> RecordingError:
    return RecordingError(
        "a value of a file is not one finite number",
        where=where,
        got=found,
        expected="one finite number",
        remedy="name another place, or give the number in recordings.toml",
    )
