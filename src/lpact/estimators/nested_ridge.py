"""Ridge regression that chooses its settings over contiguous blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from lpact.estimators._blocked import ArrayLike, BlockedEstimator, Problem
from lpact.math.ridge import (
    METRICS,
    PER_TARGET,
    SHARED,
    Readout,
    RidgeFit,
    RidgeGrid,
    Selection,
    cross_validated_ridge,
    nested_ridge,
)
from lpact.math.types import IntArray
from lpact.splits import Split


class NestedRidge(BlockedEstimator):
    """Ridge regression that chooses penalty and principal components over contiguous blocks of rows.

    Neighbouring rows of a recording are correlated, so validation rows must not lie between training rows: rows are cut
    into contiguous blocks, with an embargo of ``gap`` rows around the held-out ones. Features are standardised on
    training rows only. `fit` chooses with every block as validation block in turn, and fits on all rows;
    `nested_scores` measures how well the whole procedure predicts unseen rows.

    Parameters
    ----------
    alphas
        Ridge penalties, positive, on the sum of squares of standardised features' weights.
    components
        Numbers of principal components of the standardised features, 0 for all features.
    cv
        Number of blocks, or a contiguous split of `lpact.splits`. Segments (stories, runs) are the ``groups`` of `fit`.
    gap
        Rows left out of training on both sides of every held-out block.
    metric
        Validation score by which settings are chosen: ``"r2"``, ``"pearson"`` or ``"spearman"``.
    selection
        Choose settings per ``"target"``, ``"shared"`` by all targets, or by a `lpact.math.ridge.Selection`: groups of
        targets, and a level for each setting.
    form
        Decompose the Gram matrix of columns (``"primal"``) or of rows (``"kernel"``), or the smaller one.
    device
        ``"cpu"`` (NumPy), ``"torch"`` (torch on the CPU), ``"cuda"``, ``"cuda:N"`` or ``"mps"``.
    precision
        Of the large products: ``"float64"`` or ``"float32"``.
    memory_bytes
        Limit of the working memory, in addition to input and output arrays; None for 2 GiB.

    Attributes
    ----------
    coef_
        Weights in raw units, [t, p], or [p] where ``y`` is [n].
    intercept_
        [t], or a number where ``y`` is [n]; so are the next four.
    alpha_
        Chosen penalty.
    components_
        Chosen number of principal components, 0 for all features.
    lag_
        Index of the chosen lag; 0 unless fitted by `fit_lags`.
    best_score_
        Mean validation score of the choice, NaN where undefined; R² as in scikit-learn, around the mean of the
        validation block. It is the best of several: use `nested_scores` to report.
    unpenalised_coef_
        Weights of the unpenalised columns, [t, m] or [m].
    n_features_in_
        Number of features p.
    feature_names_in_
        Names of the features, [p]; only if ``X`` is a data frame whose column names are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from lpact.estimators import NestedRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((120, 4))
    >>> y = X @ [1.0, 0.0, 0.0, -1.0] + 0.1 * rng.standard_normal(120)
    >>> NestedRidge(cv=4, gap=2).fit(X, y).coef_.round(1) + 0.0
    array([ 1.,  0.,  0., -1.])
    """

    components_: IntArray | int

    def __init__(
        self,
        alphas: Sequence[float] = (1.0, 10.0, 100.0, 1000.0, 10000.0),
        *,
        components: Sequence[int] = (0,),
        cv: int | Split = 5,
        gap: int = 0,
        metric: Literal["r2", "pearson", "spearman"] = "r2",
        selection: Literal["target", "shared"] | Selection = "target",
        form: Literal["auto", "primal", "kernel"] = "auto",
        device: str = "cpu",
        precision: Literal["float64", "float32"] = "float64",
        memory_bytes: int | None = None,
    ) -> None:
        self.alphas = alphas
        self.components = components
        self.cv = cv
        self.gap = gap
        self.metric = metric
        self.selection = selection
        self.form = form
        self.device = device
        self.precision = precision
        self.memory_bytes = memory_bytes

    def nested_readout(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        metrics: Sequence[str] = METRICS,
        keep: Sequence[str] = (),
        groups: ArrayLike | None = None,
        unpenalised: ArrayLike | None = None,
    ) -> Readout:
        """The whole readout of `nested_scores`: choices and scores in every block.

        ``keep`` may name ``"predictions"`` and ``"weights"``. A single response [n] counts as one target.
        """
        return self._nested(self._checked(X, y, groups, unpenalised), metrics, keep)

    def _fit(self, problem: Problem) -> RidgeFit:
        fit = cross_validated_ridge(
            problem.features,
            problem.responses,
            problem.folds,
            self._grid(),
            unpenalised=problem.unpenalised,
            form=self.form,
            compute=problem.compute,
        )
        self.components_ = problem.by_target(fit.components)
        return fit

    def _nested(self, problem: Problem, metrics: Sequence[str], keep: Sequence[str]) -> Readout:
        return nested_ridge(
            problem.features,
            problem.responses,
            problem.folds,
            self._grid(),
            unpenalised=problem.unpenalised,
            metrics=metrics,
            keep=keep,
            form=self.form,
            compute=problem.compute,
        )

    def _grid(self) -> RidgeGrid:
        return RidgeGrid(
            tuple(float(alpha) for alpha in np.atleast_1d(self.alphas)),
            tuple(int(k) for k in np.atleast_1d(self.components)),
            self.metric,
            _selection(self.selection),
        )


def _selection(selection: Any) -> Selection:
    if isinstance(selection, Selection):
        return selection
    known = {"target": PER_TARGET, "shared": SHARED}
    if selection not in known:
        raise ValueError(
            f"unknown selection {selection!r}; known: {', '.join(known)}, or a Selection"
        )
    return known[selection]
