"""Measures that reduce the source to one value per stimulus."""

from __future__ import annotations

from lpact.math.similarity import (
    event_response_between_units,
    event_response_to_units,
    pearson_between_units,
    pearson_to_units,
)
from lpact.math.types import FloatArray
from lpact.measures.base import Measure
from lpact.splits import Split


class Pearson(Measure):
    """Absolute correlation of every unit with the leading component of X's standardised columns (one column: |r|)."""

    name = "pearson"
    summary = "absolute correlation with the leading principal component"
    scope = "unit"
    symmetric = False
    invariances = frozenset({"offset", "scale", "column_scale", "permutation"})

    def values(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """Correlate the leading component with every unit."""
        return pearson_to_units(X, Y)

    def pairwise(
        self, Y: FloatArray, split: Split | None = None, lagged: FloatArray | None = None
    ) -> FloatArray:
        """Absolute correlations of all pairs of units."""
        del split, lagged
        return pearson_between_units(Y)


class EventResponse(Measure):
    """Correlation, over stimuli, of how strongly X and each unit respond, whatever the direction.

    Strength is √(mean over columns of z²), z being standardised columns; of one unit, |z|.
    """

    name = "event_response"
    summary = "correlation of event-wise response magnitudes"
    scope = "unit"
    symmetric = False
    invariances = frozenset({"offset", "scale", "column_scale", "permutation"})

    def values(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """Correlate X's strength with every unit's."""
        return event_response_to_units(X, Y)

    def pairwise(
        self, Y: FloatArray, split: Split | None = None, lagged: FloatArray | None = None
    ) -> FloatArray:
        """Correlate the strengths of all pairs of units."""
        del split, lagged
        return event_response_between_units(Y)
