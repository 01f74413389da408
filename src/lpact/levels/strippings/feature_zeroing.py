"""Columns that carry the mechanism are silenced."""

from __future__ import annotations

from typing import Annotated, cast

import numpy as np
from pydantic import Field

from lpact.levels.strip import STRIPPINGS, DegenerateStrip, StripInputs, StrippingMethod
from lpact.math.types import FloatArray, IntArray
from lpact.registry import PluginOptions


class ZeroingOptions(PluginOptions):
    """Options of `feature_zeroing`."""

    fraction: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        0.1, description="Share of columns that are silenced (at least one)."
    )


@STRIPPINGS.register
class FeatureZeroing(StrippingMethod):
    """The columns most correlated with the mechanism, in absolute value, are set to their training mean."""

    name = "feature_zeroing"
    summary = "columns most correlated with the mechanism set to their training mean"
    Options = ZeroingOptions

    def strip(self, inputs: StripInputs, mechanism: FloatArray, train: IntArray) -> FloatArray:
        """Silence the share ``fraction`` of columns; ties go to the first column."""
        options = cast(ZeroingOptions, self.options)
        z = inputs.features[train]
        centre = z.mean(axis=0)
        centred, m = z - centre, mechanism[train] - mechanism[train].mean()
        norms = np.sqrt((centred**2).sum(axis=0))
        if not (m**2).sum() > 0 or not norms.any():
            raise DegenerateStrip("mechanism or features do not vary on the training rows")
        correlation = np.divide(
            np.abs(centred.T @ m), norms, out=np.zeros_like(norms), where=norms > 0
        )
        n_columns = max(1, round(options.fraction * z.shape[1]))
        silenced = np.argsort(-correlation, kind="stable")[:n_columns]
        out = inputs.features.copy()
        out[:, silenced] = centre[silenced]
        return out
