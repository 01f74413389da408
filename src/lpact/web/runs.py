"""The runs that are shown, and the only files that may be read: their declared tables.

A run is addressed by its slug and a table by its declared name, so that no text of a request ever becomes part of a
path. A table's file must be a plain file at its own place in the run: links are refused, wherever they lead.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lpact.analyses.base import Analysis, analyses_of
from lpact.errors import RunError
from lpact.store import StoredRun, sha256_file, storage_errors, table_path
from lpact.store.manifest import MANIFEST_NAME
from lpact.store.rundir import table_changed
from lpact.tables import Table

Fingerprint = tuple[int, int, int]
"""Inode, size and time of change: another one means that the file must be checked again."""


@dataclass(frozen=True)
class TableFile:
    """A table's Parquet file that has passed its checks."""

    table: Table
    path: Path
    fingerprint: Fingerprint


class OpenRun(StoredRun):
    """One run, with its slug in addresses."""

    def __init__(self, slug: str, root: Path) -> None:
        self.slug = slug
        root = root.resolve()
        _refuse_link(root / MANIFEST_NAME, root)
        super().__init__(root)
        self._n_bytes = {file.path: file.n_bytes for file in self.manifest.outputs}
        self._hashed: dict[tuple[str, Fingerprint], str] = {}

    @cached_property
    def analyses(self) -> dict[str, Analysis]:
        """The analyses of the run by name."""
        return analyses_of(self.config)

    def has(self, table: Table) -> bool:
        """Whether the run lists the table."""
        return f"{table.name}.parquet" in self._n_bytes

    def n_bytes(self, table: Table) -> int:
        """Size of the table's Parquet file when the run was published."""
        return self._n_bytes[f"{table.name}.parquet"]

    def file(self, table: Table) -> TableFile:
        """The table's file; its checksum is compared with the manifest once, and again when the file has changed."""
        checksum = self.checksum(table)
        path = table_path(self.root, table)
        _refuse_link(path, self.root)
        with storage_errors(path, f"the table '{table.name}' cannot be read"):
            found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise table_changed(path, table, "not a plain file", "a Parquet file that lpact wrote")
        fingerprint = (found.st_ino, found.st_size, found.st_mtime_ns)
        if found.st_size != (n_bytes := self.n_bytes(table)):
            raise table_changed(path, table, f"{found.st_size} bytes", f"{n_bytes} bytes")
        key = (table.name, fingerprint)
        if key not in self._hashed:  # two requests may both compute it
            self._hashed[key] = sha256_file(path)
        if self._hashed[key] != checksum:
            raise table_changed(path, table, "another SHA-256 than the manifest lists", checksum)
        return TableFile(table, path, fingerprint)


def open_runs(roots: Sequence[str | Path]) -> tuple[OpenRun, ...]:
    """The runs of these folders, each with its slug."""
    if not roots:
        raise RunError(
            "no run is given",
            got="no folder",
            expected="folders of finished runs",
            remedy="name at least one: lpact explore RUN",
        )
    places = [Path(os.path.abspath(root)) for root in roots]
    return tuple(map(OpenRun, unique_slugs([place.resolve().name for place in places]), places))


def unique_slugs(names: Sequence[str]) -> list[str]:
    """Names of folders for addresses: plain characters, and no two the same."""
    made: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:60] or "run"
        slug, n = plain, 1
        while slug in made:
            n += 1
            slug = f"{plain}-{n}"
        made.append(slug)
    return made


def _refuse_link(path: Path, root: Path) -> None:
    """Every part of the path below the run must be itself, not a link to somewhere."""
    with storage_errors(path, "a file of the run cannot be read"):
        real = Path(os.path.realpath(path))
    if real != path:
        raise RunError(
            "a file of the run is a link to another place",
            where=str(path),
            got="a symbolic link",
            expected=f"a plain file inside {root.name}",
            remedy="replace the link by the file itself",
        )
