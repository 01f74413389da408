"""Power as a logistic function of the logarithm of the signal-to-noise ratio, from few trials.

    P(pass | snr) = 1 / (1 + exp(−(a + b log snr)))

fitted by Newton's method to the penalised log-likelihood, with normal priors on a and b. The prior keeps the fit finite
where trials separate perfectly (all pass above some ratio, none below), as they do when there are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from lpact.math.types import BoolArray, FloatArray

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
