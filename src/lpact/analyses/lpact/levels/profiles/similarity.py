"""Profile similarities: the protocol, the three built-in ones, and their registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import cast

import numpy as np

from lpact.math.profiles import ProfileKind, profile_similarity, profile_similarity_pairs
from lpact.math.types import FloatArray
from lpact.registry import Plugin, Registry


class ProfileSimilarity(Plugin, ABC):
    """A registered similarity ρ between a brain unit's pattern and a model's pattern."""

    @abstractmethod
    def compare(self, brain: FloatArray, patterns: FloatArray) -> FloatArray:
        """Similarity of ``brain`` [N, N] row i with every pattern [..., N], both without entry i: [..., N]."""

    def compare_pairs(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Similarity of the units' patterns in ``a`` and ``b``, both [N, N], unit by unit: [N]."""
        return np.array([self.compare(a, pattern)[i] for i, pattern in enumerate(b)])


class _OfRows(ProfileSimilarity):
    """A similarity of `lpact.math.profiles`, by name."""

    def compare(self, brain: FloatArray, patterns: FloatArray) -> FloatArray:
        """Compare every brain pattern with every model pattern."""
        return profile_similarity(brain, patterns, cast(ProfileKind, self.name))

    def compare_pairs(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Compare two sets of patterns, unit by unit."""
        return profile_similarity_pairs(a, b, cast(ProfileKind, self.name))


class Cosine(_OfRows):
    """Cosine: blind to a pattern's scale; a shared positive mean counts as similarity."""

    name = "cosine"
    summary = "cosine of patterns"


class Pearson(_OfRows):
    """Pearson correlation: blind to a pattern's mean and scale."""

    name = "pearson"
    summary = "correlation of patterns"


class Spearman(_OfRows):
    """Spearman correlation: blind to any monotone change of a pattern."""

    name = "spearman"
    summary = "rank correlation of patterns"


PROFILES: Registry[ProfileSimilarity] = Registry(
    "profile",
    "lpact.analyses.lpact.levels.profiles.similarity:ProfileSimilarity",
    package="lpact.analyses.lpact.levels.profiles",
)
