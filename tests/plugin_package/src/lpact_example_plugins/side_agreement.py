"""A profile similarity: do two patterns agree on which units lie above their median?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lpact.analyses.lpact.levels.profiles.similarity import ProfileSimilarity


class SideAgreement(ProfileSimilarity):
    """mean_j s(b_j) s(q_j), where s is the side of the pattern's median (−1, 0 or 1): from −1 to 1."""

    name = "side_agreement"
    summary = "agreement on the units above and below the pattern's median"

    def compare(self, brain: NDArray[np.float64], patterns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the agreement of row i of ``brain`` with every pattern, both without entry i."""
        similarity = np.empty(patterns.shape)
        for i in range(len(brain)):
            own = _sides(np.delete(brain[i], i))
            others = _sides(np.delete(patterns, i, axis=-1))
            similarity[..., i] = (own * others).mean(axis=-1)
        return similarity


def _sides(pattern: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sign(pattern - np.median(pattern, axis=-1, keepdims=True))
