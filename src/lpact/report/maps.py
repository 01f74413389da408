"""Maps of units: where they are on a brain, a sensor layout or along axes in mm, with a symbol for each value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import altair as alt
import numpy as np
import polars as pl

from lpact.report import panels
from lpact.report.figure import Spec
from lpact.report.layout import Layout, View, glass_brain, layout_of, views_of

Symbols = Callable[[pl.DataFrame, Spec, Spec], alt.Chart]
"""Draws units at the channels x and y."""
PLACE_MM = ("x_mm", "y_mm", "z_mm")
PLACED = pl.all_horizontal(pl.col(PLACE_MM).is_finite()).fill_null(value=False)
"""Units with coordinates."""
FEWEST_MARKS = 60
"""Units of a view that always fit."""
_THINNEST = 24
"""Pixels that a view has at least, where all units are in one plane."""


class Form(NamedTuple):
    """How a kind of frame is drawn: side of a view in pixels, maps per row, views of a map, views per row."""

    side: int
    columns: int
    n_views: int
    across: int
    seen: str
    note: str


FORMS = {
    Layout.SENSORS: Form(
        140, 6, 1, 1, "from above",
        "Sensor frames are seen from above, the nose on top (azimuthal equidistant); the circle is level with the "
        "origin, so units below it are outside.",
    ),
    Layout.BRAIN: Form(
        102, 4, 4, 2, "glass brain",
        "Brain frames are seen through the brain; left and right show the units of their own side.",
    ),
    Layout.NATIVE: Form(
        96, 2, 3, 3, "projections in mm",
        "Where the frame is not known or is a subject's own, units are projected along the three axes, in mm; these "
        "places cannot be compared between subjects.",
    ),
}  # fmt: skip


def notes_on(frames: Iterable[str]) -> list[str]:
    """How maps of some coordinate frames are read, as sentences of a caption."""
    kinds = {layout_of(frame) for frame in frames}
    notes = [form.note for layout, form in FORMS.items() if layout in kinds]
    if Layout.BRAIN in kinds and not glass_brain("top"):
        notes.append("Outlines of the brain need nilearn: pip install 'lpact[fmri]' adds it.")
    return notes


def drawing_limits(frames: Sequence[str], most_views: int, most_marks: int) -> tuple[int, int]:
    """How many maps in these coordinate frames are drawn, at least one; and the most units per view."""
    views = np.cumsum([FORMS[layout_of(frame)].n_views for frame in frames])
    n_maps = max(1, int((views <= most_views).sum()))
    return n_maps, max(FEWEST_MARKS, most_marks // int(views[n_maps - 1]))


def unit_map(sites: pl.DataFrame, symbols: Symbols, most: int, title: str) -> alt.ConcatChart:
    """All views of the coordinate frame that the units share, each with at most ``most`` units.

    ``sites`` has one row per unit, with `PLACE_MM` and ``coordinate_frame``; of too many, evenly spaced rows are drawn.
    """
    frame = sites["coordinate_frame"][0]
    form, views = FORMS[layout_of(frame)], views_of(frame, sites.select(PLACE_MM).to_numpy())
    pixels = form.side / max(float((view.high - view.low).max()) for view in views)
    made = [_view(sites, view, pixels, symbols, most, named=len(views) > 1) for view in views]
    above = panels.title(title, fontSize=10, limit=form.across * form.side + 14, offset=6)
    gaps = {"row": 18, "column": 12}
    return panels.grid(made, form.across, title=above, spacing=gaps, center=True)


def _view(
    sites: pl.DataFrame,
    view: View,
    pixels: float,
    symbols: Symbols,
    most: int,
    *,
    named: bool,
) -> alt.LayerChart:
    """One plane, at ``pixels`` per mm."""
    thin = np.maximum(0.0, _THINNEST / pixels - (view.high - view.low)) / 2
    low, high = view.low - thin, view.high + thin
    width, height = ((high - low) * pixels).tolist()
    small: Spec = {"labelFontSize": 9, "titleFontSize": 9, "labelFlush": False, "grid": False}
    x, y = (
        panels.bare(name, ends)
        if view.axes is None
        else panels.axis(name, f"{view.axes[i]} (mm)", ends, ticks=ends, fmt=".0f", **small)
        for i, name in enumerate("xy")
        for ends in [(float(low[i]), float(high[i]))]
    )
    layers = []
    if view.outline:
        # A symbol of area (2 s)² draws its path s times as large.
        outline = {"shape": view.outline, "size": (2 * pixels) ** 2, "strokeWidth": 0.8}
        outline |= {"filled": False, "stroke": "missing"}
        layers.append(panels.layer([{"x": 0.0, "y": 0.0}], "point", outline, x=x, y=y))
    places = dict(zip("xy", view.places.T, strict=True))
    units = sites.with_columns(**{name: pl.Series(own) for name, own in places.items()})
    units = units.filter(pl.Series(view.shown))
    units = units.gather_every(max(1, -(-units.height // most)))
    layers.append(symbols(units, x, y))
    if named and view.axes is None:
        layers.append(panels.heading(view.name, width / 2, y=-6, align="center", fontSize=9))
    return panels.overlay(*layers, width=width, height=height)
