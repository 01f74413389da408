"""What the audit writes down instead of raising."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lpact.codes import Reason


@dataclass(frozen=True)
class Finding:
    """Something that the audit left out (``excluded``) or kept with a ``note``.

    ``field`` is the unit, column or file that the finding is about.
    """

    field: str
    reason: Reason
    severity: Literal["excluded", "note"]
    where: str
    found: str
    expected: str
    remedy: str


class Findings(list[Finding]):
    """Findings about one file, which ``where`` names."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def note(self, field: str, reason: Reason, found: str, expected: str, remedy: str) -> None:
        """Add a finding on something that is kept."""
        self.append(Finding(field, reason, "note", self.where, found, expected, remedy))

    def excluded(self, field: str, reason: Reason, found: str, expected: str, remedy: str) -> None:
        """Add a finding on something that is left out."""
        self.append(Finding(field, reason, "excluded", self.where, found, expected, remedy))

    def untimed(self, field: str, n_missing: int, n_words: int, first: str) -> None:
        """Add the finding on words without times."""
        self.excluded(
            field,
            Reason.SOURCE_ROWS_LEFT_OUT,
            f"{n_missing} of {n_words} words without times; first: {first}",
            "times of every word",
            "the words are left out; add their times to keep them",
        )

    def sentences_by_rule(self, found: str, expected: str, remedy: str) -> None:
        """Add the note that sentences follow from a rule, not from the source."""
        self.note("sentence_id", Reason.SENTENCES_BY_RULE, found, expected, remedy)
