"""Detrending, high-pass and confounds of functional MRI, with nilearn's cosines and scaling.

The values of a unit ``y`` [n] become the residual of a least-squares fit,

    y' = y − Q (Qᵀ y),

where ``Q`` [n, r] is an orthonormal basis of the confounds (each brought to mean 0) and of the cosines
``cos(π k (i + 1/2) / n)``, ``k = 1, 2, …``, whose period ``2 n · TR / k`` is not below the cut-off. With detrending, a
straight line is taken from values, confounds and cosines before. Since the columns of ``Q`` have mean 0, the mean of
``y`` stays unless a line is taken out. Units do not mix, so a series can be cleaned a few units at a time. Nothing is
done unless it is asked for.

This is what ``nilearn.signal.clean`` computes, without its matrix ``Q Qᵀ`` [n, n], which no fast recording can hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import linalg

from lpact.errors import RecordingError
from lpact.extras import require
from lpact.math.types import BoolArray, FloatArray

EXTRA = "fmri"
LEAST_FREE = 10
"""Degrees of freedom that a cleaned series must have left, whatever its length."""
LEAST_FREE_SHARE = 0.1
"""Nor may fewer than this share of its volumes be left."""
MOST_DESIGN_BYTES = 256 * 2**20
"""Size of confounds and cosines together, as float64, beyond which a series is not cleaned."""
ROUNDING = 1e-10
"""A residual that stays within this part of the unit's largest value is rounding, not signal."""
_CHUNK_BYTES = 32 * 2**20


@dataclass(frozen=True)
class Design:
    """What is taken out of series of one length: a line, and the columns of ``basis`` [n, r] (None: none)."""

    detrend: bool
    basis: FloatArray | None

    @classmethod
    def of(
        cls,
        n: int,
        *,
        tr_s: float,
        detrend: bool = False,
        highpass_s: float | None = None,
        confounds: FloatArray | None = None,
        where: str = "",
    ) -> Design:
        """Make the basis for series of ``n`` rows; the arguments are those of `clean_series`."""
        filled = None
        if confounds is not None and confounds.size:
            filled = _filled(confounds, n, where)
        n_cosines = 0 if highpass_s is None else _n_cosines(n, tr_s, highpass_s, where)
        n_confounds = 0 if filled is None else filled.shape[1]
        used = f"{n_confounds} confound(s), {n_cosines} cosine(s)" + (", a line" if detrend else "")
        lost = n_cosines + (2 if detrend else 1)
        _check_free(n, n - lost, used, where)  # cosines alone may fill the series
        _check_size(n, n_confounds + n_cosines, where)
        parts = [] if filled is None else [filled]
        if highpass_s is not None:
            parts.append(_cosines(n, tr_s, highpass_s))
        basis = _basis(np.hstack(parts), detrend=detrend) if parts else None
        rank = 0 if basis is None else basis.shape[1]
        _check_free(n, n - rank - (2 if detrend else 1), used, where)
        return cls(detrend, basis)

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return the residual of [n, n_units]; a unit of which only rounding is left is constant, exactly."""
        values = np.asarray(values, dtype=np.float64)
        if not self.detrend and self.basis is None:
            return values
        n, n_units = values.shape
        cleaned = np.empty((n, n_units), order="F")
        width = max(1, _CHUNK_BYTES // (8 * n))
        for first in range(0, n_units, width):
            some = values[:, first : first + width]
            rest = _without_line(some) if self.detrend else some.copy()
            if self.basis is not None:
                rest -= self.basis @ (self.basis.T @ rest)
            gone = _is_rounding(rest, some)
            rest[:, gone] = 0.0 if self.detrend else some[:, gone].mean(axis=0)
            cleaned[:, first : first + width] = rest
        return cleaned


def clean_series(
    values: FloatArray,
    *,
    tr_s: float,
    detrend: bool = False,
    highpass_s: float | None = None,
    confounds: FloatArray | None = None,
    standardise: Literal["none", "zscore"] = "none",
    where: str = "",
) -> FloatArray:
    """Return the series without trend, slow drifts and confounds.

    Parameters
    ----------
    values
        [n, n_units]; they are not changed. A unit with a value that is not finite has none afterwards.
    tr_s
        Seconds between rows.
    detrend
        Take out a straight line, and with it the mean.
    highpass_s
        Cut-off as a period in seconds: cosines as slow or slower are taken out. None: no high-pass.
    confounds
        [n, k], taken out by regression. NaN in the first row (derivatives begin there) takes the value of the second
        row, which is nilearn's convention too; anywhere else it is an error.
    standardise
        ``zscore``: mean 0 and standard deviation 1 (n − 1) over the whole series. This looks at all rows, also those
        that a readout is tested on; where that could leak, scale on training rows instead.
    where
        The recording, for messages.

    Returns
    -------
    [n, n_units]

    Raises
    ------
    RecordingError
        If confounds do not fit or have gaps, if the series is too short for the cut-off, if too few degrees of freedom
        are left, or if confounds and cosines are too large for memory.
    """
    asked = detrend or highpass_s is not None or (confounds is not None and confounds.size > 0)
    if asked:
        design = Design.of(
            len(values),
            tr_s=tr_s,
            detrend=detrend,
            highpass_s=highpass_s,
            confounds=confounds,
            where=where,
        )
        values = design(values)
    return _scaled(values) if standardise == "zscore" else values


def _signal() -> Any:
    return require("nilearn.signal", extra=EXTRA)


def _without_line(values: FloatArray) -> FloatArray:
    rest: FloatArray = _signal().standardize_signal(values, detrend=True, standardize=None)
    return rest


def _scaled(values: FloatArray) -> FloatArray:
    """Bring columns to mean 0 and standard deviation 1 (n − 1); constant ones to 0."""
    scaled: FloatArray = _signal().standardize_signal(
        np.asarray(values, dtype=np.float64), detrend=False, standardize="zscore_sample"
    )
    return scaled


def _is_rounding(rest: FloatArray, before: FloatArray) -> BoolArray:
    """Whether a column's residual is rounding, [n_columns]; one with NaN is not."""
    flags: BoolArray = np.ptp(rest, axis=0) <= ROUNDING * np.abs(before).max(axis=0)
    return flags


