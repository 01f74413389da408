"""Which of several models, scored on the same subjects, could be the best one?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from lpact.math.types import FloatArray
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
    mean, error = d.mean(axis=-1), d.std(axis=-1, ddof=1) / np.sqrt(n)
    slack = ROUNDING * np.abs(x).max(initial=0.0)
    flat = error <= slack
    without = np.where(np.abs(mean) <= slack, 0.0, np.copysign(np.inf, mean))
    return np.where(flat, without, mean / np.where(flat, 1.0, error))


def best_p_values(values: npt.ArrayLike) -> FloatArray:
    """P-values of "this model has the highest mean", by paired multiple comparisons with the best (Hsu 1981).

    For model m, the largest paired t of any other model k against it, with Bonferroni's correction for the search,

        p_m = min(1, (M − 1) P(T_{n−1} ≥ max_k t_km))

    Of models [models, subjects], finite; 1 for a single model, and for fewer than two subjects. Resampling subjects
    instead is unstable: a draw of few of them can have a standard error near 0.
    """
    t = paired_t(values)
    n_models, n = np.shape(values)
    if n_models < 2 or n < 2:
        return np.ones(n_models)
    np.fill_diagonal(t, -np.inf)
    p: FloatArray = np.minimum(1.0, (n_models - 1) * special.stdtr(n - 1, -t.max(axis=0)))
    return p
