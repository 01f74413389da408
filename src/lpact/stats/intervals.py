"""Intervals: of a proportion, of a mean over few units, of any statistic of blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from scipy import special

from lpact.math.columns import mean_of_finite
from lpact.math.types import FloatArray, IntArray

Rng = np.random.Generator | int
"""A generator, which is advanced, or the seed of a new one."""


def wilson_interval(n_passes: int, n_trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval for a proportion.

    With p = n_passes / n_trials, n = n_trials and z the normal quantile of (1 + confidence) / 2, ::

        (p + z²/2n ± z √(p (1 − p) / n + z²/4n²)) / (1 + z²/n)

    It lies in [0, 1], and holds for small n and for proportions near 0 and 1 (Wilson, 1927, J. Am. Stat. Assoc. 22;
    Brown, Cai and DasGupta, 2001, Statistical Science 16). The formula of SciPy's
    ``binomtest(…).proportion_ci(method="wilson")``, without the half second that importing `scipy.stats` takes.
    """
    if not 0 <= n_passes <= n_trials or n_trials < 1:
        raise ValueError(f"{n_passes} passes of {n_trials} trials is not a proportion")
    if not 0.0 < confidence < 1.0:
        raise ValueError("the confidence must be between 0 and 1")
    z2 = NormalDist().inv_cdf((1.0 + confidence) / 2.0) ** 2
    n = float(n_trials)
    p = n_passes / n
    scale = 1.0 + z2 / n
    centre = (p + z2 / (2.0 * n)) / scale
    half = sqrt(z2 * (p * (1.0 - p) / n + z2 / (4.0 * n * n))) / scale
    # The ends are exact there; rounding would leave them a little off.
    low = 0.0 if n_passes == 0 else max(0.0, centre - half)
    high = 1.0 if n_passes == n_trials else min(1.0, centre + half)
    return low, high


def student_interval(values: npt.ArrayLike, *, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Return the ends of Student's t intervals of means over the last axis, [..., n] → [...].

    Values that are not finite are left out; NaN where fewer than two remain.
    """
    values = np.asarray(values, dtype=np.float64)
    n = np.isfinite(values).sum(axis=-1)
    mean = mean_of_finite(values, -1)
    away = np.where(np.isfinite(values), values - mean[..., None], 0.0)
    variance = (away**2).sum(axis=-1) / np.maximum(n - 1, 1)
    error = np.sqrt(variance / np.maximum(n, 1))
    half = special.stdtrit(np.maximum(n - 1.0, 1.0), (1.0 + confidence) / 2.0) * error
    half = np.where(n > 1, half, np.nan)
    return mean - half, mean + half


def bootstrap_interval(
    values: npt.ArrayLike, rng: Rng, *, n_draws: int = 2000, confidence: float = 0.95
) -> tuple[float, float]:
    """Return the expanded percentile interval of a mean over independent units (Hesterberg 2015, Am. Stat. 69).

    The n values are resampled with replacement ``n_draws`` times; the interval is read from the means at the quantiles
    q and 1 − q with q = `expanded_tail` ((1 − confidence) / 2, n). No quantile is beyond the extreme values, so two
    or three of them give their range, which is still too narrow.

    Parameters
    ----------
    values
        [n] one per unit. Values that are not finite are left out; at least two must remain.
    rng, n_draws
        Generator or seed, and number of resamples.
    confidence
        Share of intervals that should cover the mean.
    """
    values, rng = finite_values(values), np.random.default_rng(rng)
    if values.size < 2:
        raise ValueError(f"an interval needs at least 2 units with finite values, got {values.size}")
    means = values[rng.integers(values.size, size=(n_draws, values.size))].mean(axis=1)
    tail = expanded_tail((1.0 - confidence) / 2.0, values.size)
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return float(low), float(high)


@dataclass(frozen=True)
class Bootstrap:
    """A statistic, its interval, its draws [n_draws], and how many of them are undefined (and not in the interval)."""

    value: float
    low: float
    high: float
    draws: FloatArray
    n_undefined: int


def block_bootstrap(
    statistic: Callable[[IntArray], float],
    blocks: npt.ArrayLike,
    rng: Rng,
    *,
    n_draws: int = 999,
    confidence: float = 0.95,
) -> Bootstrap:
    """Return any statistic of rows with an interval, by drawing whole blocks with replacement.

    `scipy.stats.bootstrap` draws rows one by one, which is too optimistic where neighbours resemble each other.

    Parameters
    ----------
    statistic
        Function of row numbers, such as ``lambda rows: corr(y[rows], predicted[rows])``.
    blocks
        [n] block of every row: a story, a passage, a stretch longer than the autocorrelation. At least two blocks.
    rng, n_draws
        Generator or seed, and number of resamples.
    confidence
        Share of intervals that should cover the statistic.

    Returns
    -------
    Bootstrap
        With the expanded percentile interval (see `expanded_tail`) for as many units as there are blocks; NaN where the
        statistic of no draw is defined.
    """
    rows = block_rows(blocks)
    if len(rows) < 2:
        raise ValueError(f"a block bootstrap needs at least 2 blocks, got {len(rows)}")
    drawn = np.random.default_rng(rng).integers(0, len(rows), (n_draws, len(rows)))
    draws = np.array([statistic(np.concatenate([rows[b] for b in some])) for some in drawn])
    finite = draws[np.isfinite(draws)]
    tail = expanded_tail((1.0 - confidence) / 2.0, len(rows))
    low, high = np.quantile(finite, [tail, 1.0 - tail]) if finite.size else (np.nan, np.nan)
    value = float(statistic(np.arange(sum(map(len, rows)))))
    return Bootstrap(value, float(low), float(high), draws, n_draws - finite.size)


def expanded_tail(tail: float, n: int) -> float:
    """Quantile at which the bootstrap of a mean over n ≥ 2 groups is read for a one-sided bound of level ``tail``.

    Φ(t_{n−1}(tail) √(n / (n − 1))), the expanded percentile of Hesterberg (2015): for few groups the plain percentile
    is too narrow, by the normal quantile in place of Student's and by √((n − 1) / n). It tends to ``tail`` as n grows.
    """
    return float(special.ndtr(special.stdtrit(n - 1, tail) / np.sqrt((n - 1) / n)))


def finite_values(values: npt.ArrayLike) -> FloatArray:
    """Values that are finite, in one axis."""
    array = np.asarray(values, dtype=np.float64)
    return array[np.isfinite(array)]


def block_rows(blocks: npt.ArrayLike) -> list[IntArray]:
    """Rows of every block, blocks in the order of their labels: [n] labels → one array per block."""
    labels = np.asarray(blocks)
    if labels.ndim != 1 or not labels.size:
        raise ValueError(f"blocks must be one label per row, got shape {labels.shape}")
    number = np.unique(labels, return_inverse=True)[1]
    order = np.argsort(number, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
