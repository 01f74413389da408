"""Files over HTTPS: streamed to the side, resumed where they broke off, checked, and only then given their name."""

from __future__ import annotations

import http.client
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO
from urllib.error import HTTPError
from urllib.parse import urljoin
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from lpact.datasets.catalogue import RemoteFile
from lpact.datasets.fetch.answers import Answer, StartAgainError, Version, read_answer
from lpact.datasets.fetch.places import (
    bad_address,
    check_space,
    check_url,
    is_loopback,
    on_disk,
    place_in,
)
from lpact.errors import FetchError
from lpact.store import sha256_file

PIECE_BYTES = 2**20
TIMEOUT_S = 60.0
ATTEMPTS = 5
PAUSE_S = 1.0
"""Waited before the second attempt; doubled before every further one."""

_PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Answers after which it is worth to ask again."""


class CutOffError(Exception):
    """The connection broke before the end."""


class _Redirects(HTTPRedirectHandler):
    """Follows a redirect where `check_url` allows it."""

    def http_error_302(self, req: Request, fp: Any, code: int, msg: str, headers: Any) -> Any:
        if target := headers.get("Location", headers.get("URI")):
            try:
                _check_target(req.full_url, target)
            except FetchError:
                fp.close()
                raise
        return super().http_error_302(req, fp, code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _check_target(url: str, target: str) -> None:
    try:
        joined = urljoin(url, target)
    except ValueError as error:
        raise bad_address(target, error, where=url) from error
    check_url(joined, where=url, sent_from=url)


def fetch_file(
    file: RemoteFile,
    root: Path,
    *,
    advance: Callable[[int], None] = lambda _: None,
    attempts: int = ATTEMPTS,
    pause_s: float = PAUSE_S,
) -> bool:
    """Put one file in its place below ``root``; False where it was there already.

    The bytes go to ``<name>.part`` first. A connection that breaks is taken up where it broke, in this call or in a
    later one; what was begun is used again only if a checksum or the server's tag can tell that it is the same file.
    The file gets its name when it is complete, has the published size and checksum, and is on the disk.
    """
    target = place_in(root, file.path, where=file.url)
    check_url(file.url, where=file.path)
    with on_disk(target):
        if target.exists():
            _check_there(target, file)
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        part = _Part(target)
        for attempt in range(1, attempts + 1):
            try:
                _transfer(file, part, advance, first=attempt == 1)
                break
            except StartAgainError:
                part.remove()
                if attempt == attempts:
                    raise _broken(file, part, "the server's file changes all the time") from None
            except CutOffError as error:
                if attempt == attempts:
                    raise _broken(file, part, str(error)) from error
                time.sleep(pause_s * 2 ** (attempt - 1))
        _check_done(file, part)
        part.finish()
    return True


class _Part:
    """The unfinished file, and how the server names the version that it is a part of."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(target.name + ".part")
        self._tag = target.with_name(target.name + ".part.tag")

    @property
    def n_bytes(self) -> int:
        return self.path.stat().st_size if self.path.is_file() else 0

    @property
    def version(self) -> Version:
        if not self._tag.is_file():
            return Version()
        told = self._tag.read_text(encoding="utf-8", errors="replace").splitlines()
        return Version(*(line.strip() for line in (*told, "", "")[:2]))

    def begin(self, version: Version) -> None:
        """Forget what is there; ``version`` is what begins now."""
        self.remove()
        if any(version):
            self._tag.write_text("\n".join(version) + "\n", encoding="utf-8")

    def remove(self) -> None:
        for path in (self.path, self._tag):
            path.unlink(missing_ok=True)

    def finish(self) -> None:
        handle = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        self.path.replace(self.target)
        self._tag.unlink(missing_ok=True)


def _transfer(
    file: RemoteFile, part: _Part, advance: Callable[[int], None], *, first: bool
) -> None:
    """Get what is missing; raises `CutOffError` where the connection breaks."""
    have, known = part.n_bytes, part.version
    vouched = bool(known.tag or file.sha256)
    if have and (not vouched or (file.n_bytes is not None and have > file.n_bytes)):
        part.remove()
        have, known = 0, Version()
    if first:
        advance(have)
    if have and have == file.n_bytes:
        return
    with _ask(file, have, known.tag) as answer:
        told = read_answer(
            file.url,
            answer.status,
            answer.headers,
            have=have,
            known=known,
            published=file.n_bytes,
        )
        if file.n_bytes is not None and told.total not in (None, file.n_bytes):
            part.remove()
            raise _other_size(file, f"{told.total:,} bytes")
        if told.first == 0:
            part.begin(told.version)
        try:
            check_space(part.path.parent, told.n_body or 0)
            with part.path.open("ab") as out:
                _copy(answer, out, advance, file, told)
        except (FetchError, OSError):
            if not (told.version.tag or file.sha256):
                part.remove()
            raise
    if told.total is not None and part.n_bytes != told.total:
        raise CutOffError(f"{part.n_bytes:,} of {told.total:,} bytes came")


