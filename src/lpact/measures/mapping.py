"""Measures that align populations by a fitted linear map: PLS regression, canonical correlations, Procrustes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from lpact.math.columns import varying_columns
from lpact.math.scores import pearson_columns
from lpact.math.similarity.correlation import leading_component
from lpact.math.types import FloatArray
from lpact.measures.base import Invariance
from lpact.measures.fitted import Fitted, FittedUnits
from lpact.registry import PluginOptions

TOO_MANY_DIMENSIONS = "without a penalty, more dimensions than training stimuli correlate perfectly whatever the data"
_NOTHING_LEFT = 1e-12
"""A covariance below this share of the first one is rounding: PLS has no further component."""


class PLSOptions(PluginOptions):
    """Options of `pls`."""

    n_components: int = Field(25, ge=1)
    """Latent components; fewer where X has a smaller rank, or where nothing of Y is left to explain."""
    scale: bool = False
    """Divide the columns of X and Y by their standard deviation over training stimuli."""
    per_unit: bool = False
    """Fit every unit alone, with its own components, rather than all units together."""


class PLS(FittedUnits):
    """Held-out correlation of responses with their prediction by partial least squares regression.

    Component k maximises the covariance of t_k = X r_k with a combination of the units, among scores that are
    uncorrelated with t_1 … t_{k−1}: w_k is the leading left singular vector of C_k = XᵀY − Σ_{j<k} |t_j|² p_j q_jᵀ,
    with r_k = w_k − Σ_{j<k} (p_jᵀ w_k) r_j, p = Xᵀt / |t|² and q = Yᵀt / |t|². The prediction is X Σ r_k q_kᵀ.
    Columns are centred by their training means.

    The numbers are those of scikit-learn's `PLSRegression` once its iteration for w_k has converged (``tol`` of about
    1e-16; its default stops earlier). With as many components as X has dimensions this is ordinary least squares.

    References: Wold, Sjöström & Eriksson (2001), Chemom. Intell. Lab. Syst. 58:109; Dayal & MacGregor (1997), J.
    Chemom. 11:73 (the algorithm).
    """

    name = "pls"
    summary = "held-out correlation of partial least squares regression"
    invariances = frozenset({"offset", "scale", "permutation", "rotation"})
    Options: ClassVar[type[PluginOptions]] = PLSOptions
    options: PLSOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        if self.options.scale:
            more: Invariance = "column_scale"
            self.invariances = type(self).invariances - {"rotation"} | {more}  # type: ignore[misc]

    def _learn(self, x: FloatArray, y: FloatArray) -> str:
        scales = [
            np.where(varying_columns(a), a.std(axis=0), 1.0) if self.options.scale else np.ones(1) for a in (x, y)
        ]
        x, y = x / scales[0], y / scales[1]
        parts = np.hsplit(y, y.shape[1]) if self.options.per_unit else [y]
        weights = np.hstack([self._weights(x, part) for part in parts])
        self._map = weights / scales[0][:, None] * scales[1]
        return ""

    def _weights(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Σ r_k q_kᵀ [p, t].

        Not scikit-learn's: its power iteration takes longer, warns where singular values are close, and stops far from
        a rotation of X's having no effect.
        """
        cross = x.T @ y
        first = np.linalg.norm(cross)
        weights = np.zeros_like(cross)
        rotations: list[FloatArray] = []
        loadings: list[FloatArray] = []
        for _ in range(min(self.options.n_components, len(x) - 1, x.shape[1])):
            if np.linalg.norm(cross) <= _NOTHING_LEFT * first:
                break
            w = leading_component(cross)
            rotation = w = w / np.linalg.norm(w)
            for loading, before in zip(loadings, rotations, strict=True):
                rotation = rotation - (loading @ w) * before
            t = x @ rotation
            length = t @ t
            q = cross.T @ rotation / length
            rotations.append(rotation)
            loadings.append(x.T @ t / length)
            weights += np.outer(rotation, q)
            cross -= length * np.outer(loadings[-1], q)
        return weights

    def _predicted(self, x: FloatArray) -> FloatArray:
        return x @ self._map


