"""The files of a run directory, without following links."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from lpact.store import storage_errors
from lpact.store.locked import LOCK_FILE

CRATE_FILE = "ro-crate-metadata.json"
"""Description that an archive carries; it is made from the lock and is not part of it."""
UNSEALED = frozenset({LOCK_FILE, CRATE_FILE})
"""Files that the lock does not list."""


@dataclass(frozen=True)
class Listing:
    """What a folder holds, by path from it with forward slashes."""

    files: dict[str, Path]
    others: dict[str, str]
    """Links, pipes and whatever else is no plain file or folder, each with what it is."""
    folders: tuple[Path, ...]


def list_files(root: Path) -> Listing:
    """List ``root``; links are named and not followed, empty folders are no part of a run."""
    files: dict[str, Path] = {}
    others: dict[str, str] = {}
    folders = [root]
    with storage_errors(root, "the run directory cannot be read"):
        for folder in folders:
            with os.scandir(folder) as entries:
                for entry in sorted(entries, key=lambda own: own.name):
                    path = Path(entry.path)
                    name = path.relative_to(root).as_posix()
                    if entry.is_symlink():
                        others[name] = f"a link to {os.readlink(path)!r}"
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(path)
                    elif stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                        files[name] = path
                    else:
                        others[name] = "not a plain file"
    return Listing(dict(sorted(files.items())), dict(sorted(others.items())), tuple(folders))
