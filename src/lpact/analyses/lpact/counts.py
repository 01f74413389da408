"""How many rows every table of a run will have, and how many readouts are behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from lpact.analyses.base import Audit
from lpact.analyses.lpact.assays import brain_as_model, implant, reliability
from lpact.analyses.lpact.assays.envelope import PROXIES
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.gates.criteria import SHARED, CriterionName
from lpact.analyses.lpact.levels.audit_record import ContextOffer, RecordingSummary
from lpact.analyses.lpact.levels.pairing import MODES
from lpact.analyses.lpact.levels.relational import build_measures
from lpact.analyses.lpact.levels.strip import STRIPPINGS
from lpact.analyses.lpact.stimulus_controls import stimulus_jobs, stimulus_rows
from lpact.analyses.lpact.tables.assay import (
    BRAIN_AS_MODEL,
    BRAIN_AS_MODEL_SUMMARY,
    BRAIN_ORACLE,
    BRAIN_RELIABILITY,
    FULL_SUMMARY,
    IMPLANT,
    LOW_LEVEL_SUMMARY,
    PROFILE_ORDER,
    PROXY_SUMMARY,
    STANDALONE_SUMMARY,
)
from lpact.analyses.lpact.tables.audit import MECHANISM_CORRELATIONS
from lpact.codes import Gate
from lpact.controls.base import CONTROLS
from lpact.controls.reordered import ReorderedRows
from lpact.math.ridge import METRICS

N_FITTED_MODEL_CONDITIONS = 2
"""Nuisance alone, and nuisance plus model, beside the real features and the controls."""

N_KEPT_CONDITIONS = 2
"""Conditions beside controls of which levels 1 and 2 keep rows: real and nuisance."""

N_PROFILES = 2
"""Gate profiles."""

N_CRITERIA = len(CriterionName) - 1 + len(SHARED) + N_PROFILES * len(Gate)
"""Criteria of a claim: each once, those that both profiles share twice, and `confirmatory` in every gate."""

AT_MOST = frozenset(
    {
        "predictive/predictive_failure_modes",
        "causal/causal_mismatch_controls",
        "causal/causal_block_drops",
        "decisions/control_explained_results",
        "decisions/lpact_decision_summary",
    }
)
"""Tables whose rows depend on results: their count is a bound."""


@dataclass(frozen=True)
class Counts:
    """Rows by table, claims, and readouts of a study."""

    rows: Mapping[str, int]
    claims: tuple[str, ...]
    n_fits: int


def count_study(config: LPactConfig, audit: Audit) -> Counts:
    """Count without computing anything: contexts that are alike are counted once."""
    rows: Counter[str] = Counter({name: table.height for name, table in audit.tables.items()})
    rows[MECHANISM_CORRELATIONS.name] = _n_correlations(audit)
    claims: dict[tuple[str, str, int], None] = {}
    n_fits = 0
    for name, dataset in audit.detail.items():
        by_id = {recording.id: recording for recording in dataset.recordings}
        for recording in dataset.recordings:
            rows.update(brain_rows(config, recording))
            n_fits += n_unit_fits(config, recording)
        alike: Counter[tuple[object, ...]] = Counter()
        first: dict[tuple[object, ...], tuple[RecordingSummary, ContextOffer]] = {}
        for offer in dataset.contexts:
            claims[name, offer.model, offer.layer] = None
            recording = by_id[offer.recording]
            kind = context_kind(recording, offer)
            alike[kind] += 1
            first.setdefault(kind, (recording, offer))
        for kind, n in alike.items():
            recording, offer = first[kind]
            for table, n_rows in context_rows(config, recording, offer).items():
                rows[table] += n * n_rows
            n_fits += n * (n_plain_fits(offer) + n_stripped_fits(config, recording, offer))
    named = tuple(
        "/".join(map(str, (*layer, mechanism)))
        for layer in claims
        for mechanism in config.mechanisms.include
    )
    n_claims = len(named)
    rows["decisions/lpact_decision_table"] = N_PROFILES * n_claims
    rows["decisions/control_explained_results"] = N_PROFILES * n_claims
    rows["decisions/lpact_gate_evidence"] = n_claims * N_CRITERIA
    rows["decisions/lpact_decision_summary"] = N_PROFILES * n_claims
    rows["decisions/lpact_study_outcome"] = N_PROFILES
    if config.assay.enabled:
        rows.update(assay_rows(config, audit))
    return Counts(dict(sorted(rows.items())), named, n_fits)


def context_kind(recording: RecordingSummary, offer: ContextOffer) -> tuple[object, ...]:
    """All that the size of a context depends on: two with the same have the same rows and the same work."""
    return (
        recording.n_events,
        recording.n_lags,
        len(recording.unit_ids),
        recording.n_folds,
        recording.mechanisms,
        offer.n_features,
        tuple(offer.draws.items()),
        offer.strippings,
        offer.contexts_offered,
    )


def _n_correlations(audit: Audit) -> int:
    """Pairs of mechanisms of each stimulus, those included that a language model is still to give."""
    sizes = {
        (name, recording.id.stimulus): len(recording.mechanisms)
        for name, dataset in audit.detail.items()
        for recording in dataset.recordings
    }
    return sum(n * (n - 1) // 2 for n in sizes.values())


def brain_rows(config: LPactConfig, recording: RecordingSummary) -> Counter[str]:
    """Count the rows that one recording makes without any model, by table."""
    n_alignments, n_profiles = len(config.relational.alignments), len(config.relational.profiles)
    n_units = len(recording.unit_ids)
    return Counter(
        {
            "relational/brain_unit_index": n_units,
            "relational/brain_alignment_patterns": n_alignments * n_units,
            "relational/brain_half_patterns": 2 * n_alignments * n_units,
            "ceilings/brain_brain_ceiling": len(MODES) * (n_alignments * n_profiles + 2),
        }
    )


def context_rows(
    config: LPactConfig, recording: RecordingSummary, offer: ContextOffer
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

    n_mechanisms, n_methods = len(config.mechanisms.include), len(config.stripping.methods)
    rows["causal/causal_stripping_features"] += n_methods * n_mechanisms
    rows["causal/causal_stripping_scores"] += 2 * n_methods * n_mechanisms**2
    rows["causal/causal_stripping_deltas"] += n_methods * n_mechanisms**2
    rows["causal/mechanism_specificity_summary"] += n_methods * n_mechanisms
    rows["causal/double_dissociation_tests"] += n_mechanisms * (n_mechanisms - 1) // 2
    n_present = len(recording.mechanisms)
    n_own = len(mechanism_strippings(offer.strippings))
    rows["causal/causal_targets"] += n_present * recording.n_folds
    # Alone and beside nuisance, and random directions.
    rows["causal/causal_block_drops"] += 2 * n_present**2 * len(offer.strippings)
    rows["causal/causal_block_drops"] += n_present * n_own
    rows["causal/causal_mismatch_controls"] += n_present * (
        (n_present - 1) * len(offer.strippings) + config.stripping.mismatch_draws * n_own
    )
    return rows


def mechanism_strippings(names: tuple[str, ...]) -> list[str]:
    """Methods whose result depends on the mechanism."""
    return [name for name in names if STRIPPINGS.get(name).uses_mechanism]


def n_plain_fits(offer: ContextOffer) -> int:
    """Nested readouts of one context with features as they are."""
    return 1 + sum(offer.draws.values()) + N_FITTED_MODEL_CONDITIONS


def on_responses(control: str) -> bool:
    """Whether a control's draws share the real features' decompositions, because only the order of events differs."""
    kind = CONTROLS.get(control)
    return issubclass(kind, ReorderedRows) and kind.contiguous


def n_stripped_fits(config: LPactConfig, recording: RecordingSummary, offer: ContextOffer) -> int:
    """Nested readouts of one context with stripped features."""
    n_own = len(mechanism_strippings(offer.strippings))
    shared = len(offer.strippings) - n_own
    return shared + n_own * (1 + config.stripping.mismatch_draws) * len(recording.mechanisms)


def n_unit_fits(config: LPactConfig, recording: RecordingSummary) -> int:
    """Nested readouts from every unit to all others: of the whole recording and of its halves."""
    fitted = sum(measure.from_readout for measure in build_measures(config).values())
    return 3 * fitted * len(recording.unit_ids)


def assay_rows(config: LPactConfig, audit: Audit) -> Counter[str]:
    """Rows that the positive controls will have, by table."""
    n_summaries = len(config.relational.alignments) * len(config.relational.profiles)
    n_datasets, n_comparisons = len(audit.detail), len(brain_as_model.COMPARISONS)
    rows = Counter(
        {
            IMPLANT.name: len(implant.ARMS) * len(implant.GATE_PROFILES) * len(implant.QUANTITIES),
            BRAIN_RELIABILITY.name: n_datasets * len(MODES) * len(reliability.KINDS),
            BRAIN_AS_MODEL_SUMMARY.name: n_datasets * n_comparisons * n_summaries,
            BRAIN_ORACLE.name: n_datasets * n_comparisons,
            PROFILE_ORDER.name: n_datasets * n_summaries,
            BRAIN_AS_MODEL.name: 0,
        }
    )
    for name, dataset in audit.detail.items():
        units = [set(recording.unit_ids) for recording in dataset.recordings]
        for comparison in brain_as_model.COMPARISONS:
            chosen, _ = brain_as_model.pairs(config, name, comparison, dataset.recordings)
            n_shared = sum(len(units[i] & units[j]) for i, j in chosen)
            rows[BRAIN_AS_MODEL.name] += n_shared * n_summaries
    return rows + stimulus_rows(config, audit) + _stimulus_summary_rows(config, audit)


def _stimulus_summary_rows(config: LPactConfig, audit: Audit) -> Counter[str]:
    """One row a dataset and group; a dataset without recordings has the groups of a time series."""
    without = 2 * len(config.assay.onset_windows_ms)
    groups: dict[str, set[tuple[str, str]]] = {name: set() for name in audit.detail}
    for job in stimulus_jobs(config, audit):
        windows = job.place(config).windows
        groups[job.dataset] |= {(t, window) for t, named in windows.items() for window in named}
    n_datasets = len(audit.detail)
    return Counter(
        {
            LOW_LEVEL_SUMMARY.name: sum(len(own) or without for own in groups.values()),
            STANDALONE_SUMMARY.name: n_datasets,
            FULL_SUMMARY.name: n_datasets,
            PROXY_SUMMARY.name: n_datasets * len(PROXIES),
        }
    )
