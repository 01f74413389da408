"""Measures without a fit: representational similarity, centred kernel alignment, and correlations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from lpact.errors import InputError
from lpact.math.columns import mean_of_finite, varying_columns
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
from lpact.math.similarity.neighbours import (
    NeighbourDistance,
    nearest_neighbours,
    shared_neighbours,
)
from lpact.math.similarity.rsa import (
    Comparator,
    comparison_pattern,
    correlation_rdm,
    crossnobis_rdm,
    dense_ranks,
    kendall_tau_a,
    noise_whitened,
    products_of_all,
    rdm,
    rsa_between_units,
    rsa_to_units,
)
from lpact.math.types import FloatArray, IntArray
from lpact.measures.base import Invariance, Measure
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
    zero_at_chance: ClassVar[bool] = False
    correctable = False
    invariances = frozenset({"offset", "scale", "column_scale", "permutation"})
    _to_units = staticmethod(pearson_to_units)
    _between_units = staticmethod(pearson_between_units)


class EventResponse(Similarity):
    """Correlation, over stimuli, of how strongly X and each unit respond, regardless of direction.

    Strength is √(mean over columns of z²), z being standardised columns; of one unit, |z|.
    """

    name = "event_response"
    summary = "correlation of event-wise response magnitudes"
    scope = "unit"
    symmetric = False
    correctable = False
    invariances = frozenset({"offset", "scale", "column_scale", "permutation"})
    _to_units = staticmethod(event_response_to_units)
    _between_units = staticmethod(event_response_between_units)


class RSAOptions(PluginOptions):
    """Options of `rsa`."""

    dissimilarity: Literal["correlation", "euclidean", "crossnobis"] = Field(
        "correlation",
        description="Dissimilarity of two stimuli; `crossnobis` needs responses with repetitions.",
    )
    comparator: Comparator = Field(
        "pearson",
        description="How dissimilarities are compared; whitened ones allow for the covariance of their errors.",
    )
    noise: Literal["none", "diagonal", "shrinkage"] = Field(
        "none",
        description="Noise of the units that Euclidean and crossnobis distances are divided by; needs repetitions.",
    )

    @model_validator(mode="after")
    def _noise_has_a_use(self) -> Self:
        if self.noise != "none" and self.dissimilarity == "correlation":
            raise ValueError(
                f"noise = '{self.noise}' has no effect on correlation distances: choose the dissimilarity 'euclidean' "
                "(with noise, Mahalanobis) or 'crossnobis', or noise = 'none'"
            )
        return self


class RSA(Similarity):
    """Comparison, over pairs of stimuli, of the dissimilarities of X and of Y; by default their Pearson correlation.

    Dissimilarities of stimuli a and b, of p units:

    - ``"correlation"``: 1 − r of their rows. A constant row has distance 1 from all others. With fewer than three
      columns, where rows have no pattern to correlate, it is the squared Euclidean distance.
    - ``"euclidean"``: ‖x_a − x_b‖² / p. Noise adds to it.
    - ``"crossnobis"``: the mean over repetitions of (x̄_a − x̄_b)ᵀ(x_a − x_b) / p, x being the responses of one
      repetition and x̄ the mean of all others. Its expected value is the squared distance without noise, if noise is
      independent between repetitions; it can be negative.

    With ``noise``, units are divided by the noise of single trials around the mean of their stimulus, by its standard
    deviations (``"diagonal"``) or its covariance shrunk towards the diagonal (``"shrinkage"``, Schäfer & Strimmer):
    squared Mahalanobis distances. Being estimated from the same trials, it leaves a bias of the order of 1 / trials.

    Comparators: ``"pearson"``, ``"cosine"``, ``"spearman"``, ``"tau_a"`` (Kendall's), ``"rho_a"`` (the expected
    Spearman correlation if ties were broken at random), and Pearson or cosine after whitening by the covariance of
    distances of patterns with independent errors. Dissimilarities equal to 12 decimals of the largest are ties. The
    value is undefined where all dissimilarities of one side are equal; for cosines, where all are zero or it is
    constant. For stimuli without any signal, crossnobis distances have a cosine of 0 on average, Euclidean ones nearly
    1; where stimuli differ, all distances share a positive mean, which only Pearson and rank comparators take out.

    `score` takes responses without repetitions, hence neither crossnobis nor noise; `lpact.ceilings.consistency` takes
    stimuli × repetitions × units, and features, which have no noise: their distances are Euclidean. All
    comparators but ``"tau_a"`` are correlations (of ranks too) or cosines, which it corrects for noise; halves need two
    trials each for crossnobis. Missing trials are left out of means. Crossnobis uses all products of two different
    trials of a and b; a stimulus with fewer than two trials of a unit has no distances, and leaves the value undefined.
    Noise is estimated from trials without a missing unit, and with shrinkage only these count.

    References: Kriegeskorte, Mur & Bandettini (2008), Front. Syst. Neurosci. 2:4; Walther et al. (2016), NeuroImage
    137; Schütt et al. (2023), eLife 12:e82566.
    """

    name = "rsa"
    summary = "correlation of representational dissimilarity matrices"
    scope = "population"
    symmetric = True
    invariances = frozenset({"scale", "permutation"})
    Options: ClassVar[type[PluginOptions]] = RSAOptions
    options: RSAOptions
    _to_units = staticmethod(rsa_to_units)
    _between_units = staticmethod(rsa_between_units)

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        # These traits depend on options: the class has those of the defaults.
        if self.options.dissimilarity == "crossnobis" or self.options.noise != "none":
            self.needs_trials = True  # type: ignore[misc]
        if self.options.comparator == "tau_a":
            self.correctable = False  # type: ignore[misc]
        if self.options.comparator.startswith("cosine") and self.options.dissimilarity != "crossnobis":
            self.zero_at_chance = False  # type: ignore[misc]
        if self.options.dissimilarity != "correlation":
            more: Invariance = "rotation" if self.options.noise == "none" else "column_scale"
            self.invariances = type(self).invariances | {"offset", more}  # type: ignore[misc]

    def dissimilarities(self, X: npt.ArrayLike) -> FloatArray:
        """The RDM of X [n, p], without noise, or of its repetitions [n, r, p]: upper triangle [n (n − 1) / 2]."""
        x, kind = np.asarray(X, dtype=np.float64), self.options.dissimilarity
        if x.ndim == 3:
            if self.options.noise != "none":
                x = noise_whitened(x, shrinkage=self.options.noise == "shrinkage")
            if kind == "crossnobis":
                return crossnobis_rdm(x)
            x = mean_of_finite(x, 1)
            if not np.isfinite(x).all():
                return np.full(len(x) * (len(x) - 1) // 2, np.nan)
        if kind == "correlation":
            return correlation_rdm(x)
        return rdm(x / np.sqrt(x.shape[1]), "sqeuclidean")

    def values(self, X: FloatArray, Y: FloatArray) -> float:
        """The value of X and Y, which have no repetitions."""
        self._check_without_trials()
        return self.compare(self.prepare(X), self.prepare(Y))

    def prepare(self, X: FloatArray) -> Any:
        """What is compared of the dissimilarities of X [n, p], which has no noise: ranks, or a vector of unit length.

        NaN (ranks 0) where it is undefined.
        """
        return self._prepared(X, X)

    def prepare_trials(self, trials: FloatArray) -> Any:
        """The same of repetitions [n, r, p]; missing trials are NaN."""
        mean = mean_of_finite(trials, 1)
        return self._prepared(trials if self.needs_trials else mean[:, None], mean)

    def prepare_all(self, representations: Sequence[FloatArray]) -> Any:
        """`prepare_trials` of k representations, as the rows of one array.

        With many stimuli this is faster than a list: memory is reserved once, and in large pages.
        """
        first = self.prepare_trials(representations[0])
        prepared = np.empty((len(representations), len(first)), dtype=first.dtype)
        prepared[0] = first
        for row, one in enumerate(representations[1:], 1):
            prepared[row] = self.prepare_trials(one)
        return prepared

    def compare(self, source: Any, target: Any) -> float:
        """Comparison of two prepared RDMs."""
        if self.options.comparator == "tau_a":
            return kendall_tau_a(source, target)
        return float(np.clip(source @ target, -1.0, 1.0))

    def mean_of(self, prepared: Sequence[Any]) -> Any:
        """The mean of prepared RDMs, which have the same length (z-scored for Pearson); None for rank comparators."""
        if self.options.comparator in ("spearman", "tau_a", "rho_a"):
            return None
        mean = np.mean(prepared, axis=0)
        return mean / np.linalg.norm(mean)

    def compare_all(self, prepared: Sequence[Any]) -> FloatArray:
        """Comparisons of all pairs of k prepared RDMs, in one matrix product but for ``"tau_a"``: [k, k]."""
        if self.options.comparator != "tau_a":
            return np.clip(products_of_all(prepared), -1.0, 1.0)
        values = np.empty((len(prepared), len(prepared)))
        for i, source in enumerate(prepared):
            values[i, i:] = values[i:, i] = [self.compare(source, one) for one in prepared[i:]]
        return values

    def to_units(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """Value of X with every unit of Y: without any RDM of a unit with the default options, else one by one."""
        self._check_without_trials()
        return super().to_units(X, Y) if self._default else Measure.to_units(self, X, Y)

    def pairwise(self, Y: FloatArray, split: Split | None = None, lagged: FloatArray | None = None) -> FloatArray:
        """Value of all pairs of units, in one call with the default options."""
        return (super().pairwise if self._default else super(Similarity, self).pairwise)(Y, split, lagged)

    @property
    def _default(self) -> bool:
        return self.options.dissimilarity == "correlation" and self.options.comparator == "pearson"

    def _prepared(self, X: FloatArray, mean: FloatArray) -> Any:
        distances = self.dissimilarities(X)
        if not varying_columns(mean).any():
            distances = np.full_like(distances, np.nan)
        comparator = self.options.comparator
        ranks = comparator == "tau_a"
        return dense_ranks(distances) if ranks else comparison_pattern(distances, comparator)

    def _check_without_trials(self) -> None:
        options = self.options
        if self.needs_trials:
            needs = "noise" if options.dissimilarity != "crossnobis" else "dissimilarity"
            raise InputError(
                f"{needs} = '{getattr(options, needs)}' needs repetitions",
                where="measure 'rsa'",
                got="stimuli × units",
                expected="stimuli × repetitions × units",
                remedy="use lpact.ceilings.consistency, or compare what `prepare_trials` gives",
            )


class MutualKNNOptions(PluginOptions):
    """Options of `mutual_knn`."""

    k: int = Field(10, ge=1, description="Number of nearest neighbours of every stimulus.")
    distance: NeighbourDistance = Field("cosine", description="Distance of two stimuli.")


class MutualKNN(Measure):
    """Share of nearest neighbours in common: mean over stimuli a of |N_k(a; X) ∩ N_k(a; Y)| / k.

    N_k(a; X) are the k stimuli nearest to a, by the cosine or Euclidean distance of rows of X; one column has no
    direction, and its distance is Euclidean. Among neighbours at the same distance (to seven digits), the first in the
    order of stimuli are used. Independent representations of n stimuli share k / (n − 1) on average. Undefined for
    n ≤ k, where all distances are equal, and, by cosine, where a row is zero. `pairwise` finds neighbours again for
    every pair of units.

    Reference: Huh et al. (2024), ICML.
    """

    name = "mutual_knn"
    summary = "share of nearest neighbours in common"
    scope = "population"
    symmetric = True
    zero_at_chance: ClassVar[bool] = False
    local = True
    correctable = False
    invariances = frozenset({"scale", "permutation", "rotation"})
    Options: ClassVar[type[PluginOptions]] = MutualKNNOptions
    options: MutualKNNOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self.fewest_stimuli = self.options.k + 1  # type: ignore[misc]
        if self.options.distance == "euclidean":
            self.invariances = type(self).invariances | {"offset"}  # type: ignore[misc]

    def prepare(self, X: FloatArray) -> IntArray | None:
        """Neighbours of every stimulus [n k]; None where they are undefined."""
        return nearest_neighbours(X, self.options.k, self.options.distance)

    def compare(self, source: IntArray | None, target: IntArray | None) -> float:
        """Share of neighbours in common."""
        return np.nan if source is None or target is None else shared_neighbours(source, target)


class CKA(Similarity):
    """Linear centred kernel alignment ⟨HKH, HLH⟩ / (‖HKH‖ ‖HLH‖), with K = XXᵀ, L = YYᵀ and H = I − 11ᵀ/n.

    It grows with the number of columns, also where X and Y are independent.

    Reference: Kornblith et al. (2019), ICML.
    """

    name = "cka"
    summary = "linear centred kernel alignment"
    scope = "population"
    symmetric = True
    zero_at_chance: ClassVar[bool] = False
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
    zero_at_chance: ClassVar[bool] = True
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
    zero_at_chance: ClassVar[bool] = False
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
    zero_at_chance: ClassVar[bool] = True
    fewest_stimuli = 4
