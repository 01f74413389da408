"""Source audit: what evidence each dataset can carry, before any evidence is looked at.

    chain_complete(d) = B · W · F · S · R · K

(brain series, word grid, features, severe controls, reliability, coverage). A role is configured; the audit can only
lower it, with a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from lpact.config import DatasetConfig, StudyConfig
from lpact.datasets.base import Dataset
from lpact.errors import InputError
from lpact.features.availability import Missing
from lpact.features.models import ModelSource
from lpact.levels.audit_chain import feasibility
from lpact.levels.audit_offers import context_offers
from lpact.levels.audit_record import DatasetAudit, RecordingSummary
from lpact.levels.audit_rows import (
    control_rows,
    correlation_rows,
    finding_row,
    ingredient_rows,
    inventory_row,
    media_rows,
    missing_unit_rows,
    mode_rows,
    model_rows,
    source_row,
)
from lpact.levels.prepare import Inspection, Prepared
from lpact.store import frame
from lpact.tables.audit import (
    CONTROL_AVAILABILITY,
    EVIDENCE_FEASIBILITY,
    FINDINGS,
    INGREDIENT_AVAILABILITY,
    MECHANISM_CORRELATIONS,
    MODEL_INVENTORY,
    RELIABILITY_MODES,
    SOURCE_FILES,
    STIMULUS_MEDIA,
    TABLES,
    UNIT_INVENTORY,
)


def run(
    *,
    config: StudyConfig,
    dataset_config: DatasetConfig,
    dataset: Dataset,
    inspections: Iterable[Inspection],
    sources: Mapping[str, ModelSource],
    problems: list[InputError],
) -> DatasetAudit:
    """Audit one dataset, one recording at a time: no data are kept.

    Features that do not fit and layers that are not there are appended to ``problems``, once each.
    """
    audit = DatasetAudit(dataset_config)
    name = dataset_config.name
    missing: list[Mapping[tuple[str, str], Missing]] = []
    correlated: set[str] = set()
    checked: set[tuple[str, str]] = set()
    noted: set[tuple[str, str]] = set()
    n_inspected = 0
    for inspection in inspections:
        n_inspected += 1
        audit.add(UNIT_INVENTORY, [inventory_row(name, inspection)])
        audit.add(FINDINGS, [finding_row(name, inspection.id, f) for f in inspection.findings])
        audit.add(STIMULUS_MEDIA, media_rows(name, inspection, dataset))
        prepared = inspection.prepared
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
    audit.add(SOURCE_FILES, [source_row(name, f) for f in dataset.source_files()])
    audit.add(MODEL_INVENTORY, model_rows(config, name, audit.contexts))
    chain = feasibility(config, audit, dataset, n_inspected - len(audit.recordings))
    audit.confirmatory = bool(chain["confirmatory"])
    audit.add(EVIDENCE_FEASIBILITY, [chain])
    return audit


def frames(audits: Sequence[DatasetAudit]) -> dict[str, pl.DataFrame]:
    """The audit's tables over all datasets."""
    return {
        table.name: frame(table, [row for a in audits for row in a.rows(table)]) for table in TABLES
    }


def _summarise(prepared: Prepared) -> RecordingSummary:
    return RecordingSummary(
        id=prepared.id,
        unit_ids=prepared.grid.units.ids,
        n_events=prepared.n_events,
        n_lags=len(prepared.grid.lags_ms),
        n_folds=prepared.folds.n_blocks,
        mechanisms=(*prepared.mechanisms, *prepared.pending),
    )
