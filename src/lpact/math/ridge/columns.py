"""Bring columns to a size at which squares and sums lose nothing: an offset and a power of two for each.

Training-only standardisation follows, and undoes both: neither carries anything from held-out rows into a fit, as
long as the training rows do not fall below what the precision can hold beside them (1e-150 of a held-out outlier).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpact.math.ridge.compute import Array, Backend
from lpact.math.types import FloatArray

_PROBES = 31
_FAR = 30.0
"""Interquartile ranges of the probes between middle and mean above which the mean has been carried off."""


@dataclass(frozen=True)
class Columns:
    """Columns x' = (x − offset) · factor, with both [p] on the host. A constant column is zero."""

    values: Array  # [n, p], working precision
    offset: FloatArray
    factor: FloatArray


def tame(be: Backend, x: Array, n_layers: int = 1, name: str = "features") -> Columns:
    """Offset near the middle of every column, factor a power of two that brings its largest value to about one.

    The offset is the mean, unless a few rows far away have carried it off: then the median of a few probes. A mean
    that a held-out outlier has carried off would cost the training rows their last digits. With several layers (column
    l · p + j is column j of layer l), the layers of a column share a factor: they stay in the same unit.
    """
    wide = be.wide(x)
    n_rows = wide.shape[0]
    mean = be.sums(wide, 0) / n_rows
    if not np.isfinite(mean).all():
        check_finite(be, wide, name)
    probes = be.host(be.take(wide, np.arange(_PROBES) * (n_rows - 1) // (_PROBES - 1), 0))
    probes = np.sort(probes, axis=0)
    middle, spread = probes[_PROBES // 2], probes[-_PROBES // 4] - probes[_PROBES // 4]
    off = ~(np.abs(mean - middle) <= _FAR * spread)
    offset = np.where(off, middle, mean)
    shifted = wide - be.wide(offset)
    low, high = be.minmax(shifted, 0)
    constant = np.flatnonzero(low == high)
    if len(constant):
        offset[constant] = probes[0, constant]
        shifted[:, be.index(constant)] = 0.0
        low[constant] = high[constant] = 0.0
    peak = np.maximum(np.abs(low), np.abs(high))
    peak = np.tile(peak.reshape(n_layers, -1).max(axis=0), n_layers)
    if not np.isfinite(peak).all():
        check_finite(be, wide, name)
        raise ValueError(f"{name} must not differ by more than a float can hold")
    factor = power_of_two(peak)
    shifted *= be.wide(factor)
    return Columns(be.narrow(shifted), offset, factor)


def power_of_two(peak: FloatArray) -> FloatArray:
    """Factors that bring ``peak`` into [½, 1); 1 where it is zero."""
    factor: FloatArray = np.ldexp(1.0, -np.frexp(np.where(peak > 0.0, peak, 1.0))[1])
    return factor


def joined_columns(be: Backend, features: Array, unpenalised: Array | None) -> tuple[Columns, int]:
    """Unpenalised columns first, then features, all tame."""
    columns = tame(be, features)
    if unpenalised is None or unpenalised.shape[1] == 0:
        return columns, 0
    first = tame(be, unpenalised, name="unpenalised columns")
    return (
        Columns(
            be.narrow(be.concatenate([first.values, columns.values], 1)),
            np.concatenate([first.offset, columns.offset]),
            np.concatenate([first.factor, columns.factor]),
        ),
        len(first.offset),
    )


def check_finite(be: Backend, x: Array, name: str) -> None:
    """Raise `ValueError` naming the first value that is NaN or infinite, and its place."""
    if be.all_finite(x):
        return
    values = be.host(x)
    row, column = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
    raise ValueError(
        f"{name} must be finite, got {values[row, column]} at row {row}, column {column}; "
        "leave such rows or columns out, or fill them in"
    )
