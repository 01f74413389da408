"""Held-out scores at the right time and at circular shifts in time.

A shift keeps everything of the stimulus but its place, so p is exact if the stimulus is unrelated to the signal and
begins as it ends, whatever the signal is. Shifts are the same for all units of a recording.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from lpact.math.columns import standard_columns
from lpact.math.splits import BlockedFolds
from lpact.math.surrogates import segment_slices
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.stats import rank_p_values

PENALTY = 0.01
"""Ridge penalty on standardised columns, as a share of the training rows: enough for lags that resemble each other."""


@dataclass(frozen=True)
class Scores:
    """Scores of every unit at the real place, [n_units], and at every shift, [n_shifts, n_units]; NaN where undefined.

    ``pooling`` says how units are pooled over the recording: ``mean`` or ``median``.
    """

    real: FloatArray
    shifted: FloatArray
    n_events: int
    pooling: str

    def pooled(self) -> tuple[float, FloatArray]:
        """Score of the recording at the real place and at every shift, over units that have all of them."""
        defined = self.defined
        pool = np.mean if self.pooling == "mean" else np.median
        return float(pool(self.real[defined])), pool(self.shifted[:, defined], axis=1)

    @property
    def defined(self) -> BoolArray:
        """Units with a score everywhere."""
        return np.isfinite(self.real) & np.isfinite(self.shifted).all(axis=0)

    def unit_p(self) -> FloatArray:
        """P-value of every unit; NaN if undefined."""
        return shift_p(self.real, self.shifted)


def shift_parts(n_shifts: int, n_segments: int, rng: np.random.Generator) -> FloatArray:
    """Return shifts as parts of the way round, [n_shifts, n_segments] in (0, 1).

    Shift k moves segment s by ``(k a_s mod K) / K`` of its length, K = n_shifts + 1, with a_s coprime to K; a_0 = 1 and
    others are drawn. With no shift these form a group: the real place is like any other, while random shifts that avoid
    it would isolate it, where a slow signal differs most.
    """
    n_places = n_shifts + 1
    fitting = [a for a in range(1, n_places) if math.gcd(a, n_places) == 1] or [1]
    steps = np.array([1, *rng.choice(fitting, n_segments - 1)])
    parts: FloatArray = (np.arange(1, n_places)[:, None] * steps % n_places) / n_places
    return parts


def rotated_rows(segments: IntArray, min_shift: int, parts: FloatArray) -> IntArray | None:
    """Return row orders [n_shifts, n] that rotate every segment by at least ``min_shift`` rows, either way round.

    Where a segment is too short, all rows are rotated as one, by the first column of ``parts``; None if these are too
    few as well.
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


def rotated_times(times_s: FloatArray, segments: IntArray, min_shift_s: float, parts: FloatArray) -> FloatArray | None:
    """Return times [n_shifts, n], rotated within each segment: from its first time to the last, and one median step."""
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
    """Return ``(1 + #{shifted ≥ real}) / (1 + n_shifts)`` of [m] and [n_shifts, m]; NaN where any of them is."""
    return np.where(np.isfinite(shifted).all(axis=0), rank_p_values(real, shifted), np.nan)


def reachable_level(alpha: float, n_shifts: int) -> float:
    """The largest possible p that is at most ``alpha``: how often a row passes by chance."""
    return math.floor(alpha * (n_shifts + 1) + 1e-9) / (n_shifts + 1)


def passes_by_chance(n_passing: int, n: int, level: float) -> float:
    """Probability that ``n_passing`` or more of ``n`` independent rows pass without any effect."""
    return float(scipy.special.betainc(n_passing, n - n_passing + 1, level)) if n_passing else 1.0


