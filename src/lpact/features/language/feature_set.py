"""Features of one model, context and draw on disk: a Zarr group that is written word by word.

::

    <folder>/set.json           a description, the number of words written, and in the end the digest
             features.zarr/     the group, with the same description as attributes
                 hidden/        [layer, word, feature]; a chunk is one layer of some words
                 surprisal/     [word], bits
                 entropy/       [word], bits
             lock               while a process writes

``set.json`` is replaced after the arrays are written, about every second: words that it counts are complete, others are
written again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from lpact.errors import FeatureError, LPactError
from lpact.features.language.model_files import Checksums, require
from lpact.math.types import FloatArray
from lpact.store import FolderLock, atomic_write_bytes, storage_errors

FORMAT = 1
RECORD = "set.json"
ARRAYS = "features.zarr"
WRITING = "features cannot be written"
NAMES = ("hidden", "surprisal", "entropy")
MAKERS = ("device", "torch", "transformers")
"""A set is started again if one of these has changed."""
CHUNK_BYTES = 4 * 2**20
COMMIT_S = 1.0
"""Words of this many seconds are written together: a block alone would rewrite the chunk that it shares with others."""
COMMIT_BYTES = 64 * 2**20


@dataclass(frozen=True)
class FeatureSet:
    """A set, finished or not; ``sha256`` is the digest of its arrays as they were written."""

    path: Path
    key: str
    about: Mapping[str, Any]
    n_words: int
    n_layers: int
    n_columns: int
    n_done: int
    sha256: str | None = None

    @property
    def complete(self) -> bool:
        """Whether all words are written."""
        return self.n_done == self.n_words

    def hidden(self, layer: int) -> FloatArray:
        """Hidden states of a layer, [n_words, n_columns]; layer 0 is the input embedding."""
        if not 0 <= layer < self.n_layers:
            raise FeatureError(f"there is no layer {layer}", where=str(self.path), expected=f"0 to {self.n_layers - 1}")
        return self._read("hidden", layer)

    def verify(self, checksums: Checksums) -> str:
        """Digest of the arrays; raises `FeatureError` if it differs from the recorded one."""
        found = digest_of(array_files(self.path, checksums))
        if self.sha256 not in (None, found):
            raise FeatureError(
                "stored features have changed since they were extracted",
                where=str(self.path),
                got=f"arrays with SHA-256 {found}",
                expected=f"arrays with SHA-256 {self.sha256}",
                remedy="remove the folder, and extract the features again",
            )
        return found

    def surprisal(self) -> FloatArray:
        """Surprisal of each word in bits, [n_words]; nan where the model defines none."""
        return self._read("surprisal")

    def entropy(self) -> FloatArray:
        """Entropy of the next token after each word in bits, [n_words]; nan where the model defines none."""
        return self._read("entropy")

    def _read(self, name: str, *index: int) -> FloatArray:
        zarr = require("zarr")
        if not self.complete:
            raise FeatureError(
                "the features are not complete",
                where=str(self.path),
                got=f"{self.n_done} of {self.n_words} words",
                remedy="run the extraction again: it resumes",
            )
        with _damage(self.path):
            # The digest covers the arrays' headers, not copies of them in the group's metadata.
            group = zarr.open_group(str(self.path / ARRAYS), mode="r", use_consolidated=False)
            array = group[name]
            values = array[index] if index else array[:]
            # A missing file reads as nan.
            if array.nchunks_initialized < array.nchunks or (index and np.isnan(values).any()):
                raise ValueError(f"files of the array '{name}' are missing")
        return np.asarray(values, dtype=np.float64)


def open_set(path: Path) -> FeatureSet | None:
    """The set in a folder, or None; a damaged record is an error."""
    record = path / RECORD
    if not record.exists():
        return None
    with _damage(record):
        values = json.loads(record.read_text(encoding="utf-8"))
        if values["format"] != FORMAT:
            raise ValueError(f"format {values['format']}, not {FORMAT}")
        sizes = {n: int(values[n]) for n in ("n_words", "n_layers", "n_columns", "n_done")}
        key, sha256 = str(values["key"]), values.get("sha256")
        return FeatureSet(path, key, values["about"], sha256=sha256, **sizes)


def array_files(path: Path, checksums: Checksums) -> dict[str, tuple[Path, str]]:
    """Files of a set's arrays, headers included, by their names in the set, with place and SHA-256."""
    places = {
        place.relative_to(path).as_posix(): place
        for name in NAMES
        for place in (path / ARRAYS / name).rglob("*")
        if place.is_file() and place.suffix != ".partial"
    }
    with storage_errors(path, "features cannot be read"):
        sums = checksums.of(list(places.values()))
    return {name: (place, sums[place]) for name, place in sorted(places.items())}


def digest_of(files: Mapping[str, tuple[Path, str]]) -> str:
    """SHA-256 of a set's arrays: of the names and checksums of their files."""
    listed = json.dumps([[name, sha256] for name, (_, sha256) in sorted(files.items())])
    return hashlib.sha256(listed.encode()).hexdigest()


