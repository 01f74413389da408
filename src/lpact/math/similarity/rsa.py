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

Whitened comparisons are dᵀV⁻¹d' with the covariance V of the distances' errors, V = Ξ∘Ξ and Ξ = CCᵀ for the contrasts
C of pairs. Two pairs of events share both, one or no event, so that V = 2I + BBᵀ with the incidence B of pairs and
events, and BᵀB = (n − 2)I + 11ᵀ. By Woodbury, with row sums s = Bᵀd and S = 1ᵀs of the whole matrix,

    2 V⁻¹d = d − B s / n + S / n²,      2 dᵀV⁻¹d' = dᵀd' − sᵀs' / n + S S' / (2n²) = ⟨HDH, HD'H⟩ / 2:

with the doubly centred matrices HDH, no matrix of pairs × pairs is needed, and a whitened cosine is a linear CKA.

Kriegeskorte, Mur & Bandettini (2008); Walther et al. (2016), NeuroImage 137 (crossnobis); Diedrichsen et al. (2020),
arXiv:2007.02789 (whitening); Schütt et al. (2023), eLife 12:e82566 (rank comparisons).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.spatial.distance import squareform

from lpact.math.columns import (
    as_finite_matrix,
    as_matrix,
    mean_of_finite,
    power_of_two_scale,
)
from lpact.math.scores import average_ranks
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
from lpact.math.types import BoolArray, FloatArray, IntArray

Dissimilarity = Literal["correlation", "sqeuclidean"]
Comparator = Literal["pearson", "cosine", "spearman", "tau_a", "rho_a", "pearson_whitened", "cosine_whitened"]

_MIN_PATTERN = 3
_NO_VARIANCE = 1e-12
"""Variance of dissimilarities below this share of their mean square is rounding."""

_SMALL = 1e-100
"""Squares of larger numbers, and of 1e-16 of them, do not underflow."""

_TIE_DIGITS = 12
"""Dissimilarities that are equal to this many decimals of the largest one have the same rank."""

_PAIRS_AT_ONCE = 8192
"""Pairs of events whose products are summed at a time: all representations' share of them stays in cache."""


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
        peak = np.abs(x).max()
        if _SMALL < peak < 1.0 / _SMALL:
            return squared_distances(x)
        scale = float(power_of_two_scale(peak))
        distances = squared_distances(x * scale)
        with np.errstate(over="ignore"):  # a square may overflow to infinity
            distances /= scale
            distances /= scale
        return distances
    if metric != "correlation":
        raise ValueError(f"unknown dissimilarity '{metric}'; known: correlation, sqeuclidean")
    u = _unit_rows(x)
    return upper_triangle(len(u), lambda rows: 1.0 - u[rows] @ u[rows.start :].T)


def correlation_rdm(x: FloatArray) -> FloatArray:
    """Return correlation distances of all pairs of rows; squared Euclidean ones with fewer than three columns."""
    x = as_matrix(x, "x")
    return rdm(x, "correlation" if x.shape[1] >= _MIN_PATTERN else "sqeuclidean")


def crossnobis_rdm(trials: FloatArray) -> FloatArray:
    """Return cross-validated squared distances per unit: trials [n, r, p] → [n (n − 1) / 2], the upper triangle.

    d_ab = (G_aa + G_bb − 2 G_ab) / p, where G_ab = Σ_units mean of x_ai x_bj over all trials i ≠ j that exist. With
    no trial missing it is the mean over repetitions of (x̄_a − x̄_b)ᵀ(x_a − x_b), x being the responses of one
    repetition and x̄ the mean of all others. Its expected value is the squared distance without noise, where noise is
    independent between repetitions. NaN for events of which a unit has fewer than two trials.
    """
    n, _, n_units = trials.shape
    # Centring, by the same vector for all trials, changes no distance of complete trials and biases no other.
    centred = trials - mean_of_finite(mean_of_finite(trials, 1), 0)
    present = np.isfinite(centred)
    centred = np.where(present, centred, 0.0)
    alike: dict[bytes, list[int]] = {}
    for unit in range(n_units):
        alike.setdefault(present[:, :, unit].tobytes(), []).append(unit)
    products = np.zeros((n, n))
    for units in alike.values():
        mask = present[:, :, units[0]].astype(np.float64)
        part = centred if len(alike) == 1 else centred[:, :, units]
        total, flat, count = part.sum(axis=1), part.reshape(n, -1), mask.sum(axis=1)
        n_products = np.outer(count, count) - mask @ mask.T
        own_left_out = total @ total.T - flat @ flat.T
        products += np.where(n_products > 0, own_left_out / np.maximum(n_products, 1.0), np.nan)
    own = np.diagonal(products)

    def block(rows: slice) -> FloatArray:
        made = own[rows, None] + own[None, rows.start :] - 2.0 * products[rows, rows.start :]
        return np.asarray(made / n_units)

    return upper_triangle(n, block)


