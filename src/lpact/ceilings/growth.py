"""Brain–brain consistency with fewer units, stimuli or repetitions, and what more of them would give.

If consistency still grows, the bound that brains set for models is low for lack of data. If it has levelled off, the
remaining disagreement is due to differences between subjects.

References: Feather et al. (2025), Brain-model evaluations need the NeuroAI Turing Test, section 5.5; Nayebi et al.
(2023), PLOS Comput. Biol. 19:e1011506, for the log-linear extrapolation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.stats import t as student

from lpact.ceilings.between import between_subjects
from lpact.errors import InputError, require_known
from lpact.math.columns import mean_of_finite
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray, IntArray
from lpact.measures import Measure

Over = Literal["units", "stimuli", "repetitions"]
FEWEST = {"units": 2, "stimuli": 20, "repetitions": 2}
"""Smallest number that consistency is computed for."""
MISSING_SHARE = 0.05
"""Share of the consistency with infinitely many that may still be missing where it has levelled off."""

Arrays = list[FloatArray]
Rows = Sequence[tuple[IntArray, IntArray]]


class Whole(Protocol):
    """Consistency with all data: values [source, target], and why noise of some pairs was not corrected for."""

    @property
    def matrix(self) -> FloatArray: ...  # noqa: D102
    @property
    def reasons(self) -> Sequence[str]: ...  # noqa: D102


@dataclass(frozen=True)
class Growth:
    """Consistency by size.

    Attributes
    ----------
    sizes
        [m], increasing; the last is that of all data. For units, the mean over subjects.
    values
        [m, n_subjects]: value of every target, mean over sources and draws; NaN where undefined.
    corrected, reason
        Whether noise was corrected for at every size, and why not.
    """

    sizes: IntArray
    values: FloatArray
    corrected: bool
    reason: str


@dataclass(frozen=True)
class Extrapolation:
    """What more data would give.

    Attributes
    ----------
    per_doubling, reaches_one_at
        Gain per doubling of the size, from a straight line over its logarithm, and the size at which this line reaches
        1 (NaN where it does not rise).
    at_infinity, low, high
        v∞ of v(n) = v∞ √(n / (n + k)), k ≥ 0, which is how a correlation grows with the reliability n / (n + k) of one
        side (without the root: of both sides), or the value with all data, where nothing grows; and its 95 % interval,
        from leaving out one target at a time (three or more). NaN where all data reach less than half of v∞, which is
        too far to extrapolate, where the last step falls by more than 5 %, and for limits above 1.
    levelled_off
        True where the whole interval is at most 5 % above the value with all data, as a share of v∞; False where all of
        it is more than 5 % above; None where the data are inconclusive, or the last step falls by more than 5 %.
    """

    per_doubling: float
    reaches_one_at: float
    at_infinity: float
    low: float
    high: float
    levelled_off: bool | None


def growth_sizes(n: int, over: Over) -> list[int]:
    """An eighth, a quarter, a half and all of n, without those below `FEWEST`."""
    return sorted({size for k in range(4) if (size := round(n / 2**k)) >= min(n, FEWEST[over])})


def growth(
    subjects: Sequence[npt.ArrayLike],
    measure: Measure,
    folds: Rows | None = None,
    *,
    over: Over,
    whole: Whole | None = None,
    n_draws: int = 4,
    n_halves: int = 20,
    seed: int = 0,
    **options: Any,
) -> Growth:
    """Consistency of every subject with the others, with random subsamples of growing size.

    Parameters
    ----------
    subjects
        [n, r, units] each, of the same stimuli.
    measure, folds
        As in `between_subjects`. Measures that are not fitted compare all stimuli.
    over
        ``"units"``: the same share of the units of every subject. ``"stimuli"``: training stimuli of measures that are
        fitted, whose test stimuli stay the same; stimuli to compare otherwise. ``"repetitions"``: of every subject, or
        all of a subject that has fewer.
    whole
        Consistency with all data, if it is known already, such as from `between_subjects`.
    n_draws
        Subsamples of every size, each with one random half of the trials.
    n_halves, seed, options
        Other parameters of `consistency`, for all data.
    """
    require_known(over, tuple(FEWEST), "quantity", where="growth, parameter 'over'")
    if over == "units" and measure.behavioural:
        what, expected = "alternatives of answers cannot be subsampled", "stimuli or repetitions"
        raise InputError(what, where="growth, parameter 'over'", got=over, expected=expected)
    arrays = [np.asarray(own, dtype=np.float64) for own in subjects]
    rows = None
    if measure.needs_fit and folds is not None:
        rows = [(np.asarray(train), np.asarray(test)) for train, test in folds]
    n = _whole(arrays, rows, over)
    sizes = growth_sizes(n, over)
    values, reasons = [], []
    for size in sizes:
        if size == n:
            own = {"n_halves": n_halves, "seed": seed, **options}
            drawn: list[Whole] = [whole or between_subjects(arrays, measure, rows, **own)]
        else:
            drawn = []
            for draw in range(n_draws):
                rng = keyed_rng(seed, "growth", over, size, draw)
                some, split = _subsample(arrays, rows, over, size, n, rng)
                own_measure = measure
                if over == "stimuli" and hasattr(measure, "gap"):
                    own_measure = copy(measure)  # neighbours in a subsample are further apart
                    own_measure.gap = math.ceil(measure.gap * size / n)
                own = {"n_halves": 1, "seed": int(rng.integers(2**32)), **options}
                drawn.append(between_subjects(some, own_measure, split, **own))
        values.append(mean_of_finite(np.stack([mean_of_finite(one.matrix) for one in drawn])))
        reasons += [reason for one in drawn for reason in one.reasons]
    return Growth(np.array(sizes), np.stack(values), not reasons, reasons[0] if reasons else "")


def _whole(arrays: Arrays, rows: Rows | None, over: Over) -> int:
    """How many there are in all."""
    if over == "units":
        return round(float(np.mean([own.shape[-1] for own in arrays])))
    if over == "stimuli":
        return len(arrays[0]) if rows is None else min(len(train) for train, _ in rows)
    if any(own.ndim < 3 for own in arrays):
        expected = "stimuli × repetitions × units"
        raise InputError("a subject has no repetitions", where="growth", expected=expected)
    return int(max(own.shape[1] for own in arrays))


def _subsample(
    arrays: Arrays, rows: Rows | None, over: Over, size: int, n: int, rng: np.random.Generator
) -> tuple[Arrays, Rows | None]:
    """Responses and folds with ``size`` of n."""
    if over == "repetitions":
        order = rng.permutation(n)  # the same for all: repetitions may share noise
        return [own[:, np.sort(order[order < own.shape[1]][:size])] for own in arrays], rows
    if over == "units":
        return [own[..., _some(own.shape[-1], size / n, rng)] for own in arrays], rows
    if rows is None:
        kept = _some(n, size / n, rng)
        return [own[kept] for own in arrays], None
    return arrays, [(train[_some(len(train), size / n, rng)], test) for train, test in rows]


def _some(n: int, share: float, rng: np.random.Generator) -> IntArray:
    """A random share of n, in order."""
    return np.sort(rng.permutation(n)[: max(1, round(n * share))])


def extrapolate(sizes: npt.ArrayLike, values: npt.ArrayLike, *, both_sides: bool = False) -> Extrapolation:
    """Extrapolate consistency beyond the data.

    Parameters
    ----------
    sizes
        [m], increasing, the last that of all data.
    values
        [m, n_targets]; targets with an undefined value are left out.
    both_sides
        Whether source and target of a value get better with the size, as for measures that compare representations of
        more units: the curve is then v∞ n / (n + k). For a map that predicts single units, only the source does.
    """
    n, v = np.asarray(sizes, dtype=np.float64), np.asarray(values, dtype=np.float64)
    v = v[:, np.isfinite(v).all(axis=0)]
    if len(n) < 3 or not v.shape[1]:
        return Extrapolation(np.nan, np.nan, np.nan, np.nan, np.nan, None)
    slope, start = np.polyfit(np.log2(n), v.mean(axis=1), 1)
    # The size is 2 to an exponent that may be too large for a number, in which case one is never reached.
    exponent = (1.0 - start) / slope if slope > 0 else np.inf
    reaches = 2.0**exponent if exponent < 1000 else np.nan
    power = 1.0 if both_sides else 0.5
    limit, reached = _limit(n, v.mean(axis=1), power)
    low = high = np.nan
    levelled_off = None
    if (targets := v.shape[1]) > 2:
        each = [_limit(n, np.delete(v, j, axis=1).mean(axis=1), power) for j in range(targets)]
        limits, shares = np.array(each).T
        half = float(student.ppf(0.975, targets - 1)) * np.sqrt((targets - 1.0) ** 2 / targets)
        low, high = limit - half * limits.std(ddof=1), limit + half * limits.std(ddof=1)
        missing, margin = 1.0 - reached, half * shares.std(ddof=1)
        if limit > 0:
            levelled_off = True if missing + margin <= MISSING_SHARE else None
            levelled_off = False if missing - margin > MISSING_SHARE else levelled_off
    falls = v[-2].mean() - v[-1].mean() > MISSING_SHARE * abs(v[-1].mean())
    if falls:  # corrected values of few data can be too high
        levelled_off = None
    if reached < 0.5 or falls or limit > 1.0:
        limit = low = high = np.nan
    return Extrapolation(float(slope), float(reaches), limit, float(low), float(high), levelled_off)


def _limit(n: FloatArray, v: FloatArray, power: float) -> tuple[float, float]:
    """Limit v∞ of the least-squares fit of v∞ (n / (n + k))^power, and the share of it reached at the last size.

    For a given k, v∞ is a regression coefficient, so that one number is searched for: log k.
    """

    def share(log_k: float) -> FloatArray:
        reached: FloatArray = (n / (n + np.exp(log_k))) ** power
        return reached

    def loss(log_k: float) -> float:
        g = share(log_k)
        return float(np.sum((v - (v @ g) / (g @ g) * g) ** 2))

    bounds = (float(np.log(n[0] * 1e-4)), float(np.log(n[-1] * 1e2)))
    grid = np.linspace(*bounds, 60)
    best = int(np.argmin([loss(x) for x in grid]))
    if best == 0:  # small sizes have no lower values: nothing grows
        return float(v[-1]), 1.0
    around = (grid[best - 1], grid[min(len(grid) - 1, best + 1)])
    found = minimize_scalar(loss, bounds=around, method="bounded", options={"xatol": 1e-10})
    g = share(min([float(found.x), grid[best]], key=loss))
    return float(v @ g / (g @ g)), float(g[-1])