class CCAOptions(PluginOptions):
    """Options of `cca` and `pwcca`."""

    penalty: float = Field(0.1, ge=0.0, le=1.0)
    """Share γ by which covariances are drawn towards a multiple of the identity: 0 for plain CCA, 1 for the singular
    vectors of XᵀY."""
    n_components: int | None = Field(None, ge=1)
    """Canonical components to score, from the first; by default all."""


class CCA(Fitted):
    """Mean over components of the canonical correlation of held-out stimuli.

    a_k and b_k maximise a_kᵀ XᵀY b_k over training stimuli, with a_jᵀ S_X a_k = b_jᵀ S_Y b_k = δ_jk and S = (1 − γ) XᵀX
    + γ v I, where γ is ``penalty`` and v the mean of the eigenvalues of XᵀX that are not zero. There are as many
    components as the smaller of both ranks. The value is the mean over k of Corr(X a_k, Y b_k) of the scored stimuli,
    signed; components that do not generalise contribute values near 0.

    Scoring the training stimuli gives the in-sample value of the literature, which grows with the number of units.
    With γ = 0, rank(X) + rank(Y) > n − 1 makes some in-sample correlations 1 whatever the data: the value is then NaN.

    References: Hotelling (1936), Biometrika 28:321; Vinod (1976), J. Econom. 4:147 (the ridge).
    """

    name = "cca"
    summary = "mean held-out canonical correlation, regularised"
    scope = "population"
    symmetric = True
    invariances = frozenset({"offset", "scale", "permutation", "rotation"})
    correctable: ClassVar[bool] = False
    Options: ClassVar[type[PluginOptions]] = CCAOptions
    options: CCAOptions

    def _learn(self, x: FloatArray, y: FloatArray) -> str:
        axes = [self._reduced(*principal_axes(a)) for a in (x, y)]
        if self.options.penalty == 0.0 and sum(len(s) for _, s, _ in axes) > len(x) - 1:
            return TOO_MANY_DIMENSIONS
        self._maps = aligned(axes[0], axes[1], self.options.penalty, self.options.n_components)
        self._weights = self._weighed(x)
        return ""

    def _reduced(self, u: FloatArray, s: FloatArray, v: FloatArray) -> Axes:
        """Principal axes that take part."""
        return u, s, v

    def _weighed(self, x: FloatArray) -> FloatArray:  # noqa: ARG002
        """Weights of the components, which sum to 1."""
        n = self._maps[0].shape[1]
        return np.full(n, 1.0 / n)

    def _held_out(self, x: FloatArray, y: FloatArray) -> float:
        return float(pearson_columns(x @ self._maps[0], y @ self._maps[1]) @ self._weights)


class SVCCAOptions(CCAOptions):
    """Options of `svcca`."""

    penalty: float = Field(0.0, ge=0.0, le=1.0)
    """As that of `cca`, for the axes that are kept."""
    variance: float = Field(0.99, gt=0.0, le=1.0)
    """Share of the variance over training stimuli that the leading principal axes kept of either side explain."""


class SVCCA(CCA):
    """`CCA` of the fewest leading principal components that explain ``variance`` of the training stimuli's variance.

    Without a penalty; where the axes kept of both sides are more than n − 1 together, the value is NaN.

    Reference: Raghu et al. (2017), NeurIPS.
    """

    name = "svcca"
    summary = "mean held-out canonical correlation of leading principal components"
    Options: ClassVar[type[PluginOptions]] = SVCCAOptions
    options: SVCCAOptions

    def _reduced(self, u: FloatArray, s: FloatArray, v: FloatArray) -> Axes:
        explained = np.cumsum(s**2)
        kept = explained - s**2 < self.options.variance * explained[-1]
        return u[:, kept], s[kept], v[:, kept]


