"""Tasks on a Dask cluster: the client's side.

A few tasks a worker thread are handed out at a time, so that neither client nor scheduler holds a whole study. Workers
that see the client's results write there; from others results come back through the scheduler. A task whose worker is
lost is run elsewhere; one that loses worker after worker is run alone at last, and given up when that worker dies too.
"""

from __future__ import annotations

import pickle
import queue
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lpact.errors import LPactError, RunError
from lpact.extras import require
from lpact.run.executors import dask_entry
from lpact.run.executors.base import Ended, failure
from lpact.run.executors.dask_crowd import Crowd, Note, connected
from lpact.run.executors.dask_terms import Answer, Briefing, Done, Lacking, Unfit
from lpact.run.tasks import Task
from lpact.run.workspace import Workspace
from lpact.store import TaskStore, code_digest

IN_HAND = 3
"""Tasks handed out a worker thread: the one at work and the next ones."""

WAIT_S = 0.5
"""Seconds between two looks around while no task ends."""

MOST_ATTEMPTS = 10
"""Times that a task is handed out again for reasons that are not its own."""


@dataclass
class _Handed:
    """A task that was handed out. ``alone``: nothing else runs meanwhile. ``permitted``: workers it is bound to."""

    task: Task
    future: Any
    alone: bool = False
    permitted: frozenset[str] = field(default_factory=frozenset)


