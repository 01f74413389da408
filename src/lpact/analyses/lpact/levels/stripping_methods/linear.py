"""Linear methods: the mechanism is regressed or projected out, or the columns that carry it are silenced."""

from __future__ import annotations

from typing import Annotated, cast

import numpy as np
from pydantic import Field

from lpact.analyses.lpact.levels.stripping_methods import (
    DegenerateStrip,
    StripInputs,
    StrippingMethod,
    without_rounding,
)
from lpact.math.types import FloatArray, IntArray
from lpact.registry import PluginOptions


def _identity(n_sets: int, n_columns: int) -> FloatArray:
    """Maps [S, p + 1, p] that leave the features as they are."""
    made = np.zeros((n_sets, n_columns + 1, n_columns))
    made[:, :n_columns] = np.eye(n_columns)
    return made


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
        made = _identity(*cross.shape)
        made[:, -1] = -cross / power[:, None]
        return made


class ZeroingOptions(PluginOptions):
    """Options of `feature_zeroing`."""

    fraction: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        0.1, description="Share of columns that are silenced (at least one)."
    )


class FeatureZeroing(StrippingMethod):
    """The columns most correlated with the mechanism, in absolute value, are set to their training mean."""

    name = "feature_zeroing"
    summary = "columns most correlated with the mechanism set to their training mean"
    Options = ZeroingOptions
    linear = True

    def strip(self, inputs: StripInputs, mechanism: FloatArray, train: IntArray) -> FloatArray:
        """Silence the share ``fraction`` of columns; ties go to the first column."""
        z = inputs.features[train]
        centre = z.mean(axis=0)
        centred, m = z - centre, mechanism[train] - mechanism[train].mean()
        norms = np.sqrt((centred**2).sum(axis=0))
        if not (m**2).sum() > 0 or not norms.any():
            raise DegenerateStrip("mechanism or features do not vary on the training rows")
        correlation = np.divide(np.abs(centred.T @ m), norms, out=np.zeros_like(norms), where=norms > 0)
        silenced = np.argsort(-correlation, kind="stable")[: self._n_silenced(z.shape[1])]
        out = inputs.features.copy()
        out[:, silenced] = centre[silenced]
        return out

    def map_from_products(self, gram: FloatArray, cross: FloatArray, power: FloatArray) -> FloatArray:
        """[I; 0], with the silenced columns zero."""
        if not (power > 0).all():
            raise DegenerateStrip("mechanism or features do not vary on the training rows")
        n_sets, p = cross.shape
        correlation = np.abs(cross) / np.sqrt(gram.diagonal(axis1=1, axis2=2))
        silenced = np.argsort(-correlation, axis=1, kind="stable")[:, : self._n_silenced(p)]
        kept = np.ones((n_sets, p))
        np.put_along_axis(kept, silenced, 0.0, axis=1)
        return _identity(n_sets, p) * kept[:, None]

    def _n_silenced(self, n_columns: int) -> int:
        return max(1, round(cast(ZeroingOptions, self.options).fraction * n_columns))


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
        made = _identity(*cross.shape)
        made[:, :-1] -= direction[:, :, None] * direction[:, None]
        return made
