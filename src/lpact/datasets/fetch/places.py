"""Where a download may come from, and where it may be put."""

from __future__ import annotations

import ipaddress
import shutil
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from lpact.errors import FetchError


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
    parts = urlsplit(url)
    allowed = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(url))
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


def place_in(root: Path, relative: str, *, where: str) -> Path:
    """Return the path of a file below ``root``; raises `FetchError` where it would lie outside."""
    path = PurePosixPath(relative)
    windows = "\\" in relative or ":" in relative
    plain = bool(relative) and not path.is_absolute() and not windows and ".." not in path.parts
    target = root / path
    if plain and target.resolve().is_relative_to(root.resolve()) and target.name:
        return target
    raise FetchError(
        "a file would be written outside of the folder",
        where=where,
        got=relative,
        expected=f"a relative path that stays in {root}",
        remedy="nothing was written; tell those who publish the file, or get the data by hand",
    )


def check_space(root: Path, n_bytes: int) -> None:
    """Raise `FetchError` unless the disk below ``root`` has room for ``n_bytes``."""
    there = root.absolute()
    while not there.exists():
        there = there.parent
    free = shutil.disk_usage(there).free
    if free < n_bytes:
        raise FetchError(
            "the disk has too little free space",
            where=str(root),
            got=f"{free:,} bytes free",
            expected=f"{n_bytes:,} bytes or more",
            remedy="free some space, or choose a folder on another disk",
        )
