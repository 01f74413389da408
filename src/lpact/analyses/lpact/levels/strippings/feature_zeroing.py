"""Columns that carry the mechanism are silenced."""

from __future__ import annotations

from typing import Annotated, cast

import numpy as np
from pydantic import Field

from lpact.analyses.lpact.levels.strip import (
    DegenerateStrip,
    StripInputs,
    StrippingMethod,
)
from lpact.math.types import FloatArray, IntArray
from lpact.registry import PluginOptions


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
        correlation = np.divide(
            np.abs(centred.T @ m), norms, out=np.zeros_like(norms), where=norms > 0
        )
        silenced = np.argsort(-correlation, kind="stable")[: self._n_silenced(z.shape[1])]
        out = inputs.features.copy()
        out[:, silenced] = centre[silenced]
        return out

    def map_from_products(
        self, gram: FloatArray, cross: FloatArray, power: FloatArray
    ) -> FloatArray:
        """[I; 0], with the silenced columns zero."""
        if not (power > 0).all():
            raise DegenerateStrip("mechanism or features do not vary on the training rows")
        n_sets, p = cross.shape
        correlation = np.abs(cross) / np.sqrt(gram.diagonal(axis1=1, axis2=2))
        silenced = np.argsort(-correlation, axis=1, kind="stable")[:, : self._n_silenced(p)]
        kept = np.ones((n_sets, p))
        np.put_along_axis(kept, silenced, 0.0, axis=1)
        made = np.zeros((n_sets, p + 1, p))
        made[:, :p] = np.eye(p) * kept[:, None]
        return made

    def _n_silenced(self, n_columns: int) -> int:
        return max(1, round(cast(ZeroingOptions, self.options).fraction * n_columns))
