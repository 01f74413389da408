"""Figures of alignment patterns."""

from __future__ import annotations

from collections.abc import Mapping

from lpact.analyses.patterns.figures import matrices, patterns, scores, structure
from lpact.report.figure import MakeFigure

FIGURES: Mapping[str, MakeFigure] = {
    "ranking": scores.ranking,
    "equivalence": matrices.equivalence,
    "pattern_lines": patterns.pattern_lines,
    "pattern_similarity": patterns.pattern_similarity,
    "confusion": matrices.confusion,
    "structure": structure.structure,
}
"""The function that makes each figure, by name."""
