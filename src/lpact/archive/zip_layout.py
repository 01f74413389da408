"""The layout of a zip file, looked at before anything in it is read.

Names, kinds, flags and sizes of all entries are checked together, and so is where each lies in the file: entries that
share bytes are how a small file unpacks to an enormous one.
"""

from __future__ import annotations

import os
import stat
import struct
import unicodedata
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lpact.errors import RunError

MOST_ENTRIES = 100_000
MOST_DIRECTORY_BYTES = 64 * 2**20
LONGEST_NAME = 1000
MOST_BYTES = 256 * 2**30
"""Bytes that an archive may unpack to."""
MOST_RATIO = 200
"""Times that an entry may grow when it is unpacked, once it is larger than `SMALL`."""
SMALL = 16 * 2**20

_END, _END_SIZE = b"PK\x05\x06", 22
_END64, _END64_SIZE = b"PK\x06\x06", 56
_LOCATOR64, _LOCATOR64_SIZE = b"PK\x06\x07", 20
_EXTRA64, _IN_EXTRA = 1, 0xFFFFFFFF
_LOCAL, _LOCAL_SIZE = b"PK\x03\x04", 30
_SIZES_BEHIND = 0x8
_ENCRYPTED, _PATCHED, _STRONG, _MASKED = 0x1, 0x20, 0x40, 0x2000
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_MOST_NAMED = 5


def refuse(path: Path | str, faults: Iterable[str]) -> None:
    """Refuse an archive, naming its faults, if there are any."""
    found = list(faults)
    if found:
        more = len(found) - _MOST_NAMED
        raise RunError(
            "the archive is refused: it is not one that lpact wrote, or it was changed",
            where=str(path),
            got="; ".join(found[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else ""),
            expected="an archive as `lpact export` writes it",
            remedy="get the archive again from its source; nothing was unpacked",
        )


@dataclass(frozen=True)
class End:
    """What the end of a zip file says: where the directory begins, and how many entries it has."""

    start: int
    n_entries: int


def check_end(handle: BinaryIO, path: Path) -> End:
    """Check the end of a zip file before its directory is read.

    The file must be nothing but a zip file: no bytes before, between or behind, and no comment.
    """
    size = handle.seek(0, os.SEEK_END)
    refuse(path, ["it is shorter than an empty zip file"] if size < _END_SIZE else [])
    handle.seek(size - _END_SIZE)
    end = handle.read(_END_SIZE)
    refuse(path, [] if end[:4] == _END else ["it does not end as a zip file without comment does"])
    disk, first_disk, here, n_entries, n_bytes, start, comment = struct.unpack("<4H2LH", end[4:])
    at = size - _END_SIZE
    if 0xFFFF in (here, n_entries) or 0xFFFFFFFF in (n_bytes, start):
        at -= _LOCATOR64_SIZE + _END64_SIZE
        refuse(path, ["its end is damaged"] if at < 0 else [])
        handle.seek(at)
        end64, locator = handle.read(_END64_SIZE), handle.read(_LOCATOR64_SIZE)
        _check_end64(end64, locator, at, path)
        disk, first_disk, here, n_entries, n_bytes, start = struct.unpack("<2L4Q", end64[16:])
    faults = []
    if disk or first_disk or here != n_entries or comment:
        faults.append("it has several parts, or a comment")
    if n_entries > MOST_ENTRIES or n_bytes > MOST_DIRECTORY_BYTES:
        faults.append(f"it has too many entries ({n_entries}; at most {MOST_ENTRIES})")
    if start + n_bytes != at:
        faults.append("there are bytes before, between or behind its parts")
    refuse(path, faults)
    return End(int(start), int(n_entries))


def _check_end64(end64: bytes, locator: bytes, at: int, path: Path) -> None:
    """The longer end that large archives have, and what says where it lies."""
    mark, disk, place, n_disks = struct.unpack("<4sLQL", locator)
    length = struct.unpack("<Q", end64[4:12])[0]
    right = (mark, disk, place, n_disks) == (_LOCATOR64, 0, at, 1)
    if end64[:4] != _END64 or length != _END64_SIZE - 12 or not right:
        refuse(path, ["its end is damaged"])


def check_entries(entries: list[zipfile.ZipInfo], path: Path) -> list[zipfile.ZipInfo]:
    """Refuse names, kinds, flags and sizes that no archive of ours has; return the files among the entries."""
    faults = [f"{entry.orig_filename!r} {fault}" for entry in entries for fault in _faults(entry)]
    refuse(path, faults)
    refuse(path, _collisions([entry.filename for entry in entries]))
    files = [entry for entry in entries if not entry.is_dir()]
    total = sum(entry.file_size for entry in files)
    packed = max(1, path.stat().st_size)
    if total > MOST_BYTES:
        faults.append(f"it says to unpack to {total} bytes; at most {MOST_BYTES} are unpacked")
    if total > SMALL and total / packed > MOST_RATIO:
        faults.append(f"it says to unpack to {total // packed} times its size")
    refuse(path, faults)
    return files


def _faults(entry: zipfile.ZipInfo) -> Iterator[str]:
    yield from name_faults(entry.orig_filename)
    mode = entry.external_attr >> 16
    kind = stat.S_IFMT(mode)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR) or (kind == stat.S_IFDIR) != (
        entry.is_dir() and kind != 0
    ):
        yield "is a link or a special file"
    if entry.flag_bits & (_ENCRYPTED | _PATCHED | _STRONG | _MASKED):
        yield "is encrypted or patched"
    if entry.flag_bits & _SIZES_BEHIND:
        yield "has its sizes behind its content, which is not read here"
    if entry.compress_type not in _METHODS:
        yield f"is packed in a way that is not read here (method {entry.compress_type})"
    if entry.compress_type == zipfile.ZIP_STORED and entry.compress_size != entry.file_size:
        yield "has two sizes"
    if entry.is_dir() and entry.file_size:
        yield "is a folder with content"
    if entry.file_size > SMALL and entry.file_size > MOST_RATIO * entry.compress_size:
        yield f"says to unpack to more than {MOST_RATIO} times its size"


