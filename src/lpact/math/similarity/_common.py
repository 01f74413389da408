"""What every alignment measure shares: checked inputs, standardised columns, Gram norms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lpact.math.columns import as_finite_matrix, standard_columns
from lpact.math.types import BoolArray, FloatArray

ROUNDING = 1e-8
"""Spread below this share of a standardised quantity's size is rounding, not signal."""

_CHUNK = 512
"""Rows, columns or units handled at a time, which bounds the memory of every product."""

MIN_EVENTS = 3

MIN_DEBIASED = 4
"""Fewest events for which the unbiased estimator of HSIC exists."""


def standardised(phi: FloatArray, name: str = "phi") -> FloatArray:
    """Return the varying columns of φ, standardised (Σ z² = n): [n, number of varying columns]."""
    z, varies = standard_columns(_checked(phi, name))
    return z if varies.all() else z[:, varies]


def standardised_units(units: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return units standardised [n, N] (constant ones zero) and which of them vary [N]."""
    return standard_columns(_checked(units, "units"))


def standardised_pair(
    phi: FloatArray, units: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return φ and units of the same events, both standardised, and which units vary."""
    z, (y, varies) = standardised(phi), standardised_units(units)
    if len(z) != len(y):
        raise ValueError(f"phi and units must have the same events, got {len(z)} and {len(y)}")
    return z, y, varies


def gram_norm_squared(x: FloatArray) -> float:
    """Return ‖XXᵀ‖_F² = ‖XᵀX‖_F², from slices of the smaller of the two."""
    rows = x if x.shape[0] <= x.shape[1] else x.T
    total = 0.0
    for part in chunks(len(rows)):
        diagonal = rows[part] @ rows[part].T
        above = rows[part] @ rows[part.stop :].T
        total += float(np.einsum("ij,ij->", diagonal, diagonal))
        total += 2.0 * float(np.einsum("ij,ij->", above, above))
    return total


def squared_projections(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return ‖Xᵀy‖² for every column y of ``y``: [n, p], [n, N] → [N]."""
    squared = np.empty(y.shape[1])
    for part in chunks(y.shape[1]):
        product = x.T @ y[:, part]
        squared[part] = np.einsum("ij,ij->j", product, product)
    return squared


def chunks(n: int) -> Iterator[slice]:
    """Yield slices that cover range(n)."""
    for start in range(0, n, _CHUNK):
        yield slice(start, min(start + _CHUNK, n))


def symmetric(matrix: FloatArray, varies: BoolArray) -> FloatArray:
    """Return similarities [N, N] with diagonal 1, and NaN wherever a unit does not vary."""
    np.fill_diagonal(matrix, 1.0)
    matrix[~varies, :] = np.nan
    matrix[:, ~varies] = np.nan
    return matrix


def centred_scaled(x: FloatArray) -> FloatArray:
    """Return ``x`` centred, at a size whose fourth powers neither overflow nor vanish."""
    peak = np.abs(x).max()
    centred = np.where(x.max(axis=0) != x.min(axis=0), x / (peak if peak > 0.0 else 1.0), 0.0)
    centred -= centred.mean(axis=0)
    spread = np.abs(centred).max()
    return centred / (spread if spread > 0.0 else 1.0)


def check_debiased(n: int) -> None:
    """Raise ValueError where there are too few events for the unbiased estimator of HSIC."""
    if n < MIN_DEBIASED:
        raise ValueError(f"debiased alignment needs at least {MIN_DEBIASED} events, got {n}")


def _checked(x: FloatArray, name: str) -> FloatArray:
    x = as_finite_matrix(x, name)
    if len(x) < MIN_EVENTS:
        raise ValueError(f"{name} must have at least {MIN_EVENTS} events, got {len(x)}")
    return x
