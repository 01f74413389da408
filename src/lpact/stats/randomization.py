"""One-sided tests (draws under the null, permuted blocks, sign flips, bootstrap bounds, equivalence), and many at once.

Under the null that a function names, P(p ≤ α) ≤ α; exactly where it says so, otherwise approximately.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import special

from lpact.math.types import FloatArray, IntArray
from lpact.stats.intervals import Rng, block_rows, expanded_tail, finite_values

MAX_EXACT = 12
"""Values up to which all 2ⁿ sign flips are enumerated."""

_SIGNS_AT_ONCE = 2**16
"""Few enough to stay in the processor's cache."""
ROUNDING = 1e-12
"""Relative to the values themselves, a difference up to which they count as equal."""


def rank_p_values(observed: npt.ArrayLike, draws: npt.ArrayLike, *, slack: float = 0.0) -> FloatArray:
    """P-values of observed statistics among draws of them: (1 + #{draws ≥ observed}) / (1 + draws).

    Exact if observed and draws are exchangeable under the null (Barnard 1963; Phipson & Smyth 2010).

    Parameters
    ----------
    observed
        [...].
    draws
        [m, ...]; draws that are not finite are left out, of the rank and of the count.
    slack
        A draw that is smaller by at most this, through rounding, reaches the observed value.

    Returns
    -------
    p
        [...]; NaN where ``observed`` is not finite.
    """
    observed, draws = (np.asarray(v, dtype=np.float64) for v in (observed, draws))
    finite = np.isfinite(draws)
    n_reaching = (finite & (draws >= observed - slack)).sum(axis=0)
    p: FloatArray = np.where(np.isfinite(observed), (1 + n_reaching) / (1 + finite.sum(axis=0)), np.nan)
    return p


def draw_p_value(observed: float, draws: npt.ArrayLike) -> float:
    """P-value of an observed statistic against draws of it under the null.

    With m draws, the rank p-value of `rank_p_values`. Where no draw reaches the observed value the rank says
    1 / (1 + m), however far beyond it is; the tail is then taken from the draws' first two moments (as in Winkler et
    al. 2016), with the distribution of a further draw from a normal population, Student's t on m − 1 degrees of freedom
    of (observed − mean) / (sd √(1 + 1/m)). The smaller of the two is returned.

    With m ≥ 1/α − 1 draws a test at level α is exact. With fewer, and for every p-value below 1 / (1 + m), it relies on
    a normal tail: with 5 draws, a test at 0.05 has 0.05 false positives for normal draws, 0.10 for exponential ones and
    0.13 for squared exponential ones (simulated).

    ``draws`` is [m]; draws that are not finite are left out. NaN without any, or where ``observed`` is undefined.
    """
    draws = finite_values(draws)
    m = draws.size
    if not m or not np.isfinite(observed):
        return np.nan
    rank = float(rank_p_values(observed, draws))
    if rank > 1 / (1 + m) or m < 3:
        return rank
    spread = float(draws.std(ddof=1)) * np.sqrt(1.0 + 1.0 / m)
    if not spread > 0.0:
        return rank
    tail = student_tail((observed - float(draws.mean())) / spread, m - 1)
    return min(rank, tail)


def student_tail(t: float, degrees: int) -> float:
    """P(T ≥ t) of Student's distribution, at least the smallest positive number."""
    return max(float(special.stdtr(degrees, -t)), float(np.finfo(np.float64).tiny))


