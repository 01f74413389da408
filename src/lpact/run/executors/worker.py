"""The worker's side of a run on a Dask cluster: whether it computes the same as the client, and how it runs a task."""

from __future__ import annotations

import platform
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl
from threadpoolctl import threadpool_info

from lpact.errors import LPactError, RunError
from lpact.extras import require
from lpact.inputs.workspace import Workspace
from lpact.run.audit import check_device
from lpact.run.executors.base import Ended, OneThread, Setup, TaskRecord, kept, perform
from lpact.run.features import unready
from lpact.store import FolderShelf, MemoryTasks, TaskStore, bundle, code_digest

KEPT_SESSIONS = 2
"""Runs that a worker process stays ready for."""

_lock = threading.RLock()
_one_thread = OneThread()  # never restored: the threads of a worker share the libraries


@dataclass(frozen=True)
class Briefing:
    """What a worker needs to know about a run; ``probe`` is a file that the client put beside the results."""

    setup: Setup
    store: TaskStore
    probe: str

    @classmethod
    def of(cls, workspace: Workspace, store: TaskStore) -> Briefing:
        """The briefing of a study; the files of every dataset are hashed once."""
        for name, path in workspace.run.paths.items():
            workspace.fingerprint(name)
            if (name, "") not in workspace.watch.seen:
                files = workspace.dataset(name).source_files()
                workspace.watch.note((name, ""), files, Path(path))
        shelf = store.shelf
        if isinstance(shelf, FolderShelf):
            shelf = FolderShelf(shelf.root.absolute())
        setup = Setup.of(workspace, store)
        return cls(setup, TaskStore(shelf, store.mark), f"probe-{uuid.uuid4().hex}")


@dataclass(frozen=True)
class Fit:
    """A worker that can run tasks; ``shares``: it reads and writes results where the client does."""

    worker: str
    host: str
    processor: str
    shares: bool


def packed(value: object) -> bytes:
    """An object as Dask sends it; such bytes are never stored in a file."""
    content: bytes = require("distributed", extra="dask").protocol.pickle.dumps(value)
    return content


def unpacked(content: bytes) -> Any:
    """What the client packed; only after the code is known to be the same."""
    return require("distributed", extra="dask").protocol.pickle.loads(content)


def processor() -> str:
    """Machine type and BLAS: others may round differently."""
    found = {
        f"{pool.get('internal_api')} {pool.get('version')} {pool.get('architecture', '')}".strip()
        for pool in threadpool_info()
        if pool.get("user_api") == "blas"
    }
    return ", ".join([platform.machine(), *sorted(found)])


def look(code: str, briefing: bytes) -> Fit | str:
    """Whether this worker can run tasks of a study, or why not."""
    session = _session(code, briefing)
    if isinstance(session, str):
        return session
    name = str(require("distributed", extra="dask").get_worker().name)
    return Fit(name, platform.node(), processor(), session.shares)


def take(
    code: str, briefing: bytes, task: bytes, needs: Mapping[str, bytes]
) -> tuple[Ended, bytes | None]:
    """Run a task; ``needs`` are results that it reads, if this worker does not see the client's."""
    session = _session(code, briefing)
    if isinstance(session, str):
        raise RunError("a worker of the cluster has changed", where=platform.node(), got=session)
    return session.take(unpacked(task), needs)


class Session:
    """One run, as this worker process sees it. Every thread has its own workspace."""

    def __init__(self, briefing: Briefing) -> None:
        self._briefing = briefing
        self._local = threading.local()
        self.shares = _shares_results(briefing)

    def take(self, task: Any, needs: Mapping[str, bytes]) -> tuple[Ended, bytes | None]:
        """Run a task, unless its result exists: the worker before may have died before it could report it."""
        with _lock:
            _one_thread.hold()
        if not hasattr(self._local, "workspace"):
            self._local.workspace = self._briefing.setup.workspace()
        store = self._briefing.store
        try:
            if not self.shares:
                memory = MemoryTasks({key: bundle.unpack(needs[key], key) for key in needs})
                ended = perform(task, self._local.workspace, memory)
                if not isinstance(ended, TaskRecord):
                    return ended, None
                content = bundle.pack(task.key, memory.frames[task.key], store.mark)
                return replace(ended, n_bytes=len(content)), content
            if store.fault(task.key) is None:
                return kept(task), None
            results = SharedTasks(store.shelf, store.mark, self._briefing.probe)
            return perform(task, self._local.workspace, results), None
        except LPactError as error:  # of the store; a task's own errors are caught in `perform`
            raise error.at(f"{error.where}, on {platform.node()}") from error


@dataclass(frozen=True)
class SharedTasks(TaskStore):
    """The client's results; nothing is written after the run has ended, which would bring its folder back."""

    probe: str = ""

    def save(self, key: str, frames: Mapping[str, pl.DataFrame]) -> int:
        """Store the frames of a finished task while the run lasts."""
        if self.shelf.size(self.probe) is None:
            raise RunError("the run has ended", where=self.shelf.where(self.probe))
        return super().save(key, frames)


def _session(code: str, briefing: bytes) -> Session | str:
    with _lock:
        return _open(code, briefing)


@lru_cache(maxsize=KEPT_SESSIONS)
def _open(code: str, briefing: bytes) -> Session | str:
    """The session of a run, or why this worker must not take part."""
    if (own := code_digest()) != code:
        package = Path(sys.modules["lpact"].__file__ or "").parent
        return f"lpact's code is {own} there ({package}) and {code} here"
    _one_thread.hold()
    made: Briefing = unpacked(briefing)
    try:
        found = made.setup.other_software()
        if not found:
            check_device(made.setup.config)
            found += _other_sources(made.setup)
        return "; ".join(found) or Session(made)
    except (LPactError, OSError) as error:
        return str(error)


def _other_sources(setup: Setup) -> Iterator[str]:
    """Copies of datasets and features that differ from the client's; the client's own files are not read again."""
    copied = setup.workspace().check_sources()
    if setup.seen and not copied:
        return
    # Without the client's fingerprints, so that they are computed here.
    workspace = Workspace(setup.config, setup.settings)
    for name, path in setup.settings.paths.items():
        there, here = workspace.fingerprint(name), setup.fingerprints.get(name)
        if there != here:
            yield (
                f"the files of dataset '{name}' in {path} on {platform.node()} differ from the client's "
                f"(fingerprint {there} there and {here} here)"
            )
    for model, _, stimulus in unready(workspace):
        yield (
            f"features of model '{model}' for '{stimulus.id}' are not complete in {setup.settings.features} on "
            f"{platform.node()}: copy or share that folder"
        )


def _shares_results(briefing: Briefing) -> bool:
    """Whether this worker reads and writes results where the client does.

    If it does not see the client's folder, results travel through the scheduler. A store with a URL must be the same
    for all: `RunError`.
    """
    shelf, own = briefing.store.shelf, f"{briefing.probe}-{uuid.uuid4().hex}"
    is_folder = isinstance(shelf, FolderShelf)
    try:
        seen = shelf.size(briefing.probe) is not None
        if seen:
            shelf.write(own, b"")
            shelf.remove(own)
    except RunError:
        if is_folder:
            return False
        raise
    if not seen and not is_folder:
        raise RunError(
            "the store for results is not the client's",
            where=shelf.where(briefing.probe),
            got="a store without the file that the client has just written",
            expected="the same store on every machine",
            remedy="check that the address in 'run.tasks' leads to one store from every machine",
        )
    return seen
