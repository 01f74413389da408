"""Simulated studies of one design at several signal-to-noise ratios, and the power curves that they give."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
from scipy import stats
from threadpoolctl import threadpool_limits

from lpact.analyses.base import Frames, Task
from lpact.analyses.lpact.calibration.cells import Cell, Effort, cell_config
from lpact.analyses.lpact.calibration.power_cells import MatchedDesign
from lpact.analyses.lpact.calibration.power_curve import PowerCurve, fit_curve
from lpact.analyses.lpact.calibration.study import numbers_key
from lpact.analyses.lpact.calibration.trial import summarise
from lpact.analyses.lpact.calibration.truths import GATES, PLANTED_MECHANISM
from lpact.analyses.lpact.config import GatesConfig, LPactConfig, RelationalConfig
from lpact.analyses.lpact.gates import CALIBRATED, PAPER, decide
from lpact.analyses.lpact.stages import measure_levels
from lpact.analyses.lpact.tables.decisions import DECISIONS, GATE_EVIDENCE
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS
from lpact.codes import Reason
from lpact.config import RunConfig
from lpact.inputs.workspace import Workspace
from lpact.math.types import FloatArray
from lpact.run.conduct import Conductor
from lpact.run.executors.local import open_executor, scratch_results
from lpact.run.progress import Reporter
from lpact.store import Results, TaskStore
from lpact.validation import config_digest

RATIOS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Signal-to-noise ratios that are simulated."""
TRIALS = 4
"""Studies at each of them."""
EXCLUDED_AT = 0.05
"""Probability of as few passes, or fewer, at which the target power is excluded."""
VERSION = 2
"""Goes up whenever something else is kept of a study."""
_PASSED, _EFFECT = "passed", "effect"
_PRODUCT = (
    "predictive",
    "relational",
    "mechanism_specific",
    "ceiling",
    "severe_control",
    "replication",
)
"""Gates whose product is `integrated`."""
_CORRECTED = (CALIBRATED, "integrated")


@dataclass(frozen=True)
class TrialJob:
    """One simulated study under the user's own gates; a pure function of what stands here."""

    code: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()

    cell: Cell
    number: int
    effort: Effort
    gates: GatesConfig
    relational: RelationalConfig

    @property
    def name(self) -> str:
        """Name of the study among those of this analysis."""
        return f"{self.cell.key} trial={self.number}"

    @property
    def key(self) -> str:
        """Name of the study among all that were ever simulated by this code."""
        rules = {"gates": self.gates, "relational": self.relational}
        spent = config_digest(
            asdict(self.effort) | {name: r.model_dump(mode="json") for name, r in rules.items()}
        )
        return f"power {VERSION} {self.cell.key} trial={self.number} effort={spent} {numbers_key()}"

    def run(self, workspace: Workspace, results: Results) -> Frames:  # noqa: ARG002
        """Simulate, measure and judge; the workspace of the user's own study is not looked at."""
        rules = {"gates": self.gates, "relational": self.relational}
        config = cell_config(self.cell, self.number, self.effort).model_copy(update=rules)
        measured = measure_levels(config)
        metric = config.readout.primary_metric
        decided = decide(measured, gates=config.gates, primary_metric=metric)
        p_values = decided[DECISIONS.name].filter(mechanism=PLANTED_MECHANISM)
        passed = (
            summarise(self.cell, self.number, decided)
            .select("gate_profile", *GATES)
            .join(p_values.select("gate_profile", "p_value"), on="gate_profile", how="left")
            .sort("gate_profile")
        )
        return {_PASSED: passed, _EFFECT: pl.DataFrame([observed_effect(decided, metric)])}


def observed_effect(decided: Mapping[str, pl.DataFrame], metric: str) -> dict[str, float | None]:
    """What the user of a study sees of its effect: score, contrast with the best rival, and fraction of the ceiling."""
    rows = decided[CONTROL_DELTAS.name].filter(metric=metric)
    contrasts = [_mean(rows["delta_nuisance"]), _mean(rows["delta_control"])]
    evidence = decided[GATE_EVIDENCE.name].filter(
        gate_profile=PAPER,
        criterion="mean_fraction_of_ceiling",
        mechanism=PLANTED_MECHANISM,
    )
    known = [c for c in contrasts if c is not None]
    return {
        "score": _mean(rows["real_score"]),
        "delta": min(known) if len(known) == len(contrasts) else None,
        "fraction_of_ceiling": _mean(evidence["value"]),
    }


