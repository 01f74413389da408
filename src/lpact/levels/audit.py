"""Source audit: what evidence each dataset can carry, before any evidence is looked at.

    chain_complete(d) = B · W · F · S · R · K

(brain series, word grid, features, severe controls, reliability, coverage). A role is configured; the audit can only
lower it, with a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import polars as pl

from lpact.config import DatasetConfig, StudyConfig
from lpact.datasets.base import Dataset, RecordingId, SourceFile
from lpact.datasets.validate import Finding
from lpact.features.availability import Missing
from lpact.features.models import MODELS
from lpact.levels.conditions import build_controls, control_inputs
from lpact.levels.pairing import MISSING_PARTNER, MODES, paired
from lpact.levels.prepare import Inspection, ModelOnGrid, Prepared
from lpact.levels.strip import STRIPPINGS, StripInputs
from lpact.reasons import Reason
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
    UNIT_INVENTORY,
)

COLLINEAR = 0.95
"""Correlation of two mechanisms above which stripping cannot tell them apart."""

Row = dict[str, object]


@dataclass(frozen=True)
class ContextOffer:
    """What one (recording, model, layer) can be scored under: draws by available control, reasons for the others."""

    recording: RecordingId
    model: str
    layer: int
    n_features: int
    draws: Mapping[str, int]
    unavailable: Mapping[str, tuple[Reason, str]]
    strippings: tuple[str, ...]
    layers_offered: tuple[int, ...]
    contexts_offered: tuple[str, ...]


@dataclass(frozen=True)
class RecordingSummary:
    """Sizes of a usable recording that planning needs."""

    id: RecordingId
    unit_ids: tuple[str, ...]
    n_events: int
    n_lags: int
    n_folds: int
    n_nuisance: int
    mechanisms: tuple[str, ...]


@dataclass
class DatasetAudit:
    """Everything that the audit knows about one dataset; small, and free of data."""

    config: DatasetConfig
    recordings: list[RecordingSummary] = field(default_factory=list)
    contexts: list[ContextOffer] = field(default_factory=list)
    confirmatory: bool = False
    tables: dict[str, list[Row]] = field(default_factory=dict)

    def add(self, table: str, rows: Sequence[Row]) -> None:
        """Append rows to one of the audit's tables."""
        self.tables.setdefault(table, []).extend(rows)

    def models(self) -> list[str]:
        """Models with features for this dataset, in order of appearance."""
        return list(dict.fromkeys(c.model for c in self.contexts))


def run(
    *,
    config: StudyConfig,
    dataset_config: DatasetConfig,
    dataset: Dataset,
    inspections: Iterable[Inspection],
) -> DatasetAudit:
    """Audit one dataset, one recording at a time: no data are kept.

    Raises `InputError` where a model's features do not fit or a named layer is missing.
    """
    audit = DatasetAudit(dataset_config)
    name = dataset_config.name
    missing: list[Mapping[tuple[str, str], Missing]] = []
    correlated: set[str] = set()
    n_inspected = 0
    for inspection in inspections:
        n_inspected += 1
        audit.add(UNIT_INVENTORY.name, [_inventory_row(name, inspection)])
        audit.add(
            FINDINGS.name, [_finding_row(name, inspection.id, f) for f in inspection.findings]
        )
        audit.add(STIMULUS_MEDIA.name, _media_rows(name, inspection, dataset))
        prepared = inspection.prepared
        if prepared is None:
            continue
        audit.recordings.append(_summarise(prepared))
        audit.contexts += _offers(config, prepared)
        missing.append(inspection.missing)
        if prepared.stimulus.id not in correlated:
            correlated.add(prepared.stimulus.id)
            audit.add(MECHANISM_CORRELATIONS.name, _correlation_rows(name, prepared))
    audit.add(FINDINGS.name, _missing_unit_rows(name, audit.recordings))
    audit.add(CONTROL_AVAILABILITY.name, _control_rows(config, name, audit.contexts))
    audit.add(INGREDIENT_AVAILABILITY.name, _ingredient_rows(config, name, missing))
    audit.add(
        RELIABILITY_MODES.name, _mode_rows(name, audit.recordings, config.relational.min_units)
    )
    audit.add(SOURCE_FILES.name, [_source_row(name, f) for f in dataset.source_files()])
    audit.add(MODEL_INVENTORY.name, _model_rows(config, name, audit.contexts))
    feasibility = _feasibility(config, audit, dataset, n_inspected - len(audit.recordings))
    audit.confirmatory = bool(feasibility["confirmatory"])
    audit.add(EVIDENCE_FEASIBILITY.name, [feasibility])
    return audit


