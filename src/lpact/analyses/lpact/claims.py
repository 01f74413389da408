"""Which statements the verdicts of L-PACT support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from lpact import claim_audit
from lpact.analyses.lpact.analysis import GATES
from lpact.analyses.lpact.tables.decisions import CLAIM_STATEMENTS, STUDY_STATEMENTS
from lpact.claim_audit import Statement
from lpact.codes import FinalLabel, Gate, Outcome
from lpact.errors import LPactError, require_known
from lpact.tables import CLAIM_KEY
from lpact.wording import counted

NONE = "none"
LEVEL_1 = "severe_control_level1"
"""Column of the decision table: gate S at level 1, all that a claim about prediction needs of S."""
_GATE_COLUMNS = {LEVEL_1: LEVEL_1, **{str(gate): column for column, gate in GATES.values()}}
_RELATIONAL = (Gate.PREDICTIVE, Gate.SEVERE_CONTROL, Gate.RELATIONAL)
_NEEDS: dict[Statement, tuple[str, ...]] = {
    Statement.CORRESPONDENCE: (),
    Statement.PREDICTION: (Gate.PREDICTIVE, LEVEL_1, Gate.REPLICATION),
    Statement.RELATIONAL: (*_RELATIONAL, Gate.REPLICATION),
    Statement.MECHANISM: (*_RELATIONAL, Gate.MECHANISM, Gate.REPLICATION),
    Statement.CEILING: (*_RELATIONAL, Gate.CEILING, Gate.REPLICATION),
    Statement.ALIGNMENT: tuple(Gate),
    Statement.NOT_SHOWN: (),
}
"""Gates that a statement needs."""
_STRENGTH = (
    FinalLabel.DIAGNOSTIC_ONLY,
    FinalLabel.INSUFFICIENT_COVERAGE,
    FinalLabel.NULL,
    FinalLabel.INSUFFICIENT_BRAIN_CEILING,
    FinalLabel.CONTROL_EXPLAINED,
    FinalLabel.PREDICTIVE_ONLY,
    FinalLabel.RELATIONAL_CANDIDATE,
    FinalLabel.MECHANISM_SPECIFIC_CANDIDATE,
    FinalLabel.INTEGRATED_CANDIDATE,
)
_WEAKEST_LABEL = {
    Statement.PREDICTION: FinalLabel.PREDICTIVE_ONLY,
    Statement.RELATIONAL: FinalLabel.RELATIONAL_CANDIDATE,
    Statement.MECHANISM: FinalLabel.MECHANISM_SPECIFIC_CANDIDATE,
    Statement.ALIGNMENT: FinalLabel.INTEGRATED_CANDIDATE,
}
"""The weakest verdict that supports a statement. The ceiling has a gate that a relational candidate can pass, too."""
_OF_LABEL: dict[FinalLabel, tuple[Outcome, tuple[str, ...]]] = {
    FinalLabel.DIAGNOSTIC_ONLY: (Outcome.I, ()),
    FinalLabel.PREDICTIVE_ONLY: (Outcome.C, _NEEDS[Statement.PREDICTION]),
    FinalLabel.RELATIONAL_CANDIDATE: (Outcome.B, (LEVEL_1, *_NEEDS[Statement.RELATIONAL])),
    FinalLabel.MECHANISM_SPECIFIC_CANDIDATE: (Outcome.B, (LEVEL_1, *_NEEDS[Statement.MECHANISM])),
    FinalLabel.INTEGRATED_CANDIDATE: (Outcome.A, (LEVEL_1, *Gate)),
}
"""Outcome of a study whose best verdict is a label, and gates that such a verdict passes; else D and none."""

_SENTENCES = {
    FinalLabel.DIAGNOSTIC_ONLY: (
        "{place} the data are diagnostic only and support neither a positive nor a negative statement about {subject}."
    ),
    FinalLabel.INSUFFICIENT_COVERAGE: (
        "{place} coverage was too small to say whether {subject} is aligned with the recorded responses or not."
    ),
    FinalLabel.NULL: "{place} we found no raw association between {subject} and the recorded responses.",
    FinalLabel.INSUFFICIENT_BRAIN_CEILING: (
        "{place} {subject} did not pass the predictive gates, and brain–brain reliability was too low or not available "
        "to bound a stronger statement."
    ),
    FinalLabel.CONTROL_EXPLAINED: (
        "{place} we found no robust evidence that {subject} is aligned with the recorded responses: the apparent "
        "effect is accounted for by {explained}."
    ),
    FinalLabel.PREDICTIVE_ONLY: (
        "{place} {subject} predicts the recorded responses beyond nuisance and severe controls; stronger forms of "
        "alignment are not shown."
    ),
    FinalLabel.RELATIONAL_CANDIDATE: (
        "{place} {subject} is a relational candidate: it predicts the recorded responses beyond controls and "
        "reproduces the pattern over units better than any control; specificity to a mechanism is not shown."
    ),
    FinalLabel.MECHANISM_SPECIFIC_CANDIDATE: (
        "{place} {subject} is a mechanism-specific candidate: within the predictor, the evidence depends on "
        "{mechanism}; it does not pass the ceiling gate, and nothing was done to a brain."
    ),
    FinalLabel.INTEGRATED_CANDIDATE: (
        "{place} {subject} passes every gate and is an integrated candidate; this shows neither a shared mechanism nor "
        "causation in the brain."
    ),
}


def _in_words(gate: str) -> str:
    return gate.removesuffix("_level1").replace("_", "-")


@dataclass(frozen=True)
class Verdict(claim_audit.Verdict):
    """The verdict on a claim; ``passed`` are the gates that pass, by name, with S at level 1 apart."""

    label: FinalLabel
    passed: frozenset[str]
    first_failed_gate: str
    beaten_by: str
    raw_positive: bool

    tests = frozenset(_NEEDS)
    order = _STRENGTH
    silent = frozenset(_STRENGTH[:2])

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Verdict:
        """From a row of the decision table."""
        return cls(
            claim=tuple(row[key] for key in CLAIM_KEY),
            label=FinalLabel(row["label"]),
            passed=frozenset(gate for gate, column in _GATE_COLUMNS.items() if row[column]),
            first_failed_gate=row["first_failed_gate"],
            beaten_by=row["beaten_by"],
            raw_positive=row["raw_positive"],
        )

    @property
    def confirmatory(self) -> bool:
        """Whether its dataset is confirmatory."""
        return self.label is not FinalLabel.DIAGNOSTIC_ONLY

    @property
    def strength(self) -> tuple[int, ...]:
        """Of two verdicts with the same label, the one that passes more gates."""
        return (*super().strength, len(self.passed))

    @property
    def name(self) -> str:
        """The claim in words, or ``this study`` for a verdict without one."""
        if self.claim is None:
            return "this study"
        dataset, model, layer, mechanism = self.claim
        about = "" if mechanism == NONE else f", mechanism {mechanism}"
        return f"layer {layer} of {model} in {dataset}{about}"

    @property
    def wording(self) -> str:
        """One sentence that the verdict supports."""
        place, subject, stripped = "In this study,", "the tested model", "the stripped mechanism"
        if self.claim is not None:
            dataset, model, layer, mechanism = self.claim
            place, subject = f"In {dataset},", f"layer {layer} of {model}"
            stripped = stripped if mechanism == NONE else str(mechanism)
        gate = "first" if self.first_failed_gate == NONE else _in_words(self.first_failed_gate)
        explained = f"what the {gate} gate names ({self.beaten_by})"
        if self.beaten_by in (NONE, "") or " " in self.beaten_by:
            explained = f"nuisance, controls or an unmet gate (the {gate} gate fails first)"
        return _SENTENCES[self.label].format(
            place=place,
            subject=subject,
            mechanism=stripped,
            explained=explained,
        )

    def licenses(self, statement: Statement) -> bool:
        """By the label; correspondence by the raw score, and the ceiling by its gates."""
        if statement is Statement.CORRESPONDENCE:
            return self.raw_positive
        if statement is Statement.NOT_SHOWN:
            return self.label is not FinalLabel.INTEGRATED_CANDIDATE
        if statement is Statement.CEILING:
            return set(_NEEDS[statement]) <= self.passed
        return _STRENGTH.index(self.label) >= _STRENGTH.index(_WEAKEST_LABEL[statement])

    def missing_gate(self, statement: Statement) -> str:
        """The first gate that ``statement`` needs and that does not pass, or ``none``."""
        needed = _NEEDS.get(statement, ())
        return next((str(gate) for gate in needed if str(gate) not in self.passed), NONE)

    def why_not(self, statement: Statement) -> str:
        """The gate that is missing, and what beat it."""
        if statement is Statement.CORRESPONDENCE:
            return ": there is no raw positive"
        if statement is Statement.NOT_SHOWN:
            return ": every gate passes"
        gate, first = self.missing_gate(statement), self.first_failed_gate
        reason = f"; it needs the {_in_words(gate)} gate, which does not pass"
        if first not in (gate, NONE) and (gate, first) != (LEVEL_1, "severe_control"):
            reason += f"; the first failed gate is {first}"
        return reason + ("" if self.beaten_by == NONE else f" ({self.beaten_by})")


@dataclass(frozen=True)
class Verdicts(claim_audit.Verdicts):
    """All verdicts of a run under one gate profile, and its outcome."""

    claims: tuple[Verdict, ...]
    outcome: Outcome = Outcome.I

    kind = Verdict
    fields: ClassVar[tuple[str, ...]] = CLAIM_KEY
    without = (
        "No confirmatory claim has a complete chain of evidence, so nothing is supported.",
        "This study has no confirmatory claim with a complete chain of evidence, and supports no statement.",
    )
    tables = (CLAIM_STATEMENTS, STUDY_STATEMENTS)

    @classmethod
    def of_tables(cls, decisions: pl.DataFrame, outcome: pl.DataFrame, gate_profile: str = "paper") -> Verdicts:
        """From ``decisions/lpact_decision_table`` and ``decisions/lpact_study_outcome``."""
        known = outcome["gate_profile"].to_list()
        require_known(gate_profile, known, "gate profile", where="decisions/lpact_study_outcome", error=LPactError)
        rows = decisions.filter(gate_profile=gate_profile).sort(CLAIM_KEY)
        code = outcome.filter(gate_profile=gate_profile)["outcome"].item()
        claims = tuple(Verdict.of_row(row) for row in rows.iter_rows(named=True))
        return cls(claims, gate_profile, Outcome(code))

    @classmethod
    def of_label(cls, label: str | FinalLabel) -> Verdicts:
        """A study whose best verdict is ``label``: the gates that such a verdict needs pass, no other does."""
        label = FinalLabel(label)
        outcome, gates = _OF_LABEL.get(label, (Outcome.D, ()))
        passed = frozenset(map(str, gates))
        failed = next((str(gate) for gate in Gate if str(gate) not in passed), NONE)
        verdict = Verdict(None, label, passed, failed, NONE, label is not FinalLabel.NULL)
        return cls((verdict,), "paper", outcome)

    @property
    def confirmatory(self) -> tuple[claim_audit.Verdict, ...]:
        """Claims of confirmatory datasets; none if no evidence chain is complete."""
        return () if self.outcome is Outcome.I else super().confirmatory

    @property
    def summary(self) -> str:
        """Outcome and number of claims."""
        return f"outcome {self.outcome}, {counted(len(self.confirmatory), 'confirmatory claim')}"

    def of_study(self) -> list[dict[str, Any]]:
        """With the outcome."""
        return [row | {"outcome": self.outcome.value} for row in super().of_study()]

    def details(self, statement: Statement, verdict: claim_audit.Verdict | None) -> dict[str, Any]:
        """Gates that a statement needs, and the first one that is missing."""
        needed = ", ".join(map(str, _NEEDS.get(statement, ()))) or NONE
        missing = verdict.missing_gate(statement) if isinstance(verdict, Verdict) else NONE
        return {
            "gate_profile": self.profile,
            "gates_needed": "never" if statement.never else needed,
            "missing_gate": missing,
        }
