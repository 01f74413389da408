"""Statements that a text can make about a study, and which of them the verdicts of a run support."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import polars as pl

from lpact.analyses.lpact.analysis import GATES
from lpact.analyses.lpact.tables.decisions import CLAIM_STATEMENTS, STUDY_STATEMENTS
from lpact.codes import FinalLabel, Gate, Outcome
from lpact.errors import LPactError, did_you_mean
from lpact.store import frame, validate
from lpact.tables import CLAIM_KEY

NONE = "none"
LEVEL_1 = "severe_control_level1"
"""Column of the decision table: gate S at level 1, all that a claim about prediction needs of S."""
_GATE_COLUMNS = {LEVEL_1: LEVEL_1, **{str(gate): column for column, gate in GATES.values()}}
_RELATIONAL = (Gate.PREDICTIVE, Gate.SEVERE_CONTROL, Gate.RELATIONAL)


class Statement(StrEnum):
    """A kind of statement: ``meaning`` in words, and ``gates`` that it needs."""

    meaning: str
    gates: tuple[str, ...]

    def __new__(cls, code: str, meaning: str, gates: tuple[str, ...] = ()) -> Statement:
        """Make a member from its code and attributes."""
        member = str.__new__(cls, code)
        member._value_, member.meaning, member.gates = code, meaning, gates
        return member

    @property
    def never(self) -> bool:
        """Whether no gate can license it."""
        return not self.gates and self not in (Statement.CORRESPONDENCE, Statement.NOT_SHOWN)

    CORRESPONDENCE = (
        "correspondence",
        "The model's features are associated with the brain responses; controls are not considered.",
    )
    PREDICTION = (
        "prediction_beyond_controls",
        "The model predicts brain responses beyond nuisance and severe controls.",
        (Gate.PREDICTIVE, LEVEL_1, Gate.REPLICATION),
    )
    RELATIONAL = (
        "relational_alignment",
        "The model reproduces the relations among brain units better than its controls do.",
        (*_RELATIONAL, Gate.REPLICATION),
    )
    MECHANISM = (
        "mechanism_specific",
        "The prediction of the matching targets depends on the named mechanism in the model's features.",
        (*_RELATIONAL, Gate.MECHANISM, Gate.REPLICATION),
    )
    CEILING = (
        "reliability_bounded",
        "The model reaches a fraction of the brain–brain ceiling that its controls do not reach.",
        (*_RELATIONAL, Gate.CEILING, Gate.REPLICATION),
    )
    ALIGNMENT = ("alignment", "The model is aligned with the brain.", tuple(Gate))
    NOT_SHOWN = (
        "not_shown",
        "Alignment is not shown in this study, under its gates and controls.",
    )
    BRAIN_LIKE = ("brain_like", "The model is brain-like or human-like.")
    EQUIVALENCE = (
        "equivalence",
        "Model and brain share a mechanism or code, or do the same; or one reproduces the other.",
    )
    EXPLANATION = (
        "explanation",
        "The model explains how the brain does it, or is a theory of it.",
    )
    HOMOLOGY = ("homology", "Parts of model and brain are homologous.")
    CAUSATION = (
        "biological_causation",
        "Something in the brain causes, or depends on, what was found in the model.",
    )
    UNIVERSAL = (
        "universal",
        "A positive statement about all models, brains or languages, or one said to be proven.",
    )
    UNIVERSAL_NEGATIVE = (
        "universal_negative",
        "Language models in general are not aligned with brains, or have nothing to do with them.",
    )


SILENT = (FinalLabel.DIAGNOSTIC_ONLY, FinalLabel.INSUFFICIENT_COVERAGE)
"""Verdicts that support neither a positive nor a negative statement."""
STRENGTH: tuple[FinalLabel, ...] = (
    *SILENT,
    FinalLabel.NULL,
    FinalLabel.INSUFFICIENT_BRAIN_CEILING,
    FinalLabel.CONTROL_EXPLAINED,
    FinalLabel.PREDICTIVE_ONLY,
    FinalLabel.RELATIONAL_CANDIDATE,
    FinalLabel.MECHANISM_SPECIFIC_CANDIDATE,
    FinalLabel.INTEGRATED_CANDIDATE,
)
"""Verdicts from the one that supports least to the one that supports most."""
_WEAKEST_LABEL = {
    Statement.PREDICTION: FinalLabel.PREDICTIVE_ONLY,
    Statement.RELATIONAL: FinalLabel.RELATIONAL_CANDIDATE,
    Statement.MECHANISM: FinalLabel.MECHANISM_SPECIFIC_CANDIDATE,
    Statement.ALIGNMENT: FinalLabel.INTEGRATED_CANDIDATE,
}
"""The weakest verdict that supports a statement. The ceiling has a gate that a relational candidate can pass, too."""
_OF_LABEL: dict[FinalLabel, tuple[Outcome, tuple[str, ...]]] = {
    FinalLabel.DIAGNOSTIC_ONLY: (Outcome.I, ()),
    FinalLabel.PREDICTIVE_ONLY: (Outcome.C, Statement.PREDICTION.gates),
    FinalLabel.RELATIONAL_CANDIDATE: (Outcome.B, (LEVEL_1, *Statement.RELATIONAL.gates)),
    FinalLabel.MECHANISM_SPECIFIC_CANDIDATE: (Outcome.B, (LEVEL_1, *Statement.MECHANISM.gates)),
    FinalLabel.INTEGRATED_CANDIDATE: (Outcome.A, (LEVEL_1, *Gate)),
}
"""Outcome of a study whose best verdict is a label, and gates that such a verdict passes; else D and none."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on one claim.

    ``claim`` is (dataset, model, layer, mechanism), or None for a verdict without a claim; ``passed`` are the
    gates that pass, by name, with S at level 1 apart.
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
            label=FinalLabel(row["label"]),
            passed=frozenset(gate for gate, column in _GATE_COLUMNS.items() if row[column]),
            first_failed_gate=row["first_failed_gate"],
            beaten_by=row["beaten_by"],
            raw_positive=row["raw_positive"],
        )

    @property
    def name(self) -> str:
        """The claim in words, or ``this study`` for a verdict without one."""
        if self.claim is None:
            return "this study"
        dataset, model, layer, mechanism = self.claim
        about = "" if mechanism == NONE else f", mechanism {mechanism}"
        return f"layer {layer} of {model} in {dataset}{about}"

    def supports(self, statement: Statement) -> bool:
        """Whether this verdict supports ``statement``."""
        if statement.never or self.label in SILENT:
            return False
        if statement is Statement.CORRESPONDENCE:
            return self.raw_positive
        if statement is Statement.NOT_SHOWN:
            return self.label is not FinalLabel.INTEGRATED_CANDIDATE
        if statement is Statement.CEILING:
            return set(statement.gates) <= self.passed
        return STRENGTH.index(self.label) >= STRENGTH.index(_WEAKEST_LABEL[statement])

    def missing_gate(self, statement: Statement) -> str:
        """The first gate that ``statement`` needs and that does not pass, or ``none``."""
        return next((str(gate) for gate in statement.gates if str(gate) not in self.passed), NONE)


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
        rows = decisions.filter(gate_profile=gate_profile).sort(CLAIM_KEY)
        code = outcome.filter(gate_profile=gate_profile)["outcome"].item()
        claims = tuple(Verdict.of_row(row) for row in rows.iter_rows(named=True))
        return cls(gate_profile, claims, Outcome(code))

    @classmethod
    def of_label(cls, label: str | FinalLabel) -> Verdicts:
        """A study whose best verdict is ``label``: the gates that such a verdict needs pass, no other does."""
        label = FinalLabel(label)
        outcome, gates = _OF_LABEL.get(label, (Outcome.D, ()))
        passed = frozenset(map(str, gates))
        failed = next((str(gate) for gate in Gate if str(gate) not in passed), NONE)
        verdict = Verdict(None, label, passed, failed, NONE, label is not FinalLabel.NULL)
        return cls("paper", (verdict,), outcome)

    @property
    def confirmatory(self) -> tuple[Verdict, ...]:
        """Claims of confirmatory datasets; none if no evidence chain is complete."""
        if self.outcome is Outcome.I:
            return ()
        return tuple(v for v in self.claims if v.label is not FinalLabel.DIAGNOSTIC_ONLY)

    def best(self, statement: Statement, among: Iterable[Verdict] | None = None) -> Verdict | None:
        """The verdict that counts for a statement: one that supports it, else the strongest; None without claims."""
        return max(
            self.confirmatory if among is None else among,
            key=lambda v: (v.supports(statement), STRENGTH.index(v.label), len(v.passed)),
            default=None,
        )


