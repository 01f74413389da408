"""A watch over the process that reads tables: one that takes too much memory or time is ended."""

from __future__ import annotations

import subprocess
import threading
import time
from types import TracebackType
from typing import Literal

from lpact.archive.memory import memory_of

LOOK_S = 0.02
"""Seconds between two looks. A process can fill some ten MiB in that time."""


class Watch:
    """A thread that ends a process, for the block; ``reached`` says which limit was.

    Memory counts from what the process has at the beginning: what it has to itself, not what it has reserved. Where
    the system does not tell that, only time is watched.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], seconds: float, n_memory: int | None
    ) -> None:
        self.reached: Literal["", "memory", "time"] = ""
        self._process = process
        self._until = time.monotonic() + seconds
        self._most = None
        if n_memory is not None and (now := memory_of(process.pid)) is not None:
            self._most = now + n_memory
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_S):
            if time.monotonic() > self._until:
                self.reached = "time"
            elif self._most is not None and (memory_of(self._process.pid) or 0) > self._most:
                self.reached = "memory"
            if self.reached:
                self._process.kill()
                return
