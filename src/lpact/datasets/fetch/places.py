"""Where a download may come from, and where it may be put."""

from __future__ import annotations

import errno
import ipaddress
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from lpact.errors import FetchError

MARKS = ".lpact-fetch"
"""Folder that remembers which archives were unpacked; readers ignore names that start with a dot."""

RESERVE_BYTES = 64 * 2**20
"""Disk space that a download leaves free."""

_FULL = "free some space, or choose a folder on another disk; then run the same command again"
_IN_THE_WAY = "a file lies where a folder is needed: move it away, or choose another folder"
_WAYS_OUT = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "choose a disk that takes files of this size, or raise the limit (ulimit -f)",
    errno.EEXIST: _IN_THE_WAY,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EISDIR: "a folder lies where the file belongs: move it away, or choose another folder",
    errno.ENAMETOOLONG: "choose a folder with a shorter path, or get the data by hand",
    errno.EACCES: "choose a folder that you may write to",
    errno.EPERM: "choose a folder that you may write to",
    errno.EROFS: "choose a folder that you may write to",
}


@contextmanager
def on_disk(place: Path) -> Iterator[None]:
    """Turn what the disk refuses into a `FetchError` with a way out."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FetchError(
            "a file cannot be written",
            where=str(error.filename or place),
            got=error.strerror or str(error),
            expected="a folder that takes it",
            remedy=_WAYS_OUT.get(error.errno or 0, "check the folder and its disk, and try again"),
        ) from error


def is_loopback(url: str) -> bool:
    """Whether an address is this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_url(url: str, *, where: str, sent_from: str = "") -> None:
    """Raise `FetchError` unless an address is HTTPS (or plain HTTP on this machine); no redirect may lower that."""
    try:
        parts = urlsplit(url)
        _ = parts.port
        allowed = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(url))
    except ValueError as error:
        raise bad_address(url, error, where=where) from error
    lowered = urlsplit(sent_from).scheme == "https" and parts.scheme != "https"
    if allowed and not lowered and parts.hostname:
        return
    raise FetchError(
        "a redirect leads away from HTTPS" if sent_from else "an address is not HTTPS",
        where=where,
        got=f"{sent_from} → {url}" if sent_from else url,
        expected="an address that begins with https://",
        remedy="get the file by hand from the dataset's homepage",
    )


def bad_address(url: str, error: Exception, *, where: str) -> FetchError:
    """The error for an address that is none."""
    return FetchError(
        "an address cannot be used",
        where=where,
        got=f"{url} ({error})",
        expected="an address that begins with https://",
        remedy="get the file by hand from the dataset's homepage",
    )


def place_in(root: Path, relative: str, *, where: str) -> Path:
    """Return the path of a file below ``root``; raises `FetchError` for one outside, or among our own."""
    path = PurePosixPath(relative)
    windows = "\\" in relative or ":" in relative
    plain = bool(relative) and not path.is_absolute() and not windows and ".." not in path.parts
    target = root / path
    try:
        inside = plain and target.resolve().is_relative_to(root.resolve()) and target.name
    except (ValueError, RuntimeError):  # a null byte; a link that leads to itself
        inside = False
    if not inside:
        raise FetchError(
            "a file would be written outside of the folder",
            where=where,
            got=relative,
            expected=f"a relative path that stays in {root}",
            remedy="nothing was written; tell those who publish the file, or get the data by hand",
        )
    if any(part.casefold().startswith(MARKS) for part in path.parts):
        raise FetchError(
            "a file would be written among the records of the download itself",
            where=where,
            got=relative,
            expected=f"no name that begins with {MARKS}",
            remedy="nothing was written; unpack it by hand, where you trust it",
        )
    return target


def check_space(root: Path, n_bytes: int) -> None:
    """Raise `FetchError` unless the disk below ``root`` has room for ``n_bytes``, and some to spare."""
    there = root.absolute()
    while not there.exists():
        there = there.parent
    free = shutil.disk_usage(there).free
    if free - RESERVE_BYTES < n_bytes:
        raise FetchError(
            "the disk has too little free space",
            where=str(root),
            got=f"{free:,} bytes free",
            expected=f"{n_bytes + RESERVE_BYTES:,} bytes or more ({RESERVE_BYTES:,} stay free)",
            remedy=_FULL,
        )
