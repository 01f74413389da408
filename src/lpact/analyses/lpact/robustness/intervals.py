"""Bootstrap intervals over aggregation units.

Resample the n unit means with replacement, B times. The 2.5 % and 97.5 % quantiles of the B means are too narrow for
few units: the spread of resamples is short by the factor √((n − 1)/n), and the normal quantile stands in the place of
Student's. The interval is therefore read at the quantiles q and 1 − q with q = Φ(t_{n−1}(2.5 %) √(n / (n − 1))), the
expanded percentile (Hesterberg 2015, The American Statistician 69). No quantile lies beyond the extreme units, so that
two or three units give their range, which is still too narrow.

Rows within a unit are not independent, so only units are resampled. With one unit every resample is that unit: the
interval is a point and says nothing of precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpact.codes import Reason
from lpact.math.randomization import expanded_tail
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray

LEVEL = 0.95
DRAWS = 2000


@dataclass(frozen=True)
class Interval:
    """Mean over units with its interval; None where there is no unit."""

    mean: float | None
    low: float | None
    high: float | None
    reason: Reason

    @property
    def degenerate(self) -> bool:
        """Whether one unit carries it."""
        return self.reason is Reason.SINGLE_AGGREGATION_UNIT


def bootstrap_mean(units: FloatArray, *, seed: int, draws: int, key: tuple[str, ...]) -> Interval:
    """Expanded percentile interval of the mean.

    Parameters
    ----------
    units
        [n] one number per unit, in the order of their keys.
    seed, key
        Study seed and what the interval is about; the draws depend on nothing else.
    draws
        Number of resamples B.
    """
    if not units.size:
        return Interval(None, None, None, Reason.NOTHING_MEASURED)
    mean = float(units.mean())
    if units.size == 1:
        return Interval(mean, mean, mean, Reason.SINGLE_AGGREGATION_UNIT)
    rng = keyed_rng(seed, "robustness", "bootstrap", *key)
    means = units[rng.integers(units.size, size=(draws, units.size))].mean(axis=1)
    tail = expanded_tail((1 - LEVEL) / 2, units.size)
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(mean, float(low), float(high), Reason.OK)
