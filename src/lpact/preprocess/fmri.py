"""Detrending, high-pass and confounds of functional MRI, with nilearn's cosines and scaling.

The values of a unit ``y`` [n] become ``y − Q (Qᵀ y)``, with ``Q`` [n, r] an orthonormal basis of confounds and slow
cosines; docs/explanation/preprocessing.md defines it. This is what `nilearn.signal.clean` computes, without its matrix
``Q Qᵀ`` [n, n], which is too large for fast recordings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from lpact.errors import RecordingError
from lpact.extras import require
from lpact.math.types import BoolArray, FloatArray

MIN_DEGREES_OF_FREEDOM = 10
MIN_FREE_SHARE = 0.1
"""Degrees of freedom that must be left, and as a share of the volumes."""
MAX_DESIGN_BYTES = 256 * 2**20
"""Largest size of confounds and cosines together, as float64."""
ROUNDING = 1e-10
"""A residual within this share of the unit's largest value is rounding, not signal."""
_CHUNK_BYTES = 32 * 2**20


@dataclass(frozen=True)
class Cleaning:
    """What is removed from series of one length: a line, and the columns of ``basis`` [n, r] (None: none)."""

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
    ) -> Cleaning:
        """Make the basis for series of ``n`` rows, ``tr_s`` apart; raises `RecordingError` if they are too short.

        ``detrend`` removes the mean, too. ``highpass_s`` is a period in seconds: cosines as slow or slower are removed.
        NaN in the first row of ``confounds`` [n, k] (derivatives begin there) is replaced by the value of the second
        row, which is nilearn's convention too; anywhere else it is an error.
        """
        filled = np.empty((n, 0)) if confounds is None else _filled(confounds, n, where)
        n_confounds = filled.shape[1]
        n_cosines = 0 if highpass_s is None else _n_cosines(n, tr_s, highpass_s, where)
        n_bytes = 8 * n * (n_confounds + n_cosines)
        if n_bytes > MAX_DESIGN_BYTES:
            raise RecordingError(
                "confounds and cosines need too much memory",
                where=f"{where}, options 'preprocess.confounds' and 'preprocess.highpass_s'",
                got=f"{n} samples × {n_confounds + n_cosines} columns, {n_bytes / 2**20:.0f} MiB",
                expected=f"at most {MAX_DESIGN_BYTES // 2**20} MiB; these options are for fMRI",
                remedy="use highpass_hz for fast recordings, or lower resample_hz",
            )
        used = f"{n_confounds} confound(s), {n_cosines} cosine(s)" + (", a line" if detrend else "")
        n_line = 2 if detrend else 1
        _check_free(n, n_cosines + n_line, used, where)  # cosines alone may fill the series
        if highpass_s is not None:
            drift = _signal().create_cosine_drift(1.0 / highpass_s, np.arange(n) * tr_s)
            filled = np.hstack([filled, drift[:, :-1]])
        basis = _basis(filled, detrend=detrend) if filled.size else None
        _check_free(n, n_line + (0 if basis is None else basis.shape[1]), used, where)
        return cls(detrend, basis)

    def __call__(self, values: FloatArray) -> FloatArray:
        """Clean [n, n_units] in place.

        A unit with missing samples becomes NaN; one that does not vary stays; one of which only rounding is left
        becomes exactly constant.
        """
        complete = np.isfinite(values).all(axis=0)
        values[:, ~complete] = np.nan
        units = np.flatnonzero(complete & (values.max(axis=0) > values.min(axis=0)))
        width = max(1, _CHUNK_BYTES // (8 * len(values)))
        for first in range(0, units.size, width):
            some = units[first : first + width]
            before = values[:, some]
            rest = _without_line(before) if self.detrend else before.copy()
            if self.basis is not None:
                rest -= self.basis @ (self.basis.T @ rest)
            gone = _is_rounding(rest, before)
            rest[:, gone] = 0.0 if self.detrend else before[:, gone].mean(axis=0)
            values[:, some] = rest
        return values


def _signal() -> Any:
    return require("nilearn.signal", extra="fmri")


def _without_line(values: FloatArray) -> FloatArray:
    rest: FloatArray = _signal().standardize_signal(values, detrend=True, standardize=None)
    return rest


def _is_rounding(rest: FloatArray, before: FloatArray) -> BoolArray:
    """Whether a column's residual is rounding, [n_columns]."""
    flags: BoolArray = np.ptp(rest, axis=0) <= ROUNDING * np.abs(before).max(axis=0)
    return flags


def _basis(columns: FloatArray, *, detrend: bool) -> FloatArray:
    """Orthonormal basis of columns with mean 0 (and without their line), [n, rank].

    Columns of which only rounding is left do not count. The rank is that of a pivoted QR decomposition: columns
    count whose part orthogonal to those before is above ``max(n, k) ε`` of the largest.
    """
    rest = _without_line(columns) if detrend else columns - columns.mean(axis=0)
    rest[:, _is_rounding(rest, columns)] = 0.0
    scaled = _signal().standardize_signal(rest, detrend=False, standardize="zscore_sample")
    q, r, _ = linalg.qr(scaled, mode="economic", pivoting=True, overwrite_a=True)
    size = np.abs(np.diag(r))
    counts = size > size[0] * max(columns.shape) * np.finfo(np.float64).eps
    return np.asarray(q[:, counts], dtype=np.float64)


def _check_free(n: int, n_used: int, used: str, where: str) -> None:
    n_free, least = n - n_used, max(MIN_DEGREES_OF_FREEDOM, math.ceil(MIN_FREE_SHARE * n))
    if n_free < least:
        raise RecordingError(
            "cleaning leaves too little of the series",
            where=f"{where}, options 'preprocess.confounds', 'highpass_s' and 'detrend'",
            got=f"{used} out of {n} volumes: {max(0, n_free)} degrees of freedom are left",
            expected=f"at least {least}: {MIN_DEGREES_OF_FREEDOM}, and {MIN_FREE_SHARE:.0%} of the volumes",
            remedy="choose fewer confounds or a longer highpass_s, or leave the recording out",
        )


def _n_cosines(n: int, tr_s: float, highpass_s: float, where: str) -> int:
    """How many cosines have periods of ``highpass_s`` or more."""
    if 2.0 * n * tr_s < highpass_s:
        raise RecordingError(
            "the series is too short for the high-pass",
            where=f"{where}, option 'preprocess.highpass_s'",
            got=f"{n} volumes of {tr_s:g} s with a cut-off of {highpass_s:g} s",
            expected=f"a cut-off of at most {2.0 * n * tr_s:g} s, twice the length of the series",
            remedy="lower highpass_s, or use detrend instead",
        )
    return math.floor(min(n - 1, 2.0 * n * tr_s / highpass_s))


def _filled(confounds: FloatArray, n: int, where: str) -> FloatArray:
    """Confounds with gaps of the first row replaced by the value of the second."""
    filled = np.array(confounds, dtype=np.float64)
    if len(filled) != n:
        raise RecordingError(
            "the confounds do not have one row per volume",
            where=f"{where}, confounds",
            got=f"{len(filled)} rows",
            expected=f"{n} rows",
            remedy="use the confounds of this run",
        )
    if n > 1:
        filled[0] = np.where(np.isfinite(filled[0]), filled[0], filled[1])
    gaps = np.argwhere(~np.isfinite(filled))
    if gaps.size:
        row, column = gaps[-1].tolist()
        raise RecordingError(
            "a confound has gaps",
            where=f"{where}, confound number {column + 1} of those selected",
            got=f"no finite value in row {row + 1}",
            expected="finite numbers; only the first row may be missing",
            remedy="leave the confound out, or fix it",
        )
    return filled
