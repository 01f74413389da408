"""Where the mechanism is engaged, features of a poorer context take the place of the real ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, cast

import numpy as np
from pydantic import Field

from lpact.analyses.lpact.levels.strip import (
    DegenerateStrip,
    StripInputs,
    StrippingMethod,
)
from lpact.codes import Reason
from lpact.features.availability import Missing
from lpact.features.models import REVERSED, SENTENCE_RESET
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.registry import PluginOptions


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
        if (inputs.layer, self.context) not in inputs.offered:
            detail = f"context '{self.context}' is not on offer for layer {inputs.layer}"
            return Missing(Reason.CONTEXT_NOT_OFFERED, detail)
        width, own = inputs.load(inputs.layer, self.context, 0).shape[1], inputs.features.shape[1]
        if width != own:
            detail = f"context '{self.context}' has {width} columns, the real features {own}"
            return Missing(Reason.CONTEXT_NOT_OFFERED, detail)
        return None

    def strip(self, inputs: StripInputs, mechanism: FloatArray, train: IntArray) -> FloatArray:
        """Swap the engaged events."""
        return self._swap(inputs, self._engaged(mechanism, train))

    def strip_instead(
        self, inputs: StripInputs, scalar: FloatArray, mechanism: FloatArray, train: IntArray
    ) -> FloatArray:
        """Swap as many events, those highest in ``scalar``."""
        return self._swap(inputs, self._as_many(scalar, mechanism, train))

    def strip_every(
        self,
        inputs: StripInputs,
        mechanism: FloatArray,
        trains: Sequence[IntArray],
        instead: FloatArray | None = None,
    ) -> FloatArray:
        """Swap for several training sets."""
        if instead is None:
            engaged = [self._engaged(mechanism, train) for train in trains]
        else:
            pairs = zip(instead, trains, strict=True)
            engaged = [self._as_many(scalar, mechanism, train) for scalar, train in pairs]
        return self._swap(inputs, np.stack(engaged))

    def _as_many(self, scalar: FloatArray, mechanism: FloatArray, train: IntArray) -> BoolArray:
        """As many training events as are engaged in the mechanism, those highest in ``scalar``."""
        share = self._engaged(mechanism, train)[train].mean()
        engaged: BoolArray = scalar > _quantile(scalar[train], 1.0 - share)
        return engaged

    def _engaged(self, mechanism: FloatArray, train: IntArray) -> BoolArray:
        share = cast(SwapOptions, self.options).engaged_share
        threshold = _quantile(mechanism[train], 1.0 - share)
        engaged: BoolArray = mechanism > threshold
        if not engaged[train].any():
            # A scalar with few values (a boundary flag) can have its quantile at its maximum.
            engaged = mechanism >= threshold
        if engaged[train].all():
            raise DegenerateStrip("the mechanism does not vary on the training rows")
        return engaged

    def _swap(self, inputs: StripInputs, engaged: BoolArray) -> FloatArray:
        other = inputs.load(inputs.layer, self.context, 0)
        return np.where(engaged[..., None], other, inputs.features)


def _quantile(values: FloatArray, q: float) -> float:
    """`numpy.quantile` of one array, by the same arithmetic."""
    place = (len(values) - 1) * q
    below = min(int(place), len(values) - 1)
    above = min(below + 1, len(values) - 1)
    ordered = np.partition(values, (below, above))
    low, high, part = float(ordered[below]), float(ordered[above]), place - below
    return high - (high - low) * (1.0 - part) if part >= 0.5 else low + (high - low) * part


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
