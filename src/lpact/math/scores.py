"""Scores of columns: Pearson, Spearman, out-of-sample R², partial correlations."""

from __future__ import annotations

import numpy as np

from lpact.math.columns import as_finite_matrix, as_matrix, power_of_two_scale, standard_columns, varying_columns
from lpact.math.types import FloatArray

_COLLINEAR = float(np.sqrt(np.finfo(np.float64).eps))
"""A residual below this share of its column is rounding: the column is a combination of the others."""


def pearson_columns(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the Pearson correlation of every column of ``a`` with the same column of ``b``.

    r_j = Σ_i z(a)_ij z(b)_ij / n, bounded to [−1, 1] against rounding: [n, t] → [t]. NaN where either column is
    constant (max = min, exactly) or has a value that is not finite.
    """
    a, b = _same_shape(a, b)
    z_a, varies_a = standard_columns(a)
    z_b, varies_b = standard_columns(b)
    r = np.clip(np.einsum("ij,ij->j", z_a, z_b) / len(a), -1.0, 1.0)
    return np.where(varies_a & varies_b, r, np.nan)


def spearman_columns(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the Spearman correlation of every column of ``a`` with the same column of ``b``.

    The Pearson correlation of ranks, with average ranks of ties. Shapes and NaN as in `pearson_columns`.
    """
    a, b = _same_shape(a, b)
    finite = np.isfinite(a).all(axis=0) & np.isfinite(b).all(axis=0)
    r = pearson_columns(average_ranks(np.where(finite, a, 0.0).T).T, average_ranks(np.where(finite, b, 0.0).T).T)
    return np.where(finite, r, np.nan)


def r2_columns(y: FloatArray, pred: FloatArray, baseline: FloatArray) -> FloatArray:
    """Return the out-of-sample R² = 1 − Σ (y − pred)² / Σ (y − baseline)² of every column, [n, t] → [t].

    ``baseline`` is the mean of y over the rows that each row's readout was trained on, so that 0 is as good as the
    training mean. NaN where y is constant, equals its baseline, or any value is not finite; −∞ if the ratio overflows.
    """
    y, pred = _same_shape(y, pred)
    y, baseline = _same_shape(y, baseline)
    defined = varying_columns(y) & np.isfinite(pred).all(axis=0) & np.isfinite(baseline).all(axis=0)
    y, pred, baseline = (np.where(defined, x, 0.0) for x in (y, pred, baseline))
    peak = np.max([np.abs(x).max(axis=0) for x in (y, pred, baseline)], axis=0)
    scale = power_of_two_scale(peak)
    error = _root_sum_square(y * scale - pred * scale)
    spread = _root_sum_square(y * scale - baseline * scale)
    defined &= spread > 0.0
    with np.errstate(over="ignore"):
        ratio = error / np.where(defined, spread, 1.0)
        return np.where(defined, 1.0 - ratio * ratio, np.nan)


def average_ranks(x: FloatArray) -> FloatArray:
    """Return ranks 1, 2, … along the last axis: average ranks of ties; NaN stays NaN and is not counted.

    About 1.3 times as fast as `scipy.stats.rankdata`.
    """
    x = np.asarray(x, dtype=np.float64)
    n = x.shape[-1]
    order = np.argsort(x, axis=-1)
    ascending = np.take_along_axis(x, order, axis=-1)
    starts = np.ones(x.shape, dtype=np.bool_)
    starts[..., 1:] = ascending[..., 1:] != ascending[..., :-1]
    place = np.arange(n, dtype=np.float64)
    ranks_ascending: FloatArray
    if starts.all():
        ranks_ascending = np.broadcast_to(place + 1.0, x.shape)
    else:
        ends = np.ones(x.shape, dtype=np.bool_)
        ends[..., :-1] = starts[..., 1:]
        first = np.maximum.accumulate(np.where(starts, place, 0.0), axis=-1)
        last = np.minimum.accumulate(np.where(ends, place, n)[..., ::-1], axis=-1)[..., ::-1]
        ranks_ascending = (first + last) / 2.0 + 1.0
    ranks = np.empty_like(x)
    np.put_along_axis(ranks, order, ranks_ascending, axis=-1)
    ranks[np.isnan(x)] = np.nan
    return ranks


def _same_shape(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    a, b = as_matrix(a, "the first array"), as_matrix(b, "the second array")
    if a.shape != b.shape:
        raise ValueError(f"arrays must have the same shape, got {a.shape} and {b.shape}")
    return a, b


def _root_sum_square(x: FloatArray) -> FloatArray:
    """Return √Σx² of every column without underflow or overflow of the squares."""
    scale = power_of_two_scale(np.abs(x).max(axis=0))
    x = x * scale
    root: FloatArray = np.sqrt(np.einsum("ij,ij->j", x, x)) / scale
    return root


def partial_correlations(y: FloatArray, m: FloatArray) -> FloatArray:
    """Return the correlation of every column of y [n, t] with every column of m [n, k], given the other m's: [k, t].

    Both y and m_j are regressed (least squares, with intercept) on the other columns of m, collinear ones once; the
    result is the Pearson correlation of the residuals. NaN where y or m_j is constant or fully explained by the others.
    """
    y, m = as_finite_matrix(y, "y"), as_finite_matrix(m, "m")
    if len(y) != len(m):
        raise ValueError(f"y and m must have the same rows, got {len(y)} and {len(m)}")
    z_y, _ = standard_columns(y)
    z_m, _ = standard_columns(m)
    r = np.empty((m.shape[1], y.shape[1]))
    for j in range(m.shape[1]):
        basis = _orthonormal_basis(np.delete(z_m, j, axis=1))
        r[j] = _unit_residual(z_m[:, [j]], basis)[:, 0] @ _unit_residual(z_y, basis)
    return np.clip(r, -1.0, 1.0)


def _orthonormal_basis(z: FloatArray) -> FloatArray:
    """Return an orthonormal basis [n, rank] of the columns of ``z``."""
    if z.shape[1] == 0:
        return z
    left, singular, _ = np.linalg.svd(z, full_matrices=False)
    return left[:, singular > _COLLINEAR * max(singular[0], 1.0)]


def _unit_residual(z: FloatArray, basis: FloatArray) -> FloatArray:
    """Return the part of each standardised column outside ``basis``, at unit length; NaN where nothing is left."""
    residual = z - basis @ (basis.T @ z)
    # Once more: where little is left, the first pass leaves rounding along the basis.
    residual -= basis @ (basis.T @ residual)
    length = np.sqrt(np.einsum("ij,ij->j", residual, residual))
    # A standardised column has length √n; a constant one is zero, and zero is not above zero.
    left = length > _COLLINEAR * np.sqrt(len(z))
    return np.where(left, residual / np.where(left, length, 1.0), np.nan)
