"""All trials of a grid: in several processes, resumable, with the same tables for any number of them.

A finished trial is kept under a key of its cell, its number, what it spends, and the code and libraries that its
numbers depend on. A second call takes what is there and computes the rest.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

import polars as pl

from lpact.analyses.base import Frames, Task
from lpact.analyses.lpact.calibration.cells import EFFORT, Cell, Effort, cell_config
from lpact.analyses.lpact.calibration.trial import run_trial
from lpact.analyses.lpact.stimulus_controls import JUDGING
from lpact.analyses.lpact.tables.calibration import TRIALS
from lpact.config import RunConfig
from lpact.inputs.workspace import Workspace
from lpact.run.conduct import Conductor
from lpact.run.executors.local import open_executor
from lpact.run.progress import Reporter
from lpact.store import Results, TaskStore, code_digest, concat
from lpact.store.code import SHARED

SECONDS = "seconds"
_LIBRARIES = ("numpy", "polars", "scipy")
CODE = (
    *SHARED,
    *JUDGING,
    *(f"analyses/lpact/calibration/{name}.py" for name in ("cells", "trial", "truths")),
)
"""Files and folders of lpact that a trial's numbers can depend on."""


@dataclass(frozen=True)
class Pace:
    """What the trials cost together, in seconds of one core."""

    n_studies: int
    seconds: float

    @property
    def studies_per_minute(self) -> float:
        """Studies that one core makes in a minute."""
        return 60.0 * self.n_studies / self.seconds


@dataclass(frozen=True)
class Forecast:
    """What is left to do, from one timed trial."""

    n_kept: int
    n_left: int
    seconds_a_study: float


@dataclass(frozen=True)
class TrialJob:
    """One trial, as a job."""

    code: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()

    cell: Cell
    trial: int
    effort: Effort

    @property
    def name(self) -> str:
        """Name of the trial among all trials."""
        return f"{self.cell.key} trial={self.trial}"

    @property
    def key(self) -> str:
        """Everything that the trial's numbers depend on."""
        spent = json.dumps(asdict(self.effort), sort_keys=True)
        return f"{self.cell.key} trial={self.trial} effort={spent} {numbers_key()}"

    def run(
        self,
        workspace: Workspace | None = None,  # noqa: ARG002
        results: Results | None = None,  # noqa: ARG002
    ) -> Frames:
        """Run the trial; the workspace is that of another study, and is left alone."""
        started, spent = time.perf_counter(), time.process_time()
        trial = run_trial(self.cell, self.trial, self.effort)
        wall, cpu = time.perf_counter() - started, time.process_time() - spent
        return {TRIALS.name: trial, SECONDS: pl.DataFrame({"wall": [wall], "cpu": [cpu]})}


def numbers_digest() -> str:
    """Digest of the code that a trial's numbers can depend on."""
    return code_digest(CODE)


@cache
def numbers_key() -> str:
    """Code and libraries that a trial's numbers can depend on, as one text."""
    libraries = " ".join(f"{name}={version(name)}" for name in _LIBRARIES)
    return f"code={numbers_digest()} {libraries}"


def run_grid(
    cells: Sequence[Cell],
    *,
    trials: range,
    kept: Path,
    effort: Effort = EFFORT,
    workers: int = 1,
    reporter: Reporter | None = None,
    show_forecast: Callable[[Forecast], None] | None = None,
) -> tuple[pl.DataFrame, Pace]:
    """Run every trial of every cell, or take it from the folder ``kept``.

    ``show_forecast`` is called once, before the long part, with a forecast from one trial; an exception there (or
    Ctrl-C at any time) loses at most the trials at work.
    """
    reporter = reporter or Reporter()
    store = TaskStore.at(kept)
    # Trial by trial over all cells, so that an interrupted calibration is an even one.
    jobs = [TrialJob(cell, trial, effort) for trial in trials for cell in cells]
    waiting = [job for job in jobs if store.fault(job.key) is not None]
    n_kept = len(jobs) - len(waiting)
    if waiting:
        first = waiting.pop(0)
        frames = first.run()
        store.save(first.key, frames)
        if show_forecast is not None:
            show_forecast(Forecast(n_kept, len(waiting), float(frames[SECONDS]["wall"][0])))
    workspace = Workspace(cell_config(cells[0], 0, effort).study(), RunConfig())
    with open_executor(workspace, store, max(1, min(workers, len(waiting)))) as executor:
        conductor = Conductor(store, executor, reporter)
        conductor.run("simulated studies", [Task(job, job.key) for job in jobs])
        conductor.check()
    results = {job: store.load(job.key) for job in jobs}
    spent = sum(float(frames[SECONDS]["cpu"][0]) for frames in results.values())
    table = concat(TRIALS, [results[job][TRIALS.name] for job in jobs])
    return table, Pace(len(jobs), spent)
