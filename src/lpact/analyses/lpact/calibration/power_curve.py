"""Power from closed forms, and from simulated studies.

The smallest contrast that level 1 can distinguish from 0, from sizes and autocorrelation alone (`closed_form`):


1. Chance scores are correlations of a prediction without information and a response: mean 0, variance 1 / n_eff
   (`lpact.stats.effective_sample`), the same for every unit.
2. A subject-run's score is the median over units, which are worth U_eff independent ones:
   σ² = m(U_eff) / (n_eff U_eff), with m from 1 to π/2 for the median instead of the mean.
3. Real features and their best rival err independently, so that a contrast has the variance 2 σ². (Rivals that share
   information with the features err alike, and make it smaller: the number is on the safe side.)
4. Subject-runs are worth R_eff independent ones (`DatasetDesign.n_effective_subject_runs`), and the true contrast is
   the same in all of them: SE = √(2 σ² / R_eff). Where it varies, a run's own spread says more (`from_spread`).
5. Both are normal. A test of level a that must find a true contrast d with power q needs d = (z_{1−a} + z_q) SE; a
   point rule (mean > 0) needs d = z_q SE. With fewer than 1/a − 1 draws of a surrogate, the test is compared with their
   first two moments, and Student's quantile with m − 1 degrees of freedom times √(1 + 1/m) takes the place of z_{1−a}.

The score that goes with it: d above the best of K rivals that know nothing. The best of K is not 0 but its expected
maximum, in which a rival that is a mean over D draws has the deviation σ / √D.

From simulated studies (`fit_curve`): power is a logistic function of the logarithm of the signal-to-noise ratio,


    P(pass | snr) = 1 / (1 + exp(−(a + b log snr)))

fitted by Newton's method to the penalised log-likelihood, with normal priors on a and b. The prior keeps the fit finite
where trials separate perfectly (all pass above some ratio, none below), as they do when there are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from lpact.math.types import BoolArray, FloatArray
from lpact.stats import expected_maximum, median_penalty

SLOPE_PRIOR = (3.0, 1.5)
"""Mean and deviation of b before any trial: power rises from 10 % to 90 % over a factor of four, give or take."""
INTERCEPT_DEVIATION = 10.0
FLATTEST = 0.25
"""Slopes below this say nothing about where power is reached."""
_MOST_STEPS = 100
_TOLERANCE = 1e-10


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
        _, b = self.coefficients
        x = np.log(self.snr_at(power))
        gradient = -np.array([1.0, x]) / b
        spread = np.sqrt(gradient @ self.covariance @ gradient) * stats.norm.ppf(0.5 + level / 2)
        return float(np.exp(x - spread)), float(np.exp(x + spread))


def fit_curve(
    snr: FloatArray,
    passed: BoolArray,
    *,
    slope_prior: tuple[float, float] = SLOPE_PRIOR,
    intercept_deviation: float = INTERCEPT_DEVIATION,
) -> PowerCurve | None:
    """Fit the curve to trials; None where power does not rise with the ratio.

    Parameters
    ----------
    snr, passed
        [n_trials] each; ratios are positive.
    slope_prior, intercept_deviation
        Normal priors of b (mean, deviation) and of a at the trials' mean log ratio (mean 0).
    """
    x = np.log(np.asarray(snr, dtype=np.float64))
    centre = x.mean()
    design = np.column_stack([np.ones_like(x), x - centre])
    y = np.asarray(passed, dtype=np.float64)
    mean = np.array([0.0, slope_prior[0]])
    precision = np.diag([intercept_deviation**-2.0, slope_prior[1] ** -2.0])
    beta, information = _newton(design, y, mean, precision)
    if beta[1] < FLATTEST:
        return None
    # a at log snr = 0 instead of at the centre.
    back = np.array([[1.0, -centre], [0.0, 1.0]])
    return PowerCurve(back @ beta, back @ np.linalg.inv(information) @ back.T)


def _newton(
    design: FloatArray, y: FloatArray, mean: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mode of the penalised likelihood and its information; steps are halved until the objective rises."""

    def objective(beta: FloatArray) -> float:
        eta = design @ beta
        fit = y @ eta - np.logaddexp(0.0, eta).sum()
        return float(fit - 0.5 * (beta - mean) @ precision @ (beta - mean))

    beta = mean.copy()
    for _ in range(_MOST_STEPS):
        p = special.expit(design @ beta)
        gradient = design.T @ (y - p) - precision @ (beta - mean)
        information = design.T @ (design * (p * (1 - p))[:, None]) + precision
        step = np.linalg.solve(information, gradient)
        before = objective(beta)
        while objective(beta + step) < before and np.abs(step).max() > _TOLERANCE:
            step = step / 2
        beta = beta + step
        if np.abs(step).max() <= _TOLERANCE:
            break
    p = special.expit(design @ beta)
    return beta, design.T @ (design * (p * (1 - p))[:, None]) + precision


@dataclass(frozen=True)
class Detectable:
    """Smallest detectable contrast ``delta``, and the corresponding held-out score where it is known."""

    delta: float
    score: float | None
    standard_error: float


def chance_deviation(n_effective_events: float, n_effective_units: float) -> float:
    """σ: standard deviation of one subject-run's score by chance."""
    units = max(n_effective_units, 1.0)
    return float(np.sqrt(median_penalty(units) / (n_effective_events * units)))


def closed_form(
    *,
    n_effective_events: float,
    n_effective_units: float,
    n_subject_runs: float,
    draws: Sequence[int],
    alpha: float | None,
    target: float,
    surrogate_draws: int = 1000,
) -> Detectable | None:
    """Smallest detectable contrast of a design; ``alpha`` None is a point rule.

    ``draws`` holds one entry per rival: the number of draws that its score is the mean of. None: a test with fewer than
    two ``surrogate_draws`` never rejects.
    """
    if alpha is not None and surrogate_draws < 2:
        return None
    sigma = chance_deviation(n_effective_events, n_effective_units)
    error = sigma * float(np.sqrt(2.0 / n_subject_runs))
    critical = 0.0 if alpha is None else critical_value(alpha, surrogate_draws)
    delta = critical + _quantile(target)
    rivals = expected_maximum(sigma / np.sqrt(np.asarray(draws, dtype=np.float64)))
    return Detectable(delta * error, delta * error + rivals, error)


def critical_value(alpha: float, draws: int) -> float:
    """What a standardised score must exceed at level ``alpha``, compared with ``draws`` draws (at least two)."""
    if draws >= 1.0 / alpha - 1.0:
        return _quantile(1.0 - alpha)
    return float(stats.t.ppf(1.0 - alpha, draws - 1) * np.sqrt(1.0 + 1.0 / draws))


def from_spread(
    deltas: Sequence[float], *, rival_score: float | None, alpha: float | None, target: float
) -> Detectable | None:
    """The same from the contrasts of a run's subject-runs, with Student quantiles; None for fewer than two.

    SE = sd / √R: differences between subjects are in it, and no autocorrelation has to be known.
    """
    n = len(deltas)
    if n < 2:
        return None
    error = float(np.std(deltas, ddof=1) / np.sqrt(n))
    delta = float(stats.t.ppf(target, n - 1))
    if alpha is not None:
        delta += float(stats.t.ppf(1.0 - alpha, n - 1))
    score = None if rival_score is None else rival_score + delta * error
    return Detectable(delta * error, score, error)


def _quantile(q: float) -> float:
    return float(stats.norm.ppf(q))
