"""What is compared: responses of all subjects of a dataset to the stimuli that they share, and features of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lpact.analyses.turing.config import ALL, TuringSection, options_of
from lpact.ceilings import consistency, split_half, trial_noise
from lpact.ceilings.consistency import all_consistencies
from lpact.config import StudyConfig
from lpact.errors import SplitError
from lpact.inputs.prepare import Placed, compute_settings
from lpact.inputs.responses import stack_recordings
from lpact.inputs.subjects import shared_stimuli
from lpact.inputs.workspace import Workspace
from lpact.math.columns import mean_of_finite, median_of_finite, varying_columns
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray, IntArray
from lpact.measures import MEASURES, LinearPredictivity, Measure
from lpact.splits import alternating_halves, contiguous, grouped
from lpact.stats import autocorrelation

Fold = tuple[IntArray, IntArray]

RANDOM_TRAINING = 0.8
"""Share of stimuli in training, with random folds."""
N_INNER = 3
"""Folds within the training stimuli, to choose a layer."""
ALIKE = 0.1
"""Autocorrelation of neighbouring stimuli above which they are not exchangeable."""
N_ORDERS = 10
"""Random orders of the stimuli for the chance level of a measure."""
HALVES_BLOCKS = 10
"""Blocks of stimuli that are dealt to two halves, where a layer of an unfitted measure is chosen."""


@dataclass(frozen=True, eq=False)
class Brains:
    """Responses of every subject at one lag to the stimuli that all of them have; ``trials`` are [n, r, units]."""

    stimulus_ids: tuple[str, ...]
    groups: tuple[str, ...]
    trials: Mapping[str, FloatArray]
    regions: Mapping[str, tuple[str, ...]]

    def only(self, region: str) -> Brains:
        """The units of one region."""
        if region == ALL:
            return self
        kept = {who: np.array(own) == region for who, own in self.regions.items()}
        trials = {who: np.ascontiguousarray(v[:, :, kept[who]]) for who, v in self.trials.items()}
        regions = {who: (region,) * int(own.sum()) for who, own in kept.items()}
        return replace(self, trials=trials, regions=regions)

    @cached_property
    def n_trials(self) -> int:
        """Trials of a stimulus in a typical brain: the median over subjects of their mean number."""
        present = [np.isfinite(v).any(axis=2).sum(axis=1).mean() for v in self.trials.values()]
        return max(1, round(float(np.median(present))))

    @cached_property
    def repeated(self) -> bool:
        """Whether each subject has two trials of a stimulus. Else no pair is corrected: corrected values are higher."""
        return all((np.isfinite(v).sum(axis=1) > 1).any() for v in self.trials.values())

    @cached_property
    def neighbours_alike(self) -> bool:
        """Whether neighbouring stimuli have similar responses, as in time series (median over units)."""
        found: list[float] = []
        for own in self.trials.values():
            mean = mean_of_finite(own, 1)
            complete = mean[:, varying_columns(mean)]
            found += autocorrelation(complete, max_lag=1)[1].tolist() if complete.size else []
        return median_of_finite(np.array(found)) > ALIKE

    def noise(self, n_halves: int, seed: int) -> float | None:
        """`trial_noise` of a typical brain, from split halves (median over units); None where it is undefined."""
        if self.n_trials < 2:
            return None
        each = [split_half(own, n_halves, seed=seed).corrected for own in self.trials.values()]
        return trial_noise([median_of_finite(own) for own in each], self.n_trials)


def recordings_of(workspace: Workspace, dataset: str, subject: str) -> list[Placed]:
    """A subject's recordings. Of answers, what does not vary counts: a subject may never choose an alternative."""
    answers = any(MEASURES.get(name).behavioural for name in options_of(workspace.config).measures)
    return workspace.recordings_of(dataset, subject, keep_constant=answers)


def brains_of(workspace: Workspace, dataset: str, subjects: Sequence[str], lag_ms: float) -> Brains:
    """The subjects of a dataset at one lag."""
    entry = workspace.entry(dataset)
    read = [stack_recordings(recordings_of(workspace, dataset, who), entry, lag_ms) for who in subjects]
    shared = shared_stimuli(read)
    kept = {own.subject: own.select(stimuli=shared) for own in read}
    first = kept[subjects[0]]
    return Brains(
        first.stimulus_ids,
        first.groups or (),
        {who: own.values for who, own in kept.items()},
        {who: own.regions or () for who, own in kept.items()},
    )


def with_trials(features: FloatArray, brains: Brains, noise: float, seed: int, *key: str | int) -> FloatArray:
    """Simulated trials of a model, [n, r, columns]: features plus noise, relative to the spread of each column."""
    rng = keyed_rng(seed, "turing model trials", *key)
    shape = (len(features), brains.n_trials, features.shape[1])
    trials: FloatArray = features[:, None] + noise * features.std(axis=0) * rng.standard_normal(shape)
    return trials


# --- measures and folds ---------------------------------------------------------------------------


