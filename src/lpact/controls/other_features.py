"""Other features of the same model: in another context, with other weights, or of another layer."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from lpact.codes import Reason
from lpact.controls.base import ControlInputs, SevereControl
from lpact.features.mechanisms import Missing
from lpact.features.models import FULL, REVERSED, SENTENCE_RESET, SHUFFLED, STATIC, UNTRAINED
from lpact.math.surrogates import derangement_target
from lpact.math.types import FloatArray


class FreshFeatures(SevereControl):
    """Features of the same layer in another context, from the dataset or the model."""

    context: ClassVar[str]

    def contexts(self) -> tuple[str, ...]:
        """Return its one context."""
        return (self.context,)

    def source_layer(self, inputs: ControlInputs) -> int:
        """Return the layer that the features are taken from."""
        return inputs.layer

    def unavailable(self, inputs: ControlInputs) -> Missing | None:
        """Return CONTEXT_NOT_OFFERED without any draw."""
        if self._offered(inputs) > 0:
            return None
        return Missing(
            Reason.CONTEXT_NOT_OFFERED, f"no features of layer {self.source_layer(inputs)} in context '{self.context}'"
        )

    def n_draws(self, inputs: ControlInputs, configured: int) -> int:
        """Return one, or for a random control the available draws, at most as many as configured."""
        return min(configured, self._offered(inputs)) if self.random else 1

    def draw(self, inputs: ControlInputs, rng: np.random.Generator, draw: int) -> FloatArray:  # noqa: ARG002
        """Return the features of one available draw."""
        return inputs.load(self.source_layer(inputs), self.context, draw)

    def _offered(self, inputs: ControlInputs) -> int:
        return inputs.offered.get((self.source_layer(inputs), self.context), 0)


class SentenceResetFresh(FreshFeatures):
    """Features of the same layer, each word read with its own sentence so far and nothing before."""

    name = "sentence_reset_fresh"
    summary = "features extracted again with the context cut at the sentence start"
    random = False
    needs = f"features in context '{SENTENCE_RESET}'"
    context = SENTENCE_RESET


class ReversedContextFresh(FreshFeatures):
    """Features of the same layer, each word read last after its preceding words in reverse order."""

    name = "reversed_context_fresh"
    summary = "features extracted again with the preceding words in reverse order"
    random = False
    needs = f"features in context '{REVERSED}'"
    context = REVERSED


class TokenOrderShuffleFresh(FreshFeatures):
    """Features of the same layer, extracted again from shuffled tokens."""

    name = "token_order_shuffle_fresh"
    summary = "features extracted again from shuffled tokens"
    counted = False
    needs = f"features in context '{SHUFFLED}', one or more draws"
    context = SHUFFLED


class UntrainedModelFresh(FreshFeatures):
    """Features of the same layer of the same architecture with random weights, one seed per draw."""

    name = "untrained_model_fresh"
    summary = "same architecture, random weights"
    counted = False
    needs = f"features in context '{UNTRAINED}', one or more draws"
    context = UNTRAINED


class StaticEmbedding(FreshFeatures):
    """Non-contextual vectors: the model's own input embedding of each word.

    Those offered for the real features' layer; where none are, those of layer 0.
    """

    name = "static_embedding"
    summary = "non-contextual vectors: the model's own input embedding"
    random = False
    counted = False
    needs = f"features in context '{STATIC}', of this layer or of layer 0"
    context = STATIC

    def source_layer(self, inputs: ControlInputs) -> int:
        """Return this layer if it offers static vectors, else layer 0."""
        return inputs.layer if inputs.offered.get((inputs.layer, STATIC), 0) > 0 else 0


class LayerLabelPermutation(SevereControl):
    """Features of the layer that a random derangement of all layers puts in this one's place.

    The derangement includes every layer that the model offers in full context, whether or not the study makes claims
    about it. Every other layer is equally likely; if there are no more other layers than draws, each is used once.
    """

    name = "layer_label_permutation"
    summary = "features of another layer of the same model, by random derangement of the layers"
    needs = "another layer of the same model"

    def unavailable(self, inputs: ControlInputs) -> Missing | None:
        """Return NO_OTHER_LAYER if the model offers no second layer."""
        if len(_layers(inputs)) >= 2:
            return None
        return Missing(Reason.NO_OTHER_LAYER, f"layer {inputs.layer} is the only one in context '{FULL}'")

    def n_draws(self, inputs: ControlInputs, configured: int) -> int:
        """As configured, or one for every other layer if that is fewer."""
        return min(configured, len(_layers(inputs)) - 1)

    def draw(self, inputs: ControlInputs, rng: np.random.Generator, draw: int) -> FloatArray:
        """Return the features of a random other layer, or of the next one if all are used."""
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
