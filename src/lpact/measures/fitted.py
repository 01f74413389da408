"""Measures with something to fit: centring by training means, and what training stimuli leave undefined."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Self

import numpy as np
import numpy.typing as npt

from lpact.errors import InputError
from lpact.math.columns import varying_columns
from lpact.math.scores import pearson_columns
from lpact.math.types import FloatArray
from lpact.measures.base import SOURCE_MISSING, TOO_FEW, UNDEFINED, Measure, Score, matrices
from lpact.splits import Split


class Fitted(Measure):
    """A measure fitted on training stimuli: nothing of the scored ones enters the fit.

    `_learn` and `_held_out` get columns less their means over training stimuli. In `_learn`, columns that are constant,
    and units with a missing value, are exactly zero. What training leaves undefined is NaN, with the reason.
    """

    needs_fit = True
    _reason: npt.NDArray[np.str_] | None = None
    """Why a value is undefined whatever the scored stimuli, [t] or []; empty where it is not."""

    @abstractmethod
    def _learn(self, x: FloatArray, y: FloatArray) -> npt.ArrayLike:
        """Fit on centred x [n, p] and y [n, t]; return reasons for what stays undefined, else ``""``."""

    @abstractmethod
    def _held_out(self, x: FloatArray, y: FloatArray) -> FloatArray | float:
        """Values of stimuli less the training means."""

    def fit(self, X: npt.ArrayLike, Y: npt.ArrayLike) -> Self:
        """Fit on training stimuli, X [n, p] and Y [n, t]. Returns itself."""
        x, y = matrices(X, Y)
        finite = np.isfinite(y).all(axis=0)
        if len(x) < self.fewest_stimuli or not np.isfinite(x).all():
            why = TOO_FEW if len(x) < self.fewest_stimuli else SOURCE_MISSING
            found = self.undefined(y.shape[1], why)
        else:
            none = np.full(y.shape[1] if self.scope == "unit" else (), np.nan)
            found = Measure.explained(self, none, x, y)
        lost = np.char.add(found.reason, " in training")
        self._reason = np.where(found.reason == UNDEFINED, "", lost)
        self._used = varying_columns(x), varying_columns(y)
        # Units that are not finite never leave `_reason`; zeros keep their rounding and warnings out of the fit.
        x, y = np.where(np.isfinite(x), x, 0.0), np.where(finite, y, 0.0)
        # A constant column is its own mean, without rounding.
        means = [np.where(varying_columns(a), a.mean(axis=0), a[0]) for a in (x, y)]
        self._means = means[0], means[1]
        if (self._reason == "").any():
            learned = self._learn(x - means[0], y - means[1])
            self._reason = np.where(self._reason == "", learned, self._reason)
        return self

    def _trained(self, n_features: int | None = None, n_units: int | None = None) -> npt.NDArray[np.str_]:
        """Reasons from training; an error without a fit, or for other numbers of columns than the fitted ones."""
        where = f"measure '{self.name}'"
        if self._reason is None:
            remedy = "call fit with training stimuli first, or cross_validate with a split"
            raise InputError("the measure is not fitted", where=where, remedy=remedy)
        for side, got, mean in zip(("source", "target"), (n_features, n_units), self._means, strict=True):
            if got is not None and got != len(mean):
                what = f"the {side} has another number of units than the fitted one"
                raise InputError(what, where=where, got=got, expected=len(mean))
        return self._reason

    def score(self, X: npt.ArrayLike, Y: npt.ArrayLike) -> Score:
        """Score held-out stimuli, X [n, p] and Y [n, t]; of the training stimuli, it is the in-sample value."""
        x, y = matrices(X, Y)
        reason = self._trained(x.shape[1], y.shape[1])
        if (reason != "").all():
            return Score(np.full(reason.shape, np.nan), reason)
        score = super().score(x, y)
        value = np.where(reason == "", score.value, np.nan)
        return replace(score, value=value, reason=np.where(reason == "", score.reason, reason))

    def values(self, X: FloatArray, Y: FloatArray) -> FloatArray | float:
        """Values for held-out stimuli; NaN where no column that the fit uses varies."""
        reason = self._trained(X.shape[1], Y.shape[1])
        # Maps of constant rows differ by rounding, whose correlation means nothing.
        used = [varying_columns(a)[v].any() for a, v in zip((X, Y), self._used, strict=True)]
        if not all(used):
            return np.full(reason.shape, np.nan)
        return self._held_out(X - self._means[0], Y - self._means[1])

    def pairwise(self, Y: FloatArray, split: Split | None = None, lagged: FloatArray | None = None) -> FloatArray:
        """Value of every unit (row) with every unit (column), one pair at a time for measures of populations."""
        if split is None or self.scope == "unit":
            return super().pairwise(Y, split, lagged)
        units = [Y[:, [i]] for i in range(Y.shape[1])]
        return np.array([[float(self.cross_validate(a, b, split)) for b in units] for a in units])


class FittedUnits(Fitted):
    """A fitted measure that predicts every unit, and by default correlates held-out responses with predictions."""

    scope = "unit"
    symmetric = False

    @abstractmethod
    def _predicted(self, x: FloatArray) -> FloatArray:
        """Predictions [n, t] from x less its training means; units that training leaves undefined may be anything."""

    def predict(self, X: npt.ArrayLike) -> FloatArray:
        """Predicted responses [n, t] for X [n, p]; NaN for units that training leaves undefined."""
        x = np.asarray(X, dtype=np.float64)
        reason = self._trained(x.shape[1])
        if (reason != "").all():
            return np.full((len(x), len(reason)), np.nan)
        predicted = self._predicted(x - self._means[0]) + self._means[1]
        return np.where(reason == "", predicted, np.nan)

    def _held_out(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return pearson_columns(self._predicted(x), y)
