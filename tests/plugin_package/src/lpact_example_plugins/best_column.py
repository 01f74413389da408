"""An alignment measure: the single feature column that fits a unit best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lpact.analyses.lpact.levels.measure import Brain, Measure


class BestColumn(Measure):
    """max_j |corr(z_j, u)| at the reference lag; columns that do not vary are left aside."""

    name = "best_column"
    summary = "largest absolute correlation of a unit with any one feature column"

    def to_units(self, features: NDArray[np.float64], brain: Brain) -> NDArray[np.float64]:
        """Return the best absolute correlation for every unit, [n_units]."""
        z, u = _standardised(features), _standardised(brain.reference)
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
