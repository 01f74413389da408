"""Named arrays and numbers in NumPy, HDF5 and MATLAB files; Zarr and NWB have their own modules.

MATLAB files of versions 5 to 7 are read with SciPy, version 7.3 as HDF5. Struct fields are named with dots, as in
MATLAB (``EEG.data``). Nothing is unpickled; cells, function handles and objects are refused by their class.
"""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpact.datasets._files.hdf5 import (
    dataset_names,
    hdf5_dataset,
    hdf5_object,
    never_written,
    open_hdf5,
)
from lpact.datasets._files.stored import Index, StoredArray, check_real, npy_header, stored_npy
from lpact.errors import RecordingError, did_you_mean
from lpact.extras import require

SUFFIXES = (".npy", ".npz", ".h5", ".hdf5", ".nwb", ".zarr", ".mat")

WHOLE_BYTES = 2**30
"""Largest array in a format that can only be read as a whole."""

MATLAB_NUMBERS = (
    "double",
    "single",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
)
_READ_ERRORS = (
    *(OSError, ValueError, TypeError, KeyError, EOFError, NotImplementedError),
    *(zlib.error, zipfile.BadZipFile),
)


class ArrayFile(ABC):
    """A file with named arrays and numbers; ``noun`` is the name of an array in messages."""

    noun = "array"

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def array(self, key: str | None) -> StoredArray:
        """Return an array of real numbers; without a key, the only one."""

    @abstractmethod
    def number(self, key: str) -> float:
        """Return one number of the file."""

    def where(self, name: str) -> str:
        """Name an array in messages."""
        return f"{self.path}, {self.noun} '{name}'"


def open_array_file(path: Path) -> ArrayFile:
    """Open a file; its suffix says which format it has."""
    suffix = path.suffix.lower()
    if suffix == ".zarr":
        from lpact.datasets.arrays.zarr_folder import ZarrFolder

        return ZarrFolder(path)
    if suffix == ".mat":
        return _open_matlab(path)
    kinds: dict[str, type[ArrayFile]] = {".npy": NpyFile, ".npz": NpzFile}
    kinds |= dict.fromkeys((".h5", ".hdf5", ".nwb"), Hdf5File)
    if suffix not in kinds:
        raise RecordingError(
            "the format of an array file is unknown",
            where=str(path),
            got=f"the suffix '{path.suffix}'",
            expected="one of " + ", ".join(SUFFIXES),
            remedy="save the array in one of these formats",
        )
    return kinds[suffix](path)


def choose_key(key: str | None, names: Iterable[str], where: object, noun: str) -> str:
    """Return the key, or the only name; raise with the names in the file."""
    names = list(names)
    if key is None and len(names) == 1:
        return names[0]
    if key is not None and key in names:
        return key
    listed = ", ".join(f"'{name}'" for name in names[:12]) + (" …" if len(names) > 12 else "")
    raise RecordingError(
        f"a file has no {noun} '{key}'" if key else f"a file has several {noun}s, or none",
        where=str(where),
        got=f"{len(names)} {noun}(s): {listed}" if names else f"no {noun}",
        remedy=did_you_mean(key, names) if key else 'name one: key = "…"',
    )


def choose_attribute(attributes: Any, name: str, where: str) -> float:
    """Return an attribute that is one number."""
    if name not in attributes:
        raise RecordingError(
            f"the attribute '{name}' does not exist",
            where=where,
            got="attributes " + (", ".join(attributes) or "none"),
            remedy=did_you_mean(name, attributes),
        )
    return one_number(attributes[name], where)


def unreadable(path: Path, problem: object) -> RecordingError:
    """Return the error of a damaged file."""
    return RecordingError(
        "an array file cannot be read; it may be truncated",
        where=str(path),
        got=f"{type(problem).__name__}: {problem}" if isinstance(problem, Exception) else problem,
        remedy="copy or write the file again, and compare its checksum",
    )


def check_scalar(shape: tuple[int, ...] | None, dtype: np.dtype[Any], where: str) -> None:
    """Raise unless an array is one real number; its value is not read yet."""
    if shape is None or math.prod(shape) != 1 or dtype.kind not in "fiu":
        raise _not_one_number(f"shape {shape}, dtype {dtype}", where)


def one_number(value: Any, where: str) -> float:
    """Return a value that is one finite number."""
    array = np.asarray(value)
    check_scalar(array.shape, array.dtype, where)
    number = float(array.reshape(()))
    if not math.isfinite(number):
        raise _not_one_number(str(number), where)
    return number


def _not_one_number(found: str, where: str) -> RecordingError:
    return RecordingError(
        "a value must be one finite number",
        where=where,
        got=found,
        remedy="correct the key, or give the number in recordings.toml",
    )


