"""Centred kernel alignment with Gaussian kernels."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from lpact.analyses.lpact.levels.measure import Brain, Measure
from lpact.math.similarity import cka_rbf_between_units, cka_rbf_to_units
from lpact.math.types import FloatArray
from lpact.registry import PluginOptions


class RBFOptions(PluginOptions):
    """Options of `cka_rbf` and `cka_rbf_debiased`."""

    median_fraction: float = Field(
        1.0,
        gt=0.0,
        description="Bandwidth σ of each kernel, in median distances between its events.",
    )


class RBFCKA(Measure):
    """Centred kernel alignment at the reference lag, with kernels exp(−d² / 2σ²) of distances d between events.

    Every unit and every representation has its own σ. Where more than half of the pairs of events coincide there is
    none, and no value. Every call costs as many exponentials as there are pairs of events, for every unit.

    Reference: Kornblith et al. (2019), ICML.
    """

    name = "cka_rbf"
    summary = "centred kernel alignment with Gaussian kernels"
    Options: ClassVar[type[PluginOptions]] = RBFOptions
    options: RBFOptions
    debiased: ClassVar[bool] = False

    def to_units(self, features: FloatArray, brain: Brain) -> FloatArray:
        """Align the features' kernel with every unit's."""
        return cka_rbf_to_units(
            features,
            brain.reference,
            median_fraction=self.options.median_fraction,
            debiased=self.debiased,
        )

    def between_units(self, brain: Brain) -> FloatArray:
        """Align the units' kernels."""
        return cka_rbf_between_units(
            brain.reference, median_fraction=self.options.median_fraction, debiased=self.debiased
        )
