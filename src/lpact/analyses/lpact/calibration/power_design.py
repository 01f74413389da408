"""A study's design, read without fitting anything: sizes, autocorrelation and the reliability of responses.

The smallest contrast that level 1 can distinguish from 0, from sizes and autocorrelation alone (`closed_form`):

1. Chance scores are correlations of a prediction without information and a response: mean 0, variance 1 / n_eff
   (`lpact.stats.effective_sample`), the same for every unit.
2. A subject-run's score is the median over units, which are worth U_eff independent ones:
   σ² = m(U_eff) / (n_eff U_eff), with m from 1 to π/2 for the median instead of the mean.
3. Real features and their best rival err independently, so that a contrast has the variance 2 σ². (Rivals that share
   information with the features err alike, and make it smaller: the number is on the safe side.)
4. Subject-runs are worth R_eff independent ones (`DatasetDesign.n_effective_subject_runs`), and the true contrast is
   the same in all of them: SE = √(2 σ² / R_eff). Where it varies, a run's own spread says more (`from_spread`).
5. Both are normal. A test of level a that must find a true contrast d with power q needs d = (z_{1−a} + z_q) SE; a
   point rule (mean > 0) needs d = z_q SE. With fewer than 1/a − 1 draws of a surrogate, the test is compared with their
   first two moments, and Student's quantile with m − 1 degrees of freedom times √(1 + 1/m) takes the place of z_{1−a}.

The score that goes with it: d above the best of K rivals that know nothing. The best of K is not 0 but its expected
maximum, in which a rival that is a mean over D draws has the deviation σ / √D.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy import stats

from lpact.analyses.base import Audit
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels import ceiling
from lpact.analyses.lpact.levels.ceiling import RESPONSE, BrainOnGrid
from lpact.analyses.lpact.plan.audit import ContextOffer, DatasetAudit
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.codes import Reason
from lpact.controls.base import CONTROLS
from lpact.errors import InputError
from lpact.features.models import FULL
from lpact.inputs.prepare import Prepared
from lpact.inputs.workspace import Workspace
from lpact.run.audit import audit_study
from lpact.run.progress import Reporter
from lpact.stats import (
    autocorrelation,
    effective_units,
    expected_maximum,
    median_penalty,
    segment_lengths,
    variance_inflation,
)

MOST_VALUES = 40_000_000
"""Responses (events times units) of one dataset that are read for its autocorrelation: at least two recordings."""


@dataclass(frozen=True)
class ModelDesign:
    """One dataset with one model; ``reason`` says why features were not measured."""

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
    """Sizes of one dataset: medians over subject-runs; None where it has no usable recording."""

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

        All who hear a stimulus have the same features, and what these share with a common response by chance. r is the
        reliability of responses, 0 where it is not known.
        """
        r = 0.0 if self.ceiling is None else min(self.ceiling.score, 1.0) ** 2
        return self.n_subject_runs / (1.0 + (self.n_subject_runs - 1.0) * r**2)

    @property
    def limiting(self) -> ModelDesign | None:
        """The model with the fewest effective events: what is said of the dataset holds for all others."""
        known = [m for m in self.models if m.n_effective_events is not None]
        return min(known, key=lambda m: m.n_effective_events or 0.0, default=None)


class _Measured(NamedTuple):
    """Autocorrelation and effective sizes of one recording.

    ``features`` holds, by model, lag-one autocorrelation of its features, variance inflation and effective events.
    """

    brain: BrainOnGrid
    response_lag1: float
    n_units: float
    features: Mapping[str, tuple[float | None, float, float]]


def read_design(workspace: Workspace, reporter: Reporter) -> tuple[DatasetDesign, ...]:
    """Audit the study's sources, and read sizes and autocorrelation of every dataset."""
    audit = audit_study(workspace, reporter).of["lpact"]
    reporter.stage("design", sum(len(own.recordings) for own in audit.detail.values()))
    designs = tuple(_dataset(workspace, audit, name, reporter) for name in audit.detail)
    if all(design.limiting is None for design in designs):
        raise InputError(
            "power cannot be estimated for any dataset of the study",
            where=f"study '{workspace.config.name}'",
            got="; ".join(f"{d.name}: {d.detail or d.reason.explanation}" for d in designs),
            expected="at least one usable recording with features of a model",
            remedy="see `lpact audit` for what is missing",
        )
    return designs


def _dataset(workspace: Workspace, audit: Audit, name: str, reporter: Reporter) -> DatasetDesign:
    config = LPactConfig.of(workspace.config)
    dataset: DatasetAudit = audit.detail[name]
    audited = audit.tables[EVIDENCE_FEASIBILITY.name].filter(dataset=name).row(0, named=True)
    measured = list(_measure(workspace, dataset, name, reporter))
    recordings = dataset.recordings
    return DatasetDesign(
        name=name,
        role=audited["role"],
        confirmatory=audited["confirmatory"],
        reason=Reason(audited["role_reason"]) if recordings else Reason.DATASET_HAS_NO_RECORDING,
        detail=audited["role_detail"],
        n_subjects=audited["n_subjects"],
        n_subject_runs=len(recordings),
        n_measured=len(measured),
        n_events=_median([r.n_events for r in recordings]),
        n_units=_median([len(r.unit_ids) for r in recordings]),
        n_folds=min((r.n_folds for r in recordings), default=None),
        n_lags=max((r.n_lags for r in recordings), default=None),
        response_autocorrelation=_median([m.response_lag1 for m in measured]),
        n_effective_units=_median([m.n_units for m in measured]),
        ceiling=_ceiling(config, name, measured),
        models=tuple(_model(config, dataset, m.name, m.layers[0], measured) for m in config.models),
    )


