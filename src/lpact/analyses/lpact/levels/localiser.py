"""Which units answer to a mechanism: a functional localiser on training rows, in every outer fold anew."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lpact.codes import Reason
from lpact.inputs.prepare import Prepared
from lpact.math.partial import partial_correlations
from lpact.math.ridge import Readout
from lpact.math.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Targets:
    """Units of every mechanism in every outer fold.

    ``units`` holds indices [F, n_picked] by mechanism, ``partial`` their partial correlations; ``missing`` says why a
    mechanism has no target: in some fold it does not vary on the training rows, the others account for it, or too few
    units vary.
    """

    units: Mapping[str, IntArray]
    partial: Mapping[str, FloatArray]
    missing: Mapping[str, Reason]

    def score(self, target: str, fold_scores: FloatArray, test_sizes: IntArray) -> float | None:
        """Mean over the target's units within a fold, then over folds by test size; None where undefined."""
        if target not in self.units:
            return None
        value = float(np.average(self.fold_means(target, fold_scores), weights=test_sizes))
        return value if math.isfinite(value) else None

    def fold_means(self, target: str, fold_scores: FloatArray) -> FloatArray:
        """Mean over the target's units within each fold, [F]."""
        means: FloatArray = np.take_along_axis(fold_scores, self.units[target], axis=1).mean(axis=1)
        return means


def localise(prepared: Prepared, real: Readout, target_fraction: float) -> Targets:
    """Pick each mechanism's target units from training rows, in every outer fold, at the lags chosen there.

    A unit's claim to a mechanism is the size of its partial correlation with it given the other mechanisms. With delays
    of a finite impulse response, it is the largest over delays, all mechanisms being taken at the same one.
    """
    names = list(prepared.mechanisms)
    by_name = [prepared.scalars(name) for name in names]
    scalars = [np.column_stack(at_delay) for at_delay in zip(*(s.T for s in by_name), strict=True)]
    n_units = real.lag.shape[1]
    n_picked = max(1, round(target_fraction * n_units))
    correlations = np.stack(
        [_partial(prepared, real, scalars, fold) for fold in range(real.folds.n_blocks)], axis=1
    )  # [n_mechanisms, F, n_units]
    units, partial, missing = {}, {}, {}
    for name, own, by_fold in zip(names, by_name, correlations, strict=True):
        finite = np.isfinite(by_fold)
        if (finite.sum(axis=1) < n_picked).any():
            missing[name] = _why_missing(own, finite, real)
            continue
        strength = np.where(finite, np.abs(by_fold), -1.0)
        units[name] = np.argsort(-strength, axis=1, kind="stable")[:, :n_picked]
        partial[name] = np.take_along_axis(by_fold, units[name], axis=1)
    return Targets(units, partial, missing)


def _why_missing(scalars: FloatArray, finite: BoolArray, real: Readout) -> Reason:
    """Why a mechanism has too few partial correlations, from the folds where it does.

    ``scalars`` is [n_events, n_delays], ``finite`` [F, n_units].
    """
    trains = [scalars[real.folds.train_rows(fold)] for fold in range(real.folds.n_blocks)]
    if any((train.max(axis=0) == train.min(axis=0)).all() for train in trains):
        return Reason.MECHANISM_CONSTANT
    return Reason.TOO_FEW_UNITS if finite.any(axis=1).all() else Reason.COLLINEAR_MECHANISMS


def _partial(
    prepared: Prepared, real: Readout, scalars: Sequence[FloatArray], fold: int
) -> FloatArray:
    """Partial correlations on the training rows of one outer fold, [n_mechanisms, n_units].

    ``scalars`` holds [n_events, n_mechanisms] for every delay; the delay with the largest size counts.
    """
    train = real.folds.train_rows(fold)
    lags = real.lag[fold]
    responses = prepared.grid.responses[lags, :, np.arange(len(lags))].T[train]
    by_delay = np.stack([partial_correlations(responses, m[train]) for m in scalars])
    size = np.where(np.isfinite(by_delay), np.abs(by_delay), -1.0)
    strongest: FloatArray = np.take_along_axis(by_delay, size.argmax(axis=0)[None], axis=0)[0]
    return strongest