def frames(audits: Sequence[DatasetAudit]) -> dict[str, pl.DataFrame]:
    """The audit's tables over all datasets."""
    declared = (
        EVIDENCE_FEASIBILITY,
        UNIT_INVENTORY,
        FINDINGS,
        CONTROL_AVAILABILITY,
        INGREDIENT_AVAILABILITY,
        RELIABILITY_MODES,
        SOURCE_FILES,
        MECHANISM_CORRELATIONS,
        STIMULUS_MEDIA,
        MODEL_INVENTORY,
    )
    return {
        table.name: frame(table, [row for a in audits for row in a.tables.get(table.name, [])])
        for table in declared
    }


def _summarise(prepared: Prepared) -> RecordingSummary:
    return RecordingSummary(
        id=prepared.id,
        unit_ids=prepared.grid.units.ids,
        n_events=prepared.n_events,
        n_lags=len(prepared.grid.lags_ms),
        n_folds=prepared.folds.n_blocks,
        n_nuisance=prepared.nuisance.shape[1],
        mechanisms=tuple(prepared.mechanisms),
    )


def _offers(config: StudyConfig, prepared: Prepared) -> list[ContextOffer]:
    """Contexts of one recording; a model that offers nothing for its stimulus has none."""
    controls = build_controls(config)
    offers = []
    for model_config in config.models:
        source = MODELS.build(
            model_config.source, model_config.options, where=f"model '{model_config.name}'"
        )
        model = ModelOnGrid(model_config.name, source, prepared)
        if not model.layers:
            continue
        for layer in model_config.layers:
            model.require_layer(layer)
            inputs = control_inputs(prepared, model, layer)
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


def _key(dataset: str, recording: RecordingId) -> Row:
    return {
        "dataset": dataset,
        "subject": recording.subject,
        "session": recording.session,
        "run": recording.run,
    }


def _inventory_row(dataset: str, inspection: Inspection) -> Row:
    prepared = inspection.prepared
    return {
        **_key(dataset, inspection.id),
        "stimulus": inspection.id.stimulus,
        "used": prepared is not None,
        "reason": inspection.reason,
        "n_samples": inspection.n_samples,
        "sampling_rate_hz": inspection.sampling_rate_hz,
        "n_units": inspection.n_units,
        "n_units_used": 0 if prepared is None else len(prepared.grid.units.ids),
        "unit_order_hash": "none" if prepared is None else prepared.grid.units.order_hash(),
        "n_words": inspection.n_words,
        "n_events": inspection.n_events,
        "n_events_excluded": inspection.n_events_excluded,
        "n_stories": 0 if prepared is None else len(np.unique(prepared.grid.story)),
        "n_sentences": 0 if prepared is None else len(np.unique(prepared.grid.sentence)),
    }


def _finding_row(dataset: str, recording: RecordingId, finding: Finding) -> Row:
    return {
        **_key(dataset, recording),
        "field": finding.field,
        "reason": finding.reason,
        "severity": finding.severity,
        "where": finding.where,
        "found": finding.found,
        "expected": finding.expected,
        "remedy": finding.remedy,
    }


