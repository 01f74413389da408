"""The six built-in mechanisms, from the values that a dataset brings along."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from lpact.features.availability import Missing
from lpact.features.mechanisms import MECHANISMS, Mechanism, MechanismInputs
from lpact.math.types import FloatArray
from lpact.reasons import Reason


class OfferedMechanism(Mechanism):
    """A mechanism whose values come with the stimulus; ``needs`` names what they are made from."""

    needs: ClassVar[str]

    def compute(self, inputs: MechanismInputs) -> FloatArray | Missing:
        """Return the dataset's own values, [n_words]."""
        stimulus = inputs.stimulus
        if self.name not in stimulus.mechanisms:
            return Missing(
                Reason.MECHANISM_NOT_OFFERED,
                f"stimulus '{stimulus.id}' ({stimulus.where}) has no values of '{self.name}'; "
                f"needed: one value a word, from {self.needs}",
            )
        return np.asarray(stimulus.mechanisms[self.name], dtype=np.float64)


@MECHANISMS.register
class Surprisal(OfferedMechanism):
    """−log p(word | preceding words)."""

    name = "surprisal"
    summary = "how unexpected the word is: its negative log probability given the words before"
    needs = "a language model's word probabilities"


@MECHANISMS.register
class SemanticTransition(OfferedMechanism):
    """1 − cos(v_i, v_{i−1}) of word or context vectors v."""

    name = "semantic_transition"
    summary = "how far meaning moves from the words before to this word"
    needs = "semantic vectors of the words"


@MECHANISMS.register
class DependencyIntegration(OfferedMechanism):
    """Number or summed length of the dependencies that the word completes."""

    name = "dependency_integration"
    summary = "cost of linking the word to earlier words that it depends on or that depend on it"
    needs = "dependency parses"


@MECHANISMS.register
class SyntacticBoundary(OfferedMechanism):
    """Number of constituents that close at the word."""

    name = "syntactic_boundary"
    summary = "how many constituents the word closes"
    needs = "constituency parses"


@MECHANISMS.register
class DiscourseBoundary(OfferedMechanism):
    """Strength of the break in the story at the word."""

    name = "discourse_boundary"
    summary = "whether, or how strongly, a new discourse segment begins at the word"
    needs = "a segmentation of the story into events or paragraphs"


@MECHANISMS.register
class ContextUpdate(OfferedMechanism):
    """Distance between a model's context states before and after the word."""

    name = "context_update"
    summary = "how much the word changes the representation of the context"
    needs = "a language model's hidden states"
