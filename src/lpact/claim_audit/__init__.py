"""CLAIM AUDIT: what the verdicts of a run support and forbid, and a check of a text against them."""

from __future__ import annotations

from lpact.claim_audit.check import Overclaim, check_text, format_of
from lpact.claim_audit.readers import Format, unread_files
from lpact.claim_audit.statements import LabelVerdict, LabelVerdicts, Statement, Verdict, Verdicts, tabulate

__all__ = [
    "Format",
    "LabelVerdict",
    "LabelVerdicts",
    "Overclaim",
    "Statement",
    "Verdict",
    "Verdicts",
    "check_text",
    "format_of",
    "tabulate",
    "unread_files",
]
