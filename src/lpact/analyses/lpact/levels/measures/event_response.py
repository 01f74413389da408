"""Correlation of response magnitudes over events."""

from __future__ import annotations

from lpact.analyses.lpact.levels.measure import Brain, Measure
from lpact.math.similarity import event_response_between_units, event_response_to_units
from lpact.math.types import FloatArray


class EventResponse(Measure):
    """Correlation, over events, of how strongly both sides respond, whatever the direction."""

    name = "event_response"
    summary = "correlation of event-wise response magnitudes"

    def to_units(self, features: FloatArray, brain: Brain) -> FloatArray:
        """Correlate the features' magnitude with every unit's."""
        return event_response_to_units(features, brain.reference)

    def between_units(self, brain: Brain) -> FloatArray:
        """The same between units, all at once."""
        return event_response_between_units(brain.reference)
