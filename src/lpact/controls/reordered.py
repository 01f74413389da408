"""Controls that show the real rows in another order."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, final

import numpy as np

from lpact.controls.base import ControlInputs, SevereControl
from lpact.math.types import FloatArray, IntArray


class ReorderedRows(SevereControl):
    """A control whose row a is row ``row_index[a]`` of the real features.

    Only the order is a control's own: where that asks the same of a readout, its inverse is applied to the responses
    instead, and everything computed from the features is kept.

    Attributes
    ----------
    contiguous
        Whether responses in the inverse order still come in contiguous stretches, but for moves within a sentence. A
        held-out block then asks of a readout what it asks of the real features. Shuffles over longer distances mix
        early and late responses in every block, which is easier under drift.
    """

    contiguous: ClassVar[bool] = False

    @abstractmethod
    def row_index(self, inputs: ControlInputs, rng: np.random.Generator) -> IntArray:
        """Return the order of rows, a permutation [n_events]."""

    @final
    def draw(self, inputs: ControlInputs, rng: np.random.Generator, draw: int) -> FloatArray:  # noqa: ARG002
        """Return the real features in the order of `row_index`."""
        return inputs.features[self.row_index(inputs, rng)]
