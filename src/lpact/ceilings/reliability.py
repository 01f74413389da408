"""How well brains agree with themselves and with each other: reliabilities, and scores of brain with brain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from lpact.errors import InputError
from lpact.math.columns import mean_of_finite, median_of_finite
from lpact.math.profiles import pearson_rows
from lpact.math.scores import pearson_columns
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.measures import Measure, Score
from lpact.measures.base import matrices
from lpact.splits import Split


def spearman_brown(r: npt.ArrayLike, factor: npt.ArrayLike = 2.0) -> FloatArray:
    """Reliability of ``factor`` times as many measurements, k r / (1 + (k − 1) r): for two halves, 2r / (1 + r).

    NaN where the denominator is not positive (r = −1 for halves).
    """
    r, factor = np.asarray(r, dtype=np.float64), np.asarray(factor, dtype=np.float64)
    below = 1.0 + (factor - 1.0) * r
    defined = below > 0.0
    return np.where(defined, factor * r / np.where(defined, below, 1.0), np.nan)


def noise_corrected(r: npt.ArrayLike, *reliabilities: npt.ArrayLike) -> FloatArray:
    """Correlation without measurement noise, r / √(product of the reliabilities of both sides).

    One reliability corrects for noise of the responses alone, two for that of both sides. All must be about as many
    measurements as r is (see `spearman_brown`). NaN where a reliability is not positive; report how many, since leaving
    them out makes the rest look better.

    Reference: Spearman (1904), Am. J. Psychol. 15:72–101.
    """
    arrays = [np.asarray(v, dtype=np.float64) for v in (r, *reliabilities)]
    try:
        r, first, *more = np.broadcast_arrays(*arrays)
    except ValueError:
        what = "the score and its reliabilities do not correspond"
        got = "shapes " + ", ".join(str(array.shape) for array in arrays)
        expected = "a score and at least one reliability, of the same shape"
        raise _error("noise_corrected", what, got, expected) from None
    factors = np.array([first, *more])
    product, positive = np.prod(factors, axis=0), (factors > 0.0).all(axis=0)
    corrected = r / np.sqrt(np.where(positive, product, 1.0))
    return np.where(positive, corrected, np.nan)


def trial_noise(reliabilities: npt.ArrayLike, n_trials: float) -> float | None:
    """Standard deviation of the noise of one trial, relative to that of the signal: √(n (1 − ρ) / ρ).

    ρ is the median of ``reliabilities``, each that of the mean of n trials in a subject. None where it is not positive.
    """
    rho = median_of_finite(np.asarray(reliabilities, dtype=np.float64))
    return float(np.sqrt(n_trials * max(0.0, 1.0 - rho) / rho)) if rho > 0.0 else None


@dataclass(frozen=True)
class Ceiling:
    """Reliability of every unit.

    Attributes
    ----------
    values
        [m, t]: one row per draw of halves, subject or partner; NaN where undefined.
    factor
        [t]: number of all trials divided by that of a half, for `corrected`; None where values are not of halves.
    n_left_out
        [m, t]: stimuli left out because too few trials or subjects have them; None where they were not counted.
    """

    values: FloatArray
    factor: FloatArray | None = None
    n_left_out: IntArray | None = None

    def __repr__(self) -> str:
        rows, units = self.values.shape
        return f"Ceiling({units} units, {rows} values each, {self.n_undefined.sum()} undefined)"

    @property
    def value(self) -> FloatArray:
        """Mean over the defined rows, [t]; NaN where there is none."""
        return mean_of_finite(self.values)

    @property
    def typical(self) -> float:
        """Median over units of every row, averaged over rows; NaN where a row has no value."""
        return float(np.mean([_median(row) for row in self.values]))

    @property
    def corrected(self) -> FloatArray:
        """`spearman_brown` of the value, [t]: the reliability of the mean of all repetitions, from that of halves."""
        if self.factor is None:
            what = "the Spearman–Brown correction is for halves of repetitions"
            expected = "a ceiling of split_half"
            raise _error("Ceiling.corrected", what, "a ceiling between subjects", expected)
        return spearman_brown(self.value, self.factor)

    @property
    def n_undefined(self) -> IntArray:
        """Rows without a value, [t]."""
        return np.asarray(np.isnan(self.values).sum(axis=0))


def random_halves(present: BoolArray, rng: np.random.Generator) -> tuple[BoolArray, BoolArray]:
    """Trials of two random halves, with as many trials of a stimulus in one as in the other.

    ``present`` [n_stimuli, n_repetitions, n_units] marks the trials that are not missing. The order of repetitions is
    drawn once and shared by all stimuli and units, so that noise which they share stays in one half. If the number of
    trials is odd, the last in this order is left out.
    """
    n_repetitions = present.shape[1]
    if n_repetitions < 2:
        remedy = "use a ceiling between subjects: lpact.ceilings.group_mean or subject_pairs"
        what, got = "responses without repetitions have no halves", f"{n_repetitions} repetitions"
        raise _error("split_half", what, got, "at least 2", remedy)
    order = rng.permutation(n_repetitions)
    place = np.cumsum(present[:, order], axis=1)[:, np.argsort(order)]
    half = present.sum(axis=1, keepdims=True) // 2
    return present & (place <= half), present & (place > half) & (place <= 2 * half)


def split_half(
    responses: npt.ArrayLike,
    n_draws: int = 100,
    *,
    seed: int = 0,
    halves: Sequence[tuple[IntArray, IntArray]] | None = None,
) -> Ceiling:
    """Correlation over stimuli of the means of two halves of the repetitions, averaged over random halves.

    Parameters
    ----------
    responses
        [n_stimuli, n_repetitions, n_units]; NaN where a trial is missing. A stimulus counts for a unit where both
        halves have a trial; ``n_left_out`` counts the others.
    n_draws, seed
        Draws of `random_halves`.
    halves
        Pairs of repetition numbers to use instead.

    Returns
    -------
    Ceiling
        One row per draw. ``value`` is the reliability of half of the repetitions, ``corrected`` that of all of them,
        for noise of the same variance in every trial: ``factor`` is the mean over stimuli of 1 / trials in a half,
        divided by that of 1 / all trials. It is exact for halves of equal size, which random halves are, and close for
        others.
    """
    trials = _three_axes(responses, "responses", "stimuli × repetitions × units")
    present = np.isfinite(trials)
    if present.all():
        present = present[:1, :, :1]  # the same for all stimuli and units
    if halves is None:
        rng = np.random.Generator(np.random.PCG64(seed))
        drawn: Iterable[Sequence[BoolArray]] = (random_halves(present, rng) for _ in range(n_draws))
    else:
        drawn = (chosen_halves(present, pair) for pair in halves)
    values, factors, n_left_out = [], [], []
    for pair in drawn:
        values.append(pearson_rows(*(mean_of_finite(np.where(half, trials, np.nan), 1).T for half in pair)))
        factor, used = halves_factor(pair, present)
        factors.append(factor)
        n_left_out.append((~used).sum(axis=0))
    if not values:
        raise _error("split_half", "no halves to correlate", "0 draws", "at least 1 draw")
    shape = (len(values), trials.shape[2])
    factor = np.broadcast_to(mean_of_finite(np.stack(factors)), shape[1:])
    return Ceiling(np.stack(values), factor, np.broadcast_to(np.stack(n_left_out), shape))


def chosen_halves(present: BoolArray, halves: tuple[npt.ArrayLike, npt.ArrayLike]) -> tuple[BoolArray, BoolArray]:
    """Trials of the repetitions with these numbers that are not missing, as `random_halves` gives them."""
    chosen = np.zeros((2, present.shape[1], 1), dtype=bool)
    for half, numbers in zip(chosen, halves, strict=True):
        half[np.asarray(numbers)] = True
    return present & chosen[0], present & chosen[1]


def halves_factor(pair: Sequence[BoolArray], present: BoolArray) -> tuple[FloatArray, BoolArray]:
    """Number of all trials divided by that of a half [n_units], and which stimuli have both halves [n, n_units]."""
    sizes = np.stack([*(half.sum(axis=1) for half in pair), present.sum(axis=1)])
    used: BoolArray = np.asarray((sizes > 0).all(axis=0))
    inverse = 1.0 / np.maximum(sizes, 1)
    first, second, whole = mean_of_finite(np.where(used, inverse, np.nan), 1)
    return (first + second) / (2.0 * whole), used


def _median(values: FloatArray) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else np.nan


def group_mean(
    subjects: npt.ArrayLike,
    *,
    include_self: bool = False,
    min_others: int = 2,
    min_stimuli: int = 3,
) -> Ceiling:
    """Correlation of every subject with the mean of the others' standardised responses, unit by unit.

    How well others predict a subject, with most of their noise averaged out. Units must correspond across subjects.
    Nili et al. (2014, PLoS Comput. Biol. 10) call this the lower bound of the noise ceiling; with ``include_self`` it
    is their upper one.

    Parameters
    ----------
    subjects
        [n_subjects, n_stimuli, n_units]; NaN where a subject has no such stimulus or unit.
    include_self
        Average over all subjects, the left-out one too.
    min_others, min_stimuli
        A stimulus counts where as many of the others have it; a unit needs as many stimuli.

    Returns
    -------
    Ceiling
        One row per subject.
    """
    everyone = _three_axes(subjects, "subjects", "subjects × stimuli × units")
    n_others = len(everyone) if include_self else len(everyone) - 1
    if n_others < min_others:
        what, got = "too few subjects for a mean of the others", f"{len(everyone)} subjects"
        expected = f"at least {min_others} to average for each subject (min_others)"
        remedy = "lower min_others, or compare subjects in pairs with agreement or subject_pairs"
        raise _error("group_mean", what, got, expected, remedy)
    z = [standardised(one) for one in everyone]
    found = [
        correlation_with_mean(
            own,
            ((zs, np.isfinite(zs)) for other, zs in enumerate(z) if include_self or other != s),
            min_others=min_others,
            min_stimuli=min_stimuli,
        )
        for s, own in enumerate(everyone)
    ]
    n_left_out = np.stack([everyone.shape[1] - n_stimuli for _, n_stimuli in found])
    return Ceiling(np.stack([r for r, _ in found]), n_left_out=n_left_out)


def agreement(
    own: FloatArray,
    others: Iterable[tuple[FloatArray, BoolArray]],
    compare: Callable[[FloatArray, FloatArray], FloatArray] = pearson_columns,
) -> Ceiling:
    """Agreement of one subject with each of several others, unit by unit; one row per other subject.

    Parameters
    ----------
    own
        Responses [n, t], or patterns [t, t] of units.
    others
        The same of another subject, and which of its rows and columns are present, [n, t] each; read one by one.
    compare
        Function of the shared rows and columns of both, [m, u] each, to [u]; by default the correlation.
    """
    values = []
    for other, present in others:
        rows, units = present.any(axis=1), present.any(axis=0)
        found = np.full(own.shape[1], np.nan)
        found[units] = compare(own[rows][:, units], other[rows][:, units])
        values.append(found)
    return Ceiling(np.reshape(values, (-1, own.shape[1])))


def correlation_with_mean(
    own: FloatArray,
    others: Iterable[tuple[FloatArray, BoolArray]],
    *,
    min_others: int = 2,
    min_stimuli: int = 3,
) -> tuple[FloatArray, IntArray]:
    """Correlation of one subject's responses with the mean over others, unit by unit.

    Parameters
    ----------
    own
        [n, t].
    others
        Responses [n, t], usually `standardised`, and which of them are present, [n, t]; read one by one. A present
        value that is NaN leaves its unit undefined.
    min_others, min_stimuli
        A stimulus counts for a unit where as many others have it; a unit needs as many stimuli.

    Returns
    -------
    r, n_stimuli
        [t] each: the correlation, NaN where undefined, and the stimuli that count.
    """
    total, count = np.zeros(own.shape), np.zeros(own.shape, dtype=np.int64)
    for values, present in others:
        total += np.where(present, values, 0.0)
        count += present
    enough = (count >= min_others) & ~np.isnan(own)
    n_stimuli = enough.sum(axis=0)
    r = np.full(own.shape[1], np.nan)
    for unit in np.flatnonzero(n_stimuli >= min_stimuli):
        rows = enough[:, unit]
        mean = total[rows, unit] / count[rows, unit]
        r[unit] = pearson_columns(own[rows, unit][:, None], mean[:, None])[0]
    return r, n_stimuli


def standardised(responses: FloatArray) -> FloatArray:
    """Responses [n, t] with mean 0 and variance 1 over stimuli that are not missing; NaN where a unit is constant."""
    if np.isfinite(responses).all():
        mean, spread = responses.mean(axis=0), responses.std(axis=0)
    else:
        mean = mean_of_finite(responses)
        spread = np.sqrt(mean_of_finite((responses - mean) ** 2))
    return np.asarray((responses - mean) / np.where(spread > 0, spread, np.nan))


@dataclass(frozen=True)
class PairScores:
    """Scores by (source, target) subject; for a symmetric measure both orders have the same score."""

    n_subjects: int
    scores: dict[tuple[int, int], Score]

    @property
    def matrix(self) -> FloatArray:
        """Median over the target's units with a value, [source, target]; NaN on the diagonal and where undefined."""
        matrix = np.full((self.n_subjects, self.n_subjects), np.nan)
        for pair, score in self.scores.items():
            matrix[pair] = _median(score.value)
        return matrix

    @property
    def n_undefined(self) -> int:
        """Undefined values, over all pairs and units."""
        return sum(score.n_undefined for score in self.scores.values())


