"""A grid of simulated studies, run as tasks: in several processes, resumable, the same tables for any number of them.

A finished trial is kept under a key of everything that its numbers depend on, code and libraries included.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import ClassVar

import polars as pl

from lpact.analyses.base import Frames, Task
from lpact.analyses.lpact.assays.jobs import JUDGING
from lpact.analyses.lpact.calibration.trial import (
    EFFORT,
    TRUTHS,
    Cell,
    Effort,
    Rules,
    cell_config,
    decide_trial,
    known_truth,
    observed_effect,
    summarise_trial,
)
from lpact.analyses.lpact.tables.calibration import TRIALS
from lpact.config import RunConfig
from lpact.errors import ConfigError
from lpact.inputs.workspace import Workspace
from lpact.run.conductor import Conductor
from lpact.run.executors.local import open_executor
from lpact.run.progress import Reporter
from lpact.store import Results, TaskStore, code_digest, concat
from lpact.store.code import SHARED
from lpact.validation import json_digest

OPTIONS = {
    "truths": "--truth",
    "snr": "--snr",
    "n_events": "--events",
    "n_subjects": "--subjects",
    "n_units": "--units",
    "noise_autocorrelation": "--autocorrelation",
}
"""Option of the command line behind each axis of the grid."""
_RANGES = {
    "snr": (0.0, math.inf, "a finite number, 0 or more"),
    "n_events": (1, math.inf, "a whole number, 1 or more"),
    "n_subjects": (1, math.inf, "a whole number, 1 or more"),
    "n_units": (4, math.inf, "a whole number, 4 or more"),
    "noise_autocorrelation": (0.0, 1.0, "a number from 0 to below 1"),
    "n_trials": (1, math.inf, "a whole number, 1 or more"),
}
"""Smallest value of a setting, what it must be below, and the same in words."""


@dataclass(frozen=True)
class Settings:
    """Axes of the grid, and the studies ``first_trial`` … ``first_trial + n_trials − 1`` of every cell.

    Every combination is a cell, or with ``one_at_a_time`` the first values and those that differ from them on one axis.
    """

    truths: tuple[str, ...] = tuple(TRUTHS)
    snr: tuple[float, ...] = (0.5, 1.0, 1.5)
    n_events: tuple[int, ...] = (340,)
    n_subjects: tuple[int, ...] = (4,)
    n_units: tuple[int, ...] = (12,)
    noise_autocorrelation: tuple[float, ...] = (0.95,)
    n_trials: int = 20
    first_trial: int = 0
    one_at_a_time: bool = False
    effort: Effort = EFFORT

    def __post_init__(self) -> None:
        for axis, option in {**OPTIONS, "n_trials": "--trials"}.items():
            values = (self.n_trials,) if axis == "n_trials" else getattr(self, axis)
            low, high, expected = _RANGES.get(axis, (0, 0, "one name or more, each once"))
            outside = axis in _RANGES and not all(low <= value < high for value in values)
            if outside or not values or len(set(values)) != len(values):
                raise ConfigError(
                    "a setting of the calibration grid is empty, repeated or out of range",
                    where=f"option '{option}'",
                    got=", ".join(map(str, values)) or "nothing",
                    expected=expected,
                    remedy="change the value, or leave it out",
                )
        for cell in self.cells():
            cell_config(cell, self.first_trial, self.effort)

    def cells(self) -> list[Cell]:
        """All cells, sorted. Where nothing is planted, the signal-to-noise ratio is 0."""
        axes = {axis: getattr(self, axis) for axis in OPTIONS if axis != "truths"}
        grids = [axes]
        if self.one_at_a_time:
            base = {axis: values[:1] for axis, values in axes.items()}
            grids = [{**base, axis: values} for axis, values in axes.items()]
        cells = set()
        for name, grid in product(self.truths, grids):
            truth = known_truth(name)
            own = grid if truth.planted else {**grid, "snr": (0.0,)}
            cells |= {Cell(name, *values) for values in product(truth.models, *own.values())}
        return sorted(cells)

    def trials(self) -> range:
        """Numbers of the studies of every cell."""
        return range(self.first_trial, self.first_trial + self.n_trials)

    def command(self, out: str = "FOLDER") -> str:
        """The command for this grid, with all axes spelled out; ``effort`` is not an option of the command."""
        parts = ["lpact calibrate", f"--out {out}", f"--trials {self.n_trials}"]
        if self.first_trial:
            parts.append(f"--seed {self.first_trial}")
        if self.one_at_a_time:
            parts.append("--one-at-a-time")
        for axis, option in OPTIONS.items():
            if axis != "truths" or self.truths != tuple(TRUTHS):
                parts += [f"{option} {value}" for value in getattr(self, axis)]
        return " ".join(parts)


SECONDS, EFFECT = "seconds", "effect"
CODE = (*SHARED, *JUDGING, "analyses/lpact/calibration/trial.py")
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
        spent = json_digest({"effort": asdict(self.effort), "rules": rules})
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
        effect = observed_effect(decided)
        return {
            TRIALS.name: summarise_trial(self.cell, self.number, decided),
            EFFECT: pl.DataFrame([effect], schema_overrides=dict.fromkeys(effect, pl.Float64)),
            SECONDS: pl.DataFrame({"wall": [wall], "cpu": [cpu]}),
        }


def numbers_digest() -> str:
    """Digest of the code that a trial's numbers can depend on."""
    return code_digest(CODE)


@cache
def numbers_key() -> str:
    """Code and libraries that a trial's numbers can depend on, as one text."""
    libraries = " ".join(f"{name}={version(name)}" for name in ("numpy", "polars", "scipy"))
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

    Before that, one trial is timed in this process and ``show_forecast`` is called; an exception there starts nothing.
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
        TaskStore(kept),
        workspace,
        name="simulated studies",
        workers=workers,
        reporter=reporter,
        show_forecast=show_forecast,
    )
    spent = sum(float(frames[SECONDS]["cpu"][0]) for frames in results)
    return concat(TRIALS, [frames[TRIALS.name] for frames in results]), Pace(len(jobs), spent)
