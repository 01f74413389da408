"""Representational similarity analysis: correlation of dissimilarities over all pairs of events.

Dissimilarity of a representation with at least three columns: correlation distance 1 − R_ab between
the rows of events a and b. With fewer columns, rows have no pattern to correlate, and it is the
squared Euclidean distance. A row that is constant over columns (up to rounding) has no pattern
either: its R with any other row is 0, its distance 1.

No dissimilarity matrix is built for units. With R = UUᵀ (U: centred rows of unit length) and a
standardised unit y,

    Σ_{a<b} R_ab (y_a − y_b)² = Σ_a r_a y_a² − ‖Uᵀy‖²,   r = U(Uᵀ1),

and for two standardised columns x and y, with q = x² − 1, the covariance of their squared
distances, summed over pairs, is

    κ(x, y) = n q_xᵀq_y + 2 (xᵀy)² − 2n² / (n − 1).

Kriegeskorte, Mur & Bandettini (2008).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from lpact.math.columns import (
    as_finite_matrix,
    as_matrix,
    power_of_two_scale,
    standard_columns,
)
from lpact.math.similarity._common import (
    ROUNDING,
    gram_norm_squared,
    normalised,
    normalised_pairs,
    squared_distances,
    squared_projections,
    standardised_pair,
    standardised_units,
    upper_triangle,
)
from lpact.math.types import FloatArray

Dissimilarity = Literal["correlation", "sqeuclidean"]

_MIN_PATTERN = 3
_NO_VARIANCE = 1e-12
"""Variance of dissimilarities below this share of their mean square is rounding."""


def rsa_to_units(phi: FloatArray, units: FloatArray) -> FloatArray:
    """Return the Pearson correlation, over pairs of events a < b, of φ's dissimilarity with each unit's (y_a − y_b)².

    NaN where all of φ's dissimilarities are equal. Costs O(n p (min(n, p) + N)).
    """
    z, y, varies = standardised_pair(phi, units)
    if z.shape[1] == 0:
        return np.full(y.shape[1], np.nan)
    few = z.shape[1] < _MIN_PATTERN
    covariance, variance = (_euclidean_covariance if few else _correlation_covariance)(z, y)
    n, q = len(y), y * y - 1.0
    own = n * np.einsum("ij,ij->j", q, q) + 2.0 * n * n + _kappa_constant(n)
    defined = varies & (variance > _NO_VARIANCE * n * n)
    return normalised(covariance, variance, own, defined)


def rsa_between_units(units: FloatArray) -> FloatArray:
    """Return the RSA of all pairs of units: κ(i, j) / √(κ(i, i) κ(j, j))."""
    y, varies = standardised_units(units)
    q = y * y - 1.0
    kappa = len(y) * (q.T @ q) + 2.0 * (y.T @ y) ** 2 + _kappa_constant(len(y))
    return normalised_pairs(kappa, varies)


def rdm(x: FloatArray, metric: Dissimilarity) -> FloatArray:
    """Return the dissimilarities of all pairs of rows, [n, p] → [n (n − 1) / 2].

    The upper triangle, row by row; see the module for ``"correlation"`` of constant rows.
    """
    x = as_finite_matrix(x, "x")
    if metric == "sqeuclidean":
        scale = float(power_of_two_scale(np.abs(x).max()))
        distances = squared_distances(x * scale)
        with np.errstate(over="ignore"):  # a square may overflow to infinity
            distances /= scale
            distances /= scale
        return distances
    if metric != "correlation":
        raise ValueError(f"unknown dissimilarity '{metric}'; known: correlation, sqeuclidean")
    u = _unit_rows(x)
    return upper_triangle(len(u), lambda rows: 1.0 - u[rows] @ u[rows.start :].T)


def rdm_pattern(x: FloatArray) -> FloatArray:
    """Return the dissimilarities of all pairs of rows, centred and at unit length: [n, p] → [n (n − 1) / 2].

    The RSA of two representations is the product of their patterns. Columns are not standardised. NaN where all
    dissimilarities are equal.
    """
    x = as_matrix(x, "x")
    distances = rdm(x, "correlation" if x.shape[1] >= _MIN_PATTERN else "sqeuclidean")
    z, varies = standard_columns(distances[:, None])
    return z[:, 0] / np.sqrt(len(z)) if varies[0] else np.full(len(z), np.nan)


def _correlation_covariance(z: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
    """Return covariance with (y_a − y_b)² [N], and variance, of 1 − R: sums over pairs."""
    u = _unit_rows(z)
    n = len(u)
    n_pairs = n * (n - 1) / 2
    length_squared = np.einsum("ij,ij->i", u, u)
    total = u.sum(axis=0)
    mean_r = (total @ total - length_squared.sum()) / (2.0 * n_pairs)
    square_sum = (gram_norm_squared(u) - length_squared @ length_squared) / 2.0
    variance = square_sum - n_pairs * mean_r**2
    squares = y * y
    cross = (u @ total) @ squares - squared_projections(u, y)
    covariance = mean_r * n * squares.sum(axis=0) - cross
    return covariance, variance


def _euclidean_covariance(z: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
    """Return covariance with (y_a − y_b)² [N], and variance, of ‖z_a − z_b‖²: sums over pairs."""
    n, n_columns = z.shape
    q_sum = (z * z).sum(axis=1) - n_columns
    constant = _kappa_constant(n)
    squares = y * y - 1.0
    covariance = n * (q_sum @ squares) + 2.0 * squared_projections(z, y) + n_columns * constant
    variance = n * float(q_sum @ q_sum) + 2.0 * gram_norm_squared(z) + n_columns**2 * constant
    return covariance, variance


def _kappa_constant(n: int) -> float:
    return -2.0 * n * n / (n - 1)


def _unit_rows(x: FloatArray) -> FloatArray:
    """Return rows centred over columns, at unit length; rows without pattern become zero."""
    root_mean_square = np.sqrt(np.einsum("ij,ij->i", x, x) / x.shape[1])
    overall = np.sqrt(np.mean(root_mean_square**2))
    u = x - x.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.einsum("ij,ij->i", u, u) / x.shape[1])
    patterned = spread > ROUNDING * np.maximum(root_mean_square, overall)
    u /= np.where(patterned, spread * np.sqrt(x.shape[1]), 1.0)[:, None]
    return np.where(patterned[:, None], u, 0.0)
