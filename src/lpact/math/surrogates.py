"""Surrogate features and row orders: some statistics are kept exactly, the rest is random."""

from __future__ import annotations

import itertools

import numpy as np
from scipy import fft

from lpact.math.columns import as_finite_matrix, standard_columns, varying_columns
from lpact.math.types import FloatArray, IntArray

_FFT_COLUMNS = 64
"""Columns transformed at a time, so that memory does not grow with the number of features."""


def segment_slices(segment_ids: IntArray) -> list[slice]:
    """Return the maximal runs of equal ids, in order; a repeated id starts a new run."""
    ids = np.asarray(segment_ids)
    if ids.ndim != 1 or ids.size == 0:
        raise ValueError(f"segment ids must be a non-empty vector, got shape {ids.shape}")
    edges = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist(), ids.size]
    return [slice(start, stop) for start, stop in itertools.pairwise(edges)]


def phase_randomize(x: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a multivariate phase-randomised surrogate of ``x`` [n, p] (Prichard & Theiler 1994).

    X_j(f) → X_j(f) e^{iθ(f)} with θ uniform on [0, 2π) and *the same for all columns j*, so that every auto-spectrum
    |X_j|² and cross-spectrum X_j X̄_k is kept. θ(0) = 0 keeps means; for even n the Nyquist coefficient stays real and
    changes sign with probability ½. Constant columns do not change.
    """
    x = as_finite_matrix(x, "x")
    n = len(x)
    mean = x.mean(axis=0)
    phase = rng.uniform(0.0, 2.0 * np.pi, size=n // 2 + 1)
    rotation = np.exp(1j * phase)
    rotation[0] = 1.0
    if n % 2 == 0:
        rotation[-1] = 1.0 if phase[-1] < np.pi else -1.0
    # Without its mean a column's rounding error is relative to its spread, not to its offset.
    spectrum = fft.rfft(x - mean, axis=0) * rotation[:, None]
    surrogate = fft.irfft(spectrum, n=n, axis=0) + mean
    return np.where(varying_columns(x), surrogate, x)


def phase_randomize_segments(x: FloatArray, segment_ids: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return ``x`` [n, p], with each contiguous segment phase-randomised by other phases."""
    x = as_finite_matrix(x, "x")
    if len(segment_ids) != len(x):
        raise ValueError(f"needs one segment id per row, got {len(segment_ids)} for {len(x)} rows")
    surrogate = np.empty_like(x)
    for rows in segment_slices(segment_ids):
        surrogate[rows] = phase_randomize(x[rows], rng)
    return surrogate


def autocorrelation_time(x: FloatArray) -> int:
    """Return the first lag, in events, at which the columns' mean autocorrelation falls below 1/e.

    ρ(l) = mean over columns of c_j(l) / c_j(0), with c_j(l) = Σ_i x_ij x_{i+l,j} / (n − l) of the centred columns of
    ``x`` [n, p]. All varying columns have the same weight. The lag is 1 to n − 1; 1 if no column varies.
    """
    z, varies = standard_columns(as_finite_matrix(x, "x"))
    if not varies.any():
        return 1
    n = len(z)
    covariance = lagged_sums(z[:, varies], n - 1).sum(axis=1) / np.arange(n, 0, -1)
    # A centred series has Σ_l (n − l) c(l) = −n c(0) / 2 over l ≥ 1: some lag is below zero.
    return int(np.argmax(covariance[1:] < covariance[0] / np.e)) + 1


def lagged_sums(x: FloatArray, max_lag: int) -> FloatArray:
    """Return Σ_i x_i x_{i+k} of every column of ``x`` [n, p] for k = 0 … max_lag: [max_lag + 1, p]."""
    n, n_columns = x.shape
    padded = fft.next_fast_len(2 * n, real=True)
    sums = np.zeros((max_lag + 1, n_columns))
    for start in range(0, n_columns, _FFT_COLUMNS):
        columns = slice(start, start + _FFT_COLUMNS)
        spectrum = fft.rfft(x[:, columns], n=padded, axis=0)
        power = spectrum.real**2 + spectrum.imag**2
        found = fft.irfft(power, n=padded, axis=0)[: max_lag + 1]
        sums[: min(n, max_lag + 1), columns] = found[:n]
    return sums


def circular_shift_order(n: int, min_shift: int, rng: np.random.Generator) -> IntArray:
    """Return a row order [n] that rotates n events by at least ``min_shift`` in either direction.

    Row i of the surrogate ``x[order]`` is row (i − s) mod n, s uniform on [min_shift, n − min_shift]: rotating by s
    forwards is rotating by n − s backwards. To break the relation of a series to another, but not its own
    autocorrelation, ``min_shift`` should exceed its `autocorrelation_time`.
    """
    if min_shift < 1 or 2 * min_shift > n:
        raise ValueError(
            f"a rotation by at least {min_shift} event(s) in either direction needs {2 * min_shift} events, got {n}"
        )
    shift = int(rng.integers(min_shift, n - min_shift, endpoint=True))
    return np.roll(np.arange(n, dtype=np.int64), shift)


def block_permutation(segment_ids: IntArray, block: int, rng: np.random.Generator) -> IntArray:
    """Return a row order [n] in which the blocks of every segment are permuted inside it.

    Each contiguous segment is cut into blocks of ``block`` events from its start (the last may be shorter). In every
    segment with at least two blocks the permutation is uniform over all but the identity.
    """
    if block < 1:
        raise ValueError(f"a block must have at least 1 event, got {block}")
    index = np.arange(len(segment_ids), dtype=np.int64)
    for rows in segment_slices(segment_ids):
        members = index[rows].copy()
        blocks = np.split(members, np.arange(block, members.size, block))
        order = _changed_permutation(len(blocks), rng)
        index[rows] = np.concatenate([blocks[k] for k in order])
    return index


def within_group_permutation(group_ids: IntArray, rng: np.random.Generator) -> IntArray:
    """Return a row order [n] in which the rows with the same id are shuffled.

    In every group with at least two rows the permutation is uniform over all but the identity.
    """
    ids = np.asarray(group_ids)
    by_group = np.argsort(ids, kind="stable")
    index = np.arange(ids.size, dtype=np.int64)
    for rows in segment_slices(ids[by_group]):
        members = by_group[rows]
        index[members] = members[_changed_permutation(members.size, rng)]
    return index


def derangement_target(n: int, index: int, rng: np.random.Generator) -> int:
    """Return the image of ``index`` under a uniformly random derangement of 0 … n − 1.

    The image is uniform over the other n − 1 elements: relabelling them maps derangements to derangements.
    """
    if n < 2 or not 0 <= index < n:
        raise ValueError(f"needs n ≥ 2 and 0 ≤ index < n, got n = {n}, index = {index}")
    other = int(rng.integers(n - 1))
    return other + 1 if other >= index else other


def matched_gaussian(x: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return Gaussian columns with the sample means and deviations of those of ``x`` [n, p].

    Both are matched exactly (up to rounding), not in expectation. Constant columns do not change.
    """
    x = as_finite_matrix(x, "x")
    z = rng.standard_normal(x.shape)
    varies = varying_columns(x)
    if not varies.any():
        return x.copy()
    z -= z.mean(axis=0)
    z /= z.std(axis=0)
    z *= x.std(axis=0)
    return np.where(varies, z + x.mean(axis=0), x)


def _changed_permutation(n: int, rng: np.random.Generator) -> IntArray:
    """Return a permutation of n things, uniform over all but the identity where n > 1."""
    identity = np.arange(n, dtype=np.int64)
    order = rng.permutation(n)
    while n > 1 and np.array_equal(order, identity):
        order = rng.permutation(n)
    return order
