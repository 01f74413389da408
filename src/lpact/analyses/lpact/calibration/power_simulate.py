"""Simulated studies of one design at several signal-to-noise ratios, and the power curves that they give.

A simulated study has as many subject-runs, effective events and units as the design, and responses with the same
autocorrelation. Power is a logistic function of the logarithm of the signal-to-noise ratio (`fit_curve`),


    P(pass | snr) = 1 / (1 + exp(−(a + b log snr)))

fitted to the penalised log-likelihood, with normal priors on a and b. The prior keeps the fit finite where trials
separate perfectly (all pass above some ratio, none below), as they do when there are few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import optimize, special, stats

from lpact.analyses.base import Frames
from lpact.analyses.lpact.calibration.power_design import DatasetDesign
from lpact.analyses.lpact.calibration.run_trials import EFFECT, Forecast, TrialJob, run_trials
from lpact.analyses.lpact.calibration.trial import EFFORT, GATES, N_STORIES, SENTENCES_AT_LEAST, Cell, Effort, Rules
from lpact.analyses.lpact.config import AuditConfig, LPactConfig
from lpact.analyses.lpact.gates import CALIBRATED
from lpact.analyses.lpact.tables.calibration import TRIALS as TRIALS_TABLE
from lpact.codes import Reason
from lpact.config import RunConfig
from lpact.datasets.simulated.brain import SAMPLING_RATE_HZ, WINDOW_S
from lpact.datasets.simulated.latents import CONTEXT_AUTOCORRELATION
from lpact.datasets.simulated.options import WORDS_PER_SENTENCE
from lpact.inputs.workspace import Workspace
from lpact.math.types import BoolArray, FloatArray
from lpact.run.executors.local import scratch_results
from lpact.run.progress import Reporter
from lpact.stats import ar1_variance_inflation
from lpact.store import TaskStore

RATIOS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Signal-to-noise ratios that are simulated."""
TRIALS = 4
"""Studies at each of them."""
TRUTH = MODEL = "integrated"
"""What is planted: everything that the gates look for, and a model that knows it."""
EVENT_SPACING_S = 0.37
"""Typical distance of words in simulated stimuli: 0.34 s within sentences, 0.40 s with the pauses between them."""
LARGEST_COEFFICIENT = 0.998
FEWEST_EVENTS = round(N_STORIES * SENTENCES_AT_LEAST * sum(WORDS_PER_SENTENCE) / 2)
MOST_EVENTS, MOST_SUBJECT_RUNS, MOST_UNITS, MOST_FOLDS = 600, 6, 16, 5
SAME, SMALLER, LARGER, MIXED = "same", "smaller", "larger", "mixed"
"""How large simulated studies are, compared with the design. Smaller ones find only larger effects."""
EXCLUDED_AT = 0.05
"""Probability of as few passes, or fewer, at which the target power is excluded."""
_PRODUCT = [g for g in GATES if g != "integrated" and not g.startswith("severe_control_level")]
"""Gates whose product is `integrated`."""


@dataclass(frozen=True)
class MatchedDesign:
    """The simulated cell that matches a dataset, at any signal-to-noise ratio; ``caps`` lists the differences."""

    cell: Cell
    effort: Effort
    rules: Rules
    caps: tuple[str, ...]
    size: str = SAME


