"""Questions to the scheduler. None of them waits for a task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from lpact.errors import RunError

ASK_S = 120.0
"""Seconds after which a scheduler that does not answer counts as gone."""


def connected(client: Any, ask: Callable[[], Any]) -> Any:
    """What the scheduler answers; one that is gone is a `RunError`."""
    try:
        if client.status == "running":
            return ask()
        problem = f"connection is {client.status}"
    except (OSError, TimeoutError) as error:
        problem = str(error) or type(error).__name__
    raise RunError(
        "the scheduler of the cluster is gone",
        where=client.scheduler.address if client.scheduler else "scheduler",
        got=problem,
        expected="a scheduler that lives as long as the run",
        remedy="start scheduler and workers again, then run again: what was finished is kept",
    )


def threads_of_workers(client: Any, *, running: bool = False) -> dict[str, int]:
    """Threads of every worker that is there, by address; ``running`` leaves out those that take no tasks now."""
    scheduler = client.scheduler
    question = scheduler.ncores_running if running else scheduler.ncores
    return dict(connected(client, lambda: client.sync(question, callback_timeout=ASK_S)))


class Fetch:
    """A question for the answers of tasks that have ended.

    It tells which answers are not there any more. Dask's own `gather` would wait until their tasks have run again,
    which may be never.
    """

    def __init__(self, client: Any, keys: Sequence[str]) -> None:
        self.keys = tuple(keys)
        self._client = client
        self._asked = asyncio.run_coroutine_threadsafe(self._ask(), client.loop.asyncio_loop)

    @property
    def is_over(self) -> bool:
        """Whether the scheduler has answered."""
        return self._asked.done()

    def found(self) -> tuple[dict[str, Any], frozenset[str]]:
        """Answers by key, and keys whose answers are lost; others are to be asked for again."""
        told = connected(self._client, self._asked.result)
        if told["status"] == "OK":
            return told["data"], frozenset()
        return {}, frozenset(told["keys"])

    def when_over(self, tell: Callable[[Fetch], None]) -> None:
        """Have somebody told, in another thread."""
        self._asked.add_done_callback(lambda _: tell(self))

    def cancel(self) -> None:
        """Forget the question."""
        self._asked.cancel()

    async def _ask(self) -> Any:
        return await self._client.scheduler.gather(keys=list(self.keys))
