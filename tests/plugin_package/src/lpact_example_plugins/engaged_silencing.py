"""A stripping method: the features say nothing where the mechanism is engaged."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from lpact.analyses.lpact.levels.stripping_methods import (
    DegenerateStrip,
    StripInputs,
    StrippingMethod,
)
from lpact.registry import PluginOptions


class EngagedSilencingOptions(PluginOptions):
    """Options of `engaged_silencing`."""

    engaged_share: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        0.5, description="Share of training events, highest in the mechanism, that are silenced."
    )


class EngagedSilencing(StrippingMethod):
    """z ← training mean of z where m ≥ its training quantile 1 − ``engaged_share``."""

    name = "engaged_silencing"
    summary = "features at their training mean where the mechanism is engaged"
    Options: ClassVar[type[PluginOptions]] = EngagedSilencingOptions
    options: EngagedSilencingOptions

    def strip(
        self, inputs: StripInputs, mechanism: NDArray[np.float64], train: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the features with engaged events silenced."""
        engaged = mechanism >= np.quantile(mechanism[train], 1.0 - self.options.engaged_share)
        if engaged[train].all():
            raise DegenerateStrip("the mechanism does not vary on the training rows")
        centre = inputs.features[train].mean(axis=0)
        return np.where(engaged[:, None], centre, inputs.features)
