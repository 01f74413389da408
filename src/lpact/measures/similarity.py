"""Measures without a fit: representational similarity, centred kernel alignment, and correlations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from lpact.math.similarity.cka import (
    LinearKernel,
    cka_between_units,
    cka_rbf_between_units,
    cka_rbf_to_units,
    cka_to_units,
    linear_alignment,
    linear_kernel,
    rbf_alignment,
    rbf_kernel,
)
from lpact.math.similarity.correlation import (
    event_response_between_units,
    event_response_to_units,
    pearson_between_units,
    pearson_to_units,
)
from lpact.math.similarity.rsa import rdm_pattern, rsa_between_units, rsa_to_units
from lpact.math.types import FloatArray
from lpact.measures.base import Measure
from lpact.registry import PluginOptions
from lpact.splits import Split


class Similarity(Measure):
    """A measure with functions of `lpact.math.similarity` for many units at once."""

    _to_units: ClassVar[Callable[..., FloatArray]]
    _between_units: ClassVar[Callable[..., FloatArray]]

    def _function_options(self) -> dict[str, Any]:
        return {}

    def values(self, X: FloatArray, Y: FloatArray) -> FloatArray | float:
        """Values of every unit [t], or of the population."""
        return self.to_units(X, Y) if self.scope == "unit" else super().values(X, Y)

    def to_units(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """Value of X with every unit of Y, without a matrix of stimuli × stimuli for any unit."""
        return type(self)._to_units(X, Y, **self._function_options())

    def pairwise(
        self,
        Y: FloatArray,
        split: Split | None = None,  # noqa: ARG002
        lagged: FloatArray | None = None,  # noqa: ARG002
    ) -> FloatArray:
        """Value of all pairs of units in one call; there is nothing to fit on a split."""
        return type(self)._between_units(Y, **self._function_options())


class Pearson(Similarity):
    """Absolute correlation of every unit with the leading component of X's standardised columns (one column: |r|)."""

    name = "pearson"
    summary = "absolute correlation with the leading principal component"
    scope = "unit"
    symmetric = False
    invariances = frozenset({"offset", "scale", "column_scale", "permutation"})
    _to_units = staticmethod(pearson_to_units)
    _between_units = staticmethod(pearson_between_units)


class EventResponse(Similarity):
    """Correlation, over stimuli, of how strongly X and each unit respond, whatever the direction.

    Strength is √(mean over columns of z²), z being standardised columns; of one unit, |z|.
    """

    name = "event_response"
    summary = "correlation of event-wise response magnitudes"
    scope = "unit"
    symmetric = False
    invariances = frozenset({"offset", "scale", "column_scale", "permutation"})
    _to_units = staticmethod(event_response_to_units)
    _between_units = staticmethod(event_response_between_units)


class RSA(Similarity):
    """Pearson correlation, over pairs of stimuli, of the dissimilarities of X and of Y.

    The dissimilarity is the correlation distance between the rows of two stimuli; with fewer than three columns, where
    rows have no pattern to correlate, it is the squared Euclidean distance.

    Reference: Kriegeskorte, Mur & Bandettini (2008), Front. Syst. Neurosci. 2:4.
    """

    name = "rsa"
    summary = "correlation of representational dissimilarity matrices"
    scope = "population"
    symmetric = True
    invariances = frozenset({"scale", "permutation"})
    _to_units = staticmethod(rsa_to_units)
    _between_units = staticmethod(rsa_between_units)

    def prepare(self, X: FloatArray) -> FloatArray:
        """Dissimilarities of all pairs of stimuli, centred, at unit length; NaN if all are equal."""
        return rdm_pattern(X)

    def compare(self, source: FloatArray, target: FloatArray) -> float:
        """Correlation of two prepared RDMs."""
        return float(np.clip(source @ target, -1.0, 1.0))


class CKA(Similarity):
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
    _to_units = staticmethod(cka_to_units)
    _between_units = staticmethod(cka_between_units)

    def _function_options(self) -> dict[str, Any]:
        return {"debiased": self.debiased}

    def prepare(self, X: FloatArray) -> LinearKernel:
        """The linear kernel of a representation [n, p]."""
        return linear_kernel(X)

    def compare(self, source: Any, target: Any) -> float:
        """Alignment of two linear kernels."""
        return linear_alignment(source, target, debiased=self.debiased)


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


class RBFCKA(Similarity):
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
    _to_units = staticmethod(cka_rbf_to_units)
    _between_units = staticmethod(cka_rbf_between_units)

    def _function_options(self) -> dict[str, Any]:
        return {"median_fraction": self.options.median_fraction, "debiased": self.debiased}

    def prepare(self, X: FloatArray) -> Any:
        """The Gaussian kernel of a representation [n, p]; None where it has no bandwidth."""
        return rbf_kernel(X, **self._function_options())

    def compare(self, source: Any, target: Any) -> float:
        """Alignment of two Gaussian kernels."""
        return np.nan if source is None or target is None else rbf_alignment(source, target)


class DebiasedRBFCKA(RBFCKA):
    """`RBFCKA` from unbiased estimators of HSIC: about zero where nothing is shared, and possibly below.

    References: Kornblith et al. (2019), ICML; Song et al. (2007), ICML.
    """

    name = "cka_rbf_debiased"
    summary = "debiased centred kernel alignment with Gaussian kernels"
    debiased: ClassVar[bool] = True
    fewest_stimuli = 4
