"""One-sided tests by randomisation: draws under the null, sign flips, bootstrap bounds, and their combination.

All p-values are valid in the sense P(p ≤ α) ≤ α under the null that the function names, exactly where it says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy import special

from lpact.math.types import FloatArray

MAX_EXACT = 12
"""Values up to which all 2ⁿ sign flips are enumerated."""

_SIGNS_AT_ONCE = 2**16
"""Few enough to stay in the processor's cache."""
_SIGN, _MINUS_ONE = np.array([-0.0, -1.0]).view(np.uint64)


def draw_p_value(observed: float, draws: FloatArray) -> float:
    """P-value of an observed statistic against draws of it under the null.

    With m draws, p = (1 + #{draws ≥ observed}) / (1 + m), exact if observed and draws are exchangeable under the null
    (Barnard 1963; Phipson & Smyth 2010). Where no draw reaches the observed value the rank can say no more than
    1 / (1 + m); the tail beyond it is taken from the draws' first two moments (as in Winkler et al. 2016), with the
    distribution of a further draw from a normal population, Student's t on m − 1 degrees of freedom of
    (observed − mean) / (sd √(1 + 1/m)). The smaller of the two is returned, so that with m ≥ 1/α − 1 draws a test at
    level α is the exact one, and the moments only order what lies beyond it.

    ``draws`` is [m]; draws that are not finite are left out. Without any the p-value is 1.
    """
    draws = draws[np.isfinite(draws)]
    m = draws.size
    if not m or not np.isfinite(observed):
        return 1.0
    n_reaching = int((draws >= observed).sum())
    rank = (1 + n_reaching) / (1 + m)
    if n_reaching or m < 3:
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
    values: FloatArray,
    rng: np.random.Generator | Callable[[], np.random.Generator],
    n_flips: int = 9_999,
) -> float:
    """P-value of a mean above 0 by flipping signs: exact if the values are independent and symmetric around 0.

    All 2ⁿ flips are enumerated for n ≤ 12; beyond, the observed signs and ``n_flips`` random ones. Values that are
    not finite are left out; values that are all 0 give 1. ``rng`` may be a function that makes the generator, which is
    called only where one is needed.

    Reference: Fisher 1935; Nichols & Holmes 2002.
    """
    values = values[np.isfinite(values)]
    n = values.size
    if not n:
        return 1.0
    observed = float(values.sum())
    # A flip that leaves the same multiset of terms must count as reaching, whatever the order of adding.
    slack = 1e-12 * float(np.abs(values).sum())
    if n <= MAX_EXACT:
        return float((_all_signs(n) @ values >= observed - slack).mean())
    rng = rng() if callable(rng) else rng
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
    """``rng.integers(0, 2, shape) * 2.0 - 1.0``, and the generator left as that leaves it, in a third of the time.

    One of two values is drawn as the highest bit of 32 random bits, which becomes the sign bit of ±1.0 as it is. The
    generator makes 64 bits at a time, of which the lower half is used first.
    """
    source = rng.bit_generator
    pairs, left = divmod(shape[0] * shape[1], 2)
    if left or not isinstance(source, np.random.PCG64) or source.state["has_uint32"]:
        bits = rng.integers(0, 2**32, shape, dtype=np.uint32).astype(np.uint64)
        bits <<= np.uint64(32)
    else:
        both = source.random_raw(pairs)
        bits = np.empty((pairs, 2), np.uint64)
        np.left_shift(both, np.uint64(32), out=bits[:, 0])
        bits[:, 1] = both
    bits &= _SIGN
    bits ^= _MINUS_ONE
    return bits.view(np.float64).reshape(shape)


def one_sample_p_value(values: FloatArray) -> float:
    """P-value of a mean above 0 by Student's t on n − 1 degrees of freedom: for few, roughly normal values."""
    values = values[np.isfinite(values)]
    n = values.size
    if n < 2:
        return 1.0
    mean = np.add.reduce(values) / n
    around = values - mean
    spread = math.sqrt(np.add.reduce(around * around) / (n - 1))
    if not spread > 0.0:
        return 1.0 if mean <= 0.0 else 1.0 / 2**n
    return student_tail(float(mean) * math.sqrt(n) / spread, n - 1)


def intersection_union(p_values: FloatArray) -> float:
    """P-value that *every* alternative holds: the largest of the p-values (Berger 1982).

    The test has level α whenever at least one of the nulls is true, whatever the dependence. Nothing tested: 1.
    """
    return float(np.max(p_values)) if p_values.size else 1.0


def partial_conjunction(p_values: FloatArray, at_least: int) -> float:
    """P-value that at least ``at_least`` of the n alternatives hold (Benjamini & Heller 2008, with Bonferroni).

    p = (n − u + 1) p_(u), p_(u) being the u-th smallest of the n: valid whatever the dependence. At most 1.
    """
    n = p_values.size
    if not 1 <= at_least <= n:
        return 1.0
    return min(1.0, (n - at_least + 1) * float(np.sort(p_values)[at_least - 1]))


def bootstrap_p_value(
    values: list[FloatArray], threshold: float, rng: np.random.Generator, n_draws: int = 4_999
) -> tuple[float, float]:
    """P-value that the mean over groups of their means exceeds ``threshold``, and its 95 % lower bound.

    Groups are drawn with replacement, then members within each drawn group (two-stage bootstrap, Davison & Hinkley
    1997). A percentile bound is too narrow for few groups by the factor √((n − 1)/n), and by the normal quantile in
    place of Student's; both are undone by the expanded percentile of Hesterberg (2015): if z is the normal quantile of
    the share of draws above the threshold, p = P(T_{n−1} ≥ z √((n − 1)/n)). A share of 0 or 1 is replaced by the normal
    tail of the draws' mean and standard deviation.

    ``values`` holds one array of finite numbers a group. With fewer than 2 groups the p-value is 1 and the bound −∞.
    """
    n = len(values)
    if n < 2:
        return 1.0, float("-inf")
    within = np.stack([_member_means(v, rng, n_draws) for v in values])
    groups = rng.integers(0, n, (n_draws, n))
    draws = within[groups, rng.integers(0, n_draws, (n_draws, n))].mean(axis=1)
    centre, spread = float(np.mean([v.mean() for v in values])), float(draws.std(ddof=1))
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


def expanded_tail(tail: float, n: int) -> float:
    """Quantile at which the bootstrap of a mean over n ≥ 2 groups is read for a one-sided bound of level ``tail``.

    Φ(t_{n−1}(tail) √(n / (n − 1))), the expanded percentile of Hesterberg (2015): for few groups the plain percentile
    is too narrow. It tends to ``tail`` as n grows.
    """
    return float(special.ndtr(special.stdtrit(n - 1, tail) / np.sqrt((n - 1) / n)))


def _member_means(values: FloatArray, rng: np.random.Generator, n_draws: int) -> FloatArray:
    """Means of ``n_draws`` resamples of one group."""
    means = np.empty(n_draws)
    step = max(1, 2_000_000 // values.size)
    for start in range(0, n_draws, step):
        size = (min(step, n_draws - start), values.size)
        means[start : start + step] = values[rng.integers(0, values.size, size)].mean(axis=1)
    return means
