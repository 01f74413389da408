"""What a run will compute, before it computes anything: rows, fits, time and memory."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits

from lpact.config import StudyConfig
from lpact.controls.base import CONTROLS
from lpact.controls.reordered import ReorderedRows
from lpact.decide.criteria import SHARED, CriterionName
from lpact.features.models import NO_COST, ExtractionCost
from lpact.levels.audit_record import ContextOffer, DatasetAudit, RecordingSummary
from lpact.levels.measure import Brain
from lpact.levels.pairing import MODES
from lpact.levels.prepare import KEPT_FEATURE_SETS, check_device, compute_settings, ridge_grid
from lpact.levels.relational import build_measures
from lpact.levels.strip import STRIPPINGS, RandomDirection, StripInputs
from lpact.math.ridge import METRICS, nested_ridge, nested_ridge_draws
from lpact.math.splits import BlockedFolds, contiguous_folds
from lpact.math.types import FloatArray, IntArray
from lpact.reasons import Gate
from lpact.run.assay_plan import assay_rows, implant_seconds
from lpact.run.inspect import StudyAudit
from lpact.tables.audit import MECHANISM_CORRELATIONS

Shape: TypeAlias = tuple[int, int, int, int, int]
"""Size of a readout: events, lags, units, folds, columns of features."""

BYTES = 8
N_FITTED_MODEL_CONDITIONS = 2
"""Nuisance alone, and nuisance plus model, beside the real features and the controls."""

N_KEPT_CONDITIONS = 2
"""Conditions beside controls of which levels 1 and 2 keep rows: real and nuisance."""


@dataclass(frozen=True)
class Plan:
    """Sizes of a study.

    ``rows`` is exact for every table; a name in ``at_most`` marks a bound, where the count depends on results.
    Times are for one worker, from a calibration on this machine.
    """

    rows: Mapping[str, int]
    at_most: frozenset[str]
    n_subject_runs: int
    n_contexts: int
    n_claims: int
    n_fits: int
    seconds: float
    peak_bytes: int
    config_digest: str
    audit: StudyAudit
    extraction: ExtractionCost = NO_COST

    def seconds_with(self, workers: int) -> float:
        """Expected wall time with ``workers`` processes; features are extracted by one."""
        return self.seconds / workers + self.extraction.seconds

    @property
    def controls(self) -> pl.DataFrame:
        """Availability of every control, with reasons."""
        return self.audit.tables["audits/lpact_control_availability"]


def make_plan(config: StudyConfig, audit: StudyAudit, extraction: ExtractionCost = NO_COST) -> Plan:
    """Count rows and fits, and time a few of them."""
    check_device(config.readout)
    rows: Counter[str] = Counter({name: table.height for name, table in audit.tables.items()})
    rows[MECHANISM_CORRELATIONS.name] = _n_correlations(audit)
    at_most = {
        "predictive/predictive_failure_modes",
        "causal/causal_mismatch_controls",
        "causal/causal_block_drops",
        "decisions/control_explained_results",
        "decisions/lpact_decision_summary",
    }
    claims: set[tuple[str, str, int]] = set()
    fits: Counter[Shape] = Counter()
    draws: Counter[Shape] = Counter()
    brains: Counter[Shape] = Counter()
    strips: Counter[Shape] = Counter()
    comparisons: Counter[tuple[int, int, int]] = Counter()
    peak = 0
    for name, dataset in audit.datasets.items():
        by_id = {r.id: r for r in dataset.recordings}
        _count_brain(config, dataset, rows, brains)
        for offer in dataset.contexts:
            recording = by_id[offer.recording]
            claims.add((name, offer.model, offer.layer))
            rows.update(context_rows(config, recording, offer))
            shape = (
                recording.n_events,
                recording.n_lags,
                len(recording.unit_ids),
                recording.n_folds,
            )
            n_stripped = _n_stripped_fits(config, recording, offer)
            n_reordered = _n_reordered(offer)
            fits[(*shape, offer.n_features)] += _n_plain_fits(offer) - n_reordered + n_stripped
            draws[(*shape, offer.n_features)] += n_reordered
            strips[(*shape, offer.n_features)] += n_stripped
            comparisons[recording.n_events, len(recording.unit_ids), offer.n_features] += 1 + sum(
                offer.draws.values()
            )
            peak = max(peak, _peak_bytes(config, recording, offer))
    n_claims = len(claims) * len(config.stripping.mechanisms)
    rows["decisions/lpact_decision_table"] = N_PROFILES * n_claims
    rows["decisions/control_explained_results"] = N_PROFILES * n_claims
    rows["decisions/lpact_gate_evidence"] = n_claims * N_CRITERIA
    rows["decisions/lpact_decision_summary"] = N_PROFILES * n_claims
    rows["decisions/lpact_study_outcome"] = N_PROFILES
    seconds = (
        _fit_seconds(config, fits)
        + _draw_seconds(config, draws)
        + _brain_seconds(config, brains)
        + _strip_seconds(strips)
        + _comparison_seconds(config, comparisons)
    )
    if config.assay.enabled:
        rows.update(assay_rows(config, audit))
        seconds += implant_seconds(config)
    return Plan(
        rows=dict(sorted(rows.items())),
        at_most=frozenset(at_most),
        n_subject_runs=sum(len(d.recordings) for d in audit.datasets.values()),
        n_contexts=sum(len(d.contexts) for d in audit.datasets.values()),
        n_claims=n_claims,
        n_fits=sum(fits.values()) + sum(draws.values()) + _n_unit_fits(config, brains),
        seconds=seconds,
        peak_bytes=peak,
        config_digest=config.digest(),
        audit=audit,
        extraction=extraction,
    )


N_PROFILES = 2
"""Gate profiles."""

N_CRITERIA = len(CriterionName) - 1 + len(SHARED) + N_PROFILES * len(Gate)
"""Criteria of a claim: each once, those that both profiles share twice, and `confirmatory` in every gate."""


def _n_correlations(audit: StudyAudit) -> int:
    """Pairs of mechanisms of each stimulus, those included that a language model is still to give."""
    sizes = {
        (name, recording.id.stimulus): len(recording.mechanisms)
        for name, dataset in audit.datasets.items()
        for recording in dataset.recordings
    }
    return sum(n * (n - 1) // 2 for n in sizes.values())


def assay_seconds(config: StudyConfig, audit: StudyAudit) -> float:
    """Time of the positive controls alone, brain patterns included, with one worker."""
    brains: Counter[Shape] = Counter()
    for dataset in audit.datasets.values():
        _count_brain(config, dataset, Counter(), brains)
    return _brain_seconds(config, brains) + implant_seconds(config)


def _count_brain(
    config: StudyConfig,
    dataset: DatasetAudit,
    rows: Counter[str],
    brains: Counter[Shape],
) -> None:
    n_alignments, n_profiles = len(config.relational.alignments), len(config.relational.profiles)
    for recording in dataset.recordings:
        n_units = len(recording.unit_ids)
        rows["relational/brain_unit_index"] += n_units
        rows["relational/brain_alignment_patterns"] += n_alignments * n_units
        rows["relational/brain_half_patterns"] += 2 * n_alignments * n_units
        rows["ceilings/brain_brain_ceiling"] += len(MODES) * (n_alignments * n_profiles + 2)
        for n_events, repeats in ((recording.n_events, 1), (recording.n_events // 2, 2)):
            brains[n_events, recording.n_lags, n_units, recording.n_folds, 1] += repeats


def context_rows(
    config: StudyConfig, recording: RecordingSummary, offer: ContextOffer
) -> Counter[str]:
    """Count the rows that one context makes, by table."""
    rows: Counter[str] = Counter()
    n_conditions = 1 + sum(offer.draws.values())
    n_scored = n_conditions + N_FITTED_MODEL_CONDITIONS
    rows["predictive/predictive_scores"] += len(METRICS) * n_scored
    rows["predictive/predictive_unit_scores"] += len(METRICS) * n_scored
    for name in ("control_deltas", "subject_run_summary", "failure_modes"):
        rows[f"predictive/predictive_{name}"] += len(METRICS)
    rows["predictive/predictive_control_nulls"] += len(METRICS) * len(offer.draws)
    rows["predictive/predictive_block_scores"] += N_KEPT_CONDITIONS + len(offer.draws)

    n_alignments = len(config.relational.alignments)
    n_summaries = n_alignments * len(config.relational.profiles)
    n_units = len(recording.unit_ids)
    rows["relational/model_alignment_patterns"] += n_alignments * (n_conditions + 1)
    rows["relational/profile_similarity_scores"] += (
        n_summaries * n_units * (N_KEPT_CONDITIONS + len(offer.draws))
    )
    # One test a control, one of nuisance, and one of the unit order.
    rows["relational/relational_null_draws"] += n_summaries * (len(offer.draws) + 2)
    rows["relational/profile_similarity_deltas"] += n_summaries * n_units
    rows["relational/relational_subject_run_summary"] += n_summaries
    rows["ceilings/ceiling_normalized_scores"] += n_summaries * n_units
    rows["ceilings/ceiling_normalized_predictive"] += len(MODES)

    n_mechanisms, n_methods = len(config.stripping.mechanisms), len(config.stripping.methods)
    rows["causal/causal_stripping_features"] += n_methods * n_mechanisms
    rows["causal/causal_stripping_scores"] += 2 * n_methods * n_mechanisms**2
    rows["causal/causal_stripping_deltas"] += n_methods * n_mechanisms**2
    rows["causal/mechanism_specificity_summary"] += n_methods * n_mechanisms
    rows["causal/double_dissociation_tests"] += n_mechanisms * (n_mechanisms - 1) // 2
    n_present = len(recording.mechanisms)
    rows["causal/causal_targets"] += n_present * recording.n_folds
    # Alone and beside nuisance, and random directions.
    rows["causal/causal_block_drops"] += 2 * n_present**2 * len(offer.strippings)
    rows["causal/causal_block_drops"] += n_present * len(_mechanism_strippings(offer))
    rows["causal/causal_mismatch_controls"] += n_present * (
        (n_present - 1) * len(offer.strippings)
        + config.stripping.mismatch_draws * len(_mechanism_strippings(offer))
    )
    return rows


def _mechanism_strippings(offer: ContextOffer) -> list[str]:
    return [name for name in offer.strippings if STRIPPINGS.get(name).uses_mechanism]


def _n_plain_fits(offer: ContextOffer) -> int:
    """Nested readouts of one context with features as they are."""
    return 1 + sum(offer.draws.values()) + N_FITTED_MODEL_CONDITIONS


def _n_reordered(offer: ContextOffer) -> int:
    """Those that share the real features' decompositions, because only the order of events differs."""
    kinds = {name: CONTROLS.get(name) for name in offer.draws}
    return sum(
        offer.draws[name]
        for name, kind in kinds.items()
        if issubclass(kind, ReorderedRows) and kind.contiguous
    )


