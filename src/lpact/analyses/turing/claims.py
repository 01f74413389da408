"""Which statements the verdicts of the Turing test support."""

from __future__ import annotations

from typing import ClassVar

from lpact.analyses.turing.analysis import Turing
from lpact.analyses.turing.config import ABOVE, BELOW, CONVERGES, LABELS
from lpact.claim_audit import LabelVerdict, LabelVerdicts, Statement


class Verdict(LabelVerdict):
    """The verdict on a model at a place."""

    supported: ClassVar = {
        CONVERGES: Statement.INDISTINGUISHABLE,
        ABOVE: Statement.ABOVE_BRAINS,
        BELOW: Statement.BELOW_BRAINS,
    }
    meanings: ClassVar = LABELS


class Verdicts(LabelVerdicts):
    """All verdicts of a run."""

    kind = Verdict
    fields: ClassVar = Turing.claims.key