def supported_statements(
    decisions: pl.DataFrame, outcome: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Whether the verdicts support each statement: ``decisions/claim_statements`` and ``decisions/study_statements``.

    Made from ``decisions/lpact_decision_table`` and ``decisions/lpact_study_outcome``. A study supports what its best
    confirmatory claim supports. Statements that no gate licenses are forbidden in every row, and a verdict of
    ``diagnostic_only`` or ``insufficient_coverage`` supports none, positive or negative.
    """
    claims: list[dict[str, Any]] = []
    studies: list[dict[str, Any]] = []
    for profile in outcome["gate_profile"]:
        verdicts = Verdicts.of_tables(decisions, outcome, profile)
        claims += [
            dict(zip(CLAIM_KEY, verdict.claim or (), strict=True))
            | {"gate_profile": profile, "label": verdict.label.value}
            | _statement_cells(statement, verdict, allowed=verdict.supports(statement))
            for verdict in verdicts.claims
            for statement in Statement
        ]
        studies += [_study_row(verdicts, statement) for statement in Statement]
    return (
        validate(frame(CLAIM_STATEMENTS, claims), CLAIM_STATEMENTS),
        validate(frame(STUDY_STATEMENTS, studies), STUDY_STATEMENTS),
    )


def _study_row(verdicts: Verdicts, statement: Statement) -> dict[str, Any]:
    confirmatory = verdicts.confirmatory
    n_supporting = sum(v.supports(statement) for v in confirmatory)
    best, allowed = verdicts.best(statement), n_supporting > 0
    if statement is Statement.NOT_SHOWN:
        # A study shows alignment if any claim does; it fails to show it only if none does.
        best = verdicts.best(Statement.ALIGNMENT)
        allowed = best is not None and best.supports(statement)
    return {
        "gate_profile": verdicts.gate_profile,
        "best_label": NONE if best is None else best.label.value,
        "outcome": verdicts.outcome.value,
        "n_claims": len(confirmatory),
        "n_supporting": n_supporting,
        **_statement_cells(statement, best, allowed=allowed),
    }


def _statement_cells(
    statement: Statement, verdict: Verdict | None, *, allowed: bool
) -> dict[str, Any]:
    needed = ", ".join(map(str, statement.gates)) or NONE
    return {
        "statement": statement.value,
        "statement_order": tuple(Statement).index(statement),
        "meaning": statement.meaning,
        "allowed": allowed,
        "gates_needed": "never" if statement.never else needed,
        "missing_gate": NONE if verdict is None else verdict.missing_gate(statement),
        "reason": grounds(statement, verdict),
        "wording": supported_sentence(verdict),
    }


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


def supported_sentence(verdict: Verdict | None) -> str:
    """One sentence that the verdict supports."""
    if verdict is None:
        return "This study has no confirmatory claim with a complete chain of evidence, and supports no statement."
    place, subject, mechanism = "In this study,", "the tested model", NONE
    if verdict.claim is not None:
        dataset, model, layer, mechanism = verdict.claim
        place, subject = f"In {dataset},", f"layer {layer} of {model}"
    gate = "first" if verdict.first_failed_gate == NONE else _in_words(verdict.first_failed_gate)
    explained = f"what the {gate} gate names ({verdict.beaten_by})"
    if verdict.beaten_by in (NONE, "") or " " in verdict.beaten_by:
        explained = f"nuisance, controls or an unmet gate (the {gate} gate fails first)"
    return _SENTENCES[verdict.label].format(
        place=place,
        subject=subject,
        mechanism="the stripped mechanism" if mechanism == NONE else mechanism,
        explained=explained,
    )


def grounds(statement: Statement, verdict: Verdict | None) -> str:
    """Why a statement is or is not supported."""
    if verdict is None:
        return "No confirmatory claim has a complete chain of evidence, so nothing is supported."
    found = f"{verdict.label} ({verdict.name})"
    if verdict.supports(statement):
        return f"The verdict {found} supports it."
    if statement.never:
        return f"No gate licenses it, whatever the verdict; the best one is {found}."
    if verdict.label in SILENT:
        return f"The best verdict is {found}, which supports neither a positive nor a negative."
    if statement is Statement.CORRESPONDENCE:
        return f"The best verdict is {found}: there is no raw positive."
    if statement is Statement.NOT_SHOWN:
        return f"The best verdict is {found}: every gate passes."
    gate, first = verdict.missing_gate(statement), verdict.first_failed_gate
    reason = f"it needs the {_in_words(gate)} gate, which does not pass"
    if first not in (gate, NONE) and (gate, first) != (LEVEL_1, "severe_control"):
        reason += f"; the first failed gate is {first}"
    beaten = "" if verdict.beaten_by == NONE else f" ({verdict.beaten_by})"
    return f"The best verdict is {found}; {reason}{beaten}."
