"""Linear centred kernel alignment (Kornblith et al. 2019).

CKA = ⟨HKH, HLH⟩ / (‖HKH‖ ‖HLH‖) with K = XXᵀ, L = YYᵀ and H = I − 11ᵀ/n. For centred X and Y this
is ‖XᵀY‖_F² / (‖XᵀX‖_F ‖YᵀY‖_F); for one unit y, ‖Xᵀy‖² / (‖XᵀX‖_F ‖y‖²).
"""

from __future__ import annotations

import numpy as np

from lpact.math._columns import as_finite_matrix
from lpact.math.similarity._common import (
    chunks,
    gram_norm_squared,
    squared_projections,
    standardised_pair,
    standardised_units,
    symmetric,
)
from lpact.math.types import FloatArray


def cka_to_units(phi: FloatArray, units: FloatArray) -> FloatArray:
    """Return the linear CKA of φ with every unit.

    Parameters
    ----------
    phi
        [n, p].
    units
        [n, N].

    Returns
    -------
    cka
        [N], in [0, 1]; NaN for constant units. Costs O(n p (min(n, p) + N)).
    """
    z, y, varies = standardised_pair(phi, units)
    if z.shape[1] == 0:
        return np.full(y.shape[1], np.nan)
    cka = squared_projections(z, y) / (np.sqrt(gram_norm_squared(z)) * len(z))
    return np.where(varies, np.minimum(cka, 1.0), np.nan)


def cka_between_units(units: FloatArray) -> FloatArray:
    """Return the linear CKA of all pairs of units, which is r²: [n, N] → [N, N], diagonal 1."""
    y, varies = standardised_units(units)
    return symmetric(np.minimum((y.T @ y / len(y)) ** 2, 1.0), varies)


def linear_cka(x: FloatArray, y: FloatArray) -> float:
    """Return the linear CKA of two representations of the same events, [n, p] and [n, r].

    Columns are centred, not standardised, so that the result is invariant to rotations and
    isotropic scaling of either side. NaN where one side is constant.
    """
    x, y = as_finite_matrix(x, "x"), as_finite_matrix(y, "y")
    if len(x) != len(y):
        raise ValueError(f"x and y must have the same events, got {len(x)} and {len(y)}")
    x, y = _centred(x), _centred(y)
    cross = sum(float(squared_projections(x, y[:, part]).sum()) for part in chunks(y.shape[1]))
    scale = float(np.sqrt(gram_norm_squared(x) * gram_norm_squared(y)))
    return min(cross / scale, 1.0) if scale > 0.0 else float("nan")


def _centred(x: FloatArray) -> FloatArray:
    """Return ``x`` centred, at a size whose fourth powers neither overflow nor vanish."""
    peak = np.abs(x).max()
    centred = np.where(x.max(axis=0) != x.min(axis=0), x / (peak if peak > 0.0 else 1.0), 0.0)
    centred -= centred.mean(axis=0)
    spread = np.abs(centred).max()
    return centred / (spread if spread > 0.0 else 1.0)
