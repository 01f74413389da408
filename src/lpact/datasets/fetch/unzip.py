"""Archives of a download: unpacked member by member, none of them outside of the folder."""

from __future__ import annotations

import shutil
import stat
import zipfile
import zlib
from pathlib import Path

from lpact.datasets.fetch.places import check_space, place_in
from lpact.errors import FetchError

_PIECE_BYTES = 2**20


def unpack(archive: Path, root: Path) -> int:
    """Unpack a ZIP file into ``root`` and return the number of files.

    A member that is there already with the same content is left alone, so that an interrupted call can be repeated.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            members = [m for m in opened.infolist() if not m.is_dir()]
            places = [place_in(root, m.filename, where=str(archive)) for m in members]
            for member in members:
                _check(member, archive)
            missing = [(m, p) for m, p in zip(members, places, strict=True) if not _same(m, p)]
            check_space(root, sum(m.file_size for m, _ in missing))
            for member, place in missing:
                _write(opened, member, place)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise FetchError(
            "an archive cannot be unpacked",
            where=str(archive),
            got=str(error),
            expected="a ZIP file",
            remedy="remove it and fetch it again",
        ) from error
    return len(members)


def _check(member: zipfile.ZipInfo, archive: Path) -> None:
    link = stat.S_ISLNK(member.external_attr >> 16)
    if link or member.flag_bits & 1:
        raise FetchError(
            "an archive holds something else than plain files",
            where=f"{archive}, {member.filename}",
            got="a link" if link else "an encrypted file",
            expected="plain files",
            remedy="unpack it by hand, where you trust it",
        )


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
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(place.name + ".part")
    try:
        with opened.open(member) as source, part.open("wb") as out:
            shutil.copyfileobj(source, out, _PIECE_BYTES)
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)
