"""How unexpected a word is (Hale 2001; Levy 2008)."""

from __future__ import annotations

from lpact.features.availability import Missing
from lpact.features.mechanism.base import ComputedMechanism
from lpact.features.mechanisms import MechanismInputs
from lpact.math.types import FloatArray


class Surprisal(ComputedMechanism):
    """−log2 p(word | words before), in bits (Hale 2001; Levy 2008)."""

    name = "surprisal"
    summary = "how unexpected the word is: its negative log probability given the words before"
    reads_parse = False
    needs = "a language model's word probabilities"

    def from_inputs(self, inputs: MechanismInputs) -> FloatArray | Missing:
        """Return the language model's surprisal, in bits."""
        if isinstance(inputs.language, Missing):
            return inputs.language
        return inputs.language.surprisal()
