"""``lock.json``: what a locked run consists of, and one digest of all of it.

::

    format_version   2
    root_digest      SHA-256 of ``content`` as canonical JSON: the digest to quote in a paper
    locked_on        the day, in UTC; not covered by the root digest
    checksum         SHA-256 of the three lines above as canonical JSON
    content          everything else

Canonical JSON has sorted keys, no spaces, and is encoded as UTF-8. The same run locked on another day has the same root
digest; locked with other software it has another one, because the software is part of the content.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from lpact.errors import RunError
from lpact.store import InputFile, Manifest, atomic_write_bytes, code_digest, storage_errors
from lpact.store.manifest import LOCK_FILE
from lpact.tables import Table

LOCK_FORMAT = 2
CRATE_FILE = "ro-crate-metadata.json"
"""Description that an archive carries; it is made from the lock and is not part of it."""
NOT_LOCKED = frozenset({LOCK_FILE, CRATE_FILE})
"""Files that the lock does not list."""
MOST_JSON_BYTES = 128 * 2**20
"""Size of the largest JSON file that is read."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class FileFacts(_Record):
    """Size and SHA-256 of a file."""

    n_bytes: int
    sha256: str


class TableFacts(_Record):
    """A table: the number of rows, the key, and the digest of every column (`column_digest`)."""

    n_rows: int
    key: tuple[str, ...]
    columns: dict[str, str]


class Software(_Record):
    """What the run was made with (from its manifest), and what it was locked with."""

    made_by_version: str
    made_by_code: str
    made_with: dict[str, str]
    plugins: tuple[str, ...]
    locked_by_code: str
    system: dict[str, str]
    distributions: dict[str, str]


class Content(_Record):
    """Everything that the root digest covers."""

    study: str
    seed: int
    config: dict[str, Any]
    config_digest: str
    inputs: tuple[InputFile, ...]
    software: Software
    files: dict[str, FileFacts]
    tables: dict[str, TableFacts]


class Lock(_Record):
    """``lock.json``."""

    format_version: int
    root_digest: str
    locked_on: str
    checksum: str
    content: Content

    def problem(self, written: bytes) -> str:
        """How the lock, read from the bytes ``written``, was edited; empty if it was not."""
        again = make_lock(self.content, locked_on=self.locked_on)
        if again.root_digest != self.root_digest:
            return f"was edited: its content has the root digest {again.root_digest}"
        if again.checksum != self.checksum:
            return f"was edited: its checksum does not match the day {self.locked_on!r}"
        return "" if lock_bytes(self) == written else "was edited: lpact formats it differently"


def make_lock(content: Content, *, locked_on: str) -> Lock:
    """The lock of this content."""
    head = {
        "format_version": LOCK_FORMAT,
        "root_digest": digest_of(content.model_dump(mode="json")),
        "locked_on": locked_on,
    }
    return Lock.model_validate({**head, "checksum": digest_of(head), "content": content})


