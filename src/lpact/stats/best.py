"""Which of several models, scored on the same subjects, could be the best one?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from lpact.math.types import FloatArray
from lpact.stats.intervals import Rng
from lpact.stats.randomization import ROUNDING


def paired_t(values: npt.ArrayLike) -> FloatArray:
    """Student's t of every pair of models over subjects, [models, subjects] → [k, m] for the difference k − m.

    Differences that do not vary give ±∞, or 0 if they are 0; NaN with fewer than two subjects.
    """
    x = np.asarray(values, dtype=np.float64)
    n = x.shape[1]
    if n < 2:
        return np.full((len(x), len(x)), np.nan)
    d = x[:, None] - x[None]
    return _t(d.mean(axis=-1), d.var(axis=-1), n, _slack(x))


def best_p_values(values: npt.ArrayLike) -> FloatArray:
    """P-values of "this model has the highest mean", by paired multiple comparisons with the best (Hsu 1981).

    For model m, the largest paired t of any other model k against it, with Bonferroni's correction for the search,

        p_m = min(1, (M − 1) P(T_{n−1} ≥ max_k t_km))

    Scores are [models, subjects], all finite; p is 1 for a single model, and for fewer than two subjects.
    """
    t = paired_t(values)
    n_models, n = np.shape(values)
    if n_models < 2 or n < 2:
        return np.ones(n_models)
    np.fill_diagonal(t, -np.inf)
    p: FloatArray = np.minimum(1.0, (n_models - 1) * special.stdtr(n - 1, -t.max(axis=0)))
    return p


def best_bootstrap_p_values(values: npt.ArrayLike, rng: Rng, *, n_draws: int = 2000) -> FloatArray:
    """The same by a paired bootstrap-t, which searches for the best model in every draw.

    Subjects are drawn with replacement, the same for all models; differences are centred at their observed means, and
    maximum and standard errors are those of the draw: p = (1 + #{T*_m ≥ T_m}) / (1 + draws). With fewer than ten
    subjects it hardly rejects: a draw of few of them can have a standard error near 0.
    """
    x = np.asarray(values, dtype=np.float64)
    n_models, n = x.shape
    if n_models < 2 or n < 2:
        return np.ones(n_models)
    drawn = np.random.default_rng(rng).multinomial(n, np.full(n, 1.0 / n), size=n_draws) / n
    slack, p = _slack(x), np.empty(n_models)
    for m in range(n_models):
        d = np.delete(x, m, axis=0) - x[m]
        gap = d.mean(axis=1)
        centred = d - gap[:, None]
        observed = _t(gap, (centred**2).mean(axis=1), n, slack).max()
        mean = drawn @ centred.T
        null = _t(mean, drawn @ (centred**2).T - mean**2, n, slack).max(axis=1)
        p[m] = (1 + (null >= observed).sum()) / (1 + n_draws)
    return p


def _slack(x: FloatArray) -> float:
    """Differences up to this size are rounding errors."""
    return ROUNDING * float(np.abs(x).max(initial=np.finfo(np.float64).tiny))


def _t(mean: FloatArray, variance: FloatArray, n: int, slack: float) -> FloatArray:
    """Mean over its standard error, from the variance with n in its denominator."""
    error = np.sqrt(np.maximum(variance, 0.0) / (n - 1))
    flat = error <= slack
    without = np.where(np.abs(mean) <= slack, 0.0, np.copysign(np.inf, mean))
    return np.where(flat, without, mean / np.where(flat, 1.0, error))
