"""Which statements the verdicts of the Turing test support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from lpact import claim_audit
from lpact.analyses.turing.analysis import Turing
from lpact.analyses.turing.config import ABOVE, BELOW, CONVERGES, LABELS
from lpact.claim_audit import Statement

_SUPPORTED = {
    CONVERGES: Statement.INDISTINGUISHABLE,
    ABOVE: Statement.ABOVE_BRAINS,
    BELOW: Statement.BELOW_BRAINS,
}
"""The one statement that a verdict supports; the others support none."""


@dataclass(frozen=True)
class Verdict(claim_audit.Verdict):
    """The verdict on a model at a place, and its reason."""

    reason: str

    tests = frozenset(_SUPPORTED.values())
    order = tuple(reversed(LABELS))
    silent = frozenset(LABELS.keys() - _SUPPORTED)

    @property
    def name(self) -> str:
        """The id of the claim."""
        return "/".join(map(str, self.claim or ()))

    @property
    def wording(self) -> str:
        """The reason, which is a sentence."""
        return self.reason

    def licenses(self, statement: Statement) -> bool:
        """Whether it is the statement of this label."""
        return _SUPPORTED[self.label] is statement

    def why_not(self, statement: Statement) -> str:
        """What the label means."""
        del statement
        return f": {LABELS[self.label].rstrip('.')}"


@dataclass(frozen=True)
class Verdicts(claim_audit.Verdicts):
    """All verdicts of a run."""

    kind = Verdict
    fields: ClassVar[tuple[str, ...]] = Turing.claims.key

    @classmethod
    def of_table(cls, claims: pl.DataFrame) -> Verdicts:
        """From ``turing/claims``."""
        rows = claims.select(*cls.fields, "label", "reason").iter_rows()
        return cls(tuple(Verdict(tuple(claim), label, reason) for *claim, label, reason in rows))
