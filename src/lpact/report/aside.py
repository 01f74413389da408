"""Background processes that turn charts into pictures, and pictures into pixels."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from lpact.errors import RunError

P = ParamSpec("P")
T = TypeVar("T")


def _give_way() -> None:
    """The main process has most to do and comes first."""
    if hasattr(os, "nice"):
        os.nice(5)


class Aside:
    """Does jobs in ``workers`` background processes, or at once where there are none.

    Leaving the block waits for all of them, and raises what one of them raised.
    """

    def __init__(self, workers: int) -> None:
        self._pool = (
            ProcessPoolExecutor(workers, get_context("spawn"), initializer=_give_way)
            if workers
            else None
        )
        self._jobs: list[Future[Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=error is not None)
        if error is None or isinstance(error, BrokenProcessPool):
            try:
                for job in self._jobs:
                    job.result()
            except BrokenProcessPool as broken:
                raise RunError(
                    "a background process of the report died",
                    where="report",
                    got=str(broken),
                    expected="processes that finish their work",
                    remedy="in a script, guard the entry point (if __name__ == '__main__'), or ask for no workers",
                ) from broken

    def do(self, job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Do one job, now or soon."""
        if self._pool is None:
            done: Future[T] = Future()
            done.set_result(job(*args, **kwargs))
            return done
        made = self._pool.submit(job, *args, **kwargs)
        self._jobs.append(made)
        return made
