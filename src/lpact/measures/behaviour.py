"""Measures of behaviour: do two observers err on the same items, and choose the same answers?"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from lpact.errors import InputError
from lpact.math.types import FloatArray
from lpact.measures.base import Measure


class ErrorConsistency(Measure):
    """Cohen's κ of correct and wrong answers: agreement on items beyond that of independent observers.

    κ = (o − e) / (1 − e), with X and Y [n, 1] 1 for a correct answer and 0 for an error, the observed agreement o =
    mean(x y + (1 − x)(1 − y)), and the expected one, from both accuracies, e = x̄ ȳ + (1 − x̄)(1 − ȳ). Undefined where
    e = 1: both observers are always correct, or always wrong.

    With several answers to an item, a value is the share of correct ones, and κ that of one answer of X and one of Y,
    each drawn at random: o is the mean agreement over all pairs of answers. κ of an observer with itself is then below
    1. κ is not corrected for noise.

    Reference: Geirhos, Meding & Wichmann (2020), NeurIPS.
    """

    name = "error_consistency"
    summary = "Cohen's kappa of errors on the same items"
    scope = "population"
    symmetric = True
    behavioural: ClassVar[bool] = True
    correctable: ClassVar[bool] = False

    def prepare(self, X: FloatArray) -> FloatArray:
        """Whether, or how often, each item was answered correctly, [n, 1]; anything else is an error."""
        if X.shape[1] != 1 or X.min() < 0.0 or X.max() > 1.0:
            raise InputError(
                "responses are not correct or wrong",
                where=f"measure '{self.name}'",
                got=f"{X.shape[1]} columns, values {X.min():g} to {X.max():g}",
                expected="one column of 0 and 1, or of shares of correct answers",
                remedy="score every answer first: (response == truth).astype(float)",
            )
        return X

    def compare(self, source: FloatArray, target: FloatArray) -> float:
        """κ of two observers: o − e is twice their covariance over items."""
        x, y = source.mean(), target.mean()
        disagreement = x * (1.0 - y) + y * (1.0 - x)
        covariance = np.mean((source - x) * (target - y))
        return float(2.0 * covariance / disagreement) if disagreement > 0.0 else np.nan


class ResponseCorrelation(Measure):
    """Pearson correlation of two response matrices [n items, alternatives], over all cells.

    r = Σ_ij (x_ij − x̄_j)(y_ij − ȳ_j) / √(Σ_ij (x_ij − x̄_j)² Σ_ij (y_ij − ȳ_j)²). Every alternative (column) is centred:
    a preference for alternatives that both share, whatever the item, does not count as agreement. Columns of X and Y
    are the same alternatives in the same order; one column (accuracy, or a rating) gives the plain correlation over
    items.

    Reference: Rajalingham et al. (2018), J. Neurosci. 38:7255, who compare patterns of choices over items and
    alternatives.
    """

    name = "response_correlation"
    summary = "correlation of response matrices, items by alternatives"
    scope = "population"
    symmetric = True
    behavioural: ClassVar[bool] = True
    invariances = frozenset({"offset", "scale"})

    def prepare(self, X: FloatArray) -> FloatArray:
        """Centred columns, at unit length as a whole; NaN where every column is constant."""
        varies = X.max(axis=0) != X.min(axis=0)
        centred = np.where(varies, X - X.mean(axis=0), 0.0)
        return centred / np.linalg.norm(centred) if varies.any() else np.full(X.shape, np.nan)

    def compare(self, source: FloatArray, target: FloatArray) -> float:
        """Correlation of two prepared response matrices."""
        if source.shape != target.shape:
            raise InputError(
                "the responses have different numbers of alternatives",
                where=f"measure '{self.name}'",
                got=f"{source.shape[1]} and {target.shape[1]} columns",
                expected="the same alternatives, in the same order",
            )
        return float(np.vdot(source, target))
