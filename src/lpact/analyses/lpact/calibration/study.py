"""Simulated studies as tasks: in several processes, resumable, with the same tables for any number of them.

A finished trial is kept under a key of its cell, its number, its effort and rules, and the code and libraries that its
numbers depend on. A second call reads kept trials and computes the rest.
"""

from __future__ import annotations

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
from lpact.analyses.lpact.calibration.trial import Rules, decide_trial, observed_effect, summarise
from lpact.analyses.lpact.stimulus_controls import JUDGING
from lpact.analyses.lpact.tables.calibration import TRIALS
from lpact.config import RunConfig
from lpact.inputs.workspace import Workspace
from lpact.run.executors.local import open_executor
from lpact.run.measure import Conductor
from lpact.run.progress import Reporter
from lpact.store import Results, TaskStore, code_digest, concat
from lpact.store.code import SHARED
from lpact.validation import config_digest

SECONDS, EFFECT = "seconds", "effect"
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
        """Studies per minute on one core."""
        return 60.0 * self.n_studies / self.seconds


@dataclass(frozen=True)
class Forecast:
    """Trials that are kept and left, and the seconds that one of them took; ``name`` says what is simulated."""

    name: str
    n_kept: int
    n_left: int
    seconds_each: float


@dataclass(frozen=True)
class TrialJob:
    """One simulated study, with the default rules or those of a user's study."""

    code: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()

    cell: Cell
    number: int
    effort: Effort
    rules: Rules | None = None

    @property
    def name(self) -> str:
        """Name of the trial among all trials."""
        return f"{self.cell.key} trial={self.number}"

    @property
    def key(self) -> str:
        """Everything that the trial's numbers depend on."""
        rules = [] if self.rules is None else [r.model_dump(mode="json") for r in self.rules]
        spent = config_digest({"effort": asdict(self.effort), "rules": rules})
        return f"{self.name} effort={spent} {numbers_key()}"

    def run(
        self,
        workspace: Workspace | None = None,  # noqa: ARG002
        results: Results | None = None,  # noqa: ARG002
    ) -> Frames:
        """Run the trial; the workspace is that of another study and is not used."""
        started, spent = time.perf_counter(), time.process_time()
        decided = decide_trial(self.cell, self.number, self.effort, self.rules)
        wall, cpu = time.perf_counter() - started, time.process_time() - spent
        return {
            TRIALS.name: summarise(self.cell, self.number, decided),
            EFFECT: pl.DataFrame([observed_effect(decided)], schema_overrides=_EFFECTS),
            SECONDS: pl.DataFrame({"wall": [wall], "cpu": [cpu]}),
        }


_EFFECTS = dict.fromkeys(("score", "delta", "fraction_of_ceiling"), pl.Float64)


def numbers_digest() -> str:
    """Digest of the code that a trial's numbers can depend on."""
    return code_digest(CODE)


@cache
def numbers_key() -> str:
    """Code and libraries that a trial's numbers can depend on, as one text."""
    libraries = " ".join(f"{name}={version(name)}" for name in _LIBRARIES)
    return f"code={numbers_digest()} {libraries}"


def run_trials(
    jobs: Sequence[TrialJob],
    store: TaskStore,
    workspace: Workspace,
    *,
    name: str,
    workers: int = 1,
    reporter: Reporter | None = None,
    show_forecast: Callable[[Forecast], None] | None = None,
) -> list[Frames]:
    """Run every trial that the store lacks.

    ``show_forecast`` is called with a forecast from one trial, timed in this process, before the others
    start. An exception there, or Ctrl-C at any time, loses at most the trials in progress.
    """
    reporter = reporter or Reporter()
    waiting = [job for job in jobs if store.fault(job.key) is not None]
    n_kept = len(jobs) - len(waiting)
    if waiting and show_forecast is not None:
        first = waiting.pop(0)
        reporter.stage(f"one of the {name}, to time it", 1)
        frames = first.run()
        store.save(first.key, frames)
        reporter.advance()
        show_forecast(Forecast(name, n_kept, len(waiting), float(frames[SECONDS]["wall"][0])))
    with open_executor(workspace, store, max(1, min(workers, len(waiting)))) as executor:
        conductor = Conductor(store, executor, reporter)
        conductor.run(name, [Task(job, job.key) for job in jobs])
        conductor.check()
    return [store.load(job.key) for job in jobs]


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
    """Run every trial of every cell, or read it from the folder ``kept``; ``show_forecast`` as in `run_trials`."""
    # Trial by trial over all cells, so that an interrupted calibration covers them evenly.
    jobs = [TrialJob(cell, trial, effort) for trial in trials for cell in cells]
    workspace = Workspace(cell_config(cells[0], 0, effort).study(), RunConfig())
    results = run_trials(
        jobs,
        TaskStore.at(kept),
        workspace,
        name="simulated studies",
        workers=workers,
        reporter=reporter,
        show_forecast=show_forecast,
    )
    spent = sum(float(frames[SECONDS]["cpu"][0]) for frames in results)
    return concat(TRIALS, [frames[TRIALS.name] for frames in results]), Pace(len(jobs), spent)
