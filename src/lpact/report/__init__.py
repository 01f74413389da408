"""REPORT: figures and pages, from tables alone."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from lpact.report.decision_matrix import decision_matrix_svg
from lpact.report.verdicts import verdicts_markdown
from lpact.tables.decisions import DECISIONS, STUDY_OUTCOME

REPORT_FILES = ("decision-matrix.svg", "verdicts.md")
"""Files of a run's report folder."""

__all__ = ["REPORT_FILES", "decision_matrix_svg", "report_files", "verdicts_markdown"]


def report_files(tables: Mapping[str, pl.DataFrame]) -> dict[str, str]:
    """Pages and pictures of a decided study, by file name."""
    decisions = tables[DECISIONS.name].filter(gate_profile="paper")
    tested = tables[DECISIONS.name].filter(gate_profile="calibrated")
    pages = (
        decision_matrix_svg(decisions),
        verdicts_markdown(decisions, tables[STUDY_OUTCOME.name], tested),
    )
    return dict(zip(REPORT_FILES, pages, strict=True))
