"""Tasks on their way to a cluster: those that wait, and those that were handed out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lpact.errors import RunError
from lpact.run.tasks import Task

TOGETHER_S = 0.1
"""Short tasks are handed out together, as many as take this long."""

MOST_TOGETHER = 8


@dataclass
class Handed:
    """Tasks that were handed out. ``alone``: nothing else runs meanwhile. ``permitted``: workers they are bound to.

    ``n_deaths`` counts workers that died with them.
    """

    tasks: list[Task]
    future: Any
    alone: bool = False
    permitted: frozenset[str] = field(default_factory=frozenset)
    n_deaths: int = 0


class Waiting:
    """Tasks that wait, taken one by one or, where their kind is known to be short, several at a time."""

    def __init__(self, tasks: Iterable[Task], slowest: dict[type, float]) -> None:
        self._tasks = iter(tasks)
        self._slowest = slowest
        self._next = next(self._tasks, None)

    def take(self) -> list[Task]:
        """The next tasks, all of one kind; none at the end."""
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


def killed(task: Task) -> RunError:
    """The error of a task whose workers died."""
    return RunError(
        "workers of the cluster died",
        where=f"task {task.name}",
        got="one worker after the other, the last with this task alone",
        expected="workers that live until the run ends",
        remedy="memory may be short: see `lpact plan`, give workers more (--memory-limit), or lower "
        "readout.memory_gib; then run again to resume",
    )


def in_vain(task: Task, why: str, n_attempts: int) -> RunError:
    """The error of a task that no worker took."""
    return RunError(
        "a task could not be placed on the cluster",
        where=f"task {task.name}",
        got=f"{n_attempts} attempts; at last: {why}",
        expected="a worker that runs it",
        remedy="look at the logs of the workers, then run again to resume",
    )
