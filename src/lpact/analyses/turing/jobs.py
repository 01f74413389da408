"""Tasks of the Turing test: one source against all targets, and brain–brain agreement with fewer data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import polars as pl

from lpact.analyses.base import Frames, Scope
from lpact.analyses.turing import tables
from lpact.analyses.turing.brains import (
    Brains,
    brains_of,
    chance_levels,
    folds_of,
    measure_of,
    training_scores,
    with_trials,
)
from lpact.analyses.turing.config import Growth, TuringSection, options_of, time_of
from lpact.ceilings import Consistency, between_subjects, growth, pool
from lpact.ceilings.consistency import NOT_ASKED, Estimator, all_consistencies
from lpact.codes import Reason
from lpact.inputs.subjects import features_of
from lpact.inputs.workspace import Workspace
from lpact.math.columns import mean_of_finite, median_of_finite
from lpact.math.types import FloatArray
from lpact.measures import Measure
from lpact.store import Results, frame

Row = dict[str, Any]

CODE = tuple(f"analyses/turing/{name}.py" for name in ("config", "brains", "jobs", "tables"))
UNRELATED = (
    "name", "controls", "mechanisms", "nuisance", "turing.alpha", "turing.equivalence_bound", "turing.test",
    "turing.instances", "turing.growth", "turing.layer_choice", "turing.models", "turing.measures", "turing.regions",
    "turing.lags_ms", "turing.model_trials",
)  # fmt: skip
"""Parts of the configuration that no task depends on: they choose tasks, or judge results."""

BRAIN, POOLED, MODEL, TRIALS = "brain", "pooled", "model", "model_trials"
"""Kinds of sources."""
OTHERS = "others"
SINGLE_TRIALS = "a subject has one trial per stimulus"
NO_LAYER = -1


def finite(value: float | None) -> float | None:
    """A finite number, or None."""
    return None if value is None or not np.isfinite(value) else float(value)


def estimator_of(options: TuringSection, brains: Brains) -> Estimator:
    """The noise correction of all pairs: a mixture with uncorrected ones would favour whoever has fewer of these."""
    return options.estimator if brains.repeated else "none"


def _why(reason: str, brains: Brains) -> str:
    """Why a value is missing or not corrected."""
    return SINGLE_TRIALS if reason == NOT_ASKED and not brains.repeated else reason


def once(measure: Measure, options: TuringSection) -> bool:
    """Whether each pair of brains is compared once; only sources are subsampled, so that directions then differ."""
    return measure.symmetric and not options.source_units


@dataclass(frozen=True)
class Place:
    """Where brains are compared: a dataset, a region, a lag and a measure; and the subjects."""

    dataset: str
    region: str
    lag_ms: float
    measure: str
    subjects: tuple[str, ...]

    @property
    def name(self) -> str:
        """The place as one word."""
        return f"{self.dataset}/{self.region}/{time_of(self.lag_ms)}/{self.measure}"

    @property
    def key(self) -> Row:
        """Columns of the place in every table."""
        return {
            "dataset": self.dataset,
            "region": self.region,
            "time": time_of(self.lag_ms),
            "measure": self.measure,
            "lag_ms": self.lag_ms,
        }


@dataclass(frozen=True)
class PlaceJob:
    """A job at one place."""

    code: ClassVar[tuple[str, ...]] = CODE

    place: Place

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of the tasks whose results it reads."""
        return ()

    @property
    def models(self) -> tuple[str, ...]:
        """Models whose features it reads."""
        return ()

    @property
    def scope(self) -> Scope:
        """The dataset and the models."""
        return Scope(self.place.dataset, self.models, without=UNRELATED)

    def brains(self, workspace: Workspace) -> Brains:
        """The subjects, kept while their lag is in use."""
        place = self.place
        key = ("turing", place.dataset, place.lag_ms, place.subjects)

        def read() -> Brains:
            return brains_of(workspace, place.dataset, place.subjects, place.lag_ms)

        def of_region() -> Brains:
            return workspace.recall(key, read).only(place.region)

        return workspace.recall((*key, place.region), of_region)


class Source(NamedTuple):
    """A brain, all brains but one, or a layer of a model."""

    kind: str
    name: str
    layer: int = NO_LAYER


