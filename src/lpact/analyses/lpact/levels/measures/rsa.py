"""Representational similarity analysis."""

from __future__ import annotations

from lpact.analyses.lpact.levels.measure import Brain, Measure
from lpact.math.similarity import rsa_between_units, rsa_to_units
from lpact.math.types import FloatArray


class RSA(Measure):
    """Correlation of representational dissimilarity matrices at the reference lag.

    Reference: Kriegeskorte, Mur & Bandettini (2008), Front. Syst. Neurosci. 2:4.
    """

    name = "rsa"
    summary = "correlation of representational dissimilarity matrices"

    def to_units(self, features: FloatArray, brain: Brain) -> FloatArray:
        """Correlate the features' RDM with every unit's."""
        return rsa_to_units(features, brain.reference)

    def between_units(self, brain: Brain) -> FloatArray:
        """Correlate the units' RDMs, in closed form."""
        return rsa_between_units(brain.reference)
