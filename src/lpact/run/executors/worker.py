"""The worker's side of a run on a Dask cluster: whether it computes the same as the client, and how it runs a task.

Nothing else of lpact is imported before a function is called: a worker that has not run a task yet has not loaded
Polars, so it can still be limited to one thread.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpact.extras import require

if TYPE_CHECKING:
    from lpact.run.executors.local import Ended, Setup

KEPT_RUNS = 2
"""Runs that a worker process stays ready for."""

_lock = threading.RLock()
_local = threading.local()


@dataclass(frozen=True)
class Fit:
    """A worker that can run tasks."""

    worker: str
    host: str
    processor: str


def packed(value: object) -> bytes:
    """An object as Dask sends it; such bytes are never stored in a file."""
    content: bytes = require("distributed", extra="dask").protocol.pickle.dumps(value)
    return content


def processor() -> str:
    """Machine type and BLAS: others may round differently."""
    from threadpoolctl import threadpool_info

    found = {
        f"{pool.get('internal_api')} {pool.get('version')} {pool.get('architecture', '')}".strip()
        for pool in threadpool_info()
        if pool.get("user_api") == "blas"
    }
    return ", ".join([platform.machine(), *sorted(found)])


def check_worker(code: str, setup: bytes) -> Fit | str:
    """Whether this worker can run tasks of a study, or why not."""
    opened = _open(code, setup)
    if isinstance(opened, str):
        return opened
    name = str(require("distributed", extra="dask").get_worker().name)
    return Fit(name, platform.node(), processor())


def run_task(code: str, setup: bytes, mark: str, task: bytes, needs: Mapping[str, bytes]) -> tuple[Ended, bytes | None]:
    """Run a task, from the results that it ``needs``; returns its record, and its result unless it failed."""
    opened = _open(code, setup)
    from lpact.errors import RunError, TableError
    from lpact.run.executors.local import TaskRecord, failure, perform
    from lpact.store.tasks import MemoryTasks, pack, unpack

    if isinstance(opened, str):
        raise RunError("a worker of the cluster has changed", where=platform.node(), got=opened)
    with _lock:
        _one_thread().hold()
    if getattr(_local, "setup", None) is not opened:  # every thread has its own workspace
        _local.setup, _local.workspace = opened, opened.workspace()
    own = _unpacked(task)
    memory = MemoryTasks({key: unpack(content, key) for key, content in needs.items()})
    ended = perform(own, _local.workspace, memory)
    if not isinstance(ended, TaskRecord):
        return ended, None
    try:
        content = pack(own.key, memory.frames[own.key], mark)
    except TableError as error:
        return failure(own, error), None
    return replace(ended, n_bytes=len(content)), content


def _unpacked(content: bytes) -> Any:
    """What the client packed; only after the code is known to be the same."""
    return require("distributed", extra="dask").protocol.pickle.loads(content)


def _open(code: str, setup: bytes) -> Setup | str:
    for name in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    with _lock:
        return _opened(code, setup)


@lru_cache(maxsize=KEPT_RUNS)
def _opened(code: str, setup: bytes) -> Setup | str:
    """The setup of a run, or why this worker must not take part."""
    from lpact.errors import LPactError
    from lpact.run.audit import check_device
    from lpact.store import code_digest

    if (own := code_digest()) != code:
        package = Path(sys.modules["lpact"].__file__ or "").parent
        return f"lpact's code is {own} there ({package}) and {code} here"
    _one_thread().hold()
    made: Setup = _unpacked(setup)
    try:
        found = made.other_software()
        if not found:
            check_device(made.config)
            found += _other_sources(made)
    except (LPactError, OSError) as error:
        return str(error)
    return "; ".join(found) or made


@lru_cache
def _one_thread() -> Any:
    """The limit of this process; never lifted, because the threads of a worker share the libraries."""
    from lpact.run.executors.local import OneThread

    return OneThread()


def _other_sources(setup: Setup) -> Iterator[str]:
    """Copies of datasets and features that differ from the client's; the client's own files are not read again."""
    from lpact.inputs.workspace import Workspace
    from lpact.run.audit import unready

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
