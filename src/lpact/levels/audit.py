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
from lpact.levels.audit_record import ContextOffer, DatasetAudit, RecordingSummary
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
from lpact.levels.conditions import build_controls, control_inputs
from lpact.levels.prepare import Inspection, ModelOnGrid, Prepared
from lpact.levels.strip import STRIPPINGS, StripInputs
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
            audit.contexts += _offers(config, prepared, sources, checked)
        except InputError as error:
            if str(error) not in {str(known) for known in problems}:
                problems.append(error)
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
        mechanisms=tuple(prepared.mechanisms),
    )


def _offers(
    config: StudyConfig,
    prepared: Prepared,
    sources: Mapping[str, ModelSource],
    checked: set[tuple[str, str]],
) -> list[ContextOffer]:
    """Contexts of one recording; a model that offers nothing for its stimulus has none.

    ``checked`` remembers the (model, stimulus) whose feature sets have been looked at.
    """
    controls = build_controls(config)
    offers = []
    for model_config in config.models:
        model = ModelOnGrid(model_config.name, sources[model_config.name], prepared)
        if not model.layers:
            continue
        if (model_config.name, prepared.stimulus.id) not in checked:
            model.check()
            checked.add((model_config.name, prepared.stimulus.id))
        for layer in model_config.layers:
            model.require_layer(layer)
            inputs = control_inputs(config, prepared, model, layer)
            missing = {n: c.unavailable(inputs) for n, c in controls.items()}
            offers.append(
                ContextOffer(
                    recording=prepared.id,
                    model=model_config.name,
                    layer=layer,
                    n_features=inputs.features.shape[1],
                    draws={
                        n: c.n_draws(inputs, config.controls.draws)
                        for n, c in controls.items()
                        if missing[n] is None
                    },
                    unavailable={
                        n: (m.reason, m.detail) for n, m in missing.items() if m is not None
                    },
                    strippings=_possible_strippings(config, model, layer),
                    layers_offered=model.layers,
                    contexts_offered=tuple(sorted({context for _, context in model.offered})),
                )
            )
    return offers


def _possible_strippings(config: StudyConfig, model: ModelOnGrid, layer: int) -> tuple[str, ...]:
    inputs = StripInputs(model.load(layer), layer, model.offered, model.load)
    methods = {
        n: STRIPPINGS.build(n, config.stripping.options.get(n)) for n in config.stripping.methods
    }
    return tuple(n for n, method in methods.items() if method.unavailable(inputs) is None)
