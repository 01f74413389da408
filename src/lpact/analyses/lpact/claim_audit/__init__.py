"""CLAIM AUDIT: what a decision table supports and forbids, and a check of a text against it."""

from __future__ import annotations

from lpact.analyses.lpact.claim_audit.check import Overclaim, check_text, format_of
from lpact.analyses.lpact.claim_audit.readers import Format, unread_files
from lpact.analyses.lpact.claim_audit.statements import (
    Statement,
    Verdict,
    Verdicts,
    supported_statements,
)

__all__ = [
    "Format",
    "Overclaim",
    "Statement",
    "Verdict",
    "Verdicts",
    "check_text",
    "format_of",
    "supported_statements",
    "unread_files",
]