def subject_pairs(subjects: Sequence[npt.ArrayLike], measure: Measure, split: Split | None = None) -> PairScores:
    """Score every subject as a model of every other: ordered pairs for a measure that is not symmetric.

    Parameters
    ----------
    subjects
        [n_stimuli, n_units] each, of the same stimuli; units need not correspond.
    measure
        Unfitted population measures prepare each subject once.
    split
        Training and test stimuli, for measures that are fitted. Others score all stimuli at once without one.
    """
    arrays = _subjects(subjects, measure, split, "subject_pairs")
    whole = split is None and measure.scope == "population"
    whole = whole and len(arrays[0]) >= measure.fewest_stimuli
    whole = whole and all(np.isfinite(array).all() for array in arrays)
    ready = [measure.prepare(array) for array in arrays] if whole else []
    scores: dict[tuple[int, int], Score] = {}
    for i, j in permutations(range(len(arrays)), 2):
        if measure.symmetric and (j, i) in scores:
            scores[i, j] = scores[j, i]
        elif whole:
            value = np.asarray(measure.compare(ready[i], ready[j]))
            scores[i, j] = measure.explained(value, arrays[i], arrays[j])
        else:
            scores[i, j] = _score(measure, arrays[i], arrays[j], split)
    return PairScores(len(arrays), scores)


