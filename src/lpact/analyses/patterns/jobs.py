"""Tasks of alignment patterns: one source against all regions of all subjects, ceilings, and reliabilities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from lpact.analyses.base import Frames, Scope
from lpact.analyses.patterns import tables
from lpact.analyses.patterns.arrays import chosen_layers
from lpact.analyses.patterns.config import PatternsSection, options_of
from lpact.analyses.patterns.populations import (
    Populations,
    measure_of,
    populations_of,
    read_subject,
    standardise,
)
from lpact.ceilings import split_half, trial_noise
from lpact.codes import Reason
from lpact.inputs.subjects import features_of
from lpact.inputs.workspace import Workspace
from lpact.math.columns import mean_of_finite, median_of_finite, varying_columns
from lpact.math.ridge import Targets
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray, IntArray
from lpact.measures import LinearPredictivity, LinearR2, Measure, Score
from lpact.measures.base import SOURCE_CONSTANT, mean_of_folds
from lpact.splits import contiguous
from lpact.store import Results, frame

Row = dict[str, Any]
Target = tuple[str, str]
"""Subject and region."""
Fold = tuple[IntArray, IntArray]

CODE = tuple(f"analyses/patterns/{name}.py" for name in ("config", "populations", "arrays", "jobs", "tables"))
JUDGING = (
    "alpha", "connectivity", "equivalence_bound", "layer_choice", "measures", "min_stimuli", "min_units",
    "model_trials", "models", "n_bootstrap", "pairs_per_target", "regions", "structure_draws", "untrained",
)  # fmt: skip
UNRELATED = ("name", "controls", "mechanisms", "nuisance", *(f"patterns.{own}" for own in JUDGING))
"""Parts of the configuration that no task depends on: they choose tasks, or judge results."""

OTHERS, EVERYBODY = "leave_one_out_mean", "all_including_self"
UNITS, REPRESENTATIONS = "units", "representations"
APART = "units do not correspond between subjects, and the measure has no mean of representations"
N_HALVES = 10
"""Random halves of the trials for the reliability of targets."""


@dataclass(frozen=True)
class Place:
    """The populations that are compared: subjects and regions of a dataset at a lag."""

    dataset: str
    lag_ms: float
    subjects: tuple[str, ...]
    regions: tuple[str, ...]

    @property
    def targets(self) -> list[Target]:
        """All populations."""
        return [(who, region) for who in self.subjects for region in self.regions]


@dataclass(frozen=True)
class PlaceJob:
    """A job about the populations of a dataset."""

    code: ClassVar[tuple[str, ...]] = CODE
    needs: ClassVar[tuple[str, ...]] = ()

    place: Place

    @property
    def models(self) -> tuple[str, ...]:
        """Models whose features it reads."""
        return ()

    @property
    def scope(self) -> Scope:
        """The dataset and the models."""
        return Scope(self.place.dataset, self.models, without=UNRELATED)

    def populations(self, workspace: Workspace) -> Populations:
        """All populations, kept while in use."""
        place = self.place
        return workspace.recall(
            ("patterns", place),
            lambda: populations_of(workspace, place.dataset, place.lag_ms, place.subjects, place.regions),
        )


@dataclass(frozen=True)
class MeasureJob(PlaceJob):
    """A job with one measure."""

    measure: str

    def comparison(self, workspace: Workspace) -> Comparison:
        """The measure with what it needs of all populations, kept while in use."""
        return workspace.recall(
            ("patterns", self.place, self.measure),
            lambda: Comparison(measure_of(workspace.config, self.measure), self.populations(workspace)),
        )


class Comparison:
    """One measure and all populations; representations of these are prepared, or put on a device, once."""

    def __init__(self, measure: Measure, populations: Populations) -> None:
        if isinstance(measure, LinearR2):
            measure.populations = populations.labels
        self.measure, self.populations = measure, populations
        self._prepared: dict[tuple[Target, bool], Any] = {}
        self._held: Targets | None = None

    def test(self, source: FloatArray, targets: Iterable[Target]) -> list[Score]:
        """Scores of a source [n_train + n_test, p] on test stimuli, fitted on training stimuli."""
        n = self.populations.n_train
        if not self.measure.needs_fit:
            return self._compared(source[n:], targets, test=True)
        return self._fitted(source, targets, [(np.arange(n), np.arange(n, len(source)))])[0]

    def training(self, source: FloatArray, targets: Iterable[Target], options: PatternsSection) -> list[Score]:
        """Scores of a source on training stimuli, cross-validated if the measure is fitted."""
        n, targets = self.populations.n_train, list(targets)
        if not self.measure.needs_fit:
            return self._compared(source[:n], targets, test=False)
        if not options.layer_folds:
            assert isinstance(self.measure, LinearR2)
            fitted = copy(self.measure).fit(source[:n], self.populations.values[:n])
            return self._split(fitted.training_score(), targets)
        folds = contiguous(n, options.layer_folds, gap=options.gap_events)
        by_fold = self._fitted(source, targets, list(folds))
        return [mean_of_folds(own, folds) for own in zip(*by_fold, strict=True)]

    def _fitted(self, source: FloatArray, targets: Iterable[Target], folds: Sequence[Fold]) -> list[list[Score]]:
        """Scores of every fold and target; measures of units take all populations in one fit."""
        own, measure, targets = self.populations, self.measure, list(targets)
        if isinstance(measure, LinearR2):
            self._held = self._held or measure.hold(own.values)
            found = (measure.score_held(source, self._held, *fold) for fold in folds)
            return [self._split(score, targets) for score in found]
        if isinstance(measure, LinearPredictivity):
            fits = ((copy(measure).fit(source[a], own.values[a]), b) for a, b in folds)
            return [self._split(fit.score(source[b], own.values[b]), targets) for fit, b in fits]
        pairs = [own.of(*target) for target in targets]
        return [[copy(measure).fit(source[a], y[a]).score(source[b], y[b]) for y in pairs] for a, b in folds]

    def of_mean(self, region: str, sources: Iterable[str], target: str) -> tuple[Score | None, str]:
        """Score of the mean of some subjects' region with that of one, and what was averaged; None if there is none."""
        own, sources = self.populations, list(sources)
        if region in own.comparable:
            mean = np.mean([own.of(who, region) for who in sources], axis=0)
            return self.test(mean, [(target, region)])[0], UNITS
        if self.measure.needs_fit:
            return None, ""
        pooled = self.measure.mean_of([self._target((who, region), test=True) for who in sources])
        if pooled is None:
            return None, ""
        value = np.asarray(self.measure.compare(pooled, self._target((target, region), test=True)))
        reason = np.where(np.isnan(value), "a subject's value is undefined", "")
        return Score(value, reason), REPRESENTATIONS

    def _compared(self, source: FloatArray, targets: Iterable[Target], *, test: bool) -> list[Score]:
        prepared = self.measure.prepare(source)
        found = []
        for target in targets:
            value = np.asarray(self.measure.compare(prepared, self._target(target, test=test)))
            y = self._rows(target, test=test)
            found.append(self.measure.explained(value, source, y))
        return found

    def _target(self, target: Target, *, test: bool) -> Any:
        if (target, test) not in self._prepared:
            self._prepared[target, test] = self.measure.prepare(self._rows(target, test=test))
        return self._prepared[target, test]

    def _rows(self, target: Target, *, test: bool) -> FloatArray:
        n = self.populations.n_train
        return self.populations.of(*target)[n:] if test else self.populations.of(*target)[:n]

    def _split(self, every: Score, targets: Iterable[Target]) -> list[Score]:
        """Scores of each population, from those of all units."""
        places = [self.populations.columns[target] for target in targets]
        return [Score(every.value[own], every.reason[own]) for own in places]


