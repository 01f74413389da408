"""Memory of this process: what it holds, and the most it has held."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_STATM = Path("/proc/self/statm")


def peak_bytes() -> int:
    """The most memory that this process has held.

    Linux is asked for the peak of this very program. ``getrusage`` would count the process that started it too: a small
    worker of a large client would seem as large as its client.
    """
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return _most_used()


def held_bytes() -> int:
    """The memory that this process holds now; where the system does not say, the most it has held."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return peak_bytes()


def _most_used() -> int:
    try:
        import resource
    except ImportError:
        return 0
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


class StageMemory:
    """Peaks of this process by stage.

    The system knows one peak for the whole life of a process. Where it rises during a stage, it is the stage's; where
    it does not, the most that was seen at any look is taken.
    """

    def __init__(self) -> None:
        self.peaks: dict[str, int] = {}
        self._stage = ""
        self._before = 0

    def begin(self, stage: str) -> None:
        """A stage begins."""
        self._stage, self._before = stage, peak_bytes()
        self.look()

    def look(self) -> None:
        """See what the process holds now."""
        if self._stage:
            peak = peak_bytes()
            seen = peak if peak > self._before else held_bytes()
            self.peaks[self._stage] = max(self.peaks.get(self._stage, 0), seen)