def measure_of(study: StudyConfig, name: str) -> Measure:
    """A measure with its options, and the settings of the study."""
    options = options_of(study)
    built = MEASURES.build(name, options.options.get(name), where="turing.measures")
    if isinstance(built, LinearPredictivity):
        return LinearPredictivity(built.options, alphas=options.alphas, compute=compute_settings(study.readout))
    return built


@dataclass(frozen=True, eq=False)
class Folds:
    """Training and test stimuli; without ``rows`` all stimuli are compared at once."""

    made_by: str
    rows: tuple[Fold, ...] = ()
    nearest: int | None = None
    gap: int = 0

    def within(self, measure: Measure) -> Measure:
        """The measure with the gap of the folds in its own validation."""
        if self.gap and isinstance(measure, LinearPredictivity):
            measure = copy(measure)
            measure.gap = self.gap
        return measure


def folds_of(options: TuringSection, measure: Measure, groups: Sequence[str], n: int, *, choice: bool) -> Folds:
    """Folds of a measure; ``choice``: layers are chosen on training stimuli.

    Raises `lpact.errors.SplitError` where there are too few stimuli.
    """
    if not measure.needs_fit:
        if not choice:
            return Folds("all")
        first, second = alternating_halves(n, min(HALVES_BLOCKS, n // 2))
        return Folds("alternating halves", ((first, second), (second, first)), 1)
    if options.split_by == "random":
        orders = [np.random.RandomState(s).permutation(n) for s in range(options.n_folds)]
        n_train = int(np.ceil(RANDOM_TRAINING * n))
        return Folds("random", tuple((own[:n_train], own[n_train:]) for own in orders))
    by_story = options.split_by == "story"
    if options.split_by == "auto":
        by_story = options.n_folds <= len({*groups}) < n
    if by_story:
        split = grouped(groups, min(options.n_folds, len({*groups})))
    else:
        split = contiguous(n, options.n_folds, gap=options.gap_events)
    nearest = split.check().nearest
    n_train, n_test = (min(len(fold[side]) for fold in split) for side in (0, 1))
    if n_test < measure.fewest_stimuli:
        raise SplitError(
            f"a test set has {n_test} stimuli, and the measure needs {measure.fewest_stimuli}",
            where="option 'turing.n_folds'",
            remedy="use fewer folds",
        )
    if isinstance(measure, LinearPredictivity):
        contiguous(n_train, measure.n_blocks, gap=split.gap).check()
    if choice and n_train // N_INNER <= 2 * split.gap:  # blocks have a gap on both sides
        raise SplitError(
            f"{n_train} training stimuli are too few to choose a layer with gaps of {split.gap}",
            where="option 'turing.gap_events'",
            remedy="lower turing.gap_events, or list one layer per model",
        )
    return Folds(split.kind, tuple(split), nearest, split.gap)


def training_scores(measure: Measure, X: FloatArray, trials: FloatArray, folds: Folds) -> list[float]:
    """Uncorrected agreement on the training stimuli of every fold; fitted measures are cross-validated within them."""
    target = mean_of_finite(trials, 1)
    target = target[:, np.isfinite(target).all(axis=0)]
    found = []
    for train, _ in folds.rows:
        if not measure.needs_fit:
            found.append(consistency(X[train], trials[train], measure, estimator="none").median)
        elif not target.shape[1]:
            found.append(np.nan)
        else:
            inner = contiguous(len(train), N_INNER, gap=folds.gap)
            own = measure.cross_validate(X[train], target[train], inner)
            found.append(median_of_finite(own.value))
    return found


def chance_levels(
    measure: Measure,
    cases: Sequence[tuple[FloatArray, Sequence[FloatArray]]],
    brains: Brains,
    folds: Folds,
    seed: int,
    subsample: Mapping[str, int],
) -> list[list[float]]:
    """Uncorrected agreement of sources with their targets, to whose stimuli their own do not belong.

    The stimuli of a source are in random order or, where neighbours have similar responses, shifted, which keeps
    neighbours. 0 for fitted measures, and for others that are `zero_at_chance`, unless neighbours are alike.
    """
    if measure.needs_fit or (measure.zero_at_chance and not brains.neighbours_alike):
        return [[0.0] * len(targets) for _, targets in cases]
    n, found = len(brains.stimulus_ids), []
    for k in range(N_ORDERS):
        rng = keyed_rng(seed, "turing chance", k)
        order = rng.permutation(n)
        if brains.neighbours_alike:
            order = np.roll(np.arange(n), rng.integers(n // 10, n - n // 10))
        every = all_consistencies(
            [(X[order], targets) for X, targets in cases], measure, folds.rows or None,
            estimator="none", seed=seed, **subsample,  # type: ignore[arg-type]
        )  # fmt: skip
        found.append([[one.median for one in own] for own in every])
    return [[float(own) for own in mean_of_finite(np.array(of_source))] for of_source in zip(*found, strict=True)]
