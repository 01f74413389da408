"""A study's design, read without fitting anything, and a simulated study of the same design.

The design is made of sizes, autocorrelation and the reliability of responses. The simulated study has as many
subject-runs, effective events and units, and responses with the same autocorrelation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from scipy import optimize

from lpact.analyses.base import Audit
from lpact.analyses.lpact.calibration.cells import (
    EFFORT,
    N_STORIES,
    SENTENCES_AT_LEAST,
    Cell,
    Effort,
)
from lpact.analyses.lpact.config import AuditConfig, GatesConfig, LPactConfig, RelationalConfig
from lpact.analyses.lpact.levels import ceiling
from lpact.analyses.lpact.levels.audit_record import ContextOffer, DatasetAudit
from lpact.analyses.lpact.levels.ceiling import RESPONSE, BrainOnGrid
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING
from lpact.codes import Reason
from lpact.controls.base import CONTROLS
from lpact.datasets.simulated.brain import SAMPLING_RATE_HZ
from lpact.datasets.simulated.kernels import WINDOW_S
from lpact.datasets.simulated.latents import CONTEXT_AUTOCORRELATION
from lpact.datasets.simulated.words import WORDS_PER_SENTENCE
from lpact.errors import InputError
from lpact.features.models import FULL
from lpact.inputs.prepare import Prepared
from lpact.inputs.workspace import Workspace
from lpact.math.types import FloatArray
from lpact.run.audit import audit_study
from lpact.run.progress import Reporter
from lpact.stats import (
    ar1_variance_inflation,
    autocorrelation,
    effective_units,
    segment_lengths,
    variance_inflation,
)
from lpact.store import empty

TRUTH = MODEL = "integrated"
"""What is planted: everything that the gates look for, and a model that knows it."""

EVENT_SPACING_S = 0.37
"""Typical distance of words in simulated stimuli: 0.34 s within sentences, 0.40 s with the pauses between them."""

LARGEST_COEFFICIENT = 0.998
MOST_EVENTS = 600
MOST_SUBJECT_RUNS = 6
MOST_UNITS = 16
MOST_FOLDS = 5
SAME, SMALLER, LARGER, MIXED = "same", "smaller", "larger", "mixed"
"""How large simulated studies are, compared with the design. Smaller ones find only larger effects."""
FEWEST_EVENTS = round(N_STORIES * SENTENCES_AT_LEAST * sum(WORDS_PER_SENTENCE) / 2)

MOST_VALUES = 40_000_000
"""Responses (events times units) of one dataset that are read for its autocorrelation: at least two recordings."""


@dataclass(frozen=True)
class ModelDesign:
    """One dataset as one model meets it; ``reason`` says why features were not looked at."""

    model: str
    layer: int | None
    n_rivals: int
    random_draws: tuple[int, ...]
    """Draws of each rival; nuisance and other rivals that are not random have one."""
    surrogate_draws: int
    """Fewest draws of a surrogate control, which the tests of level 1 are compared with; 0: there is none."""
    feature_autocorrelation: float | None
    variance_inflation: float | None
    n_effective_events: float | None
    reason: Reason


@dataclass(frozen=True)
class Ceiling:
    """The largest score that a perfect model could expect, √r of the responses' reliability r in ``mode``."""

    mode: str
    score: float


@dataclass(frozen=True)
class DatasetDesign:
    """Sizes of one dataset. Medians are over subject-runs; None where the dataset has no usable recording."""

    name: str
    role: str
    confirmatory: bool
    reason: Reason
    detail: str
    n_subjects: int
    n_subject_runs: int
    n_measured: int
    n_events: float | None
    n_units: float | None
    n_folds: int | None
    n_lags: int | None
    response_autocorrelation: float | None
    n_effective_units: float | None
    ceiling: Ceiling | None
    models: tuple[ModelDesign, ...]

    @property
    def n_effective_subject_runs(self) -> float:
        """R / (1 + (R − 1) r²): responses that agree by r between subject-runs make chance scores agree by r².

        The features of one stimulus are the same for all who hear it, so that what they share with a common response by
        chance, they share in every subject-run. r is the reliability of responses, 0 where it is not known.
        """
        r = 0.0 if self.ceiling is None else min(self.ceiling.score, 1.0) ** 2
        return self.n_subject_runs / (1.0 + (self.n_subject_runs - 1.0) * r**2)

    @property
    def limiting(self) -> ModelDesign | None:
        """The model with the fewest effective events: what is said of the dataset holds for all others."""
        known = [m for m in self.models if m.n_effective_events is not None]
        return min(known, key=lambda m: m.n_effective_events or 0.0, default=None)


