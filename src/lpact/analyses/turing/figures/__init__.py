"""Figures of the Turing test."""

from __future__ import annotations

from collections.abc import Mapping

from lpact.analyses.turing.figures import bars, curves, gaps
from lpact.report.figure import MakeFigure

FIGURES: Mapping[str, MakeFigure] = {
    "brains_and_models": bars.brains_and_models,
    "subject_dots": bars.subject_dots,
    "time_courses": curves.time_courses,
    "gaps": gaps.gaps,
    "growth": curves.growth,
}
"""The function that makes each figure, by name."""
