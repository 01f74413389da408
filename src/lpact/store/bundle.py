r"""The result of one task as one piece of bytes: frames as Arrow IPC behind a header that vouches for all of them.

::

    lpact-task 1 <SHA-256 of the header>\n
    <header: JSON with the task's key, a mark, and name, offset, size and SHA-256 of every frame>\n
    <frames, one after the other>

A bundle is written in one step, so that a task has a result completely or not at all, on a disk as in an object store.
Single frames can be read without the others, and none is read that does not have its checksum. The mark says under
which registration a result was made; one that was made under none has no such field.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import polars as pl

from lpact.errors import TableError

MAGIC = "lpact-task 1"
_ARROW = b"ARROW1"
"""With these bytes a frame begins and ends."""

FIRST_READ = 16_384
"""Bytes that are read at once to get at the header; most headers are shorter."""

ReadRange = Callable[[int, int], bytes]
"""Reads ``n`` bytes from an offset; fewer at the end of the file."""


class BundleError(ValueError):
    """Bytes that are no bundle of the task, or not whole."""


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

    key: str
    frames: tuple[FrameEntry, ...]
    size: int
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
        raise BundleError("it does not begin as the result of a task does")
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
    """A header from its JSON: a checksum says that it is whole, not that it was ever written by `pack`."""
    try:
        values = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"its header is no JSON that can be read: {error}") from error
    if not isinstance(values, dict) or not isinstance(values.get("key"), str):
        raise BundleError("its header names no task")
    if values["key"] != key:
        raise BundleError(f"it is the result of another task, {values['key'][:80]}")
    mark = values.get("mark", "")
    if not isinstance(mark, str):
        raise BundleError("its mark is no text")
    listed = values.get("frames")
    if not isinstance(listed, list):
        raise BundleError("its header lists no frames")
    frames: list[FrameEntry] = []
    end = begin
    for entry in listed:
        frames.append(_entry(entry, begin, end))
        end += frames[-1].n_bytes
    if len({frame.name for frame in frames}) != len(frames):
        raise BundleError("two of its frames have one name")
    return Header(key, tuple(frames), end, mark)


def _entry(entry: object, begin: int, at: int) -> FrameEntry:
    """One frame as a header lists it; it lies at ``at``, where the one before ends."""
    match entry:
        case [str(name), int(offset), int(n_bytes), str(sha256)] if n_bytes > 0:
            if begin + offset == at:
                return FrameEntry(name, at, n_bytes, sha256)
    raise BundleError("its header lists a frame that cannot be one")


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
    """Raise `BundleError` unless the bytes are the whole bundle of task ``key``."""
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
        raise BundleError(f"its frame '{entry.name}' is none")
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
