"""What is known of a dataset before it is opened: the layout of its folder, and where it officially comes from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Method = Literal["openneuro", "datalad", "dandi", "https", "manual"]


@dataclass(frozen=True)
class Expected:
    """One part of a dataset's folder.

    ``patterns`` are alternatives (globs relative to the folder, the first that matches counts); ``needed`` says what a
    study cannot do without. ``boundary`` marks what the official release does not hold at all, and says what may stand
    in for it: such a part is never missing by the user's fault.
    """

    what: str
    patterns: tuple[str, ...]
    needed: bool = True
    boundary: str = ""

    def holds(self, path: str) -> bool:
        """Whether a file (relative, with slashes) belongs to this part: it, or a folder above it, fits a pattern."""
        return any(_glob(pattern).fullmatch(path) for pattern in self.patterns)


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    """A glob as `Path.glob` reads it: ``*`` stays inside a name, ``**`` is any number of folders (last: all files)."""
    parts = []
    for part in pattern.removesuffix("/**").strip("/").split("/"):
        if part == "**":
            parts.append("(?:[^/]+/)*")
            continue
        classes = re.split(r"(\*|\?|\[[^\]]+\])", part)
        signs = {"*": "[^/]*", "?": "[^/]"}
        text = "".join(
            signs.get(
                c,
                f"[{'^' if c[1] == '!' else ''}{c[1:-1].lstrip('!')}]"
                if c[:1] == "["
                else re.escape(c),
            )
            for c in classes
        )
        parts.append(text + "/")
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

    ``identifier`` is the accession number at the archive (``ds005574``), ``size`` the size as published, in words.
    ``include`` are globs of the parts that a study reads, for archives that let one choose. ``files`` is for ``https``.
    ``steps`` tell what only a person can do (a form, a licence, a request).
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
