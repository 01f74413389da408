"""Intervals for a proportion."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist


def wilson_interval(
    n_passes: int, n_trials: int, *, confidence: float = 0.95
) -> tuple[float, float]:
    """Return Wilson's score interval for a proportion.

    With p = n_passes / n_trials, n = n_trials and z the normal quantile of (1 + confidence) / 2, ::

        (p + z²/2n ± z √(p (1 − p) / n + z²/4n²)) / (1 + z²/n)

    It lies in [0, 1], and holds for small n and for proportions near 0 and 1 (Wilson, 1927, J. Am. Stat. Assoc. 22;
    Brown, Cai and DasGupta, 2001, Statistical Science 16).
    """
    if not 0 <= n_passes <= n_trials or n_trials < 1:
        raise ValueError(f"{n_passes} passes of {n_trials} trials is no proportion")
    if not 0.0 < confidence < 1.0:
        raise ValueError("the confidence must lie between 0 and 1")
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
