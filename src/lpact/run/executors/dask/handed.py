"""Tasks on their way to a cluster: those that wait, and those that were handed out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lpact.analyses.base import Task
from lpact.errors import RunError

TOGETHER_S = 0.1
"""Short tasks are handed out together, as many as take this long."""

MOST_TOGETHER = 8


@dataclass
class Handed:
    """Tasks that were handed out. ``bound``: workers that alone may take them, of those still there; empty for all.

    ``alone``: nothing else runs meanwhile. ``sent``: what they need was sent with them. ``n_deaths`` counts workers
    that died with them.
    """

    tasks: list[Task]
    future: Any
    bound: frozenset[str]
    alone: bool
    sent: bool
    n_deaths: int = 0


class Waiting:
    """Tasks that wait, taken one by one or, where their kind is known to be short, several at a time.

    Those that came back go first; suspects, whose workers died, go last and one by one.
    """

    def __init__(
        self, tasks: Iterable[Task] = (), slowest: dict[type, float] | None = None
    ) -> None:
        self._tasks = iter(tasks)
        self._slowest = slowest if slowest is not None else {}
        self._next = next(self._tasks, None)
        self._returned: deque[list[Task]] = deque()
        self.suspects: deque[Task] = deque()

    @property
    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self._next is None and not self._returned and not self.suspects

    def put_back(self, tasks: list[Task], *, alone: bool) -> None:
        """Have tasks wait again."""
        if alone:
            self.suspects.extend(tasks)
        elif tasks:
            self._returned.append(tasks)

    def take(self) -> list[Task]:
        """The next tasks, all of one kind; none at the end, or where only suspects are left."""
        if self._returned:
            return self._returned.popleft()
        taken: list[Task] = []
        while (task := self._next) is not None:
            if taken and (
                type(task.job) is not type(taken[0].job) or len(taken) >= self._together(task)
            ):
                break
            taken.append(task)
            self._next = next(self._tasks, None)
        return taken

    def _together(self, task: Task) -> int:
        slowest = self._slowest.get(type(task.job), TOGETHER_S)
        return min(MOST_TOGETHER, int(TOGETHER_S / max(slowest, 1e-6)))


def killed() -> RunError:
    """The error of a task whose workers died; its name stands in its record, so that errors alike are told once."""
    return RunError(
        "workers of the cluster died",
        where="workers that ran the task",
        got="one worker after the other, the last with the task alone",
        expected="workers that live until the run ends",
        remedy="memory may be short: see `lpact plan`, give workers more (--memory-limit), then run again to resume; "
        "readout.memory_gib can be lowered too, but that is another configuration: everything is computed again",
    )


def in_vain(why: str, n_attempts: int) -> RunError:
    """The error of a task that no worker took."""
    return RunError(
        "a task could not be placed on the cluster",
        where="workers of the cluster",
        got=f"{n_attempts} attempts; at last: {why}",
        expected="a worker that runs it",
        remedy="look at the logs of the workers, then run again to resume",
    )


def not_whole(task: Task, where: str, fault: str) -> RunError:
    """The error of a result that another task needs, and that cannot be sent to it."""
    return RunError(
        "the result of a finished task is damaged",
        where=where,
        got=fault or "nothing",
        expected=f"the file as lpact wrote it, for task {task.name}",
        remedy="run again: it is computed anew",
    )
