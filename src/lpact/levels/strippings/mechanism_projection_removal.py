"""The direction of the mechanism is projected out of feature space."""

from __future__ import annotations

import numpy as np

from lpact.levels.strip import (
    STRIPPINGS,
    DegenerateStrip,
    StripInputs,
    StrippingMethod,
    without_rounding,
)
from lpact.math.types import FloatArray, IntArray


@STRIPPINGS.register
class MechanismProjectionRemoval(StrippingMethod):
    """d = Zᶜᵀmᶜ / ‖Zᶜᵀmᶜ‖ on training rows; Z ← Z − (Zᶜ d) dᵀ."""

    name = "mechanism_projection_removal"
    summary = "the mechanism's direction projected out of feature space"

    def strip(self, inputs: StripInputs, mechanism: FloatArray, train: IntArray) -> FloatArray:
        """Project the direction out; degenerate when its norm is not finite and positive."""
        centre = inputs.features[train].mean(axis=0)
        centred = inputs.features - centre
        direction = centred[train].T @ (mechanism[train] - mechanism[train].mean())
        norm = float(np.linalg.norm(direction))
        if not (np.isfinite(norm) and norm > 0):
            raise DegenerateStrip(f"the direction has norm {norm}")
        direction = direction / norm
        stripped = inputs.features - np.outer(centred @ direction, direction)
        return without_rounding(stripped, inputs.features, train)