@dataclass(frozen=True)
class _Measured:
    """Autocorrelation and effective sizes of one recording."""

    brain: BrainOnGrid
    response_lag1: float
    n_units: float
    features: Mapping[str, tuple[float | None, float, float]]
    """By model: lag-one autocorrelation of its features, variance inflation and effective events."""


def read_design(workspace: Workspace, reporter: Reporter) -> tuple[DatasetDesign, ...]:
    """Audit the study's sources, and read sizes and autocorrelation of every dataset.

    Raises `InputError` where no dataset has a usable recording with features.
    """
    audit = audit_study(workspace, reporter).of["lpact"]
    reporter.stage("design", sum(len(own.recordings) for own in audit.detail.values()))
    designs = tuple(_dataset(workspace, audit, name, reporter) for name in audit.detail)
    if all(design.limiting is None for design in designs):
        raise InputError(
            "no dataset of the study has a power that can be estimated",
            where=f"study '{workspace.config.name}'",
            got="; ".join(f"{d.name}: {d.detail or d.reason.explanation}" for d in designs),
            expected="at least one usable recording with features of a model",
            remedy="see `lpact audit` for what is missing",
        )
    return designs


def _dataset(workspace: Workspace, audit: Audit, name: str, reporter: Reporter) -> DatasetDesign:
    config = LPactConfig.of(workspace.config)
    dataset: DatasetAudit = audit.detail[name]
    standing = audit.tables[EVIDENCE_FEASIBILITY.name].filter(dataset=name).row(0, named=True)
    measured = list(_measure(workspace, dataset, name, reporter))
    recordings = dataset.recordings
    return DatasetDesign(
        name=name,
        role=standing["role"],
        confirmatory=standing["confirmatory"],
        reason=_role_reason(standing["role_reason"], any_recording=bool(recordings)),
        detail=standing["role_detail"],
        n_subjects=standing["n_subjects"],
        n_subject_runs=len(recordings),
        n_measured=len(measured),
        n_events=_median([r.n_events for r in recordings]),
        n_units=_median([len(r.unit_ids) for r in recordings]),
        n_folds=min((r.n_folds for r in recordings), default=None),
        n_lags=max((r.n_lags for r in recordings), default=None),
        response_autocorrelation=_median([m.response_lag1 for m in measured]),
        n_effective_units=_median([m.n_units for m in measured]),
        ceiling=best_ceiling(_reliability(config, name, measured)),
        models=tuple(
            _model(config, dataset, model.name, model.layers[0], measured)
            for model in config.models
        ),
    )


def _role_reason(code: str, *, any_recording: bool) -> Reason:
    if not any_recording:
        return Reason.DATASET_HAS_NO_RECORDING
    return next(reason for reason in Reason if reason.value == code)


def _measure(
    workspace: Workspace, dataset: DatasetAudit, name: str, reporter: Reporter
) -> Iterator[_Measured]:
    """Recordings one after another, until enough responses were read."""
    n_values = 0
    for number, recording in enumerate(dataset.recordings):
        n_values += recording.n_events * len(recording.unit_ids)
        if number < 2 or n_values <= MOST_VALUES:
            prepared = workspace.prepared(name, recording.id)
            offers = [c for c in dataset.contexts if c.recording == recording.id]
            yield _recording(workspace, prepared, offers)
        reporter.advance()


