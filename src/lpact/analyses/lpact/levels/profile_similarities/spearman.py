"""Spearman similarity of patterns."""

from __future__ import annotations

from lpact.analyses.lpact.levels.measure import ProfileSimilarity
from lpact.math.profiles import profile_similarity, profile_similarity_pairs
from lpact.math.types import FloatArray


class SpearmanProfile(ProfileSimilarity):
    """Spearman correlation: blind to any monotone change of a pattern."""

    name = "spearman"
    summary = "rank correlation of patterns"

    def compare(self, brain: FloatArray, patterns: FloatArray) -> FloatArray:
        """Compare every brain pattern with every model pattern."""
        return profile_similarity(brain, patterns, "spearman")

    def compare_pairs(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Compare two sets of patterns, unit by unit."""
        return profile_similarity_pairs(a, b, "spearman")
