"""Source audit: what evidence each dataset can carry, before any evidence is looked at.

    chain_complete(d) = B · W · F · S · R · K

(brain series, word grid, features, severe controls, reliability, coverage). A role is configured; the audit can only
lower it, with a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import polars as pl

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels.audit_chain import feasibility
from lpact.analyses.lpact.levels.audit_offers import context_offers
from lpact.analyses.lpact.levels.audit_record import DatasetAudit, RecordingSummary
from lpact.analyses.lpact.levels.audit_rows import (
    control_rows,
    correlation_rows,
    finding_row,
    ingredient_rows,
    inventory_row,
    missing_unit_rows,
    mode_rows,
    model_rows,
    source_row,
)
from lpact.analyses.lpact.levels.media import MediaAudit, release_rows
from lpact.analyses.lpact.tables.audit import (
    CONTROL_AVAILABILITY,
    EVIDENCE_FEASIBILITY,
    FINDINGS,
    INGREDIENT_AVAILABILITY,
    MECHANISM_CORRELATIONS,
    MODEL_INVENTORY,
    RELIABILITY_MODES,
    TABLES,
    UNIT_INVENTORY,
)
from lpact.analyses.lpact.tables.media import (
    ACOUSTIC_PROXIES,
    AUDIO_SOURCES,
    MEDIA_SUMMARY,
    RELEASE_AUDIT,
    STIMULUS_MEDIA,
)
from lpact.analyses.lpact.tables.media import TABLES as MEDIA_TABLES
from lpact.config import DatasetConfig
from lpact.datasets.base import DATASETS, Dataset, RecordingId, Stimulus
from lpact.errors import InputError
from lpact.features.availability import Missing
from lpact.features.models import ModelSource
from lpact.inputs.prepare import Inspection, Prepared
from lpact.store import frame
from lpact.tables import SOURCE_FILES


def run(
    *,
    config: LPactConfig,
    dataset_config: DatasetConfig,
    dataset: Dataset,
    inspections: Iterable[Inspection],
    sources: Mapping[str, ModelSource],
    problems: list[InputError],
) -> DatasetAudit:
    """Audit one dataset, one recording at a time: no data are kept.

    Features that do not fit and layers that are not there are appended to ``problems``, once each.
    """
    name = dataset_config.name
    audit = DatasetAudit(dataset_config, MediaAudit(name))
    missing: list[Mapping[tuple[str, str], Missing]] = []
    correlated: set[str] = set()
    checked: set[tuple[str, str]] = set()
    noted: set[tuple[str, str]] = set()
    n_inspected = 0
    everywhere = RecordingId("(all)", "(all)", "(all)", "")
    audit.add(FINDINGS, [finding_row(name, everywhere, f) for f in dataset.findings])
    for inspection in inspections:
        n_inspected += 1
        audit.add(UNIT_INVENTORY, [inventory_row(name, inspection)])
        audit.add(FINDINGS, [finding_row(name, inspection.id, f) for f in inspection.findings])
        prepared = inspection.prepared
        audit.media.add(inspection.id, partial(_stimulus, dataset, inspection))
        if prepared is None:
            continue
        audit.recordings.append(_summarise(prepared))
        if prepared.stimulus.features is not None:
            audit.models_offered |= {key.model for key in prepared.stimulus.features.keys()}  # noqa: SIM118
        try:
            audit.contexts += context_offers(config, prepared, sources, checked)
        except InputError as error:
            if str(error) not in {str(known) for known in problems}:
                problems.append(error)
        for model in (m.name for m in config.models):
            if (model, prepared.stimulus.id) not in noted:
                noted.add((model, prepared.stimulus.id))
                notes = sources[model].findings(model, prepared.stimulus)
                audit.add(FINDINGS, [finding_row(name, prepared.id, f) for f in notes])
        missing.append(inspection.missing)
        if prepared.stimulus.id not in correlated:
            correlated.add(prepared.stimulus.id)
            audit.add(MECHANISM_CORRELATIONS, correlation_rows(name, prepared))
    audit.add(FINDINGS, missing_unit_rows(name, audit.recordings))
    audit.add(CONTROL_AVAILABILITY, control_rows(config, name, audit.contexts))
    audit.add(INGREDIENT_AVAILABILITY, ingredient_rows(config, name, missing))
    audit.add(RELIABILITY_MODES, mode_rows(name, audit.recordings, config.relational.min_units))
    _other_stimuli(dataset, audit.media, problems)
    files = dataset.source_files()
    audit.add(SOURCE_FILES, [source_row(name, f) for f in files])
    audit.add(RELEASE_AUDIT, release_rows(name, DATASETS.get(dataset_config.reader).layout, files))
    for table, rows in (
        (STIMULUS_MEDIA, audit.media.mapping()),
        (MEDIA_SUMMARY, audit.media.summary()),
        (AUDIO_SOURCES, audit.media.sources()),
    ):
        audit.add(table, rows)
    audit.add(MODEL_INVENTORY, model_rows(config, name, audit.contexts))
    chain = feasibility(config, audit, dataset, n_inspected - len(audit.recordings))
    audit.confirmatory = bool(chain["confirmatory"])
    audit.add(EVIDENCE_FEASIBILITY, [chain])
    return audit


def frames(audits: Sequence[DatasetAudit]) -> dict[str, pl.DataFrame]:
    """The audit's tables over all datasets."""
    made = {
        table.name: frame(table, [row for a in audits for row in a.rows(table)])
        for table in (*TABLES, *MEDIA_TABLES)
    }
    sounding = [a.config.name for a in audits if a.media.has_true_envelope]
    proxies = [
        row
        for a in audits
        for row in a.media.proxies([name for name in sounding if name != a.config.name])
    ]
    return made | {ACOUSTIC_PROXIES.name: frame(ACOUSTIC_PROXIES, proxies)}


def _other_stimuli(dataset: Dataset, media: MediaAudit, problems: list[InputError]) -> None:
    """Media of stimuli that no recording was seen of: a dataset of text alone has no others."""
    for stimulus_id in dataset.stimulus_ids():
        try:
            media.add_stimulus(stimulus_id, partial(dataset.stimulus, stimulus_id))
        except InputError as error:
            if str(error) not in {str(known) for known in problems}:
                problems.append(error)


def _stimulus(dataset: Dataset, inspection: Inspection) -> Stimulus:
    """The stimulus of a recording; read again only where the recording is not used."""
    prepared = inspection.prepared
    return dataset.stimulus(inspection.id.stimulus) if prepared is None else prepared.stimulus


def _summarise(prepared: Prepared) -> RecordingSummary:
    return RecordingSummary(
        id=prepared.id,
        unit_ids=prepared.grid.units.ids,
        n_events=prepared.n_events,
        n_lags=len(prepared.grid.lags_ms),
        n_folds=prepared.folds.n_blocks,
        mechanisms=(*prepared.mechanisms, *prepared.pending),
        comparable=prepared.grid.units.comparable,
    )
