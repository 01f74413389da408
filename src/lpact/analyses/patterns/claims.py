"""Which statements the verdicts on alignment patterns support."""

from __future__ import annotations

from typing import ClassVar

from lpact.analyses.patterns.analysis import Patterns
from lpact.analyses.patterns.config import ALIGNED, LABELS, PATTERN_ONLY
from lpact.claim_audit import LabelVerdict, LabelVerdicts, Statement


class Verdict(LabelVerdict):
    """The verdict on a model and a region."""

    supported: ClassVar = {
        ALIGNED: Statement.PATTERN,
        PATTERN_ONLY: Statement.PATTERN,
    }
    meanings: ClassVar = LABELS


class Verdicts(LabelVerdicts):
    """All verdicts of a run."""

    kind = Verdict
    fields: ClassVar = Patterns.claims.key
