"""Shared by alignment measures: checked inputs, standardised columns, Gram norms, and quantities of pairs of events.

Quantities of all pairs of events a < b are the upper triangle of a matrix, row by row: [n (n − 1) / 2].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.spatial.distance import pdist

from lpact.math.columns import as_finite_matrix, standard_columns
from lpact.math.types import BoolArray, FloatArray

ROUNDING = 1e-8
"""Spread below this share of a standardised quantity's size is rounding, not signal."""

_CHUNK = 512
"""Rows, columns or units handled at a time, which bounds the memory of every product."""

_MIN_EVENTS = 3

_BLOCK_ROWS = 128
"""Rows of a pair matrix made at a time: few enough that little of the lower triangle is made."""

_ONE_BLOCK = 512
"""Up to as many rows are made at once: a symmetric product costs half of a general one."""

_FEW_COLUMNS = 32
"""With fewer columns than this a plain loop over pairs is as fast as a matrix product."""

_CLOSE = 1e-3
"""Squared distances below this share of the squared lengths are taken from differences."""

_DIFFERENCES = 500_000
"""Differences of rows held at a time, in numbers."""


def standardised_units(units: FloatArray, name: str = "units") -> tuple[FloatArray, BoolArray]:
    """Return units standardised [n, N] (Σ z² = n, constant ones zero) and which of them vary [N]."""
    units = as_finite_matrix(units, name)
    if len(units) < _MIN_EVENTS:
        raise ValueError(f"{name} must have at least {_MIN_EVENTS} events, got {len(units)}")
    return standard_columns(units)


def standardised_pair(phi: FloatArray, units: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return φ's varying columns and units of the same events, both standardised, and which units vary."""
    (z, kept), (y, varies) = standardised_units(phi, "phi"), standardised_units(units)
    if len(z) != len(y):
        raise ValueError(f"phi and units must have the same events, got {len(z)} and {len(y)}")
    return z if kept.all() else z[:, kept], y, varies


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


def symmetric(matrix: FloatArray, defined: BoolArray) -> FloatArray:
    """Return similarities [N, N] with diagonal 1, and NaN for units that are not ``defined``."""
    np.fill_diagonal(matrix, 1.0)
    matrix[~defined, :] = np.nan
    matrix[:, ~defined] = np.nan
    return matrix


def normalised(
    product: FloatArray, own_phi: float, own: FloatArray, defined: BoolArray, low: float = -1.0
) -> FloatArray:
    """Return product / √(own_phi · own) [N], bounded to [low, 1]; NaN for units that are not ``defined``."""
    scale = np.sqrt(np.where(defined, own_phi * own, 1.0))
    return np.where(defined, np.clip(product / scale, low, 1.0), np.nan)


def normalised_pairs(product: FloatArray, defined: BoolArray, low: float = -1.0) -> FloatArray:
    """Return product_ij / √(product_ii product_jj) [N, N], bounded to [low, 1], with diagonal 1."""
    scale = np.sqrt(np.where(defined, np.diagonal(product), 1.0))
    return symmetric(np.clip(product / np.outer(scale, scale), low, 1.0), defined)


def upper_triangle(n: int, block: Callable[[slice], FloatArray]) -> FloatArray:
    """Return the upper triangle of a symmetric matrix whose rows are made in blocks.

    ``block(rows)`` returns columns ``rows.start`` to n − 1 of those rows: [len(rows), n − start].
    """
    upper = np.empty(n * (n - 1) // 2)
    end = 0
    step = n if n <= _ONE_BLOCK else _BLOCK_ROWS
    for first in range(0, n, step):
        made = block(slice(first, min(first + step, n)))
        for offset, row in enumerate(made):
            start, end = end, end + n - 1 - first - offset
            upper[start:end] = row[offset + 1 :]
    return upper


def squared_distances(x: FloatArray) -> FloatArray:
    """Return ‖x_a − x_b‖² of all pairs of rows, [n, p] → [n (n − 1) / 2].

    From ‖x_a‖² + ‖x_b‖² − 2 x_aᵀx_b of centred columns, which is one product of [−2X, ‖x‖², 1] and [X, 1, ‖x‖²]. Pairs
    so close that this cancels are taken from the difference of their rows.
    """
    n, n_columns = x.shape
    if n_columns < _FEW_COLUMNS:
        distances: FloatArray = pdist(x, "sqeuclidean")
        return distances
    x = x - x.mean(axis=0)
    length = np.einsum("ij,ij->i", x, x)
    left = np.column_stack((-2.0 * x, length, np.ones(n)))
    right = np.column_stack((x, np.ones(n), length))

    def block(rows: slice) -> FloatArray:
        others = slice(rows.start, n)
        made: FloatArray = left[rows] @ right[others].T
        np.fill_diagonal(made, np.inf)
        if made.min(initial=np.inf) >= 2.0 * _CLOSE * length.max():
            return made
        close = _CLOSE * (length[rows, None] + length[None, others])
        first, second = np.nonzero(np.triu(made < close, 1))
        step = max(1, _DIFFERENCES // n_columns)
        for start in range(0, len(first), step):
            a, b = first[start : start + step], second[start : start + step]
            difference = x[rows.start + a] - x[rows.start + b]
            made[a, b] = np.einsum("ij,ij->i", difference, difference)
        return made

    return upper_triangle(n, block)
