"""Figures of deconstruct."""

from __future__ import annotations

from collections.abc import Mapping

from lpact.analyses.deconstruct.figures import bars, curves, units
from lpact.report.figure import MakeFigure

FIGURES: Mapping[str, MakeFigure] = {
    "accounted_for": bars.accounted_for,
    "ladder": bars.ladder,
    "layers_by_split": curves.layers_by_split,
    "oasm": curves.oasm,
    "sub_models": bars.sub_models,
    "unit_histogram": units.unit_histogram,
    "untrained": bars.untrained,
    "networks": curves.networks,
    "deconstructed_units": units.deconstructed_units,
}
"""The function that makes each figure, by name."""