@dataclass(frozen=True)
class Simulated:
    """Trials of one design. ``passed`` maps (profile, gate) to [n_trials]; ``effects`` are those of each ratio."""

    snr: FloatArray
    passed: Mapping[tuple[str, str], FloatArray]
    effects: Mapping[str, FloatArray]
    """Mean over the trials of each distinct ratio, in rising order; NaN where no trial has the number."""
    largest_p: float | None = None
    """Largest p-value at which a trial counts as integrated under the calibrated profile; None: its own correction."""

    @property
    def ratios(self) -> FloatArray:
        """Distinct ratios, rising."""
        return np.unique(self.snr)

    def effect_at(self, name: str, snr: float) -> float | None:
        """A number that the user sees, at a ratio between the simulated ones (linear in its logarithm)."""
        values = self.effects[name]
        finite = np.isfinite(values)
        if not finite.any():
            return None
        return float(np.interp(np.log(snr), np.log(self.ratios[finite]), values[finite]))

    def excludes(self, profile: str, gate: str, target: float) -> bool:
        """Whether the trials at the strongest ratio are too few passes for the target power: binomial, 5 %."""
        own = self.passed[profile, gate][self.snr == self.ratios[-1]]
        return bool(stats.binom.cdf(own.sum(), own.size, target) <= EXCLUDED_AT)

    def curve(self, profile: str, gate: str, target: float) -> tuple[PowerCurve | None, Reason]:
        """The power curve of a gate, or why the smallest detectable ratio is not among the simulated ones."""
        passed = self.passed[profile, gate] > 0
        curve = fit_curve(self.snr, passed)
        if curve is None or curve.snr_at(target) > self.ratios[-1]:
            return curve, Reason.NEVER_DETECTED
        if curve.snr_at(target) < self.ratios[0]:
            return curve, Reason.ALWAYS_DETECTED
        return curve, Reason.OK


def trial_jobs(
    design: MatchedDesign, *, trials: int = TRIALS, ratios: Sequence[float] = RATIOS
) -> list[TrialJob]:
    """Studies to simulate, those that tell most first: an interruption then leaves the whole range covered."""
    return [
        TrialJob(design.at(snr), number, design.effort, design.gates, design.relational)
        for number in range(trials)
        for snr in ratios
    ]


def simulate(
    jobs: Sequence[TrialJob],
    *,
    config: LPactConfig,
    run: RunConfig,
    workers: int,
    kept: Path | None,
    reporter: Reporter,
    name: str,
    show_forecast: Callable[[int, float], None] | None = None,
    largest_p: float | None = None,
) -> Simulated:
    """Run the trials that are not kept in the folder ``kept``; the result does not depend on the number of workers.

    The first one is timed in this process, and ``show_forecast`` gets how many are left and how long each takes.
    """
    workspace = Workspace(config.study(), run)
    with nullcontext(TaskStore.at(kept)) if kept is not None else scratch_results() as store:
        left = [job for job in jobs if store.fault(job.key) is not None]
        if left and show_forecast is not None:
            first = left.pop(0)
            reporter.stage(f"one simulated study of {name}, to time it", 1)
            started = time.perf_counter()
            with threadpool_limits(1):
                store.save(first.key, first.run(workspace, store))
            reporter.advance()
            show_forecast(len(left), time.perf_counter() - started)
        with open_executor(workspace, store, max(1, min(workers, len(left)))) as executor:
            conductor = Conductor(store, executor, reporter)
            conductor.run(f"simulated studies of {name}", [Task(job, job.key) for job in jobs])
            conductor.check()
        results = {job.key: store.load(job.key) for job in jobs}
    return collect([(job.cell.snr, results[job.key]) for job in jobs], largest_p)


def collect(trials: Sequence[tuple[float, Frames]], largest_p: float | None = None) -> Simulated:
    """Bring the trials of one design together.

    A simulated study corrects over its own few claims. With ``largest_p`` a trial counts as integrated under the
    calibrated profile if all gates pass and the largest of their p-values is at most that.
    """
    snr = np.array([ratio for ratio, _ in trials])
    passed: dict[tuple[str, str], list[float]] = {}
    for _, frames in trials:
        for row in frames[_PASSED].iter_rows(named=True):
            for gate in GATES:
                own = bool(row[gate])
                if largest_p is not None and (row["gate_profile"], gate) == _CORRECTED:
                    own = all(row[g] for g in _PRODUCT) and row["p_value"] <= largest_p
                passed.setdefault((row["gate_profile"], gate), []).append(float(own))
    seen: dict[str, list[float]] = {}
    for _, frames in trials:
        row = frames[_EFFECT].row(0, named=True)
        for name, value in row.items():
            seen.setdefault(name, []).append(np.nan if value is None else value)
    effects = {name: _by_ratio(snr, np.array(values)) for name, values in seen.items()}
    arrays = {key: np.array(values) for key, values in passed.items()}
    return Simulated(snr, arrays, effects, largest_p)


def _by_ratio(snr: FloatArray, values: FloatArray) -> FloatArray:
    means = []
    for ratio in np.unique(snr):
        own = values[(snr == ratio) & np.isfinite(values)]
        means.append(own.mean() if own.size else np.nan)
    return np.array(means)


def _mean(values: pl.Series) -> float | None:
    mean: Any = values.cast(pl.Float64).mean()
    return None if mean is None else float(mean)