def sign_flip_p_value(
    values: npt.ArrayLike,
    rng: Rng | Callable[[], np.random.Generator],
    n_flips: int = 9_999,
) -> float:
    """P-value of a mean above 0 by flipping signs: exact if the values are independent and symmetric around 0.

    All 2ⁿ flips are enumerated for n ≤ 12; beyond, the observed signs and ``n_flips`` random ones. Values that are
    not finite are left out; without any p is NaN, and values that are all 0 give 1. ``rng`` is a generator, a seed, or
    a function that makes the generator, which is called only where one is needed.

    Reference: Fisher 1935; Nichols & Holmes 2002.
    """
    values = finite_values(values)
    n = values.size
    if not n:
        return np.nan
    observed = float(values.sum())
    # A flip that leaves the same multiset of terms must count as reaching, whatever the order of adding.
    slack = ROUNDING * float(np.abs(values).sum())
    if n <= MAX_EXACT:
        return float((_all_signs(n) @ values >= observed - slack).mean())
    rng = np.random.default_rng(rng() if callable(rng) else rng)
    n_reaching, step = 0, 2 * max(1, _SIGNS_AT_ONCE // (2 * n))
    for start in range(0, n_flips, step):
        signs = random_signs(rng, (min(step, n_flips - start), n))
        n_reaching += int((signs @ values >= observed - slack).sum())
    return float((1 + n_reaching) / (1 + n_flips))


@cache
def _all_signs(n: int) -> FloatArray:
    """Every choice of n signs, [2ⁿ, n]."""
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    signs = np.asarray(1.0 - 2.0 * bits, dtype=np.float64)
    signs.flags.writeable = False
    return signs


def random_signs(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Random signs, −1.0 or 1.0 with equal probability."""
    signs: FloatArray = rng.integers(0, 2, shape).astype(np.float64) * 2.0 - 1.0
    return signs


def block_permutation_p_value(
    statistic: Callable[[IntArray], float],
    blocks: npt.ArrayLike,
    rng: Rng,
    n_draws: int = 999,
) -> float:
    """P-value of a statistic when whole blocks of rows change places: exact if blocks are exchangeable under the null.

    Rows keep their neighbours, so autocorrelation within blocks does not make the test too optimistic, as plain
    permutation (`scipy.stats.permutation_test`) would. Blocks must be longer than the autocorrelation: neighbouring
    blocks that resemble each other are not exchangeable, and the test is then too optimistic.

    Parameters
    ----------
    statistic
        Function of a row order [n], such as ``lambda order: score(X, Y[order])``; large values speak against the null.
    blocks
        [n] block of every row: a story, a passage, a stretch longer than the autocorrelation. All rows of a block must
        be next to each other (`ValueError` otherwise).
    rng, n_draws
        Generator or seed, and number of random orders; the smallest possible p-value is 1 / (1 + n_draws). A draw whose
        statistic is undefined counts as reaching the observed one.

    Returns
    -------
    p
        (1 + number of draws that reach the observed statistic) / (1 + n_draws); 1 where that is undefined.
    """
    rows = block_rows(blocks)
    if any(block[-1] - block[0] >= block.size for block in rows):
        raise ValueError("every block must be one contiguous stretch of rows; give separate stretches different labels")
    observed = statistic(np.arange(sum(map(len, rows))))
    if not np.isfinite(observed):
        return 1.0
    rng = np.random.default_rng(rng)
    orders = (rng.permutation(len(rows)) for _ in range(n_draws))
    draws = np.array([statistic(np.concatenate([rows[i] for i in order])) for order in orders])
    n_reaching = int((~(draws < observed)).sum())  # NaN is not below
    return (1 + n_reaching) / (1 + n_draws)


def equivalence_p_value(values: npt.ArrayLike, bound: float) -> float:
    """P-value that a mean is within ±``bound``, by two one-sided t-tests (TOST; Schuirmann 1987).

    The larger of the p-values of mean > −bound and mean < bound. Values [n] that are not finite are left out;
    NaN without any.
    """
    if not bound > 0.0:
        raise ValueError(f"the bound of equivalence must be positive, got {bound}")
    values = np.asarray(values, dtype=np.float64)
    return max(one_sample_p_value(values + bound), one_sample_p_value(bound - values))


def one_sample_p_value(values: npt.ArrayLike) -> float:
    """P-value of a mean above 0 by Student's t on n − 1 degrees of freedom: for few, roughly normal values.

    Values [n] that are not finite are left out. A single value gives 1, none NaN. Values that are equal up to rounding
    have no t: they give 1/2ⁿ, as flipping their signs does, where the mean is above 0, and 1 otherwise.
    """
    values = finite_values(values)
    n = values.size
    if n < 2:
        return 1.0 if n else np.nan
    mean = np.add.reduce(values) / n
    around = values - mean
    spread = math.sqrt(np.add.reduce(around * around) / (n - 1))
    if spread <= ROUNDING * abs(mean):
        return 1.0 if mean <= 0.0 else 1.0 / 2**n
    return student_tail(float(mean) * math.sqrt(n) / spread, n - 1)


def bootstrap_p_value(
    values: Sequence[npt.ArrayLike], threshold: float, rng: Rng, n_draws: int = 4_999
) -> tuple[float, float]:
    """P-value that the mean over groups of their means exceeds ``threshold``, and its 95 % lower bound.

    Groups are drawn with replacement, then members within each drawn group (two-stage bootstrap, Davison & Hinkley
    1997). A percentile bound is too narrow for few groups by the factor √((n − 1)/n), and by the normal quantile in
    place of Student's; both are undone by the expanded percentile of Hesterberg (2015): if z is the normal quantile of
    the share of draws above the threshold, p = P(T_{n−1} ≥ z √((n − 1)/n)). A share of 0 or 1 is replaced by the normal
    tail of the draws' mean and standard deviation.

    ``values`` holds one array of finite numbers per group. With one group the p-value is 1 and the bound −∞; without
    groups both are NaN.
    """
    arrays, rng = [np.asarray(v, dtype=np.float64) for v in values], np.random.default_rng(rng)
    n = len(arrays)
    if n < 2:
        return (1.0, float("-inf")) if n else (np.nan, np.nan)
    within = np.stack([_member_means(v, rng, n_draws) for v in arrays])
    groups = rng.integers(0, n, (n_draws, n))
    draws = within[groups, rng.integers(0, n_draws, (n_draws, n))].mean(axis=1)
    centre, spread = float(np.mean([v.mean() for v in arrays])), float(draws.std(ddof=1))
    shrink = np.sqrt((n - 1) / n)
    share = float((draws <= threshold).mean())
    if 0.0 < share < 1.0:
        z = -float(special.ndtri(share))
    elif spread > 0.0:
        z = (centre - threshold) / spread
    else:
        z = np.inf if centre > threshold else -np.inf
    p = student_tail(z * shrink, n - 1) if np.isfinite(z) else float(z < 0)
    return p, float(np.quantile(draws, expanded_tail(0.05, n)))


def _member_means(values: FloatArray, rng: np.random.Generator, n_draws: int) -> FloatArray:
    """Means of ``n_draws`` resamples of one group."""
    means = np.empty(n_draws)
    step = max(1, 2_000_000 // values.size)
    for start in range(0, n_draws, step):
        size = (min(step, n_draws - start), values.size)
        means[start : start + step] = values[rng.integers(0, values.size, size)].mean(axis=1)
    return means


def benjamini_hochberg(p: npt.ArrayLike) -> FloatArray:
    """Return Benjamini–Hochberg adjusted p-values; NaN (a test that could not be made) stays NaN and is not counted.

    With m finite p-values in ascending order, q_(i) = min over k ≥ i of p_(k) m / k, at most 1: the values of
    `scipy.stats.false_discovery_control`, without the half second that importing it takes. Rejecting q ≤ α keeps the
    expected share of false discoveries at or below α for independent or positively dependent tests (Benjamini &
    Hochberg 1995; Benjamini & Yekutieli 2001).
    """
    p = np.asarray(p, dtype=np.float64)
    tested = ~np.isnan(p)
    values = p[tested]
    if ((values < 0.0) | (values > 1.0)).any():
        raise ValueError(f"p-values must be in [0, 1], got {values.min():g} to {values.max():g}")
    q = np.full(p.shape, np.nan)
    order = np.argsort(values)
    scaled = values[order] * (values.size / np.arange(1, values.size + 1))
    values[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    q[tested] = values
    return q


def intersection_union(p_values: npt.ArrayLike) -> float:
    """P-value that *every* alternative holds: the largest of the p-values (Berger 1982).

    The test has level α whenever at least one of the nulls is true, whatever the dependence. NaN without tests.
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    return float(np.max(p_values)) if p_values.size else np.nan


def partial_conjunction(p_values: npt.ArrayLike, at_least: int) -> float:
    """P-value that at least ``at_least`` of the n alternatives hold (Benjamini & Heller 2008, with Bonferroni).

    p = (n − u + 1) p_(u), p_(u) being the u-th smallest of the n: valid whatever the dependence. At most 1, also where
    u is not in 1 … n; NaN without tests.
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    n = p_values.size
    if not n:
        return np.nan
    if not 1 <= at_least <= n:
        return 1.0
    return min(1.0, (n - at_least + 1) * float(np.sort(p_values)[at_least - 1]))
