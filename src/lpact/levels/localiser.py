"""Which units answer to a mechanism: a functional localiser on training rows, in every outer fold anew."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lpact.levels.prepare import Prepared
from lpact.math.partial import partial_correlations
from lpact.math.ridge import NestedRidge
from lpact.math.types import FloatArray, IntArray


@dataclass(frozen=True)
class Targets:
    """Units of every mechanism in every outer fold: indices [F, n_units], and their partial correlations."""

    units: Mapping[str, IntArray]
    partial: Mapping[str, FloatArray]

    def score(self, target: str, fold_scores: FloatArray, test_sizes: IntArray) -> float | None:
        """Mean over the target's units within a fold, then over folds by test size; None where undefined."""
        if target not in self.units:
            return None
        by_fold = np.take_along_axis(fold_scores, self.units[target], axis=1).mean(axis=1)
        value = float(np.average(by_fold, weights=test_sizes))
        return value if math.isfinite(value) else None


def localise(prepared: Prepared, real: NestedRidge, target_fraction: float) -> Targets:
    """Pick each mechanism's target units from training rows, in every outer fold, at the lags chosen there.

    A unit's claim to a mechanism is the size of its partial correlation with it given the other mechanisms.
    """
    names = list(prepared.mechanisms)
    scalars = np.column_stack([prepared.mechanisms[name] for name in names])
    n_units = real.observed.shape[1]
    n_picked = max(1, round(target_fraction * n_units))
    units = {name: np.empty((real.folds.n_blocks, n_picked), dtype=np.int64) for name in names}
    partial = {name: np.empty((real.folds.n_blocks, n_picked)) for name in names}
    for fold in range(real.folds.n_blocks):
        train = real.folds.train_rows(fold)
        responses = prepared.grid.responses[real.lag[fold], :, np.arange(n_units)].T[train]
        correlations = partial_correlations(responses, scalars[train])
        for name, row in zip(names, correlations, strict=True):
            strength = np.where(np.isfinite(row), np.abs(row), -1.0)
            picked = np.argsort(-strength, kind="stable")[:n_picked]
            units[name][fold], partial[name][fold] = picked, row[picked]
    return Targets(units, partial)