def _n_unit_fits(config: StudyConfig, brains: Mapping[Shape, int]) -> int:
    """Nested readouts from every unit to all others."""
    fitted = sum(m.from_readout for m in build_measures(config).values())
    return fitted * sum(shape[2] * count for shape, count in brains.items())


def _n_stripped_fits(config: StudyConfig, recording: RecordingSummary, offer: ContextOffer) -> int:
    """Nested readouts of one context with stripped features."""
    own = _mechanism_strippings(offer)
    shared = len(offer.strippings) - len(own)
    return shared + len(own) * (1 + config.stripping.mismatch_draws) * len(recording.mechanisms)


def _peak_bytes(config: StudyConfig, recording: RecordingSummary, offer: ContextOffer) -> int:
    """Working memory of one context: responses, feature sets and one decomposition."""
    n, p = recording.n_events, offer.n_features
    targets = recording.n_lags * len(recording.unit_ids)
    responses = 4 * n * targets
    features = (KEPT_FEATURE_SETS + WORKING_COPIES) * n * p
    decomposition = 4 * p * p + targets * len(config.readout.alphas) * p
    return BYTES * (responses + features + decomposition)


WORKING_COPIES = 6
"""Copies of the features that a readout and a comparison hold at a time: centred, scaled, rotated, stripped."""


