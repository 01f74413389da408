r"""The result of one task in one file: frames as Arrow IPC behind a header with their checksums.

::

    lpact-task 1 <SHA-256 of the header>\n
    <header: JSON with the task's key, a mark, and name, offset, size and SHA-256 of every frame>\n
    <frames, one after the other>

A bundle is written in one step, so that a task has a complete result or none, on a disk as in an object store. Single
frames can be read without the others, and only if their checksum fits. The mark is the digest of the registration under
which a result was made.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import polars as pl
from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError

from lpact.errors import TableError

MAGIC = "lpact-task 1"
_ARROW = b"ARROW1"
"""First and last bytes of a frame."""

FIRST_READ = 16_384
"""Bytes that are read first; most headers are shorter."""

ReadRange = Callable[[int, int], bytes]
"""Reads ``n`` bytes from an offset; fewer at the end of the file."""


class BundleError(ValueError):
    """Bytes that are no bundle of the task, or not complete."""


@dataclass(frozen=True)
class FrameEntry:
    """One frame in a bundle."""

    name: str
    offset: int
    n_bytes: int
    sha256: str


@dataclass(frozen=True)
class Header:
    """What a bundle holds; ``size`` is that of the whole."""

    frames: tuple[FrameEntry, ...]
    size: int
    mark: str = ""


class _Json(BaseModel):
    """The JSON of a header."""

    model_config = ConfigDict(strict=True, extra="forbid")

    key: str
    frames: list[tuple[str, int, PositiveInt, str]]
    mark: str = ""


def pack(key: str, frames: Mapping[str, pl.DataFrame], mark: str = "") -> bytes:
    """The bundle of a task's frames."""
    parts = {name: _to_ipc(name, frames[name]) for name in sorted(frames)}
    entries, offset = [], 0
    for name, content in parts.items():
        entries.append([name, offset, len(content), _sha256(content)])
        offset += len(content)
    values = {"key": key, "frames": entries} | ({"mark": mark} if mark else {})
    header = json.dumps(values, separators=(",", ":")).encode()
    first = f"{MAGIC} {_sha256(header)}\n".encode()
    return b"".join([first, header, b"\n", *parts.values()])


def read_header(read: ReadRange, key: str) -> Header:
    """The checked header of the bundle of task ``key``."""
    start = read(0, FIRST_READ)
    first, newline, rest = start.partition(b"\n")
    words = first.decode("ascii", "replace").rsplit(" ", 1)
    if not newline or len(words) != 2 or words[0] != MAGIC:
        raise BundleError("it does not begin like the result of a task")
    body, newline, _ = rest.partition(b"\n")
    while not newline:
        more = read(len(start), len(start))
        if not more:
            raise BundleError("its header is cut off")
        start += more
        body, newline, _ = start[len(first) + 1 :].partition(b"\n")
    if _sha256(body) != words[1]:
        raise BundleError("its header does not have its checksum")
    return _header(body, key, len(first) + len(body) + 2)


def _header(body: bytes, key: str, begin: int) -> Header:
    """A header from its JSON: a checksum shows that it is complete, not that `pack` wrote it."""
    try:
        values = _Json.model_validate_json(body)
    except ValidationError as error:
        raise BundleError(f"its header is not valid: {error.errors()[0]['msg']}") from None
    if values.key != key:
        raise BundleError(f"it is the result of another task, {values.key[:80]}")
    frames, end = [], begin
    for name, offset, n_bytes, sha256 in values.frames:
        if begin + offset != end:
            raise BundleError("its frames do not lie one after the other")
        frames.append(FrameEntry(name, end, n_bytes, sha256))
        end += n_bytes
    if len({frame.name for frame in frames}) != len(frames):
        raise BundleError("two of its frames have the same name")
    return Header(tuple(frames), end, values.mark)


def read_frames(
    read: ReadRange, key: str, names: Collection[str] | None = None
) -> dict[str, pl.DataFrame]:
    """Frames of the bundle of task ``key``: all, or those of ``names`` that it has."""
    frames = {}
    for entry in read_header(read, key).frames:
        if names is None or entry.name in names:
            frames[entry.name] = pl.read_ipc(io.BytesIO(_checked(read, entry)))
    return frames


def unpack(content: bytes, key: str) -> dict[str, pl.DataFrame]:
    """All frames of the bundle of task ``key``, from its bytes."""
    return read_frames(lambda start, n: content[start : start + n], key)


def check(read: ReadRange, key: str, size: int) -> None:
    """Raise `BundleError` unless the bytes are the complete bundle of task ``key``."""
    header = read_header(read, key)
    if header.size != size:
        raise BundleError(f"it has {size} bytes in place of {header.size}")
    for entry in header.frames:
        _checked(read, entry)


def _checked(read: ReadRange, entry: FrameEntry) -> bytes:
    content = read(entry.offset, entry.n_bytes)
    if _sha256(content) != entry.sha256:
        raise BundleError(f"its frame '{entry.name}' does not have its checksum")
    if not (content.startswith(_ARROW) and content.endswith(_ARROW)):
        raise BundleError(f"its frame '{entry.name}' is not Arrow")
    return content


def _to_ipc(name: str, frame: pl.DataFrame) -> bytes:
    for column, dtype in frame.schema.items():
        if dtype == pl.Object:
            raise TableError(
                "a task can keep plain columns only",
                where=f"frame '{name}', column '{column}'",
                got="Python objects",
                expected="numbers, text, booleans or lists of them",
                remedy="build the frame with lpact.store.frame",
            )
    buffer = io.BytesIO()
    frame.write_ipc(buffer, compression="zstd")
    return buffer.getvalue()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
