"""What a stage of a run costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StageCost:
    """One stage: its tasks, seconds with one worker, the most memory of a process, bytes that it leaves on disk.

    ``shared`` stages have tasks for workers; the others are the work of the process that was started. ``longest`` is
    the time of the longest task: no number of workers makes the stage shorter than that.
    """

    stage: str
    n_tasks: int
    seconds: float
    peak_bytes: int
    disk_bytes: int
    longest: float = 0.0
    shared: bool = False

    def seconds_with(self, workers: int) -> float:
        """Expected wall time with ``workers`` processes."""
        if not self.shared:
            return self.seconds
        rounds = -(-self.n_tasks // workers)
        even = self.seconds * rounds / max(1, self.n_tasks)
        return min(self.seconds, max(self.seconds / workers, even, self.longest))