def noise_whitened(trials: FloatArray, *, shrinkage: bool) -> FloatArray:
    """Return trials [n, r, p] in units of their noise: x W with W Wᵀ = Σ⁻¹.

    Σ is the covariance of residuals z from the mean of each event's trials, with (trials − events) degrees of freedom:
    its diagonal, or with ``shrinkage`` Σ with correlations times 1 − λ, where λ = Σ_{i≠j} Var(r_ij) / Σ_{i≠j} r_ij² is
    estimated from products of residuals (Schäfer & Strimmer 2005, Stat. Appl. Genet. Mol. Biol. 4:32; rsatoolbox's
    ``shrinkage_diag``). Σ is estimated from trials without a missing unit; with ``shrinkage`` others become missing.
    All is NaN where a unit has no noise, or no event has two such trials.
    """
    complete: BoolArray = np.asarray(np.isfinite(trials).all(axis=2))
    used = np.where(complete[..., None], trials, np.nan)
    residuals = (trials - mean_of_finite(used, 1, keepdims=True))[complete]
    n, freedom = len(residuals), len(residuals) - int(complete.any(axis=1).sum())
    spread = np.sqrt(np.einsum("ij,ij->j", residuals, residuals) / max(freedom, 1))
    if freedom < 1 or not (spread > 0.0).all():
        return np.full(trials.shape, np.nan)
    scaled = trials / spread
    if not shrinkage or len(spread) == 1:
        return np.asarray(scaled)
    z = residuals / spread
    sums, square_sums = z.T @ z, (z * z).T @ (z * z)
    r = sums / (n - 1)
    others = ~np.eye(len(spread), dtype=bool)
    variance = n / freedom**2 * (square_sums / (n - 1) - r * r)
    shrunk = min(max(float(variance[others].sum() / np.square(r[others]).sum()), 0.0), 1.0)
    covariance = np.where(others, (1.0 - shrunk) * sums, sums) / freedom
    try:
        return np.asarray(scaled @ np.linalg.inv(np.linalg.cholesky(covariance)).T)
    except np.linalg.LinAlgError:  # more units than trials, and nothing to shrink by
        return np.full(trials.shape, np.nan)


def comparison_pattern(distances: FloatArray, comparator: Comparator) -> FloatArray:
    """Return a vector of an RDM [n (n − 1) / 2] whose product with that of another RDM is their comparison.

    Its length is 1, or less for ``"rho_a"`` with ties; ``"tau_a"`` is no product (`dense_ranks`). NaN where a
    dissimilarity is NaN, or all are equal (for cosines: zero).
    """
    cosine = comparator.startswith("cosine")
    if comparator in ("spearman", "rho_a") and np.isfinite(distances).all():
        distances = average_ranks(_with_ties(distances))
    low, high = distances.min(initial=np.inf), distances.max(initial=-np.inf)
    defined = np.isfinite((low, high)).all() and (low or high if cosine else low < high)
    scale = power_of_two_scale(np.maximum(-low, high)) if defined else np.nan
    pattern: FloatArray = distances * scale
    if not cosine:
        pattern -= pattern.mean()
        pattern -= pattern.mean()  # rounding errors, where the mean is much larger than the spread
    if comparator.endswith("whitened"):
        pattern = _doubly_centred(pattern)
    if comparator == "rho_a":  # ties leave less than the ranks 1 … m have
        m = float(len(pattern))
        pattern /= scale * np.sqrt(m * (m * m - 1.0) / 12.0)
    else:
        pattern /= np.linalg.norm(pattern)
    return pattern


def dense_ranks(distances: FloatArray) -> IntArray:
    """Return ranks 1, 2, … of an RDM, equal ones for ties, for `kendall_tau_a`; all 0 where one is NaN."""
    if not np.isfinite(distances).all():
        return np.zeros(len(distances), dtype=np.intp)
    return np.asarray(np.unique(_with_ties(distances), return_inverse=True)[1] + 1)


def _with_ties(distances: FloatArray) -> FloatArray:
    """Return dissimilarities without the rounding errors that would order equal ones."""
    rounded: FloatArray = distances / (np.abs(distances).max() or 1.0)
    return np.round(rounded, _TIE_DIGITS, out=rounded)


def _doubly_centred(distances: FloatArray) -> FloatArray:
    """Return HDH's upper triangle, then its diagonal over √2: [n (n − 1) / 2] → [n (n + 1) / 2]."""
    matrix = squareform(distances, checks=False)
    means = matrix.mean(axis=0)
    means -= means.mean() / 2.0

    def block(rows: slice) -> FloatArray:
        made = matrix[rows, rows.start :] - means[rows.start :]
        made -= means[rows, None]
        return np.asarray(made)

    return np.concatenate((upper_triangle(len(means), block), -np.sqrt(2.0) * means))


def kendall_tau_a(a: IntArray, b: IntArray) -> float:
    """Return Kendall's τ_a of ranks 1, 2, … [m]: (concordant − discordant pairs) / all pairs, in O(m log m).

    NaN where all of a or of b are equal.
    """
    from scipy.stats._stats import _kendall_dis  # what kendalltau counts with, after slower sorting

    highest = int(b.max())
    if int(a.max()) <= 1 or highest <= 1:
        return float("nan")
    bits = highest.bit_length()
    both = np.sort((a << bits) | b)
    first, second = both >> bits, both & ((1 << bits) - 1)
    discordant = int(_kendall_dis(first, second))
    starts = np.flatnonzero(np.r_[True, both[1:] != both[:-1], True])
    in_both, in_a, in_b = (
        int((count * (count - 1) // 2).sum()) for count in (np.diff(starts), np.bincount(a), np.bincount(b))
    )
    n_pairs = len(a) * (len(a) - 1) // 2
    return (n_pairs - in_a - in_b + in_both - 2 * discordant) / n_pairs


def products_of_all(patterns: Sequence[FloatArray]) -> FloatArray:
    """Return the products of all pairs of vectors [m], as one matrix product: [k, k]."""
    products = np.zeros((len(patterns), len(patterns)))
    for start in range(0, len(patterns[0]), _PAIRS_AT_ONCE):
        part = np.stack([pattern[start : start + _PAIRS_AT_ONCE] for pattern in patterns])
        products += part @ part.T
    return products


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
    u: FloatArray = x - x.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.einsum("ij,ij->i", u, u) / x.shape[1])
    patterned = spread > ROUNDING * np.maximum(root_mean_square, overall)
    u /= np.where(patterned, spread * np.sqrt(x.shape[1]), 1.0)[:, None]
    u[~patterned] = 0.0
    return u
