"""Named arrays and numbers in NumPy, HDF5, MATLAB and Zarr files.

MATLAB files of versions 5 to 7 are read with SciPy, version 7.3 as HDF5. Struct fields are named with dots, as in
MATLAB (``EEG.data``). Nothing is unpickled; cells, function handles and objects are refused by their class.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpact.datasets._files.hdf5 import dataset_names, hdf5_dataset, hdf5_object, never_written, open_hdf5
from lpact.datasets._files.stored import Index, StoredArray, check_real, npy_header, stored_npy
from lpact.datasets._files.strict import damaged
from lpact.errors import RecordingError, did_you_mean, require_known
from lpact.extras import require
from lpact.math.types import FloatArray

WHOLE_BYTES = 2**30
"""Largest array in a format that can only be read as a whole."""

MATLAB_NUMBERS = ("double", "single", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
_CODECS = (
    "adler32 astype bitround blosc bytes bz2 crc32 crc32c delta fixedscaleoffset fletcher32 gzip jenkins_lookup3 lz4 "
    "lzma packbits pcodec quantize sharding_indexed shuffle transpose zfpy zlib zstd"
)
CODECS = frozenset(_CODECS.split())
"""Codecs of Zarr for plain numbers; others, such as ``pickle``, are refused before anything is decoded."""

BLOSC_HEADER = 16
"""Bytes before the data of a Blosc chunk."""

_READ_ERRORS = (*(OSError, ValueError, TypeError, KeyError, EOFError, RuntimeError), *(zlib.error, zipfile.BadZipFile))


@dataclass(frozen=True)
class Source:
    """An array and what its file says about it: values are ``stored · gain + offset``, in ``physical_unit``.

    ``ids``, ``regions`` and ``coordinates`` ([n_units, 3], in the file's unit of length) are empty if the file has no
    table of electrodes.
    """

    stored: StoredArray
    axes: tuple[str, ...]
    rate_hz: float | None = None
    start_s: float = 0.0
    physical_unit: str = ""
    gain: FloatArray | None = None
    offset: float = 0.0
    ids: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    coordinates: FloatArray | None = None


class ArrayFile(ABC):
    """A file with named arrays; ``noun`` is what messages call one of them."""

    noun = "array"

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return the shape of every array, by name."""

    @abstractmethod
    def open(self, name: str) -> StoredArray:
        """Open an array; its values are not read yet."""

    def attributes(self, name: str) -> Mapping[str, Any]:  # noqa: ARG002
        """Return the attributes of an array or group."""
        return {}

    def array(self, key: str | None) -> StoredArray:
        """Open an array of real numbers; without a key, the only one with two axes or more."""
        if key is None:
            shapes = self.shapes()
            several = [name for name, s in shapes.items() if len(s) > 1 and math.prod(s) > 1]
            key = choose_key(None, several or shapes, self.path, self.noun)
        stored = self.open(key)
        check_real(stored.dtype, stored.where)
        return stored

    def number(self, key: str) -> float:
        """Return an array of one number, or an attribute: ``data@rate``, or ``@rate`` for the file's own."""
        name, _, attribute = key.partition("@")
        if attribute:
            attributes = self.attributes(name)
            place = f"{self.path}, '{name}'"
            value = np.asarray(attributes[choose_key(attribute, attributes, place, "attribute")])
            shape, dtype = value.shape, value.dtype
        else:
            stored = self.open(name)
            shape, dtype = stored.shape, stored.dtype
        found = f"shape {shape}, dtype {dtype}"
        if math.prod(shape) == 1 and dtype.kind in "fiu":
            number = float((value if attribute else stored.all()).reshape(()))
            if math.isfinite(number):
                return number
            found = str(number)
        raise RecordingError(
            "a value must be one finite number",
            where=f"{self.path}, '{key}'",
            got=found,
            remedy="correct the key, or give the number in recordings.toml",
        )

    def where(self, name: str) -> str:
        """Name an array in messages."""
        return f"{self.path}, {self.noun} '{name}'" if name else str(self.path)


def open_array_file(path: Path) -> ArrayFile:
    """Open a file; its suffix says which format it has."""
    kinds: dict[str, Callable[[Path], ArrayFile]] = {}
    kinds |= {".npy": _NpyFile, ".npz": _NpzFile, **dict.fromkeys((".h5", ".hdf5", ".nwb"), Hdf5File)}
    kinds |= {".zarr": _ZarrFolder, ".mat": _Matlab5File}
    suffix = path.suffix.lower()
    require_known(suffix, kinds, "array format", where=str(path), error=RecordingError)
    if suffix == ".mat" and _matlab_version(path) == 2:
        return _Matlab73File(path)
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


def _check_size(n_bytes: int, where: str, better: str) -> None:
    if n_bytes > WHOLE_BYTES:
        raise RecordingError(
            "an array is too big for its format, which can only be read as a whole",
            where=where,
            got=f"{n_bytes / 2**20:.0f} MiB",
            expected=f"at most {WHOLE_BYTES / 2**20:.0f} MiB",
            remedy=f"save it as {better}",
        )


class _NpyFile(ArrayFile):
    """One array without a name."""

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return {"": self.open("").shape}

    def open(self, name: str) -> StoredArray:
        if name:
            raise RecordingError(
                "an .npy file has one array without a name",
                where=str(self.path),
                got=f"the key '{name}'",
                remedy="leave the key out, and give numbers in recordings.toml",
            )
        return stored_npy(self.path, RecordingError)


class _NpzFile(ArrayFile):
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
            raise damaged(path, problem) from None

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: shape for name, (shape, _, _) in self._headers.items()}

    def open(self, name: str) -> StoredArray:
        choose_key(name, self._headers, self.path, self.noun)
        shape, fortran, dtype = self._headers[name]
        where = self.where(name)

        def read(index: Index) -> npt.NDArray[Any]:
            _check_size(math.prod(shape) * dtype.itemsize, where, "an .npy file")
            try:
                with np.load(self.path, allow_pickle=False) as archive:
                    values: npt.NDArray[Any] = archive[name][index]
            except _READ_ERRORS as problem:
                raise damaged(self.path, problem) from None
            return values

        return StoredArray(where, shape, dtype, read, fortran=fortran, whole=True)


