"""Checked, centred and scaled columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lpact.math.types import BoolArray, FloatArray

_EXPONENT_LIMIT = 1000
"""Powers of two beyond this are not all representable; within it rescaling is exact."""


def as_matrix(x: npt.ArrayLike, name: str) -> FloatArray:
    """Return ``x`` as float64 [n, p] with n ≥ 1 and p ≥ 1; raises ValueError otherwise."""
    matrix = np.asarray(x, dtype=np.float64)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"{name} must be a matrix with rows and columns, got shape {matrix.shape}")
    return matrix


def as_finite_matrix(x: npt.ArrayLike, name: str) -> FloatArray:
    """Return ``x`` as a float64 matrix; raises ValueError if a value is NaN or infinite."""
    matrix = as_matrix(x, name)
    if not np.isfinite(matrix).all():
        n_bad = int((~np.isfinite(matrix)).sum())
        raise ValueError(f"{name} has {n_bad} value(s) that are not finite")
    return matrix


def varying_columns(x: FloatArray) -> BoolArray:
    """Return which columns of [n, p] are finite and not constant (max = min, exactly), [p]."""
    varying: BoolArray = np.isfinite(x).all(axis=0) & (x.max(axis=0) != x.min(axis=0))
    return varying


def mean_of_finite(values: FloatArray, axis: int = 0, *, keepdims: bool = False) -> FloatArray:
    """Mean over one axis of the finite values; NaN if there are none."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = values.sum(axis=axis, keepdims=keepdims)
    if values.shape[axis] and np.isfinite(total).all():  # then all values are
        return np.asarray(total / values.shape[axis])
    finite = np.isfinite(values)
    count = finite.sum(axis=axis, keepdims=keepdims)
    total = np.where(finite, values, 0.0).sum(axis=axis, keepdims=keepdims)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def median_of_finite(values: FloatArray) -> float:
    """Median of the finite values; NaN if there are none."""
    kept = values[np.isfinite(values)]
    return float(np.median(kept)) if kept.size else np.nan


def power_of_two_scale(peak: FloatArray) -> FloatArray:
    """Return powers of two that bring ``peak`` (finite, ≥ 0) near 1; they multiply exactly."""
    exponent = np.clip(np.frexp(peak)[1], -_EXPONENT_LIMIT, _EXPONENT_LIMIT)
    scale: FloatArray = np.ldexp(1.0, -exponent)
    return scale


def standard_columns(x: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return z = (x − mean) / sd of every column of x [n, p], and which columns vary [p].

    sd is that of the population, so that Σ z² = n. The mean is subtracted twice, which removes rounding errors where
    mean ≫ sd; values are rescaled before they are squared, so that squares neither underflow nor overflow. A column
    that is constant or has a value that is not finite is zero and does not vary.
    """
    varies = varying_columns(x)
    z = np.where(varies, x, 0.0)
    z *= power_of_two_scale(np.maximum(z.max(axis=0), -z.min(axis=0)))
    z -= z.mean(axis=0)
    z -= z.mean(axis=0)
    z *= power_of_two_scale(np.maximum(z.max(axis=0), -z.min(axis=0)))
    z /= np.where(varies, np.sqrt(np.einsum("ij,ij->j", z, z) / len(z)), 1.0)
    return z, varies