def _fit_seconds(config: StudyConfig, fits: Mapping[Shape, int]) -> float:
    """Time one readout of every size with its scores, and multiply."""
    rng = np.random.default_rng(0)
    grid = ridge_grid(config.readout)
    seconds = 0.0
    for (n_events, n_lags, n_units, n_folds, n_features), count in fits.items():
        responses = rng.standard_normal((n_lags, n_events, n_units))
        features = rng.standard_normal((n_events, n_features))
        folds = contiguous_folds(n_events, n_folds, gap=config.readout.gap_events)

        def readout(
            x: FloatArray = features, y: FloatArray = responses, blocks: BlockedFolds = folds
        ) -> None:
            nested_ridge(x, y, blocks, grid, compute=compute_settings(config.readout))

        seconds += count * _best_time(readout)
    return seconds


def _draw_seconds(config: StudyConfig, draws: Mapping[Shape, int]) -> float:
    """Time what one more order of events costs at every size, and multiply."""
    rng = np.random.default_rng(0)
    grid = ridge_grid(config.readout)
    seconds = 0.0
    for (n_events, n_lags, n_units, n_folds, n_features), count in draws.items():
        responses = rng.standard_normal((n_lags, n_events, n_units))
        features = rng.standard_normal((n_events, n_features))
        folds = contiguous_folds(n_events, n_folds, gap=config.readout.gap_events)
        order = rng.permutation(n_events)

        def readouts(
            n_draws: int,
            x: FloatArray = features,
            y: FloatArray = responses,
            blocks: BlockedFolds = folds,
        ) -> None:
            orders = [order] * n_draws  # noqa: B023
            nested_ridge_draws(x, y, blocks, grid, orders, compute=compute_settings(config.readout))

        one, several = (_best_time(lambda n=n: readouts(n)) for n in (1, 1 + SAMPLE_DRAWS))  # type: ignore[misc]
        seconds += count * max(0.0, several - one) / SAMPLE_DRAWS
    return seconds


