"""Figures of deconstruct."""

from __future__ import annotations

from collections.abc import Mapping

from lpact.report.figure import MakeFigure

FIGURES: Mapping[str, MakeFigure] = {}
