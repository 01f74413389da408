"""The figures of the report, one file per figure or pair of figures."""

from __future__ import annotations

from importlib import import_module

from lpact.report.figure import MakeFigure

_MODULES = {"false_passes": "rates", "power": "rates"}
"""Figures that share a module; the others have one of their own name, with a function ``make``."""


def maker(name: str) -> MakeFigure:
    """The function that makes a figure."""
    module = import_module(f"lpact.analyses.lpact.figures.{_MODULES.get(name, name)}")
    make: MakeFigure = getattr(module, name if name in _MODULES else "make")
    return make
