"""What a server's answer says of the bytes that follow, and whether they go on where a file stopped."""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.message import Message
from typing import NamedTuple

from lpact.errors import FetchError

_RANGE = re.compile(r"bytes\s+([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")
_WAY_OUT = "try again later, or get the file by hand from the dataset's homepage"


class StartAgainError(Exception):
    """What is on disk is no beginning of what the server has."""


class Version(NamedTuple):
    """How a server tells versions of a file apart; empty where it does not. Only a strong tag vouches for bytes."""

    tag: str = ""
    modified: str = ""


@dataclass(frozen=True)
class Answer:
    """The body begins at byte ``first`` of the file and is ``n_body`` bytes long; ``total`` is the whole file."""

    first: int
    n_body: int | None
    total: int | None
    version: Version


def read_answer(
    url: str, status: int, headers: Message, *, have: int, known: Version, published: int | None
) -> Answer:
    """Read the headers of an answer to a request for the bytes from ``have`` on.

    Raises
    ------
    StartAgainError
        If the bytes do not go on where the part ends, or are of another version than ``known``.
    FetchError
        If the answer makes no sense, or if the bytes are not those of the file.
    """
    encoding = headers.get("Content-Encoding", "identity").strip()
    if encoding.lower() not in ("identity", ""):
        raise _senseless(
            url, f"Content-Encoding: {encoding}", "the file as it is, as was asked for"
        )
    n_body = _length(url, headers)
    version = _version(headers)
    if status == 200:
        return Answer(0, n_body, n_body, version)
    if status != 206 or not have:
        raise _senseless(url, f"status {status}", "200 OK")
    if (known.tag and version.tag != known.tag) or _both_differ(known.modified, version.modified):
        raise StartAgainError
    found = _RANGE.fullmatch(headers.get("Content-Range", "").strip())
    if found is None:
        raise StartAgainError
    first, last = int(found[1]), int(found[2])
    total = published if found[3] == "*" else int(found[3])
    if first != have or total is None:
        raise StartAgainError
    if not first <= last < total or n_body not in (None, last - first + 1):
        told = f"Content-Range: {found[0]}, Content-Length: {n_body}"
        raise _senseless(url, told, "a range inside the file, and as long as it says")
    return Answer(first, last - first + 1, total, version)


def _length(url: str, headers: Message) -> int | None:
    """Bytes of the body; None where it is not told, or where chunks tell its end."""
    told = headers.get_all("Content-Length")
    if told is None or "chunked" in headers.get("Transfer-Encoding", "").lower():
        return None
    text = ", ".join(told).strip()
    if not re.fullmatch("[0-9]{1,18}", text):
        raise _senseless(url, f"Content-Length: {text}", "one number of bytes")
    return int(text)


def _version(headers: Message) -> Version:
    tag = headers.get("ETag", "").strip()
    return Version("" if tag.startswith("W/") else tag, headers.get("Last-Modified", "").strip())


def _both_differ(a: str, b: str) -> bool:
    return bool(a and b and a != b)


def _senseless(url: str, got: str, expected: str) -> FetchError:
    return FetchError(
        "the server's answer cannot be used",
        where=url,
        got=got,
        expected=expected,
        remedy=_WAY_OUT,
    )
