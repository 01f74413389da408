"""Simulated studies of one design at several signal-to-noise ratios, and the power curves that they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from lpact.analyses.base import Frames
from lpact.analyses.lpact.calibration.power_curve import PowerCurve, fit_curve
from lpact.analyses.lpact.calibration.power_design import MatchedDesign
from lpact.analyses.lpact.calibration.study import EFFECT, Forecast, TrialJob, run_trials
from lpact.analyses.lpact.calibration.truths import GATES
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.gates import CALIBRATED
from lpact.analyses.lpact.tables.calibration import TRIALS as TRIALS_TABLE
from lpact.codes import Reason
from lpact.config import RunConfig
from lpact.inputs.workspace import Workspace
from lpact.math.types import FloatArray
from lpact.run.executors.local import scratch_results
from lpact.run.progress import Reporter
from lpact.store import TaskStore

RATIOS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Signal-to-noise ratios that are simulated."""
TRIALS = 4
"""Studies at each of them."""
EXCLUDED_AT = 0.05
"""Probability of as few passes, or fewer, at which the target power is excluded."""
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
    """Studies to simulate, one at every ratio first, so that an interruption leaves the whole range covered."""
    rules = (design.gates, design.relational)
    return [
        TrialJob(design.at(snr), number, design.effort, rules)
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
    show_forecast: Callable[[Forecast], None] | None = None,
    largest_p: float | None = None,
) -> Simulated:
    """Run the trials that the folder ``kept`` lacks; the result does not depend on the number of workers."""
    workspace = Workspace(config.study(), run)
    with nullcontext(TaskStore.at(kept)) if kept is not None else scratch_results() as store:
        results = run_trials(
            jobs,
            store,
            workspace,
            name=f"simulated studies of {name}",
            workers=workers,
            reporter=reporter,
            show_forecast=show_forecast,
        )
    trials = [(job.cell.snr, frames) for job, frames in zip(jobs, results, strict=True)]
    return collect(trials, largest_p)


def collect(trials: Sequence[tuple[float, Frames]], largest_p: float | None = None) -> Simulated:
    """Bring the trials of one design together.

    A simulated study corrects over its own few claims. With ``largest_p`` a trial counts as integrated under the
    calibrated profile if all gates pass and the largest of their p-values is at most that.
    """
    snr = np.array([ratio for ratio, _ in trials])
    passed: dict[tuple[str, str], list[float]] = {}
    seen: dict[str, list[float]] = {}
    for _, frames in trials:
        for row in frames[TRIALS_TABLE.name].iter_rows(named=True):
            p_values = [v for name, v in row.items() if name.startswith("p_") and v is not None]
            for gate in GATES:
                own = bool(row[gate])
                if largest_p is not None and (row["gate_profile"], gate) == _CORRECTED:
                    own = all(row[g] for g in _PRODUCT) and max(p_values) <= largest_p
                passed.setdefault((row["gate_profile"], gate), []).append(float(own))
        for name, value in frames[EFFECT].row(0, named=True).items():
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
