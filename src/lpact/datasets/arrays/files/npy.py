"""NumPy files: one array (``.npy``) or several by name (``.npz``). Nothing is unpickled."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpact.datasets._files.npy import stored_npy
from lpact.datasets._files.stored import StoredArray
from lpact.datasets.arrays.files.stored import (
    ArrayFile,
    check_one_number,
    check_real,
    check_size,
    one_number,
    the_key,
    torn,
)
from lpact.errors import RecordingError


class NpyFile(ArrayFile):
    """One array; parts of it are read when they are asked for."""

    def array(self, key: str | None) -> StoredArray:
        """Return the array; it has no name."""
        if key is not None:
            raise self._nameless(key)
        return stored_npy(self.path, RecordingError)

    def number(self, key: str) -> float:
        """Raise: there is only the array."""
        raise self._nameless(key)

    def _nameless(self, key: str) -> RecordingError:
        return RecordingError(
            "an .npy file holds one array without a name",
            where=str(self.path),
            got=f"the key '{key}'",
            expected="no key",
            remedy="leave the key out, and give numbers in recordings.toml",
        )


class NpzFile(ArrayFile):
    """Arrays by name in a ZIP archive; each is read as a whole."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
                self._headers = {
                    name.removesuffix(".npy"): _header(archive, name)
                    for name in names
                    if name.endswith(".npy")
                }
        except (OSError, ValueError, zipfile.BadZipFile, EOFError) as problem:
            raise torn(path, problem) from None

    def array(self, key: str | None) -> StoredArray:
        """Return an array by its name."""
        name = the_key(key, self._headers, self.path, "array")
        where = f"{self.path}, array '{name}'"
        shape, fortran, dtype = self._headers[name]
        check_real(dtype, where)
        check_size(math.prod(shape) * dtype.itemsize, where, "an .npy file")
        return StoredArray(
            where, shape, dtype, lambda index: self._load(name)[index], fortran=fortran, whole=True
        )

    def number(self, key: str) -> float:
        """Return a number that has a name of its own."""
        name = the_key(key, self._headers, self.path, "array")
        where = f"{self.path}, array '{name}'"
        shape, _, dtype = self._headers[name]
        check_one_number(shape, dtype, where)
        return one_number(self._load(name), where)

    def _load(self, name: str) -> npt.NDArray[Any]:
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                values: npt.NDArray[Any] = archive[name]
        except (OSError, ValueError, zipfile.BadZipFile, EOFError) as problem:
            raise torn(self.path, problem) from None
        return values


def _header(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and dtype of a member; its values are not read."""
    with archive.open(name) as stream:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            return np.lib.format.read_array_header_1_0(stream)
        return np.lib.format.read_array_header_2_0(stream)
