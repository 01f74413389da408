"""Every figure of the report, in the order of the page. One file per figure: ``make(material) -> Figure | Missing``."""

from __future__ import annotations

from importlib import import_module

from lpact.report.figure import MakeFigure

SECTIONS: dict[str, tuple[str, ...]] = {
    "verdict": ("framework", "decision_matrix"),
    "why": (
        "conventional",
        "layer_scores",
        "control_winners",
        "relational_profiles",
        "profile_heatmaps",
        "stripping_matrix",
        "dissociations",
        "ceilings",
        "unit_maps",
    ),
    "how sure": ("assay_sensitivity", "uncertainty", "sensitivity", "false_passes", "power"),
    "how it was made": ("source_audit",),
}
"""Figures by section of the page; the name is that of the file and of the picture."""


def maker(name: str) -> MakeFigure:
    """The function that makes a figure."""
    make: MakeFigure = import_module(f"lpact.analyses.lpact.figures.{name}").make
    return make
