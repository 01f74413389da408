"""Rows of the source audit's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels.audit_record import ContextOffer, RecordingSummary, Row
from lpact.analyses.lpact.levels.conditions import build_controls
from lpact.analyses.lpact.levels.pairing import MISSING_PARTNER, MODES, comparable, paired
from lpact.codes import Reason
from lpact.datasets.base import RecordingId
from lpact.datasets.validate import Finding
from lpact.features.availability import Missing
from lpact.features.mechanisms import mechanism_correlations
from lpact.inputs.prepare import Inspection, Prepared

COLLINEAR = 0.95
"""Correlation of two mechanisms above which stripping cannot tell them apart."""


def recording_key(dataset: str, recording: RecordingId) -> Row:
    """Recording columns of every table."""
    return {
        "dataset": dataset,
        "subject": recording.subject,
        "session": recording.session,
        "run": recording.run,
    }


def inventory_row(dataset: str, inspection: Inspection) -> Row:
    """One recording: sizes, and whether it is used."""
    prepared = inspection.prepared
    return {
        **recording_key(dataset, inspection.id),
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


def finding_row(dataset: str, recording: RecordingId, finding: Finding) -> Row:
    """One finding about a recording."""
    return {
        **recording_key(dataset, recording),
        "field": finding.field,
        "reason": finding.reason,
        "severity": finding.severity,
        "where": finding.where,
        "found": finding.found,
        "expected": finding.expected,
        "remedy": finding.remedy,
    }


def missing_unit_rows(dataset: str, recordings: Sequence[RecordingSummary]) -> list[Row]:
    """Units that a subject has in one run and lacks in another."""
    rows = []
    for own in recordings:
        siblings = [r for r in recordings if r.id.subject == own.id.subject]
        seen = {unit: r.id for r in siblings for unit in r.unit_ids}
        rows += [
            finding_row(
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


def control_rows(config: LPactConfig, dataset: str, contexts: Sequence[ContextOffer]) -> list[Row]:
    """One row per model, layer and control: available where every recording can have it."""
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


def ingredient_rows(
    config: LPactConfig, dataset: str, missing: Sequence[Mapping[tuple[str, str], Missing]]
) -> list[Row]:
    """One row per nuisance feature and mechanism; ``missing`` has one entry per usable recording."""
    wanted = [("nuisance", n) for n in config.nuisance.include]
    wanted += [("mechanism", n) for n in config.mechanisms.include]
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


def mode_rows(dataset: str, recordings: Sequence[RecordingSummary], min_units: int) -> list[Row]:
    """Every reliability mode: how many recordings can be paired, or why none can."""
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
        elif not possible and all(
            not comparable(a, b) for a in enough for b in enough if paired(mode, a.id, b.id)
        ):
            reason = Reason.UNITS_NOT_COMPARABLE
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
    return len(set(a.unit_ids) & set(b.unit_ids)) if comparable(a, b) else 0


def correlation_rows(dataset: str, prepared: Prepared) -> list[Row]:
    """Pairwise correlations of the mechanisms over events."""
    if len(prepared.mechanisms) < 2:
        return []
    scalars = np.column_stack(list(prepared.mechanisms.values()))
    return [
        {
            "dataset": dataset,
            "stimulus": prepared.stimulus.id,
            "mechanism_a": a,
            "mechanism_b": b,
            "pearson": r,
            "reason": Reason.COLLINEAR_MECHANISMS if abs(r) > COLLINEAR else Reason.OK,
        }
        for a, b, r in mechanism_correlations(scalars, tuple(prepared.mechanisms))
    ]


def model_rows(config: LPactConfig, dataset: str, contexts: Sequence[ContextOffer]) -> list[Row]:
    """Every model of the study: what it offers for this dataset."""
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
