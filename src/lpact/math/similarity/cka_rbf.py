"""Centred kernel alignment with Gaussian kernels (Kornblith et al. 2019), plain and debiased.

K_ab = exp(−‖x_a − x_b‖² / 2σ²), where σ² = ``median_fraction``² × the median over pairs a < b of
‖x_a − x_b‖²: the bandwidth is a fraction of the median distance. Each side has its own; where its
median distance is zero (more than half of the pairs coincide), the kernel is undefined.

Centring ignores a constant, so that K − 11ᵀ serves as well as K. Its diagonal is zero, hence with
E = K − 11ᵀ, F = L − 11ᵀ and their row sums e, f

    ⟨HKH, HLH⟩            = tr EF − 2 eᵀf / n       + 1ᵀe 1ᵀf / n²,
    n (n − 3) HSIC(K, L)  = tr EF − 2 eᵀf / (n − 2) + 1ᵀe 1ᵀf / ((n − 1)(n − 2)),

the second being the unbiased estimator of HSIC (Song et al. 2007). CKA is either one of K and L over the
square root of those of K with K and of L with L. The second does not use the diagonal, so that any
constant is possible; for narrow kernels, most of whose entries are near 0, it is 0 instead of 1.

Kernels of units are never stored whole: pairs of events are processed a tile at a time, for all units at
once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isqrt

import numpy as np

from lpact.math.columns import as_finite_matrix
from lpact.math.similarity._common import (
    centred_scaled,
    check_debiased,
    median_squared_difference,
    normalised,
    normalised_pairs,
    pair_row_sums,
    pair_tile,
    squared_distances,
    standardised_pair,
    standardised_units,
)
from lpact.math.types import BoolArray, FloatArray

_IN_CACHE = 2**16
"""Kernel entries worked on at a time (0.5 MB)."""

_IN_MEMORY = 2**22
"""Kernel entries of all units at a time (32 MB), unless tiles become too small."""

_SMALLEST_TILE, _LARGEST_TILE = 8, 256
"""Rows and columns of a tile of the pair matrix."""

_NARROW = 0.85
"""A kernel with this fraction is ½ at the median distance."""

_NO_STRUCTURE = 1e-10
"""A centred kernel's square sum below this share of the kernel's own is rounding."""


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
    own_sums = pair_row_sums(kernel, n)
    own = 2.0 * float(kernel @ kernel)
    self_phi = float(_centred(own, own_sums @ own_sums, own_sums.sum() ** 2, n, debiased))
    totals = sums.sum(axis=1)
    sums_squared = np.einsum("ij,ij->i", sums, sums)
    self_units = _centred(2.0 * squares, sums_squared, totals**2, n, debiased)
    product = _centred(2.0 * cross, sums @ own_sums, totals * own_sums.sum(), n, debiased)
    defined &= (self_units > _NO_STRUCTURE * squares) & (self_phi > _NO_STRUCTURE * own)
    return normalised(product, self_phi, self_units, defined, -1.0 if debiased else 0.0)


def cka_rbf_between_units(
    units: FloatArray, *, median_fraction: float = 1.0, debiased: bool = False
) -> FloatArray:
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


def rbf_kernel(
    x: FloatArray, *, median_fraction: float = 1.0, debiased: bool = False
) -> RBFKernel | None:
    """Return the Gaussian kernel of a representation [n, p]; None where it has no bandwidth or no structure.

    Columns are not standardised. Options as in `cka_rbf_to_units`; 12 n² bytes at most.
    """
    x = as_finite_matrix(x, "x")
    constant = _checked_constant(len(x), median_fraction, debiased)
    upper = _hollow_kernel(centred_scaled(x), median_fraction, constant)
    if upper is None:
        return None
    kernel = RBFKernel(upper, pair_row_sums(upper, len(x)), 0.0, median_fraction, debiased)
    own = _kernel_product(kernel, kernel)
    return replace(kernel, own=own) if own > _NO_STRUCTURE * float(upper @ upper) else None


def rbf_alignment(a: RBFKernel, b: RBFKernel) -> float:
    """Return the CKA of two Gaussian kernels of the same events, invariant to rotations and isotropic scaling of X."""
    of_a, of_b = ((len(k.sums), k.debiased, k.median_fraction) for k in (a, b))
    if of_a != of_b:
        raise ValueError("kernels must have the same events and options")
    cka = _kernel_product(a, b) / float(np.sqrt(a.own * b.own))
    return max(min(cka, 1.0), -1.0 if a.debiased else 0.0)


def _kernel_product(a: RBFKernel, b: RBFKernel) -> float:
    totals = a.sums.sum() * b.sums.sum()
    product = 2.0 * float(a.upper @ b.upper)
    return float(_centred(product, a.sums @ b.sums, totals, len(a.sums), a.debiased))


def _checked_constant(n: int, median_fraction: float, debiased: bool) -> float:
    """Check the options and return the constant that is subtracted from kernels."""
    if not 0.0 < median_fraction < np.inf:
        raise ValueError(f"median_fraction must be positive and finite, got {median_fraction}")
    if debiased:
        check_debiased(n)
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


def _scaled_units(
    y: FloatArray, varies: BoolArray, median_fraction: float
) -> tuple[FloatArray, BoolArray]:
    """Return y / (σ √2) of every unit, as rows [N, n] (0 where undefined), and which are defined."""
    columns = np.ascontiguousarray(y.T)
    median = np.array(
        [median_squared_difference(c) if v else 0.0 for c, v in zip(columns, varies, strict=True)]
    )
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
        kernel_tile = pair_tile(kernel, n, rows, columns).ravel()
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
