"""Which statements the verdicts of the Turing test support."""

from __future__ import annotations

from typing import ClassVar, Self

import polars as pl

from lpact.analyses.turing.analysis import Turing
from lpact.analyses.turing.config import ABOVE, BELOW, CONVERGES, LABELS, LABELS_POOLED, PAIRED
from lpact.claim_audit import LabelVerdict, LabelVerdicts, Statement


class Verdict(LabelVerdict):
    """The verdict on a model at a place."""

    supported: ClassVar = {
        CONVERGES: Statement.INDISTINGUISHABLE,
        ABOVE: Statement.ABOVE_BRAINS,
        BELOW: Statement.BELOW_BRAINS,
    }
    meanings: ClassVar = LABELS


class PooledVerdict(Verdict):
    """The verdict where each brain was compared with all others together: single brains may score lower."""

    meanings: ClassVar = LABELS_POOLED

    def licenses(self, statement: Statement) -> bool:
        """Whether it is `above`, and the statement of this label."""
        return self.label == ABOVE and super().licenses(statement)

    def why_not(self, statement: Statement) -> str:
        """That single brains were not compared, or what the label means."""
        if super().licenses(statement):
            return ", of all other brains together: single brains were not compared"
        return super().why_not(statement)


class Verdicts(LabelVerdicts):
    """All verdicts of a run."""

    kind = Verdict
    fields: ClassVar = Turing.claims.key

    @classmethod
    def of_table(cls, claims: pl.DataFrame) -> Self:
        """From ``turing/claims``."""
        rows = claims.select(*cls.fields, "label", "reason", pl.col("test") == PAIRED).iter_rows()
        return cls(
            tuple(
                (PooledVerdict if pooled else Verdict)(tuple(claim), label, reason)
                for *claim, label, reason, pooled in rows
            )
        )
