"""The worker's side of a run on a cluster: one session a run, and how a task is run in it."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Collection, Mapping
from pathlib import Path

import polars as pl

from lpact.analyses.base import Task
from lpact.errors import LPactError, RunError
from lpact.run.executors.base import perform
from lpact.run.executors.dask.fitness import other_code, shares_results, this_worker, unfitness
from lpact.run.executors.dask.terms import (
    Answer,
    Briefing,
    Done,
    Fit,
    Lacking,
    Unfit,
    processor,
    unpacked,
)
from lpact.run.executors.threads import OneThread
from lpact.run.records import TaskRecord
from lpact.store import FolderShelf, TaskStore, bundle
from lpact.store.tasks import file_name

KEPT_SESSIONS = 2
"""Runs that a worker process stays ready for."""

KEPT_BY_ANOTHER = "another worker"
"""Who has made a result that a task finds when it is about to begin."""

_lock = threading.RLock()
_one_thread = OneThread()  # held for good: the threads of a worker share the libraries
_sessions: OrderedDict[str, Session | Unfit] = OrderedDict()


def look(code: str, briefing: bytes) -> Fit | Unfit:
    """Say whether this worker can take tasks of a run."""
    session = _session(code, briefing)
    return session if isinstance(session, Unfit) else session.about()


def take(
    code: str, briefing: bytes, tasks: bytes, parcels: Mapping[str, bytes]
) -> list[Answer] | Unfit:
    """Run tasks one after the other, if this worker is fit for them; each if all that it needs is here."""
    session = _session(code, briefing)
    if isinstance(session, Unfit):
        return session
    try:
        session.receive(parcels)
    except LPactError as error:  # this worker's own disk, which no other worker has
        what = f"it cannot keep what tasks need: {error}"
        return Unfit(str(this_worker().name), this_worker().address, what)
    return [session.take(task) for task in unpacked(tasks)]


class Session:
    """One run, as this process sees it. Every thread has a workspace of its own.

    What it received lies in a folder, which is removed when nothing uses the session any more, or the process ends.
    """

    def __init__(self, briefing: Briefing) -> None:
        self._briefing = briefing
        self._local = threading.local()
        self.shares = shares_results(briefing)
        folder = tempfile.mkdtemp(prefix="lpact-", dir=this_worker().local_directory)
        self.received = TaskStore.at(Path(folder))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def about(self) -> Fit:
        """Tell the client of this worker."""
        from dask.system import CPU_COUNT

        worker = this_worker()
        affinity = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
        return Fit(
            worker=str(worker.name),
            address=worker.address,
            host=platform.node(),
            threads=worker.state.nthreads,
            cores=tuple(sorted(affinity)),
            n_cores=CPU_COUNT,
            processor=processor(),
            shares=self.shares,
        )

    def receive(self, parcels: Mapping[str, bytes]) -> None:
        """Keep results that tasks need."""
        for key, content in parcels.items():
            if not self.received.has(key):
                self.received.put(key, content)

    def take(self, task: Task) -> Done | Lacking:
        """Run a task, unless its result is there: its worker may have died before it could say so."""
        if self.shares and self._briefing.store.fault(task.key) is None:
            return Done(TaskRecord(task.name, task.key, 0.0, 0, 0, KEPT_BY_ANOTHER), None)
        desk = Desk(self._briefing, self.received, shares=self.shares)
        if lacking := tuple(key for key in task.job.needs if not desk.has(key)):
            return Lacking(this_worker().address, lacking)
        with _lock:
            _one_thread.hold()
        if not hasattr(self._local, "workspace"):
            self._local.workspace = self._briefing.setup.workspace()
        try:
            ended = perform(task, self._local.workspace, desk)
        except LPactError as error:  # of the place for results; those of the task are caught before
            where = f"{error.where}, on worker {this_worker().name} of {platform.node()}"
            raise RunError(
                error.what,
                where=where,
                got=error.got,
                expected=error.expected,
                remedy=error.remedy,
            ) from error
        return Done(ended, desk.content)


class Desk:
    """Results as a task on a worker finds and leaves them.

    Where the worker cannot write to the client's place, ``content`` is what the task left.
    """

    def __init__(self, briefing: Briefing, received: TaskStore, *, shares: bool) -> None:
        self._store = briefing.store if shares else None
        self._probe = briefing.probe
        self._mark = briefing.store.mark
        self._received = received
        self.content: bytes | None = None

    def has(self, key: str) -> bool:
        """Whether a result can be read here."""
        return self._place(key).shelf.size(file_name(key)) is not None

    def save(self, key: str, frames: Mapping[str, pl.DataFrame]) -> int:
        """Keep a task's frames: in the client's place, or to be sent there."""
        if self._store is None:
            self.content = bundle.pack(key, frames, self._mark)
            return len(self.content)
        shelf = self._store.shelf
        if isinstance(shelf, FolderShelf) and shelf.size(self._probe) is None:
            # A working folder that was removed would come back, with this result alone.
            raise RunError("the run that asked for this task has ended", where=str(shelf.root))
        return self._store.save(key, frames)

    def load(self, key: str, names: Collection[str] | None = None) -> dict[str, pl.DataFrame]:
        """Return frames of a finished task."""
        return self._place(key).load(key, names)

    def names(self, key: str) -> tuple[str, ...]:
        """Return the names of a task's frames."""
        return self._place(key).names(key)

    def fault(self, key: str) -> str | None:
        """Return what is wrong with a result."""
        return self._place(key).fault(key)

    def remove(self, key: str) -> None:
        """Forget a task's result."""
        self._place(key).remove(key)

    def _place(self, key: str) -> TaskStore:
        if self._store is None or self._received.shelf.size(file_name(key)) is not None:
            return self._received
        return self._store


def _session(code: str, briefing: bytes) -> Session | Unfit:
    """The session of a run; opened once, by whichever thread needs it first."""
    name = hashlib.sha256(code.encode() + briefing).hexdigest()
    with _lock:
        if name not in _sessions:
            _sessions[name] = _open(code, briefing)
            while len(_sessions) > KEPT_SESSIONS:
                _sessions.popitem(last=False)
        return _sessions[name]


def _open(code: str, packed: bytes) -> Session | Unfit:
    """Nothing is unpacked before the code is known to be the same."""
    worker = this_worker()
    unfit = other_code(code)
    if not unfit:
        briefing: Briefing = unpacked(packed)
        _one_thread.hold()
        try:
            unfit = unfitness(briefing)
            if not unfit:
                return Session(briefing)
        except (LPactError, OSError) as error:
            unfit = str(error)
    return Unfit(str(worker.name), worker.address, unfit)
