"""The mechanism is regressed out of every column."""

from __future__ import annotations

import numpy as np

from lpact.analyses.lpact.levels.strip import (
    DegenerateStrip,
    StripInputs,
    StrippingMethod,
    without_rounding,
)
from lpact.math.types import FloatArray, IntArray


class FeatureResidualization(StrippingMethod):
    """β_j = cov(z_j, m) / var(m) on training rows; z_j ← z_j − β_j (m − mean m)."""

    name = "feature_residualization"
    summary = "the mechanism regressed out of every column"
    linear = True

    def strip(self, inputs: StripInputs, mechanism: FloatArray, train: IntArray) -> FloatArray:
        """Regress the mechanism out."""
        z = inputs.features[train]
        centre = mechanism[train].mean()
        m = mechanism[train] - centre
        power = float(m @ m)
        if not power > 0:
            raise DegenerateStrip("the mechanism does not vary on the training rows")
        slopes = (z - z.mean(axis=0)).T @ m / power
        stripped = inputs.features - np.outer(mechanism - centre, slopes)
        return without_rounding(stripped, inputs.features, train)

    def map_from_products(
        self,
        gram: FloatArray,  # noqa: ARG002
        cross: FloatArray,
        power: FloatArray,
    ) -> FloatArray:
        """[I; −βᵀ]."""
        if not (power > 0).all():
            raise DegenerateStrip("the mechanism does not vary on the training rows")
        n_sets, p = cross.shape
        made = np.zeros((n_sets, p + 1, p))
        made[:, :p] = np.eye(p)
        made[:, p] = -cross / power[:, None]
        return made