@dataclass(frozen=True)
class ReliabilityJob(PlaceJob):
    """How reliable the test responses of one subject are."""

    subject: str

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"patterns/reliability/{self.place.dataset}/{self.subject}"

    def run(self, workspace: Workspace, results: Results) -> Frames:  # noqa: ARG002
        """Correlate random halves of the trials."""
        own, place = self.populations(workspace), self.place
        test = own.stimuli[own.n_train :]
        read = read_subject(workspace, place.dataset, self.subject, place.lag_ms)
        read = read.select(regions=place.regions, stimuli=test)
        rows = []
        for region in place.regions:
            trials = read.select(regions=region).values
            trials = trials[:, :, np.isfinite(trials).any(axis=1).all(axis=0)]
            row: Row = {"dataset": place.dataset, "region": region, "target": self.subject}
            row |= {"n_units": trials.shape[2], "detail": "", "reason": Reason.OK.value}
            row |= {"reliability": None, "median_reliability": None, "n_undefined": trials.shape[2]}
            if trials.shape[1] < 2:
                row |= {
                    "detail": "one trial per test stimulus",
                    "reason": Reason.NO_REPEATED_MEASURE.value,
                }
            else:
                found = split_half(trials, N_HALVES, seed=workspace.config.seed).corrected
                row |= {
                    "n_undefined": int(np.isnan(found).sum()),
                    "reliability": _finite(mean_of_finite(found)),
                    "median_reliability": _finite(median_of_finite(found)),
                }
                if row["reliability"] is None:
                    row["reason"] = Reason.UNDEFINED_SCORE.value
            rows.append(row)  # fmt: skip
        return {tables.TARGETS.name: frame(tables.TARGETS, rows)}


