"""Base class of the estimators: input checks, blocks, weights, predictions and nested scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    check_X_y,
    validate_data,
)

from lpact.errors import SplitError
from lpact.math.ridge import Compute, Readout, RidgeFit
from lpact.math.splits import BlockedFolds
from lpact.math.types import FloatArray, IntArray
from lpact.splits import Split, contiguous, grouped

ArrayLike: TypeAlias = Any
"""An array, a list, or a data frame that scikit-learn can read."""

_FLOATS = [np.float64, np.float32]
_CHECKS = {"dtype": _FLOATS, "ensure_min_samples": 2}


@dataclass(frozen=True)
class Problem:
    """Checked input of a readout.

    Attributes
    ----------
    features, responses, unpenalised
        [n, p], [n_lags, n, t] and [n, m] or None.
    single
        Whether y is [n]: results have no target axis.
    names
        Names of the features, if X is a data frame.
    """

    features: FloatArray
    responses: FloatArray
    unpenalised: FloatArray | None
    folds: BlockedFolds
    compute: Compute
    single: bool
    names: tuple[str, ...] | None

    def by_target(self, values: Any) -> Any:
        """Values [t, …], without the first axis where y is [n]."""
        values = np.asarray(values)
        if not self.single:
            return values
        return values[0] if values.ndim > 1 else values[0].item()


class BlockedEstimator(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """A linear readout whose settings are chosen over contiguous blocks of rows."""

    alphas: Sequence[float]
    cv: int | Split
    gap: int
    metric: Literal["r2", "pearson", "spearman"]
    device: str
    precision: Literal["float64", "float32"]
    memory_bytes: int | None
    alpha_: FloatArray | float
    lag_: IntArray | int
    best_score_: FloatArray | float
    coef_: FloatArray
    intercept_: FloatArray | float
    unpenalised_coef_: FloatArray
    n_features_in_: int

    @abstractmethod
    def _fit(self, problem: Problem) -> RidgeFit:
        """Choose settings, set their attributes, and return the fit with weights on the columns of X."""

    @abstractmethod
    def _nested(self, problem: Problem, metrics: Sequence[str], keep: Sequence[str]) -> Readout:
        """The nested readout."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        unpenalised: ArrayLike | None = None,
    ) -> Self:
        """Choose settings with every block as validation block in turn, then fit on all rows.

        Parameters
        ----------
        X
            Features [n, p], rows in the order in which they were recorded.
        y
            Responses [n] or [n, t].
        groups
            [n]: segment of every row (story, run), each contiguous. Segments replace ``cv`` as blocks.
        unpenalised
            [n, m]: columns whose weights are not penalised, such as nuisance features. An intercept is always included.
            `predict` and `score` need them, too.
        """
        names = _names(X)
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, **_CHECKS)
        return self._set(self._problem(X, y, groups, unpenalised, names))

    def fit_lags(
        self,
        X: ArrayLike,
        responses: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        unpenalised: ArrayLike | None = None,
    ) -> Self:
        """Choose a lag as well, then fit as in `fit`.

        ``responses`` is [n_lags, n, t]: the response to every row at each candidate lag. `predict` then returns every
        target at its own lag, whose index is in ``lag_``. Nested scores and predictions accept [n_lags, n, t] as well.
        """
        names = _names(X)
        X = validate_data(self, X, **_CHECKS)
        checked = _lagged(responses, len(X))
        return self._set(self._problem(X, checked, groups, unpenalised, names))

    def predict(self, X: ArrayLike, *, unpenalised: ArrayLike | None = None) -> FloatArray:
        """Predictions [n] or [n, t], like the responses, for features [n, p]."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=_FLOATS)
        out: FloatArray = X @ self.coef_.T + self.intercept_
        own = _unpenalised(unpenalised, X)
        needed, given = self.unpenalised_coef_.shape[-1], 0 if own is None else own.shape[1]
        if needed != given:
            raise ValueError(f"fitted with {needed} unpenalised columns, got {given}")
        return out if own is None else out + own @ self.unpenalised_coef_.T

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        unpenalised: ArrayLike | None = None,
    ) -> float:
        """R² of the predictions, averaged over targets, as in `sklearn.metrics.r2_score`."""
        predicted = self.predict(X, unpenalised=unpenalised)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    def nested_scores(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        metric: str | None = None,
        groups: ArrayLike | None = None,
        unpenalised: ArrayLike | None = None,
    ) -> FloatArray | float:
        """Score of every target on rows that were used neither for the weights nor for the choice of settings.

        Every block is predicted from the others, with settings chosen on the others: the leak-free score of the whole
        procedure. Needs at least three blocks. The estimator is not changed, and need not be fitted.

        Parameters
        ----------
        X, y, groups, unpenalised
            As in `fit`; ``y`` may be [n_lags, n, t].
        metric
            ``"pearson"``, ``"spearman"`` or ``"r2"``, around the training mean; None for the estimator's ``metric``.

        Returns
        -------
        scores
            [t], or a number where ``y`` is [n]; NaN where the response is constant.
        """
        problem = self._checked(X, y, groups, unpenalised)
        metric = metric or self.metric
        readout = self._nested(problem, (metric,), ())
        scores: FloatArray | float = problem.by_target(readout.scores(metric))
        return scores

    def nested_predictions(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        unpenalised: ArrayLike | None = None,
    ) -> FloatArray:
        """Prediction of every row by the readout of `nested_scores`, [n] or [n, t]."""
        problem = self._checked(X, y, groups, unpenalised)
        predicted: FloatArray = np.asarray(self._nested(problem, (), ("predictions",)).predicted)
        return predicted[:, 0] if problem.single else predicted

    def _set(self, problem: Problem) -> Self:
        fit = self._fit(problem)
        self.alpha_ = problem.by_target(np.atleast_1d(self.alphas).astype(float)[fit.alpha])
        self.lag_ = problem.by_target(fit.lag)
        self.best_score_ = problem.by_target(fit.score)
        self.coef_ = problem.by_target(fit.weights.T)
        self.unpenalised_coef_ = problem.by_target(fit.nuisance_weights.T)
        self.intercept_ = problem.by_target(fit.intercept)
        return self

    def _checked(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None,
        unpenalised: ArrayLike | None,
    ) -> Problem:
        """Checked input of a nested readout; sets no attributes."""
        names = _names(X)
        if np.ndim(y) == 3:
            X = check_array(X, input_name="X", estimator=self, **_CHECKS)
            return self._problem(X, _lagged(y, len(X)), groups, unpenalised, names)
        X, y = check_X_y(X, y, multi_output=True, y_numeric=True, estimator=self, **_CHECKS)
        return self._problem(X, y, groups, unpenalised, names)

    def _problem(
        self,
        X: FloatArray,
        y: FloatArray,
        groups: ArrayLike | None,
        unpenalised: ArrayLike | None,
        names: tuple[str, ...] | None,
    ) -> Problem:
        if y.dtype not in _FLOATS:
            y = y.astype(np.float64)
        shaped = y if y.ndim == 3 else y.reshape(1, len(y), -1)
        compute = Compute(self.device, self.precision)
        if self.memory_bytes is not None:
            compute = replace(compute, memory_bytes=self.memory_bytes)
        return Problem(
            X,
            shaped,
            _unpenalised(unpenalised, X),
            self._folds(len(X), groups),
            compute,
            y.ndim == 1,
            names,
        )

    def _folds(self, n_rows: int, groups: ArrayLike | None) -> BlockedFolds:
        if isinstance(self.cv, Split):
            if groups is not None:
                raise ValueError("pass blocks as cv or as groups, not both")
            if self.gap not in (0, self.cv.gap):
                raise ValueError(f"the split has a gap of {self.cv.gap}; set the gap in the split")
            if not self.cv.contiguous:
                raise ValueError(f"cv must hold out contiguous rows, got a {self.cv.kind} split")
            return self.cv.blocks()[1]
        if groups is not None:
            if np.shape(groups) != (n_rows,):
                raise ValueError(f"groups must be [{n_rows}], got shape {np.shape(groups)}")
            return _contiguous(grouped, groups, gap=self.gap)
        if not isinstance(self.cv, Integral) or isinstance(self.cv, bool):
            raise ValueError(
                f"cv must be a number of blocks or a split of lpact.splits, got {self.cv!r}"
            )
        return _contiguous(contiguous, n_rows, int(self.cv), gap=self.gap)


def _contiguous(make: Callable[..., Split], *args: Any, gap: int) -> BlockedFolds:
    """Folds of a split; scikit-learn expects a `ValueError` where there are none."""
    try:
        return make(*args, gap=gap).folds
    except SplitError as error:
        raise ValueError(str(error)) from None


def _lagged(responses: ArrayLike, n_rows: int) -> FloatArray:
    """Checked responses at several lags, [n_lags, n, t]."""
    checked: FloatArray = check_array(
        responses, input_name="y", dtype=_FLOATS, ensure_2d=False, allow_nd=True
    )
    if checked.ndim != 3 or checked.shape[1] != n_rows:
        raise ValueError(f"responses must be [n_lags, {n_rows}, t], got shape {checked.shape}")
    return checked


def _names(X: ArrayLike) -> tuple[str, ...] | None:
    """Names of the columns of a data frame."""
    columns = getattr(X, "columns", None)
    return None if columns is None else tuple(columns)


def _unpenalised(columns: ArrayLike | None, X: FloatArray) -> FloatArray | None:
    """Checked columns [n, m], or None."""
    if columns is None:
        return None
    checked: FloatArray = check_array(columns, input_name="unpenalised", dtype=_FLOATS)
    check_consistent_length(X, checked)
    return checked
