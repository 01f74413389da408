"""Many tests at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lpact.math.types import FloatArray


def benjamini_hochberg(p: npt.ArrayLike) -> FloatArray:
    """Return Benjamini–Hochberg adjusted p-values; NaN (a test that could not be made) stays NaN and is not counted.

    With m finite p-values in ascending order, q_(i) = min over k ≥ i of p_(k) m / k, at most 1: SciPy's
    `scipy.stats.false_discovery_control`. Rejecting q ≤ α keeps the expected share of false discoveries at or below α
    for independent or positively dependent tests (Benjamini & Hochberg 1995; Benjamini & Yekutieli 2001).

    Parameters
    ----------
    p
        Any shape, values in [0, 1].

    Returns
    -------
    q
        Same shape as ``p``.
    """
    from scipy.stats import false_discovery_control  # half a second to import

    p = np.asarray(p, dtype=np.float64)
    tested = ~np.isnan(p)
    values = p[tested]
    if ((values < 0.0) | (values > 1.0)).any():
        raise ValueError(f"p-values must lie in [0, 1], got {values.min():g} to {values.max():g}")
    q = np.full(p.shape, np.nan)
    if values.size:
        q[tested] = false_discovery_control(values)
    return q


def intersection_union(p_values: npt.ArrayLike) -> float:
    """P-value that *every* alternative holds: the largest of the p-values (Berger 1982).

    The test has level α whenever at least one of the nulls is true, whatever the dependence. NaN without tests.
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    return float(np.max(p_values)) if p_values.size else np.nan


def partial_conjunction(p_values: npt.ArrayLike, at_least: int) -> float:
    """P-value that at least ``at_least`` of the n alternatives hold (Benjamini & Heller 2008, with Bonferroni).

    p = (n − u + 1) p_(u), p_(u) being the u-th smallest of the n: valid whatever the dependence. At most 1, also where
    u is not in 1 … n; NaN without tests.
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    n = p_values.size
    if not n:
        return np.nan
    if not 1 <= at_least <= n:
        return 1.0
    return min(1.0, (n - at_least + 1) * float(np.sort(p_values)[at_least - 1]))
