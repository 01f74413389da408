"""The note that sentences follow from a rule, not from the source."""

from __future__ import annotations

from lpact.codes import Reason
from lpact.datasets._finding import Finding


def sentences_by_rule(where: str, found: str, *, expected: str, remedy: str) -> Finding:
    """Return the note; ``expected`` is what would tell sentences without a rule."""
    return Finding(
        field="sentence_id",
        reason=Reason.SENTENCES_BY_RULE,
        severity="note",
        where=where,
        found=found,
        expected=expected,
        remedy=remedy,
    )
