"""Circular shifts in time: what is left of a score when the stimulus is at the wrong time.

A shift keeps everything of the stimulus but its place, so that the real place is one among all: p is exact where the
stimulus is unrelated to the signal and begins as it ends, whatever the signal is. Shifts are the same for all units of
a recording.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from lpact.math.surrogates import segment_slices
from lpact.math.types import FloatArray, IntArray
from lpact.stats import rank_p_values


def shift_parts(n_shifts: int, n_segments: int, rng: np.random.Generator) -> FloatArray:
    """Return shifts as parts of the way round, [n_shifts, n_segments] in (0, 1).

    Shift k moves segment s by ``(k a_s mod K) / K`` of its length, K = n_shifts + 1, with a_s without a common divisor
    with K; a_0 = 1, the others are drawn. Together with no shift these form a group, so that the real place is like any
    other: shifts at random places that keep away from it would leave it alone, and a slow signal differs most where it
    is looked at alone.
    """
    n_places = n_shifts + 1
    fitting = [a for a in range(1, n_places) if math.gcd(a, n_places) == 1] or [1]
    steps = np.array([1, *rng.choice(fitting, n_segments - 1)])
    parts: FloatArray = (np.arange(1, n_places)[:, None] * steps % n_places) / n_places
    return parts


def rotated_rows(segments: IntArray, min_shift: int, parts: FloatArray) -> IntArray | None:
    """Return row orders [n_shifts, n] that rotate every segment by at least ``min_shift`` rows, either way round.

    Where the smallest shift of a segment would be less, all rows are rotated as one, by the first column of ``parts``;
    None where that is too short too.
    """
    if segments.size == 0:
        return None
    n_places = len(parts) + 1
    slices = segment_slices(segments)
    if any((rows.stop - rows.start) // n_places < min_shift for rows in slices):
        slices = [slice(0, segments.size)]
        if segments.size // n_places < min_shift:
            return None
    orders = np.empty((len(parts), segments.size), dtype=np.int64)
    for column, rows in enumerate(slices):
        n = rows.stop - rows.start
        shift = np.rint(parts[:, column] * n).astype(np.int64)
        orders[:, rows] = rows.start + (np.arange(n) - shift[:, None]) % n
    return orders


def rotated_times(
    times_s: FloatArray, segments: IntArray, min_shift_s: float, parts: FloatArray
) -> FloatArray | None:
    """Return times [n_shifts, n], rotated within the time that each segment takes; see `rotated_rows`.

    A segment goes from its first time to its last, and on by the median step.
    """
    if times_s.size < 2:
        return None
    needed_s = (len(parts) + 1) * min_shift_s
    slices = segment_slices(segments)
    if any(_period_s(times_s[rows]) < needed_s for rows in slices):
        slices = [slice(0, times_s.size)]
        if _period_s(times_s) < needed_s:
            return None
    rotated = np.empty((len(parts), times_s.size))
    for column, rows in enumerate(slices):
        own = times_s[rows]
        period_s = _period_s(own)
        rotated[:, rows] = own[0] + (own - own[0] + parts[:, column, None] * period_s) % period_s
    return rotated


def _period_s(times_s: FloatArray) -> float:
    if times_s.size < 2:
        return 0.0
    return float(times_s[-1] - times_s[0] + np.median(np.diff(times_s)))


def shift_p(real: FloatArray, shifted: FloatArray) -> FloatArray:
    """Return ``(1 + #{shifted ≥ real}) / (1 + n_shifts)``.

    ``real`` is [m], ``shifted`` is [n_shifts, m]; NaN where any of them is.
    """
    return np.where(np.isfinite(shifted).all(axis=0), rank_p_values(real, shifted), np.nan)


def reachable_level(alpha: float, n_shifts: int) -> float:
    """Return the largest p that is at most ``alpha``: how often a row passes by chance."""
    return math.floor(alpha * (n_shifts + 1) + 1e-9) / (n_shifts + 1)


def passes_by_chance(n_passing: int, n: int, level: float) -> float:
    """Return how likely ``n_passing`` or more of ``n`` independent rows pass where nothing is there."""
    return float(scipy.stats.binom.sf(n_passing - 1, n, level))
