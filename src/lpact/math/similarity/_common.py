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
_MIN_DEBIASED = 4
"""Fewest events for which the unbiased estimator of HSIC exists."""

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


def centred_scaled(x: FloatArray) -> FloatArray:
    """Return ``x`` centred, at a size whose fourth powers neither overflow nor vanish."""
    peak = np.abs(x).max()
    centred = np.where(x.max(axis=0) != x.min(axis=0), x / (peak if peak > 0.0 else 1.0), 0.0)
    centred -= centred.mean(axis=0)
    spread = np.abs(centred).max()
    return centred / (spread if spread > 0.0 else 1.0)


def check_debiased(n: int) -> None:
    """Raise ValueError where there are too few events for the unbiased estimator of HSIC."""
    if n < _MIN_DEBIASED:
        raise ValueError(f"debiased alignment needs at least {_MIN_DEBIASED} events, got {n}")


def _checked(x: FloatArray, name: str) -> FloatArray:
    x = as_finite_matrix(x, name)
    if len(x) < _MIN_EVENTS:
        raise ValueError(f"{name} must have at least {_MIN_EVENTS} events, got {len(x)}")
    return x


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

    From ‖x_a‖² + ‖x_b‖² − 2 x_aᵀx_b of centred columns, which is one matrix product. Pairs so close
    that this cancels are taken from the difference of their rows.
    """
    n, n_columns = x.shape
    if n_columns < _FEW_COLUMNS:
        distances: FloatArray = pdist(x, "sqeuclidean")
        return distances
    x = x - x.mean(axis=0)
    length = np.einsum("ij,ij->i", x, x)

    def block(rows: slice) -> FloatArray:
        others = slice(rows.start, n)
        both = length[rows, None] + length[None, others]
        made = x[rows] @ x[others].T
        made *= -2.0
        made += both
        both *= _CLOSE
        first, second = np.nonzero(np.triu(made < both, 1))
        step = max(1, _DIFFERENCES // n_columns)
        for start in range(0, len(first), step):
            a, b = first[start : start + step], second[start : start + step]
            difference = x[rows.start + a] - x[rows.start + b]
            made[a, b] = np.einsum("ij,ij->i", difference, difference)
        return made

    return upper_triangle(n, block)


def pair_row_sums(upper: FloatArray, n: int) -> FloatArray:
    """Return the row sums [n] of the symmetric matrix with this upper triangle and diagonal 0."""
    sums = np.zeros(n)
    end = 0
    for a in range(n - 1):
        start, end = end, end + n - 1 - a
        sums[a] += upper[start:end].sum()
        sums[a + 1 :] += upper[start:end]
    return sums


def pair_tile(upper: FloatArray, n: int, rows: slice, columns: slice) -> FloatArray:
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
