"""Held-out linear predictivity."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from lpact.errors import InputError, require_known
from lpact.math.ridge import (
    METRICS,
    Compute,
    RidgeFit,
    RidgeGrid,
    cross_validated_ridge,
    nested_ridge,
    single_column_readouts,
)
from lpact.math.scores import pearson_columns, r2_columns, spearman_columns
from lpact.math.splits import BlockedFolds
from lpact.math.types import FloatArray
from lpact.measures.base import SOURCE_MISSING, Measure, Score, check_rows, matrices
from lpact.splits import Split, contiguous

MISSING_IN_TRAINING = "the target has missing values in training"
DEFAULT_GRID = RidgeGrid(tuple(float(a) for a in 10.0 ** np.arange(-1, 7)))


@lru_cache(maxsize=64)
def _validation_folds(n_rows: int, n_blocks: int, gap: int) -> BlockedFolds:
    """Validation blocks of `LinearPredictivity.fit`; raises `lpact.errors.SplitError` where rows are too few."""
    split = contiguous(n_rows, n_blocks, gap=gap)
    split.check()
    return split.folds


class LinearPredictivity(Measure):
    """Score of held-out responses predicted by ridge regression, w = argmin ‖Y − Xw‖² + α‖w‖², from standardised X.

    `fit` chooses the penalty of every unit (and the number of principal components) with contiguous blocks of the
    training rows as validation rows in turn. `cross_validate` does so in nested cross-validation, where the other folds
    are the validation rows, and scores predictions pooled over folds. Rows must be in the order in which they were
    recorded, unless the split is made of groups.

    Parameters
    ----------
    options
        Options of the plug-in; there are none.
    alphas
        Penalties α > 0 to choose from, in place of those of ``grid`` (10⁻¹ … 10⁶).
    grid
        Penalties, numbers of components, validation score, and whether units choose alone or together.
    metric
        ``"pearson"``, ``"spearman"`` or ``"r2"`` (against the mean of the training rows).
    n_blocks, gap
        Validation blocks of `fit`, and the rows left out of training on either side of them (in `cross_validate`, at
        least the gap of the split).
    compute
        Device, precision and memory.
    """

    name = "linear"
    summary = "held-out ridge correlation (nested, blocked)"
    scope = "unit"
    symmetric = False
    needs_fit = True
    invariances = frozenset({"offset", "scale", "column_scale", "permutation"})
    from_readout = True

    def __init__(
        self,
        options: Any = None,
        *,
        alphas: Sequence[float] | None = None,
        grid: RidgeGrid = DEFAULT_GRID,
        metric: Literal["pearson", "spearman", "r2"] = "pearson",
        n_blocks: int = 5,
        gap: int = 0,
        compute: Compute | None = None,
    ) -> None:
        super().__init__(options)
        require_known(metric, METRICS, "metric", where="LinearPredictivity, parameter 'metric'")
        if alphas is not None:
            grid = replace(grid, alphas=alphas)  # type: ignore[arg-type]  # the grid makes a tuple
        self.grid, self.metric, self.n_blocks, self.gap = grid, metric, n_blocks, gap
        self.compute = compute or Compute()
        self._fit: RidgeFit | None = None
        self._mean: FloatArray | None = None

    def using(self, grid: RidgeGrid, compute: Compute) -> Self:
        """The same measure with another grid and device."""
        other = copy(self)
        other.grid, other.compute = grid, compute
        return other

    def fit(self, X: npt.ArrayLike, Y: npt.ArrayLike) -> Self:
        """Choose penalties and fit weights on training stimuli, X [n, p] and Y [n, t].

        Scores of units with a missing value are undefined. Raises `lpact.errors.SplitError` where the rows are too few
        for the validation blocks and their gap.
        """
        x, y = matrices(X, Y)
        if not np.isfinite(x).all():
            got = f"{int((~np.isfinite(x)).sum())} values that are not finite"
            remedy = "leave these stimuli or columns out"
            raise InputError(SOURCE_MISSING, where="measure 'linear'", got=got, remedy=remedy)
        inner = _validation_folds(len(x), self.n_blocks, self.gap)
        missing = ~np.isfinite(y).all(axis=0)
        self._mean = y.mean(axis=0)
        responses = np.where(missing, 0.0, y)[None]
        self._fit = cross_validated_ridge(x, responses, inner, self.grid, compute=self.compute)
        return self

    def predict(self, X: npt.ArrayLike) -> FloatArray:
        """Predicted responses [n, t] for X [n, p]; NaN for units with missing values in training."""
        fit, mean = self._trained()
        predicted = fit.predict(np.asarray(X, dtype=np.float64))
        return np.where(np.isfinite(mean), predicted, np.nan)

    def _trained(self) -> tuple[RidgeFit, FloatArray]:
        """The fit and the mean of the training responses [t]."""
        if self._fit is None or self._mean is None:
            remedy = "call fit with training stimuli first, or cross_validate with a split"
            raise InputError("the measure is not fitted", where="measure 'linear'", remedy=remedy)
        return self._fit, self._mean

    def score(self, X: npt.ArrayLike, Y: npt.ArrayLike) -> Score:
        """Score held-out stimuli, X [n, p] and Y [n, t]."""
        _, mean = self._trained()
        score = super().score(X, Y)
        lost = np.isnan(score.value) & ~np.isfinite(mean)
        return replace(score, reason=np.where(lost, MISSING_IN_TRAINING, score.reason))

    def values(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """Score of the predictions for every unit, [t]."""
        predicted = self.predict(X)
        if predicted.shape != Y.shape:
            what = "the target has another number of units than the fitted one"
            got, expected = Y.shape[1], predicted.shape[1]
            raise InputError(what, where="measure 'linear'", got=got, expected=expected)
        if self.metric == "r2":
            return r2_columns(Y, predicted, np.broadcast_to(self._trained()[1], Y.shape))
        return (pearson_columns if self.metric == "pearson" else spearman_columns)(predicted, Y)

    def cross_validate(self, X: npt.ArrayLike, Y: npt.ArrayLike, split: Split) -> Score:
        """Predict every fold from the others with settings chosen on the others; predictions pooled over folds.

        Y may be [n_lags, n, t]: the lag is then chosen with the penalty. Splits that the ridge engine cannot take whole
        (fewer than three folds, subjects apart, a gap around scattered rows) are fitted fold by fold and averaged;
        ``combined`` of the score says which. A missing value in X leaves every unit undefined.
        """
        lagged = np.asarray(Y, dtype=np.float64)
        lagged = lagged if lagged.ndim == 3 else matrices(X, Y)[1][None]
        x, reference = matrices(X, lagged[0])
        check_rows(x, split)
        scattered = split.gap > 0 and not split.contiguous
        apart = (len(split) < 3 or split.within is not None or scattered) and len(lagged) == 1
        if not np.isfinite(x).all():
            score = self.undefined(reference.shape[1], SOURCE_MISSING)
            by_fold = np.full((len(split), reference.shape[1]), np.nan)
            return replace(score, by_fold=by_fold, combined="mean of folds" if apart else "pooled")
        if apart:
            gapped = copy(self)
            gapped.gap = max(self.gap, split.gap)
            return super(LinearPredictivity, gapped).cross_validate(x, reference, split)
        missing = ~np.isfinite(lagged).all(axis=(0, 1))
        order, folds = split.blocks()
        readout = nested_ridge(
            x[order],
            np.where(missing, 0.0, lagged)[:, order],
            folds,
            self.grid,
            metrics=(self.metric,),
            compute=self.compute,
        )
        score = self.explained(readout.scores(self.metric), x, reference)
        return replace(score, by_fold=readout.fold_scores(self.metric), combined="pooled")

    def pairwise(self, Y: FloatArray, split: Split | None = None, lagged: FloatArray | None = None) -> FloatArray:
        """Readouts from every unit alone to every unit, all at once and without a prediction."""
        if split is None:
            return super().pairwise(Y)
        target = Y[None] if lagged is None else lagged
        order, folds = split.blocks()
        if not split.contiguous:
            Y, target = Y[order], target[:, order]
        return single_column_readouts(Y, target, folds, self.grid, metric=self.metric, compute=self.compute)
