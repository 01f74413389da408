"""Centred kernel alignment (Kornblith et al. 2019) of linear and Gaussian kernels, plain and debiased.

CKA = ⟨HKH, HLH⟩ / (‖HKH‖ ‖HLH‖) with H = I − 11ᵀ/n. It grows with the number of columns, also where both sides are
independent. The debiased form puts the unbiased estimator of HSIC (Song et al. 2007) in place of each product: with K̃,
L̃ = K, L with diagonal zero,

    n (n − 3) HSIC(K, L) = tr K̃L̃ + 1ᵀK̃1 1ᵀL̃1 / ((n − 1)(n − 2)) − 2 1ᵀK̃L̃1 / (n − 2).

It lies in [−1, 1], is 1 of a representation with itself and about 0 of independent ones. It is undefined where
HSIC(K, K) = 0: a single event differs from all others.

*Linear*: K = XXᵀ, L = YYᵀ. For centred X and Y, CKA is ‖XᵀY‖_F² / (‖XᵀX‖_F ‖YᵀY‖_F); for one unit y, ‖Xᵀy‖² /
(‖XᵀX‖_F ‖y‖²). The rows of K and L sum to zero, so K̃1 = −k with k_a = K_aa = ‖x_a‖², and

    n (n − 3) HSIC(K, L) = ‖XᵀY‖_F² − tr K tr L / (n − 1) − n / (n − 2) Σ_a (k_a − k̄)(l_a − l̄):

no n × n matrix is built.

*Gaussian*: K_ab = exp(−‖x_a − x_b‖² / 2σ²), where σ² = ``median_fraction``² × the median over pairs a < b of
‖x_a − x_b‖². Each side has its own σ; where its median distance is zero (more than half of the pairs coincide), the
kernel is undefined. Centring ignores a constant, so K − 11ᵀ serves as well as K. Its diagonal is zero, hence with E =
K − 11ᵀ, F = L − 11ᵀ and their row sums e, f

    ⟨HKH, HLH⟩            = tr EF − 2 eᵀf / n       + 1ᵀe 1ᵀf / n²,
    n (n − 3) HSIC(K, L)  = tr EF − 2 eᵀf / (n − 2) + 1ᵀe 1ᵀf / ((n − 1)(n − 2)).

The second does not use the diagonal, so any constant is possible; for narrow kernels, most of whose entries are near 0,
it is 0 instead of 1. Kernels of units are never stored whole: pairs of events are processed a tile at a time, for all
units at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isqrt

import numpy as np

from lpact.math.columns import as_finite_matrix
from lpact.math.similarity._common import (
    gram_norm_squared,
    normalised,
    normalised_pairs,
    squared_distances,
    squared_projections,
    standardised_pair,
    standardised_units,
    symmetric,
)
from lpact.math.types import BoolArray, FloatArray

_MIN_DEBIASED = 4
"""Fewest events for which the unbiased estimator of HSIC exists."""

_NO_STRUCTURE = 1e-10
"""A centred kernel's square sum below this share of the kernel's own is rounding."""

_IN_CACHE = 2**16
"""Kernel entries worked on at a time (0.5 MB)."""

_IN_MEMORY = 2**22
"""Kernel entries of all units at a time (32 MB), unless tiles become too small."""

_SMALLEST_TILE, _LARGEST_TILE = 8, 256
"""Rows and columns of a tile of the pair matrix."""

_NARROW = 0.85
"""A kernel with this fraction is ½ at the median distance."""


# --- linear kernels ---------------------------------------------------------------------------------------------------


def cka_to_units(phi: FloatArray, units: FloatArray, *, debiased: bool = False) -> FloatArray:
    """Return the linear CKA of φ with every unit, in [0, 1], debiased (n ≥ 4) in [−1, 1].

    Costs O(n p (min(n, p) + N)).
    """
    z, y, varies = standardised_pair(phi, units)
    n, n_columns = z.shape
    if debiased:
        _check_debiased(n)
    if n_columns == 0:
        return np.full(y.shape[1], np.nan)
    own, cross = gram_norm_squared(z), squared_projections(z, y)
    if not debiased:
        cka = cross / (np.sqrt(own) * n)
        return np.where(varies, np.minimum(cka, 1.0), np.nan)
    k = np.einsum("ij,ij->i", z, z) - n_columns
    squares = y * y - 1.0
    self_phi = _debiased(own, float(k @ k), float(n * n_columns) ** 2, n)
    self_units = _debiased(float(n * n), np.einsum("ij,ij->j", squares, squares), float(n * n), n)
    product = _debiased(cross, k @ squares, float(n * n * n_columns), n)
    defined = varies & (self_units > _NO_STRUCTURE * n * n) & (self_phi > _NO_STRUCTURE * own)
    return normalised(product, float(self_phi), self_units, defined)


def cka_between_units(units: FloatArray, *, debiased: bool = False) -> FloatArray:
    """Return the linear CKA of all pairs of units, which is r².

    Debiased, with r a Pearson correlation and q = y² − 1, it is r² − 1 / (n − 1) − q_iᵀq_j / (n (n − 2))
    over the square root of the same of i with i and of j with j.
    """
    y, varies = standardised_units(units)
    n = len(y)
    cross = (y.T @ y) ** 2
    if not debiased:
        return symmetric(np.minimum(cross / (n * n), 1.0), varies)
    _check_debiased(n)
    squares = y * y - 1.0
    product = _debiased(cross, squares.T @ squares, float(n * n), n)
    defined = varies & (np.diagonal(product) > _NO_STRUCTURE * n * n)
    return normalised_pairs(product, defined)


@dataclass(frozen=True)
class LinearKernel:
    """XXᵀ of centred X, scaled so that nothing overflows, with its diagonal [n] and ‖·‖_F².

    Given as ``gram`` [n, n] where X has more columns than rows, else as ``x`` [n, p].
    """

    x: FloatArray
    gram: FloatArray | None
    diagonal: FloatArray
    norm_squared: float


def linear_kernel(x: FloatArray) -> LinearKernel:
    """Return the linear kernel of a representation [n, p]; columns are centred, not standardised."""
    x = _centred_scaled(as_finite_matrix(x, "x"))
    diagonal = np.einsum("ij,ij->i", x, x)
    if x.shape[1] <= len(x):
        return LinearKernel(x, None, diagonal, gram_norm_squared(x))
    gram = x @ x.T
    return LinearKernel(x[:, :0], gram, diagonal, float(np.einsum("ij,ij->", gram, gram)))


def linear_alignment(a: LinearKernel, b: LinearKernel, *, debiased: bool = False) -> float:
    """Return the linear CKA of two kernels of the same events, invariant to rotations and isotropic scaling of X.

    NaN where one side is constant.
    """
    n = len(a.diagonal)
    if n != len(b.diagonal):
        raise ValueError(f"kernels must have the same events, got {n} and {len(b.diagonal)}")
    cross, own_a, own_b = _kernel_product(a, b), a.norm_squared, b.norm_squared
    if debiased:
        _check_debiased(n)
        floor_a, floor_b = _NO_STRUCTURE * own_a, _NO_STRUCTURE * own_b
        cross = _debiased_pair(cross, a.diagonal, b.diagonal)
        own_a = _debiased_pair(own_a, a.diagonal, a.diagonal)
        own_b = _debiased_pair(own_b, b.diagonal, b.diagonal)
        if own_a <= floor_a or own_b <= floor_b:
            return float("nan")
    scale = float(np.sqrt(own_a * own_b))
    return max(min(cross / scale, 1.0), -1.0) if scale > 0.0 else float("nan")


def _kernel_product(a: LinearKernel, b: LinearKernel) -> float:
    """Return ⟨K, L⟩ = ‖XᵀY‖²."""
    if a.gram is not None and b.gram is not None:
        return float(np.einsum("ij,ij->", a.gram, b.gram))
    for gram, x in ((a.gram, b.x), (b.gram, a.x)):
        if gram is not None:
            return float(np.einsum("ij,ij->", gram @ x, x))
    return float(squared_projections(a.x, b.x).sum())


def _debiased_pair(cross: float, k: FloatArray, m: FloatArray) -> float:
    centred = (k - k.mean()) @ (m - m.mean())
    return float(_debiased(cross, float(centred), float(k.sum() * m.sum()), len(k)))


def _debiased(cross: FloatArray | float, spread: FloatArray | float, traces: float, n: int) -> FloatArray:
    """Return n (n − 3) HSIC from ‖XᵀY‖², Σ (k − k̄)(l − l̄) and tr K tr L."""
    hsic: FloatArray = np.asarray(cross - traces / (n - 1) - n / (n - 2) * spread)
    return hsic


def _centred_scaled(x: FloatArray) -> FloatArray:
    """Return ``x`` centred, at a size whose fourth powers neither overflow nor vanish."""
    peak = np.abs(x).max()
    centred = np.where(x.max(axis=0) != x.min(axis=0), x / (peak if peak > 0.0 else 1.0), 0.0)
    centred -= centred.mean(axis=0)
    spread = np.abs(centred).max()
    return centred / (spread if spread > 0.0 else 1.0)


def _check_debiased(n: int) -> None:
    """Raise ValueError where there are too few events for the unbiased estimator of HSIC."""
    if n < _MIN_DEBIASED:
        raise ValueError(f"debiased alignment needs at least {_MIN_DEBIASED} events, got {n}")


# --- Gaussian kernels -------------------------------------------------------------------------------------------------


def cka_rbf_to_units(
    phi: FloatArray, units: FloatArray, *, median_fraction: float = 1.0, debiased: bool = False
) -> FloatArray:
    """Return the RBF CKA of φ with every unit, in [0, 1], debiased (n ≥ 4) in [−1, 1].

    ``median_fraction`` is the bandwidth of each kernel, in its median distances between events. NaN where a median
    distance is zero. Costs O(n² (p + N)) time and 8 n² bytes.
    """
    z, y, varies = standardised_pair(phi, units)
    n, n_units = y.shape
    constant = _checked_constant(n, median_fraction, debiased)
    kernel = _hollow_kernel(z, median_fraction, constant) if z.shape[1] else None
    if kernel is None:
        return np.full(n_units, np.nan)
    scaled, defined = _scaled_units(y, varies, median_fraction)
    cross, squares, sums = _products_with_units(kernel, scaled, constant)
    own_sums = _pair_row_sums(kernel, n)
    own = 2.0 * float(kernel @ kernel)
    self_phi = float(_centred(own, own_sums @ own_sums, own_sums.sum() ** 2, n, debiased))
    totals = sums.sum(axis=1)
    sums_squared = np.einsum("ij,ij->i", sums, sums)
    self_units = _centred(2.0 * squares, sums_squared, totals**2, n, debiased)
    product = _centred(2.0 * cross, sums @ own_sums, totals * own_sums.sum(), n, debiased)
    defined &= (self_units > _NO_STRUCTURE * squares) & (self_phi > _NO_STRUCTURE * own)
    return normalised(product, self_phi, self_units, defined, -1.0 if debiased else 0.0)


def cka_rbf_between_units(units: FloatArray, *, median_fraction: float = 1.0, debiased: bool = False) -> FloatArray:
    """Return the RBF CKA of all pairs of units.

    Options and NaN as in `cka_rbf_to_units`. Costs O(n² N²) time, all of it matrix products.
    """
    y, varies = standardised_units(units)
    n, n_units = y.shape
    constant = _checked_constant(n, median_fraction, debiased)
    scaled, defined = _scaled_units(y, varies, median_fraction)
    sums, cross = np.zeros((n_units, n)), np.zeros((n_units, n_units))
    for rows, columns in _tiles(n, _IN_MEMORY // n_units):
        tile = np.empty((n_units, rows.stop - rows.start, columns.stop - columns.start))
        _fill_tile(scaled, sums, rows, columns, constant, tile)
        flat = tile.reshape(n_units, -1)
        cross += flat @ flat.T
    totals = sums.sum(axis=1)
    product = _centred(2.0 * cross, sums @ sums.T, np.outer(totals, totals), n, debiased)
    defined &= np.diagonal(product) > _NO_STRUCTURE * np.diagonal(cross)
    return normalised_pairs(product, defined, -1.0 if debiased else 0.0)


@dataclass(frozen=True)
class RBFKernel:
    """A Gaussian kernel minus a constant: upper triangle [n (n − 1) / 2], row sums [n], product with itself."""

    upper: FloatArray
    sums: FloatArray
    own: float
    median_fraction: float
    debiased: bool


def rbf_kernel(x: FloatArray, *, median_fraction: float = 1.0, debiased: bool = False) -> RBFKernel | None:
    """Return the Gaussian kernel of a representation [n, p]; None where it has no bandwidth or no structure.

    Columns are not standardised. Options as in `cka_rbf_to_units`; 12 n² bytes at most.
    """
    x = as_finite_matrix(x, "x")
    constant = _checked_constant(len(x), median_fraction, debiased)
    upper = _hollow_kernel(_centred_scaled(x), median_fraction, constant)
    if upper is None:
        return None
    kernel = RBFKernel(upper, _pair_row_sums(upper, len(x)), 0.0, median_fraction, debiased)
    own = _rbf_product(kernel, kernel)
    return replace(kernel, own=own) if own > _NO_STRUCTURE * float(upper @ upper) else None


def rbf_alignment(a: RBFKernel, b: RBFKernel) -> float:
    """Return the CKA of two Gaussian kernels of the same events, invariant to rotations and isotropic scaling of X."""
    of_a, of_b = ((len(k.sums), k.debiased, k.median_fraction) for k in (a, b))
    if of_a != of_b:
        raise ValueError("kernels must have the same events and options")
    cka = _rbf_product(a, b) / float(np.sqrt(a.own * b.own))
    return max(min(cka, 1.0), -1.0 if a.debiased else 0.0)


def _rbf_product(a: RBFKernel, b: RBFKernel) -> float:
    totals = a.sums.sum() * b.sums.sum()
    product = 2.0 * float(a.upper @ b.upper)
    return float(_centred(product, a.sums @ b.sums, totals, len(a.sums), a.debiased))


def _checked_constant(n: int, median_fraction: float, debiased: bool) -> float:
    """Check the options and return the constant that is subtracted from kernels."""
    if not 0.0 < median_fraction < np.inf:
        raise ValueError(f"median_fraction must be positive and finite, got {median_fraction}")
    if debiased:
        _check_debiased(n)
    return 0.0 if debiased and median_fraction < _NARROW else 1.0


def _hollow_kernel(x: FloatArray, median_fraction: float, constant: float) -> FloatArray | None:
    """Return K − constant of all pairs of rows, [n (n − 1) / 2]; None if the median distance is zero."""
    kernel = squared_distances(x)
    median = float(np.median(kernel)) if kernel.size else 0.0
    if median <= 0.0:
        return None
    kernel *= -0.5 / (median_fraction**2 * median)
    np.exp(kernel, out=kernel)
    kernel -= constant
    return kernel


def _scaled_units(y: FloatArray, varies: BoolArray, median_fraction: float) -> tuple[FloatArray, BoolArray]:
    """Return y / (σ √2) of every unit, as rows [N, n] (0 where undefined), and which are defined."""
    columns = np.ascontiguousarray(y.T)
    median = np.array([median_squared_difference(c) if v else 0.0 for c, v in zip(columns, varies, strict=True)])
    defined = varies & (median > 0.0)
    scale = median_fraction * np.sqrt(2.0 * np.where(defined, median, 1.0))
    return np.where(defined, y / scale, 0.0).T.copy(), defined


def _products_with_units(
    kernel: FloatArray, scaled: FloatArray, constant: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return Σ_{a<b} EF and Σ_{a<b} F² of every unit's F [N], and F's row sums [N, n]."""
    n_units, n = scaled.shape
    cross, squares, sums = np.zeros(n_units), np.zeros(n_units), np.zeros((n_units, n))
    for rows, columns in _tiles(n, _IN_CACHE):
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        kernel_tile = _pair_tile(kernel, n, rows, columns).ravel()
        at_once = max(1, _IN_CACHE // kernel_tile.size)
        tiles = np.empty((min(at_once, n_units), *shape))
        for start in range(0, n_units, at_once):
            units = slice(start, min(start + at_once, n_units))
            part = tiles[: units.stop - start]
            _fill_tile(scaled[units], sums[units], rows, columns, constant, part)
            flat = part.reshape(len(part), -1)
            cross[units] += flat @ kernel_tile
            squares[units] += (flat[:, None, :] @ flat[:, :, None])[:, 0, 0]
    return cross, squares, sums


def _tiles(n: int, entries: int) -> Iterator[tuple[slice, slice]]:
    """Yield rows and columns of square tiles that cover the upper triangle, ``entries`` each."""
    size = max(_SMALLEST_TILE, min(_LARGEST_TILE, isqrt(entries)))
    for row in range(0, n, size):
        for column in range(row, n, size):
            yield slice(row, min(row + size, n)), slice(column, min(column + size, n))


def _fill_tile(
    scaled: FloatArray,
    sums: FloatArray,
    rows: slice,
    columns: slice,
    constant: float,
    out: FloatArray,
) -> None:
    """Write K − constant of every unit for the pairs a < b of a tile, [N, rows, columns].

    The row sums of the whole hollow matrix are added to ``sums`` [N, n].
    """
    at_once = max(1, _IN_CACHE // (out.shape[1] * out.shape[2]))
    for start in range(0, len(out), at_once):
        units = slice(start, start + at_once)
        part, y = out[units], scaled[units]
        np.subtract(y[:, rows, None], y[:, None, columns], out=part)
        np.multiply(part, part, out=part)
        np.negative(part, out=part)
        np.exp(part, out=part)
        np.subtract(part, constant, out=part)
        if rows.start == columns.start:
            part *= np.triu(np.ones(part.shape[1:]), 1)
        sums[units, rows] += part @ np.ones(part.shape[2])
        sums[units, columns] += np.ones(part.shape[1]) @ part


def _centred(
    product: FloatArray | float,
    row_sums: FloatArray | float,
    totals: FloatArray | float,
    n: int,
    debiased: bool,
) -> FloatArray:
    """Return ⟨HKH, HLH⟩ or n (n − 3) HSIC from tr EF, eᵀf and 1ᵀe 1ᵀf."""
    rows, all_pairs = (n - 2, (n - 1) * (n - 2)) if debiased else (n, n * n)
    return np.asarray(product - 2.0 / rows * row_sums + totals / all_pairs)


def _pair_row_sums(upper: FloatArray, n: int) -> FloatArray:
    """Return the row sums [n] of the symmetric matrix with this upper triangle and diagonal 0."""
    sums = np.zeros(n)
    end = 0
    for a in range(n - 1):
        start, end = end, end + n - 1 - a
        sums[a] += upper[start:end].sum()
        sums[a + 1 :] += upper[start:end]
    return sums


def _pair_tile(upper: FloatArray, n: int, rows: slice, columns: slice) -> FloatArray:
    """Return [rows, columns] of the matrix with this upper triangle, zero on and below its diagonal."""
    tile = np.zeros((rows.stop - rows.start, columns.stop - columns.start))
    for a in range(rows.start, rows.stop):
        first = max(a + 1, columns.start)
        row_start = a * n - a * (a + 1) // 2 - a - 1
        part = upper[row_start + first : row_start + columns.stop]
        tile[a - rows.start, first - columns.start :] = part
    return tile


def median_squared_difference(y: FloatArray) -> float:
    """Return the median over pairs a < b of (y_a − y_b)², for one column [n], without the pairs.

    How many pairs differ by at most t is counted by searching sorted values, in O(n log n).
    """
    y = np.sort(y)
    n_pairs = len(y) * (len(y) - 1) // 2
    lower = _ranked_difference(y, (n_pairs - 1) // 2)
    upper = lower if n_pairs % 2 else _ranked_difference(y, n_pairs // 2)
    return 0.5 * (lower**2 + upper**2)


def _ranked_difference(y: FloatArray, rank: int) -> float:
    """Return the difference b − a of ascending values that ``rank`` differences come before.

    Bisection of the value, until so few pairs are left that they can be listed.
    """
    n = len(y)
    first = np.arange(n)
    low, high = 0.0, float(y[-1] - y[0])
    # Pairs (a, b) with below[a] ≤ b < above[a] are left: they differ by more than low, at most high.
    below, above = np.searchsorted(y, y, side="right"), np.full(n, n)
    if rank < (below - first - 1).sum():
        return 0.0
    while (above - below).sum() > 2 * n:
        middle = 0.5 * (low + high)
        if not low < middle < high:  # equal up to rounding
            return high
        inside = np.searchsorted(y, y + middle, side="right")
        if rank < (inside - first - 1).sum():
            high, above = middle, inside
        else:
            low, below = middle, inside
    count = above - below
    a = np.repeat(first, count)
    b = np.arange(len(a)) + np.repeat(below - np.cumsum(count) + count, count)
    place = rank - int((below - first - 1).sum())
    return float(np.partition(y[b] - y[a], place)[place])
