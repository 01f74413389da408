"""``lock.json``: what a locked run consists of, and one digest over it.

::

    format_version   1
    root_digest      SHA-256 of ``sealed`` as canonical JSON: what a paper quotes
    locked_on        the day, in UTC; not part of that digest
    checksum         SHA-256 of the three lines above as canonical JSON
    sealed           everything else

The same run locked on another day has the same digest; locked with other software it has another one, because the
software is part of what is sealed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from lpact.archive.bounded_json import parse_bounded, read_bounded
from lpact.archive.digests import digest_of
from lpact.errors import RunError
from lpact.store import InputFile, atomic_write_bytes
from lpact.store.locked import LOCK_FILE

LOCK_FORMAT = 1
DAMAGED = "the lock is damaged"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SealedFile(_Record):
    """A file of the run."""

    n_bytes: int
    sha256: str


class SealedTable(_Record):
    """A table: rows, key, and the digest of every column's values in the order of the file."""

    n_rows: int
    key: tuple[str, ...]
    key_sha256: str
    columns: dict[str, str]


class UnitOrder(_Record):
    """The units of one recording, in their canonical order, by hash."""

    dataset: str
    subject: str
    session: str
    run: str
    n_units: int
    unit_order_hash: str


class Software(_Record):
    """What the run was made by (from its manifest), and what it was locked with."""

    made_by_version: str
    made_by_code: str
    made_with: dict[str, str]
    plugins: tuple[str, ...]
    locked_by_code: str
    system: dict[str, str]
    distributions: dict[str, str]


class Sealed(_Record):
    """Everything that the root digest covers."""

    study: str
    seed: int
    config: dict[str, Any]
    config_digest: str
    inputs: tuple[InputFile, ...]
    software: Software
    files: dict[str, SealedFile]
    tables: dict[str, SealedTable]
    unit_orders: tuple[UnitOrder, ...]


class Lock(_Record):
    """Contents of ``lock.json``."""

    format_version: int
    root_digest: str
    locked_on: str
    checksum: str
    sealed: Sealed

    def computed_digest(self) -> str:
        """The root digest, computed again."""
        return digest_of(self.sealed.model_dump(mode="json"))

    def computed_checksum(self) -> str:
        """The checksum over what the root digest does not cover, computed again."""
        return _checksum(self.root_digest, self.locked_on)


def make_lock(sealed: Sealed, *, locked_on: str) -> Lock:
    """The lock of these contents."""
    digest = digest_of(sealed.model_dump(mode="json"))
    return Lock(
        format_version=LOCK_FORMAT,
        root_digest=digest,
        locked_on=locked_on,
        checksum=_checksum(digest, locked_on),
        sealed=sealed,
    )


def _checksum(root_digest: str, locked_on: str) -> str:
    values = {"format_version": LOCK_FORMAT, "root_digest": root_digest, "locked_on": locked_on}
    return digest_of(values)


def lock_bytes(lock: Lock) -> bytes:
    """The lock as it is written: sorted keys, one space, a newline at the end."""
    values = lock.model_dump(mode="json")
    text = json.dumps(values, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def write_lock(root: Path, lock: Lock) -> Path:
    """Write ``root/lock.json`` atomically."""
    path = root / LOCK_FILE
    content = lock_bytes(lock)
    # Nobody could read a larger one.
    parse_bounded(content, what="the lock would be too large", where=str(path))
    atomic_write_bytes(path, content)
    return path


def read_lock(root: Path) -> Lock:
    """Read ``root/lock.json``; one that is not there, damaged or newer is a `RunError`."""
    path = root / LOCK_FILE
    if path.is_symlink() or not path.is_file():
        raise RunError(
            "the run is not locked",
            where=str(root),
            got=f"a link in the place of {LOCK_FILE}" if path.is_symlink() else f"no {LOCK_FILE}",
            expected="a run that `lpact lock` has frozen",
            remedy=f"lock it first: lpact lock {root}",
        )
    return parse_lock(read_bounded(path, what=DAMAGED), where=str(path))


def parse_lock(content: bytes, *, where: str) -> Lock:
    """The lock in these bytes; ``where`` names them in errors."""
    values = parse_bounded(content, what=DAMAGED, where=where)
    try:
        version = values["format_version"]
    except (KeyError, TypeError, IndexError) as error:
        raise _damaged(where, f"{type(error).__name__}: {error}") from None
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
        DAMAGED,
        where=where,
        got=got,
        expected="lock.json as lpact wrote it",
        remedy="restore the file from a copy of the locked run",
    )