def name_faults(name: str) -> Iterator[str]:
    """What is wrong with the name of an entry."""
    parts = name.removesuffix("/").split("/")
    if name.startswith("/") or "\\" in name or ":" in name:
        yield "is an absolute path, or holds a backslash or a colon"
    if any(part in ("", ".", "..") for part in parts):
        yield "leads out of the folder, or has an empty part"
    if any(part != part.strip() or part.endswith(".") for part in parts if part not in (".", "..")):
        yield "has a part that begins or ends with a space, or ends with a dot"
    if any(unicodedata.category(letter)[0] == "C" for letter in name):
        yield "holds control characters"
    if len(name.encode(errors="replace")) > LONGEST_NAME:
        yield "is too long"


def _collisions(names: list[str]) -> Iterator[str]:
    """Names that are the same on some file system, and files that are also folders of others."""
    seen: dict[str, str] = {}
    folders: set[str] = set()
    for name in names:
        folded = _folded(name.removesuffix("/"))
        if folded in seen:
            yield f"{name!r} is there twice, or differs from {seen[folded]!r} only in case"
        seen[folded] = name
        parts = folded.split("/")
        folders |= {"/".join(parts[:i]) for i in range(1, len(parts))}
    for name in names:
        if not name.endswith("/") and _folded(name) in folders:
            yield f"{name!r} is a file and a folder"


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def check_places(handle: BinaryIO, entries: list[zipfile.ZipInfo], start: int, path: Path) -> None:
    """Refuse entries whose own headers contradict the directory, that share bytes, or leave some between them."""
    spans = []
    for entry in entries:
        handle.seek(entry.header_offset)
        header = handle.read(_LOCAL_SIZE)
        if len(header) < _LOCAL_SIZE or header[:4] != _LOCAL:
            refuse(path, [f"{entry.filename!r} is not where the directory says"])
        n_name, n_extra = struct.unpack("<2H", header[26:30])
        name, extra = handle.read(n_name), handle.read(n_extra)
        encoding = "utf-8" if entry.flag_bits & 0x800 else "cp437"
        if name != entry.orig_filename.encode(encoding, errors="replace"):
            refuse(path, [f"{entry.filename!r} has two names"])
        if _own_facts(header, extra) != (
            entry.flag_bits,
            entry.compress_type,
            entry.CRC,
            entry.compress_size,
            entry.file_size,
        ):
            refuse(path, [f"{entry.filename!r} has two checksums, sizes or kinds of packing"])
        end = entry.header_offset + _LOCAL_SIZE + n_name + n_extra + entry.compress_size
        spans.append((entry.header_offset, end, entry.filename))
    spans.sort()
    before = [(0, 0, "the beginning"), *spans]
    behind = [*spans, (start, start, "the directory")]
    faults = []
    for (_, end, one), (begin, _, other) in zip(before, behind, strict=True):
        if end > begin:
            faults.append(f"{one!r} and {other!r} share bytes")
        elif end < begin:
            faults.append(f"there are {begin - end} bytes between {one!r} and {other!r}")
    refuse(path, faults)


def _own_facts(header: bytes, extra: bytes) -> tuple[int, ...]:
    """Flags, method, checksum and sizes (packed, unpacked) as the header before an entry's content has them."""
    flags, method, checksum, packed, unpacked = struct.unpack("<2x2H4x3L", header[4:26])
    large = iter(_large_sizes(extra))
    if unpacked == _IN_EXTRA:
        unpacked = next(large, -1)
    if packed == _IN_EXTRA:
        packed = next(large, -1)
    return flags, method, checksum, packed, unpacked


def _large_sizes(extra: bytes) -> tuple[int, ...]:
    """Sizes of an entry of four gigabytes or more, which stand in a field of their own."""
    while len(extra) >= 4:
        kind, length = struct.unpack("<2H", extra[:4])
        if kind == _EXTRA64:
            own = extra[4 : 4 + length]
            return struct.unpack(f"<{len(own) // 8}Q", own[: len(own) // 8 * 8])
        extra = extra[4 + length :]
    return ()