def _recording(
    workspace: Workspace, prepared: Prepared, offers: Sequence[ContextOffer]
) -> _Measured:
    grid = prepared.grid
    of_responses = autocorrelation(prepared.reference, grid.story)
    features: dict[str, tuple[float | None, float, float]] = {}
    for model in dict.fromkeys(offer.model for offer in offers):
        layer = next(offer.layer for offer in offers if offer.model == model)
        on_grid = workspace.model(model, prepared)
        own = autocorrelation(on_grid.load(layer), grid.story) if on_grid.ready((FULL,)) else None
        # Features that are not there yet are taken to be as slow as responses.
        of_features = of_responses if own is None else own
        inflation = variance_inflation(
            _mean(of_features), _mean(of_responses), segment_lengths(grid.story)
        )
        lag1 = None if own is None else float(np.median(own[1]))
        features[model] = (lag1, inflation, prepared.n_events / inflation)
    brain = BrainOnGrid(
        id=prepared.id,
        unit_ids=grid.units.ids,
        onset_s=grid.onset_s,
        first_word=grid.first_word,
        comparable=grid.units.comparable,
        responses=prepared.reference,
        patterns={},
        halves=({}, {}),
    )
    return _Measured(
        brain, float(np.median(of_responses[1])), effective_units(prepared.reference), features
    )


def _mean(rho: FloatArray) -> FloatArray:
    return np.asarray(rho.mean(axis=1))


def _model(
    config: LPactConfig,
    dataset: DatasetAudit,
    model: str,
    layer: int,
    measured: Sequence[_Measured],
) -> ModelDesign:
    own = [m.features[model] for m in measured if model in m.features]
    if not own:
        return ModelDesign(model, None, 0, (), 0, None, None, None, Reason.MODEL_OFFERS_NOTHING)
    offer = next(c for c in dataset.contexts if c.model == model)
    counted = [name for name in config.controls.include if CONTROLS.get(name).counted]
    draws = [offer.draws[name] for name in counted if offer.draws.get(name)]
    lags = [lag1 for lag1, _, _ in own if lag1 is not None]
    return ModelDesign(
        model=model,
        layer=layer,
        n_rivals=len(draws) + 1,
        random_draws=(1, *draws),
        surrogate_draws=min(
            (n for name, n in offer.draws.items() if CONTROLS.get(name).surrogate), default=0
        ),
        feature_autocorrelation=_median(lags),
        variance_inflation=_median([inflation for _, inflation, _ in own]),
        n_effective_events=_median([n for _, _, n in own]),
        reason=Reason.OK if lags else Reason.FEATURES_NOT_EXTRACTED,
    )


def _reliability(config: LPactConfig, name: str, measured: Sequence[_Measured]) -> pl.DataFrame:
    """Reliability of responses alone: patterns would have to be fitted."""
    if not measured:
        return empty(BRAIN_CEILING)
    no_patterns = config.relational.model_copy(update={"alignments": ()})
    responses_only = config.model_copy(update={"relational": no_patterns})
    return ceiling.run(config=responses_only, dataset=name, brains=[m.brain for m in measured])


def best_ceiling(reliability: pl.DataFrame) -> Ceiling | None:
    """The most lenient ceiling of one dataset, or None where responses were never repeated or do not repeat at all.

    If two recordings of a response are signal plus independent noise, they correlate by r = signal / total variance,
    and a model that knows the signal correlates with one of them by √r.
    """
    modes = (
        reliability.filter(pl.col("valid") & (pl.col("kind") == RESPONSE))
        .sort("mode", "subject", "session", "run")
        .group_by("mode", maintain_order=True)
        .agg(pl.col("reliability").mean())
        .filter(pl.col("reliability") > 0)
        .sort("reliability", "mode", descending=[True, False])
    )
    if modes.is_empty():
        return None
    best = modes.row(0, named=True)
    return Ceiling(best["mode"], float(np.sqrt(best["reliability"])))


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if len(values) else None


@dataclass(frozen=True)
class MatchedDesign:
    """The simulated cell that matches a dataset, at any signal-to-noise ratio; ``caps`` lists the differences."""

    cell: Cell
    effort: Effort
    gates: GatesConfig
    relational: RelationalConfig
    caps: tuple[str, ...]
    size: str = SAME

    def at(self, snr: float) -> Cell:
        """The cell at a signal-to-noise ratio."""
        return replace(self.cell, snr=snr)


