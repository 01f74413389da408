"""Methods that replace features: by those of a poorer context at engaged events, or of the previous layer."""

from __future__ import annotations

from typing import Annotated, ClassVar, cast

import numpy as np
from pydantic import Field

from lpact.analyses.lpact.levels.stripping_methods import DegenerateStrip, StripInputs, StrippingMethod
from lpact.codes import Reason
from lpact.features.mechanisms import Missing
from lpact.features.models import FULL, REVERSED, SENTENCE_RESET
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.registry import PluginOptions


def _missing(inputs: StripInputs, layer: int, context: str, reason: Reason) -> Missing | None:
    """Missing unless the model offers a layer and context in the width of the real features."""
    if (layer, context) not in inputs.offered:
        return Missing(reason, f"layer {layer} is not offered in context '{context}'")
    width, own = inputs.load(layer, context, 0).shape[1], inputs.features.shape[1]
    if width != own:
        return Missing(reason, f"layer {layer}, context '{context}': {width} columns, not {own}")
    return None


class SwapOptions(PluginOptions):
    """Options of `context_reset` and `reversed_context`."""

    engaged_share: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        1.0 / 3.0,
        description="Share of training events, highest in the mechanism, that count as engaged.",
    )


class ContextSwap(StrippingMethod):
    """At engaged events (mechanism in its top training tercile), the features of another context."""

    context: ClassVar[str]
    Options = SwapOptions

    def contexts(self) -> tuple[str, ...]:
        """Return its one context."""
        return (self.context,)

    def unavailable(self, inputs: StripInputs) -> Missing | None:
        """Missing unless the model offers this context in the same width."""
        return _missing(inputs, inputs.layer, self.context, Reason.CONTEXT_NOT_OFFERED)

    def strip(self, inputs: StripInputs, mechanism: FloatArray, train: IntArray) -> FloatArray:
        """Swap the engaged events."""
        return self._swap(inputs, self._engaged(mechanism, train))

    def strip_instead(
        self, inputs: StripInputs, scalar: FloatArray, mechanism: FloatArray, train: IntArray
    ) -> FloatArray:
        """Swap as many events, those highest in ``scalar``."""
        share = self._engaged(mechanism, train)[train].mean()
        return self._swap(inputs, scalar > np.quantile(scalar[train], 1.0 - share))

    def _engaged(self, mechanism: FloatArray, train: IntArray) -> BoolArray:
        share = cast(SwapOptions, self.options).engaged_share
        threshold = np.quantile(mechanism[train], 1.0 - share)
        engaged: BoolArray = mechanism > threshold
        if not engaged[train].any():
            # A scalar with few values (a boundary flag) can have its quantile at its maximum.
            engaged = mechanism >= threshold
        if engaged[train].all():
            raise DegenerateStrip("the mechanism does not vary on the training rows")
        return engaged

    def _swap(self, inputs: StripInputs, engaged: BoolArray) -> FloatArray:
        other = inputs.load(inputs.layer, self.context, 0)
        return np.where(engaged[:, None], other, inputs.features)


class ContextReset(ContextSwap):
    """At engaged events, the sentence-reset features."""

    name = "context_reset"
    summary = "sentence-reset features at events where the mechanism is engaged"
    context = SENTENCE_RESET


class ReversedContext(ContextSwap):
    """At engaged events, the reversed-context features."""

    name = "reversed_context"
    summary = "reversed-context features at events where the mechanism is engaged"
    context = REVERSED


class LayerAblation(StrippingMethod):
    """The previous layer's features take the layer's place; layer 0 falls to its training mean.

    The result is the same for every mechanism, so this method can show a generic loss, never a specific one.
    """

    name = "layer_ablation"
    summary = "the previous layer's features in the layer's place"
    uses_mechanism = False

    def unavailable(self, inputs: StripInputs) -> Missing | None:
        """Missing without features of the same width in the previous layer."""
        if inputs.layer == 0:
            return None
        return _missing(inputs, inputs.layer - 1, FULL, Reason.NO_PREVIOUS_LAYER_FEATURES)

    def fitted(self, inputs: StripInputs) -> bool:
        """Only layer 0 needs a mean; the previous layer is taken as it is."""
        return inputs.layer == 0

    def strip(self, inputs: StripInputs, mechanism: FloatArray, train: IntArray) -> FloatArray:  # noqa: ARG002
        """Take the previous layer."""
        if inputs.layer == 0:
            return np.broadcast_to(inputs.features[train].mean(axis=0), inputs.features.shape).copy()
        return inputs.load(inputs.layer - 1, FULL, 0)
