"""Figures, pages and texts about runs, from tables alone; nothing here knows an analysis by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lpact.report.folder import REPORT_PAGE, report_contents
    from lpact.report.write import WrittenReport, write_report

__all__ = ["REPORT_PAGE", "WrittenReport", "report_contents", "write_report"]

_HOMES = {
    "REPORT_PAGE": "folder",
    "WrittenReport": "write",
    "report_contents": "folder",
    "write_report": "write",
}


def __getattr__(name: str) -> Any:
    """Import names on first use: processes that only draw need little of this."""
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(f"lpact.report.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'lpact.report' has no attribute '{name}'")
