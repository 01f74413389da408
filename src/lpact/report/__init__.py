"""REPORT: figures and pages, from tables alone."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from lpact.report.verdicts import verdicts_markdown
from lpact.tables.decisions import DECISIONS, STUDY_OUTCOME

REPORT_PAGE = "report.html"
"""The page that explains a run, in its report folder."""

REPORT_FILES = ("verdicts.md",)
"""Files of a run's report folder that the run itself writes."""

__all__ = ["REPORT_FILES", "report_files", "verdicts_markdown"]


def report_files(tables: Mapping[str, pl.DataFrame]) -> dict[str, str]:
    """Pages of a decided study that come with the run itself, by file name."""
    decisions = tables[DECISIONS.name].filter(gate_profile="paper")
    tested = tables[DECISIONS.name].filter(gate_profile="calibrated")
    pages = (verdicts_markdown(decisions, tables[STUDY_OUTCOME.name], tested),)
    return dict(zip(REPORT_FILES, pages, strict=True))
