"""What a text is held against: the verdicts of one gate profile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl

from lpact.analyses.lpact.claim_audit.statement import (
    LEVEL_1,
    NEEDED_LABELS,
    SILENT,
    STRENGTH,
    Statement,
)
from lpact.codes import FinalLabel, Gate, Outcome
from lpact.errors import LPactError, did_you_mean
from lpact.tables import CLAIM_KEY

_LABELS = {label.value: label for label in FinalLabel}
_OUTCOME_CODES = {outcome.value: outcome for outcome in Outcome}
_GATE_COLUMNS = {
    Gate.PREDICTIVE: "predictive",
    LEVEL_1: LEVEL_1,
    Gate.SEVERE_CONTROL: "severe_control",
    Gate.RELATIONAL: "relational",
    Gate.MECHANISM: "mechanism_specific",
    Gate.CEILING: "ceiling",
    Gate.REPLICATION: "replication",
}
_BY_LABEL: dict[FinalLabel, tuple[str, ...]] = {
    FinalLabel.PREDICTIVE_ONLY: Statement.PREDICTION.gates,
    FinalLabel.RELATIONAL_CANDIDATE: (LEVEL_1, *Statement.RELATIONAL.gates),
    FinalLabel.MECHANISM_SPECIFIC_CANDIDATE: (LEVEL_1, *Statement.MECHANISM.gates),
    FinalLabel.INTEGRATED_CANDIDATE: (LEVEL_1, *Gate),
}


@dataclass(frozen=True)
class Verdict:
    """The verdict on one claim, as a text is held against it.

    Attributes
    ----------
    claim
        (dataset, model, layer, mechanism), or None for a verdict without a claim.
    label
        Verdict.
    passed
        Gates that pass, by name; S at level 1 apart.
    first_failed_gate, beaten_by
        As in the decision table.
    raw_positive
        Whether any level shows a raw positive.
    """

    claim: tuple[str, str, int, str] | None
    label: FinalLabel
    passed: frozenset[str]
    first_failed_gate: str
    beaten_by: str
    raw_positive: bool

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Verdict:
        """From a row of the decision table."""
        dataset, model, layer, mechanism = (row[key] for key in CLAIM_KEY)
        return cls(
            claim=(dataset, model, layer, mechanism),
            label=_LABELS[row["label"]],
            passed=frozenset(str(g) for g, column in _GATE_COLUMNS.items() if row[column]),
            first_failed_gate=row["first_failed_gate"],
            beaten_by=row["beaten_by"],
            raw_positive=row["raw_positive"],
        )

    @classmethod
    def of_label(cls, label: str | FinalLabel) -> Verdict:
        """A verdict of which only the label is known: the gates that such a label needs pass, no other does."""
        label = _LABELS[str(label)]
        passed = frozenset(str(gate) for gate in _BY_LABEL.get(label, ()))
        failed = next((str(gate) for gate in Gate if str(gate) not in passed), "none")
        return cls(None, label, passed, failed, "none", label is not FinalLabel.NULL)

    def supports(self, statement: Statement) -> bool:
        """Whether this verdict carries ``statement``."""
        if statement.never or self.label in SILENT:
            return False
        if statement is Statement.CORRESPONDENCE:
            return self.raw_positive
        if statement is Statement.NOT_SHOWN:
            return self.label is not FinalLabel.INTEGRATED_CANDIDATE
        if statement is Statement.CEILING:
            return set(statement.gates) <= self.passed
        return self.label in NEEDED_LABELS[statement]

    def missing_gate(self, statement: Statement) -> str:
        """The first gate that ``statement`` needs and that does not pass, or ``none``."""
        return next((str(gate) for gate in statement.gates if str(gate) not in self.passed), "none")


@dataclass(frozen=True)
class Verdicts:
    """All verdicts of a run under one gate profile, and its outcome."""

    gate_profile: str
    claims: tuple[Verdict, ...]
    outcome: Outcome

    @classmethod
    def of_tables(
        cls, decisions: pl.DataFrame, outcome: pl.DataFrame, gate_profile: str = "paper"
    ) -> Verdicts:
        """From ``decisions/lpact_decision_table`` and ``decisions/lpact_study_outcome``."""
        known = outcome["gate_profile"].to_list()
        if gate_profile not in known:
            raise LPactError(
                f"the run has no verdicts of the gate profile '{gate_profile}'",
                where="decisions/lpact_study_outcome",
                got=", ".join(known) or "no profile",
                expected=gate_profile,
                remedy=did_you_mean(gate_profile, known),
            )
        rows = decisions.filter(pl.col("gate_profile") == gate_profile).sort(CLAIM_KEY)
        (code,) = outcome.filter(pl.col("gate_profile") == gate_profile)["outcome"]
        claims = tuple(Verdict.of_row(row) for row in rows.iter_rows(named=True))
        return cls(gate_profile, claims, _OUTCOME_CODES[code])

    @classmethod
    def of_label(cls, label: str | FinalLabel) -> Verdicts:
        """A study whose best verdict is ``label``, without any names."""
        verdict = Verdict.of_label(label)
        return cls("paper", (verdict,), _OUTCOMES.get(verdict.label, Outcome.D))

    @property
    def confirmatory(self) -> tuple[Verdict, ...]:
        """Claims of confirmatory datasets; none where no chain of evidence is complete."""
        if self.outcome is Outcome.I:
            return ()
        return tuple(v for v in self.claims if v.label is not FinalLabel.DIAGNOSTIC_ONLY)

    def best(self, statement: Statement, among: Iterable[Verdict] | None = None) -> Verdict | None:
        """The verdict that a statement has to stand on: one that supports it, else the strongest; None if none is."""
        claims = self.confirmatory if among is None else among
        return max(
            claims,
            key=lambda v: (v.supports(statement), STRENGTH.index(v.label), len(v.passed)),
            default=None,
        )


_OUTCOMES = {
    FinalLabel.DIAGNOSTIC_ONLY: Outcome.I,
    FinalLabel.INTEGRATED_CANDIDATE: Outcome.A,
    FinalLabel.MECHANISM_SPECIFIC_CANDIDATE: Outcome.B,
    FinalLabel.RELATIONAL_CANDIDATE: Outcome.B,
    FinalLabel.PREDICTIVE_ONLY: Outcome.C,
}
