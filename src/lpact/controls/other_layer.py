"""Another layer's features under this layer's label."""

from __future__ import annotations

import numpy as np

from lpact.controls.base import CONTROLS, ControlInputs, SevereControl
from lpact.features.availability import Missing
from lpact.features.models import FULL
from lpact.math.surrogates import derangement_target
from lpact.math.types import FloatArray
from lpact.reasons import Reason


@CONTROLS.register
class LayerLabelPermutation(SevereControl):
    """Features of the layer that a random derangement of all layers puts in this one's place.

    The derangement runs over every layer that the model offers in full context, whether or not the
    study makes claims about it, so that neighbouring layers weigh like any other.
    """

    name = "layer_label_permutation"
    summary = "features of another layer of the same model, by random derangement of the layers"
    needs = "another layer of the same model"

    def unavailable(self, inputs: ControlInputs) -> Missing | None:
        """Return NO_OTHER_LAYER where the model offers no second layer."""
        if len(_layers(inputs)) >= 2:
            return None
        return Missing(
            Reason.NO_OTHER_LAYER, f"layer {inputs.layer} is the only one in context '{FULL}'"
        )

    def draw(self, inputs: ControlInputs, rng: np.random.Generator, draw: int) -> FloatArray:  # noqa: ARG002
        """Return the features of the layer drawn."""
        layers = _layers(inputs)
        target = derangement_target(len(layers), layers.index(inputs.layer), rng)
        return inputs.load(layers[target], FULL, 0)


def _layers(inputs: ControlInputs) -> list[int]:
    """Return all layers in full context, this one included, in ascending order."""
    offered = {layer for (layer, context), n in inputs.offered.items() if context == FULL and n > 0}
    return sorted(offered | {inputs.layer})
