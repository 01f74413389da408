"""Source audit: what evidence each dataset can give, before any evidence is computed.

    chain_complete(d) = B · W · F · S · R · K

(brain series, word grid, features, severe controls, reliability, coverage). A role is configured; the audit can only
lower it, with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import polars as pl

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels.audit_record import (
    ContextOffer,
    DatasetAudit,
    RecordingSummary,
    Row,
)
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
from lpact.analyses.lpact.levels.conditions import build_controls, control_inputs
from lpact.analyses.lpact.levels.media import MediaAudit, release_rows
from lpact.analyses.lpact.levels.strip import StripInputs, build_strippings
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
from lpact.codes import Reason
from lpact.config import DatasetConfig
from lpact.datasets.base import DATASETS, Dataset, RecordingId, Stimulus, role_of
from lpact.errors import FeatureError, InputError, did_you_mean
from lpact.features.availability import Missing
from lpact.features.models import FULL, STATIC, ModelSource
from lpact.inputs.prepare import Inspection, ModelOnGrid, Prepared
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
            _add(problems, error)
        advance()


def _add(problems: list[InputError], error: InputError) -> None:
    """Note a problem once: recordings that share a stimulus share its problems."""
    if str(error) not in {str(known) for known in problems}:
        problems.append(error)


def _unknown_models(config: LPactConfig, audits: list[DatasetAudit]) -> list[InputError]:
    """Models without features in any dataset that could have them: most likely a misspelt name."""
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

    Features that do not fit and missing layers are appended to ``problems``, once each.
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
            _add(problems, error)
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
    audit.add(STIMULUS_MEDIA, audit.media.mapping())
    audit.add(MEDIA_SUMMARY, audit.media.summary())
    audit.add(AUDIO_SOURCES, audit.media.sources())
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
    """Media of stimuli without a recording: a dataset of text alone has no others."""
    for stimulus_id in dataset.stimulus_ids():
        try:
            media.add_stimulus(stimulus_id, partial(dataset.stimulus, stimulus_id))
        except InputError as error:
            _add(problems, error)


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


def context_offers(
    config: LPactConfig,
    prepared: Prepared,
    sources: Mapping[str, ModelSource],
    checked: set[tuple[str, str]],
) -> list[ContextOffer]:
    """Contexts of one recording; a model without features for its stimulus has none.

    ``checked`` holds the (model, stimulus) whose feature sets have been checked.
    """
    offers = []
    for entry in config.models:
        model = ModelOnGrid(entry.name, sources[entry.name], prepared)
        if not model.layers:
            continue
        ready = model.ready(wanted_contexts(config))
        if ready and (entry.name, prepared.stimulus.id) not in checked:
            model.check()
            checked.add((entry.name, prepared.stimulus.id))
        for layer in entry.layers:
            model.require_layer(layer)
            find = _available if ready else _expected
            draws, unavailable, strippings = find(config, prepared, model, layer)
            offers.append(
                ContextOffer(
                    recording=prepared.id,
                    model=entry.name,
                    layer=layer,
                    n_features=model.load(layer).shape[1] if ready else model.width(layer),
                    draws=draws,
                    unavailable=unavailable,
                    strippings=strippings,
                    layers_offered=model.layers,
                    contexts_offered=tuple(sorted({context for _, context in model.offered})),
                )
            )
    return offers


Possible = tuple[dict[str, int], dict[str, tuple[Reason, str]], tuple[str, ...]]
"""Draws of the available controls, reasons for the others, and the available stripping methods."""


def _available(config: LPactConfig, prepared: Prepared, model: ModelOnGrid, layer: int) -> Possible:
    """What can be made of existing features."""
    inputs = control_inputs(config, prepared, model, layer)
    draws, unavailable = {}, {}
    for name, control in build_controls(config).items():
        if (missing := control.unavailable(inputs)) is not None:
            unavailable[name] = (missing.reason, missing.detail)
        else:
            draws[name] = control.n_draws(inputs, config.controls.draws)
    strip = StripInputs(inputs.features, layer, model.offered, model.load)
    methods = build_strippings(config)
    return draws, unavailable, tuple(n for n, m in methods.items() if not m.unavailable(strip))


def _expected(config: LPactConfig, prepared: Prepared, model: ModelOnGrid, layer: int) -> Possible:
    """What can be made of features that are still to be extracted: controls that read features count as possible.

    The audit is made again when the features exist.
    """
    del prepared
    draws, unavailable = {}, {}
    for name, control in build_controls(config).items():
        contexts, offered = control.contexts(), model.offered
        lacking = [c for c in contexts if not any((k, c) in offered for k in (layer, 0))]
        if lacking:
            detail = f"no features in context '{lacking[0]}'"
            unavailable[name] = (Reason.CONTEXT_NOT_OFFERED, detail)
        else:
            on_offer = [offered.get((layer, c), 1) for c in contexts]
            draws[name] = min([config.controls.draws, *on_offer]) if control.random else 1
    methods = build_strippings(config)
    possible = (
        n for n, m in methods.items() if all((layer, c) in model.offered for c in m.contexts())
    )
    return draws, unavailable, tuple(possible)


def wanted_contexts(config: LPactConfig) -> tuple[str, ...]:
    """Contexts of features that the study's controls, stripping methods and mechanisms load."""
    used = {FULL, STATIC}
    for control in build_controls(config).values():
        used |= set(control.contexts())
    for method in build_strippings(config).values():
        used |= set(method.contexts())
    return tuple(sorted(used))