@dataclass(frozen=True)
class BrainJob(MeasureJob):
    """One region of one subject against all regions of all others."""

    subject: str
    region: str

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        place = self.place.dataset
        return f"patterns/brain/{place}/{self.measure}/{self.subject}/{self.region}"

    def run(self, workspace: Workspace, results: Results) -> Frames:  # noqa: ARG002
        """Compare the region with its targets."""
        comparison = self.comparison(workspace)
        targets = [(who, r) for who, r in self.place.targets if who != self.subject]
        source = comparison.populations.of(self.subject, self.region)
        key: Row = {"dataset": self.place.dataset, "measure": self.measure}
        key |= {"source_region": self.region, "source": self.subject}
        rows = [
            key | {"target": who, "region": region} | _numbers(score, comparison.populations.n_units(who, region))
            for (who, region), score in zip(targets, comparison.test(source, targets), strict=True)
        ]
        return {tables.BRAIN_PAIRS.name: frame(tables.BRAIN_PAIRS, rows)}


@dataclass(frozen=True)
class CeilingJob(MeasureJob):
    """Means of brains against every subject, in one region."""

    region: str

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"patterns/ceilings/{self.place.dataset}/{self.measure}/{self.region}"

    def run(self, workspace: Workspace, results: Results) -> Frames:  # noqa: ARG002
        """Compare the means with every subject."""
        comparison, place = self.comparison(workspace), self.place
        rows = []
        for ceiling in (OTHERS, EVERYBODY):
            for target in place.subjects:
                sources = [who for who in place.subjects if ceiling == EVERYBODY or who != target]
                score, made_of = comparison.of_mean(self.region, sources, target)
                n_units = comparison.populations.n_units(target, self.region)
                numbers = _numbers(score, n_units) if score else _nothing(n_units, APART, Reason.UNITS_NOT_COMPARABLE)
                rows.append(
                    {"dataset": place.dataset, "measure": self.measure, "ceiling": ceiling, "region": self.region,
                     "target": target, "made_of": made_of, **numbers}
                )  # fmt: skip
        return {tables.CEILING_VALUES.name: frame(tables.CEILING_VALUES, rows)}


@dataclass(frozen=True)
class SourceJob(MeasureJob):
    """A job about one model."""

    model: str

    @property
    def models(self) -> tuple[str, ...]:
        """The model."""
        return (self.model,)

    def source(self, workspace: Workspace, layer: int) -> FloatArray:
        """Features of a layer that vary over training stimuli, standardised by these."""
        place, own = self.place, self.populations(workspace)
        found = features_of(workspace, place.dataset, place.subjects, own.stimuli, self.model, layer)
        varying = varying_columns(found[: own.n_train])
        return standardise(found if varying.all() else found[:, varying], own.n_train)

    def scores(self, comparison: Comparison, source: FloatArray) -> list[Score]:
        """Scores on test stimuli with all populations; undefined without columns."""
        targets, n_units = self.place.targets, comparison.populations.n_units
        if not source.shape[1]:
            return [comparison.measure.undefined(n_units(*target), SOURCE_CONSTANT) for target in targets]
        return comparison.test(source, targets)


@dataclass(frozen=True)
class ModelJob(SourceJob):
    """One layer of a model against all regions. ``choice``: the layer is one of several."""

    layer: int
    choice: bool

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"patterns/model/{self.place.dataset}/{self.measure}/{self.model}/{self.layer}"

    def run(self, workspace: Workspace, results: Results) -> Frames:  # noqa: ARG002
        """Compare the layer with its targets."""
        comparison, place = self.comparison(workspace), self.place
        own = comparison.populations
        source = self.source(workspace, self.layer)
        training: list[float | None] = [None] * len(place.targets)
        test = self.scores(comparison, source)
        if self.choice and source.shape[1]:
            found = comparison.training(source, place.targets, options_of(workspace.config))
            training = [_numbers(score, 0)["value"] for score in found]
        key: Row = {"dataset": place.dataset, "measure": self.measure}
        key |= {"model": self.model, "layer": self.layer}
        rows = [
            key | {"region": region, "target": who, "training": before} | _numbers(score, own.n_units(who, region))
            for (who, region), before, score in zip(place.targets, training, test, strict=True)
        ]
        return {tables.LAYERS.name: frame(tables.LAYERS, rows)}


