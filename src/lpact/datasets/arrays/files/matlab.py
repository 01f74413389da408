"""MATLAB files: version 5 (MATLAB 5 to 7) through SciPy, version 7.3 through HDF5.

Numbers alone are read: cells, function handles and objects are refused by their class, before they are looked at.
Fields of structs are named with dots, as in MATLAB (``EEG.data``).
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpact.datasets._files.stored import StoredArray
from lpact.datasets.arrays.files.hdf5 import Hdf5File
from lpact.datasets.arrays.files.stored import (
    ArrayFile,
    check_real,
    check_size,
    one_number,
    the_key,
    torn,
)
from lpact.errors import RecordingError

NUMBERS = (
    "double",
    "single",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
)
_HEADER_BYTES = 128
_TAG_BYTES = 8
_TROUBLE = (OSError, ValueError, TypeError, KeyError, EOFError, zlib.error, NotImplementedError)


def open_matlab(path: Path) -> ArrayFile:
    """Return the opener of the file's version."""
    from scipy.io.matlab import MatReadError, matfile_version

    try:
        major, _ = matfile_version(str(path), appendmat=False)
    except (*_TROUBLE, MatReadError) as problem:
        raise torn(path, problem) from None
    if major == 2:
        return Matlab73File(path)
    if major == 1:
        return Matlab5File(path)
    raise RecordingError(
        "a MATLAB file of version 4 is not read",
        where=str(path),
        got="version 4, or not a MATLAB file",
        expected="version 5, 6, 7 or 7.3",
        remedy="save it again in MATLAB with save(…, '-v7') or '-v7.3'",
    )


class Matlab5File(ArrayFile):
    """Variables of a MATLAB file up to version 7; each is read as a whole."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        from scipy.io import whosmat
        from scipy.io.matlab import MatReadError

        _check_complete(path)
        try:
            listed = whosmat(str(path), appendmat=False)
        except (*_TROUBLE, MatReadError) as problem:
            raise torn(path, problem) from None
        self._variables = {str(name): (tuple(shape), str(kind)) for name, shape, kind in listed}

    def array(self, key: str | None) -> StoredArray:
        """Return a variable, or a field of a struct (``EEG.data``)."""
        if key is None:
            matrices = [
                name
                for name, (shape, kind) in self._variables.items()
                if kind in NUMBERS and math.prod(shape) > 1
            ]
            key = the_key(None, matrices, self.path, "variable")
        where = f"{self.path}, variable '{key}'"
        values = self._load(key, where)
        # MATLAB lets the first axis run fastest.
        return StoredArray(
            where, values.shape, values.dtype, values.__getitem__, fortran=True, whole=True
        )

    def number(self, key: str) -> float:
        """Return a 1 × 1 variable or field."""
        where = f"{self.path}, variable '{key}'"
        return one_number(self._load(key, where), where)

    def _load(self, key: str, where: str) -> npt.NDArray[Any]:
        from scipy.io import loadmat
        from scipy.io.matlab import MatReadError

        name, *fields = key.split(".")
        the_key(name, self._variables, self.path, "variable")
        shape, kind = self._variables[name]
        _check_class(kind, where, (*NUMBERS, "struct") if fields else NUMBERS)
        n_bytes = max(8 * math.prod(shape), self.path.stat().st_size if fields else 0)
        check_size(n_bytes, where, "a MATLAB file of version 7.3 (save with '-v7.3')")
        try:
            values: Any = loadmat(str(self.path), appendmat=False, variable_names=[name])[name]
        except (*_TROUBLE, MatReadError) as problem:
            raise torn(self.path, problem) from None
        for field in fields:
            known = values.dtype.names if isinstance(values, np.ndarray) else None
            the_key(field, known or (), Path(where), "field")
            if values.size != 1:
                raise RecordingError(
                    "a struct array has no single field",
                    where=where,
                    got=f"a struct array of shape {values.shape}",
                    expected="a 1 × 1 struct",
                    remedy="save the array as a variable of its own",
                )
            values = values[field].reshape(-1)[0]
        if not isinstance(values, np.ndarray):
            raise RecordingError(
                "a MATLAB variable is not a full array",
                where=where,
                got=type(values).__name__,
                expected="a full array of numbers",
                remedy="save it with full(…)",
            )
        check_real(values.dtype, where)
        return values


class Matlab73File(Hdf5File):
    """Variables of a MATLAB file of version 7.3. Axes are told as MATLAB has them, the reverse of HDF5's."""

    noun = "variable"

    def array(self, key: str | None) -> StoredArray:
        """Return a variable, or a field of a struct (``EEG.data``)."""
        stored = super().array(None if key is None else key.replace(".", "/"))
        read = stored.read
        return StoredArray(
            where=stored.where,
            shape=stored.shape,
            dtype=stored.dtype,
            read=lambda index: read(index[::-1]).T,
            chunks=stored.chunks,
            fortran=True,
            unwritten=stored.unwritten,
        )

    def number(self, key: str) -> float:
        """Return a 1 × 1 variable or field."""
        return super().number(key.replace(".", "/"))

    def _turn(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        return axes[::-1]

    def _check(self, dataset: Any, where: str) -> None:
        kind = dataset.attrs.get("MATLAB_class", b"double")
        _check_class(kind.decode() if isinstance(kind, bytes) else str(kind), where, NUMBERS)
        super()._check(dataset, where)

    def _names(self, file: Any) -> list[str]:
        return [name for name in super()._names(file) if not name.startswith("#")]


def _check_class(kind: str, where: str, wanted: Iterable[str]) -> None:
    if kind not in wanted:
        raise RecordingError(
            "a MATLAB variable does not hold numbers",
            where=where,
            got=f"class {kind}",
            expected="a full array of class double, single or an integer class",
            remedy="name a field of the struct (name.field)"
            if kind == "struct"
            else "save the numbers as a variable of their own, with double(…) or full(…)",
        )


def _check_complete(path: Path) -> None:
    """Raise where the file ends within one of its variables; their lengths stand before them."""
    n_bytes = path.stat().st_size
    with path.open("rb") as stream:
        header = stream.read(_HEADER_BYTES)
        order = "<" if header[126:128] == b"IM" else ">"
        position = _HEADER_BYTES
        while position < n_bytes:
            stream.seek(position)
            tag = stream.read(_TAG_BYTES)
            if len(tag) < _TAG_BYTES:
                raise torn(path, f"{n_bytes} bytes, which end within a variable's header")
            position += _TAG_BYTES + struct.unpack(f"{order}II", tag)[1]
    if position > n_bytes:
        raise torn(path, f"{n_bytes} bytes, where the variables' headers speak of {position}")
