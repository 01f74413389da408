"""Spearman similarity of patterns."""

from __future__ import annotations

from lpact.levels.measure import PROFILES, ProfileSimilarity, profile_similarity
from lpact.math.types import FloatArray


@PROFILES.register
class SpearmanProfile(ProfileSimilarity):
    """Spearman correlation: blind to any monotone change of a pattern."""

    name = "spearman"
    summary = "rank correlation of patterns"

    def compare(self, brain: FloatArray, patterns: FloatArray) -> FloatArray:
        """Compare every brain pattern with every model pattern."""
        return profile_similarity(brain, patterns, "spearman")
