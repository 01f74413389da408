"""Work that other processes do meanwhile: turning pictures into pixels takes longer than drawing them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from types import TracebackType
from typing import Any, Self


class Aside:
    """Does jobs in ``workers`` processes beside this one, or at once where there are none.

    Leaving the block waits for all of them, and raises what one of them raised.
    """

    def __init__(self, workers: int) -> None:
        self._pool = ProcessPoolExecutor(workers, get_context("spawn")) if workers else None
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
        if error is None:
            for job in self._jobs:
                job.result()

    def do(self, job: Callable[..., Any], *args: Any) -> None:
        """Do one job, now or soon."""
        if self._pool is None:
            job(*args)
        else:
            self._jobs.append(self._pool.submit(job, *args))
