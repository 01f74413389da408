"""Debiased centred kernel alignment."""

from __future__ import annotations

from lpact.analyses.lpact.levels.measure import Brain, Measure
from lpact.math.similarity import cka_between_units, cka_to_units
from lpact.math.types import FloatArray


class DebiasedCKA(Measure):
    """Linear centred kernel alignment at the reference lag, from unbiased estimators of HSIC.

    Unlike `cka`, it does not grow with the number of columns; values below zero are possible.

    References: Kornblith et al. (2019), ICML; Song et al. (2007), ICML.
    """

    name = "cka_debiased"
    summary = "debiased linear centred kernel alignment"

    def to_units(self, features: FloatArray, brain: Brain) -> FloatArray:
        """Align the features' kernel with every unit's."""
        return cka_to_units(features, brain.reference, debiased=True)

    def between_units(self, brain: Brain) -> FloatArray:
        """Align the units' kernels, in closed form."""
        return cka_between_units(brain.reference, debiased=True)
