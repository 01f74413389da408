"""How large a run will be, from the sizes that the audit found: rows of every table, and work of every stage.

The unit of work is one floating-point operation of a large matrix product (`StageWork.operations`); the constants below
turn other operations into it. They were fitted by hand on one cloud server, for 300 to 5,000 events, 8 to 768 features
and 16 to 128 units, and are right within about a factor of two; the pace of the first tasks corrects them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product

from lpact.analyses.base import Audit, StageWork
from lpact.analyses.lpact.assays import brain_as_model, implant, reliability
from lpact.analyses.lpact.assays.envelope import PROXIES
from lpact.analyses.lpact.assays.jobs import stimulus_jobs
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.gates.criteria import SHARED, CriterionName
from lpact.analyses.lpact.levels.pairing import MODES
from lpact.analyses.lpact.levels.stripping_methods import STRIPPINGS
from lpact.analyses.lpact.plan import stages
from lpact.analyses.lpact.plan.audit import ContextOffer, DatasetAudit, RecordingSummary
from lpact.analyses.lpact.tables import assay
from lpact.analyses.lpact.tables.audit import MECHANISM_CORRELATIONS
from lpact.codes import Gate
from lpact.controls.base import CONTROLS
from lpact.controls.reordered import ReorderedRows
from lpact.datasets.base import RecordingId
from lpact.inputs.prepare import KEPT_FEATURE_SETS
from lpact.inputs.workspace import KEPT_RECORDINGS
from lpact.math.ridge import METRICS
from lpact.measures import MEASURES
from lpact.run.plan import control_draws

N_KEPT_CONDITIONS = 2
"""Conditions other than controls that levels 1 and 2 keep rows of: real and nuisance."""

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

EIGENVECTORS = 10.0
"""Operations of a symmetric eigendecomposition, times p³."""
EIGENVECTORS_SLOW = 7e3
"""And times p²: the part of it that runs at the speed of memory."""
PREDICTION = 4.0
"""Projections and predictions of a training set, times n·p·t."""
SCORE = 50.0
"""Scores of one penalty, times n·t."""
CALL = 1.5e8
"""A readout, however small."""
CALL_WITH_NUISANCE = 1.2e9
"""A readout with nuisance features: it is not solved together with others."""
PATTERN = 5e7
"""An alignment of one condition, however small."""
PERMUTED = 30.0
"""One exchange or shuffle of units, times the number of units squared."""
ROW = 1.5e6
"""A row of a table: made, checked and kept."""
STIMULUS_JOB = 6e9
"""Low-level gates, envelope and proxies of one recording."""

BYTES = 8
ARRAY_COPIES = 2.5
"""Arrays of a context that are in memory at a time, over those that it is computed from."""
PATTERN_COPIES = 12
"""Unit × unit matrices that are in memory at a time: patterns of a few measures, whole and in halves."""
RESULT_BYTES = 40_000
"""A result on disk, even an empty one: about twenty small Parquet tables."""
ROW_BYTES, ITEM_BYTES, ITEM_TEXT_BYTES = 60, 8, 27
"""On disk: a row of a result; one number of a list in a result, and in the two files of a table."""

IMPLANT_EVENTS, IMPLANT_FEATURES, IMPLANT_LAGS = 330, 38, 2
"""Sizes of the implanted study that its settings do not say."""


def count_study(config: LPactConfig, audit: Audit) -> tuple[dict[str, int], tuple[str, ...]]:
    """Rows by table, and the claims of a study."""
    rows: Counter[str] = Counter({name: table.height for name, table in audit.tables.items()})
    n_mechanisms = {
        (name, recording.id.stimulus): len(recording.mechanisms)
        for name, dataset in audit.detail.items()
        for recording in dataset.recordings
    }
    rows[MECHANISM_CORRELATIONS.name] = sum(n * (n - 1) // 2 for n in n_mechanisms.values())
    layers: dict[tuple[str, str, int], None] = {}
    for name, dataset in audit.detail.items():
        layers |= dict.fromkeys((name, offer.model, offer.layer) for offer in dataset.contexts)
        for recording in dataset.recordings:
            rows.update(brain_rows(config, recording))
    for recording, offer, n in _contexts(audit.detail.values()):
        for table, n_rows in context_rows(config, recording, offer).items():
            rows[table] += n * n_rows
    places = product(layers, config.mechanisms.include)
    claims = tuple("/".join(map(str, (*layer, mechanism))) for layer, mechanism in places)
    for name in ("lpact_decision_table", "control_explained_results", "lpact_decision_summary"):
        rows[f"decisions/{name}"] = N_PROFILES * len(claims)
    rows["decisions/lpact_gate_evidence"] = N_CRITERIA * len(claims)
    rows["decisions/lpact_study_outcome"] = N_PROFILES
    if config.assay.enabled:
        rows.update(assay_rows(config, audit))
    return dict(sorted(rows.items())), claims


def _contexts(
    datasets: Iterable[DatasetAudit],
) -> Iterator[tuple[RecordingSummary, ContextOffer, int]]:
    """One context of each size, and how many have that size: they have the same rows and the same work."""
    for dataset in datasets:
        by_id = {r.id: r for r in dataset.recordings}
        found: dict[tuple[object, ...], tuple[RecordingSummary, ContextOffer, int]] = {}
        for offer in dataset.contexts:
            r = by_id[offer.recording]
            size = (r.n_events, r.n_lags, len(r.unit_ids), r.n_folds, r.mechanisms)
            kind = (
                *size,
                r.region_sizes,
                offer.n_features,
                tuple(offer.draws.items()),
                offer.strippings,
            )
            first, own, n = found.get(kind, (r, offer, 0))
            found[kind] = (first, own, n + 1)
        yield from found.values()


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


def context_rows(config: LPactConfig, recording: RecordingSummary, offer: ContextOffer) -> Counter[str]:
    """Count the rows that one context makes, by table."""
    rows: Counter[str] = Counter()
    n_conditions = 1 + sum(offer.draws.values())
    n_scored = n_conditions + 2  # Nuisance, and nuisance with the model.
    rows["predictive/predictive_scores"] += len(METRICS) * n_scored
    rows["predictive/predictive_unit_scores"] += len(METRICS) * n_scored
    for name in ("control_deltas", "subject_run_summary", "failure_modes"):
        rows[f"predictive/predictive_{name}"] += len(METRICS)
    rows["predictive/predictive_control_nulls"] += len(METRICS) * len(offer.draws)
    rows["predictive/predictive_block_scores"] += N_KEPT_CONDITIONS + len(offer.draws)

    n_alignments = len(config.relational.alignments)
    n_summaries = n_alignments * len(config.relational.profiles)
    n_rows = n_summaries * len(recording.unit_ids)
    n_kept = N_KEPT_CONDITIONS + len(offer.draws)
    rows["relational/model_alignment_patterns"] += n_alignments * (n_conditions + 1)
    rows["relational/profile_similarity_scores"] += n_rows * n_kept
    # One test per control, one of nuisance, and one of the unit order.
    rows["relational/relational_null_draws"] += n_summaries * (len(offer.draws) + 2)
    rows["relational/profile_similarity_deltas"] += n_rows
    rows["relational/relational_subject_run_summary"] += n_summaries
    rows["ceilings/ceiling_normalized_scores"] += n_rows
    rows["ceilings/ceiling_normalized_predictive"] += len(MODES)

    n_mechanisms, n_methods = len(config.mechanisms.include), len(config.stripping.methods)
    rows["causal/causal_stripping_features"] += n_methods * n_mechanisms
    rows["causal/causal_stripping_scores"] += 2 * n_methods * n_mechanisms**2
    rows["causal/causal_stripping_deltas"] += n_methods * n_mechanisms**2
    rows["causal/mechanism_specificity_summary"] += n_methods * n_mechanisms
    rows["causal/double_dissociation_tests"] += n_mechanisms * (n_mechanisms - 1) // 2
    n_present, n_offered = len(recording.mechanisms), len(offer.strippings)
    n_own = n_by_mechanism(offer.strippings)
    rows["causal/causal_targets"] += n_present * recording.n_folds
    # Alone, with nuisance features, and random directions.
    rows["causal/causal_block_drops"] += n_present * (2 * n_present * n_offered + n_own)
    n_mismatched = (n_present - 1) * n_offered + config.stripping.mismatch_draws * n_own
    rows["causal/causal_mismatch_controls"] += n_present * n_mismatched
    return rows


def n_by_mechanism(strippings: tuple[str, ...]) -> int:
    """Methods whose result depends on the mechanism."""
    return sum(STRIPPINGS.get(name).uses_mechanism for name in strippings)


def assay_rows(config: LPactConfig, audit: Audit) -> Counter[str]:
    """Rows that the positive controls will have, by table."""
    n_summaries = len(config.relational.alignments) * len(config.relational.profiles)
    n_datasets, n_comparisons = len(audit.detail), len(brain_as_model.COMPARISONS)
    n_implanted = len(implant.ARMS) * N_PROFILES * len(implant.QUANTITIES)
    rows = Counter(
        {
            assay.IMPLANT.name: n_implanted,
            assay.BRAIN_RELIABILITY.name: n_datasets * len(MODES) * len(reliability.KINDS),
            assay.BRAIN_AS_MODEL_SUMMARY.name: n_datasets * n_comparisons * n_summaries,
            assay.BRAIN_ORACLE.name: n_datasets * n_comparisons,
            assay.PROFILE_ORDER.name: n_datasets * n_summaries,
            assay.BRAIN_AS_MODEL.name: 0,
            assay.STANDALONE_SUMMARY.name: n_datasets,
            assay.FULL_SUMMARY.name: n_datasets,
            assay.PROXY_SUMMARY.name: n_datasets * len(PROXIES),
        }
    )
    for name, dataset in audit.detail.items():
        units = [set(recording.unit_ids) for recording in dataset.recordings]
        for comparison in brain_as_model.COMPARISONS:
            chosen, _ = brain_as_model.pairs(config, name, comparison, dataset.recordings)
            n_shared = sum(len(units[i] & units[j]) for i, j in chosen)
            rows[assay.BRAIN_AS_MODEL.name] += n_shared * n_summaries
    groups: dict[str, set[tuple[str, str]]] = {name: set() for name in audit.detail}
    for job in stimulus_jobs(config, audit):
        windows = [(t, w) for t, named in job.place(config).windows.items() for w in named]
        groups[job.dataset] |= set(windows)
        rows[assay.LOW_LEVEL.name] += len(windows)
        rows[assay.ENVELOPE_STANDALONE.name] += 1
        rows[assay.ENVELOPE_FULL.name] += 1
        rows[assay.PROXY.name] += len(PROXIES)
    # A dataset without recordings has the groups of a time series.
    without = 2 * len(config.assay.onset_windows_ms)
    rows[assay.LOW_LEVEL_SUMMARY.name] = sum(len(own) or without for own in groups.values())
    return rows


def on_responses(control: str) -> bool:
    """Whether a control's draws share the real features' decompositions, because only the order of events differs."""
    kind = CONTROLS.get(control)
    return issubclass(kind, ReorderedRows) and kind.contiguous


def n_stripped_fits(config: LPactConfig, recording: RecordingSummary, offer: ContextOffer) -> int:
    """Nested readouts of one context with stripped features."""
    n_own = n_by_mechanism(offer.strippings)
    shared = len(offer.strippings) - n_own
    return shared + n_own * (1 + config.stripping.mismatch_draws) * len(recording.mechanisms)


def work(config: LPactConfig, audit: Audit) -> dict[str, StageWork]:
    """Work by stage."""
    datasets: Mapping[str, DatasetAudit] = audit.detail
    recordings = [r for dataset in datasets.values() for r in dataset.recordings]
    contexts = list(_contexts(datasets.values()))
    brains = [brain_work(config, r) for r in recordings]
    levels = [(context_work(config, r, offer), n) for r, offer, n in contexts]
    array_bytes = max((context_bytes(config, r, offer) for r, offer, _ in contexts), default=0)
    signals = max((population_bytes(config, r) for r in recordings), default=0)
    n_patterns = 3 * len(config.relational.alignments)
    of_brains = (n_patterns * ITEM_BYTES * len(r.unit_ids) ** 2 for r in recordings)
    of_levels = (n * result_bytes(config, r, offer) for r, offer, n in contexts)
    made = {
        stages.BRAINS: StageWork(
            sum(brains),
            max(brains, default=0.0),
            2 * signals,
            RESULT_BYTES * len(recordings) + sum(of_brains),
        ),
        stages.LEVELS: StageWork(
            sum(own * n for own, n in levels),
            max((own for own, _ in levels), default=0.0),
            array_bytes,
            sum(of_levels),
        ),
        stages.CEILINGS: _ceilings(config, datasets),
    }
    if config.assay.enabled:
        made[stages.CONTROLS] = _controls(config, audit, max(array_bytes, signals))
    return made


def result_bytes(config: LPactConfig, recording: RecordingSummary, offer: ContextOffer) -> int:
    """Bytes of the result of one context on disk."""
    n_rows = context_rows(config, recording, offer).total()
    return RESULT_BYTES + ROW_BYTES * n_rows + ITEM_BYTES * n_items(config, recording, offer)


def list_bytes(config: LPactConfig, audit: Audit) -> int:
    """Bytes of numbers in lists, in both files of the tables."""
    contexts = _contexts(audit.detail.values())
    return ITEM_TEXT_BYTES * sum(n * n_items(config, r, offer) for r, offer, n in contexts)


def fit_work(config: LPactConfig, recording: RecordingSummary, n_features: int) -> float:
    """One nested readout: F(F+1)/2 training sets, each decomposed and scored under every penalty."""
    n, t = recording.n_events, recording.n_lags * len(recording.unit_ids)
    p = min(n, n_features)
    n_sets = recording.n_folds * (recording.n_folds + 1) // 2
    grid = len(config.readout.alphas) * len(config.readout.pca)
    decomposed = EIGENVECTORS * p**3 + EIGENVECTORS_SLOW * p**2
    return CALL + n_sets * (decomposed + PREDICTION * n * p * t + SCORE * grid * n * t)


def population_sizes(config: LPactConfig, recording: RecordingSummary) -> tuple[int, ...]:
    """Units of every region where level 2 compares populations; else nothing."""
    return recording.region_sizes if config.relational.region_as == "population" else ()


def _with_all_units(config: LPactConfig, recording: RecordingSummary) -> RecordingSummary:
    """The recording with the units of all regions in place of their means."""
    n_units = sum(population_sizes(config, recording))
    return replace(recording, unit_ids=("",) * n_units, region_sizes=())


def _has_readout(config: LPactConfig) -> bool:
    return any(MEASURES.get(name).from_readout for name in config.relational.alignments)


def context_work(config: LPactConfig, recording: RecordingSummary, offer: ContextOffer) -> float:
    """Levels 1 to 3 of one context: readouts, alignments, permutations and rows."""
    n, p, n_units = recording.n_events, offer.n_features, len(recording.unit_ids)
    fit = fit_work(config, recording, p)
    decomposed = fit - fit_work(config, recording, 0)
    n_reordered = sum(k for name, k in offer.draws.items() if on_responses(name))
    n_conditions = 2 + sum(offer.draws.values())
    n_stripped = n_stripped_fits(config, recording, offer)
    n_with_nuisance = 1 + len(offer.strippings) * len(recording.mechanisms)
    # Real features, with nuisance, decompositions that orders share, and other draws; nuisance alone is fitted once.
    readouts = fit * (1 + n_conditions - n_reordered + n_stripped)
    readouts += (fit - decomposed) * n_reordered + (fit + CALL_WITH_NUISANCE) * n_with_nuisance
    sizes, n_alignments = population_sizes(config, recording), len(config.relational.alignments)
    if sizes and _has_readout(config):
        of_units = fit_work(config, _with_all_units(config, recording), p)
        readouts += of_units * (1 + n_conditions) - n_reordered * decomposed
    aligned = PATTERN + 2.0 * n * p * (min(n, p) + n_units)
    if sizes:  # Distances of all pairs of events, of the features and, once, of every region.
        aligned += n * n * (p + len(sizes) + sum(sizes) / n_conditions)
    n_summaries = n_alignments * len(config.relational.profiles)
    n_tests = n_summaries * (len(offer.draws) + 2)
    permuted = PERMUTED * n_tests * config.relational.permutations * n_units**2
    rows = ROW * context_rows(config, recording, offer).total()
    return readouts + n_conditions * n_alignments * aligned + permuted + rows


def brain_work(config: LPactConfig, recording: RecordingSummary) -> float:
    """Patterns of one recording and of its halves: every unit to all others, at every lag."""
    if sizes := population_sizes(config, recording):
        own, n_alignments = _with_all_units(config, recording), len(config.relational.alignments)
        fits = (fit_work(config, own, size) for size in sizes)
        geometry = recording.n_events**2 * (sum(sizes) + len(sizes) ** 2)
        return 2.0 * (_has_readout(config) * sum(fits) + n_alignments * (PATTERN + geometry))
    n, n_units = recording.n_events, len(recording.unit_ids)
    n_sets = recording.n_folds * (recording.n_folds + 1) // 2
    grid = len(config.readout.alphas) * len(config.readout.pca)
    linear = recording.n_lags * n_units**2 * (4.0 * n + n_sets * SCORE * grid)
    return 4 * (CALL + linear + len(config.relational.alignments) * (PATTERN + 4.0 * n * n_units**2))


def _ceilings(config: LPactConfig, datasets: Mapping[str, DatasetAudit]) -> StageWork:
    """Pairs of recordings: patterns and responses of one with those of the other."""
    each = []
    for dataset in datasets.values():
        sizes = [(r.n_events, len(r.unit_ids)) for r in dataset.recordings]
        if sizes:
            n_events, n_units = (max(column) for column in zip(*sizes, strict=True))
            n_pairs = len(sizes) * (len(sizes) + 1) / 2
            n_summaries = len(config.relational.alignments) * len(config.relational.profiles)
            pair = PATTERN * n_summaries + 50.0 * (n_summaries * n_units**2 + n_events * n_units)
            each.append(n_pairs * pair)
    peak = max((sum(map(recording_bytes, d.recordings)) for d in datasets.values()), default=0)
    return StageWork(sum(each), max(each, default=0.0), peak, RESULT_BYTES * len(each))


def _controls(config: LPactConfig, audit: Audit, peak: int) -> StageWork:
    """Two implanted studies, profiles of every dataset, and the stimulus of every recording."""
    arms = [_implanted(implant.implant_config(config, arm)) for arm in implant.ARMS]
    n_jobs = len(stimulus_jobs(config, audit))
    profiles = [
        config.assay.unit_permutations * len(d.recordings) * PERMUTED * len(r.unit_ids) ** 2
        for d in audit.detail.values()
        for r in d.recordings[:1]
    ]
    operations = sum(arms) + n_jobs * STIMULUS_JOB + sum(profiles)
    n_results = len(arms) + n_jobs + len(profiles)
    return StageWork(operations, max(*arms, *profiles, 0.0), peak, RESULT_BYTES * n_results // 2)


def _implanted(config: LPactConfig) -> float:
    """One arm: a whole study of known size in which every control is possible."""
    options = config.datasets[0].options
    units = tuple(map(str, range(options["n_units"])))
    anyone = RecordingId("", "", "", "")
    sizes = (IMPLANT_EVENTS, IMPLANT_LAGS, config.readout.folds)
    recording = RecordingSummary(anyone, units, *sizes, config.mechanisms.include)
    draws, methods = control_draws(config), config.stripping.methods
    offer = ContextOffer(anyone, "", 0, IMPLANT_FEATURES, draws, {}, methods, (), ())
    each = context_work(config, recording, offer) + brain_work(config, recording)
    return float(options["n_subjects"] * options["n_runs"] * each)


def n_items(config: LPactConfig, recording: RecordingSummary, offer: ContextOffer) -> int:
    """Numbers in the lists of a context's tables: unit scores, patterns, draws of the tests, drops of blocks."""
    rows, n_units = context_rows(config, recording, offer), len(recording.unit_ids)
    return (
        (rows["predictive/predictive_unit_scores"] + rows["relational/model_alignment_patterns"]) * n_units
        + rows["relational/relational_null_draws"] * config.relational.permutations
        + rows["causal/causal_block_drops"] * recording.n_folds
    )