def matched_design(design: DatasetDesign, config: LPactConfig, effort: Effort | None = None) -> MatchedDesign:
    """The simulated study that matches a dataset.

    Features of simulated models are less autocorrelated than those of language models, so *effective* events match.
    """
    limiting = design.limiting
    if limiting is None or limiting.n_effective_events is None or design.n_units is None:
        raise ValueError(f"dataset '{design.name}' has no design to match")
    caps: list[str] = []
    directions: set[str] = set()

    def within(n: int, fewest: int, most: int, what: str) -> int:
        used = min(max(n, fewest), most)
        if used != n:
            why = "to save time: the real design finds smaller effects"
            if used > n:
                why = "the minimum: the real design finds only larger effects"
            directions.add(LARGER if used > n else SMALLER)
            caps.append(f"{used} {what} instead of {n}, {why}")
        return used

    lag1 = min(max(design.response_autocorrelation or 0.0, 0.0), 0.99)
    length = max(2, round(design.n_events or 2))
    inflation = ar1_variance_inflation(CONTEXT_AUTOCORRELATION, lag1, length)
    n_events = round(limiting.n_effective_events * inflation)
    cell = Cell(
        TRUTH,
        MODEL,
        n_events=within(n_events, FEWEST_EVENTS, MOST_EVENTS, "events"),
        n_subjects=within(design.n_subject_runs, 1, MOST_SUBJECT_RUNS, "subject-runs"),
        n_units=within(round(design.n_units), 4, MOST_UNITS, "units"),
        noise_autocorrelation=noise_coefficient(lag1),
    )
    if effort is None:
        # The study's own folds, controls and draws; penalties and lags as few as in the calibration.
        include = config.controls.include
        effort = replace(
            EFFORT,
            draws=within(config.controls.draws, 1, EFFORT.draws, "draws of controls"),
            mismatch_draws=min(config.stripping.mismatch_draws, EFFORT.mismatch_draws),
            folds=min(design.n_folds or EFFORT.folds, MOST_FOLDS),
            gap_events=min(config.readout.gap_events, EFFORT.gap_events),
            controls=include if set(AuditConfig().required_controls) <= set(include) else None,
        )
    relational = config.relational
    if relational.brain_patterns_from == "other_run":
        # A simulated subject has one run, so another subject replaces another run.
        relational = relational.model_copy(update={"brain_patterns_from": "other_subject"})
    size = MIXED if len(directions) > 1 else next(iter(directions), SAME)
    return MatchedDesign(cell, effort, (config.gates, relational), tuple(caps), size)


def noise_coefficient(lag1: float) -> float:
    """Autocorrelation at 100 Hz of noise whose means over 200 ms correlate by ``lag1`` from one event to the next.

    For an autoregressive series with coefficient φ, means over w samples that begin D samples apart correlate by
    Σ_ij φ^|D + i − j| / Σ_ij φ^|i − j|, i and j from 1 to w. Events of simulated stimuli are about 0.37 s apart.
    """
    width = np.arange(round(WINDOW_S * SAMPLING_RATE_HZ))
    lags = width[:, None] - width[None, :]
    apart = np.abs(lags + EVENT_SPACING_S * SAMPLING_RATE_HZ)

    def excess(phi: float) -> float:
        return float((phi**apart).sum() / (phi ** np.abs(lags)).sum()) - lag1

    if excess(0.0) >= 0.0:
        return 0.0
    if excess(LARGEST_COEFFICIENT) <= 0.0:
        return LARGEST_COEFFICIENT
    return round(float(optimize.brentq(excess, 0.0, LARGEST_COEFFICIENT)), 4)


SLOPE_PRIOR = (3.0, 1.5)
"""Mean and deviation of b before any trial: power rises from 10 % to 90 % over a factor of about four."""
INTERCEPT_DEVIATION = 10.0
FLATTEST = 0.25
"""Slopes below this say nothing about where power is reached."""


@dataclass(frozen=True)
class PowerCurve:
    """Fitted curve: ``coefficients`` are a and b, ``covariance`` [2, 2] is the inverse of the penalised information."""

    coefficients: FloatArray
    covariance: FloatArray

    def power(self, snr: float) -> float:
        """Share of studies that pass at ``snr``."""
        return float(special.expit(self.coefficients @ [1.0, np.log(snr)]))

    def snr_at(self, power: float) -> float:
        """Signal-to-noise ratio at which a share ``power`` of the studies passes."""
        a, b = self.coefficients
        return float(np.exp((special.logit(power) - a) / b))

    def interval(self, power: float, level: float = 0.95) -> tuple[float, float]:
        """Interval of `snr_at`, by the delta method on the logarithm: var x = gᵀ Σ g with g = −(1, x) / b."""
        x = np.log(self.snr_at(power))
        gradient = -np.array([1.0, x]) / self.coefficients[1]
        spread = np.sqrt(gradient @ self.covariance @ gradient) * stats.norm.ppf(0.5 + level / 2)
        return float(np.exp(x - spread)), float(np.exp(x + spread))


