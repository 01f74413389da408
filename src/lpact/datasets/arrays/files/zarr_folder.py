"""Zarr groups and arrays (format 2 and 3) in local folders."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpact.datasets._files.stored import Index, StoredArray
from lpact.datasets.arrays.files.stored import (
    ArrayFile,
    check_one_number,
    check_real,
    one_number,
    the_key,
    torn,
)
from lpact.errors import RecordingError, did_you_mean
from lpact.extras import require

_TROUBLE = (OSError, ValueError, RuntimeError, KeyError, TypeError)
METADATA = ("zarr.json", ".zarray", ".zgroup")

CODECS = frozenset(
    (
        "adler32",
        "astype",
        "bitround",
        "blosc",
        "bytes",
        "bz2",
        "crc32",
        "crc32c",
        "delta",
        "fixedscaleoffset",
        "fletcher32",
        "gzip",
        "jenkins_lookup3",
        "lz4",
        "lzma",
        "packbits",
        "pcodec",
        "quantize",
        "sharding_indexed",
        "shuffle",
        "transpose",
        "zfpy",
        "zlib",
        "zstd",
    )
)
"""Ways of storing numbers; others (``pickle`` above all) are refused before anything is decoded."""

BLOSC_HEADER = 16
"""Bytes before the data of a Blosc chunk."""

ITSELF = ""
"""Name of a folder that is itself an array."""


class ZarrFolder(ArrayFile):
    """Arrays of a Zarr folder, by path."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if not path.is_dir() or not any((path / name).exists() for name in METADATA):
            raise RecordingError(
                "a Zarr folder has no metadata",
                where=str(path),
                got="a folder" if path.is_dir() else "a file",
                expected="a local folder with " + ", ".join(METADATA[:2]) + f" or {METADATA[2]}",
                remedy="name the folder that holds the array or group; ZIP archives must be unpacked",
            )

    def array(self, key: str | None) -> StoredArray:
        """Return an array by its path in the folder."""
        array, where = self._array(key)
        check_real(np.dtype(array.dtype), where)
        shards = getattr(array, "shards", None)
        return StoredArray(
            where=where,
            shape=tuple(array.shape),
            dtype=np.dtype(array.dtype),
            read=lambda index: self._read(array, index),
            chunks=tuple(shards or array.chunks),
            unwritten=_unwritten(array),
        )

    def number(self, key: str) -> float:
        """Return a scalar array, or an attribute, as in ``data@rate`` (``@rate`` for the folder's own)."""
        path, _, attribute = key.partition("@")
        where = f"{self.path}, '{key}'"
        if not attribute:
            array, _ = self._array(path)
            check_one_number(tuple(array.shape), np.dtype(array.dtype), where)
            return one_number(self._read(array, (slice(None),) * len(array.shape)), where)
        folder = self.path / path.strip("/")
        if path.strip("/"):
            the_key(path.strip("/"), self._names(), self.path, "array")
        attributes = _attributes(folder)
        if attribute not in attributes:
            raise RecordingError(
                f"there is no attribute '{attribute}'",
                where=where,
                got="attributes " + (", ".join(attributes) or "none"),
                expected=f"the attribute '{attribute}'",
                remedy=did_you_mean(attribute, attributes),
            )
        return one_number(attributes[attribute], where)

    def _array(self, key: str | None) -> tuple[Any, str]:
        names = sorted(self._names())
        wanted = None if key is None else key.strip("/")
        itself = ITSELF in names and not wanted
        name = ITSELF if itself else the_key(wanted, names, self.path, "array")
        where = f"{self.path}, array '{name}'" if name else str(self.path)
        _check_codecs(self.path / name, where)
        zarr = require("zarr", extra="zarr")
        folder = self.path / name
        try:
            # The array's own metadata, which were just checked, and no copy of them elsewhere.
            array = zarr.open_array(str(folder), mode="r", zarr_format=_format(folder))
        except _TROUBLE as problem:
            raise torn(folder, problem) from None
        _check_blosc_chunks(folder)
        return array, where

    def _names(self) -> Iterator[str]:
        """Paths of all arrays, from their metadata files."""
        for pattern in (".zarray", "zarr.json"):
            for file in self.path.rglob(pattern):
                if pattern == ".zarray" or _json(file).get("node_type") == "array":
                    relative = file.parent.relative_to(self.path).as_posix()
                    yield ITSELF if relative == "." else relative

    def _read(self, array: Any, index: Index) -> npt.NDArray[Any]:
        try:
            return np.asarray(array[index])
        except MemoryError:
            raise
        except Exception as problem:
            # Every codec has errors of its own: EOFError, zlib.error, LZMAError …
            raise torn(self.path, problem) from None