class OnDask:
    """Runs tasks on a Dask cluster; use it as a context manager. ``lost`` is told of tasks whose worker was lost."""

    def __init__(
        self,
        client: Any,
        workspace: Workspace,
        store: TaskStore,
        *,
        lost: Callable[[list[Task]], None],
        note: Note,
    ) -> None:
        self._client = client
        self._store = store
        self._lost = lost
        self._note = note
        self._briefing = Briefing.of(workspace, store)
        self._asked = (code_digest(), self._briefing.packed())
        self._crowd = Crowd(client, *self._asked, note=note, patience_s=workspace.run.patience_s)
        self._handed: dict[str, _Handed] = {}
        self._attempts: Counter[str] = Counter()
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._deaths: queue.SimpleQueue[set[str]] = queue.SimpleQueue()

    @property
    def workers(self) -> int:
        """Tasks that can run at a time, as of now."""
        return max(1, self._crowd.n_threads)

    def __enter__(self) -> OnDask:
        self._store.shelf.write(self._briefing.probe, b"")
        try:
            self._client.subscribe_topic("all", self._hear)
            self._crowd.assemble()
        except BaseException:
            self._store.shelf.remove(self._briefing.probe)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._cancel()
        self._store.shelf.remove(self._briefing.probe)

    def run(self, tasks: Iterable[Task]) -> Iterator[Ended]:
        """Run tasks as workers get free; the order in which they end is not fixed."""
        waiting, suspects = iter(tasks), deque[Task]()
        try:
            while True:
                self._hand_out(waiting, suspects)
                if not self._handed:
                    return
                for future in self._wait():
                    yield from self._settle(future, suspects)
                yield from self._after_deaths()
                self._crowd.refresh()
                self._free_the_stranded()
        finally:
            self._cancel()

    def _hand_out(self, waiting: Iterator[Task], suspects: deque[Task]) -> None:
        while len(self._handed) < IN_HAND * self.workers:
            if (task := next(waiting, None)) is None:
                break
            self._submit(task)
        if suspects and not self._handed:
            self._submit(suspects.popleft(), alone=True)

    def _submit(
        self,
        task: Task,
        parcels: dict[str, bytes] | None = None,
        *,
        near: str | None = None,
        alone: bool = False,
    ) -> None:
        """Hand a task out; ``near`` names a worker that should take it, if it can."""
        key = f"{task.name.partition('/')[0]}-{uuid.uuid4().hex}"
        permitted = self._crowd.permitted
        future = self._client.submit(
            dask_entry.take,
            *self._asked,
            pickle.dumps(task),
            parcels or {},
            key=key,
            pure=False,
            workers=permitted if permitted is not None else [near] if near else None,
            allow_other_workers=permitted is None and near is not None,
        )
        self._handed[key] = _Handed(task, future, alone, frozenset(permitted or ()))
        future.add_done_callback(self._ended.put)

    def _wait(self) -> list[Any]:
        """Futures that have ended; none if that takes long."""
        ended: list[Any] = []
        try:
            ended.append(self._ended.get(timeout=WAIT_S))
            while True:
                ended.append(self._ended.get_nowait())
        except queue.Empty:
            pass
        return [future for future in ended if future.key in self._handed]

    def _settle(self, future: Any, suspects: deque[Task]) -> Iterator[Ended]:
        """What a future has brought: a task's end, or a reason to hand the task out again."""
        if future.status not in ("finished", "error", "cancelled"):
            # The worker was lost with the answer; Dask computes it again.
            future.add_done_callback(self._ended.put)
            return
        handed = self._handed.pop(future.key)
        if future.status == "error":
            yield from self._after_error(handed, future.exception(), suspects)
        elif future.status == "cancelled":
            connected(self._client, lambda: None)
            yield from self._again(handed, "the cluster has cancelled it")
        else:
            yield from self._answered(handed, connected(self._client, future.result))
        future.release()

    def _answered(self, handed: _Handed, answer: Answer) -> Iterator[Ended]:
        if isinstance(answer, Done):
            if answer.content is not None:
                self._store.put(handed.task.key, answer.content)
            yield answer.ended
        elif isinstance(answer, Lacking):
            parcels = {key: self._store.content(key) for key in answer.keys}
            yield from self._again(
                handed, "it was sent what it needs, in vain", parcels, near=answer.address
            )
        elif isinstance(answer, Unfit):
            self._crowd.refuse(answer)
            self._crowd.refresh(now=True)
            yield from self._again(handed, "workers do not fit the run")

    def _again(
        self, handed: _Handed, why: str, parcels: dict[str, bytes] | None = None, near: str = ""
    ) -> Iterator[Ended]:
        """Hand a task out again, unless that was done too often."""
        self._attempts[handed.task.key] += 1
        if self._attempts[handed.task.key] > MOST_ATTEMPTS:
            yield failure(handed.task, _in_vain(handed.task, why), "no worker")
        else:
            self._submit(handed.task, parcels, near=near or None, alone=handed.alone)

    def _after_error(
        self, handed: _Handed, error: BaseException, suspects: deque[Task]
    ) -> Iterator[Ended]:
        """An error that the task's own code did not catch: of the cluster, the place for results, or the worker."""
        killed = require("distributed", extra="dask").KilledWorker
        if isinstance(error, killed):
            if handed.alone:
                yield failure(handed.task, _killed(handed.task), "workers that died")
            else:
                suspects.append(handed.task)
        elif isinstance(error, LPactError):
            raise error
        elif self._crowd.look_again():
            yield from self._again(handed, "workers do not fit the run")
        else:
            yield failure(handed.task, error, "a worker of the cluster")

    def _hear(self, event: tuple[float, Any]) -> None:
        """Called by Dask, in another thread, about everything that happens on the cluster."""
        told = event[1]
        if (
            isinstance(told, dict)
            and told.get("action") == "remove-worker"
            and not told.get("expected")
        ):
            self._deaths.put(set(told.get("processing-tasks", ())))

    def _after_deaths(self) -> Iterator[Ended]:
        """Tell of tasks whose worker was lost; one that ran alone is not tried again."""
        while not self._deaths.empty():
            keys = self._deaths.get()
            hit = {key: self._handed[key] for key in sorted(keys & self._handed.keys())}
            if hit:
                self._lost([handed.task for handed in hit.values()])
            for key, handed in hit.items():
                if handed.alone:
                    del self._handed[key]
                    self._client.cancel([handed.future], force=True)
                    yield failure(handed.task, _killed(handed.task), "workers that died")

    def _free_the_stranded(self) -> None:
        """Tasks that were bound to workers which are all gone are handed out to those that are there."""
        for key, handed in list(self._handed.items()):
            if handed.permitted and handed.permitted.isdisjoint(self._crowd.threads):
                del self._handed[key]
                self._client.cancel([handed.future], force=True)
                self._submit(handed.task, alone=handed.alone)

    def _cancel(self) -> None:
        """Leave nothing on the cluster."""
        futures = [handed.future for handed in self._handed.values()]
        self._handed.clear()
        if futures and self._client.status == "running":
            self._client.cancel(futures, force=True)


def _killed(task: Task) -> RunError:
    return RunError(
        "workers of the cluster died",
        where=f"task {task.name}",
        got="one worker after the other, the last with this task alone",
        expected="workers that live until the run ends",
        remedy="memory may be short: see `lpact plan`, give workers more (--memory-limit), or lower "
        "readout.memory_gib; then run again to resume",
    )


def _in_vain(task: Task, why: str) -> RunError:
    return RunError(
        "a task could not be placed on the cluster",
        where=f"task {task.name}",
        got=f"{MOST_ATTEMPTS} attempts; at last: {why}",
        expected="a worker that runs it",
        remedy="look at the logs of the workers, then run again to resume",
    )