class Hdf5File(ArrayFile):
    """Datasets and attributes by path."""

    noun = "dataset"

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return the shape of every dataset, by path."""
        with open_hdf5(self.path, RecordingError) as file:
            return {name: file[name].shape or () for name in dataset_names(file)}

    def attributes(self, name: str) -> Mapping[str, Any]:
        """Return the attributes of a dataset or group."""
        with open_hdf5(self.path, RecordingError) as file:
            return dict(hdf5_object(file, name, RecordingError, noun=self.noun).attrs)

    def open(self, name: str) -> StoredArray:
        """Open a dataset."""
        where = self.where(name)

        def read(index: Index) -> npt.NDArray[Any]:
            with open_hdf5(self.path, RecordingError) as file:
                values = hdf5_dataset(file, name, RecordingError, noun=self.noun)[index]
            return np.asarray(values)

        with open_hdf5(self.path, RecordingError) as file:
            dataset = hdf5_dataset(file, name, RecordingError, noun=self.noun)
            self._check(dataset, where)
            return StoredArray(
                where=where,
                shape=dataset.shape or (0,) * (dataset.shape is None),
                dtype=dataset.dtype,
                read=read,
                chunks=dataset.chunks,
                unwritten=never_written(dataset),
            )

    def _check(self, dataset: Any, where: str) -> None:
        """Raise if the installed HDF5 library cannot decompress a dataset."""
        available = require("h5py", extra="hdf5").h5z.filter_avail
        filters = dataset.id.get_create_plist()
        for position in range(filters.get_nfilters()):
            code, _, _, name = filters.get_filter(position)
            if not available(code):
                raise RecordingError(
                    "h5py does not know the compression of a dataset",
                    where=where,
                    got=f"HDF5 filter {code} ({name.decode(errors='replace')})",
                    remedy="write it again with compression='gzip' (h5repack -f GZIP=4)",
                )


def _matlab_version(path: Path) -> int:
    """Major version in the header: 1 up to version 7, 2 for version 7.3."""
    from scipy.io.matlab import MatReadError, matfile_version

    try:
        major, _ = matfile_version(str(path), appendmat=False)
    except (*_READ_ERRORS, MatReadError) as problem:
        raise damaged(path, problem) from None
    if major == 0:
        raise RecordingError(
            "MATLAB files of version 4 are not supported",
            where=str(path),
            got="version 4, or not a MATLAB file",
            remedy="save it again in MATLAB with save(…, '-v7') or '-v7.3'",
        )
    return int(major)


class _Matlab5File(ArrayFile):
    """Variables of a MATLAB file up to version 7; each is read as a whole."""

    noun = "variable"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        from scipy.io import whosmat

        listed = self._scipy(whosmat)
        self._variables = {str(name): (tuple(shape), str(kind)) for name, shape, kind in listed}

    def _scipy(self, function: Any, **options: Any) -> Any:
        from scipy.io.matlab import MatReadError

        try:
            return function(str(self.path), appendmat=False, **options)
        except (*_READ_ERRORS, MatReadError) as problem:
            raise damaged(self.path, problem) from None

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return {n: shape for n, (shape, kind) in self._variables.items() if kind in MATLAB_NUMBERS}

    def open(self, name: str) -> StoredArray:
        from scipy.io import loadmat

        where = self.where(name)
        variable, *fields = name.split(".")
        choose_key(variable, self._variables, self.path, self.noun)
        shape, kind = self._variables[variable]
        _check_class(kind, where, (*MATLAB_NUMBERS, "struct") if fields else MATLAB_NUMBERS)
        n_bytes = max(8 * math.prod(shape), self.path.stat().st_size if fields else 0)
        _check_size(n_bytes, where, "a MATLAB file of version 7.3 (save with '-v7.3')")
        values = self._scipy(loadmat, variable_names=[variable])[variable]
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
        read = values.__getitem__
        return StoredArray(where, values.shape, values.dtype, read, fortran=True, whole=True)


class _Matlab73File(Hdf5File):
    """Variables of a MATLAB file of version 7.3; HDF5 has their axes in reverse order."""

    noun = "variable"

    def open(self, name: str) -> StoredArray:
        stored = super().open(name.replace(".", "/"))
        return replace(
            stored,
            shape=stored.shape[::-1],
            read=lambda index: stored.read(index[::-1]).T,
            chunks=None if stored.chunks is None else stored.chunks[::-1],
            fortran=True,
        )

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


class _ZarrFolder(ArrayFile):
    """Arrays of a local Zarr folder (format 2 or 3) by path; the path is empty if the folder itself is an array."""

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        zarr = require("zarr", extra="zarr")
        node = self._node("")
        if isinstance(node, zarr.Array):
            return {"": node.shape}
        members = node.members(max_depth=None)
        return {name: item.shape for name, item in members if isinstance(item, zarr.Array)}

    def attributes(self, name: str) -> Mapping[str, Any]:
        return dict(self._node(name).attrs)

    def _node(self, name: str) -> Any:
        """An array or group, from its own metadata: a consolidated copy may differ from them."""
        zarr = require("zarr", extra="zarr")
        folder = self.path / name.strip("/")
        try:
            return zarr.open(str(folder), mode="r", use_consolidated=False)
        except FileNotFoundError:
            if name:
                choose_key(name, self.shapes(), self.path, self.noun)
            raise RecordingError(
                "a Zarr folder has no metadata",
                where=str(folder),
                got="a folder" if folder.is_dir() else "a file",
                expected="a local folder with zarr.json, .zarray or .zgroup",
                remedy="name the folder of the array or group; unpack ZIP archives first",
            ) from None
        except _READ_ERRORS as problem:
            raise damaged(folder, problem) from None

    def open(self, name: str) -> StoredArray:
        self._node("")
        array, where = self._node(name), self.where(name)
        if not hasattr(array, "nchunks"):
            choose_key(name, self.shapes(), self.path, self.noun)
        codecs = list(_codecs(array.metadata.to_dict()))
        if unknown := [codec for codec in codecs if codec not in CODECS]:
            raise RecordingError(
                "the codec of an array is not supported",
                where=where,
                got=f"the codec '{unknown[0]}'",
                expected="one of " + ", ".join(sorted(CODECS)),
                remedy="write the array again, for instance with the codec 'zstd'",
            )
        if codecs and codecs[-1] == "blosc":
            _check_blosc_chunks(self.path / name)

        def read(index: Index) -> npt.NDArray[Any]:
            try:
                return np.asarray(array[index])
            except Exception as problem:
                # Every codec has its own errors: EOFError, zlib.error, LZMAError …
                raise damaged(self.path, problem) from None

        missing = array.nchunks - array.nchunks_initialized
        return StoredArray(
            where=where,
            shape=tuple(array.shape),
            dtype=np.dtype(array.dtype),
            read=read,
            chunks=tuple(array.shards or array.chunks),
            unwritten=f"{missing} of {array.nchunks} chunks are not stored; they read as {array.fill_value}"
            if missing > 0
            else "",
        )


def _codecs(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Names of all codecs, those within shards first and the outermost last."""
    for key in ("filters", "index_codecs", "codecs", "compressor"):
        listed = metadata.get(key) or ()
        for codec in (listed,) if isinstance(listed, Mapping) else listed:
            yield from _codecs(codec.get("configuration") or {})
            yield str(codec.get("name", codec.get("id"))).removeprefix("numcodecs.")


def _check_blosc_chunks(folder: Path) -> None:
    """Raise if a chunk is shorter than its Blosc header says: the decoder would read beyond its end.

    Bytes 12 to 16 of a chunk are its size.
    """
    for chunk in folder.rglob("*"):
        if chunk.is_file() and not chunk.name.startswith(".") and chunk.name != "zarr.json":
            with chunk.open("rb") as stream:
                header = stream.read(BLOSC_HEADER)
            expected, found = int.from_bytes(header[12:16], "little"), chunk.stat().st_size
            if len(header) < BLOSC_HEADER or found < expected:
                name = chunk.relative_to(folder).as_posix()
                raise damaged(folder, f"chunk {name} has {found} of {expected} bytes")
