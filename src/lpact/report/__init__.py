"""REPORT: figures and pages, from tables alone."""

from __future__ import annotations

from lpact.report.claim_story import claim_story
from lpact.report.compare import compare_runs
from lpact.report.folder import REPORT_PAGE, report_contents
from lpact.report.verdicts import verdict_pages, verdicts_markdown
from lpact.report.write import WrittenReport, write_report

__all__ = [
    "REPORT_PAGE",
    "WrittenReport",
    "claim_story",
    "compare_runs",
    "report_contents",
    "verdict_pages",
    "verdicts_markdown",
    "write_report",
]
