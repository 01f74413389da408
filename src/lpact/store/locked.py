"""Runs that are frozen: nothing may be written into one.

A run is locked by the file ``lock.json`` in it (`lpact.archive` makes and checks it). Whatever writes into a run, or
removes one, asks here first.
"""

from __future__ import annotations

import os
from pathlib import Path

from lpact.errors import RunError
from lpact.store.manifest import MANIFEST_NAME

LOCK_FILE = "lock.json"
"""What a locked run has and another one has not."""


def is_locked(root: Path) -> bool:
    """Whether ``root`` is a locked run; a link of that name counts, whatever it leads to."""
    lock, manifest = root / LOCK_FILE, root / MANIFEST_NAME
    return os.path.lexists(lock) and os.path.lexists(manifest)


def refuse_locked(place: str | Path) -> None:
    """Refuse to write at ``place`` if it is a locked run, or lies in one."""
    target = Path(place).resolve()
    for folder in (target, *target.parents):
        if is_locked(folder):
            raise RunError(
                "the run is locked, and nothing is written into it",
                where=str(place),
                got=f"{LOCK_FILE} in {folder}",
                expected="a place outside of locked runs",
                remedy=f"write elsewhere, or copy the run, make the copy writable and remove {LOCK_FILE} from it",
            )
