"""Brain–brain consistency: every subject as a source of every other, and how values are summarised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lpact.ceilings.consistency import Consistency, Folds, all_consistencies
from lpact.errors import InputError
from lpact.math.columns import mean_of_finite, median_of_finite
from lpact.math.types import FloatArray
from lpact.measures import Measure


@dataclass(frozen=True)
class Aggregate:
    """Median and standard error of the mean over units of all target subjects, or over target subjects.

    Attributes
    ----------
    values
        One per unit, or per subject: mean over the sources that give it a value.
    """

    values: FloatArray

    @property
    def median(self) -> float:
        """Median of the defined values; NaN where there is none."""
        return median_of_finite(self.values)

    @property
    def sem(self) -> float:
        """Standard deviation (n − 1) over √n of the defined values; NaN for fewer than two.

        Units of a subject are not independent: their s.e.m. describes them, and is no interval for other subjects.
        """
        finite = self.values[np.isfinite(self.values)]
        return float(finite.std(ddof=1) / np.sqrt(finite.size)) if finite.size > 1 else np.nan

    @property
    def n_undefined(self) -> int:
        """Values that are not defined."""
        return int(np.isnan(self.values).sum())


def aggregate(by_target: Sequence[npt.ArrayLike]) -> Aggregate:
    """Summarise consistencies as in appendix A.2: the mean over sources first, then median and s.e.m.

    Parameters
    ----------
    by_target
        One array per target subject: [n_sources, t], values of its units, which are then concatenated over subjects;
        or [n_sources], values of populations, of which one per subject is left. NaN where undefined.
    """
    means = [np.atleast_1d(mean_of_finite(np.asarray(values, float))) for values in by_target]
    return Aggregate(np.concatenate(means))


@dataclass(frozen=True)
class BetweenSubjects:
    """Consistencies by (source, target) subject; both orders of a symmetric measure have the same values."""

    n_subjects: int
    pairs: dict[tuple[int, int], Consistency]

    @property
    def matrix(self) -> FloatArray:
        """Median over the target's units with a value, [source, target]; NaN on the diagonal and where undefined."""
        matrix = np.full((self.n_subjects, self.n_subjects), np.nan)
        for pair, found in self.pairs.items():
            matrix[pair] = found.median
        return matrix

    @property
    def reasons(self) -> list[str]:
        """Why noise was not corrected for, of every pair of which it was not."""
        return [found.reason for found in self.pairs.values() if not found.corrected]

    @property
    def n_undefined(self) -> int:
        """Draws × folds without a value, over all pairs and units."""
        return int(sum(found.n_undefined.sum() for found in self.pairs.values()))

    def aggregate(self) -> Aggregate:
        """`lpact.ceilings.aggregate` of all pairs."""
        subjects = range(self.n_subjects)
        return aggregate([[self.pairs[i, j].value for i in subjects if i != j] for j in subjects])


def between_subjects(
    subjects: Sequence[npt.ArrayLike],
    measure: Measure,
    split: Folds | None = None,
    **options: Any,
) -> BetweenSubjects:
    """`consistency` of every subject with every other.

    Parameters
    ----------
    subjects
        [n, r, units] each, of the same stimuli.
    measure, split
        As in `consistency`. A symmetric measure of populations is evaluated once per pair.
    options
        Other parameters of `consistency`.
    """
    if len(subjects) < 2:
        what, got = "too few subjects", f"{len(subjects)} subjects"
        raise InputError(what, where="between_subjects", got=got, expected="at least 2")
    folds = split if split is None or hasattr(split, "check") else list(split)
    symmetric = measure.symmetric and measure.scope == "population"
    arrays = [np.asarray(own, dtype=np.float64) for own in subjects]
    targets = [[j for j in range(len(arrays)) if j != i and not (symmetric and j < i)] for i in range(len(arrays))]
    cases = [(arrays[i], [arrays[j] for j in own]) for i, own in enumerate(targets) if own]
    pairs: dict[tuple[int, int], Consistency] = {}
    for i, found in enumerate(all_consistencies(cases, measure, folds, **options)):
        for j, one in zip(targets[i], found, strict=True):
            pairs[i, j] = one
            if symmetric:
                pairs[j, i] = _turned(one)
    return BetweenSubjects(len(subjects), pairs)


def _turned(found: Consistency) -> Consistency:
    """The same with source and target in each other's place."""
    return replace(
        found,
        source_reliability=found.target_reliability,
        target_reliability=found.source_reliability,
        n_source_left_out=found.n_target_left_out,
        n_target_left_out=found.n_source_left_out,
    )


def pool(subjects: Sequence[npt.ArrayLike]) -> FloatArray:
    """Units of several subjects as one pseudo-population, [n, r, units] each to [n, max r, Σ units] (appendix A.4).

    Repetitions that a subject does not have are NaN. A stimulus that is missing for one subject removes that subject's
    units from a source: keep the stimuli that all have.
    """
    arrays = [np.asarray(subject, dtype=np.float64) for subject in subjects]
    if not arrays or len({(array.ndim, len(array)) for array in arrays}) > 1 or arrays[0].ndim != 3:
        got = ", ".join(str(array.shape) for array in arrays) or "no subjects"
        expected = "stimuli × repetitions × units, the same stimuli for every subject"
        raise InputError("the subjects cannot be pooled", where="pool", got=got, expected=expected)
    longest = max(array.shape[1] for array in arrays)
    padded = [np.pad(a, ((0, 0), (0, longest - a.shape[1]), (0, 0)), constant_values=np.nan) for a in arrays]
    return np.concatenate(padded, axis=2)