def _missing_unit_rows(dataset: str, recordings: Sequence[RecordingSummary]) -> list[Row]:
    """Units that a subject has in one run and lacks in another."""
    rows = []
    for own in recordings:
        siblings = [r for r in recordings if r.id.subject == own.id.subject]
        seen = {unit: r.id for r in siblings for unit in r.unit_ids}
        rows += [
            _finding_row(
                dataset,
                own.id,
                Finding(
                    f"unit '{unit}'",
                    Reason.UNIT_MISSING_IN_RUN,
                    "note",
                    str(own.id),
                    f"absent or excluded here, present in {where}",
                    "the same units in every run of a subject",
                    "runs are compared over the units they share; add the unit, or drop it everywhere",
                ),
            )
            for unit, where in seen.items()
            if unit not in own.unit_ids
        ]
    return rows


def _control_rows(config: StudyConfig, dataset: str, contexts: Sequence[ContextOffer]) -> list[Row]:
    """One row a model, layer and control: available where every recording can have it."""
    rows: list[Row] = []
    for model, layer in dict.fromkeys((c.model, c.layer) for c in contexts):
        own = [c for c in contexts if (c.model, c.layer) == (model, layer)]
        for name, control in build_controls(config).items():
            failing = [c for c in own if name in c.unavailable]
            reason, detail = failing[0].unavailable[name] if failing else (Reason.OK, "")
            if failing and len(failing) < len(own):
                detail = f"in {len(failing)} of {len(own)} recordings: {detail}"
            rows.append(
                {
                    "dataset": dataset,
                    "model": model,
                    "layer": layer,
                    "control": name,
                    "available": not failing,
                    "reason": reason,
                    "detail": detail,
                    "draws": max((c.draws.get(name, 0) for c in own), default=0),
                    "counted": control.counted,
                }
            )
    return rows


def _ingredient_rows(
    config: StudyConfig, dataset: str, missing: Sequence[Mapping[tuple[str, str], Missing]]
) -> list[Row]:
    """One row a nuisance feature and mechanism; ``missing`` has one entry a usable recording."""
    wanted = [("nuisance", n) for n in config.nuisance.include]
    wanted += [("mechanism", n) for n in config.stripping.mechanisms]
    rows: list[Row] = []
    for kind, name in wanted:
        lacking = [m[kind, name] for m in missing if (kind, name) in m]
        reason = Reason.OK if missing else Reason.DATASET_HAS_NO_RECORDING
        rows.append(
            {
                "dataset": dataset,
                "kind": kind,
                "name": name,
                "available": bool(missing) and not lacking,
                "reason": lacking[0].reason if lacking else reason,
                "detail": lacking[0].detail if lacking else "",
            }
        )
    return rows


def _mode_rows(dataset: str, recordings: Sequence[RecordingSummary], min_units: int) -> list[Row]:
    rows: list[Row] = []
    enough = [r for r in recordings if len(r.unit_ids) >= min_units]
    for mode in MODES:
        candidates = [r for r in recordings if any(paired(mode, r.id, o.id) for o in recordings)]
        possible = [
            r
            for r in enough
            if any(paired(mode, r.id, o.id) and _n_shared(r, o) >= min_units for o in enough)
        ]
        reason = Reason.OK
        if not candidates:
            reason = MISSING_PARTNER[mode]
        elif not enough:
            reason = Reason.TOO_FEW_UNITS
        elif not possible:
            reason = Reason.TOO_FEW_SHARED_UNITS
        rows.append(
            {
                "dataset": dataset,
                "mode": mode,
                "possible": bool(possible),
                "n_recordings": len(possible),
                "reason": reason,
            }
        )
    return rows


def _n_shared(a: RecordingSummary, b: RecordingSummary) -> int:
    return len(set(a.unit_ids) & set(b.unit_ids))


def _source_row(dataset: str, file: SourceFile) -> Row:
    return {
        "dataset": dataset,
        "path": file.path,
        "n_bytes": file.n_bytes,
        "sha256": file.sha256,
        "licence": file.licence,
    }


