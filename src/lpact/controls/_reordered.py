"""Controls that show the real rows in another order."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from lpact.controls.base import ControlInputs, SevereControl
from lpact.math.types import FloatArray, IntArray


class ReorderedRows(SevereControl):
    """A control whose row a is row ``row_index[a]`` of the real features.

    The order is offered on its own because a readout may apply its inverse to the responses
    instead, and keep everything that it has computed from the features.
    """

    @abstractmethod
    def row_index(self, inputs: ControlInputs, rng: np.random.Generator) -> IntArray:
        """Return the order of rows, a permutation [n_events]."""

    def draw(self, inputs: ControlInputs, rng: np.random.Generator, draw: int) -> FloatArray:  # noqa: ARG002
        """Return the real features in the order of `row_index`."""
        return inputs.features[self.row_index(inputs, rng)]
