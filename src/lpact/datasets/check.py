"""What of a dataset's expected layout is in a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lpact.datasets.catalogue import Expected

PartStatus = Literal["found", "no content", "missing", "not there", "not released"]


@dataclass(frozen=True)
class Part:
    """One part of a layout as it was found: ``pattern`` is the alternative that counts, empty where none matches.

    ``n_without_content`` counts links whose content was not fetched (git-annex, DataLad).
    """

    expected: Expected
    pattern: str = ""
    n_files: int = 0
    n_bytes: int = 0
    n_without_content: int = 0

    @property
    def status(self) -> PartStatus:
        """``missing`` is needed, ``not there`` is optional, ``not released`` is a boundary of the source."""
        if self.n_files > self.n_without_content:
            return "found"
        if self.n_files:
            return "no content"
        if self.expected.boundary:
            return "not released"
        return "missing" if self.expected.needed else "not there"

    @property
    def must_be_mended(self) -> bool:
        """Whether a study cannot do without what is missing here."""
        return self.expected.needed and self.status in ("missing", "no content")


def find_parts(root: Path, layout: Iterable[Expected]) -> list[Part]:
    """Look for every part of ``layout`` below ``root``; nothing is opened."""
    return [_find(root, expected) for expected in layout]


def find_instead(root: Path, layout: Iterable[Expected]) -> list[Path]:
    """Return the folders one level up and down that hold more of what a study needs than ``root``, the fullest only.

    Where nothing is missing in ``root`` there is nothing to look for. Above, a pattern that begins with ``**`` is not
    followed: it would search whatever else lies there.
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
    """Number of parts that ``root`` holds a file of; folders that may not be read hold none."""
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
    """Files that match, and all below folders that match; names that start with a dot do not count."""
    for path in root.glob(pattern):
        below = path.rglob("*") if path.is_dir() else (path,)
        for found in below:
            hidden = any(part.startswith(".") for part in found.relative_to(root).parts)
            if not hidden and (found.is_symlink() or found.is_file()) and not found.is_dir():
                yield found
