"""Another layer's features under this layer's label."""

from __future__ import annotations

import numpy as np

from lpact.codes import Reason
from lpact.controls.base import ControlInputs, SevereControl
from lpact.features.availability import Missing
from lpact.features.models import FULL
from lpact.math.surrogates import derangement_target
from lpact.math.types import FloatArray


class LayerLabelPermutation(SevereControl):
    """Features of the layer that a random derangement of all layers puts in this one's place.

    The derangement runs over every layer that the model offers in full context, whether or not the
    study makes claims about it, so that neighbouring layers weigh like any other. It puts every other
    layer here equally often, so where there are no more other layers than draws, each is taken once.
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

    def n_draws(self, inputs: ControlInputs, configured: int) -> int:
        """As configured, or one for every other layer where that is fewer."""
        return min(configured, len(_layers(inputs)) - 1)

    def draw(self, inputs: ControlInputs, rng: np.random.Generator, draw: int) -> FloatArray:
        """Return the features of the layer drawn, or of the next other layer where all are taken."""
        layers = _layers(inputs)
        own = layers.index(inputs.layer)
        if len(layers) - 1 <= inputs.draws:
            target = [i for i in range(len(layers)) if i != own][draw]
        else:
            target = derangement_target(len(layers), own, rng)
        return inputs.load(layers[target], FULL, 0)


def _layers(inputs: ControlInputs) -> list[int]:
    """Return all layers in full context, this one included, in ascending order."""
    offered = {layer for (layer, context), n in inputs.offered.items() if context == FULL and n > 0}
    return sorted(offered | {inputs.layer})