def pooled_source(subjects: Sequence[npt.ArrayLike], measure: Measure, split: Split | None = None) -> list[Score]:
    """Score all other subjects' units, side by side, as one model of every subject: one score per target subject.

    Parameters are those of `subject_pairs`.
    """
    arrays = _subjects(subjects, measure, split, "pooled_source")
    return [
        _score(measure, np.hstack([*arrays[:target], *arrays[target + 1 :]]), own, split)
        for target, own in enumerate(arrays)
    ]


def _score(measure: Measure, x: FloatArray, y: FloatArray, split: Split | None) -> Score:
    return measure.score(x, y) if split is None else measure.cross_validate(x, y, split)


def _subjects(subjects: Sequence[npt.ArrayLike], measure: Measure, split: Split | None, where: str) -> list[FloatArray]:
    """Subjects [n_stimuli, n_units] that the measure can compare."""
    arrays = [matrices(subject, subject)[0] for subject in subjects]
    if len(arrays) < 2:
        remedy = "use split_half for the repetitions of one subject"
        raise _error(where, "too few subjects", f"{len(arrays)} subjects", "at least 2", remedy)
    if len({len(array) for array in arrays}) > 1:
        what = "subjects have different numbers of stimuli"
        got = ", ".join(str(len(array)) for array in arrays) + " rows"
        expected = "one row per stimulus, the same stimuli in the same order for every subject"
        raise _error(where, what, got, expected, "keep the stimuli that all subjects have")
    if measure.needs_fit and split is None:
        what, expected = f"the measure '{measure.name}' must be fitted", "a split of lpact.splits"
        raise _error(where, what, "no split", expected)
    return arrays


def _three_axes(array: npt.ArrayLike, name: str, axes: str) -> FloatArray:
    values = np.asarray(array, dtype=np.float64)
    if values.ndim != 3 or 0 in values.shape:
        raise _error("ceiling", f"{name} must have three axes", f"shape {values.shape}", axes)
    return values


def _error(where: str, what: str, got: str, expected: str, remedy: str | None = None) -> InputError:
    return InputError(what, where=where, got=got, expected=expected, remedy=remedy)