def _correlation_rows(dataset: str, prepared: Prepared) -> list[Row]:
    """Pairwise correlations of the mechanisms over events."""
    rows: list[Row] = []
    for a, b in combinations(prepared.mechanisms, 2):
        r = float(np.corrcoef(prepared.mechanisms[a], prepared.mechanisms[b])[0, 1])
        rows.append(
            {
                "dataset": dataset,
                "stimulus": prepared.stimulus.id,
                "mechanism_a": a,
                "mechanism_b": b,
                "pearson": r,
                "reason": Reason.COLLINEAR_MECHANISMS if abs(r) > COLLINEAR else Reason.OK,
            }
        )
    return rows


def _media_rows(dataset: str, inspection: Inspection, source: Dataset) -> list[Row]:
    stimulus = source.stimulus(inspection.id.stimulus)
    paths = {"audio_envelope": "in the dataset" if stimulus.envelope is not None else ""}
    paths |= {kind: stimulus.media.get(kind, "") for kind in ("audio", "video")}
    return [
        {
            **_key(dataset, inspection.id),
            "stimulus": inspection.id.stimulus,
            "media": kind,
            "present": bool(path),
            "reason": Reason.OK if path else Reason.MEDIA_NOT_OFFERED,
            "path": path,
        }
        for kind, path in paths.items()
    ]


def _model_rows(config: StudyConfig, dataset: str, contexts: Sequence[ContextOffer]) -> list[Row]:
    rows: list[Row] = []
    for model in config.models:
        own = [c for c in contexts if c.model == model.name]
        width = {c.layer: c.n_features for c in own}
        rows.append(
            {
                "model": model.name,
                "dataset": dataset,
                "source": model.source,
                "layers_offered": list(own[0].layers_offered) if own else [],
                "layers_claimed": list(model.layers),
                "contexts_offered": list(own[0].contexts_offered) if own else [],
                "n_features": [width.get(layer, 0) for layer in model.layers],
                "included": bool(own),
                "reason": Reason.OK if own else Reason.MODEL_OFFERS_NOTHING,
            }
        )
    return rows


def _feasibility(
    config: StudyConfig, audit: DatasetAudit, dataset: Dataset, n_excluded: int
) -> Row:
    """Close the evidence chain, and lower the role where a link is missing."""
    minimum = config.audit
    recordings, contexts = audit.recordings, audit.contexts
    controls = {
        str(r["control"]): bool(r["available"]) for r in audit.tables[CONTROL_AVAILABILITY.name]
    }
    for row in audit.tables[CONTROL_AVAILABILITY.name]:
        controls[str(row["control"])] &= bool(row["available"])
    largest = max((len(r.unit_ids) for r in recordings), default=0)
    covered = [r for r in recordings if len(r.unit_ids) >= minimum.min_brain_units]
    missing_controls = [c for c in minimum.required_controls if not controls.get(c, False)]
    flags = {
        "has_brain": bool(recordings),
        "has_words": any(int(str(r["n_words"])) > 0 for r in audit.tables[UNIT_INVENTORY.name]),
        "has_features": bool(contexts),
        "has_controls": bool(contexts) and not missing_controls,
        "has_reliability": any(bool(r["possible"]) for r in audit.tables[RELIABILITY_MODES.name]),
        "has_coverage": len(covered) >= minimum.min_subject_runs,
    }
    complete = all(flags.values())
    configured = audit.config.role
    role = configured if complete or configured != "primary" else "diagnostic"
    with_features = {c.recording for c in contexts}
    return {
        "dataset": audit.config.name,
        "reader": audit.config.reader,
        "configured_role": configured,
        "role": role,
        "confirmatory": role == "primary",
        "role_reason": _role_reason(configured, complete),
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
            r["kind"] == "mechanism" and bool(r["available"])
            for r in audit.tables[INGREDIENT_AVAILABILITY.name]
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


def _role_reason(configured: str, complete: bool) -> Reason:
    if configured != "primary":
        return Reason.ROLE_NOT_CONFIRMATORY
    return Reason.OK if complete else Reason.CHAIN_INCOMPLETE


_LINKS = {
    "has_brain": "no usable neural data",
    "has_words": "no word grid",
    "has_features": "no model features",
    "has_controls": "required severe controls are not possible",
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
