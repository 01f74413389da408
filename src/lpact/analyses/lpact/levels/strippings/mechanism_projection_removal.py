"""The direction of the mechanism is projected out of feature space."""

from __future__ import annotations

import numpy as np

from lpact.analyses.lpact.levels.strip import (
    DegenerateStrip,
    StripInputs,
    StrippingMethod,
    without_rounding,
)
from lpact.math.types import FloatArray, IntArray


class MechanismProjectionRemoval(StrippingMethod):
    """d = Zᶜᵀmᶜ / ‖Zᶜᵀmᶜ‖ on training rows; Z ← Z − (Zᶜ d) dᵀ."""

    name = "mechanism_projection_removal"
    summary = "the mechanism's direction projected out of feature space"
    linear = True

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

    def map_from_products(
        self,
        gram: FloatArray,  # noqa: ARG002
        cross: FloatArray,
        power: FloatArray,  # noqa: ARG002
    ) -> FloatArray:
        """[I − d dᵀ; 0]."""
        norm = np.sqrt(np.einsum("sp,sp->s", cross, cross))
        if not (np.isfinite(norm) & (norm > 0)).all():
            raise DegenerateStrip("a direction has no norm")
        direction = cross / norm[:, None]
        n_sets, p = cross.shape
        made = np.zeros((n_sets, p + 1, p))
        made[:, :p] = np.eye(p) - direction[:, :, None] * direction[:, None]
        return made
