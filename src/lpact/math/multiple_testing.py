"""Many tests at once."""

from __future__ import annotations

import numpy as np

from lpact.math.types import FloatArray


def benjamini_hochberg(p: FloatArray) -> FloatArray:
    """Return Benjamini–Hochberg adjusted p-values.

    With m finite p-values in ascending order, q_(i) = min over k ≥ i of p_(k) m / k, at most 1.
    Rejecting q ≤ α keeps the expected share of false discoveries at or below α for independent or
    positively dependent tests (Benjamini & Hochberg 1995; Benjamini & Yekutieli 2001).

    Parameters
    ----------
    p
        Any shape, values in [0, 1]. NaN (a test that could not be made) stays NaN and is not
        counted in m.

    Returns
    -------
    q
        Same shape as ``p``.
    """
    p = np.asarray(p, dtype=np.float64)
    tested = ~np.isnan(p)
    values = p[tested]
    if ((values < 0.0) | (values > 1.0)).any():
        raise ValueError(f"p-values must lie in [0, 1], got {values.min():g} to {values.max():g}")
    m = values.size
    descending = np.argsort(values, kind="stable")[::-1]
    # m / k ≥ 1 is formed first, so that rounding cannot bring q below p.
    stepped = values[descending] * (m / np.arange(m, 0, -1))
    adjusted = np.empty(m)
    adjusted[descending] = np.minimum(np.minimum.accumulate(stepped), 1.0)
    q = np.full(p.shape, np.nan)
    q[tested] = adjusted
    return q
