"""Correlation with the leading principal component."""

from __future__ import annotations

from lpact.analyses.lpact.levels.measure import Brain, Measure
from lpact.math.similarity import pearson_between_units, pearson_to_units
from lpact.math.types import FloatArray


class Pearson(Measure):
    """Absolute correlation of every unit with the leading component of the features (of one column: |r|)."""

    name = "pearson"
    summary = "absolute correlation with the leading principal component"

    def to_units(self, features: FloatArray, brain: Brain) -> FloatArray:
        """Correlate the leading component with every unit."""
        return pearson_to_units(features, brain.reference)

    def between_units(self, brain: Brain) -> FloatArray:
        """The same between units, all at once."""
        return pearson_between_units(brain.reference)
