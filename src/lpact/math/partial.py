"""Partial correlations."""

from __future__ import annotations

import numpy as np

from lpact.math.columns import as_finite_matrix, standard_columns
from lpact.math.types import FloatArray

_COLLINEAR = float(np.sqrt(np.finfo(np.float64).eps))
"""A residual below this share of its column is rounding: the column is a combination of the others."""


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