SAMPLE_DRAWS = 4
"""Orders of events that the calibration adds to one."""


def _brain_seconds(config: StudyConfig, brains: Mapping[Shape, int]) -> float:
    """Time the measures among a recording's units, once a size, and multiply."""
    rng = np.random.default_rng(0)
    seconds = 0.0
    for (n_events, n_lags, n_units, n_folds, _), count in brains.items():
        brain = Brain(
            rng.standard_normal((n_lags, n_events, n_units)),
            0,
            contiguous_folds(n_events, n_folds, gap=config.readout.gap_events),
            ridge_grid(config.readout),
            compute_settings(config.readout),
        )
        for measure in build_measures(config).values():
            seconds += count * _best_time(lambda: measure.between_units(brain))  # noqa: B023
    return seconds


def _strip_seconds(strips: Mapping[Shape, int]) -> float:
    """Time one strip of every size, and multiply by the training sets that it is fitted on."""
    rng = np.random.default_rng(0)
    method = STRIPPINGS.build("feature_residualization")
    seconds = 0.0
    for (n_events, _, _, n_folds, n_features), count in strips.items():
        features = rng.standard_normal((n_events, n_features))
        scalar = rng.standard_normal(n_events)
        train = np.arange(n_events // 2)
        inputs = StripInputs(features, 1, {}, lambda *_: features)  # noqa: B023
        direction = RandomDirection.draw(n_events, rng)

        def strip(
            given: StripInputs = inputs, m: FloatArray = scalar, rows: IntArray = train
        ) -> None:
            method.strip(given, direction.scalar(given.features, m, rows), rows)  # noqa: B023

        n_sets = n_folds * (n_folds + 1) // 2
        seconds += count * n_sets * _best_time(strip)
    return seconds


def _comparison_seconds(config: StudyConfig, shapes: Mapping[tuple[int, int, int], int]) -> float:
    """Time the measures that are not fitted, once a size, and multiply."""
    rng = np.random.default_rng(0)
    seconds = 0.0
    measures = [m for m in build_measures(config).values() if not m.from_readout]
    for (n_events, n_units, n_features), count in shapes.items():
        brain = Brain(
            rng.standard_normal((1, n_events, n_units)),
            0,
            contiguous_folds(n_events, 3),
            ridge_grid(config.readout),
        )
        features = rng.standard_normal((n_events, n_features))
        for measure in measures:
            seconds += count * _best_time(lambda: measure.to_units(features, brain))  # noqa: B023
    return seconds


def _best_time(work: Callable[[], object]) -> float:
    """Shortest of two runs on one thread."""
    with threadpool_limits(1):
        times = []
        for _ in range(2):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
    return min(times)