def feasibility(config: LPactConfig, audit: DatasetAudit, dataset: Dataset, n_excluded: int) -> Row:
    """Close the evidence chain, and lower the role where a link is missing."""
    minimum = config.audit
    recordings, contexts = audit.recordings, audit.contexts
    possible = audit.rows(CONTROL_AVAILABILITY)
    missing_controls = [
        name
        for name in minimum.required_controls
        if not all(row["available"] for row in possible if row["control"] == name)
        or name not in {row["control"] for row in possible}
    ]
    largest = max((len(r.unit_ids) for r in recordings), default=0)
    covered = [r for r in recordings if len(r.unit_ids) >= minimum.min_brain_units]
    flags = {
        "has_brain": bool(recordings),
        "has_words": any(row["n_words"] != 0 for row in audit.rows(UNIT_INVENTORY)),
        "has_features": bool(contexts),
        "has_controls": bool(contexts) and not missing_controls,
        "has_reliability": any(row["possible"] for row in audit.rows(RELIABILITY_MODES)),
        "has_coverage": len(covered) >= minimum.min_subject_runs,
    }
    complete = all(flags.values())
    configured = role_of(audit.config)
    role = configured if complete or configured != "primary" else "diagnostic"
    reason = Reason.OK if complete else Reason.CHAIN_INCOMPLETE
    if configured != "primary":
        reason = Reason.ROLE_NOT_CONFIRMATORY
    with_features = {c.recording for c in contexts}
    return {
        "dataset": audit.config.name,
        "reader": audit.config.reader,
        "configured_role": configured,
        "role": role,
        "confirmatory": role == "primary",
        "role_reason": reason,
        "role_detail": _role_detail(
            configured, flags, missing_controls, len(covered), minimum.min_subject_runs
        ),
        "n_subjects": len({r.id.subject for r in recordings}),
        "n_runs": len({(r.id.session, r.id.run) for r in recordings}),
        "n_stimuli": len({r.id.stimulus for r in recordings}),
        "n_subject_runs": len(recordings),
        "n_subject_runs_excluded": n_excluded,
        "n_brain_units": largest,
        "n_models": len(audit.models()),
        "n_mechanisms": sum(
            row["kind"] == "mechanism" and row["available"] is True
            for row in audit.rows(INGREDIENT_AVAILABILITY)
        ),
        **flags,
        "chain_complete": complete,
        "n_relational_runs": sum(
            len(r.unit_ids) >= config.relational.min_units and r.id in with_features
            for r in recordings
        ),
        "n_stripping_runs": sum(
            len(r.mechanisms) >= 2 and r.id in with_features for r in recordings
        ),
        "source": dataset.info.source,
        "version": dataset.info.version,
        "licence": dataset.info.licence,
    }


_LINKS = {
    "has_brain": "no usable neural data",
    "has_words": "no word grid",
    "has_features": "no model features",
    "has_controls": "required severe controls are not possible or not included",
    "has_reliability": "no reliability mode is possible",
    "has_coverage": "too little coverage",
}


def _role_detail(
    configured: str,
    flags: Mapping[str, bool],
    missing_controls: Sequence[str],
    n_covered: int,
    min_subject_runs: int,
) -> str:
    parts = [f"configured as {configured}"] if configured != "primary" else []
    for flag, text in _LINKS.items():
        if flags[flag]:
            continue
        if flag == "has_controls" and missing_controls:
            text += f" ({', '.join(missing_controls)})"
        if flag == "has_coverage":
            text += f" ({n_covered} subject-runs with enough units, {min_subject_runs} needed)"
        parts.append(text)
    return "; ".join(parts)