@contextmanager
def _damage(path: Path, errors: type[Exception] = Exception) -> Iterator[None]:
    """Report errors, of which Zarr and its codecs raise many types, as damage to the set."""
    try:
        yield
    except errors as error:
        raise FeatureError(
            "stored features are damaged",
            where=str(path),
            got=f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}",
            remedy="remove the folder, and extract the features again",
        ) from error


class FeatureSetWriter:
    """Appends words to a set, in order; use it as a context manager.

    Words that the record does not count are written again. One process at a time may write a set.
    """

    def __init__(
        self,
        path: Path,
        *,
        key: str,
        about: Mapping[str, Any],
        shape: tuple[int, int, int],
        dtype: str,
        checksums: Checksums | None = None,
    ) -> None:
        self._checksums = checksums or Checksums(path.parent)
        self.path, self.key, self.about = path, key, dict(about)
        self.shape, self.n_done = shape, 0
        self._waiting: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        self._committed = time.monotonic()
        self._lock = FolderLock(path, busy="another process is extracting these features")
        try:
            found = open_set(path)
            same = found and all(found.about.get(what) == about.get(what) for what in MAKERS)
            if found is not None and same and found.key == key:
                self.n_done = found.n_done
                group = self._open(dtype)
            else:
                with storage_errors(path, WRITING):
                    group = self._create(dtype)
            # Chunks of nan alone are written too: a missing file is damage.
            with require("zarr").config.set({"array.write_empty_chunks": True}):
                self._arrays = {name: group[name] for name in NAMES}
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None or not issubclass(kind, LPactError):  # not after a failed write
                self._commit()
        finally:
            self.close()

    def close(self) -> None:
        """Release the lock."""
        self._lock.release(remove=True)

    def append(self, hidden: Any, surprisal: FloatArray, entropy: FloatArray) -> None:
        """Add the next words: ``hidden`` is [n_layers, n, n_columns], the others [n]."""
        self._waiting.append((hidden, surprisal, entropy))
        n_bytes = sum(own.nbytes for own, *_ in self._waiting)
        if time.monotonic() - self._committed >= COMMIT_S or n_bytes >= COMMIT_BYTES:
            self._commit()

    def _commit(self) -> None:
        """Write the words that wait."""
        if not self._waiting:
            return
        hidden, surprisal, entropy = zip(*self._waiting, strict=True)
        self._waiting.clear()
        stop = self.n_done + sum(map(len, surprisal))
        with storage_errors(self.path, WRITING):
            with _damage(self.path, ValueError):  # to earlier words in the same chunk
                self._arrays["hidden"][:, self.n_done : stop] = np.concatenate(hidden, axis=1)
                self._arrays["surprisal"][self.n_done : stop] = np.concatenate(surprisal)
                self._arrays["entropy"][self.n_done : stop] = np.concatenate(entropy)
            self.n_done = stop
            self._record()
        self._committed = time.monotonic()

    def _create(self, dtype: str) -> Any:
        _, n_words, n_columns = self.shape
        (self.path / RECORD).unlink(missing_ok=True)
        root = str(self.path / ARRAYS)
        group = require("zarr").open_group(root, mode="w", zarr_format=3)
        group.attrs.put(self.about)
        codecs = [require("zarr.codecs").Crc32cCodec()]
        options: dict[str, Any] = {"compressors": codecs, "fill_value": float("nan")}
        n_rows = min(max(8, CHUNK_BYTES // (n_columns * np.dtype(dtype).itemsize)), 1024)
        group.create_array(
            "hidden",
            shape=self.shape,
            dtype=dtype,
            chunks=(1, n_rows, n_columns),
            dimension_names=("layer", "word", "feature"),
            **options,
        )
        for name in ("surprisal", "entropy"):
            group.create_array(
                name,
                shape=(n_words,),
                dtype="float64",
                chunks=(max(1, n_words),),
                dimension_names=("word",),
                attributes={"units": "bit"},
                **options,
            )
        self._record()
        return group

    def _open(self, dtype: str) -> Any:
        for partial in (self.path / ARRAYS).rglob("*.partial"):
            partial.unlink()  # left by a killed process
        with _damage(self.path):
            group = require("zarr").open_group(str(self.path / ARRAYS), mode="r+")
            hidden = group["hidden"]
            if (hidden.shape, str(hidden.dtype)) != (self.shape, dtype):
                raise ValueError(f"an array {hidden.shape} of {hidden.dtype}")
        return group

    def _record(self) -> None:
        sizes = dict(zip(("n_layers", "n_words", "n_columns"), self.shape, strict=True))
        values: dict[str, Any] = {"format": FORMAT, "key": self.key, "about": self.about}
        values |= sizes | {"n_done": self.n_done}
        if self.n_done == sizes["n_words"]:
            values["sha256"] = digest_of(array_files(self.path, self._checksums))
        record = json.dumps(values, indent=1, sort_keys=True).encode()
        atomic_write_bytes(self.path / RECORD, record)
