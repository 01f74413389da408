"""A model source: features that are computed from the words when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lpact.datasets.base import FeatureKey, Stimulus
from lpact.features.models import FULL, ModelSource

LETTERS = "aeiounrst"


class Spelling(ModelSource):
    """Layer 0 counts the letters of the word, layer 1 adds half the counts of the word before."""

    name = "spelling"
    summary = "letter counts of the word (layer 0), and of the word before (layer 1)"

    def offers(self, model: str, stimulus: Stimulus) -> Sequence[FeatureKey]:
        """Return both layers in full context."""
        return [FeatureKey(model, layer, FULL) for layer in (0, 1)]

    def load(self, key: FeatureKey, stimulus: Stimulus) -> NDArray[np.float64]:
        """Return letter counts, [n_words, 9]."""
        words = stimulus.words["word"].to_list()
        counts = np.array([[word.count(letter) for letter in LETTERS] for word in words], float)
        if key.layer == 1:
            counts[1:] += 0.5 * counts[:-1]
        return counts
