"""Which reliability modes a dataset allows: of patterns over units, and of responses to the same stimulus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lpact.analyses.lpact.config import RelationalConfig
from lpact.analyses.lpact.dataset_check.looks import Look, lowered
from lpact.analyses.lpact.levels.audit_record import RecordingSummary
from lpact.analyses.lpact.levels.audit_rows import mode_rows
from lpact.analyses.lpact.levels.ceiling import MIN_SHARED_EVENTS
from lpact.analyses.lpact.levels.pairing import (
    MISSING_PARTNER,
    MODES,
    SPLIT_HALF,
    comparable,
    paired,
)
from lpact.codes import Reason


@dataclass(frozen=True)
class Mode:
    """How many recordings have a partner in a mode, or why none has."""

    mode: str
    n_recordings: int
    reason: Reason

    def __str__(self) -> str:
        if not self.n_recordings:
            return f"{self.mode}: no ({lowered(self.reason)})"
        return f"{self.mode}: {self.n_recordings} recording{'s' if self.n_recordings != 1 else ''}"


def pattern_modes(usable: Sequence[Look]) -> list[Mode]:
    """Modes of patterns over units: partners need shared units, and may have heard different stimuli."""
    summaries = [
        RecordingSummary(r.id, r.unit_ids, r.n_events, 1, 1, (), comparable=r.comparable)
        for r in usable
    ]
    rows: Sequence[Mapping[str, Any]] = mode_rows("", summaries, RelationalConfig().min_units)
    return [Mode(row["mode"], row["n_recordings"], row["reason"]) for row in rows]


def response_modes(usable: Sequence[Look]) -> list[Mode]:
    """Modes of responses: partners need the same stimulus, events and units; halves of one run hold no event twice."""
    found = []
    for mode in MODES:
        reasons = [_response(mode, own, usable) for own in usable]
        n_valid = reasons.count(Reason.OK)
        # What the recording that comes farthest still lacks.
        worst = max(reasons, key=_steps(mode).index, default=MISSING_PARTNER[mode])
        found.append(Mode(mode, n_valid, Reason.OK if n_valid else worst))
    return found


def _steps(mode: str) -> list[Reason]:
    """What is asked of a partner, in order."""
    return [
        Reason.NO_REPEATED_MEASURE,
        MISSING_PARTNER[mode],
        Reason.UNITS_NOT_COMPARABLE,
        Reason.DIFFERENT_STIMULUS,
        Reason.DIFFERENT_EVENTS,
        Reason.TOO_FEW_SHARED_UNITS,
        Reason.OK,
    ]


def _response(mode: str, own: Look, others: Sequence[Look]) -> Reason:
    if mode == SPLIT_HALF:
        return Reason.NO_REPEATED_MEASURE
    left = [other for other in others if paired(mode, own.id, other.id)]
    if not left:
        return MISSING_PARTNER[mode]
    for reason, fits in (
        (Reason.UNITS_NOT_COMPARABLE, comparable),
        (Reason.DIFFERENT_STIMULUS, _same_stimulus),
        (Reason.DIFFERENT_EVENTS, _same_events),
        (Reason.TOO_FEW_SHARED_UNITS, _same_units),
    ):
        left = [other for other in left if fits(own, other)]
        if not left:
            return reason
    return Reason.OK


def _same_stimulus(a: Look, b: Look) -> bool:
    return a.id.stimulus == b.id.stimulus


def _same_events(a: Look, b: Look) -> bool:
    return len(a.events.keys & b.events.keys) >= MIN_SHARED_EVENTS


def _same_units(a: Look, b: Look) -> bool:
    return bool(set(a.unit_ids) & set(b.unit_ids))
