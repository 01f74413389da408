"""How consistent a model, or another brain, is with a brain, without the measurement noise of either.

A measure M compares a source with a target over stimuli. Repeated presentations are cut into random halves 1 and 2, and
the value is divided by what noise alone would leave of it. For a fitted measure of single units, P is the map's
prediction on test stimuli (s: mean over all trials, s1 and s2: means of the halves):

=============== =========================== ==================================================================
estimator       numerator                   denominator
=============== =========================== ==================================================================
``full_trials`` Corr(P(s), s)               √(SB Corr(P(s1), P(s2)) · SB Corr(s1, s2)), SB as `spearman_brown`
``half_trials`` Corr(P(s1), s2)             √(Corr(P(s1), P(s2)) · Corr(s1, s2))
``as_printed``  Corr(P(s1), s2)             as ``full_trials``
``none``        Corr(P(s), s)               1
=============== =========================== ==================================================================

The first two estimate the same number. ``as_printed`` is the equation in print: it divides a value of half of the
trials by reliabilities of all trials, which makes it too low by the factor √((1 + r_m)(1 + r_y)) / 2, with r_m and r_y
the uncorrected reliabilities of map and target. Population measures that are not fitted take M of the representations
in place of Corr; a source without trials has a reliability of 1.

All of this assumes that noise is independent between trials, and that correlations multiply along the way from one half
over the true responses to the other (exact for linear maps and Gaussian noise, approximate for dissimilarities).

Reference: Feather et al. (2025), Brain-model evaluations need the NeuroAI Turing Test, appendix A.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lpact.ceilings.reliability import noise_corrected, spearman_brown
from lpact.ceilings.terms import Pair, RowsOfFold, pair_terms
from lpact.ceilings.trials import Draws, Halves, Trials
from lpact.errors import InputError, require_known
from lpact.math.columns import mean_of_finite, median_of_finite
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray, IntArray
from lpact.measures import Measure
from lpact.measures.base import check_rows
from lpact.splits import Split

Estimator = Literal["full_trials", "half_trials", "as_printed", "none"]
Folds = Split | Iterable[tuple[npt.ArrayLike, npt.ArrayLike]]
ESTIMATORS = ("full_trials", "half_trials", "as_printed", "none")
NOT_ASKED = "no noise correction was requested"
NO_VALUE = "the measure has no value: source or target is constant or missing, or there are too few stimuli"
NOT_POSITIVE = "a reliability is not positive in any half and fold"


@dataclass(frozen=True)
class Consistency:
    """Noise-corrected consistency of one source with one target.

    Attributes
    ----------
    value
        [t], or [] for a measure of populations: mean over draws of halves and folds; NaN where none is defined.
    uncorrected
        Same shape: mean over folds of the measure on all trials.
    source_reliability, target_reliability
        Same shape: means over draws and folds, as in the denominator of the estimator; NaN without noise correction.
    by_fold
        [n_folds, t] or [n_folds]: mean over draws.
    n_undefined, n_values
        Draws × folds without a value, same shape as ``value``, and all of them. A reliability that is not positive
        leaves a value undefined.
    corrected, reason
        Whether noise was corrected for, and why not, or why no value is defined.
    n_stimuli, n_stimuli_left_out
        Stimuli that count, and those for which source or target has no trial at all.
    n_without_halves
        Stimuli that count, but not in the halves: source or target has fewer than two trials.
    n_source_left_out, n_target_left_out
        Units that still have a missing response. They are no part of the source, and undefined in the target (or no
        part of it, for a measure of populations).
    """

    value: FloatArray
    uncorrected: FloatArray
    source_reliability: FloatArray
    target_reliability: FloatArray
    by_fold: FloatArray
    n_undefined: IntArray
    n_values: int
    corrected: bool
    reason: str
    n_stimuli: int
    n_stimuli_left_out: int
    n_without_halves: int
    n_source_left_out: int
    n_target_left_out: int

    @property
    def median(self) -> float:
        """Median over units with a value."""
        return median_of_finite(self.value)

    def __repr__(self) -> str:
        how = "corrected" if self.corrected else f"not corrected: {self.reason}"
        shown = f"{self.median:.4g}"
        if self.value.ndim:
            undefined = int(np.isnan(self.value).sum())
            shown = f"median {shown} of {self.value.size} units, {undefined} undefined"
        return f"Consistency({shown}; {how})"


def consistency(
    source: npt.ArrayLike,
    target: npt.ArrayLike,
    measure: Measure,
    split: Folds | None = None,
    *,
    estimator: Estimator = "full_trials",
    n_halves: int = 20,
    seed: int = 0,
    halves: Halves | None = None,
    source_units: int | None = None,
    source_draws: int = 1,
) -> Consistency:
    """Consistency of a source with a target, corrected for the noise of both.

    For every target unit the ratio of numerator and denominator is taken in each draw and fold, and then averaged:
    a mean of ratios, as in the reference. Folds count equally.

    Parameters
    ----------
    source
        [n, p], a model, without noise; or [n, r, p], trials of another brain. NaN where a trial is missing.
    target
        [n, r, t], or [n, t] without repetitions.
    measure
        Fitted measures of units predict every unit; population measures that are not fitted compare representations.
        Others, and targets without repetitions, are left uncorrected, with a reason.
    split
        Folds of `lpact.splits`, or pairs of training and test rows. A measure that is not fitted is evaluated on the
        test rows of every fold, or on all stimuli without a split.
    estimator
        See `lpact.ceilings.consistency`.
    n_halves, seed, halves
        Draws of `random_halves`, or pairs of repetition numbers in their place. If the number of trials is odd,
        random halves leave one out; reliabilities are still those of all trials.
    source_units, source_draws
        Number of units drawn from the source without replacement, and number of draws to average over.
    """
    options: dict[str, Any] = {"estimator": estimator, "n_halves": n_halves, "seed": seed}
    options |= {"halves": halves, "source_units": source_units, "source_draws": source_draws}
    return consistencies(source, [target], measure, split, **options)[0]


def consistencies(
    source: npt.ArrayLike,
    targets: Sequence[npt.ArrayLike],
    measure: Measure,
    split: Folds | None = None,
    *,
    estimator: Estimator = "full_trials",
    n_halves: int = 20,
    seed: int = 0,
    halves: Halves | None = None,
    source_units: int | None = None,
    source_draws: int = 1,
) -> list[Consistency]:
    """`consistency` of one source with several targets, which share fits and prepared representations of the source."""
    options: dict[str, Any] = {"estimator": estimator, "n_halves": n_halves, "seed": seed}
    options |= {"halves": halves, "source_units": source_units, "source_draws": source_draws}
    return all_consistencies([(source, targets)], measure, split, **options)[0]


def all_consistencies(
    cases: Sequence[tuple[npt.ArrayLike, Sequence[npt.ArrayLike]]],
    measure: Measure,
    split: Folds | None = None,
    *,
    estimator: Estimator = "full_trials",
    n_halves: int = 20,
    seed: int = 0,
    halves: Halves | None = None,
    source_units: int | None = None,
    source_draws: int = 1,
) -> list[list[Consistency]]:
    """`consistencies` of several sources, each with its targets; an array that recurs is prepared once per half."""
    require_known(estimator, ESTIMATORS, "estimator", where="consistency, parameter 'estimator'")
    draws = Draws(n_halves if halves is None else len(halves), seed, halves)
    if draws.n < 1:
        raise _error("no halves to correlate", f"{draws.n} draws", "at least 1 draw")
    if source_units and measure.behavioural:
        raise _error("alternatives of answers cannot be subsampled", f"source_units = {source_units}", "all of them")
    targets = {id(y): y for _, ys in cases for y in ys}
    every = {key: Trials(y, "target", draws) for key, y in targets.items()}
    made = [(Trials(x, "source", draws), [every[id(y)] for y in ys]) for x, ys in cases]
    lengths = [len(one.values) for x, ys in made for one in (x, *ys)]
    if len({*lengths}) > 1:
        what, got = "source and target have different numbers of stimuli", f"{lengths} rows"
        raise _error(what, got, "one row per stimulus, the same stimuli in the same order")
    folds, measure = _folds(measure, split, made[0][0].mean)
    reason = NOT_ASKED if estimator == "none" else ""
    subsets = [[*_subsets(x.mean.shape[1], source_units, source_draws, seed)] for x, _ in made]
    parts = pair_terms(
        [
            (x if units is None else x.only(units), ys)
            for (x, ys), of_source in zip(made, subsets, strict=True)
            for units in of_source
        ],
        measure,
        folds,
        reason,
    )
    n = len(subsets[0])
    return [
        [_averaged(of_target, estimator) for of_target in zip(*parts[k * n : (k + 1) * n], strict=True)]
        for k in range(len(made))
    ]


def _folds(measure: Measure, split: Folds | None, x: FloatArray) -> tuple[list[RowsOfFold], Measure]:
    """Training and test rows of every fold, and the measure with at least the gap of the split."""
    if split is None:
        if measure.needs_fit:
            what, expected = (
                f"the measure '{measure.name}' must be fitted",
                "a split of lpact.splits",
            )
            raise _error(what, "no split", expected)
        return [(np.arange(0), np.arange(len(x)))], measure
    if isinstance(split, Split):
        check_rows(x, split)
        if split.gap and hasattr(measure, "gap"):
            measure = copy(measure)
            measure.gap = max(measure.gap, split.gap)
        return list(split), measure
    folds = [(np.asarray(train), np.asarray(test)) for train, test in split]
    if not folds or any(np.intersect1d(*fold).size or not fold[1].size for fold in folds):
        what = "a fold without test rows, or with rows in training and test" if folds else "no folds"
        raise _error(what, f"{len(folds)} folds", "pairs of training and test rows")
    return folds, measure


def _subsets(n_units: int, size: int | None, n_draws: int, seed: int) -> Iterator[IntArray | None]:
    """Units of every draw of the source; None for all."""
    if size is None:
        yield None
        return
    if not 1 <= size <= n_units or n_draws < 1:
        got = f"{size} of {n_units} units, {n_draws} draws"
        raise _error("the source cannot be subsampled so", got, "at most all units, 1 draw or more")
    for draw in range(n_draws):
        rng = keyed_rng(seed, "source units", draw)
        yield np.sort(rng.choice(n_units, size, replace=False))


def _averaged(parts: Sequence[Pair], estimator: Estimator) -> Consistency:
    """Means over draws and folds of the ratios, over draws of source units too."""
    corrected = all(pair.half_rows is not None for pair in parts)
    ratios, reliabilities = [], []
    for pair in parts:
        if not corrected:
            ratios.append(pair.full[None])
            reliabilities.append(np.full((2, *pair.full[None].shape), np.nan))
            continue
        r = np.stack([pair.r_source, pair.r_target])
        r = r if estimator == "half_trials" else spearman_brown(r, pair.factors)
        numerator = pair.full[None] if estimator == "full_trials" else pair.half
        ratios.append(noise_corrected(np.broadcast_to(numerator, r[0].shape), *r))
        reliabilities.append(r)
    ratio, reliability = np.concatenate(ratios), np.concatenate(reliabilities, axis=1)
    full = np.concatenate([pair.full for pair in parts])
    flat = ratio.reshape(-1, ratio.shape[-1])
    source, target = mean_of_finite(reliability.reshape(2, *flat.shape), 1)
    undefined = ""
    if np.isnan(flat).all():
        undefined = NO_VALUE if np.isnan(full).all() else NOT_POSITIVE
    kept = ... if parts[0].of_units else (..., 0)
    pair = parts[0]
    return Consistency(
        value=mean_of_finite(flat)[kept],
        uncorrected=mean_of_finite(full)[kept],
        source_reliability=source[kept],
        target_reliability=target[kept],
        by_fold=mean_of_finite(ratio)[kept],
        n_undefined=np.isnan(flat).sum(axis=0)[kept],
        n_values=len(flat),
        corrected=corrected,
        reason=undefined or next((pair.reason for pair in parts if pair.reason), ""),
        n_stimuli=int(pair.rows.sum()),
        n_stimuli_left_out=int((~pair.rows).sum()),
        n_without_halves=pair.n_without_halves if corrected else 0,
        n_source_left_out=max(int((~part.source_units).sum()) for part in parts),
        n_target_left_out=int((~pair.target_units).sum()),
    )


def _error(what: str, got: str, expected: str) -> InputError:
    return InputError(what, where="consistency", got=got, expected=expected)
