"""The cost of linking a word to earlier words (Gibson 2000; Temperley 2007)."""

from __future__ import annotations

import numpy as np

from lpact.features.availability import Missing
from lpact.features.mechanism.base import ComputedMechanism
from lpact.features.mechanisms import MechanismInputs
from lpact.math.dependencies import integration_cost
from lpact.math.types import FloatArray

NOT_COUNTED = ("punct", "root")


class DependencyIntegration(ComputedMechanism):
    """Σ |i − h_i| over dependencies whose later end is the word (Gibson 2000; Temperley 2007).

    i is a word, h_i its head; distances are in words. `punct` and `root` are not counted.
    """

    name = "dependency_integration"
    summary = "cost of linking the word to earlier words that it depends on or that depend on it"
    reads_language = False
    needs = "a dependency parse"

    def from_inputs(self, inputs: MechanismInputs) -> FloatArray | Missing:
        """Sum the lengths of the dependencies that end at each word."""
        parse = inputs.parse
        if isinstance(parse, Missing):
            return parse
        counted = [label.partition(":")[0] not in NOT_COUNTED for label in parse.relation]
        return integration_cost(parse.head, np.array(counted, dtype=np.bool_))
