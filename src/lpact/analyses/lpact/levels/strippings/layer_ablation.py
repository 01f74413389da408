"""The layer's own contribution is removed."""

from __future__ import annotations

import numpy as np

from lpact.analyses.lpact.levels.strip import StripInputs, StrippingMethod
from lpact.codes import Reason
from lpact.features.availability import Missing
from lpact.features.models import FULL
from lpact.math.types import FloatArray, IntArray


class LayerAblation(StrippingMethod):
    """The previous layer's features take the layer's place; layer 0 falls to its training mean.

    The result is the same for every mechanism, so this method can show a generic loss, never a specific one.
    """

    name = "layer_ablation"
    summary = "the previous layer's features in the layer's place"
    uses_mechanism = False

    def unavailable(self, inputs: StripInputs) -> Missing | None:
        """Missing without features of the same width in the previous layer."""
        previous = inputs.layer - 1
        if inputs.layer == 0:
            return None
        if (previous, FULL) not in inputs.offered:
            return Missing(
                Reason.NO_PREVIOUS_LAYER_FEATURES,
                f"layer {previous} is not on offer in full context",
            )
        width, own = inputs.load(previous, FULL, 0).shape[1], inputs.features.shape[1]
        if width != own:
            detail = f"layer {previous} has {width} columns, layer {inputs.layer} has {own}"
            return Missing(Reason.NO_PREVIOUS_LAYER_FEATURES, detail)
        return None

    def fitted(self, inputs: StripInputs) -> bool:
        """Only layer 0 needs a mean; the previous layer is taken as it is."""
        return inputs.layer == 0

    def strip(self, inputs: StripInputs, mechanism: FloatArray, train: IntArray) -> FloatArray:  # noqa: ARG002
        """Take the previous layer."""
        if inputs.layer == 0:
            return np.broadcast_to(
                inputs.features[train].mean(axis=0), inputs.features.shape
            ).copy()
        return inputs.load(inputs.layer - 1, FULL, 0)
