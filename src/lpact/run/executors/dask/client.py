"""Tasks on a Dask cluster: the client's side.

A few tasks a worker thread are handed out at a time, so that neither client nor scheduler holds a whole study. Workers
that see the client's results write there; from others results come back through the scheduler. A task whose worker is
lost is run elsewhere, unless its result is there; one that loses worker after worker is run alone at last, and given up
when that worker dies too.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lpact.analyses.base import Task
from lpact.errors import LPactError
from lpact.extras import require
from lpact.inputs.workspace import Workspace
from lpact.run.executors.base import Ended, failure
from lpact.run.executors.dask import entry
from lpact.run.executors.dask.ask import connected
from lpact.run.executors.dask.crowd import Crowd, Doubt, Note
from lpact.run.executors.dask.handed import Handed, Waiting, in_vain, killed, not_whole
from lpact.run.executors.dask.inbox import Death, Inbox
from lpact.run.executors.dask.terms import Answer, Briefing, Lacking, Unfit, packed
from lpact.run.records import TaskRecord
from lpact.store import TaskStore, code_digest
from lpact.store.tasks import file_name

IN_HAND = 3
"""Handed out a worker thread: the task at work and the next ones; short ones together."""

WAIT_S = 0.5
"""Seconds between two looks around while no task ends."""

MOST_ATTEMPTS = 10
"""Times that a task is handed out again for reasons that are not its own."""

MOST_DEATHS = 3
"""Workers that a task may lose, one after the other, while no other worker is there; then it is run alone."""

DEAD = "workers that died"


@dataclass(frozen=True)
class Puzzle:
    """Tasks that ended with an error that may be their worker's; ``doubt`` says when that is known."""

    handed: Handed
    error: BaseException
    doubt: Doubt


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
        self._briefing = Briefing.of(workspace, store)
        self._asked = (code_digest(), self._briefing.packed())
        self._crowd = Crowd(client, *self._asked, note=note, patience_s=workspace.run.patience_s)
        self._inbox = Inbox(client)
        self._waiting = Waiting()
        self._handed: dict[str, Handed] = {}
        self._puzzles: list[Puzzle] = []
        self._attempts: Counter[str] = Counter()
        self._deaths: Counter[str] = Counter()
        self._lacking: set[str] = set()
        self._slowest: dict[type, float] = {}

    @property
    def workers(self) -> int:
        """Tasks that can run at a time, as of now."""
        return max(1, self._crowd.n_threads)

    def __enter__(self) -> OnDask:
        self._store.shelf.write(self._briefing.probe, b"")
        try:
            self._inbox.open()
            self._crowd.assemble()
        except BaseException:
            self._store.shelf.remove(self._briefing.probe)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._cancel()
        self._inbox.close()
        self._store.shelf.remove(self._briefing.probe)

    def run(self, tasks: Iterable[Task]) -> Iterator[Ended]:
        """Run tasks as workers get free; the order in which they end is not fixed."""
        self._waiting = Waiting(tasks, self._slowest)
        try:
            while True:
                self._hand_out()
                if not self._handed and not self._puzzles and self._waiting.is_over:
                    return
                arrived = self._inbox.read(WAIT_S)
                # Deaths come before what became of the tasks afterwards, as the scheduler tells of them.
                for death in arrived.deaths:
                    yield from self._after_death(death)
                for future in arrived.ended:
                    yield from self._settle(future)
                for key, answers in arrived.answers.items():
                    if (handed := self._handed.pop(key, None)) is not None:
                        yield from self._answered(handed, answers)
                        handed.future.release()
                for key in arrived.missing:
                    yield from self._answer_lost(key)
                self._crowd.refresh()
                yield from self._solve()
        finally:
            self._cancel()

    def _hand_out(self) -> None:
        if any(handed.alone for handed in islice(self._handed.values(), 1)):
            return
        permitted = self._crowd.permitted
        if permitted is None or permitted:
            while len(self._handed) < IN_HAND * self.workers and (tasks := self._waiting.take()):
                self._submit(tasks, permitted)
        # A suspect is bound to one worker: else Dask would start it elsewhere at once when that worker dies, and it
        # could take another's worker with it after it was given up.
        suspects = self._waiting.suspects
        if suspects and not self._handed and (address := self._crowd.somebody()):
            self._submit([suspects.popleft()], [address], alone=True)

    def _submit(self, tasks: list[Task], bound: list[str] | None, *, alone: bool = False) -> None:
        """Hand tasks out, with all that they need if their worker lacked some of it: then any worker can run them."""
        key = f"{tasks[0].name.partition('/')[0]}-{uuid.uuid4().hex}"
        parcels = {
            need: self._content(task, need)
            for task in tasks
            if task.key in self._lacking
            for need in task.job.needs
        }
        future = self._client.submit(
            entry.take,
            *self._asked,
            packed(tasks),
            parcels,
            key=key,
            pure=False,
            workers=bound,
            allow_other_workers=False,
        )
        self._handed[key] = Handed(tasks, future, frozenset(bound or ()), alone, bool(parcels))
        self._inbox.watch(future)

    def _content(self, task: Task, need: str) -> bytes:
        if (fault := self._store.fault(need)) is not None:
            raise not_whole(task, self._store.shelf.where(file_name(need)), fault)
        return self._store.content(need)

    def _settle(self, future: Any) -> Iterator[Ended]:
        """What to do about a future that has ended: fetch its answer, or hand its tasks out again."""
        key, status = future.key, future.status
        if key not in self._handed:
            return
        if status == "finished":
            self._inbox.want(key)
        elif status == "error":
            yield from self._after_error(self._handed.pop(key), future.exception())
            future.release()
        elif status == "cancelled":
            connected(self._client, lambda: None)
            yield from self._again(self._recall(key), "the cluster has cancelled it")
        else:
            yield from self._answer_lost(key)

    def _answered(self, handed: Handed, answers: list[Answer] | Unfit) -> Iterator[Ended]:
        if isinstance(answers, Unfit):
            self._crowd.refuse(answers)
            self._crowd.refresh(now=True)
            yield from self._again(handed, "workers do not fit the run")
            return
        for task, answer in zip(handed.tasks, answers, strict=True):
            if isinstance(answer, Lacking):
                if not handed.sent:
                    self._lacking.add(task.key)
                    self._waiting.put_back([task], alone=handed.alone)
                else:
                    why = "it was sent what it needs, in vain"
                    yield from self._again(handed, why, [task])
                continue
            if answer.content is not None:
                self._store.put(task.key, answer.content)
            if isinstance(answer.ended, TaskRecord) and answer.ended.n_bytes:
                # One that was found finished says nothing of the time that its kind takes.
                kind = type(task.job)
                self._slowest[kind] = max(self._slowest.get(kind, 0.0), answer.ended.seconds)
            yield answer.ended

    def _answer_lost(self, key: str) -> Iterator[Ended]:
        """Tasks had ended, and their worker died before it was asked for their answer.

        Dask would run them again by itself, unasked and without a look at the results.
        """
        if key in self._handed:
            why = "their worker was lost with their answer"
            yield from self._again(self._recall(key), why, tell=True)

    def _again(
        self, handed: Handed, why: str, tasks: list[Task] | None = None, *, tell: bool = False
    ) -> Iterator[Ended]:
        """Hand tasks out again, unless that was done too often or they are finished; ``tell``: they were lost."""
        left = yield from self._kept(handed.tasks if tasks is None else tasks)
        if tell and left:
            self._lost(left)
        self._attempts.update(task.key for task in left)
        for task in left:
            if self._attempts[task.key] > MOST_ATTEMPTS:
                yield failure(task, in_vain(why, MOST_ATTEMPTS), "no worker")
        left = [task for task in left if self._attempts[task.key] <= MOST_ATTEMPTS]
        self._waiting.put_back(left, alone=handed.alone)

    def _kept(self, tasks: list[Task]) -> Generator[Ended, None, list[Task]]:
        """Tell of tasks whose result was kept, though nobody could say so; returns the others."""
        left = []
        for task in tasks:
            if self._store.fault(task.key) is None:
                yield TaskRecord(task.name, task.key, 0.0, 0, 0, DEAD)
            else:
                left.append(task)
        return left

    def _after_error(self, handed: Handed, error: BaseException) -> Iterator[Ended]:
        """An error that the task's own code did not catch: of the cluster, the place for results, or the worker."""
        if isinstance(error, require("distributed", extra="dask").KilledWorker):
            # The scheduler tells of the last death after it has given up: too late to be heard with the others.
            if handed.n_deaths <= error.allowed_failures:
                self._lost(handed.tasks)
            if handed.alone:
                yield from self._give_up(handed)
            else:
                left = yield from self._kept(handed.tasks)
                self._waiting.put_back(left, alone=True)
        elif isinstance(error, LPactError):
            raise error
        else:
            self._puzzles.append(Puzzle(handed, error, self._crowd.look_again()))

    def _solve(self) -> Iterator[Ended]:
        """Errors that may be of a worker: once one is refused, tasks run again; if none is, the error is theirs."""
        puzzles, self._puzzles = self._puzzles, []
        for puzzle in puzzles:
            guilty = self._crowd.has_refused_since(puzzle.doubt)
            if guilty is None:
                self._puzzles.append(puzzle)
            elif guilty:
                yield from self._again(puzzle.handed, "workers do not fit the run")
            else:
                for task in puzzle.handed.tasks:
                    yield failure(task, puzzle.error, "a worker of the cluster")

    def _after_death(self, death: Death) -> Iterator[Ended]:
        """Tell of tasks whose worker was lost; one that ran alone is not tried again.

        Tasks that were bound to workers which are all gone by now wait again, for those that are there.
        """
        self._crowd.forget(death.address)
        hit = [] if death.expected else sorted(death.keys & self._handed.keys())
        if hit:
            self._lost([task for key in hit for task in self._handed[key].tasks])
        for key in hit:
            handed = self._handed[key]
            handed.n_deaths += 1
            self._deaths.update(task.key for task in handed.tasks)
            if handed.alone and not handed.future.done():
                yield from self._give_up(self._recall(key))
        for key, handed in list(self._handed.items()):
            if death.address in handed.bound:
                handed.bound -= {death.address}
                if not handed.bound and handed.future.status == "pending":
                    left = yield from self._kept(self._recall(key).tasks)
                    dangerous = any(self._deaths[task.key] >= MOST_DEATHS for task in left)
                    self._waiting.put_back(left, alone=handed.alone or dangerous)

    def _give_up(self, handed: Handed) -> Iterator[Ended]:
        left = yield from self._kept(handed.tasks)
        for task in left:
            yield failure(task, killed(), DEAD)

    def _recall(self, key: str) -> Handed:
        """Take tasks back from the cluster."""
        handed = self._handed.pop(key)
        self._client.cancel([handed.future], force=True)
        return handed

    def _cancel(self) -> None:
        """Leave nothing on the cluster."""
        futures = [handed.future for handed in self._handed.values()]
        self._handed.clear()
        self._puzzles.clear()
        self._inbox.forget()
        self._waiting = Waiting()
        if futures and self._client.status == "running":
            self._client.cancel(futures, force=True)