def matched_design(
    design: DatasetDesign, config: LPactConfig, effort: Effort | None = None
) -> MatchedDesign:
    """The simulated study that matches a dataset.

    Features of simulated models are less autocorrelated than those of language models. So the number of simulated
    events is the one that is worth as many effective events, not the number of the dataset's events.
    """
    limiting = design.limiting
    if limiting is None or limiting.n_effective_events is None or design.n_units is None:
        raise ValueError(f"dataset '{design.name}' has no design to match")
    lag1 = min(max(design.response_autocorrelation or 0.0, 0.0), 0.99)
    n_effective = limiting.n_effective_events
    inflation = ar1_variance_inflation(
        CONTEXT_AUTOCORRELATION, lag1, max(2, round(design.n_events or 2))
    )
    caps: list[tuple[str, str]] = []
    n_events = _within(round(n_effective * inflation), FEWEST_EVENTS, MOST_EVENTS, "events", caps)
    n_runs = _within(design.n_subject_runs, 1, MOST_SUBJECT_RUNS, "subject-runs", caps)
    n_units = _within(round(design.n_units), 4, MOST_UNITS, "units", caps)
    cell = Cell(
        TRUTH,
        MODEL,
        n_events=n_events,
        n_subjects=n_runs,
        n_units=n_units,
        noise_autocorrelation=noise_coefficient(lag1),
    )
    if effort is None:
        _within(config.controls.draws, 1, EFFORT.draws, "draws of controls", caps)
    return MatchedDesign(
        cell,
        effort or _effort(design, config),
        config.gates,
        _relational(config),
        tuple(text for _, text in caps),
        _size({direction for direction, _ in caps}),
    )


def _within(n: int, fewest: int, most: int, what: str, caps: list[tuple[str, str]]) -> int:
    if n > most:
        text = (
            f"{most} {what} instead of {n}, to save time: the design itself finds smaller effects"
        )
        caps.append((SMALLER, text))
        return most
    if n < fewest:
        text = (
            f"{fewest} {what} instead of {n}, the fewest that can be simulated: the design itself finds only larger "
            "effects"
        )
        caps.append((LARGER, text))
        return fewest
    return n


def _size(directions: set[str]) -> str:
    return MIXED if len(directions) > 1 else next(iter(directions), SAME)


def _effort(design: DatasetDesign, config: LPactConfig) -> Effort:
    """The study's own folds, controls and draws (up to a number); penalties and lags as few as in the calibration."""
    include = config.controls.include
    return replace(
        EFFORT,
        draws=min(config.controls.draws, EFFORT.draws),
        mismatch_draws=min(config.stripping.mismatch_draws, EFFORT.mismatch_draws),
        folds=min(design.n_folds or EFFORT.folds, MOST_FOLDS),
        gap_events=min(config.readout.gap_events, EFFORT.gap_events),
        controls=include if set(AuditConfig().required_controls) <= set(include) else None,
    )


def _relational(config: LPactConfig) -> RelationalConfig:
    """The study's own patterns; a simulated subject has one run, so another subject replaces another run."""
    if config.relational.brain_patterns_from != "other_run":
        return config.relational
    return config.relational.model_copy(update={"brain_patterns_from": "other_subject"})


def noise_coefficient(lag1: float) -> float:
    """Autocorrelation at 100 Hz of noise whose means over 200 ms correlate by ``lag1`` from one event to the next.

    For an autoregressive series with coefficient φ, means over w samples that begin D samples apart correlate by
    Σ_ij φ^|D + i − j| / Σ_ij φ^|i − j|, i and j from 1 to w. Events of simulated stimuli are about 0.37 s apart.
    """
    if lag1 <= _event_autocorrelation(0.0):
        return 0.0
    if lag1 >= _event_autocorrelation(LARGEST_COEFFICIENT):
        return LARGEST_COEFFICIENT
    root = optimize.brentq(lambda phi: _event_autocorrelation(phi) - lag1, 0.0, LARGEST_COEFFICIENT)
    return round(float(root), 4)


def _event_autocorrelation(phi: float) -> float:
    width = round(WINDOW_S * SAMPLING_RATE_HZ)
    distance = EVENT_SPACING_S * SAMPLING_RATE_HZ
    lags = np.arange(width)[:, None] - np.arange(width)[None, :]
    apart = np.abs(lags + distance)
    return float((phi**apart).sum() / (phi ** np.abs(lags)).sum())