def _check_size(n_bytes: int, where: str, better: str) -> None:
    if n_bytes > WHOLE_BYTES:
        raise RecordingError(
            "an array is too big for its format, which can only be read as a whole",
            where=where,
            got=f"{n_bytes / 2**20:.0f} MiB",
            expected=f"at most {WHOLE_BYTES / 2**20:.0f} MiB",
            remedy=f"save it as {better}",
        )


class NpyFile(ArrayFile):
    """One array without a name."""

    def array(self, key: str | None) -> StoredArray:
        """Return the array."""
        if key is not None:
            raise self._no_names(key)
        return stored_npy(self.path, RecordingError)

    def number(self, key: str) -> float:
        """Raise: the file has no numbers beside the array."""
        raise self._no_names(key)

    def _no_names(self, key: str) -> RecordingError:
        return RecordingError(
            "an .npy file has one array without a name",
            where=str(self.path),
            got=f"the key '{key}'",
            remedy="leave the key out, and give numbers in recordings.toml",
        )


class NpzFile(ArrayFile):
    """Arrays by name in a ZIP archive; each is read as a whole."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._headers = {}
        try:
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    if name.endswith(".npy"):
                        with archive.open(name) as stream:
                            self._headers[name.removesuffix(".npy")] = npy_header(stream)  # type: ignore[arg-type]
        except _READ_ERRORS as problem:
            raise unreadable(path, problem) from None

    def array(self, key: str | None) -> StoredArray:
        """Return an array by its name."""
        name = choose_key(key, self._headers, self.path, self.noun)
        shape, fortran, dtype = self._headers[name]
        where = self.where(name)
        check_real(dtype, where)
        _check_size(math.prod(shape) * dtype.itemsize, where, "an .npy file")
        return StoredArray(
            where, shape, dtype, lambda index: self._load(name)[index], fortran=fortran, whole=True
        )

    def number(self, key: str) -> float:
        """Return an array of one number."""
        name = choose_key(key, self._headers, self.path, self.noun)
        shape, _, dtype = self._headers[name]
        check_scalar(shape, dtype, self.where(name))
        return one_number(self._load(name), self.where(name))

    def _load(self, name: str) -> npt.NDArray[Any]:
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                values: npt.NDArray[Any] = archive[name]
        except _READ_ERRORS as problem:
            raise unreadable(self.path, problem) from None
        return values


class Hdf5File(ArrayFile):
    """Datasets by path; numbers by path, or as ``path@attribute``."""

    noun = "dataset"

    def array(self, key: str | None) -> StoredArray:
        """Return a dataset by its path; without one, the only one with two axes or more."""
        with open_hdf5(self.path, RecordingError) as file:
            if key is None:
                names = [n for n in dataset_names(file) if _is_matrix(file[n])]
                key = choose_key(None, names, self.path, self.noun)
            dataset = self._dataset(file, key)
            self._check(dataset, self.where(key))
            return StoredArray(
                where=self.where(key),
                shape=dataset.shape,
                dtype=dataset.dtype,
                read=lambda index: self._read(key, index),
                chunks=dataset.chunks,
                unwritten=never_written(dataset),
            )

    def number(self, key: str) -> float:
        """Return a scalar dataset, or an attribute: ``data@rate``, or ``@rate`` for the file's own."""
        path, _, attribute = key.partition("@")
        where = f"{self.path}, '{key}'"
        with open_hdf5(self.path, RecordingError) as file:
            if attribute:
                attributes = hdf5_object(file, path, RecordingError, noun=self.noun).attrs
                return choose_attribute(attributes, attribute, where)
            dataset = self._dataset(file, path)
            check_scalar(dataset.shape, dataset.dtype, where)
            return one_number(dataset[()], where)

    def _dataset(self, file: Any, name: str) -> Any:
        return hdf5_dataset(file, name, RecordingError, noun=self.noun)

    def _read(self, name: str, index: Index) -> npt.NDArray[Any]:
        with open_hdf5(self.path, RecordingError) as file:
            values: npt.NDArray[Any] = self._dataset(file, name)[index]
        return values

    def _check(self, dataset: Any, where: str) -> None:
        check_real(dataset.dtype, where)
        if dataset.shape is None:
            raise RecordingError("a dataset is empty", where=where, remedy="name another dataset")
        h5py = require("h5py", extra="hdf5")
        filters = dataset.id.get_create_plist()
        for position in range(filters.get_nfilters()):
            code, _, _, name = filters.get_filter(position)
            if not h5py.h5z.filter_avail(code):
                raise RecordingError(
                    "h5py does not know the compression of a dataset",
                    where=where,
                    got=f"HDF5 filter {code} ({name.decode(errors='replace')})",
                    remedy="write it again with compression='gzip' (h5repack -f GZIP=4)",
                )


def _is_matrix(dataset: Any) -> bool:
    return bool(dataset.dtype.kind in "fiu" and dataset.ndim >= 2)


