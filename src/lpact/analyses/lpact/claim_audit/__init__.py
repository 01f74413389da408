"""CLAIM AUDIT: what a decision table supports and forbids, and a check of a text against it."""

from __future__ import annotations

from lpact.analyses.lpact.claim_audit.check import (
    Format,
    Overclaim,
    check_text,
    format_of,
    unread_files,
)
from lpact.analyses.lpact.claim_audit.statement import Statement
from lpact.analyses.lpact.claim_audit.statements import audit_claims, supported_statements
from lpact.analyses.lpact.claim_audit.verdicts import Verdict, Verdicts

__all__ = [
    "Format",
    "Overclaim",
    "Statement",
    "Verdict",
    "Verdicts",
    "audit_claims",
    "check_text",
    "format_of",
    "supported_statements",
    "unread_files",
]
