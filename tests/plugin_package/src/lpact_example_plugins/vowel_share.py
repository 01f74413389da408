"""A mechanism that is computed from the words alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lpact.features.mechanisms import Mechanism, MechanismInputs, Missing


class VowelShare(Mechanism):
    """Vowels of the word divided by its characters: what a spelling-bound reader might track."""

    name = "vowel_share"
    summary = "share of vowels among the word's characters"

    def compute(self, inputs: MechanismInputs) -> NDArray[np.float64] | Missing:
        """Return one value per word, [n_words]."""
        words = inputs.stimulus.words["word"].to_list()
        return np.array([sum(c in "aeiou" for c in word) / max(len(word), 1) for word in words])