def held_out_pearson(x: FloatArray, y: FloatArray, folds: BlockedFolds, orders: IntArray | None = None) -> FloatArray:
    """Return held-out Pearson correlations of every column of ``y`` with its prediction from ``x``.

    For block b with training rows T (all but the block and the gap around it) ::

        w_b = (X̃'X̃ + λ |T| I)⁻¹ X̃'ỹ,   X̃, ỹ: deviations from the means over T
        r = corr over all blocks of ((x − mean_T x) w_b, y − mean_T y)

    so that a block is scored around the training mean, as the readouts of level 1 are. Only sums of products over rows
    are needed: fast enough for many units and shifts.

    ``x`` [n, p] and ``y`` [n, t] are finite, and the columns of ``x`` vary. ``orders`` [d, n] are orders of the rows of
    ``x`` to be scored as well. Returns [1 + d, t], ``x`` as it is first; NaN where a column of ``y``, or of its
    prediction, does not vary.
    """
    x, _ = standard_columns(x)
    y, varies = standard_columns(y)
    n = len(y)
    bounds = [folds.bounds(block) for block in range(folds.n_blocks)]
    tests = [slice(start, stop) for start, stop in bounds]
    around = [slice(max(0, start - folds.gap), min(n, stop + folds.gap)) for start, stop in bounds]
    sums = _sums(x, orders, y, [slice(0, n), *around, *tests])
    whole, held_out = sums.of(slice(0, 1)), sums.of(slice(1, 1 + len(tests)))
    train = _Sums(*(a - b for a, b in zip(whole, held_out, strict=True)))
    mean_x, mean_y = train.x / train.n[:, None], train.y / train.n[:, None]
    gram, cross = train.about(mean_x, mean_y)
    penalty = PENALTY * train.n[:, None, None] * np.eye(x.shape[1])
    weights = np.linalg.solve(gram + penalty, cross)

    test = sums.of(slice(1 + len(tests), None))
    gram, cross = test.about(mean_x, mean_y)
    n_test = test.n[:, None]
    squares = test.yy - 2 * mean_y * test.y + n_test * mean_y**2
    observed = (test.y - n_test * mean_y).sum(axis=0) / n
    observed2 = squares.sum(axis=0) / n
    predicted = np.einsum("dbp,dbpt->dt", test.x - n_test * mean_x, weights) / n
    predicted2 = np.einsum("dbpt,dbpt->dt", weights, gram @ weights) / n
    product = np.einsum("dbpt,dbpt->dt", weights, cross) / n
    spread = (predicted2 - predicted**2) * (observed2 - observed**2)
    defined = varies & (spread > 0.0)
    root = np.sqrt(np.where(defined, spread, 1.0))
    r = np.clip((product - predicted * observed) / root, -1.0, 1.0)
    return np.where(defined, r, np.nan)


class _Sums(NamedTuple):
    """Sums over stretches b of rows, for orders d of x.

    ``n`` [b], ``y`` and ``yy`` (of y²) [b, t], ``x`` [d, b, p], ``xx`` [d, b, p, p] and ``xy`` [d, b, p, t].
    """

    n: FloatArray
    y: FloatArray
    yy: FloatArray
    x: FloatArray
    xx: FloatArray
    xy: FloatArray

    def of(self, some: slice) -> _Sums:
        """Sums over some of the stretches."""
        return _Sums(*(a[some] for a in self[:3]), *(a[:, some] for a in self[3:]))

    def about(self, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Σ (x − a)(x − a)' and Σ (x − a)(y − b)' about any a [d, b, p] and b [b, t]."""
        n = self.n[:, None, None]
        left = self.x[..., None] * a[..., None, :]
        gram: FloatArray = self.xx - left - left.swapaxes(-1, -2) + n * _outer(a, a)
        cross: FloatArray = self.xy - _outer(self.x, b[None]) - _outer(a, self.y[None]) + n * _outer(a, b[None])
        return gram, cross


def _outer(a: FloatArray, b: FloatArray) -> FloatArray:
    return a[..., :, None] * b[..., None, :]


def _sums(x: FloatArray, orders: IntArray | None, y: FloatArray, stretches: list[slice]) -> _Sums:
    n_orders, p, t = 1 if orders is None else 1 + len(orders), x.shape[1], y.shape[1]
    shape = (n_orders, len(stretches))
    sums = _Sums(
        n=np.array([float(rows.stop - rows.start) for rows in stretches]),
        y=np.stack([y[rows].sum(axis=0) for rows in stretches]),
        yy=np.stack([np.einsum("it,it->t", y[rows], y[rows]) for rows in stretches]),
        x=np.empty((*shape, p)),
        xx=np.empty((*shape, p, p)),
        xy=np.empty((*shape, p, t)),
    )
    for d in range(n_orders):
        z = x if orders is None or d == 0 else x[orders[d - 1]]
        for b, rows in enumerate(stretches):
            sums.x[d, b] = z[rows].sum(axis=0)
            sums.xx[d, b] = z[rows].T @ z[rows]
            sums.xy[d, b] = z[rows].T @ y[rows]
    return sums


def by_gaps(y: FloatArray) -> list[tuple[IntArray, IntArray]]:
    """Return (rows, columns) of ``y`` [n, t]: columns that are finite in the same rows form one group."""
    finite = np.isfinite(y)
    packed = np.packbits(finite, axis=0)
    _, first, group = np.unique(packed, axis=1, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    return [(np.flatnonzero(finite[:, column]), np.flatnonzero(group == number)) for number, column in enumerate(first)]
