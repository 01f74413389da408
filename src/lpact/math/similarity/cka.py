"""Linear centred kernel alignment (Kornblith et al. 2019), plain and debiased.

CKA = ⟨HKH, HLH⟩ / (‖HKH‖ ‖HLH‖) with K = XXᵀ, L = YYᵀ and H = I − 11ᵀ/n. For centred X and Y this
is ‖XᵀY‖_F² / (‖XᵀX‖_F ‖YᵀY‖_F); for one unit y, ‖Xᵀy‖² / (‖XᵀX‖_F ‖y‖²).

It grows with the number of columns, also where X and Y are independent. The debiased form puts the
unbiased estimator of HSIC (Song et al. 2007) in place of each product: with K̃, L̃ = K, L with
diagonal zero,

    n (n − 3) HSIC(K, L) = tr K̃L̃ + 1ᵀK̃1 1ᵀL̃1 / ((n − 1)(n − 2)) − 2 1ᵀK̃L̃1 / (n − 2).

For centred X and Y the rows of K and L sum to zero, so K̃1 = −k with k_a = K_aa = ‖x_a‖², and

    n (n − 3) HSIC(K, L) = ‖XᵀY‖_F² − tr K tr L / (n − 1) − n / (n − 2) Σ_a (k_a − k̄)(l_a − l̄):

no n × n matrix is built. The debiased form lies in [−1, 1], is 1 of a representation with itself and
about 0 of independent ones. It is undefined where HSIC(K, K) = 0: a single event differs from all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpact.math.columns import as_finite_matrix
from lpact.math.similarity._common import (
    centred_scaled,
    check_debiased,
    gram_norm_squared,
    normalised,
    normalised_pairs,
    squared_projections,
    standardised_pair,
    standardised_units,
    symmetric,
)
from lpact.math.types import FloatArray

_NO_STRUCTURE = 1e-10
"""HSIC(K, K) below this share of ‖HKH‖² is rounding."""


def cka_to_units(phi: FloatArray, units: FloatArray, *, debiased: bool = False) -> FloatArray:
    """Return the linear CKA of φ with every unit, in [0, 1], debiased (n ≥ 4) in [−1, 1].

    Costs O(n p (min(n, p) + N)).
    """
    z, y, varies = standardised_pair(phi, units)
    n, n_columns = z.shape
    if debiased:
        check_debiased(n)
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
    check_debiased(n)
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
    x = centred_scaled(as_finite_matrix(x, "x"))
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
        check_debiased(n)
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


def _debiased(
    cross: FloatArray | float, spread: FloatArray | float, traces: float, n: int
) -> FloatArray:
    """Return n (n − 3) HSIC from ‖XᵀY‖², Σ (k − k̄)(l − l̄) and tr K tr L."""
    hsic: FloatArray = np.asarray(cross - traces / (n - 1) - n / (n - 2) * spread)
    return hsic