@dataclass(frozen=True)
class TrialsJob(SourceJob):
    """The layer that was chosen for a region, with noise like that of the region in a typical subject.

    ``on_test``: layers are chosen by test scores. ``n_trials``: trials of a training and of a test stimulus in a
    typical subject. ``layers`` and ``reliabilities``: keys of the tasks that scored the layers and the targets' trials.
    """

    region: str
    on_test: bool
    n_trials: tuple[int, int]
    layers: tuple[str, ...]
    reliabilities: tuple[str, ...]

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """Keys of the tasks whose results it reads."""
        return (*self.layers, *self.reliabilities)

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"patterns/model_trials/{self.place.dataset}/{self.measure}/{self.model}/{self.region}"

    def _needed(self, results: Results) -> list[pl.DataFrame]:
        """Rows of the layers, and of the targets."""
        each = (tables.LAYERS.name, self.layers), (tables.TARGETS.name, self.reliabilities)
        return [pl.concat([results.load(key, [name])[name] for key in keys]) for name, keys in each]

    def run(self, workspace: Workspace, results: Results) -> Frames:
        """Choose the layer, add noise, and compare it with its targets."""
        comparison, place = self.comparison(workspace), self.place
        own = comparison.populations
        needed = workspace.recall(self.needs, lambda: self._needed(results))  # once for all regions
        scored, reliable = (rows.filter(region=self.region) for rows in needed)
        (layer,) = chosen_layers(scored, [self.region], place.subjects, on_test=self.on_test)
        noise = trial_noise(reliable["median_reliability"].fill_null(np.nan), self.n_trials[1])
        key: Row = {"dataset": place.dataset, "measure": self.measure, "model": self.model}
        key |= {"source_region": self.region, "layer": None, "noise": noise}
        if noise is None or np.isnan(layer):
            detail = "no noise of the region can be estimated" if noise is None else "no layer has a score"
            reason = Reason.NONPOSITIVE_RELIABILITY if noise is None else Reason.UNDEFINED_SCORE
            rows = [
                key | {"region": region, "target": who} | _nothing(own.n_units(who, region), detail, reason)
                for who, region in place.targets
            ]
            return {tables.MODEL_TRIALS.name: frame(tables.MODEL_TRIALS, rows)}
        key["layer"] = int(layer)
        rng = keyed_rng(workspace.config.seed, "patterns model trials", place.dataset, self.model, self.region)
        source = with_noise(self.source(workspace, int(layer)), own.n_train, noise, self.n_trials, rng)
        rows = [
            key | {"region": region, "target": who} | _numbers(score, own.n_units(who, region))
            for (who, region), score in zip(place.targets, self.scores(comparison, source), strict=True)
        ]
        return {tables.MODEL_TRIALS.name: frame(tables.MODEL_TRIALS, rows)}


def with_noise(
    source: FloatArray, n_train: int, noise: float, n_trials: tuple[int, int], rng: np.random.Generator
) -> FloatArray:
    """Means over simulated trials: features [n_train + n_test, p] plus normal noise, standardised again.

    ``noise`` is the standard deviation of one trial relative to that of the column over test stimuli, where noise of
    brains is measured; ``n_trials`` those of a training and of a test stimulus.
    """
    drawn = rng.standard_normal(source.shape)
    for rows, n in zip((slice(n_train), slice(n_train, None)), n_trials, strict=True):
        drawn[rows] *= noise / np.sqrt(n) * source[n_train:].std(axis=0)
    drawn += source
    return standardise(drawn, n_train)


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _numbers(score: Score, n_units: int) -> Row:
    """Columns of one score: means over units, as they are and with values below 0 set to 0."""
    of_units = score.value.ndim > 0
    value = _finite(mean_of_finite(score.value) if of_units else score.value)
    reasons = score.reason[score.reason != ""].tolist() if score.n_undefined else []
    return {
        "value": value,
        "clipped": _finite(mean_of_finite(score.value.clip(min=0.0))) if of_units else None,
        "n_units": n_units,
        "n_undefined": score.n_undefined if of_units else n_units * score.n_undefined,
        "detail": reasons[0] if reasons else "",
        "reason": (Reason.UNDEFINED_SCORE if value is None else Reason.OK).value,
    }


def _nothing(n_units: int, detail: str, reason: Reason) -> Row:
    """Columns of a score that cannot be computed."""
    return {"value": None, "clipped": None, "n_units": n_units, "n_undefined": n_units, "detail": detail,
            "reason": reason.value}  # fmt: skip
