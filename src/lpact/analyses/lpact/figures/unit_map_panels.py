"""Panels of the unit maps: a line of panels a dataset and frame, each with the views of that frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.lpact.figures.canvas import DASH, Canvas
from lpact.analyses.lpact.figures.common import ShortLayerNames, largest
from lpact.analyses.lpact.figures.unit_map_places import (
    ACROSS,
    SIDE,
    n_views,
    offsets,
    scale_of,
    size_of,
    views_at,
)
from lpact.report.figure import Spec, mark
from lpact.report.layout import Layout, View, binned, layout_of
from lpact.report.theme import DIVERGING, colour
from lpact.report.wording import counted, letters_in, number

MOST_VIEWS = 96
MOST_MARKS, _FEWEST = 5000, 60
"""Views and units that are drawn; further panels are left out, more units are put together in squares."""
_ROOM = 920
_RADIUS = (2.2, 3.2, 4.2, 5.2)
_TITLE, _GAP, _HEADING, _LEGEND, _LEGEND_WIDTH = 18, 14, 40, 40, 760


@dataclass(frozen=True)
class Drawn:
    """The specification; how many panels were left out; whether units were put together."""

    spec: Spec
    n_left_out: int
    binned: bool


def edges_of(values: np.ndarray[Any, Any]) -> tuple[float, float, float]:
    """Round edges of the shades, each about three times the one before.

    The last is the largest of 1, 3, 10, 30 … and their fractions that the 95th percentile of sizes reaches.
    """
    sizes = np.abs(values)
    reach = float(np.quantile(sizes, 0.95)) or float(sizes.max()) or 1.0
    power = int(np.floor(np.log10(reach)))
    three = reach >= float(f"3e{power}")
    texts = (f"3e{power - 1}", f"1e{power}", f"3e{power}")
    lower = (f"1e{power - 1}", f"3e{power - 1}", f"1e{power}")
    low, middle, high = (float(text) for text in (texts if three else lower))
    return low, middle, high


def shade_of(value: float, edges: tuple[float, float, float]) -> int:
    """Number of the shade, −3 to 3; the outermost are open."""
    size = sum(abs(value) > edge for edge in edges)
    return size if value > 0 else -size


def draw(sites: pl.DataFrame, metric: str) -> Drawn:
    """All panels, line by line, under one legend."""
    panels = sites.partition_by(
        ["dataset", "coordinate_frame", "model", "layer", "panel"], maintain_order=True
    )
    panels.sort(key=lambda own: (own["dataset"][0], own["coordinate_frame"][0], own["model"][0]))
    views_before = np.cumsum([n_views(own["coordinate_frame"][0]) for own in panels])
    kept = [own for own, n in zip(panels, views_before, strict=True) if n <= MOST_VIEWS]
    left_out = len(panels) - len(kept)
    known = sites["value"].drop_nulls().to_numpy()
    edges = edges_of(known)
    total = sum(n_views(own["coordinate_frame"][0]) for own in kept)
    page = _Page(edges, metric, max(_FEWEST, MOST_MARKS // total), ShortLayerNames(sites))
    y, previous, x = float(_LEGEND), None, 0.0
    line_height = 0.0
    for own in kept:
        group = (own["dataset"][0], own["coordinate_frame"][0])
        views = views_at(own)
        width, height = size_of(views, group[1])
        if group != previous:
            y += line_height
            page.heading(y, own, kept)
            x, y, previous = 0.0, y + _HEADING, group
            line_height = 0.0
        elif x + width > _ROOM:
            x, y = 0.0, y + line_height
        page.panel(own, views, x, y, group[1])
        page.width = max(page.width, x + width)
        x, line_height = x + width + _GAP, height + _TITLE + _GAP
    return Drawn(page.spec(y + line_height), left_out, page.binned)


class _Page:
    """Everything that is drawn, by kind of mark; the canvas is made at the end."""

    def __init__(
        self, edges: tuple[float, float, float], metric: str, most: int, names: ShortLayerNames
    ) -> None:
        self.names = names
        self.edges, self.metric, self.most = edges, metric, most
        self.binned, self.width = False, float(_LEGEND_WIDTH)
        self.bold: list[dict[str, Any]] = []
        self.plain: list[dict[str, Any]] = []
        self.titles: dict[Layout, list[dict[str, Any]]] = {}
        self.centred: list[dict[str, Any]] = []
        self.rightmost: list[dict[str, Any]] = []
        self.outline: list[dict[str, Any]] = []
        self.frames: list[dict[str, Any]] = []
        self.units: dict[tuple[int, bool], list[dict[str, Any]]] = {}
        self.undefined: list[dict[str, Any]] = []
        self.n_lines = 0

    def heading(self, y: float, own: pl.DataFrame, kept: list[pl.DataFrame]) -> None:
        """Name of a dataset, its frame and its numbers."""
        dataset, frame = own["dataset"][0], own["coordinate_frame"][0]
        mine = [p for p in kept if (p["dataset"][0], p["coordinate_frame"][0]) == (dataset, frame)]
        n = sum(len(p) for p in mine if p["model"][0] == mine[0]["model"][0])
        subjects = int(max(largest(p["n_subjects"]) for p in mine))
        known = f"coordinate frame {frame}" if frame else "coordinate frame not known"
        view = {
            Layout.SENSORS: "from above",
            Layout.BRAIN: "glass brain",
            Layout.NATIVE: "projections in mm",
        }
        said = f"{known}, {view[layout_of(frame)]}; {counted(n, 'place')}"
        if subjects:
            said += f", up to {counted(subjects, 'subject')} each"
        self.bold.append({"x": 0, "y": y + 6, "text": dataset})
        self.plain.append({"x": 0, "y": y + 22, "text": said})

    def panel(
        self, own: pl.DataFrame, views: tuple[View, ...], x: float, y: float, frame: str
    ) -> None:
        """One dataset and model, in all views of its frame."""
        first = own.row(0, named=True)
        layout = layout_of(frame)
        room = ACROSS[layout] * SIDE[layout] - (80 if first["panel"] else 0)
        name = self.names.of_model(first["model"], first["layer"], letters_in(room))
        name += f" · subject {first['panel']}" if first["panel"] else ""
        self.titles.setdefault(layout, []).append({"x": x, "y": y + 4, "text": name})
        scale = scale_of(views, frame)
        rows = own.to_dicts()
        for view, (left, top) in zip(views, offsets(views, frame), strict=True):
            corner = (x + left, y + _TITLE + top)
            self._outline(view, corner, scale)
            if len(views) > 1 and view.axes is None:
                middle = corner[0] + (view.high[0] - view.low[0]) * scale / 2
                self.centred.append({"x": middle, "y": corner[1] - 6, "text": view.name})
            flat = np.column_stack(
                [view.places[:, 0] - view.low[0], view.high[1] - view.places[:, 1]]
            )
            self._units(rows, flat * scale + corner, view)

    def _outline(self, view: View, corner: tuple[float, float], scale: float) -> None:
        for line in view.outline:
            self.n_lines += 1
            self.outline += [
                {
                    "x": round(corner[0] + (px - view.low[0]) * scale, 2),
                    "y": round(corner[1] + (view.high[1] - py) * scale, 2),
                    "line": self.n_lines,
                    "step": i,
                }
                for i, (px, py) in enumerate(line)
            ]
        if view.axes is None:
            return
        wide, tall = (view.high[0] - view.low[0]) * scale, (view.high[1] - view.low[1]) * scale
        left, top = corner
        self.frames.append({"x": left, "y": top, "x2": left + wide, "y2": top + tall})
        self.centred.append(
            {"x": left + wide / 2, "y": top + tall + 20, "text": f"{view.axes[0]} (mm)"}
        )
        for at, place in ((view.low[0], left), (view.high[0], left + wide)):
            self.centred.append({"x": place, "y": top + tall + 8, "text": number(at, 0)})
        for at, place in ((view.low[1], top + tall), (view.high[1], top)):
            self.rightmost.append({"x": left - 3, "y": place, "text": number(at, 0)})
        self.rightmost.append({"x": left - 3, "y": top + tall / 2, "text": view.axes[1]})

    def _units(self, rows: list[dict[str, Any]], at: np.ndarray[Any, Any], view: View) -> None:
        shown = np.flatnonzero(view.shown)
        members: list[list[int]] = [[int(i)] for i in shown]
        middles = at[shown]
        cell = 4.0
        while len(members) > self.most:
            self.binned = True
            middles, index = binned(at[shown], cell)
            members = [[] for _ in middles]
            for i, group in zip(shown, index, strict=True):
                members[group].append(int(i))
            cell *= 1.25
        for (px, py), own in zip(middles, members, strict=True):
            self._unit([rows[i] for i in own], float(px), float(py))

    def _unit(self, rows: list[dict[str, Any]], x: float, y: float) -> None:
        known = [row["value"] for row in rows if row["value"] is not None]
        value = sum(known) / len(known) if known else None
        told = mark(
            self._told(rows, value),
            dataset=rows[0]["dataset"],
            model=rows[0]["model"],
            layer=rows[0]["layer"],
            value=value,
        )
        place = {"x": round(x, 2), "y": round(y, 2), "mark": told}
        if value is None:
            self.undefined.append(place)
        else:
            self.units.setdefault((shade_of(value, self.edges), value > 0), []).append(place)

    def _told(self, rows: list[dict[str, Any]], value: float | None) -> str:
        row = rows[0]
        where = f"{row['dataset']}, {row['model']}, layer {row['layer']}"
        if len(rows) > 1:
            return f"{where}: mean of {len(rows)} units, real minus best control {number(value)} in {self.metric}"
        text = f"{where}, unit {row['unit']}"
        text += f", subject {row['panel']}" if row["panel"] else ""
        text += f" ({row['x_mm']:.0f}, {row['y_mm']:.0f}, {row['z_mm']:.0f} mm)"
        if value is None:
            return f"{text}: no finite difference"
        over = f"{counted(row['n_recordings'], 'recording')} of {counted(row['n_subjects'], 'subject')}"
        return f"{text}: real {number(row['real'])}, real minus best control {number(value)} ({self.metric}); {over}"

    def spec(self, height: float) -> Spec:
        """The whole picture."""
        canvas = Canvas(self.width, height)
        self._legend(canvas)
        canvas.words(self.bold, bold=True, size=12, limit=_ROOM)
        canvas.words(self.plain, ink="muted", limit=_ROOM)
        for layout, titles in self.titles.items():
            canvas.words(titles, limit=ACROSS[layout] * SIDE[layout] + _GAP, bold=True, size=10)
        canvas.boxes(self.frames, fill=None, edge="line")
        _lines(canvas, self.outline)
        canvas.words(self.centred, size=9, align="center", ink="muted")
        canvas.words(self.rightmost, size=9, align="right", ink="muted")
        canvas.symbols(self.undefined, DASH, radius=4, edge="line", thick=1.5)
        for shade, ahead in sorted(self.units, key=lambda own: (abs(own[0]), own)):
            _triangles(canvas, self.units[shade, ahead], shade, ahead=ahead)
        return canvas.spec()

    def _legend(self, canvas: Canvas) -> None:
        canvas.words([{"x": 0, "y": 8, "text": f"real minus best control, held-out {self.metric}"}])
        x = 232.0
        for shade in range(-3, 4):
            for ahead in (False, True) if shade == 0 else (shade > 0,):
                _triangles(canvas, [{"x": x, "y": 8}], shade, ahead=ahead)
                x += 13 if shade == 0 and not ahead else 10
            text = _range(shade, self.edges)
            canvas.words([{"x": x, "y": 8, "text": text}], size=10)
            x += 14 + 5.4 * len(text)


def _range(shade: int, edges: tuple[float, float, float]) -> str:
    sign, size = "−" if shade < 0 else "", abs(shade)
    if size == 0:
        return f"within {edges[0]:g}"
    return f"beyond {sign}{edges[2]:g}" if size == 3 else f"to {sign}{edges[size]:g}"


def _triangles(canvas: Canvas, rows: list[dict[str, Any]], shade: int, *, ahead: bool) -> None:
    canvas.symbols(
        rows,
        "triangle-up" if ahead else "triangle-down",
        radius=_RADIUS[abs(shade)],
        fill=DIVERGING[shade + 3],
        edge="line" if abs(shade) < 2 else DIVERGING[shade + 3],
        thick=0.8,
    )


def _lines(canvas: Canvas, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    pixels = {"type": "quantitative", "scale": None, "axis": None}
    canvas.layers.append(
        {
            "data": {"values": rows},
            "mark": {"type": "line", "strokeWidth": 0.8, "color": colour("missing")},
            "encoding": {
                "x": {"field": "x", **pixels},
                "y": {"field": "y", **pixels},
                "detail": {"field": "line", "type": "nominal"},
                "order": {"field": "step", "type": "quantitative"},
            },
        }
    )
