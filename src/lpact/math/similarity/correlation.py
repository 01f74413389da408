"""Alignments that reduce a representation to one value per event."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from lpact.math.columns import standard_columns
from lpact.math.similarity._common import (
    ROUNDING,
    standardised_pair,
    standardised_units,
    symmetric,
)
from lpact.math.types import BoolArray, FloatArray


def event_response_to_units(phi: FloatArray, units: FloatArray) -> FloatArray:
    """Return the correlation over events of the size of φ's response, √(mean over columns of z²), with |y|.

    z and y are standardised columns. NaN where either size is the same for all events.
    """
    z, y, varies = standardised_pair(phi, units)
    if z.shape[1] == 0:
        return np.full(y.shape[1], np.nan)
    size = np.sqrt(np.einsum("ij,ij->i", z, z) / z.shape[1])[:, None]
    size, size_varies = _standard_sizes(size)
    sizes, sizes_vary = _standard_sizes(np.abs(y))
    r = np.clip(size[:, 0] @ sizes / len(y), -1.0, 1.0)
    return np.where(varies & sizes_vary & size_varies[0], r, np.nan)


def event_response_between_units(units: FloatArray) -> FloatArray:
    """Return the correlation of |y_i| with |y_j| for all pairs of units."""
    y, varies = standardised_units(units)
    sizes, sizes_vary = _standard_sizes(np.abs(y))
    return symmetric(np.clip(sizes.T @ sizes / len(y), -1.0, 1.0), varies & sizes_vary)


def pearson_to_units(phi: FloatArray, units: FloatArray) -> FloatArray:
    """Return the absolute correlation of every unit with the leading principal component of φ's standardised columns.

    Its sign is arbitrary, hence the absolute value. If the two largest eigenvalues are equal, it is not unique.
    """
    z, y, varies = standardised_pair(phi, units)
    if z.shape[1] == 0:
        return np.full(y.shape[1], np.nan)
    leading, _ = standard_columns(leading_component(z)[:, None])
    r = np.minimum(np.abs(leading[:, 0] @ y) / len(y), 1.0)
    return np.where(varies, r, np.nan)


def pearson_between_units(units: FloatArray) -> FloatArray:
    """Return the absolute correlation of all pairs of units."""
    y, varies = standardised_units(units)
    return symmetric(np.minimum(np.abs(y.T @ y) / len(y), 1.0), varies)


def _standard_sizes(size: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return sizes [n, N] standardised, and which vary by more than rounding.

    |y| of a unit with two equally frequent values is constant, but not to the last digit.
    """
    z, _ = standard_columns(size)
    varies = np.ptp(size, axis=0) > ROUNDING * size.max(axis=0)
    return z, varies


def leading_component(z: FloatArray) -> FloatArray:
    """Return the scores [n] of the leading principal component of standardised columns [n, p]."""
    n, n_columns = z.shape
    if n_columns == 1:
        return z[:, 0]
    gram = z.T @ z if n_columns <= n else z @ z.T
    last = len(gram) - 1
    vector = eigh(gram, subset_by_index=(last, last))[1][:, 0]
    scores: FloatArray = z @ vector if n_columns <= n else vector
    return scores