def _open_matlab(path: Path) -> ArrayFile:
    from scipy.io.matlab import MatReadError, matfile_version

    try:
        major, _ = matfile_version(str(path), appendmat=False)
    except (*_READ_ERRORS, MatReadError) as problem:
        raise unreadable(path, problem) from None
    if major == 0:
        raise RecordingError(
            "MATLAB files of version 4 are not supported",
            where=str(path),
            got="version 4, or not a MATLAB file",
            remedy="save it again in MATLAB with save(…, '-v7') or '-v7.3'",
        )
    return Matlab73File(path) if major == 2 else Matlab5File(path)


class Matlab5File(ArrayFile):
    """Variables of a MATLAB file up to version 7; each is read as a whole."""

    noun = "variable"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        from scipy.io import whosmat
        from scipy.io.matlab import MatReadError

        _check_complete(path)
        try:
            listed = whosmat(str(path), appendmat=False)
        except (*_READ_ERRORS, MatReadError) as problem:
            raise unreadable(path, problem) from None
        self._variables = {str(name): (tuple(shape), str(kind)) for name, shape, kind in listed}

    def array(self, key: str | None) -> StoredArray:
        """Return a variable, or a field of a struct."""
        if key is None:
            matrices = [
                name
                for name, (shape, kind) in self._variables.items()
                if kind in MATLAB_NUMBERS and math.prod(shape) > 1
            ]
            key = choose_key(None, matrices, self.path, self.noun)
        values = self._load(key)
        return StoredArray(
            self.where(key),
            values.shape,
            values.dtype,
            values.__getitem__,
            fortran=True,
            whole=True,
        )

    def number(self, key: str) -> float:
        """Return a 1 × 1 variable or field."""
        return one_number(self._load(key), self.where(key))

    def _load(self, key: str) -> npt.NDArray[Any]:
        from scipy.io import loadmat
        from scipy.io.matlab import MatReadError

        where = self.where(key)
        name, *fields = key.split(".")
        choose_key(name, self._variables, self.path, self.noun)
        shape, kind = self._variables[name]
        _check_class(kind, where, (*MATLAB_NUMBERS, "struct") if fields else MATLAB_NUMBERS)
        n_bytes = max(8 * math.prod(shape), self.path.stat().st_size if fields else 0)
        _check_size(n_bytes, where, "a MATLAB file of version 7.3 (save with '-v7.3')")
        try:
            values: Any = loadmat(str(self.path), appendmat=False, variable_names=[name])[name]
        except (*_READ_ERRORS, MatReadError) as problem:
            raise unreadable(self.path, problem) from None
        for field in fields:
            choose_key(field, getattr(values, "dtype", np.dtype("f8")).names or (), where, "field")
            values = values[field].reshape(-1)[0] if values.size == 1 else None
        if not isinstance(values, np.ndarray):
            raise RecordingError(
                "a MATLAB variable is not a full array in a 1 × 1 struct",
                where=where,
                got=type(values).__name__,
                remedy="save it as a variable, with full(…) if it is sparse",
            )
        check_real(values.dtype, where)
        return values


class Matlab73File(Hdf5File):
    """Variables of a MATLAB file of version 7.3; HDF5 has their axes in reverse order."""

    noun = "variable"

    def array(self, key: str | None) -> StoredArray:
        """Return a variable, or a field of a struct."""
        stored = super().array(None if key is None else key.replace(".", "/"))
        return replace(
            stored,
            shape=stored.shape[::-1],
            read=lambda index: stored.read(index[::-1]).T,
            chunks=None if stored.chunks is None else stored.chunks[::-1],
            fortran=True,
        )

    def number(self, key: str) -> float:
        """Return a 1 × 1 variable or field."""
        return super().number(key.replace(".", "/"))

    def _check(self, dataset: Any, where: str) -> None:
        kind = dataset.attrs.get("MATLAB_class", b"double")
        kind = kind.decode() if isinstance(kind, bytes) else str(kind)
        _check_class(kind, where, MATLAB_NUMBERS)
        super()._check(dataset, where)


def _check_class(kind: str, where: str, wanted: Iterable[str]) -> None:
    if kind not in wanted:
        raise RecordingError(
            "a MATLAB variable is not a full array of numbers",
            where=where,
            got=f"class {kind}",
            remedy="name a field of the struct (name.field)"
            if kind == "struct"
            else "save the numbers as a variable, with double(…) or full(…)",
        )


def _check_complete(path: Path) -> None:
    """Raise if the file ends within a variable; the length of each precedes it."""
    n_bytes = path.stat().st_size
    with path.open("rb") as stream:
        order = "<" if stream.read(128)[126:128] == b"IM" else ">"
        position = 128
        while position < n_bytes:
            stream.seek(position)
            tag = stream.read(8)
            if len(tag) < 8:
                raise unreadable(path, f"{n_bytes} bytes, which end within a variable's header")
            position += 8 + struct.unpack(f"{order}II", tag)[1]
    if position > n_bytes:
        raise unreadable(path, f"{n_bytes} of {position} bytes")
