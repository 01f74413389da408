"""The real features at the wrong time."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from pydantic import Field

from lpact.codes import Reason
from lpact.controls.base import ControlInputs
from lpact.controls.reordered import ReorderedRows
from lpact.features.availability import Missing
from lpact.math.surrogates import circular_shift_order
from lpact.math.types import IntArray
from lpact.registry import PluginOptions


class CircularShiftOptions(PluginOptions):
    """Options of `circular_shift`."""

    min_autocorrelation_times: float = Field(
        2.0,
        ge=1.0,
        description="Smallest rotation, either way round, in autocorrelation times of the features.",
    )


class CircularShift(ReorderedRows):
    """The whole run rotated by a random number of events.

    x'_i = x_{(i − s) mod n} with s uniform on [s_min, n − s_min], where s_min is
    ``min_autocorrelation_times`` × the lag at which the features' autocorrelation falls below 1/e.
    """

    name = "circular_shift"
    summary = "features rotated in time within the run, by more than their autocorrelation time"
    surrogate = True
    needs = "a run of several autocorrelation times"
    contiguous = True
    Options: ClassVar[type[PluginOptions]] = CircularShiftOptions
    options: CircularShiftOptions

    def unavailable(self, inputs: ControlInputs) -> Missing | None:
        """Return SHIFT_NOT_POSSIBLE if the run is too short to rotate it far enough."""
        n_events, needed = len(inputs.features), 2 * self._min_shift(inputs)
        if n_events >= needed:
            return None
        return Missing(
            Reason.SHIFT_NOT_POSSIBLE,
            f"a rotation by at least {needed // 2} events in either direction needs {needed} events; "
            f"the run has {n_events}",
        )

    def row_index(self, inputs: ControlInputs, rng: np.random.Generator) -> IntArray:
        """Return the rotated order."""
        return circular_shift_order(len(inputs.features), self._min_shift(inputs), rng)

    def _min_shift(self, inputs: ControlInputs) -> int:
        times = self.options.min_autocorrelation_times
        return math.ceil(times * inputs.autocorrelation_time)
