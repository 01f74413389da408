"""The smallest contrast that level 1 can tell from 0, from sizes and autocorrelation alone.

Assumptions, all of them:

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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from lpact.stats import expected_maximum, median_penalty


@dataclass(frozen=True)
class Detectable:
    """Smallest detectable contrast ``delta``, and the held-out score it stands for where that is known."""

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
