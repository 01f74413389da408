"""How long a model's own passes take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lpact.features.language.extra import require


class Clock:
    """Seconds inside a model's passes; on a GPU by the GPU's own clock, so that nothing waits for it."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._events: list[tuple[Any, Any]] = []

    @contextmanager
    def running(self, device: str) -> Iterator[None]:
        """Count what happens inside."""
        if not device.startswith("cuda"):
            start = time.perf_counter()
            yield
            self._seconds += time.perf_counter() - start
            return
        torch = require("torch")
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        yield
        after.record()
        self._events.append((before, after))

    def seconds(self) -> float:
        """All seconds so far; waits for the GPU."""
        if self._events:
            require("torch").cuda.synchronize()
            self._seconds += sum(a.elapsed_time(b) for a, b in self._events) / 1000.0
            self._events.clear()
        return self._seconds
