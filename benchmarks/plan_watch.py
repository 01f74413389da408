"""When the stages of a run begin, and what its processes hold and use meanwhile."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

PERIOD_S = 0.05


class Watch:
    """Notes when stages begin, and what processes hold and use meanwhile."""

    def __init__(self) -> None:
        self.began: list[tuple[str, float, float]] = []
        self.peak: dict[str, int] = {}
        self._gone: dict[int, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def stage(self, name: str, total: int) -> None:  # noqa: ARG002
        """A stage begins; the one that ran goes on where it is named again."""
        if not self.began or self.began[-1][0] != name:
            self.began.append((name, time.perf_counter(), self._cpu()))

    def advance(self, steps: int = 1) -> None:
        """Not of interest."""

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.began.append(("", time.perf_counter(), self._cpu()))

    def seconds(self) -> dict[str, dict[str, float]]:
        """Wall and processor seconds by stage."""
        found: dict[str, dict[str, float]] = {}
        for (name, start, cpu), (_, stop, later) in zip(self.began, self.began[1:], strict=False):
            own = found.setdefault(name, {"wall": 0.0, "cpu": 0.0})
            own["wall"] += stop - start
            own["cpu"] += later - cpu
        return found

    def _processes(self) -> list[int]:
        """This process and all below it."""
        parents = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    after = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                parents[int(entry.name)] = int(after[1])
        found = {os.getpid()}
        for _ in range(3):
            found |= {pid for pid, parent in parents.items() if parent in found}
        return sorted(found)

    def _cpu(self) -> float:
        tick = os.sysconf("SC_CLK_TCK")
        for pid in self._processes():
            try:
                after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            self._gone[pid] = (int(after[11]) + int(after[12])) / tick
        return sum(self._gone.values())

    def _look(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        while not self._stop.wait(PERIOD_S):
            if not self.began:
                continue
            name = self.began[-1][0]
            for pid in self._processes():
                try:
                    held = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
                except (OSError, IndexError):
                    continue
                self.peak[name] = max(self.peak.get(name, 0), held)
