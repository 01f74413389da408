"""Source audit: what evidence each dataset can carry, before any evidence is looked at.

    chain_complete(d) = B · W · F · S · R · K

(brain series, word grid, features, severe controls, reliability, coverage). A role is configured; the audit can only
lower it, with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
)
from lpact.analyses.lpact.levels.media import MediaAudit, release_rows
from lpact.analyses.lpact.tables.audit import (
    ACOUSTIC_PROXIES,
    AUDIO_SOURCES,
    CONTROL_AVAILABILITY,
    EVIDENCE_FEASIBILITY,
    FINDINGS,
    INGREDIENT_AVAILABILITY,
    MECHANISM_CORRELATIONS,
    MEDIA_SUMMARY,
    MODEL_INVENTORY,
    RELEASE_AUDIT,
    RELIABILITY_MODES,
    STIMULUS_MEDIA,
    TABLES,
    UNIT_INVENTORY,
)
from lpact.config import DatasetConfig
from lpact.datasets.base import DATASETS, Dataset, RecordingId, Stimulus
from lpact.errors import FeatureError, InputError, did_you_mean
from lpact.features.availability import Missing
from lpact.features.models import ModelSource
from lpact.inputs.prepare import Inspection, Prepared
from lpact.inputs.workspace import Workspace
from lpact.store import frame


def audit_datasets(
    config: LPactConfig,
    workspace: Workspace,
    problems: list[InputError],
    advance: Callable[[], None],
) -> dict[str, DatasetAudit]:
    """Audit every dataset of a study; what must be fixed is appended to ``problems``."""
    audits = {
        entry.name: run(
            config=config,
            dataset_config=entry,
            dataset=workspace.dataset(entry.name),
            inspections=_inspections(workspace, entry.name, problems, advance),
            sources=workspace.sources,
            problems=problems,
        )
        for entry in config.datasets
    }
    if not problems:
        problems += _unknown_models(config, list(audits.values()))
    return audits


def _inspections(
    workspace: Workspace, name: str, problems: list[InputError], advance: Callable[[], None]
) -> Iterator[Inspection]:
    """Inspect one recording after another; a problem of one does not hide those of the next."""
    for recording in workspace.dataset(name).recording_ids():
        try:
            yield workspace.inspection(name, recording)
        except InputError as error:
            # Recordings that share a stimulus share its problems.
            if str(error) not in {str(known) for known in problems}:
                problems.append(error)
        advance()


def _unknown_models(config: LPactConfig, audits: list[DatasetAudit]) -> list[InputError]:
    """Models without features in any dataset, where some dataset could have them: most likely a misspelt name."""
    if not any(a.recordings for a in audits):
        return []
    known = {name for a in audits for name in a.models_offered}
    return [
        FeatureError(
            f"no dataset has features of the model '{model.name}'",
            where=f"[[models]] '{model.name}'",
            got="none",
            expected="features for at least one usable recording",
            remedy=f"remove the model, or add its features; {did_you_mean(model.name, known)}",
        )
        for model in config.models
        if not any(model.name in a.models() for a in audits)
    ]


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
        table.name: frame(table, [row for a in audits for row in a.rows(table)]) for table in TABLES
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
