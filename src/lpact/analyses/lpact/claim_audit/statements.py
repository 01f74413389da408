"""What a decision table supports, and what it forbids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from lpact.analyses.lpact.claim_audit.statement import Statement
from lpact.analyses.lpact.claim_audit.verdicts import Verdict, Verdicts
from lpact.analyses.lpact.claim_audit.wording import NONE, grounds, supported_sentence
from lpact.analyses.lpact.tables.decisions import (
    CLAIM_STATEMENTS,
    DECISIONS,
    STUDY_OUTCOME,
    STUDY_STATEMENTS,
)
from lpact.store import frame, validate
from lpact.tables import CLAIM_KEY


def supported_statements(
    decisions: pl.DataFrame, outcome: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Say of every statement whether the verdicts support it.

    Parameters
    ----------
    decisions
        ``decisions/lpact_decision_table``: one row a claim and gate profile.
    outcome
        ``decisions/lpact_study_outcome``: one row a gate profile.

    Returns
    -------
    tuple
        ``decisions/claim_statements`` and ``decisions/study_statements``. What holds for the study is what its best
        confirmatory claim supports. Statements that no gate licenses are forbidden in every row, and a verdict
        of ``diagnostic_only`` or ``insufficient_coverage`` supports none, positive or negative.
    """
    claims: list[dict[str, Any]] = []
    studies: list[dict[str, Any]] = []
    for profile in outcome["gate_profile"]:
        verdicts = Verdicts.of_tables(decisions, outcome, profile)
        claims += [_claim_row(v, s, profile) for v in verdicts.claims for s in Statement]
        studies += [_study_row(verdicts, s) for s in Statement]
    return (
        validate(frame(CLAIM_STATEMENTS, claims), CLAIM_STATEMENTS),
        validate(frame(STUDY_STATEMENTS, studies), STUDY_STATEMENTS),
    )


def audit_claims(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of the claim audit by full name, from a run's tables by full name."""
    claims, study = supported_statements(tables[DECISIONS.name], tables[STUDY_OUTCOME.name])
    return {CLAIM_STATEMENTS.name: claims, STUDY_STATEMENTS.name: study}


def _claim_row(verdict: Verdict, statement: Statement, profile: str) -> dict[str, Any]:
    return {
        **dict(zip(CLAIM_KEY, verdict.claim or (), strict=True)),
        "gate_profile": profile,
        **_statement_cells(statement, allowed=verdict.supports(statement)),
        "label": verdict.label.value,
        **_grounds(statement, verdict),
    }


def _study_row(verdicts: Verdicts, statement: Statement) -> dict[str, Any]:
    best = verdicts.best(statement)
    confirmatory = verdicts.confirmatory
    supporting = [v for v in confirmatory if v.supports(statement)]
    # A study shows alignment if any claim does; it fails to show it only if none does.
    allowed = bool(supporting)
    if statement is Statement.NOT_SHOWN:
        best = verdicts.best(Statement.ALIGNMENT)
        allowed = best is not None and best.supports(statement)
    return {
        "gate_profile": verdicts.gate_profile,
        **_statement_cells(statement, allowed=allowed),
        "best_label": NONE if best is None else best.label.value,
        "outcome": verdicts.outcome.value,
        "n_claims": len(confirmatory),
        "n_supporting": len(supporting),
        **_grounds(statement, best),
    }


def _statement_cells(statement: Statement, *, allowed: bool) -> dict[str, Any]:
    return {
        "statement": statement.value,
        "statement_order": tuple(Statement).index(statement),
        "meaning": statement.meaning,
        "allowed": allowed,
    }


def _grounds(statement: Statement, verdict: Verdict | None) -> dict[str, str]:
    needed = ", ".join(str(gate) for gate in statement.gates) or NONE
    missing = NONE if verdict is None else verdict.missing_gate(statement)
    return {
        "gates_needed": "never" if statement.never else needed,
        "missing_gate": missing,
        "reason": grounds(statement, verdict),
        "wording": supported_sentence(verdict),
    }
