"""A dataset before it is opened: the layout of its folder, what of it exists, and the official source."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

Method = Literal["openneuro", "datalad", "https", "manual"]


@dataclass(frozen=True)
class Expected:
    """One part of a dataset's folder.

    ``patterns`` are alternative globs relative to the folder; the first that matches counts. A study cannot run without
    a ``needed`` part. ``boundary`` marks a part that the official release does not have, and names a substitute.
    """

    what: str
    patterns: tuple[str, ...]
    needed: bool = True
    boundary: str = ""

    def holds(self, path: str) -> bool:
        """Whether a file (relative, with slashes), or a folder above it, matches a pattern."""
        return any(_glob(pattern).fullmatch(path) for pattern in self.patterns)


def required(what: str, *patterns: str) -> Expected:
    """Return a part that a study cannot do without."""
    return Expected(what, patterns)


def optional(what: str, *patterns: str, boundary: str = "") -> Expected:
    """Return a part that a study can do without."""
    return Expected(what, patterns, needed=False, boundary=boundary)


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    """A glob as `Path.glob` reads it: ``*`` stays inside a name, ``**`` is any number of folders (last: all files)."""
    parts = []
    for part in pattern.removesuffix("/**").strip("/").split("/"):
        text = re.sub(r"\\\*", "[^/]*", re.escape(part)).replace(r"\?", "[^/]")
        text = re.sub(r"\\\[!?.*?\\\]", lambda m: m[0].replace("\\", "").replace("[!", "[^"), text)
        parts.append("(?:[^/]+/)*" if part == "**" else text + "/")
    return re.compile("".join(parts).removesuffix("/") + "(?:/.*)?")


@dataclass(frozen=True)
class RemoteFile:
    """One file of a download over HTTPS: its address, its path in the folder, its published size and checksum."""

    url: str
    path: str
    n_bytes: int | None = None
    sha256: str = ""


@dataclass(frozen=True)
class Download:
    """The official source of a dataset.

    ``identifier`` is the accession number at the archive (``ds005574``), ``size`` a text. ``include`` are globs of the
    parts that a study reads. ``files`` is for ``https``. ``steps`` are for the user: a form, a licence, a request.
    """

    method: Method
    identifier: str
    version: str
    size: str
    licence: str
    homepage: str
    include: tuple[str, ...] = ()
    files: tuple[RemoteFile, ...] = ()
    steps: tuple[str, ...] = ()
    citation: str = ""


PUBLISHED = "published.toml"


def published(name: str) -> tuple[tuple[Expected, ...], Download]:
    """Return the parts of the folder of a published dataset, and its official source."""
    entry = dict(_published()[name])
    parts = tuple(
        Expected(part["what"], tuple(part["patterns"]), not part.get("optional", False), part.get("boundary", ""))
        for part in entry.pop("parts")
    )
    files = tuple(RemoteFile(**file) for file in entry.pop("files", ()))
    lists = {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
    return parts, Download(**(entry | lists), files=files)


@lru_cache
def _published() -> dict[str, Any]:
    text = resources.files("lpact.datasets").joinpath(PUBLISHED).read_text(encoding="utf-8")
    return tomllib.loads(text)


PartStatus = Literal["found", "no content", "missing", "not there", "not released"]


@dataclass(frozen=True)
class Part:
    """One part of a layout in a folder; ``pattern`` is the alternative that matches, empty if none does.

    ``n_without_content`` counts links whose content was not fetched (git-annex, DataLad).
    """

    expected: Expected
    pattern: str = ""
    n_files: int = 0
    n_bytes: int = 0
    n_without_content: int = 0

    @property
    def status(self) -> PartStatus:
        """``missing`` if needed, ``not there`` if optional, ``not released`` if the source does not have it."""
        if self.n_files > self.n_without_content:
            return "found"
        if self.n_files:
            return "no content"
        if self.expected.boundary:
            return "not released"
        return "missing" if self.expected.needed else "not there"

    @property
    def must_be_fixed(self) -> bool:
        """Whether a study cannot run without this part."""
        return self.expected.needed and self.status in ("missing", "no content")


def find_parts(root: Path, layout: Iterable[Expected]) -> list[Part]:
    """Look for every part of ``layout`` below ``root``; nothing is opened."""
    return [_find(root, expected) for expected in layout]


def find_instead(root: Path, layout: Iterable[Expected]) -> list[Path]:
    """Return folders one level up or down that have more of the needed parts than ``root``; those with most of them.

    Above ``root``, patterns that begin with ``**`` are skipped: they would search unrelated folders.
    """
    needed = [e for e in layout if e.needed and not e.boundary]
    here = _n_held(root, needed)
    if here == len(needed):
        return []
    root = root.resolve()
    above = [replace(e, patterns=tuple(p for p in e.patterns if p[:2] != "**")) for e in needed]
    held = {} if root.parent == root else {root.parent: _n_held(root.parent, above)}
    with suppress(OSError):
        below = [path for path in sorted(root.iterdir()) if path.is_dir() and path.name[0] != "."]
        held |= {path: _n_held(path, needed) for path in below}
    most = max(held.values(), default=0)
    return [path for path, n_parts in held.items() if n_parts == most > here]


def _n_held(root: Path, needed: Iterable[Expected]) -> int:
    """Number of parts with a file in ``root``; unreadable folders have none."""
    n_parts = 0
    for expected in needed:
        with suppress(OSError):
            n_parts += any(next(_files(root, p), None) is not None for p in expected.patterns)
    return n_parts


def _find(root: Path, expected: Expected) -> Part:
    for pattern in expected.patterns:
        files = sorted(set(_files(root, pattern)))
        if files:
            here = [path for path in files if path.is_file()]
            n_bytes = sum(path.stat().st_size for path in here)
            return Part(expected, pattern, len(files), n_bytes, len(files) - len(here))
    return Part(expected)


def _files(root: Path, pattern: str) -> Iterator[Path]:
    """Files that match, and all below matching folders; hidden files are ignored."""
    for path in root.glob(pattern):
        below = path.rglob("*") if path.is_dir() else (path,)
        for found in below:
            hidden = any(part.startswith(".") for part in found.relative_to(root).parts)
            if not hidden and (found.is_symlink() or found.is_file()) and not found.is_dir():
                yield found
