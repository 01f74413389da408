"""What a stage of a run costs."""

from __future__ import annotations

from dataclasses import dataclass

from lpact.run.stages import BRAINS, CEILINGS, CONTROLS, LEVELS

SHARED_OUT = (BRAINS, LEVELS, CEILINGS, CONTROLS)
"""Stages whose tasks are given to workers; the others are the work of the process that was started."""


@dataclass(frozen=True)
class StageCost:
    """One stage: its tasks, seconds with one worker, the most memory of a process, bytes that it leaves on disk.

    ``longest`` is the time of its longest task: no number of workers makes the stage shorter than that.
    """

    stage: str
    n_tasks: int
    seconds: float
    peak_bytes: int
    disk_bytes: int
    longest: float = 0.0

    def seconds_with(self, workers: int) -> float:
        """Expected wall time with ``workers`` processes."""
        if self.stage not in SHARED_OUT:
            return self.seconds
        rounds = -(-self.n_tasks // workers)
        even = self.seconds * rounds / max(1, self.n_tasks)
        return min(self.seconds, max(self.seconds / workers, even, self.longest))
