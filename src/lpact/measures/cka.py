"""Centred kernel alignment: linear or Gaussian kernels, as it is or debiased."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from lpact.math.similarity import (
    cka_between_units,
    cka_rbf_between_units,
    cka_rbf_to_units,
    cka_to_units,
    linear_alignment,
    linear_kernel,
    rbf_alignment,
    rbf_kernel,
)
from lpact.math.types import FloatArray
from lpact.measures.base import Measure
from lpact.registry import PluginOptions
from lpact.splits import Split


class CKA(Measure):
    """Linear centred kernel alignment ⟨HKH, HLH⟩ / (‖HKH‖ ‖HLH‖), with K = XXᵀ, L = YYᵀ and H = I − 11ᵀ/n.

    It grows with the number of columns, also where X and Y are independent.

    Reference: Kornblith et al. (2019), ICML.
    """

    name = "cka"
    summary = "linear centred kernel alignment"
    scope = "population"
    symmetric = True
    invariances = frozenset({"offset", "scale", "permutation", "rotation"})
    debiased: ClassVar[bool] = False

    def prepare(self, X: FloatArray) -> Any:
        """The linear kernel of a representation [n, p]."""
        return linear_kernel(X)

    def compare(self, source: Any, target: Any) -> float:
        """Alignment of two linear kernels."""
        return linear_alignment(source, target, debiased=self.debiased)

    def to_units(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """Alignment of X's kernel with every unit's, without a kernel matrix."""
        return cka_to_units(X, Y, debiased=self.debiased)

    def pairwise(
        self, Y: FloatArray, split: Split | None = None, lagged: FloatArray | None = None
    ) -> FloatArray:
        """Alignment of all pairs of units in closed form; not debiased, their squared correlations."""
        del split, lagged
        return cka_between_units(Y, debiased=self.debiased)


class DebiasedCKA(CKA):
    """`CKA` from unbiased estimators of HSIC: about zero where nothing is shared, and possibly below.

    References: Kornblith et al. (2019), ICML; Song et al. (2007), ICML.
    """

    name = "cka_debiased"
    summary = "debiased linear centred kernel alignment"
    debiased: ClassVar[bool] = True
    fewest_stimuli = 4


class RBFOptions(PluginOptions):
    """Options of `cka_rbf` and `cka_rbf_debiased`."""

    median_fraction: float = Field(
        1.0,
        gt=0.0,
        description="Bandwidth σ of each kernel, in median distances between its events.",
    )


class RBFCKA(Measure):
    """Centred kernel alignment with kernels exp(−d² / 2σ²) of distances d between stimuli.

    Every unit and every representation has its own σ. Where more than half of the pairs of stimuli coincide there is
    none, and no value. `to_units` costs as many exponentials as there are pairs of stimuli, for every unit.

    Reference: Kornblith et al. (2019), ICML.
    """

    name = "cka_rbf"
    summary = "centred kernel alignment with Gaussian kernels"
    scope = "population"
    symmetric = True
    invariances = frozenset({"offset", "scale", "permutation", "rotation"})
    Options: ClassVar[type[PluginOptions]] = RBFOptions
    options: RBFOptions
    debiased: ClassVar[bool] = False

    def prepare(self, X: FloatArray) -> Any:
        """The Gaussian kernel of a representation [n, p]; None where it has no bandwidth."""
        return rbf_kernel(X, median_fraction=self.options.median_fraction, debiased=self.debiased)

    def compare(self, source: Any, target: Any) -> float:
        """Alignment of two Gaussian kernels."""
        return np.nan if source is None or target is None else rbf_alignment(source, target)

    def to_units(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """Alignment of X's kernel with every unit's; no unit's kernel is held as a whole."""
        fraction = self.options.median_fraction
        return cka_rbf_to_units(X, Y, median_fraction=fraction, debiased=self.debiased)

    def pairwise(
        self, Y: FloatArray, split: Split | None = None, lagged: FloatArray | None = None
    ) -> FloatArray:
        """Alignment of all pairs of units, by matrix products over tiles of their kernels."""
        del split, lagged
        fraction = self.options.median_fraction
        return cka_rbf_between_units(Y, median_fraction=fraction, debiased=self.debiased)


class DebiasedRBFCKA(RBFCKA):
    """`RBFCKA` from unbiased estimators of HSIC: about zero where nothing is shared, and possibly below.

    References: Kornblith et al. (2019), ICML; Song et al. (2007), ICML.
    """

    name = "cka_rbf_debiased"
    summary = "debiased centred kernel alignment with Gaussian kernels"
    debiased: ClassVar[bool] = True
    fewest_stimuli = 4
