"""A finished run directory, opened for reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from lpact.errors import RunError, did_you_mean
from lpact.store.disk import sha256_file, storage_errors
from lpact.store.files import read_table, table_path
from lpact.store.manifest import MANIFEST_NAME, Manifest, read_manifest
from lpact.tables import Table, declared_tables, find_table

RunState = Literal["absent", "complete", "other"]


class StoredRun:
    """A published run: its manifest, and its tables, read once and compared with their checksums."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.manifest: Manifest = read_manifest(self.root)
        self._checksums = {file.path: file.sha256 for file in self.manifest.outputs}
        self._frames: dict[str, pl.DataFrame] = {}

    def __repr__(self) -> str:
        return f"StoredRun({str(self.root)!r})"

    def tables(self) -> list[Table]:
        """Return the tables of the run, in the order of their declaration."""
        names = {
            path.removesuffix(".parquet") for path in self._checksums if path.endswith(".parquet")
        }
        declared = declared_tables()
        if unknown := sorted(names - declared.keys()):
            raise RunError(
                "the run has tables of an analysis that is not installed",
                where=str(self.root / MANIFEST_NAME),
                got=", ".join(unknown[:3]),
                expected="an installed analysis that declares them",
                remedy=f"install {', '.join(self.manifest.plugins) or 'the package that made the run'}",
            )
        return [table for name, table in declared.items() if name in names]

    def table(self, name: str) -> pl.DataFrame:
        """Return a table by name; its folder may be left out."""
        declared = find_table(name)
        if declared.name not in self._frames:
            self._frames[declared.name] = self._read(declared)
        return self._frames[declared.name]

    def n_rows(self, name: str) -> int:
        """Rows of a table, from the file's footer where it has not been read."""
        declared = find_table(name)
        if declared.name in self._frames:
            return self._frames[declared.name].height
        try:
            return int(pq.read_metadata(table_path(self.root, declared)).num_rows)
        except (OSError, pa.ArrowException):
            return self.table(name).height

    def _read(self, table: Table) -> pl.DataFrame:
        path = table_path(self.root, table)
        checksum = self._checksums.get(f"{table.name}.parquet")
        if checksum is None:
            raise RunError(
                f"the run has no table '{table.name}'",
                where=str(self.root / MANIFEST_NAME),
                got=f"{len(self.tables())} other tables",
                expected="a table that the run wrote",
                remedy=did_you_mean(table.name, [present.name for present in self.tables()]),
            )
        if path.is_file() and sha256_file(path) != checksum:
            raise RunError(
                f"the table '{table.name}' has changed since the run was published",
                where=str(path),
                got="another SHA-256 than the manifest lists",
                expected=checksum,
                remedy="restore the file from a copy, or run the study again",
            )
        return read_table(self.root, table)


class LazyTables(Mapping[str, pl.DataFrame]):
    """Tables by full name, each made by a function whenever it is read."""

    def __init__(self, makers: Mapping[str, Callable[[], pl.DataFrame]]) -> None:
        self.makers = dict(makers)

    @classmethod
    def layered(cls, *tables: Mapping[str, pl.DataFrame]) -> LazyTables:
        """Several mappings as one: the first that has a table gives it."""
        first = {name: own for own in reversed(tables) for name in own}
        return cls({name: partial(own.__getitem__, name) for name, own in first.items()})

    def __getitem__(self, name: str) -> pl.DataFrame:
        return self.makers[name]()

    def __contains__(self, name: object) -> bool:
        return name in self.makers  # the inherited test would make the table

    def __iter__(self) -> Iterator[str]:
        return iter(self.makers)

    def __len__(self) -> int:
        return len(self.makers)


class RunTables(LazyTables):
    """The tables of a run by full name."""

    def __init__(self, run: StoredRun) -> None:
        super().__init__({table.name: partial(run.table, table.name) for table in run.tables()})


def existing_run(out: str | Path, digest: str) -> RunState:
    """What is at ``out``.

    ``absent``: nothing, or an empty folder. ``complete``: a published run of the configuration
    ``digest``; `lpact.store.differences` says whether its inputs or code have changed since.
    ``other``: anything else, which must not be overwritten.
    """
    out = Path(out)
    with storage_errors(out, "the output folder cannot be read"):
        if not out.exists() and not out.is_symlink():
            return "absent"
        if not out.is_dir():
            return "other"
        if next(out.iterdir(), None) is None:
            return "absent"
    try:
        manifest = read_manifest(out)
    except RunError:
        return "other"
    return "complete" if manifest.config_digest == digest else "other"
