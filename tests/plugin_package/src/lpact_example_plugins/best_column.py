"""An alignment measure: the single feature column that fits a unit best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lpact.measures import Measure


class BestColumn(Measure):
    """max_j |corr(z_j, u)|; columns that do not vary are left out."""

    name = "best_column"
    summary = "largest absolute correlation of a unit with any one feature column"

    scope = "unit"
    symmetric = False

    def values(self, X: NDArray[np.float64], Y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the best absolute correlation for every unit of Y, [n_units]."""
        z, u = _standardised(X), _standardised(Y)
        correlations = np.abs(z.T @ u) / len(u)
        best: NDArray[np.float64] = correlations.max(axis=0)
        return np.where(u.any(axis=0) & z.any(), best, np.nan)


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean 0 and variance 1 in every column; a constant column becomes 0."""
    centred = values - values.mean(axis=0)
    spread = centred.std(axis=0)
    scaled: NDArray[np.float64] = np.zeros_like(centred)
    np.divide(centred, spread, out=scaled, where=spread > 0)
    return scaled
