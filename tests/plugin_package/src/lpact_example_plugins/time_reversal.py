"""A severe control: the real features, played backwards."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from lpact.controls.base import ControlInputs, SevereControl
from lpact.registry import PluginOptions


class TimeReversalOptions(PluginOptions):
    """Options of `time_reversal`."""

    within: Literal["run", "story"] = Field(
        "run", description="Reverse the whole run, or every story in its own place."
    )


class TimeReversal(SevereControl):
    """Row i becomes row n − 1 − i: all autocorrelation is kept, all stimulus locking is lost."""

    name = "time_reversal"
    summary = "features in reverse order of time"
    random = False
    Options: ClassVar[type[PluginOptions]] = TimeReversalOptions
    options: TimeReversalOptions

    def draw(self, inputs: ControlInputs, rng: np.random.Generator, draw: int) -> NDArray[np.float64]:
        """Return the reversed features."""
        if self.options.within == "run":
            return inputs.features[::-1].copy()
        out = inputs.features.copy()
        for story in np.unique(inputs.story):
            rows = np.flatnonzero(inputs.story == story)
            out[rows] = inputs.features[rows[::-1]]
        return out
