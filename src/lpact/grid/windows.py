"""Time windows as slices of samples, and sums over slices."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import sparse

from lpact.math.types import FloatArray, IntArray

_MAX_ENTRIES = 1 << 22
"""Slice entries that are summed at a time; bounds memory at about 64 MB, changes no number."""


def nearest_sample(time_s: FloatArray, *, start_s: float, sampling_rate_hz: float) -> IntArray:
    """Return the sample nearest to each time, ``round((time_s − start_s) · fs)``, ties to even.

    Sample 0 is at ``start_s``. The result can lie outside the recording; the caller excludes it.
    """
    return np.rint((time_s - start_s) * sampling_rate_hz).astype(np.int64)


def window_samples(length_s: FloatArray, *, sampling_rate_hz: float) -> IntArray:
    """Return the samples of a window of each length: ``max(1, round(length_s · fs))``."""
    return np.maximum(1, np.rint(length_s * sampling_rate_hz).astype(np.int64))


def sum_slices(values: FloatArray, starts: IntArray, lengths: IntArray) -> FloatArray:
    """Return ``Σ_{j < lengths[i]} values[starts[i] + j]`` for every slice i.

    Rows are added one after the other, so no digit is lost to cancellation as it would be in
    differences of a running sum, and a value that is not finite stays within its own slices.

    Parameters
    ----------
    values
        [n_rows, n_columns].
    starts, lengths
        [n_slices]; every slice must lie within the rows. Slices may overlap.

    Returns
    -------
    [n_slices, n_columns], C-contiguous.
    """
    totals = np.empty((starts.size, values.shape[1]))
    stops = np.cumsum(lengths)
    n_entries = int(stops[-1]) if stops.size else 0
    cuts = np.searchsorted(stops, np.arange(_MAX_ENTRIES, n_entries, _MAX_ENTRIES))
    edges = np.unique(np.concatenate(([0], cuts, [starts.size])))
    for low, high in pairwise(edges):
        totals[low:high] = _membership(starts[low:high], lengths[low:high], len(values)) @ values
    return totals


def mean_slices(values: FloatArray, starts: IntArray, lengths: IntArray) -> FloatArray:
    """Return the mean of each slice; see `sum_slices`."""
    return sum_slices(values, starts, lengths) / lengths[:, None]


def _membership(starts: IntArray, lengths: IntArray, n_rows: int) -> sparse.csr_array:
    """Return the 0/1 matrix [n_slices, n_rows] that holds row i's slice in ascending order."""
    pointers = np.concatenate(([0], np.cumsum(lengths)))
    rows = np.arange(pointers[-1]) + np.repeat(starts - pointers[:-1], lengths)
    return sparse.csr_array(
        (np.ones(rows.size), rows, pointers), shape=(starts.size, n_rows), dtype=np.float64
    )
