"""Centred kernel alignment."""

from __future__ import annotations

from lpact.analyses.lpact.levels.measure import Brain, Measure
from lpact.math.similarity import cka_between_units, cka_to_units
from lpact.math.types import FloatArray


class CKA(Measure):
    """Linear centred kernel alignment ⟨HKH, HLH⟩ / (‖HKH‖ ‖HLH‖) at the reference lag.

    Reference: Kornblith et al. (2019), ICML.
    """

    name = "cka"
    summary = "linear centred kernel alignment"

    def to_units(self, features: FloatArray, brain: Brain) -> FloatArray:
        """Align the features' kernel with every unit's."""
        return cka_to_units(features, brain.reference)

    def between_units(self, brain: Brain) -> FloatArray:
        """Align the units' kernels: their squared correlations."""
        return cka_between_units(brain.reference)
