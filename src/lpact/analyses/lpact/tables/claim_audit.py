"""Tables of the claim audit: what a decision table supports, and what it forbids."""

from __future__ import annotations

from lpact.tables import CLAIM, CLAIM_KEY, Column, Table

_PROFILE = Column("gate_profile", "str", "Gate profile that the verdict is of.")
_STATEMENT = (
    Column("statement", "str", "What would be said, as a code."),
    Column("statement_order", "int", "Place of the statement, from the weakest, from 0."),
    Column("meaning", "str", "The statement in words."),
    Column("allowed", "bool", "Whether the verdict supports it."),
)
_GROUNDS = (
    Column("gates_needed", "str", "Gates that it needs, or `none`, or `never` if no gate can do."),
    Column("missing_gate", "str", "First of these gates that does not pass, or `none`."),
    Column("reason", "str", "Why it is allowed or forbidden."),
    Column("wording", "str", "A sentence that the verdict supports in its place."),
)

CLAIM_STATEMENTS = Table(
    "decisions/claim_statements",
    "One row per claim, gate profile and statement: whether the verdict supports it, why, and what may be said.",
    (*CLAIM_KEY, "gate_profile", "statement"),
    (*CLAIM, _PROFILE, *_STATEMENT, Column("label", "str", "Verdict on the claim."), *_GROUNDS),
)

STUDY_STATEMENTS = Table(
    "decisions/study_statements",
    "One row per gate profile and statement: whether any confirmatory claim of the study supports it.",
    ("gate_profile", "statement"),
    (
        _PROFILE,
        *_STATEMENT,
        Column("best_label", "str", "Strongest verdict of a confirmatory claim."),
        Column("outcome", "str", "Outcome of the study: A, B, C, D or I."),
        Column("n_claims", "int", "Confirmatory claims."),
        Column("n_supporting", "int", "Confirmatory claims whose verdict supports it."),
        *_GROUNDS,
    ),
)

TABLES = (CLAIM_STATEMENTS, STUDY_STATEMENTS)
