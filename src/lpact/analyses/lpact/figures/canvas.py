"""Pictures that are tables: marks and words at places in pixels, x from the left and y from the top.

A `Canvas` collects layers in the order in which they are drawn. Every layer has its own rows; their columns ``x`` and
``y`` (for boxes and lines also ``x2`` and ``y2``) are pixels, so that words, symbols and bars stand exactly under each
other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from lpact.report.figure import DESCRIPTION, MARK, Spec, values
from lpact.report.theme import colour

CROSS = "M-0.7,-0.7L0.7,0.7M0.7,-0.7L-0.7,0.7"
"""Outline of a diagonal cross: what does not pass."""

DASH = "M-0.7,0L0.7,0"
"""Outline of a dash: what does not apply."""


def wedge(share: float) -> str:
    """Outline of the part ``share`` (between 0 and 1) of a disc, clockwise from twelve o'clock."""
    turn = 2 * math.pi * share
    x, y = math.sin(turn), -math.cos(turn)
    return f"M0,0L0,-1A1,1,0,{int(share > 0.5)},1,{x:.4f},{y:.4f}Z"


Rows = pl.DataFrame | Sequence[Mapping[str, Any]]


def _frame(rows: Rows) -> pl.DataFrame:
    return rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(rows, infer_schema_length=None)


def _pixels(name: str) -> Spec:
    return {"field": name, "type": "quantitative", "scale": None, "axis": None}


@dataclass
class Canvas:
    """Layers of a picture of ``width`` × ``height`` pixels."""

    width: float
    height: float
    layers: list[Spec] = field(default_factory=list)

    def words(
        self,
        rows: Rows,
        *,
        size: int = 11,
        align: str = "left",
        ink: str = "ink",
        bold: bool = False,
        limit: float = 0,
    ) -> None:
        """Text (column ``text``), vertically centred at its place; longer than ``limit`` pixels ends in an ellipsis."""
        own: Spec = {
            "type": "text",
            "align": align,
            "baseline": "middle",
            "fontSize": size,
            "color": colour(ink),
        }
        if bold:
            own["fontWeight"] = "bold"
        if limit:
            own["limit"] = limit
        self._add(rows, own, {"text": {"field": "text", "type": "nominal"}})

    def boxes(
        self,
        rows: Rows,
        *,
        fill: str | None,
        edge: str | None = None,
        edge_width: float = 1,
        dash: Sequence[float] = (),
        radius: float = 0,
    ) -> None:
        """Rectangles from (x, y) to (x2, y2)."""
        own: Spec = {"type": "rect", "cornerRadius": radius}
        own |= {"fill": colour(fill)} if fill else {"filled": False}
        if edge:
            own |= {"stroke": colour(edge), "strokeWidth": edge_width}
        if dash:
            own["strokeDash"] = list(dash)
        self._add(rows, own, _second("x2", "y2"))

    def lines(
        self, rows: Rows, *, ink: str = "line", thick: float = 1, dash: Sequence[float] = ()
    ) -> None:
        """Straight lines from (x, y) to (x2, y2)."""
        own: Spec = {"type": "rule", "color": colour(ink), "strokeWidth": thick}
        if dash:
            own["strokeDash"] = list(dash)
        self._add(rows, own, _second("x2", "y2"))

    def symbols(
        self,
        rows: Rows,
        shape: str,
        *,
        radius: float,
        fill: str | None = None,
        edge: str | None = None,
        thick: float = 2,
        opacity: float = 1,
    ) -> None:
        """Symbols of one shape, ``radius`` pixels from their middle to their edge."""
        # Vega draws circles and outlines within a square of this area.
        area = 4 * radius**2
        own: Spec = {"type": "point", "shape": shape, "size": area, "filled": fill is not None}
        if fill:
            own["fill"] = colour(fill)
        if edge:
            own |= {"stroke": colour(edge), "strokeWidth": thick}
        if opacity < 1:
            own["opacity"] = opacity
        if shape in (CROSS, DASH):
            own["strokeCap"] = "round"
        self._add(rows, own, {})

    def spec(self) -> Spec:
        """The picture as a Vega-Lite specification."""
        return {"width": self.width, "height": self.height, "layer": self.layers}

    def _add(self, rows: Rows, own: Spec, channels: Spec) -> None:
        frame = _frame(rows)
        if frame.is_empty():
            return
        encoding: Spec = {"x": _pixels("x"), "y": _pixels("y"), **channels}
        if MARK in frame.columns:
            encoding["description"] = dict(DESCRIPTION)
        else:
            own["aria"] = False
        used = [encoding[name]["field"] for name in encoding]
        self.layers.append({"data": values(frame.select(used)), "mark": own, "encoding": encoding})


def _second(*names: str) -> Spec:
    return {name: {"field": name} for name in names}
