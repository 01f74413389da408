"""The report as one HTML file: no network, no script but its own, everything from tables escaped."""

from __future__ import annotations

from lpact.report.page.build import AnalysisPart, Drawn, PageParts, TableFile, page_html

__all__ = ["AnalysisPart", "Drawn", "PageParts", "TableFile", "page_html"]