def digest_of(values: Any) -> str:
    """SHA-256 of JSON values in their canonical form."""
    text = json.dumps(
        values, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return hashlib.sha256(text.encode()).hexdigest()


def lock_bytes(lock: Lock) -> bytes:
    """The lock as it is written: sorted keys, one space, a newline at the end."""
    values = lock.model_dump(mode="json")
    text = json.dumps(values, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def write_lock(root: Path, lock: Lock) -> None:
    """Write ``root/lock.json`` atomically."""
    atomic_write_bytes(root / LOCK_FILE, lock_bytes(lock))


def read_lock(root: Path) -> Lock:
    """Read ``root/lock.json``; a missing, damaged or newer one is a `RunError`."""
    path = root / LOCK_FILE
    if path.is_symlink() or not path.is_file():
        raise RunError(
            "the run is not locked",
            where=str(root),
            got=f"{LOCK_FILE} is a link" if path.is_symlink() else f"no {LOCK_FILE}",
            expected="a run that `lpact lock` has locked",
            remedy=f"lock it first: lpact lock {root}",
        )
    return parse_lock(read_limited(path), where=str(path))


def read_limited(path: Path) -> bytes:
    """The bytes of a JSON file, or a `RunError` if it is larger than `MOST_JSON_BYTES`."""
    with storage_errors(path, "the file cannot be read"), path.open("rb") as handle:
        content = handle.read(MOST_JSON_BYTES + 1)
    if len(content) > MOST_JSON_BYTES:
        raise RunError(
            "the file is too large to be read",
            where=str(path),
            got=f"{path.stat().st_size} bytes",
            expected=f"at most {MOST_JSON_BYTES} bytes",
            remedy="check where the file comes from; split the study if it is your own",
        )
    return content


def parse_lock(content: bytes, *, where: str) -> Lock:
    """The lock in these bytes; ``where`` names them in errors."""
    try:
        version = json.loads(content)["format_version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(where, f"{type(error).__name__}: {str(error)[:200]}") from None
    if version != LOCK_FORMAT:
        raise RunError(
            "the run was locked by another version of lpact",
            where=where,
            got=f"format version {version}",
            expected=f"format version {LOCK_FORMAT}",
            remedy="verify it with the version of lpact that locked it",
        )
    try:
        return Lock.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        raise _damaged(where, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _damaged(where: str, got: str) -> RunError:
    return RunError(
        "the lock is damaged",
        where=where,
        got=got,
        expected="lock.json as lpact wrote it",
        remedy="restore the file from a copy of the locked run",
    )


@dataclass(frozen=True)
class Listing:
    """What a folder holds, by path relative to it with forward slashes."""

    files: dict[str, Path]
    others: dict[str, str]
    """Links, pipes and other special files, each with a description."""
    folders: tuple[Path, ...]


def list_files(root: Path) -> Listing:
    """List ``root`` without following links."""
    files: dict[str, Path] = {}
    others: dict[str, str] = {}
    folders = [root]
    with storage_errors(root, "the run directory cannot be read"):
        for folder in folders:
            with os.scandir(folder) as entries:
                for entry in entries:
                    path = Path(entry.path)
                    name = path.relative_to(root).as_posix()
                    if entry.is_symlink():
                        others[name] = f"a link to {os.readlink(path)!r}"
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(path)
                    elif stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                        files[name] = path
                    else:
                        others[name] = "not a regular file"
    return Listing(dict(sorted(files.items())), dict(sorted(others.items())), tuple(folders))


def table_facts(table: Table, frame: pl.DataFrame) -> TableFacts:
    """What the lock says of a table."""
    columns = {column.name: column_digest(column) for column in frame.get_columns()}
    return TableFacts(n_rows=frame.height, key=table.key, columns=columns)


def column_digest(column: pl.Series) -> str:
    """SHA-256 of a column in the order of its rows.

    It covers the type, the number of rows, which rows are missing (one byte per row), and the values: eight
    little-endian bytes per number, one byte per truth value; for text the length of each in bytes (eight little-endian
    bytes), then all of it as UTF-8. A missing value counts as zero or as empty text. A list column is the same over the
    lengths of the lists, then over their elements.
    """
    digest = hashlib.sha256(f"{column.dtype}\n{len(column)}\n".encode())
    for part in _column_bytes(column):
        digest.update(part)
    return digest.hexdigest()


def _column_bytes(column: pl.Series) -> Iterator[bytes]:
    yield column.is_null().to_numpy().astype(np.uint8).tobytes()
    if isinstance(column.dtype, pl.List):
        yield _integers(column.list.len().fill_null(0).to_numpy())
        elements = column.drop_nulls().explode(empty_as_null=False)
        yield f"{len(elements)}\n".encode()
        yield from _column_bytes(elements)
    elif column.dtype == pl.String:
        filled = column.fill_null("")
        yield _integers(filled.str.len_bytes().to_numpy())
        for part in filled.to_frame().iter_slices(100_000):
            yield "".join(part.to_series()).encode()
    elif column.dtype == pl.Boolean:
        yield column.fill_null(value=False).to_numpy().astype(np.uint8).tobytes()
    elif column.dtype == pl.Float64:
        yield column.fill_null(0.0).to_numpy().astype("<f8").tobytes()
    else:
        yield _integers(column.fill_null(0).to_numpy())


def _integers(numbers: NDArray[Any]) -> bytes:
    return numbers.astype("<i8").tobytes()


def software_of(manifest: Manifest) -> Software:
    """The software that made a run, and that of this process."""
    return Software(
        made_by_version=manifest.lpact_version,
        made_by_code=manifest.lpact_code,
        made_with=manifest.versions,
        plugins=manifest.plugins,
        locked_by_code=code_digest(),
        system={
            "python": platform.python_version(),
            "implementation": platform.python_implementation(),
            "system": platform.system(),
            "machine": platform.machine(),
        },
        distributions=distributions(),
    )


@cache
def distributions() -> dict[str, str]:
    """Versions of lpact and of every installed package that it depends on, directly or not.

    Optional dependencies of lpact count if they are installed, except those for its development. Optional dependencies
    of other packages do not count.
    """
    found: dict[str, str] = {}
    waiting = ["lpact"]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            own = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        found[name] = own.version
        for line in own.requires or ():
            extra = re.search(r"\bextra\s*==\s*['\"]([^'\"]+)['\"]", line)
            required = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line.strip())
            if required and (extra is None or (name == "lpact" and extra[1] != "dev")):
                waiting.append(re.sub(r"[-_.]+", "-", required[0]).lower())
    return dict(sorted(found.items()))
