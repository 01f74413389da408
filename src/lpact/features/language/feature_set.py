"""Features of one model, context and draw on disk: a Zarr group that is written word by word.

::

    <folder>/set.json           a description, the number of words written, and in the end the digest
             features.zarr/     the group, with the same description as attributes
                 hidden/        [layer, word, feature]; a shard holds all layers of some words, a chunk one layer
                 surprisal/     [word], bits
                 entropy/       [word], bits
             lock               while a process writes

``set.json`` is replaced after the arrays are written: words that it counts are complete, others are written again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from lpact.errors import FeatureError, RunError
from lpact.features.language._shards import write_chunk, write_shard
from lpact.features.language.extra import require
from lpact.features.language.folder import Checksums
from lpact.math.types import FloatArray
from lpact.store import FolderLock, atomic_write_bytes, storage_errors

FORMAT = 1
RECORD = "set.json"
ARRAYS = "features.zarr"
WRITING = "features cannot be written"
NAMES = ("hidden", "surprisal", "entropy")
MAKERS = ("device", "torch", "transformers")
"""A set is started again if one of these has changed."""
COMMIT_SECONDS = 1.0
"""Most work that a killed process loses; an interrupted one loses none."""
WRITERS = 4
"""Shards that are written at a time."""
SHARD_BYTES = 8 * 2**20


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
            what = f"there is no layer {layer}"
            expected = f"0 to {self.n_layers - 1}"
            raise FeatureError(what, where=str(self.path), got=layer, expected=expected)
        return self._read("hidden", layer)

    def check(self) -> None:
        """Raise `FeatureError` if files are missing or truncated; their content is checked on reading."""
        root = self.path / ARRAYS
        sizes = [place.stat().st_size for place in root.joinpath("hidden", "c", "0").glob("*/0")]
        header = root / "hidden" / "zarr.json"
        try:
            rows = json.loads(header.read_text(encoding="utf-8"))["chunk_grid"]["configuration"]
            expected = -(-self.n_words // int(rows["chunk_shape"][1]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _damaged(header, error) from error
        if len(set(sizes)) > 1 or len(sizes) != expected:
            problem = f"{len(sizes)} shards of {len(set(sizes))} sizes, not {expected} of one"
            raise _damaged(root / "hidden", ValueError(problem))

    def files(self, checksums: Checksums) -> dict[str, tuple[Path, str]]:
        """Files of the arrays by their names in the set, with place and SHA-256."""
        return array_files(self.path, checksums)

    def verify(self, checksums: Checksums) -> str:
        """Digest of the arrays; raises `FeatureError` if it differs from the recorded one.

        A set without a recorded digest (from an early version) gets one.
        """
        found = digest_of(self.files(checksums))
        if self.sha256 is None:
            self._add_digest(found)
        elif found != self.sha256:
            raise FeatureError(
                "stored features have changed since they were extracted",
                where=str(self.path),
                got=f"arrays with SHA-256 {found}",
                expected=f"arrays with SHA-256 {self.sha256}",
                remedy="remove the folder, and extract the features again",
            )
        return found

    def _add_digest(self, sha256: str) -> None:
        record = self.path / RECORD
        values = json.loads(record.read_text(encoding="utf-8")) | {"sha256": sha256}
        # In a read-only folder, the digest is computed each time.
        with suppress(RunError):
            atomic_write_bytes(record, json.dumps(values, indent=1, sort_keys=True).encode())

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
        try:
            # The digest covers the arrays' headers, not copies of them in the group's metadata.
            group = zarr.open_group(str(self.path / ARRAYS), mode="r", use_consolidated=False)
            array = group[name]
            values = array[index] if index else array[:]
            # A missing file reads as nan.
            if array.nchunks_initialized < array.nchunks or (index and np.isnan(values).any()):
                raise ValueError(f"files of the array '{name}' are missing")
        except Exception as error:  # Zarr and its codecs raise many types
            raise _damaged(self.path, error) from error
        return np.asarray(values, dtype=np.float64)


def open_set(path: Path) -> FeatureSet | None:
    """The set in a folder, or None; a damaged record is an error."""
    record = path / RECORD
    try:
        values = json.loads(record.read_text(encoding="utf-8"))
        if values["format"] != FORMAT:
            raise ValueError(f"format {values['format']}, not {FORMAT}")
        return FeatureSet(
            path,
            str(values["key"]),
            values["about"],
            int(values["n_words"]),
            int(values["n_layers"]),
            int(values["n_columns"]),
            int(values["n_done"]),
            str(values["sha256"]) if values.get("sha256") else None,
        )
    except FileNotFoundError:
        return None
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise _damaged(record, error) from error


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


def _damaged(path: Path, error: Exception) -> FeatureError:
    lines = str(error).strip().splitlines() or [""]
    return FeatureError(
        "stored features are damaged",
        where=str(path),
        got=f"{type(error).__name__}: {lines[0]}",
        remedy="remove the folder, and extract the features again",
    )


class FeatureSetWriter:
    """Appends words to a set, in order; use it as a context manager.

    Words that were not committed are written again. One process at a time may write a set.
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
        self.n_layers, self.n_words, self.n_columns = shape
        per_word = self.n_layers * self.n_columns * np.dtype(dtype).itemsize
        self._shard = int(min(max(8, SHARD_BYTES // per_word), 1024))
        self._pool = ThreadPoolExecutor(WRITERS, "lpact-shards")
        self._writing: list[Future[None]] = []
        self._committed, self._due, self._sound = time.monotonic(), False, True
        self._lock = FolderLock(path, busy="another process is extracting these features")
        try:
            found = open_set(path)
            self.n_done = 0
            same = found and all(found.about.get(what) == about.get(what) for what in MAKERS)
            kept = found is not None and found.key == key and bool(same)
            if found is not None and kept:
                self.n_done = found.n_done
            with storage_errors(path, WRITING):
                self._arrays = self._open(dtype) if kept else self._create(dtype)
            self._buffer = np.empty((self.n_layers, self._shard, self.n_columns), dtype=dtype)
            self._held = self.n_done % self._shard
            self._words = {n: np.full(self.n_words, np.nan) for n in ("surprisal", "entropy")}
            if self.n_done:
                self._recall()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._due and self._sound:
                self.commit()
        finally:
            self.close()

    def close(self) -> None:
        """Release the lock."""
        self._pool.shutdown(wait=True)
        self._lock.release(remove=True)

    def append(self, hidden: Any, surprisal: FloatArray, entropy: FloatArray) -> None:
        """Add the next words: ``hidden`` is [n_layers, n, n_columns], the others [n]."""
        with self._whole():
            self._append(hidden, surprisal, entropy)

    def _append(self, hidden: Any, surprisal: FloatArray, entropy: FloatArray) -> None:
        n_new = hidden.shape[1]
        self._due = True
        rows = slice(self.n_done, self.n_done + n_new)
        self._words["surprisal"][rows] = surprisal
        self._words["entropy"][rows] = entropy
        taken = 0
        while taken < n_new:
            room = min(self._shard - self._held, n_new - taken)
            part = hidden[:, taken : taken + room]
            taken += room
            self.n_done += room
            if room == self._shard:
                self._writing.append(self._pool.submit(self._write_shard, self.n_done, part))
                continue
            self._buffer[:, self._held : self._held + room] = part
            self._held += room
            if self._held == self._shard:
                self._flush()
                self._held = 0

    def commit(self) -> None:
        """Write the buffer, then the record."""
        with self._whole():
            if self._held:
                self._flush()
            while self._writing:
                self._writing.pop().result()
            for name, values in self._words.items():
                write_chunk(self.path / ARRAYS / name / "c" / "0", values)
            self._record()
        self._committed = time.monotonic()
        self._due = False

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Run a step; after a failure, nothing more is committed."""
        self._sound = False
        with storage_errors(self.path, WRITING):
            yield
        self._sound = True

    def commit_if_due(self) -> None:
        """Commit, unless the last commit is recent."""
        if time.monotonic() - self._committed >= COMMIT_SECONDS:
            self.commit()

    def _flush(self) -> None:
        """Write the buffered shard; words to come are nan."""
        self._buffer[:, self._held :] = np.nan
        self._write_shard(self.n_done, self._buffer)

    def _write_shard(self, n_done: int, part: Any) -> None:
        """Write the shard whose last word so far is word ``n_done − 1``."""
        number = (n_done - 1) // self._shard
        place = self.path / ARRAYS / "hidden" / "c" / "0" / str(number) / "0"
        write_shard(place, [np.ascontiguousarray(layer, self._buffer.dtype) for layer in part])

    def _create(self, dtype: str) -> Any:
        zarr = require("zarr")
        codecs = require("zarr.codecs")
        (self.path / RECORD).unlink(missing_ok=True)
        group = zarr.open_group(str(self.path / ARRAYS), mode="w", zarr_format=3)
        group.attrs.put(dict(self.about))
        checked = [codecs.Crc32cCodec()]
        shape = (self.n_layers, self.n_words, self.n_columns)
        group.create_array(
            "hidden",
            shape=shape,
            dtype=dtype,
            chunks=(1, self._shard, self.n_columns),
            shards=(self.n_layers, self._shard, self.n_columns),
            compressors=checked,
            fill_value=float("nan"),
            dimension_names=("layer", "word", "feature"),
        )
        for name in ("surprisal", "entropy"):
            group.create_array(
                name,
                shape=(self.n_words,),
                dtype="float64",
                chunks=(max(1, self.n_words),),
                compressors=checked,
                fill_value=float("nan"),
                dimension_names=("word",),
                config={"write_empty_chunks": True},
                attributes={"units": "bit"},
            )
        self.n_done = 0
        self._record()
        return group

    def _open(self, dtype: str) -> Any:
        zarr = require("zarr")
        for torn in (self.path / ARRAYS).rglob("*.partial"):
            torn.unlink()  # left by a killed process
        try:
            group = zarr.open_group(str(self.path / ARRAYS), mode="r+")
            hidden = group["hidden"]
            shape = (self.n_layers, self.n_words, self.n_columns)
            shards = (self.n_layers, self._shard, self.n_columns)
            if (hidden.shape, hidden.shards, str(hidden.dtype)) != (shape, shards, dtype):
                raise ValueError(f"an array {hidden.shape} of {hidden.dtype} in {hidden.shards}")
        except Exception as error:  # as in `FeatureSet._read`
            raise _damaged(self.path, error) from error
        return group

    def _recall(self) -> None:
        """Read back the unfinished shard and the values of finished words."""
        first = self.n_done - self._held
        try:
            for name, values in self._words.items():
                values[: self.n_done] = self._arrays[name][: self.n_done]
            if self._held:
                self._buffer[:, : self._held] = self._arrays["hidden"][:, first : self.n_done]
        except Exception as error:  # as in `FeatureSet._read`
            raise _damaged(self.path, error) from error

    def _record(self) -> None:
        values: dict[str, Any] = {
            "format": FORMAT,
            "key": self.key,
            "about": self.about,
            "n_words": self.n_words,
            "n_layers": self.n_layers,
            "n_columns": self.n_columns,
            "n_done": self.n_done,
        }
        if self.n_done == self.n_words:
            values["sha256"] = digest_of(array_files(self.path, self._checksums))
        atomic_write_bytes(
            self.path / RECORD, json.dumps(values, indent=1, sort_keys=True).encode()
        )
