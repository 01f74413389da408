"""Tasks on a Dask cluster: the client's side.

A few tasks a worker thread are handed out at a time, so that neither client nor scheduler holds a whole study. Workers
that see the client's results write there; from others results come back through the scheduler. A task whose worker is
lost is run elsewhere; one that loses worker after worker is run alone at last, and given up when that worker dies too.
"""

from __future__ import annotations

import queue
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from lpact.errors import LPactError
from lpact.extras import require
from lpact.run.executors.base import Ended, failure
from lpact.run.executors.dask import entry
from lpact.run.executors.dask.crowd import Crowd, Note, connected
from lpact.run.executors.dask.handed import Handed, Waiting, in_vain, killed
from lpact.run.executors.dask.terms import Answer, Briefing, Lacking, Unfit, packed
from lpact.run.records import TaskRecord
from lpact.run.tasks import Task
from lpact.run.workspace import Workspace
from lpact.store import TaskStore, code_digest

IN_HAND = 3
"""Handed out a worker thread: the task at work and the next ones; short ones together."""

WAIT_S = 0.5
"""Seconds between two looks around while no task ends."""

MOST_ATTEMPTS = 10
"""Times that a task is handed out again for reasons that are not its own."""


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
        self._handed: dict[str, Handed] = {}
        self._attempts: Counter[str] = Counter()
        self._slowest: dict[type, float] = {}
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
        if self._client.status == "running":
            self._client.unsubscribe_topic("all")
        self._store.shelf.remove(self._briefing.probe)

    def run(self, tasks: Iterable[Task]) -> Iterator[Ended]:
        """Run tasks as workers get free; the order in which they end is not fixed."""
        waiting, suspects = Waiting(tasks, self._slowest), deque[Task]()
        try:
            while True:
                self._hand_out(waiting, suspects)
                if not self._handed:
                    return
                ended = self._wait()
                # Deaths come before what became of the tasks afterwards, as the scheduler tells of them.
                yield from self._after_deaths()
                answers = self._collect(ended)
                for future in ended:
                    yield from self._settle(future, answers, suspects)
                self._crowd.refresh()
                self._free_the_stranded()
        finally:
            self._cancel()

    def _hand_out(self, waiting: Waiting, suspects: deque[Task]) -> None:
        while len(self._handed) < IN_HAND * self.workers and (tasks := waiting.take()):
            self._submit(tasks)
        if suspects and not self._handed:
            self._submit([suspects.popleft()], alone=True)

    def _submit(
        self,
        tasks: list[Task],
        parcels: dict[str, bytes] | None = None,
        *,
        near: str = "",
        alone: bool = False,
    ) -> None:
        """Hand tasks out; ``near`` names a worker that should take them, if it can."""
        key = f"{tasks[0].name.partition('/')[0]}-{uuid.uuid4().hex}"
        permitted = self._crowd.permitted
        future = self._client.submit(
            entry.take,
            *self._asked,
            packed(tasks),
            parcels or {},
            key=key,
            pure=False,
            workers=permitted if permitted is not None else [near] if near else None,
            allow_other_workers=permitted is None and bool(near),
        )
        self._handed[key] = Handed(tasks, future, alone, frozenset(permitted or ()))
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

    def _collect(self, ended: list[Any]) -> dict[str, list[Answer] | Unfit]:
        """Answers by key, all at once: each question to the scheduler takes time."""
        finished = [future for future in ended if future.status == "finished"]
        if not finished:
            return {}
        found = connected(self._client, lambda: self._client.gather(finished, errors="skip"))
        # Those that were lost on the way are left out: then each is asked for by itself.
        if len(found) != len(finished):
            return {}
        return dict(zip((future.key for future in finished), found, strict=True))

    def _settle(
        self, future: Any, answers: dict[str, list[Answer] | Unfit], suspects: deque[Task]
    ) -> Iterator[Ended]:
        """What a future has brought: a task's end, or a reason to hand the task out again."""
        if future.key not in self._handed:
            return
        if future.key not in answers and future.status not in ("finished", "error", "cancelled"):
            # The worker was lost with the answer; Dask computes it again.
            future.add_done_callback(self._ended.put)
            return
        handed = self._handed.pop(future.key)
        if future.key in answers:
            yield from self._answered(handed, answers[future.key])
        elif future.status == "finished":
            yield from self._answered(handed, connected(self._client, future.result))
        elif future.status == "error":
            yield from self._after_error(handed, future.exception(), suspects)
        else:
            connected(self._client, lambda: None)
            yield from self._again(handed.tasks, "the cluster has cancelled it", alone=handed.alone)
        future.release()

    def _answered(self, handed: Handed, answers: list[Answer] | Unfit) -> Iterator[Ended]:
        if isinstance(answers, Unfit):
            self._crowd.refuse(answers)
            self._crowd.refresh(now=True)
            yield from self._again(handed.tasks, "workers do not fit the run", alone=handed.alone)
            return
        for task, answer in zip(handed.tasks, answers, strict=True):
            if isinstance(answer, Lacking):
                parcels = {key: self._store.content(key) for key in answer.keys}
                why = "it was sent what it needs, in vain"
                yield from self._again([task], why, parcels, near=answer.address)
                continue
            if answer.content is not None:
                self._store.put(task.key, answer.content)
            if isinstance(answer.ended, TaskRecord):
                kind = type(task.job)
                self._slowest[kind] = max(self._slowest.get(kind, 0.0), answer.ended.seconds)
            yield answer.ended

    def _again(
        self,
        tasks: list[Task],
        why: str,
        parcels: dict[str, bytes] | None = None,
        *,
        near: str = "",
        alone: bool = False,
    ) -> Iterator[Ended]:
        """Hand tasks out again, unless that was done too often."""
        self._attempts.update(task.key for task in tasks)
        for task in tasks:
            if self._attempts[task.key] > MOST_ATTEMPTS:
                yield failure(task, in_vain(task, why, MOST_ATTEMPTS), "no worker")
        left = [task for task in tasks if self._attempts[task.key] <= MOST_ATTEMPTS]
        if left:
            self._submit(left, parcels, near=near, alone=alone)

    def _after_error(
        self, handed: Handed, error: BaseException, suspects: deque[Task]
    ) -> Iterator[Ended]:
        """An error that the task's own code did not catch: of the cluster, the place for results, or the worker."""
        if isinstance(error, require("distributed", extra="dask").KilledWorker):
            # The scheduler tells of the last death after it has given up: too late to be heard with the others.
            if handed.n_deaths <= error.allowed_failures:
                self._lost(handed.tasks)
            if handed.alone:
                yield from self._give_up(handed)
            else:
                suspects.extend(handed.tasks)
        elif isinstance(error, LPactError):
            raise error
        elif self._crowd.look_again():
            yield from self._again(handed.tasks, "workers do not fit the run", alone=handed.alone)
        else:
            for task in handed.tasks:
                yield failure(task, error, "a worker of the cluster")

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
                self._lost([task for handed in hit.values() for task in handed.tasks])
            for key, handed in hit.items():
                handed.n_deaths += 1
                if handed.alone and not handed.future.done():
                    del self._handed[key]
                    self._client.cancel([handed.future], force=True)
                    yield from self._give_up(handed)

    def _free_the_stranded(self) -> None:
        """Tasks that were bound to workers which are all gone are handed out to those that are there."""
        for key, handed in list(self._handed.items()):
            if handed.permitted and handed.permitted.isdisjoint(self._crowd.threads):
                del self._handed[key]
                self._client.cancel([handed.future], force=True)
                self._submit(handed.tasks, alone=handed.alone)

    def _give_up(self, handed: Handed) -> Iterator[Ended]:
        for task in handed.tasks:
            yield failure(task, killed(task), "workers that died")

    def _cancel(self) -> None:
        """Leave nothing on the cluster."""
        futures = [handed.future for handed in self._handed.values()]
        self._handed.clear()
        if futures and self._client.status == "running":
            self._client.cancel(futures, force=True)
