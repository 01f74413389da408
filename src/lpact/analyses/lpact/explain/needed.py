"""How large a number would have to be for its test to pass, if nothing else changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np
from scipy import special

from lpact.analyses.lpact.gates.calibrated.frames import (
    SubjectRun,
    block_p_value,
    means_by_stimulus,
)
from lpact.math.types import FloatArray
from lpact.stats import MAX_EXACT
from lpact.stats.randomization import ROUNDING

FEWEST_FOR_TAIL = 3
"""Draws from which the tail beyond them is taken from their mean and spread."""
_FLIPS = 9_999
_STEPS = 12


@dataclass(frozen=True)
class Needed:
    """The number that would pass, or None and ``why``; ``smallest_p`` is the smallest possible p-value."""

    value: float | None
    smallest_p: float
    why: str = ""


def rounded_down(value: float, digits: int = 3) -> str:
    """A bound that a number must not exceed, with so many digits and never above it: 0.000555 for 1/1800."""
    return _rounded(value, digits, ROUND_FLOOR)


def rounded_up(value: float, digits: int = 3) -> str:
    """A bound that a number must exceed, with so many digits and never below it."""
    return _rounded(value, digits, ROUND_CEILING)


def _rounded(value: float, digits: int, how: str) -> str:
    if not math.isfinite(value) or value == 0.0:
        return f"{value:.{digits}g}"
    # Fifteen digits are what a double holds for certain; beyond them is noise of the arithmetic.
    exact = Decimal(f"{value:.15g}")
    place = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{float(exact.quantize(place, rounding=how)):.{digits}g}"


def fewest_draws(alpha: float) -> int:
    """Fewest draws among which the first rank has a p-value of at most ``alpha``."""
    return math.ceil(1 / alpha - 1e-9) - 1


def above_draws(draws: FloatArray, alpha: float) -> Needed:
    """Statistic that `lpact.stats.draw_p_value` gives a p-value of at most ``alpha``; it must be above it.

    By rank: above all but ⌊α (1 + m)⌋ − 1 of the m draws. By the tail beyond all of them, for m ≥ 3: above
    mean + t_{m−1}(1 − α) sd √(1 + 1/m). The smaller of the two.
    """
    draws = np.sort(draws[np.isfinite(draws)])[::-1]
    m = draws.size
    first_rank = 1 / (1 + m)
    may_reach = math.floor(alpha * (1 + m) + 1e-9) - 1
    candidates = [float(draws[may_reach])] if m and may_reach >= 0 else []
    spread = float(draws.std(ddof=1)) * math.sqrt(1 + 1 / m) if m >= FEWEST_FOR_TAIL else 0.0
    if spread > 0.0:
        beyond = float(draws.mean()) - float(special.stdtrit(m - 1, alpha)) * spread
        candidates.append(max(beyond, float(draws[0])))
    if candidates:
        return Needed(min(candidates), 0.0 if spread > 0.0 else first_rank)
    why = "they are all the same" if m >= FEWEST_FOR_TAIL else ""
    return Needed(None, first_rank, why)


def above_blocks(
    contrasts: Mapping[SubjectRun, FloatArray],
    stimulus: Mapping[SubjectRun, str],
    rng: Callable[[], np.random.Generator],
    alpha: float,
) -> Needed:
    """Mean contrast at which the block test passes, if every block rises by the same amount.

    Student's t over the blocks of the stimuli gives it in one step; where flipping signs asks for more, by bisection.
    """
    parts = [contrasts[run] for run in sorted(contrasts)]
    values = np.concatenate(parts) if parts else np.empty(0)
    values = values[np.isfinite(values)]
    means = means_by_stimulus(contrasts, stimulus) if contrasts else np.empty(0)
    means = means[np.isfinite(means)]
    smallest = 0.5**values.size if values.size <= MAX_EXACT else 1 / (1 + _FLIPS)
    if means.size < 2 or smallest > alpha:
        return Needed(None, 1.0 if means.size < 2 else smallest)
    spread = float(means.std(ddof=1))
    if spread <= ROUNDING * abs(float(means.mean())) and 0.5**means.size > alpha:
        why = (
            f"all of them are the same, and p cannot be smaller than 1/2^{means.size} = {0.5**means.size:.3g} with "
            f"{means.size} blocks of the stimuli that do not differ"
        )
        return Needed(None, 0.5**means.size, why)
    critical = -float(special.stdtrit(means.size - 1, alpha)) * spread / math.sqrt(means.size)

    def passes(shift: float) -> bool:
        risen = {run: block + shift for run, block in contrasts.items()}
        return block_p_value(risen, stimulus, rng()) <= alpha

    low = max(critical - float(means.mean()), 0.0)
    width = max(float(np.abs(values).max()), spread) or 1.0
    if passes(low + 1e-9 * width):
        return Needed(float(values.mean()) + low, smallest)
    high = low + width
    for _ in range(_STEPS):
        if passes(high):
            break
        high += width
    else:
        return Needed(None, smallest, "no common rise of all of them passes")
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return Needed(float(values.mean()) + high, smallest)