def _ask(file: RemoteFile, have: int, tag: str) -> Any:
    """The server's answer to a request for the bytes from ``have`` on."""
    headers = {"User-Agent": "lpact", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if tag:
            headers["If-Range"] = tag
    try:
        request = Request(file.url, headers=headers)  # noqa: S310  # `check_url` has looked at it
        return _opener(file.url).open(request, timeout=TIMEOUT_S)
    except HTTPError as error:
        error.close()
        if error.code == 416 and have:
            raise StartAgainError from None
        if error.code in _PASSING:
            raise CutOffError(f"the server answered {error.code} {error.reason}") from None
        raise _refused(file, error) from None
    except (OSError, http.client.HTTPException) as error:
        raise CutOffError(f"no connection: {error}") from error
    except ValueError as error:  # a host's name that is none
        raise bad_address(file.url, error, where=file.path) from error


def _copy(
    answer: Any, out: BinaryIO, advance: Callable[[int], None], file: RemoteFile, told: Answer
) -> None:
    """Write the body, as far as it belongs to the file: an answer without end is left at the first byte too many."""
    left = told.n_body
    if left is None and file.n_bytes is not None:
        left = file.n_bytes + 1 - told.first
    while left is None or left > 0:
        try:
            piece = answer.read(PIECE_BYTES if left is None else min(PIECE_BYTES, left))
        except (OSError, http.client.HTTPException) as error:
            raise CutOffError(f"the connection broke: {error}") from error
        if not piece:
            return
        left = None if left is None else left - len(piece)
        check_space(Path(out.name).parent, len(piece))
        out.write(piece)
        advance(len(piece))


def _opener(url: str) -> OpenerDirector:
    """Follows redirects that stay on HTTPS; the proxies of the environment are used, but not for this machine."""
    return build_opener(_Redirects(), *([ProxyHandler({})] if is_loopback(url) else []))


def _check_done(file: RemoteFile, part: _Part) -> None:
    if file.n_bytes is not None and part.n_bytes != file.n_bytes:
        n_bytes = part.n_bytes
        part.remove()
        more = n_bytes > file.n_bytes
        raise _other_size(
            file, f"more than {file.n_bytes:,} bytes" if more else f"{n_bytes:,} bytes"
        )
    found = sha256_file(part.path) if file.sha256 else ""
    if found != file.sha256.lower():
        part.remove()
        raise FetchError(
            "a file that came does not have the published checksum",
            where=file.url,
            got=f"sha256 {found}",
            expected=f"sha256 {file.sha256.lower()}",
            remedy="nothing was kept; try again later, and tell those who publish the file if it stays so",
        )


def _check_there(target: Path, file: RemoteFile) -> None:
    """Raise `FetchError` where a file of that name is there and is another one."""
    n_bytes = target.stat().st_size
    found = sha256_file(target) if file.sha256 else ""
    same_size = file.n_bytes in (None, n_bytes)
    if target.is_file() and same_size and found == file.sha256.lower():
        return
    raise FetchError(
        "another file of that name is there already",
        where=str(target),
        got=f"{n_bytes:,} bytes" + (f", sha256 {found}" if found else ""),
        expected=(f"{file.n_bytes:,} bytes" if file.n_bytes is not None else "the published file")
        + (f", sha256 {file.sha256.lower()}" if file.sha256 else ""),
        remedy="move it away, or choose another folder; nothing is overwritten",
    )


def _refused(file: RemoteFile, error: HTTPError) -> FetchError:
    gone = error.code in (404, 410)
    return FetchError(
        "the server does not have a file" if gone else "the server does not give a file",
        where=file.url,
        got=f"{error.code} {error.reason}",
        expected="200 OK",
        remedy="look for it on the dataset's homepage; it may have moved"
        if gone
        else "the dataset's homepage says who may get it, and how",
    )


def _other_size(file: RemoteFile, got: str) -> FetchError:
    return FetchError(
        "a file does not have the published size",
        where=file.url,
        got=got,
        expected=f"{file.n_bytes:,} bytes",
        remedy="nothing was kept; it may be another version: look at the dataset's homepage",
    )


def _broken(file: RemoteFile, part: _Part, why: str) -> FetchError:
    with suppress(OSError):
        if part.n_bytes == 0:
            part.remove()
    return FetchError(
        "a file could not be fetched to its end",
        where=file.url,
        got=why,
        expected="the whole file",
        remedy="run the same command again: it goes on where it stopped",
    )
