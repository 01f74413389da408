"""Which recordings can be paired for brain–brain reliability."""

from __future__ import annotations

from typing import Protocol

from lpact.codes import Reason
from lpact.datasets.base import RecordingId

SPLIT_HALF = "split_half"
MODES = ("subject_to_subject", "session_to_session", "run_to_run", SPLIT_HALF)
"""Reliability modes, strictest first."""

MISSING_PARTNER = {
    "run_to_run": Reason.SINGLE_RUN,
    "session_to_session": Reason.SINGLE_SESSION,
    "subject_to_subject": Reason.SINGLE_SUBJECT,
    SPLIT_HALF: Reason.DATASET_HAS_NO_RECORDING,
}
"""Why a recording has no partner in a mode."""


class HasUnits(Protocol):
    """A recording, and whether a unit of the same name is the same place in another subject."""

    @property
    def id(self) -> RecordingId: ...  # noqa: D102

    @property
    def comparable(self) -> bool: ...  # noqa: D102


def comparable(a: HasUnits, b: HasUnits) -> bool:
    """Whether units of the same name are the same: within a subject always, between subjects if both say so."""
    return a.id.subject == b.id.subject or (a.comparable and b.comparable)


def paired(mode: str, a: RecordingId, b: RecordingId) -> bool:
    """Whether two recordings are partners in ``mode``; split half pairs a recording with itself."""
    same_subject, same_session = a.subject == b.subject, a.session == b.session
    return {
        "subject_to_subject": not same_subject,
        "session_to_session": same_subject and not same_session,
        "run_to_run": same_subject and same_session and a.run != b.run,
        SPLIT_HALF: a == b,
    }[mode]