class PWCCA(CCA):
    """`CCA` with components weighted by how much of X they account for.

    The weight of component k is α_k = Σ_j |h_kᵀ x_j| / Σ_k α_k, with h_k = X a_k at unit length and x_j the columns of
    X, both of training stimuli. X and Y cannot change places. The published measure is in-sample, with ``penalty = 0``.

    Reference: Morcos, Raghu & Bengio (2018), NeurIPS.
    """

    name = "pwcca"
    summary = "held-out canonical correlation weighted by projection on the source"
    symmetric = False
    invariances = frozenset({"offset", "scale", "permutation"})

    def _weighed(self, x: FloatArray) -> FloatArray:
        variates = x @ self._maps[0]
        share = np.abs(x.T @ (variates / np.linalg.norm(variates, axis=0))).sum(axis=0)
        weights: FloatArray = share / share.sum()
        return weights


class Procrustes(Fitted):
    """Cosine of X, rotated, with Y: 1 where they are equal up to offset, scale and rotation.

    With XᵀY = U S Vᵀ of training stimuli (centred by their means), Q = UVᵀ is the orthogonal map of X onto Y, and the
    value of the scored stimuli, less the training means, ⟨XQ, Y⟩ / (‖X‖ ‖Y‖). X and Y may have different numbers of
    units: it is the value with the smaller one filled up with zeros. Directions without covariance in training are not
    mapped, so that with more units than training stimuli even X with itself stays below 1.

    Scoring the training stimuli gives ‖XᵀY‖_* / (‖X‖ ‖Y‖): the arccosine of it is the angular Procrustes distance of
    Williams et al., and 1 − its square the disparity of `scipy.spatial.procrustes`.

    Reference: Williams et al. (2021), NeurIPS.
    """

    name = "procrustes"
    summary = "held-out cosine after the best rotation"
    scope = "population"
    symmetric = True
    invariances = frozenset({"offset", "scale", "permutation", "rotation"})
    correctable: ClassVar[bool] = False

    def _learn(self, x: FloatArray, y: FloatArray) -> str:
        self._maps = aligned(principal_axes(x), principal_axes(y), penalty=1.0)
        return ""

    def _held_out(self, x: FloatArray, y: FloatArray) -> float:
        product = np.vdot(x @ self._maps[0], y @ self._maps[1])
        return float(product / (np.linalg.norm(x) * np.linalg.norm(y)))


Axes = tuple[FloatArray, FloatArray, FloatArray]


def principal_axes(x: FloatArray) -> Axes:
    """Singular vectors and values of x [n, p] above rounding: u [n, r], s [r], v [p, r]."""
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    kept = s > s[0] * max(x.shape) * np.finfo(np.float64).eps
    return u[:, kept], s[kept], vt[kept].T


def aligned(x: Axes, y: Axes, penalty: float, n_components: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Maps A [p, k] and B [t, k] of X and Y to canonical components; with a penalty of 1, orthonormal columns.

    S^(−½) = v w vᵀ, with w² = m / ((1 − γ) s² + γ m) and m the mean of s²; A and B are S_X^(−½) and S_Y^(−½) times the
    singular vectors of S_X^(−½) XᵀY S_Y^(−½).
    """
    (u_x, s_x, v_x), (u_y, s_y, v_y) = x, y
    w_x, w_y = (np.sqrt((m := np.mean(s**2)) / ((1.0 - penalty) * s**2 + penalty * m)) for s in (s_x, s_y))
    left, r, right = np.linalg.svd((w_x * s_x)[:, None] * (u_x.T @ u_y) * (w_y * s_y))
    k = min(len(r), n_components or len(r))
    return v_x @ (w_x[:, None] * left[:, :k]), v_y @ (w_y[:, None] * right[:k].T)
