"""The closure test of the evidence chain, and the role that follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels.audit_record import DatasetAudit, Row
from lpact.analyses.lpact.tables.audit import (
    CONTROL_AVAILABILITY,
    INGREDIENT_AVAILABILITY,
    RELIABILITY_MODES,
    UNIT_INVENTORY,
)
from lpact.codes import Reason
from lpact.datasets.base import Dataset, role_of


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


def _role_reason(configured: str, complete: bool) -> Reason:
    if configured != "primary":
        return Reason.ROLE_NOT_CONFIRMATORY
    return Reason.OK if complete else Reason.CHAIN_INCOMPLETE


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
