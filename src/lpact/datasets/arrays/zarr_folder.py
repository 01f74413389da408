"""Zarr groups and arrays (format 2 and 3) in local folders."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpact.datasets._files.stored import Index, StoredArray, check_real
from lpact.datasets.arrays.files import (
    ArrayFile,
    check_scalar,
    choose_attribute,
    choose_key,
    one_number,
    unreadable,
)
from lpact.errors import RecordingError
from lpact.extras import require

METADATA = ("zarr.json", ".zarray", ".zgroup")

_CODECS = (
    "adler32 astype bitround blosc bytes bz2 crc32 crc32c delta fixedscaleoffset fletcher32 gzip jenkins_lookup3 lz4 "
    "lzma packbits pcodec quantize sharding_indexed shuffle transpose zfpy zlib zstd"
)
CODECS = frozenset(_CODECS.split())
"""Codecs for plain numbers; others, such as ``pickle``, are refused before anything is decoded."""

BLOSC_HEADER = 16
"""Bytes before the data of a Blosc chunk."""


class ZarrFolder(ArrayFile):
    """Arrays of a Zarr folder by path; the path is empty if the folder itself is an array."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if not path.is_dir() or not any((path / name).exists() for name in METADATA):
            raise RecordingError(
                "a Zarr folder has no metadata",
                where=str(path),
                got="a folder" if path.is_dir() else "a file",
                expected=f"a local folder with {', '.join(METADATA)}",
                remedy="name the folder of the array or group; unpack ZIP archives first",
            )

    def array(self, key: str | None) -> StoredArray:
        """Return an array by its path in the folder."""
        array, where = self._array(key)
        check_real(np.dtype(array.dtype), where)
        missing = array.nchunks - array.nchunks_initialized
        return StoredArray(
            where=where,
            shape=tuple(array.shape),
            dtype=np.dtype(array.dtype),
            read=lambda index: self._read(array, index),
            chunks=tuple(getattr(array, "shards", None) or array.chunks),
            unwritten=f"{missing} of {array.nchunks} chunks are not stored; they read as {array.fill_value}"
            if missing > 0
            else "",
        )

    def number(self, key: str) -> float:
        """Return a scalar array, or an attribute: ``data@rate``, or ``@rate`` for the folder's own."""
        path, _, attribute = key.partition("@")
        path = path.strip("/")
        where = f"{self.path}, '{key}'"
        if attribute:
            if path:
                choose_key(path, self._names(), self.path, self.noun)
            return choose_attribute(_attributes(self.path / path), attribute, where)
        array, _ = self._array(path)
        check_scalar(tuple(array.shape), np.dtype(array.dtype), where)
        return one_number(self._read(array, (slice(None),) * len(array.shape)), where)

    def _array(self, key: str | None) -> tuple[Any, str]:
        names = sorted(self._names())
        wanted = None if key is None else key.strip("/")
        itself = "" in names and not wanted
        name = "" if itself else choose_key(wanted, names, self.path, self.noun)
        where = self.where(name) if name else str(self.path)
        folder = self.path / name
        codecs = list(_codecs(_metadata(folder)))
        unknown = [codec for codec in codecs if codec not in CODECS]
        if unknown:
            raise RecordingError(
                "the codec of an array is not supported",
                where=where,
                got=f"the codec '{unknown[0]}'",
                expected="one of " + ", ".join(sorted(CODECS)),
                remedy="write the array again, for instance with the codec 'zstd'",
            )
        zarr = require("zarr", extra="zarr")
        version = 3 if (folder / "zarr.json").exists() else 2
        try:
            # Open the folder whose metadata were checked, without consolidated copies of them.
            array = zarr.open_array(str(folder), mode="r", zarr_format=version)
        except (OSError, ValueError, RuntimeError, KeyError, TypeError) as problem:
            raise unreadable(folder, problem) from None
        _check_blosc_chunks(folder)
        return array, where

    def _names(self) -> Iterator[str]:
        """Paths of all arrays, from their metadata."""
        for pattern in (".zarray", "zarr.json"):
            for file in self.path.rglob(pattern):
                if pattern == ".zarray" or _json(file).get("node_type") == "array":
                    yield file.parent.relative_to(self.path).as_posix().removeprefix(".")

    def _read(self, array: Any, index: Index) -> npt.NDArray[Any]:
        try:
            return np.asarray(array[index])
        except MemoryError:
            raise
        except Exception as problem:
            # Every codec has its own errors: EOFError, zlib.error, LZMAError …
            raise unreadable(self.path, problem) from None


def _json(file: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise unreadable(file, problem) from None
    if not isinstance(content, dict):
        raise unreadable(file, "metadata that are not a JSON object")
    return content


def _metadata(folder: Path) -> Mapping[str, Any]:
    return _json(next(folder / name for name in METADATA if (folder / name).exists()))


def _attributes(folder: Path) -> Mapping[str, Any]:
    if (folder / "zarr.json").exists():
        attributes = _json(folder / "zarr.json").get("attributes")
        return attributes if isinstance(attributes, dict) else {}
    return _json(folder / ".zattrs") if (folder / ".zattrs").exists() else {}


def _codecs(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Names of all codecs, including those within shards."""
    listed = [*(metadata.get("codecs") or ()), *(metadata.get("index_codecs") or ())]
    listed += [*(metadata.get("filters") or ()), metadata.get("compressor")]
    for codec in filter(None, listed):
        known = codec if isinstance(codec, Mapping) else {"name": codec}
        yield str(known.get("name", known.get("id"))).removeprefix("numcodecs.")
        yield from _codecs(known.get("configuration") or {})


def _check_blosc_chunks(folder: Path) -> None:
    """Raise if a chunk is shorter than its Blosc header says: the decoder would read beyond its end.

    Bytes 12 to 16 of a chunk are its size. Shards, and chunks that another codec wraps, have their own checks.
    """
    metadata = _metadata(folder)
    codecs = [*(metadata.get("codecs") or ()), metadata.get("compressor")]
    outermost = [codec for codec in codecs if isinstance(codec, Mapping)][-1:]
    if "blosc" not in _codecs({"codecs": outermost}):
        return
    for chunk in folder.rglob("*"):
        if chunk.is_file() and not chunk.name.startswith(".") and chunk.name not in METADATA:
            with chunk.open("rb") as stream:
                header = stream.read(BLOSC_HEADER)
            expected, found = int.from_bytes(header[12:16], "little"), chunk.stat().st_size
            if len(header) < BLOSC_HEADER or found < expected:
                name = chunk.relative_to(folder).as_posix()
                raise unreadable(folder, f"chunk {name} has {found} of {expected} bytes")
