"""Cosine similarity of patterns."""

from __future__ import annotations

from lpact.analyses.lpact.levels.measure import ProfileSimilarity
from lpact.math.profiles import profile_similarity, profile_similarity_pairs
from lpact.math.types import FloatArray


class CosineProfile(ProfileSimilarity):
    """Cosine: blind to a pattern's scale; a shared positive mean counts as similarity."""

    name = "cosine"
    summary = "cosine of patterns"

    def compare(self, brain: FloatArray, patterns: FloatArray) -> FloatArray:
        """Compare every brain pattern with every model pattern."""
        return profile_similarity(brain, patterns, "cosine")

    def compare_pairs(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Compare two sets of patterns, unit by unit."""
        return profile_similarity_pairs(a, b, "cosine")