@dataclass(frozen=True)
class SourceJob(PlaceJob):
    """Sources against every other subject. ``choice``: the layer is chosen among several.

    Fits are made for each source alone. Representations of targets are prepared once for all sources of a job.
    """

    sources: tuple[Source, ...]
    choice: bool = False

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study, with its first source and how many more there are."""
        kind, first, layer = self.sources[0]
        own = first if layer == NO_LAYER else f"{first}/{layer}"
        more = f"+{len(self.sources) - 1}" if len(self.sources) > 1 else ""
        return f"turing/{kind}/{self.place.name}/{own}{more}"

    @property
    def models(self) -> tuple[str, ...]:
        """Models among the sources."""
        return tuple(dict.fromkeys(own.name for own in self.sources if own.layer != NO_LAYER))

    def run(self, workspace: Workspace, results: Results) -> Frames:  # noqa: ARG002
        """Compare the sources with their targets."""
        study, options = workspace.config, options_of(workspace.config)
        brains, measure = self.brains(workspace), measure_of(study, self.place.measure)
        folds = folds_of(options, measure, brains.groups, len(brains.stimulus_ids), choice=self.choice)
        measure = folds.within(measure)
        rows: dict[Source, list[Row]] = {}
        cases = []
        for source in self.sources:
            targets = _targets(source, brains, measure, options)
            values = self._values(source, workspace, brains)
            if values is None:
                detail = "no noise of brains can be estimated"
                rows[source] = [self._row(source, who, detail) for who in targets]
            else:
                cases.append(Case(source, values, targets))
        for n_drawn, same in groupby(cases, lambda case: case.n_drawn(options.source_units)):
            group = list(same)
            subsample: dict[str, int] = {}
            if n_drawn:
                subsample = {"source_units": n_drawn, "source_draws": options.source_draws}
            compared = [(case.values, list(case.targets.values())) for case in group]
            found = all_consistencies(
                compared,
                measure,
                folds.rows or None,
                estimator=estimator_of(options, brains),
                n_halves=options.n_halves,
                seed=study.seed,
                **subsample,  # type: ignore[arg-type]
            )
            chance = chance_levels(measure, compared, brains, folds, study.seed, subsample)
            for case, of_case, by_chance in zip(group, found, chance, strict=True):
                several = self.choice and case.source.kind == MODEL
                rows[case.source] = [
                    self._row(case.source, who)
                    | _numbers(own, level)
                    | {
                        "detail": _why(own.reason, brains),
                        "n_units": y.shape[-1],
                        "n_source_units": n_drawn or case.values.shape[-1],
                        "by_fold": [] if case.source.layer == NO_LAYER else own.by_fold.ravel(),
                        "training": training_scores(measure, case.values, y, folds) if several else [],
                    }
                    for (who, y), own, level in zip(case.targets.items(), of_case, by_chance, strict=True)
                ]  # fmt: skip
        every = [row for source in self.sources for row in rows[source]]
        return {tables.PAIRS.name: frame(tables.PAIRS, every)}

    def _values(self, source: Source, workspace: Workspace, brains: Brains) -> FloatArray | None:
        """Trials of a brain or of several [n, r, p], or features of a model [n, p]."""
        if source.kind == BRAIN:
            return brains.trials[source.name]
        if source.kind == POOLED:
            return pool([v for who, v in brains.trials.items() if who != source.name])
        study, place = workspace.config, self.place
        features = features_of(workspace, place.dataset, place.subjects, brains.stimulus_ids, source.name, source.layer)
        if source.kind == MODEL:
            return features
        noise = brains.noise(options_of(study).n_halves, study.seed)
        if noise is None:
            return None
        key = (place.dataset, place.region, time_of(place.lag_ms), source.name, source.layer)
        return with_trials(features, brains, noise, study.seed, *key)

    def _row(self, source: Source, target: str, detail: str = "") -> Row:
        """Columns of a row without numbers."""
        nothing: Row = dict.fromkeys(("value", "uncorrected", "reliability_source", "reliability_target"))
        zero = dict.fromkeys(
            ("n_units", "n_source_units", "n_undefined", "n_values", "n_stimuli", "n_stimuli_left_out",
             "n_source_left_out"), 0
        )  # fmt: skip
        return {
            **self.place.key,
            "kind": source.kind,
            "source": OTHERS if source.kind == POOLED else source.name,
            "layer": source.layer,
            "target": target,
            **nothing,
            **zero,
            "chance": None,
            "above_chance": None,
            "corrected": False,
            "by_unit": [],
            "by_fold": [],
            "training": [],
            "detail": detail,
            "reason": Reason.NONPOSITIVE_RELIABILITY.value if detail else Reason.OK.value,
        }


class Case(NamedTuple):
    """A source, its values, and the trials of its targets."""

    source: Source
    values: FloatArray
    targets: dict[str, FloatArray]

    def n_drawn(self, most: int) -> int:
        """How many units of the source to draw; 0: all."""
        return min(most, int(self.values.shape[-1]))


def _targets(source: Source, brains: Brains, measure: Measure, options: TuringSection) -> dict[str, FloatArray]:
    """Subjects that a source is compared with; of a symmetric measure, each pair of brains once."""
    if source.kind == POOLED:
        return {source.name: brains.trials[source.name]}
    names = list(brains.trials)
    if source.kind == BRAIN:
        first = names.index(source.name)
        others = [name for name in names if name != source.name]
        names = names[first + 1 :] if once(measure, options) else others
    return {name: brains.trials[name] for name in names}


def _numbers(own: Consistency, chance: float) -> Row:
    """Columns of one consistency. The share above chance is corrected for noise by as much as the value."""
    value = own.median
    above = value
    if chance:
        uncorrected = median_of_finite(own.uncorrected)
        scale = value / uncorrected if own.corrected and uncorrected else 1.0
        above = scale * (uncorrected - chance) / (1.0 - chance) if chance < 1.0 else np.nan
    return {
        "value": finite(value),
        "chance": finite(chance),
        "above_chance": finite(above),
        "uncorrected": finite(median_of_finite(own.uncorrected)),
        "reliability_source": finite(median_of_finite(own.source_reliability)),
        "reliability_target": finite(median_of_finite(own.target_reliability)),
        "corrected": own.corrected,
        "by_unit": np.atleast_1d(own.value),
        "n_undefined": int(np.sum(own.n_undefined)),
        "n_values": int(own.n_values) * np.atleast_1d(own.value).size,
        "n_stimuli": own.n_stimuli,
        "n_stimuli_left_out": own.n_stimuli_left_out + own.n_without_halves,
        "n_source_left_out": own.n_source_left_out,
        "reason": (Reason.OK if np.isfinite(value) else Reason.UNDEFINED_SCORE).value,
    }


@dataclass(frozen=True)
class Known:
    """Consistency of brains with all data, as `growth` takes it."""

    matrix: FloatArray
    reasons: list[str]

    @classmethod
    def of_pairs(cls, results: Results, keys: Sequence[str], subjects: Sequence[str]) -> Self:
        """From the results of the tasks that compared them."""
        name = tables.PAIRS.name
        found = pl.concat([results.load(key, [name])[name] for key in keys])
        matrix = np.full((len(subjects), len(subjects)), np.nan)
        rows = found.select("source", "target", "value").rows()
        for source, target, value in rows:
            matrix[subjects.index(source), subjects.index(target)] = np.nan if value is None else value
        if len(rows) < len(subjects) * (len(subjects) - 1):  # each pair once
            matrix = np.where(np.tri(len(subjects), k=-1, dtype=bool), matrix.T, matrix)
        return cls(matrix, found.filter(~pl.col("corrected"))["detail"].to_list())


@dataclass(frozen=True)
class GrowthJob(PlaceJob):
    """Brain–brain agreement with fewer units, stimuli or repetitions; ``between`` as in `needs`."""

    over: tuple[Growth, ...]
    between: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of the tasks that compare brains with all data; none where these compare them otherwise."""
        return self.between

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"turing/growth/{self.place.name}/{'+'.join(self.over)}"

    def run(self, workspace: Workspace, results: Results) -> Frames:
        """Compute the growth curves."""
        study, options = workspace.config, options_of(workspace.config)
        brains, measure = self.brains(workspace), measure_of(study, self.place.measure)
        subjects, n = list(brains.trials.values()), len(brains.stimulus_ids)
        made = folds_of(options, measure, brains.groups, n, choice=False)
        measure, folds = made.within(measure), made.rows or None
        own: dict[str, Any] = {
            "estimator": estimator_of(options, brains),
            "n_halves": options.n_halves,
            "seed": study.seed,
        }
        if self.between:
            own["whole"] = Known.of_pairs(results, self.between, self.place.subjects)
        else:
            own["whole"] = between_subjects(subjects, measure, folds, **own)
        own["n_draws"] = options.growth_draws
        rows: list[Row] = []
        for over in self.over:
            found = growth(subjects, measure, folds, over=over, **own)
            for size, values in zip(found.sizes, found.values, strict=True):
                value = finite(float(mean_of_finite(values)))
                reason = Reason.UNDEFINED_SCORE if value is None else Reason.OK
                rows.append(
                    {
                        **self.place.key,
                        "over": over,
                        "size": int(size),
                        "value": value,
                        "by_target": values,
                        "corrected": found.corrected,
                        "detail": _why(found.reason, brains),
                        "reason": reason.value,
                    }
                )
        return {tables.GROWTH.name: frame(tables.GROWTH, rows)}
