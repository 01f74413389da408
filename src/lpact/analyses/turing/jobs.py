"""Tasks of the Turing test: one source against all targets, and brain–brain agreement with fewer data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

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
from lpact.ceilings import Consistency, between_subjects, consistencies, growth, pool
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
NO_LAYER = -1


def finite(value: float | None) -> float | None:
    """A finite number, or None."""
    return None if value is None or not np.isfinite(value) else float(value)


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

    def brains(self, workspace: Workspace) -> Brains:
        """The subjects, kept while their lag is in use."""
        place = self.place
        whole = workspace.recall(
            ("turing", place.dataset, place.lag_ms, place.subjects),
            lambda: brains_of(workspace, place.dataset, place.subjects, place.lag_ms),
        )
        return whole.only(place.region)


@dataclass(frozen=True)
class SourceJob(PlaceJob):
    """One source against every other subject. ``choice``: the layer is chosen among several."""

    kind: str
    source: str
    layer: int = NO_LAYER
    choice: bool = False

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        layer = "" if self.layer == NO_LAYER else f"/{self.layer}"
        return f"turing/{self.kind}/{self.place.name}/{self.source}{layer}"

    @property
    def models(self) -> tuple[str, ...]:
        """The model, if the source is one."""
        return (self.source,) if self.layer != NO_LAYER else ()

    def run(self, workspace: Workspace, results: Results) -> Frames:  # noqa: ARG002
        """Compare the source with its targets."""
        study, options = workspace.config, options_of(workspace.config)
        brains, measure = self.brains(workspace), measure_of(study, self.place.measure)
        targets = self._targets(brains, measure, options)
        folds = folds_of(
            options, measure, brains.groups, len(brains.stimulus_ids), choice=self.choice
        )
        measure = folds.within(measure)
        source = self._source(workspace, brains, options)
        if source is None:
            rows = [self._row(who, "no noise of brains can be estimated") for who in targets]
            return {tables.PAIRS.name: frame(tables.PAIRS, rows)}
        subsample: Mapping[str, int] = {}
        if options.source_units:
            units = min(options.source_units, source.shape[-1])
            subsample = {"source_units": units, "source_draws": options.source_draws}
        found = consistencies(
            source,
            list(targets.values()),
            measure,
            folds.rows or None,
            estimator=options.estimator,
            n_halves=options.n_halves,
            seed=study.seed,
            **subsample,  # type: ignore[arg-type]
        )
        several = self.choice and self.kind == MODEL
        chance = chance_levels(measure, source, brains, list(targets), folds, study.seed, subsample)
        rows = [
            self._row(who)
            | _numbers(own, by_chance)
            | {
                "n_units": targets[who].shape[-1],
                "n_source_units": subsample.get("source_units", source.shape[-1]),
                "by_fold": own.by_fold.ravel() if self.layer != NO_LAYER else [],
                "training": training_scores(measure, source, targets[who], folds) if several else [],
            }
            for who, own, by_chance in zip(targets, found, chance, strict=True)
        ]  # fmt: skip
        return {tables.PAIRS.name: frame(tables.PAIRS, rows)}

    def _targets(
        self, brains: Brains, measure: Measure, options: TuringSection
    ) -> dict[str, FloatArray]:
        """Subjects that the source is compared with; of a symmetric measure, each pair of brains once."""
        if self.kind == POOLED:
            return {self.source: brains.trials[self.source]}
        names = list(brains.trials)
        if self.kind == BRAIN:
            first = names.index(self.source)
            others = [name for name in names if name != self.source]
            names = names[first + 1 :] if once(measure, options) else others
        return {name: brains.trials[name] for name in names}

    def _source(
        self, workspace: Workspace, brains: Brains, options: TuringSection
    ) -> FloatArray | None:
        """Trials of a brain or of several [n, r, p], or features of a model [n, p]."""
        if self.kind == BRAIN:
            return brains.trials[self.source]
        if self.kind == POOLED:
            return pool([v for who, v in brains.trials.items() if who != self.source])
        place = self.place
        features = features_of(
            workspace, place.dataset, place.subjects, brains.stimulus_ids, self.source, self.layer
        )
        if self.kind == MODEL:
            return features
        noise = brains.noise(options.n_halves, workspace.config.seed)
        if noise is None:
            return None
        key = (place.dataset, place.region, time_of(place.lag_ms), self.source, self.layer)
        return with_trials(features, brains, noise, workspace.config.seed, *key)

    def _row(self, target: str, detail: str = "") -> Row:
        """Columns of a row without numbers."""
        nothing: Row = dict.fromkeys(
            ("value", "uncorrected", "reliability_source", "reliability_target")
        )
        zero = dict.fromkeys(
            ("n_units", "n_source_units", "n_undefined", "n_values", "n_stimuli", "n_stimuli_left_out",
             "n_source_left_out"), 0
        )  # fmt: skip
        return {
            **self.place.key,
            "kind": self.kind,
            "source": OTHERS if self.kind == POOLED else self.source,
            "layer": self.layer,
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
        "detail": own.reason,
        "reason": (Reason.OK if np.isfinite(value) else Reason.UNDEFINED_SCORE).value,
    }


@dataclass(frozen=True)
class GrowthJob(PlaceJob):
    """Brain–brain agreement with fewer units, stimuli and repetitions."""

    over: tuple[Growth, ...]

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        return f"turing/growth/{self.place.name}"

    def run(self, workspace: Workspace, results: Results) -> Frames:  # noqa: ARG002
        """Compute the growth curves."""
        study, options = workspace.config, options_of(workspace.config)
        brains, measure = self.brains(workspace), measure_of(study, self.place.measure)
        subjects, n = list(brains.trials.values()), len(brains.stimulus_ids)
        made = folds_of(options, measure, brains.groups, n, choice=False)
        measure, folds = made.within(measure), made.rows or None
        own: dict[str, Any] = {
            "estimator": options.estimator,
            "n_halves": options.n_halves,
            "seed": study.seed,
        }
        whole = between_subjects(subjects, measure, folds, **own)
        own |= {"n_draws": options.growth_draws, "whole": whole}
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
                        "detail": found.reason,
                        "reason": reason.value,
                    }
                )
        return {tables.GROWTH.name: frame(tables.GROWTH, rows)}