def recording_bytes(recording: RecordingSummary) -> int:
    """Recordings on their grids that are kept in memory, and patterns of their units."""
    n_units = len(recording.unit_ids)
    responses = (KEPT_RECORDINGS + 1) * recording.n_events * recording.n_lags * n_units
    return BYTES * (responses + PATTERN_COPIES * n_units**2)


def population_bytes(config: LPactConfig, recording: RecordingSummary) -> int:
    """Recordings in memory, with the units of regions that are populations and their pairs of events."""
    sizes = population_sizes(config, recording)
    if not sizes:
        return recording_bytes(recording)
    pairs = len(config.relational.alignments) * len(sizes) * recording.n_events**2 // 2
    units = (KEPT_RECORDINGS + 1) * recording.n_events * recording.n_lags * sum(sizes)
    return recording_bytes(recording) + BYTES * (units + pairs)


def context_bytes(config: LPactConfig, recording: RecordingSummary, offer: ContextOffer) -> int:
    """Arrays of one context: recordings, feature sets, and a readout's as far as ``readout.memory_gib`` allows."""
    n, p, n_units = recording.n_events, offer.n_features, len(recording.unit_ids)
    t = recording.n_lags * max(n_units, sum(population_sizes(config, recording)))
    grid = len(config.readout.alphas) * len(config.readout.pca)
    working = BYTES * (6 * n * p + 4 * p * min(n, p) + t * grid * (n + recording.n_folds * p))
    inputs = population_bytes(config, recording) + BYTES * KEPT_FEATURE_SETS * n * p
    return int(ARRAY_COPIES * (inputs + min(working, config.readout.memory_gib * 2**30)))
