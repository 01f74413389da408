"""Measures that match single units by their tuning, and so are not invariant to rotations."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from lpact.extras import require
from lpact.math.columns import standard_columns
from lpact.math.types import FloatArray, IntArray
from lpact.measures.base import UNDEFINED, Score
from lpact.measures.fitted import Fitted, FittedUnits
from lpact.splits import Split

NO_PARTNER = "there are fewer source units than target units, and none is left for this one"
MATCHED_CONSTANT = "a unit of the match is constant"


def correlations(x: FloatArray, y: FloatArray) -> FloatArray:
    """Pearson correlation of every column of x [n, p] with every column of y [n, t]; NaN for constant ones: [p, t]."""
    (z_x, x_varies), (z_y, y_varies) = standard_columns(x), standard_columns(y)
    r = np.clip(z_x.T @ z_y / len(x), -1.0, 1.0)
    return np.where(x_varies[:, None] & y_varies, r, np.nan)


class PairwiseMatching(FittedUnits):
    """Held-out correlation of every target unit with the source unit that resembles it most in training.

    The partner of unit j is argmax_i Corr(x_i, y_j) over training stimuli: the correlation is signed, so that a unit
    with opposite tuning is no partner. Several targets may share one. The prediction is the partner's value, moved to
    the target's training mean.

    Reference: Li et al. (2015), PMLR 44:196.
    """

    name = "pairwise_matching"
    summary = "held-out correlation with the best single source unit"
    invariances = frozenset({"offset", "scale", "column_scale", "permutation"})

    def _learn(self, x: FloatArray, y: FloatArray) -> npt.ArrayLike:
        r = correlations(x, y)
        self._partner: IntArray = np.argmax(np.where(np.isnan(r), -np.inf, r), axis=0)
        return ""

    def _predicted(self, x: FloatArray) -> FloatArray:
        return x[:, self._partner]


class OneToOne(PairwiseMatching):
    """Like `PairwiseMatching`, with every source unit the partner of at most one target.

    The assignment maximises the sum of the training correlations. With more targets than sources, the targets that are
    left over are undefined.

    Reference: Li et al. (2015), PMLR 44:196.
    """

    name = "one_to_one"
    summary = "held-out correlation of units assigned one to one"

    def _learn(self, x: FloatArray, y: FloatArray) -> npt.ArrayLike:
        r = correlations(x, y)
        rows, columns = (np.flatnonzero(varies) for varies in self._used)
        found, matched = linear_sum_assignment(r[np.ix_(rows, columns)], maximize=True)
        self._partner = np.zeros(y.shape[1], dtype=np.int64)
        self._partner[columns[matched]] = rows[found]
        return np.where(np.isin(np.arange(y.shape[1]), columns[matched]), "", NO_PARTNER)

    def pairwise(self, Y: FloatArray, split: Split | None = None, lagged: FloatArray | None = None) -> FloatArray:
        """Value of every unit (row) with every unit (column): of one pair, the assignment is the best match."""
        return PairwiseMatching(self.options).pairwise(Y, split, lagged)


class SoftMatching(Fitted):
    """Soft-matching correlation: the highest mean correlation of matched units over all soft permutations.

    The plan T [p, t] maximises Σ_ij T_ij Corr(x_i, y_j) over training stimuli, with T ≥ 0, rows that sum to 1/p and
    columns that sum to 1/t: every unit counts the same. The value is that sum with the correlations of the scored
    stimuli; of the training stimuli, it is the published, in-sample value. Units that are constant in training have no
    correlation and are not matched. With equal numbers of units the plan is an assignment; otherwise it takes POT.

    Reference: Khosla & Williams (2024), PMLR 243 (UniReps).
    """

    name = "soft_matching"
    summary = "held-out correlation of units matched by optimal transport"
    scope = "population"
    symmetric = True
    invariances = frozenset({"offset", "scale", "column_scale", "permutation"})
    correctable: ClassVar[bool] = False

    def _learn(self, x: FloatArray, y: FloatArray) -> str:
        r = correlations(x, y)[np.ix_(*self._used)]
        p, t = r.shape
        if p == t:
            self._plan = np.zeros_like(r)
            self._plan[linear_sum_assignment(r, maximize=True)] = 1.0 / p
        else:
            transport = require("ot", extra="transport").emd
            weights = np.full(p, 1.0 / p), np.full(t, 1.0 / t)
            self._plan = transport(*weights, np.ascontiguousarray(1.0 - r), numItermax=10_000_000)
        return ""

    def _held_out(self, x: FloatArray, y: FloatArray) -> float:
        return float((self._plan * correlations(x, y)[np.ix_(*self._used)]).sum())

    def explained(self, value: FloatArray, x: FloatArray, y: FloatArray) -> Score:
        """As for any measure; what else leaves a value undefined is a matched unit without a correlation."""
        score = super().explained(value, x, y)
        return replace(score, reason=np.where(score.reason == UNDEFINED, MATCHED_CONSTANT, score.reason))
