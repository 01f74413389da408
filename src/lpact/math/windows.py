"""Time windows as slices of samples, and sums over slices."""

from __future__ import annotations

import numpy as np

from lpact.math.types import BoolArray, FloatArray, IntArray

_COLUMNS = 64
"""Columns summed at a time; they are copied where they are not contiguous in memory."""


def nearest_sample(time_s: FloatArray, *, start_s: float, sampling_rate_hz: float) -> IntArray:
    """Return the sample nearest to each time, ``round((time_s − start_s) · fs)``, ties to even.

    Sample 0 is at ``start_s``. The result can be outside the recording; the caller excludes it.
    """
    return np.rint((time_s - start_s) * sampling_rate_hz).astype(np.int64)


def window_samples(length_s: FloatArray, *, sampling_rate_hz: float) -> IntArray:
    """Return the samples of a window of each length: ``max(1, round(length_s · fs))``."""
    return np.maximum(1, np.rint(length_s * sampling_rate_hz).astype(np.int64))


def sum_slices(values: FloatArray, starts: IntArray, lengths: IntArray) -> FloatArray:
    """Return ``Σ_{j < lengths[i]} values[starts[i] + j]`` for every slice i.

    ``values`` is [n_rows, n_columns], the result [n_slices, n_columns], C-contiguous. Every slice must be within the
    rows; slices may overlap. Rows are added one after the other in float64: no digit is lost to cancellation, as in
    differences of a running sum, a value that is not finite stays within its own slices, and the memory layout does not
    change the result.
    """
    totals = np.zeros((starts.size, values.shape[1]))
    if not starts.size:
        return totals
    longest_first = np.argsort(-lengths, kind="stable")
    # Slices that have more than j rows, for every j.
    active = np.searchsorted(-lengths[longest_first], -np.arange(lengths.max()), side="left")
    for first in range(0, values.shape[1], _COLUMNS):
        part = np.ascontiguousarray(values[:, first : first + _COLUMNS])
        rows, sums = starts[longest_first], np.zeros((starts.size, part.shape[1]))
        for n_active in active.tolist():  # all slices add their next row at the same time
            sums[:n_active] += part.take(rows[:n_active], axis=0)
            rows[:n_active] += 1
        totals[longest_first, first : first + _COLUMNS] = sums
    return totals


def mean_slices(values: FloatArray, starts: IntArray, lengths: IntArray) -> FloatArray:
    """Return the mean of each slice; see `sum_slices`."""
    return sum_slices(values, starts, lengths) / lengths[:, None]


def touches(flags: BoolArray, starts: IntArray, lengths: IntArray) -> BoolArray:
    """Return whether each slice includes a flagged row; ``flags`` is [n_rows]."""
    before = np.concatenate(([0], np.cumsum(flags)))
    found: BoolArray = before[starts + lengths] > before[starts]
    return found
