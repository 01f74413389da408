"""Which of several models, scored on the same subjects, could be the best one?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lpact.math.types import FloatArray
from lpact.stats.intervals import Rng
from lpact.stats.randomization import ROUNDING


def best_p_values(values: npt.ArrayLike, rng: Rng, *, n_draws: int = 2000) -> FloatArray:
    """P-values of "this model has the highest mean", by paired multiple comparisons with the best (Hsu 1981).

    For model m and every other k, with d_k the paired difference k − m over subjects,

        T_m = max_k mean(d_k) / se(d_k)

    Subjects are drawn with replacement, the same for all models; differences are centred at their observed means, and
    maximum and standard errors are those of the draw (a bootstrap-t), so that the search for the best model is part of
    the null. p = (1 + #{T*_m ≥ T_m}) / (1 + draws). Differences that do not vary count as ±∞, or 0 if they are 0; a
    draw of one subject alone has no standard error, and counts against exclusion. `docs/explanation/
    alignment-patterns.md` has how often the test excludes one of several models that are all the best.

    Parameters
    ----------
    values
        [models, subjects], finite.
    rng, n_draws
        Generator or seed, and number of draws.

    Returns
    -------
    p
        [models]; 1 for a single model, and for fewer than two subjects.
    """
    x = np.asarray(values, dtype=np.float64)
    n_models, n = x.shape
    if n_models < 2 or n < 2:
        return np.ones(n_models)
    rng = np.random.default_rng(rng)
    drawn = rng.multinomial(n, np.full(n, 1.0 / n), size=n_draws) / n
    slack = ROUNDING * max(float(np.abs(x).max()), np.finfo(np.float64).tiny)
    p = np.empty(n_models)
    for m in range(n_models):
        d = np.delete(x, m, axis=0) - x[m]
        gap = d.mean(axis=1)
        centred = d - gap[:, None]
        observed = _t(gap, (centred**2).mean(axis=1), n, slack).max()
        mean = drawn @ centred.T
        null = _t(mean, drawn @ (centred**2).T - mean**2, n, slack).max(axis=1)
        p[m] = (1 + (null >= observed).sum()) / (1 + n_draws)
    return p


def _t(mean: FloatArray, variance: FloatArray, n: int, slack: float) -> FloatArray:
    """Mean over its standard error, from the variance with n in its denominator."""
    error = np.sqrt(np.maximum(variance, 0.0) / (n - 1))
    flat = error <= slack
    without = np.where(np.abs(mean) <= slack, 0.0, np.copysign(np.inf, mean))
    return np.where(flat, without, mean / np.where(flat, 1.0, error))
