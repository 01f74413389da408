"""REPORT: figures and pages, from tables alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lpact.analyses.lpact.verdicts import verdict_pages, verdicts_markdown
    from lpact.archive.diff import compare_runs
    from lpact.report.folder import REPORT_PAGE, report_contents
    from lpact.report.write import WrittenReport, write_report

__all__ = [
    "REPORT_PAGE",
    "WrittenReport",
    "compare_runs",
    "report_contents",
    "verdict_pages",
    "verdicts_markdown",
    "write_report",
]

_HOMES = {
    "REPORT_PAGE": "folder",
    "WrittenReport": "write",
    "compare_runs": "compare",
    "report_contents": "folder",
    "verdict_pages": "verdicts",
    "verdicts_markdown": "verdicts",
    "write_report": "write",
}


def __getattr__(name: str) -> Any:
    """Import names on first use: processes that only draw need little of this."""
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(f"lpact.report.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'lpact.report' has no attribute '{name}'")
