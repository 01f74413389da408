"""Archives of a download: unpacked member by member, none of them outside of the folder."""

from __future__ import annotations

import lzma
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from lpact.datasets.fetch.places import MARKS, check_space, on_disk, place_in
from lpact.errors import FetchError

_PIECE_BYTES = 2**20
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA}
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
"""What reading an archive may raise. What bzip2 does not understand is an `OSError` without a number."""


def unpack(archive: Path, root: Path) -> int:
    """Unpack a ZIP file into ``root`` and return the number of files.

    All members are looked at before the first is written. A member that is there already with the same content is left
    alone, so that an interrupted call can be repeated.
    """
    try:
        with on_disk(archive):
            return _unpack(archive, root)
    except _DAMAGE as error:
        raise _damaged(archive, error) from error


def _unpack(archive: Path, root: Path) -> int:
    with zipfile.ZipFile(archive) as opened:
        members = [m for m in opened.infolist() if not m.is_dir()]
        places = [place_in(root, m.filename, where=str(archive)) for m in members]
        for member in members:
            _check(member, archive)
        _check_places(places, archive)
        missing = [(m, p) for m, p in zip(members, places, strict=True) if not _same(m, p)]
        check_space(root, sum(m.file_size for m, _ in missing))
        for member, place in missing:
            try:
                _write(opened, member, place)
            except OSError as error:
                if error.errno is None:
                    raise _damaged(archive, error) from error
                raise
    return len(members)


def _damaged(archive: Path, error: Exception) -> FetchError:
    return FetchError(
        "an archive cannot be unpacked",
        where=str(archive),
        got=str(error),
        expected="a ZIP file",
        remedy="remove it and fetch it again, or unpack it by hand",
    )


def _check(member: zipfile.ZipInfo, archive: Path) -> None:
    found = ""
    if stat.S_ISLNK(member.external_attr >> 16):
        found = "a link"
    elif member.flag_bits & 1:
        found = "an encrypted file"
    elif member.compress_type not in _METHODS:
        found = f"a file compressed by the unknown method {member.compress_type}"
    if found:
        raise FetchError(
            "an archive holds something else than plain files",
            where=f"{archive}, {member.filename}",
            got=found,
            expected="plain files, stored or compressed by deflate, bzip2 or LZMA",
            remedy="unpack it by hand, where you trust it",
        )


def _check_places(places: Sequence[Path], archive: Path) -> None:
    """Raise `FetchError` where one member would overwrite another, or be its folder."""
    seen: set[Path] = set()
    folders = {folder for place in places for folder in place.parents}
    for place in places:
        if place in seen or place in folders:
            raise FetchError(
                "two members of an archive want the same place",
                where=f"{archive}, {place.name}",
                got="a file of that name twice" if place in seen else "a file and a folder",
                expected="every name once",
                remedy="nothing was written; unpack it by hand, and decide which one is meant",
            )
        seen.add(place)


def _same(member: zipfile.ZipInfo, place: Path) -> bool:
    if not place.exists():
        return False
    if place.is_file() and place.stat().st_size == member.file_size:
        checksum = 0
        with place.open("rb") as stream:
            while piece := stream.read(_PIECE_BYTES):
                checksum = zlib.crc32(piece, checksum)
        if checksum == member.CRC:
            return True
    raise FetchError(
        "another file of that name is there already",
        where=str(place),
        got="other content than in the archive",
        expected="nothing, or the same file",
        remedy="move it away, or choose another folder; nothing is overwritten",
    )


def _write(opened: zipfile.ZipFile, member: zipfile.ZipInfo, place: Path) -> None:
    """Write to the side first, under a name that no member may have."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(MARKS + ".part")
    try:
        with opened.open(member) as source, part.open("wb") as out:
            shutil.copyfileobj(source, out, _PIECE_BYTES)
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)