def _measure(workspace: Workspace, dataset: DatasetAudit, name: str, reporter: Reporter) -> Iterator[_Measured]:
    """Recordings one after another, until enough responses were read."""
    n_values = 0
    for number, recording in enumerate(dataset.recordings):
        n_values += recording.n_events * len(recording.unit_ids)
        if number < 2 or n_values <= MOST_VALUES:
            prepared = workspace.prepared(name, recording.id)
            offers = [c for c in dataset.contexts if c.recording == recording.id]
            yield _recording(workspace, prepared, offers)
        reporter.advance()


def _recording(workspace: Workspace, prepared: Prepared, offers: Sequence[ContextOffer]) -> _Measured:
    grid = prepared.grid
    of_responses = autocorrelation(prepared.reference, grid.story)
    features: dict[str, tuple[float | None, float, float]] = {}
    first_layer = {offer.model: offer.layer for offer in reversed(offers)}
    for model, layer in first_layer.items():
        on_grid = workspace.model(model, prepared)
        own = autocorrelation(on_grid.load(layer), grid.story) if on_grid.ready((FULL,)) else None
        # Features that do not exist yet are taken to be as slow as responses.
        of_features = of_responses if own is None else own
        inflation = variance_inflation(of_features.mean(axis=1), of_responses.mean(axis=1), segment_lengths(grid.story))
        of_model = None if own is None else float(np.median(own[1]))
        features[model] = (of_model, inflation, prepared.n_events / inflation)
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
    lag1 = float(np.median(of_responses[1]))
    return _Measured(brain, lag1, effective_units(prepared.reference), features)


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
        surrogate_draws=min((n for name, n in offer.draws.items() if CONTROLS.get(name).surrogate), default=0),
        feature_autocorrelation=_median(lags),
        variance_inflation=_median([inflation for _, inflation, _ in own]),
        n_effective_events=_median([n for _, _, n in own]),
        reason=Reason.OK if lags else Reason.FEATURES_NOT_EXTRACTED,
    )


def _ceiling(config: LPactConfig, name: str, measured: Sequence[_Measured]) -> Ceiling | None:
    """From the reliability of responses alone: patterns would have to be fitted."""
    if not measured:
        return None
    no_patterns = config.relational.model_copy(update={"alignments": ()})
    responses_only = config.model_copy(update={"relational": no_patterns})
    brains = [m.brain for m in measured]
    return best_ceiling(ceiling.measure_ceilings(config=responses_only, dataset=name, brains=brains))


def best_ceiling(reliability: pl.DataFrame) -> Ceiling | None:
    """The most lenient ceiling of one dataset, or None where responses were never repeated or do not repeat at all.

    Two recordings of signal plus independent noise correlate by r, and a model that knows the signal with each by √r.
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
class Detectable:
    """Smallest detectable contrast ``delta``, and the corresponding held-out score where it is known."""

    delta: float
    score: float | None
    standard_error: float


def chance_deviation(n_effective_events: float, n_effective_units: float) -> float:
    """σ: standard deviation of one subject-run's score by chance."""
    units = max(n_effective_units, 1.0)
    return float(np.sqrt(median_penalty(units) / (n_effective_events * units)))


def closed_form(
    *,
    n_effective_events: float,
    n_effective_units: float,
    n_subject_runs: float,
    draws: Sequence[int],
    alpha: float | None,
    target: float,
    surrogate_draws: int = 1000,
) -> Detectable | None:
    """Smallest detectable contrast of a design; ``alpha`` None is a point rule, ``draws`` are those of each rival.

    None: a test with fewer than two ``surrogate_draws`` never rejects.
    """
    if alpha is not None and surrogate_draws < 2:
        return None
    sigma = chance_deviation(n_effective_events, n_effective_units)
    error = sigma * float(np.sqrt(2.0 / n_subject_runs))
    critical = 0.0 if alpha is None else critical_value(alpha, surrogate_draws)
    delta = critical + float(stats.norm.ppf(target))
    rivals = expected_maximum(sigma / np.sqrt(np.asarray(draws, dtype=np.float64)))
    return Detectable(delta * error, delta * error + rivals, error)


def critical_value(alpha: float, draws: int) -> float:
    """What a standardised score must exceed at level ``alpha``, compared with ``draws`` draws (at least two)."""
    if draws >= 1.0 / alpha - 1.0:
        return float(stats.norm.ppf(1.0 - alpha))
    return float(stats.t.ppf(1.0 - alpha, draws - 1) * np.sqrt(1.0 + 1.0 / draws))


def from_spread(
    deltas: Sequence[float], rival_score: float | None, *, alpha: float | None, target: float
) -> Detectable | None:
    """The same from the contrasts of a run's subject-runs, with SE = sd / √R and Student quantiles; None for one."""
    n = len(deltas)
    if n < 2:
        return None
    error = float(np.std(deltas, ddof=1) / np.sqrt(n))
    delta = float(stats.t.ppf(target, n - 1))
    if alpha is not None:
        delta += float(stats.t.ppf(1.0 - alpha, n - 1))
    score = None if rival_score is None else rival_score + delta * error
    return Detectable(delta * error, score, error)
