"""Base of the built-in mechanisms: values of the dataset first, then computed ones, then a reason."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from lpact.codes import Reason
from lpact.datasets.base import Stimulus
from lpact.features.availability import Missing
from lpact.features.mechanisms import Mechanism, MechanismInputs, WordValues
from lpact.grid.words import slices
from lpact.math.types import BoolArray, FloatArray


class ComputedMechanism(Mechanism):
    """The dataset's own values where it offers them, computed ones otherwise.

    ``needs`` names what they are computed from, for messages.
    """

    needs: ClassVar[str]

    def compute(self, inputs: MechanismInputs) -> FloatArray | Missing:
        """Return the dataset's own values or computed ones, [n_words], or what is needed."""
        stimulus = inputs.stimulus
        if self.name in stimulus.mechanisms:
            return np.asarray(stimulus.mechanisms[self.name], dtype=np.float64)
        values = self.from_inputs(inputs)
        if not isinstance(values, Missing):
            return values
        return Missing(
            values.reason,
            f"stimulus '{stimulus.id}' ({stimulus.where}) has no values of '{self.name}'; needed: one "
            f"value a word, or {self.needs}; but: {values.detail}",
        )

    @abstractmethod
    def from_inputs(self, inputs: MechanismInputs) -> FloatArray | Missing:
        """Compute the values, [n_words], or return what is missing."""


def states_of(language: WordValues, layer: int | None) -> FloatArray | Missing:
    """Return the hidden states of a layer (None: static vectors), [n_words, width], in double precision."""
    if layer is not None and layer not in language.layers:
        offered = ", ".join(map(str, language.layers)) or "none"
        return Missing(
            Reason.MECHANISM_NOT_OFFERED,
            f"{language.where} has no layer {layer} (available: {offered})",
        )
    states = language.states(layer)
    return states if isinstance(states, Missing) else np.asarray(states, dtype=np.float64)


def begins(stimulus: Stimulus, column: str) -> BoolArray:
    """Return at which words a new story or sentence begins, [n_words]."""
    starts = np.zeros(stimulus.words.height, dtype=np.bool_)
    starts[slices(stimulus.words, column)[0]] = True
    return starts


def row_correlations(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return Pearson's r over columns of each row of ``a`` with the same row of ``b``, [n].

    Both are [n, width]. A row that is constant over columns has no correlation: 0.
    """
    if 0 in a.shape:
        return np.zeros(a.shape[0])
    r: FloatArray = np.einsum("ij,ij->i", _unit_rows(a), _unit_rows(b))
    return r.clip(-1.0, 1.0)


def _unit_rows(values: FloatArray) -> FloatArray:
    """Return rows centred and scaled to norm 1; rows that do not vary become zeros."""
    # Division by the largest magnitude first keeps squares of very large or small values in range.
    peak = np.abs(values).max(axis=1, keepdims=True)
    centred = values / np.where(peak > 0, peak, 1.0)
    centred -= centred.mean(axis=1, keepdims=True)
    centred[values.min(axis=1) == values.max(axis=1)] = 0.0
    norm = np.linalg.norm(centred, axis=1, keepdims=True)
    unit: FloatArray = centred / np.where(norm > 0, norm, 1.0)
    return unit
