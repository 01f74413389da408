"""scikit-learn's own checks of an estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.estimator_checks import parametrize_with_checks

from lpact.estimators import BandedRidge, NestedRidge


class TwoSpaces(BandedRidge):
    """The checks bring features of any number: the first half is a space, and so is the rest."""

    def _spaces(self, problem: Any) -> Any:
        n_features = problem.features.shape[1]
        halves = np.array_split(np.arange(n_features), 2)
        return {i: half for i, half in enumerate(halves) if len(half)}


ESTIMATORS = [
    NestedRidge(),
    NestedRidge(components=(0, 1, 2), selection="shared", metric="pearson", form="kernel"),
    NestedRidge(device="torch", precision="float32"),
    BandedRidge(),
    TwoSpaces(draws=5, metric="pearson", form="kernel"),
]


@parametrize_with_checks(ESTIMATORS)
def test_a_check_of_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
