"""How many phrases close at a word (Nelson et al. 2017; Brennan & Pylkkänen 2017)."""

from __future__ import annotations

import numpy as np

from lpact.features.availability import Missing
from lpact.features.mechanism.base import ComputedMechanism
from lpact.features.mechanisms import MechanismInputs
from lpact.math.dependencies import closing_subtrees
from lpact.math.types import FloatArray


class SyntacticBoundary(ComputedMechanism):
    """Number of phrases that close at the word (Nelson et al. 2017; Brennan & Pylkkänen 2017).

    A phrase is a word with everything below it in the dependency tree, two words or more; it closes at its last word.
    """

    name = "syntactic_boundary"
    summary = "how many constituents the word closes"
    reads_language = False
    needs = "a dependency parse"

    def from_inputs(self, inputs: MechanismInputs) -> FloatArray | Missing:
        """Count the subtrees whose last word is each word."""
        if isinstance(inputs.parse, Missing):
            return inputs.parse
        return closing_subtrees(inputs.parse.head).astype(np.float64)