def _json(file: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise torn(file, problem) from None
    if not isinstance(content, dict):
        raise torn(file, "metadata that are not a JSON object")
    return content


def _format(folder: Path) -> int:
    return 3 if (folder / "zarr.json").exists() else 2


def _attributes(folder: Path) -> Mapping[str, Any]:
    """Attributes of a group or array, as its metadata hold them."""
    if _format(folder) == 3:
        attributes = _json(folder / "zarr.json").get("attributes")
        return attributes if isinstance(attributes, dict) else {}
    return _json(folder / ".zattrs") if (folder / ".zattrs").exists() else {}


def _check_codecs(folder: Path, where: str) -> None:
    """Raise unless every codec of an array stores plain numbers."""
    metadata = next(folder / name for name in METADATA if (folder / name).exists())
    for codec in _codecs(_json(metadata)):
        if codec.removeprefix("numcodecs.") not in CODECS:
            raise RecordingError(
                "an array is stored in a way that is not read",
                where=f"{where}, {metadata.name}",
                got=f"the codec '{codec}'",
                expected="a codec for numbers: " + ", ".join(sorted(CODECS)),
                remedy="write the array again as numbers, for instance with the codec 'zstd'",
            )


def _codecs(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Names of all codecs, those within shards included."""
    listed = [*(metadata.get("codecs") or ()), *(metadata.get("index_codecs") or ())]
    listed += [*(metadata.get("filters") or ()), metadata.get("compressor")]
    for codec in listed:
        if isinstance(codec, Mapping):
            yield str(codec.get("name", codec.get("id")))
            yield from _codecs(codec.get("configuration") or {})
        elif codec is not None:
            yield str(codec)


def _check_blosc_chunks(folder: Path) -> None:
    """Raise where a chunk is shorter than its Blosc header says: the decoder would read on in whatever lies behind it.

    Bytes 12 to 16 of a chunk are its size. Shards, and chunks that another codec wraps, have checks of their own.
    """
    metadata = _json(next(folder / name for name in METADATA if (folder / name).exists()))
    codecs = [*(metadata.get("codecs") or ()), metadata.get("compressor")]
    outermost = [codec for codec in codecs if isinstance(codec, Mapping)][-1:]
    names = [str(codec.get("id", codec.get("name"))) for codec in outermost]
    if not {"blosc", "numcodecs.blosc"} & set(names):
        return
    for chunk in folder.rglob("*"):
        if chunk.is_file() and not chunk.name.startswith(".") and chunk.name not in METADATA:
            with chunk.open("rb") as stream:
                header = stream.read(BLOSC_HEADER)
            says = int.from_bytes(header[12:16], "little")
            found = chunk.stat().st_size
            if len(header) < BLOSC_HEADER or found < says:
                problem = (
                    f"chunk {chunk.relative_to(folder).as_posix()} has {found} of {says} bytes"
                )
                raise torn(folder, ValueError(problem))


def _unwritten(array: Any) -> str:
    """Tell of chunks that are not in the folder: Zarr reads them as the fill value."""
    missing = array.nchunks - array.nchunks_initialized
    text = f"{missing} of {array.nchunks} chunks are not stored; they read as {array.fill_value}"
    return text if missing > 0 else ""