def _basis(columns: FloatArray, *, detrend: bool) -> FloatArray:
    """Return an orthonormal basis of columns with mean 0 (and without their line), [n, rank].

    A column of which only rounding is left does not count. The rank is that of a pivoted QR decomposition: columns
    count whose part orthogonal to those before is above ``max(n, k) ε`` of the largest.
    """
    rest = _without_line(columns) if detrend else columns - columns.mean(axis=0)
    rest[:, _is_rounding(rest, columns)] = 0.0
    scaled = _scaled(rest)
    q, r, _ = linalg.qr(scaled, mode="economic", pivoting=True, overwrite_a=True)
    size = np.abs(np.diag(r))
    counts = size > size[0] * max(columns.shape) * np.finfo(np.float64).eps
    return np.asarray(q[:, counts], dtype=np.float64)


def _check_free(n: int, n_free: int, used: str, where: str) -> None:
    least = max(LEAST_FREE, math.ceil(LEAST_FREE_SHARE * n))
    if n_free < least:
        raise RecordingError(
            "cleaning leaves too little of the series",
            where=f"{where}, options 'preprocess.confounds', 'highpass_s' and 'detrend'",
            got=f"{used} out of {n} volumes: {max(0, n_free)} degrees of freedom are left",
            expected=f"at least {least}: {LEAST_FREE}, and {LEAST_FREE_SHARE:.0%} of the volumes",
            remedy="choose fewer confounds or a longer highpass_s, or leave the recording out",
        )


def _check_size(n: int, n_columns: int, where: str) -> None:
    n_bytes = 8 * n * n_columns
    if n_bytes > MOST_DESIGN_BYTES:
        raise RecordingError(
            "confounds and cosines are too large to be taken out",
            where=f"{where}, options 'preprocess.confounds' and 'preprocess.highpass_s'",
            got=f"{n} samples × {n_columns} columns, {n_bytes / 2**20:.0f} MiB",
            expected=f"at most {MOST_DESIGN_BYTES // 2**20} MiB; these options are for fMRI",
            remedy="use highpass_hz for fast recordings, or lower resample_hz",
        )


def _n_cosines(n: int, tr_s: float, highpass_s: float, where: str) -> int:
    """Return how many cosines have periods of ``highpass_s`` or more."""
    if 2.0 * n * tr_s < highpass_s:
        raise RecordingError(
            "the series is too short for the high-pass",
            where=f"{where}, option 'preprocess.highpass_s'",
            got=f"{n} volumes of {tr_s:g} s with a cut-off of {highpass_s:g} s",
            expected=f"a cut-off of at most {2.0 * n * tr_s:g} s, twice the length of the series",
            remedy="lower highpass_s, or use detrend instead",
        )
    return math.floor(min(n - 1, 2.0 * n * tr_s / highpass_s))


def _cosines(n: int, tr_s: float, highpass_s: float) -> FloatArray:
    """Return the cosines with periods of ``highpass_s`` or more, [n, k], as nilearn makes them."""
    drift: FloatArray = _signal().create_cosine_drift(1.0 / highpass_s, np.arange(n) * tr_s)
    return drift[:, :-1]


def _filled(confounds: FloatArray, n: int, where: str) -> FloatArray:
    """Give gaps of the first row the value of the second."""
    filled = np.array(confounds, dtype=np.float64)
    if len(filled) != n:
        raise RecordingError(
            "the confounds do not have one row per volume",
            where=f"{where}, confounds",
            got=f"{len(filled)} rows",
            expected=f"{n} rows",
            remedy="use the confounds of this very run",
        )
    gaps = ~np.isfinite(filled)
    if n > 1:
        filled[0, gaps[0]] = filled[1, gaps[0]]
        gaps[0] = False
    gaps |= ~np.isfinite(filled)
    if gaps.any():
        row, column = (int(i) for i in np.argwhere(gaps)[-1])
        raise RecordingError(
            "a confound has gaps",
            where=f"{where}, confound number {column + 1} of those that were chosen",
            got=f"no finite value in row {row + 1}",
            expected="finite numbers; only the first row may be without",
            remedy="leave the confound out, or fix it",
        )
    return filled
