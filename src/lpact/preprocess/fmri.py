"""Detrending, high-pass and confounds of functional MRI, done with nilearn.

The values of a unit ``y`` [n] become the residual of a least-squares fit,

    y' = y − Q Qᵀ y,

where ``Q`` [n, r] is an orthonormal basis of the confounds (each brought to mean 0) and of the cosines
``cos(π k (i + 1/2) / n)``, ``k = 1, 2, …``, whose period ``2 n · TR / k`` is not below the cut-off. With detrending, a
straight line is taken from values, confounds and cosines before. Since the columns of ``Q`` have mean 0, the mean of
``y`` stays unless a line is taken out. Units do not mix, so a series can be cleaned a few units at a time. Nothing is
done unless it is asked for.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from lpact.errors import RecordingError
from lpact.extras import require
from lpact.math.types import FloatArray

EXTRA = "fmri"


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
        If confounds do not fit or have gaps, or if the series is too short for the cut-off.
    """
    parts = []
    if confounds is not None and confounds.size:
        parts.append(_filled(confounds, len(values), where))
    if highpass_s is not None:
        parts.append(_cosines(len(values), tr_s, highpass_s, where))
    if not parts and not detrend and standardise == "none":
        return values
    signal: Any = require("nilearn.signal", extra=EXTRA)
    cleaned: FloatArray = signal.clean(
        np.asarray(values, dtype=np.float64),
        detrend=detrend,
        standardize="zscore_sample" if standardise == "zscore" else None,
        confounds=np.hstack(parts) if parts else None,
        standardize_confounds=True,
        # Cosines are among the confounds: nilearn's own filter leaves them out where a confound resembles one.
        filter=False,
        t_r=tr_s,
        ensure_finite=False,
    )
    return cleaned


def _cosines(n: int, tr_s: float, highpass_s: float, where: str) -> FloatArray:
    """Return the cosines with periods of ``highpass_s`` or more, [n, k]."""
    if 2.0 * n * tr_s < highpass_s:
        raise RecordingError(
            "the series is too short for the high-pass",
            where=f"{where}, option 'preprocess.highpass_s'",
            got=f"{n} volumes of {tr_s:g} s with a cut-off of {highpass_s:g} s",
            expected=f"a cut-off of at most {2.0 * n * tr_s:g} s, twice the length of the series",
            remedy="lower highpass_s, or use detrend instead",
        )
    design: Any = require("nilearn.glm.first_level.design_matrix", extra=EXTRA)
    drift: FloatArray = design.create_cosine_drift(1.0 / highpass_s, np.arange(n) * tr_s)
    return drift[:, :-1]


def _filled(confounds: FloatArray, n: int, where: str) -> FloatArray:
    """Give gaps of the first row the value of the second."""
    filled = np.array(confounds, dtype=np.float64)
    if len(filled) != n:
        raise RecordingError(
            "the confounds do not have one row a volume",
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
            remedy="leave the confound out, or mend it",
        )
    return filled
