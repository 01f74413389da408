"""Terms of a noise-corrected consistency: what correlates with what, in all trials and in halves."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from lpact.ceilings.trials import Trials
from lpact.errors import SplitError
from lpact.math.scores import pearson_columns
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.measures import Measure

RowsOfFold: TypeAlias = tuple[IntArray, IntArray]
Group: TypeAlias = "list[tuple[Trials, Pair]]"
T = TypeVar("T")
NOT_CORRECTABLE = "the measure is not a correlation of predictions or representations"
NO_REPETITIONS = "no unit of the {} has two trials of a stimulus"
_MOST_VALUES = 2**25
"""Values of halves that are fitted at once (256 MB)."""


@dataclass(frozen=True)
class Pair:
    """What counts for a source and a target, and the terms of their ratio.

    Attributes
    ----------
    rows, half_rows
        [n]: stimuli that count, and those that count in the halves; None without noise correction.
    reason
        Why there is no noise correction.
    of_units
        Whether the last axis of the terms is that of the target's units.
    source_units, target_units
        Units without a missing response.
    full
        [F, t], r on all trials, with t = 1 for a population.
    half, r_source, r_target
        [D, F, t]: numerators from halves, and reliabilities of halves.
    factors
        [2, D, 1, t]: number of all trials divided by that of a half, of source and target.
    """

    rows: BoolArray
    half_rows: BoolArray | None
    reason: str
    of_units: bool
    source_units: BoolArray
    target_units: BoolArray
    full: FloatArray
    half: FloatArray
    r_source: FloatArray
    r_target: FloatArray
    factors: FloatArray

    @property
    def n_without_halves(self) -> int:
        """Stimuli that count, but not in the halves."""
        return 0 if self.half_rows is None else int((self.rows & ~self.half_rows).sum())


def pair_terms(
    cases: Sequence[tuple[Trials, Sequence[Trials]]],
    measure: Measure,
    folds: list[RowsOfFold],
    reason: str = "",
) -> list[list[Pair]]:
    """Terms of every source with each of its targets, without halves where a reason says so.

    Targets of a source for which the same stimuli count share the work.
    """
    reason = reason or ("" if _correctable(measure) else NOT_CORRECTABLE)
    unfitted = not measure.needs_fit and measure.scope == "population"
    found: list[list[Pair]] = []
    blocks: list[tuple[Trials, Group]] = []
    parts: dict[tuple[int, bytes], Trials] = {}

    def only(population: Trials, units: BoolArray) -> Trials:
        """The population with these units, which is the same object for all pairs."""
        if units.all():
            return population
        key = id(population), units.tobytes()
        if key not in parts:
            parts[key] = population.only(units)
        return parts[key]

    for x, ys in cases:
        pairs = [_pair(x, y, measure, reason, len(folds)) for y in ys]
        groups: dict[tuple[bytes, bytes | None], Group] = {}
        for y, pair in zip(ys, pairs, strict=True):
            halves = None if pair.half_rows is None else pair.half_rows.tobytes()
            if pair.source_units.any() and pair.target_units.any():
                own = only(y, pair.target_units), pair
                groups.setdefault((pair.rows.tobytes(), halves), []).append(own)
        here = [(only(x, group[0][1].source_units), group) for group in groups.values()]
        if unfitted:
            blocks += here
        else:
            terms = _predict if _correctable(measure) else _score
            for source, group in here:
                terms(source, group, measure, folds)
        found.append(pairs)
    _compare(blocks, measure, folds)
    return found


def _correctable(measure: Measure) -> bool:
    """Whether the measure is a Pearson correlation of predictions, or compares representations without a fit."""
    if not measure.correctable:
        return False
    if measure.scope == "population":
        return not measure.needs_fit
    return hasattr(measure, "predict") and getattr(measure, "metric", "pearson") == "pearson"


def _pair(x: Trials, y: Trials, measure: Measure, reason: str, n_folds: int) -> Pair:
    """What counts for this source and target; all terms are still undefined.

    Of answers, whose columns are alike on both sides, stimuli that lack a column are left out, not the column.
    """
    among = np.all if measure.behavioural else np.any
    rows: BoolArray = np.asarray(among(np.isfinite(x.mean), axis=1) & among(np.isfinite(y.mean), axis=1))
    noisy = [y] if x.noise_free else [y, x]
    half_rows = rows.copy()
    for one in noisy:
        half_rows &= among(one.has_halves, axis=1)
    for one in noisy:
        if not reason and not one.has_halves[rows].any():
            reason = NO_REPETITIONS.format(one.name)
    # Where all stimuli count in the halves too, one array says so, and fits are shared.
    halves = None if reason else rows if (half_rows == rows).all() else half_rows
    n_draws = 0 if halves is None else y.draws.n
    n_units = y.mean.shape[1] if measure.scope == "unit" else 1
    half, r_source, r_target = np.full((3, n_draws, n_folds, n_units), np.nan)
    return Pair(
        rows,
        halves,
        reason,
        measure.scope == "unit",
        x.complete(rows, halves),
        y.complete(rows, halves),
        np.full((n_folds, n_units), np.nan),
        half,
        r_source,
        r_target,
        np.full((2, n_draws, 1, n_units), np.nan),
    )


def _predict(
    x: Trials,
    group: Group,
    measure: Measure,
    folds: list[RowsOfFold],
) -> None:
    """Terms of predictions, for targets for which the same stimuli count."""
    ys, pairs = zip(*group, strict=True)
    rows, half_rows, n_draws = pairs[0].rows, pairs[0].half_rows, len(pairs[0].half)
    n_values = 2 * sum(y.mean.size for y in ys)
    at_once = max(1, _MOST_VALUES // n_values) if x.noise_free else 1
    batches = [range(d, min(d + at_once, n_draws)) for d in range(0, n_draws, at_once)]
    for number, batch in enumerate(batches or [range(0)]):
        jobs = [_Job(x.mean, rows, [y.mean for y in ys])] if number == 0 else []
        for draw in batch:
            _set_factors(x, group, draw)
            halves = [y.half_means(draw, slice(None)) for y in ys]
            sources = (x.mean, x.mean) if x.noise_free else x.half_means(draw, slice(None))
            jobs += [_Job(source, half_rows, [pair[half] for pair in halves]) for half, source in enumerate(sources)]
        for fold, (train, test) in enumerate(folds):
            p = [np.hstack(own) for own in _predictions(measure, jobs, train, test)]
            s = [np.hstack([y[job.of(test)] for y in job.targets]) for job in jobs]
            if number == 0:
                _share(group, "full", fold, _r(p.pop(0), s.pop(0), measure))
            for k, draw in enumerate(batch):
                (p1, p2), (s1, s2) = p[2 * k : 2 * k + 2], s[2 * k : 2 * k + 2]
                _share(group, "half", (draw, fold), _r(p1, s2, measure))
                _share(group, "r_source", (draw, fold), _r(p1, p2, measure))
                _share(group, "r_target", (draw, fold), _r(s1, s2, measure))


def _share(group: Group, term: str, place: int | tuple[int, int], values: FloatArray) -> None:
    """Give every target the values of its units, of those of all targets."""
    first = 0
    for y, pair in group:
        last = first + y.mean.shape[1]
        getattr(pair, term)[place][pair.target_units] = values[first:last]
        first = last


class _Job(NamedTuple):
    """A map to fit: a source [n, p], the stimuli that count [n], and targets [n, t]."""

    source: FloatArray
    rows: BoolArray
    targets: list[FloatArray]

    def of(self, rows: IntArray) -> IntArray:
        """Those of the rows that count."""
        return rows[self.rows[rows]]


def _predictions(measure: Measure, jobs: list[_Job], train: IntArray, test: IntArray) -> list[list[FloatArray]]:
    """Predictions of test rows, by job and target. Jobs in a row with one source are fitted together."""
    found = []
    for _, same in groupby(jobs, key=lambda job: (id(job.source), id(job.rows))):
        together = list(same)
        first = together[0]
        x = first.source[first.of(train)]
        ys = [y[first.of(train)] for job in together for y in job.targets]
        predicted = _fitted(measure, x, ys, first.source[first.of(test)])
        n = len(first.targets)
        found += [predicted[i : i + n] for i in range(0, len(ys), n)]
    return found


def _fitted(measure: Measure, x: FloatArray, ys: list[FloatArray], x_test: FloatArray) -> list[FloatArray]:
    """Predictions for ``x_test`` of maps from x to every target; of one map where units are fitted one by one.

    NaN where training stimuli are too few for the validation of the measure.
    """
    try:
        return _mapped(measure, x, ys, x_test)
    except SplitError:
        return [np.full((len(x_test), y.shape[1]), np.nan) for y in ys]


def _mapped(measure: Measure, x: FloatArray, ys: list[FloatArray], x_test: FloatArray) -> list[FloatArray]:
    from lpact.measures.predictivity import LinearPredictivity

    if isinstance(measure, LinearPredictivity) and measure.grid.selection.per_target:
        predicted = copy(measure).fit(x, np.hstack(ys)).predict(x_test)
        return np.split(predicted, np.cumsum([y.shape[1] for y in ys])[:-1], axis=1)
    return [copy(measure).fit(x, y).predict(x_test) for y in ys]  # type: ignore[attr-defined]


def _r(a: FloatArray, b: FloatArray, measure: Measure) -> FloatArray:
    few = len(a) < measure.fewest_stimuli
    return np.full(a.shape[1], np.nan) if few else pearson_columns(a, b)


def _compare(blocks: list[tuple[Trials, Group]], measure: Measure, folds: list[RowsOfFold]) -> None:
    """Terms of representations. Each is prepared once; those of targets are kept for one fold and draw."""
    targets = {id(y.values) for _, group in blocks for y, _ in group}
    n_draws = max((len(pair.half) for _, group in blocks for _, pair in group), default=0)
    for fold, (_, test) in enumerate(folds):
        prepared = _Prepared(measure, targets, keep_features=n_draws > 0)
        for x, group in blocks:
            at = test[group[0][1].rows[test]]
            if len(at) >= measure.fewest_stimuli:
                source = prepared.of_all(x, at)
                for y, pair in group:
                    pair.full[fold] = measure.compare(source, prepared.of_all(y, at))
        for draw in range(n_draws):
            prepared.forget_trials()
            for x, group in blocks:
                half_rows = group[0][1].half_rows
                if half_rows is None or half_rows[test].sum() < measure.fewest_stimuli:
                    continue
                at = test[half_rows[test]]
                _set_factors(x, group, draw)
                first, _, r_source = prepared.of_halves(x, at, draw)
                for y, pair in group:
                    _, s2, r_target = prepared.of_halves(y, at, draw)
                    pair.half[draw, fold] = measure.compare(first, s2)
                    pair.r_source[draw, fold] = r_source
                    pair.r_target[draw, fold] = r_target


class _Prepared:
    """Representations of targets, which may be sources too, and of features, that were prepared already."""

    def __init__(self, measure: Measure, targets: Container[int], *, keep_features: bool) -> None:
        self._measure, self._targets, self._keep_features = measure, targets, keep_features
        self._made: dict[tuple[bool, int, bytes], Any] = {}

    def forget_trials(self) -> None:
        """Keep features alone, which are the same in all draws."""
        self._made = {key: made for key, made in self._made.items() if key[0]}

    def of_all(self, population: Trials, at: IntArray) -> Any:
        """Of all trials."""

        def made() -> Any:
            if population.noise_free:
                return self._measure.prepare(population.mean[at])
            return self._measure.prepare_trials(population.values[at])

        return self._once(population, at, made)

    def of_halves(self, population: Trials, at: IntArray, draw: int) -> tuple[Any, Any, Any]:
        """Of both halves of one draw, and what they compare to; 1 without noise."""
        if population.noise_free:
            own = self.of_all(population, at)
            return own, own, 1.0

        def made() -> tuple[Any, Any, Any]:
            first, second = map(self._measure.prepare_trials, population.halves(draw, at))
            return first, second, self._measure.compare(first, second)

        return self._once(population, at, made)

    def _once(self, population: Trials, at: IntArray, make: Callable[[], T]) -> T:
        free = population.noise_free
        if not (id(population.values) in self._targets or (free and self._keep_features)):
            return make()
        key = free, id(population.values), at.tobytes()
        if key not in self._made:
            self._made[key] = make()
        return cast(T, self._made[key])


def _score(
    x: Trials,
    group: Group,
    measure: Measure,
    folds: list[RowsOfFold],
) -> None:
    """Scores of the mean over trials, for measures that are not corrected."""
    rows = group[0][1].rows
    for fold, (train, test) in enumerate(folds):
        fit, at = train[rows[train]], test[rows[test]]
        for y, pair in group:
            one = copy(measure).fit(x.mean[fit], y.mean[fit]) if measure.needs_fit else measure
            value = one.score(x.mean[at], y.mean[at]).value
            pair.full[fold, pair.target_units if pair.of_units else 0] = value


def _set_factors(x: Trials, group: Group, draw: int) -> None:
    """Note how many times more all trials are than those of a half."""
    for y, pair in group:
        if pair.half_rows is None:
            continue
        target = y.factor(draw, pair.half_rows)
        source = target if x.noise_free else x.factor(draw, pair.half_rows).mean()
        if pair.of_units:
            pair.factors[0, draw, 0, pair.target_units] = source
            pair.factors[1, draw, 0, pair.target_units] = target
        else:
            pair.factors[:, draw, 0, 0] = source.mean(), target.mean()
