"""What the stages of a run cost: work counted by analyses, at the speed of this machine, and the engine's own stages.

Nothing is computed for an estimate but a few matrix products. It is a first one: progress corrects it by the pace of
the first tasks (`lpact.run.progress`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from threadpoolctl import threadpool_limits

from lpact.analyses.base import StageWork
from lpact.run.stages import DECISION, REPORT, TABLES
from lpact.tables import find_table

FACTOR = 2
"""First estimates are right up to about this factor."""

TASK_S = 0.01
"""To send a task to its worker and keep its result."""

TABLE_S, ROW_S = 0.008, 5e-6
"""To write a table in both of its formats, and for each of its rows more."""
TABLE_BYTES, CELL_BYTES = 3_000, 12
"""A table's two files without rows, and one value in them."""
DECISION_S, DECISION_COPIES = 0.2, 7
"""To decide, and copies of the tables in memory meanwhile: they are joined, sorted and checked."""

REPORT_S, CLAIM_S = 8.0, 0.03
"""To draw all figures, and for each claim more."""
REPORT_BYTES, REPORT_PEAK_BYTES, AS_TEXT = 12_000_000, 150_000_000, 1.75
"""Figures and page on disk, and drawing libraries in memory; tables as CSV and LaTeX, over those of the run."""


@dataclass(frozen=True)
class StageCost:
    """One stage: its tasks, seconds with one worker, the most memory of a process, bytes that it leaves on disk.

    ``shared`` stages have tasks for workers; the others are the work of the process that was started. ``longest`` is
    the time of the longest task: no number of workers makes the stage shorter than that. Seconds are NaN
    if they are unknown before the first tasks are finished.
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
        if not self.shared or math.isnan(self.seconds):
            return self.seconds
        rounds = -(-self.n_tasks // workers)
        even = self.seconds * rounds / max(1, self.n_tasks)
        return min(self.seconds, max(self.seconds / workers, even, self.longest))


@cache
def operations_per_second(size: int = 384, seconds: float = 0.05) -> float:
    """Floating-point operations per second of one core, by matrix products for about 0.05 s."""
    matrix = np.random.default_rng(0).standard_normal((size, size))
    best = math.inf
    with threadpool_limits(1):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            matrix @ matrix
            best = min(best, time.perf_counter() - start)
    return 2.0 * size**3 / best


def task_cost(stage: str, n_tasks: int, work: StageWork | None, held: int) -> StageCost:
    """Cost of a stage of tasks; ``held`` are the bytes that a process has in memory before any."""
    if work is None:
        return StageCost(stage, n_tasks, math.nan, held, 0, shared=True)
    speed = operations_per_second()
    return StageCost(
        stage,
        n_tasks,
        work.operations / speed + TASK_S * n_tasks,
        held + work.peak_bytes,
        work.disk_bytes,
        work.longest / speed + TASK_S,
        shared=True,
    )


def closing_costs(
    rows: Mapping[str, int], n_claims: int, more_bytes: int, held: int
) -> tuple[StageCost, StageCost, StageCost]:
    """Decision, tables and report; ``more_bytes`` of the tables are not in single values."""
    n_rows = sum(rows.values())
    cells = {name: n * len(find_table(name).columns) for name, n in rows.items()}
    table_bytes = len(rows) * TABLE_BYTES + CELL_BYTES * sum(cells.values()) + more_bytes
    deciding = held + DECISION_COPIES * table_bytes // 2
    return (
        StageCost(DECISION, 1, DECISION_S + ROW_S * n_rows, deciding, 0),
        StageCost(
            TABLES, len(rows), TABLE_S * len(rows) + 2 * ROW_S * n_rows, deciding, table_bytes
        ),
        StageCost(
            REPORT,
            1,
            REPORT_S + CLAIM_S * n_claims,
            deciding + REPORT_PEAK_BYTES,
            REPORT_BYTES + int(AS_TEXT * table_bytes),
        ),
    )