def fit_curve(
    snr: FloatArray,
    passed: BoolArray,
    *,
    slope_prior: tuple[float, float] = SLOPE_PRIOR,
    intercept_deviation: float = INTERCEPT_DEVIATION,
) -> PowerCurve | None:
    """Fit the curve to trials [n_trials]; None where power does not rise with the ratio.

    The normal priors are of b (mean, deviation) and of a at the trials' mean log ratio (mean 0).
    """
    x = np.log(np.asarray(snr, dtype=np.float64))
    design = np.column_stack([np.ones_like(x), x - x.mean()])
    y = np.asarray(passed, dtype=np.float64)
    mean = np.array([0.0, slope_prior[0]])
    precision = np.diag([intercept_deviation**-2.0, slope_prior[1] ** -2.0])

    def loss(beta: FloatArray) -> float:
        eta, gap = design @ beta, beta - mean
        return float(np.logaddexp(0.0, eta).sum() - y @ eta + 0.5 * gap @ precision @ gap)

    def gradient(beta: FloatArray) -> FloatArray:
        residual = special.expit(design @ beta) - y
        slope: FloatArray = design.T @ residual + precision @ (beta - mean)
        return slope

    def information(beta: FloatArray) -> FloatArray:
        p = special.expit(design @ beta)
        curvature: FloatArray = design.T @ (design * (p * (1 - p))[:, None]) + precision
        return curvature

    beta = optimize.minimize(
        loss, mean, method="trust-exact", jac=gradient, hess=information, options={"gtol": 1e-10}
    ).x
    if beta[1] < FLATTEST:
        return None
    # a at log snr = 0 instead of at the mean.
    back = np.array([[1.0, -x.mean()], [0.0, 1.0]])
    return PowerCurve(back @ beta, back @ np.linalg.inv(information(beta)) @ back.T)


@dataclass(frozen=True)
class Simulated:
    """Trials of one design. ``passed`` maps (profile, gate) to [n_trials]."""

    snr: FloatArray
    passed: Mapping[tuple[str, str], FloatArray]
    effects: Mapping[str, FloatArray]
    """Mean over the trials of each distinct ratio, in rising order; NaN where no trial has the number."""
    largest_p: float | None = None
    """Largest p-value at which a trial is integrated under the calibrated profile; None: its own q-value decides."""

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
        curve = fit_curve(self.snr, self.passed[profile, gate] > 0)
        if curve is None or curve.snr_at(target) > self.ratios[-1]:
            return curve, Reason.NEVER_DETECTED
        if curve.snr_at(target) < self.ratios[0]:
            return curve, Reason.ALWAYS_DETECTED
        return curve, Reason.OK


def trial_jobs(design: MatchedDesign, *, trials: int = TRIALS, ratios: Sequence[float] = RATIOS) -> list[TrialJob]:
    """Studies to simulate, one at every ratio first, so that an interruption leaves the whole range covered."""
    return [
        TrialJob(replace(design.cell, snr=snr), number, design.effort, design.rules)
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
    with nullcontext(TaskStore(kept)) if kept is not None else scratch_results() as store:
        results = run_trials(
            jobs,
            store,
            Workspace(config.study(), run),
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
            profile = row["gate_profile"]
            p_values = [v for name, v in row.items() if name.startswith("p_") and v is not None]
            for gate in GATES:
                own = bool(row[gate])
                if largest_p is not None and (profile, gate) == (CALIBRATED, "integrated"):
                    own = all(row[g] for g in _PRODUCT) and max(p_values) <= largest_p
                passed.setdefault((profile, gate), []).append(float(own))
        for name, value in frames[EFFECT].row(0, named=True).items():
            seen.setdefault(name, []).append(np.nan if value is None else value)

    def by_ratio(values: FloatArray) -> FloatArray:
        finite = np.isfinite(values)
        parts = [values[finite & (snr == ratio)] for ratio in np.unique(snr)]
        return np.array([own.mean() if own.size else np.nan for own in parts])

    effects = {name: by_ratio(np.array(values)) for name, values in seen.items()}
    arrays = {key: np.array(values) for key, values in passed.items()}
    return Simulated(snr, arrays, effects, largest_p)
