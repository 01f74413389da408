"""Features extracted again from the same model, with its context or weights taken away."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from lpact.codes import Reason
from lpact.controls.base import ControlInputs, SevereControl
from lpact.features.availability import Missing
from lpact.features.models import REVERSED, SENTENCE_RESET, SHUFFLED, STATIC, UNTRAINED
from lpact.math.types import FloatArray


class FreshFeatures(SevereControl):
    """Features of the same layer in another context, as dataset or model offer them."""

    context: ClassVar[str]

    def contexts(self) -> tuple[str, ...]:
        """Return its one context."""
        return (self.context,)

    def source_layer(self, inputs: ControlInputs) -> int:
        """Return the layer that the features are taken from."""
        return inputs.layer

    def unavailable(self, inputs: ControlInputs) -> Missing | None:
        """Return CONTEXT_NOT_OFFERED unless there is at least one draw."""
        if self._offered(inputs) > 0:
            return None
        return Missing(
            Reason.CONTEXT_NOT_OFFERED,
            f"no features of layer {self.source_layer(inputs)} in context '{self.context}'",
        )

    def n_draws(self, inputs: ControlInputs, configured: int) -> int:
        """Return one, or for a random control the draws on offer, at most as many as configured."""
        return min(configured, self._offered(inputs)) if self.random else 1

    def draw(self, inputs: ControlInputs, rng: np.random.Generator, draw: int) -> FloatArray:  # noqa: ARG002
        """Return the features of one draw on offer."""
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
    """Features of the same layer of the same architecture with random weights, one seed a draw."""

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
