"""Pearson similarity of patterns."""

from __future__ import annotations

from lpact.levels.measure import PROFILES, ProfileSimilarity, profile_similarity
from lpact.math.types import FloatArray


@PROFILES.register
class PearsonProfile(ProfileSimilarity):
    """Pearson correlation: blind to a pattern's mean and scale."""

    name = "pearson"
    summary = "correlation of patterns"

    def compare(self, brain: FloatArray, patterns: FloatArray) -> FloatArray:
        """Compare every brain pattern with every model pattern."""
        return profile_similarity(brain, patterns, "pearson")
