"""Bootstrap intervals over aggregation units.

Rows within a unit are not independent, so only units are resampled (`lpact.stats.bootstrap_interval`). With one unit
every resample is that unit: the interval is a point and says nothing about precision.
"""

from __future__ import annotations

from dataclasses import dataclass

from lpact.codes import Reason
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.stats import bootstrap_interval

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
    low, high = bootstrap_interval(units, rng, n_draws=draws, confidence=LEVEL)
    return Interval(mean, low, high, Reason.OK)
