"""How much a word changes a model's state (Rabovsky et al. 2018) or its prediction (Hale 2006; Frank 2013)."""

from __future__ import annotations

from typing import Annotated, Literal, cast

import numpy as np
from pydantic import Field

from lpact.codes import Reason
from lpact.features.availability import Missing
from lpact.features.mechanism.base import ComputedMechanism, begins, row_correlations, states_of
from lpact.features.mechanisms import MechanismInputs, WordValues
from lpact.math.types import BoolArray, FloatArray
from lpact.registry import PluginOptions


class UpdateOptions(PluginOptions):
    """Options of `context_update`."""

    of: Literal["state", "prediction"] = Field(
        "state",
        description="What the word changes: `state` (hidden state of the model) or `prediction` "
        "(entropy of the next token).",
    )
    layer: Annotated[int, Field(ge=0)] | None = Field(
        None, description="Layer whose states are compared under `state`; none: the last layer."
    )


class ContextUpdate(ComputedMechanism):
    """Change of a language model's state or prediction from the word before to this word.

    `state`: 1 − r(h_i, h_{i−1}), r over dimensions of the hidden state (after Rabovsky et al. 2018); 1 for the
    first word of a story. `prediction`: max(0, H_{i−1} − H_i) in bits, H the entropy of the next token after a
    word (Hale 2006; Frank 2013); 0 for the first word of a story.
    """

    name = "context_update"
    summary = "how much the word changes the representation of the context"
    reads_parse = False
    needs = "a language model's hidden states or entropy"
    Options = UpdateOptions

    def from_inputs(self, inputs: MechanismInputs) -> FloatArray | Missing:
        """Compare each word's state or entropy with that of the word before."""
        options = cast(UpdateOptions, self.options)
        if isinstance(inputs.language, Missing):
            return inputs.language
        story_begins = begins(inputs.stimulus, "story_id")
        if options.of == "prediction":
            entropy = inputs.language.entropy()
            return entropy if isinstance(entropy, Missing) else reductions(entropy, story_begins)
        states = _last_or(inputs.language, options.layer)
        return states if isinstance(states, Missing) else changes(states, story_begins)


def changes(states: FloatArray, story_begins: BoolArray) -> FloatArray:
    """Return 1 − r of each row of [n, width] with the row before it, 1 where a story begins, [n]."""
    values = np.ones(states.shape[0])
    values[1:] = 1.0 - row_correlations(states[1:], states[:-1])
    values[story_begins] = 1.0
    return values


def reductions(entropy: FloatArray, story_begins: BoolArray) -> FloatArray:
    """Return max(0, H_{i−1} − H_i) of [n] entropies, 0 where a story begins, [n]."""
    values = np.zeros(entropy.shape[0])
    values[1:] = np.maximum(entropy[:-1] - entropy[1:], 0.0)
    values[story_begins] = 0.0
    return values


def _last_or(language: WordValues, layer: int | None) -> FloatArray | Missing:
    if layer is None and not language.layers:
        return Missing(Reason.MECHANISM_NOT_OFFERED, f"{language.where} has no hidden states")
    return states_of(language, max(language.layers) if layer is None else layer)
