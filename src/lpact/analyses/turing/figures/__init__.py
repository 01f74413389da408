"""Figures of the Turing test."""

from __future__ import annotations

from collections.abc import Mapping

from lpact.report.figure import MakeFigure

FIGURES: Mapping[str, MakeFigure] = {}
"""The function that makes each figure, by name."""
