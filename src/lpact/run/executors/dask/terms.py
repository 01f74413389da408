"""What a client and the workers of a cluster say to each other."""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from lpact.config import RunConfig
from lpact.extras import require
from lpact.inputs.workspace import Workspace
from lpact.run.audit import plugin_packages
from lpact.run.executors.base import Ended, Setup
from lpact.store import FolderShelf, Shelf, TaskStore, library_versions


@dataclass(frozen=True)
class Briefing:
    """All that a worker must know of a run, and must have in common with the client.

    ``probe`` is the name of a file that the client has put beside the results. ``folders`` tells the files of each
    dataset, and of the extracted features (under an empty name), apart from copies of them.
    """

    setup: Setup
    store: TaskStore
    probe: str
    versions: dict[str, str]
    plugins: tuple[str, ...]
    folders: dict[str, str]

    @classmethod
    def of(cls, workspace: Workspace, store: TaskStore) -> Briefing:
        """The briefing for a study; the files of every dataset are looked at once."""
        for name in workspace.run.paths:
            workspace.fingerprint(name)
        setup = replace(Setup.of(workspace, store), settings=absolute(workspace.resolved()))
        config = workspace.config.model_dump(mode="json")
        return cls(
            setup,
            TaskStore(_anywhere(store), store.mark),
            f"probe-{uuid4().hex}",
            library_versions(config),
            plugin_packages(workspace.config),
            folders(setup.settings),
        )

    def packed(self) -> bytes:
        """The briefing as it travels."""
        return packed(self)


def packed(value: object) -> bytes:
    """Objects as Dask itself sends them between a client and its workers; nothing of the kind is kept in a file."""
    content: bytes = require("distributed", extra="dask").protocol.pickle.dumps(value)
    return content


def unpacked(content: bytes) -> Any:
    """What the client of this cluster has packed; the code must be known to be the same by then."""
    return require("distributed", extra="dask").protocol.pickle.loads(content)


@dataclass(frozen=True)
class Fit:
    """A worker that can take tasks.

    ``cores`` are those that its process may use, ``n_cores`` how many the machine grants it; ``shares`` says whether
    it writes results to the same place as the client.
    """

    worker: str
    address: str
    host: str
    threads: int
    cores: tuple[int, ...]
    n_cores: int
    processor: str
    shares: bool


@dataclass(frozen=True)
class Unfit:
    """A worker that must not take tasks, and why."""

    worker: str
    address: str
    what: str


@dataclass(frozen=True)
class Lacking:
    """A task that needs results which its worker cannot read: it must be given them."""

    address: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Done:
    """A task that has ended. ``content`` is its result, where the worker cannot write to the client's place."""

    ended: Ended
    content: bytes | None


Answer = Done | Lacking


def absolute(settings: RunConfig) -> RunConfig:
    """Settings that mean the same in whatever folder a process was started."""
    return settings.model_copy(
        update={
            "paths": {name: os.path.abspath(path) for name, path in settings.paths.items()},
            "models": {name: os.path.abspath(path) for name, path in settings.models.items()},
            "features": os.path.abspath(settings.features),
            "grids": os.path.abspath(settings.grids),
        }
    )


def folders(settings: RunConfig) -> dict[str, str]:
    """What tells the folders of datasets and features (under an empty name) apart from copies of them."""
    named = {**settings.paths, "": settings.features}
    return {name: _identity(Path(path)) for name, path in named.items()}


def processor() -> str:
    """What this machine's BLAS computes with: other kinds may round otherwise."""
    from threadpoolctl import threadpool_info

    found = {
        f"{pool.get('internal_api')} {pool.get('version')} {pool.get('architecture', '')}".strip()
        for pool in threadpool_info()
        if pool.get("user_api") == "blas"
    }
    return ", ".join([platform.machine(), *sorted(found)])


def _anywhere(store: TaskStore) -> Shelf:
    shelf = store.shelf
    return FolderShelf(shelf.root.absolute()) if isinstance(shelf, FolderShelf) else shelf


def _identity(folder: Path) -> str:
    """Digest of every file's name, number, size and time.

    The same file keeps its number on every machine that mounts its disk; a copy has another. Contents are not read.
    """
    found = []
    for place, _, names in os.walk(folder, followlinks=True):
        for name in names:
            path = os.path.join(place, name)
            try:
                seen = os.stat(path)
            except OSError:
                found.append((os.path.relpath(path, folder), 0, 0, 0))
                continue
            inside = os.path.relpath(path, folder)
            found.append((inside, seen.st_ino, seen.st_size, seen.st_mtime_ns))
    return hashlib.sha256(repr(sorted(found)).encode()).hexdigest()
