"""Where the views of a unit map stand, in pixels from the corner of its panel."""

from __future__ import annotations

import numpy as np
import polars as pl

from lpact.report.layout import Layout, View, layout_of, views_of

SIDE = {Layout.SENSORS: 140.0, Layout.BRAIN: 102.0, Layout.NATIVE: 96.0}
"""Width of a view, in pixels."""
ACROSS = {Layout.SENSORS: 1, Layout.BRAIN: 2, Layout.NATIVE: 3}
"""Views beside each other."""


def n_views(frame: str) -> int:
    """How many views a coordinate frame is drawn in."""
    return {Layout.SENSORS: 1, Layout.BRAIN: 4, Layout.NATIVE: 3}[layout_of(frame)]


def views_at(own: pl.DataFrame) -> tuple[View, ...]:
    """The views of the units of a panel."""
    places = own.select("x_mm", "y_mm", "z_mm").to_numpy().astype(np.float64)
    return views_of(own["coordinate_frame"][0], places)


def scale_of(views: tuple[View, ...], frame: str) -> float:
    """Pixels for a mm, the same in all views of a panel."""
    return SIDE[layout_of(frame)] / max(
        max(view.high[0] - view.low[0], view.high[1] - view.low[1]) for view in views
    )


def offsets(views: tuple[View, ...], frame: str) -> list[tuple[float, float]]:
    """Upper left corners of the views: side by side, a brain's two by two."""
    scale = scale_of(views, frame)
    wide = [(view.high[0] - view.low[0]) * scale for view in views]
    tall = [(view.high[1] - view.low[1]) * scale for view in views]
    if layout_of(frame) is Layout.BRAIN:
        middle = wide[0] + 8
        return [
            (0.0, 12.0),
            (middle, 12.0),
            ((wide[0] - wide[2]) / 2, tall[0] + 26),
            (middle + (wide[1] - wide[3]) / 2, tall[0] + 26),
        ]
    if layout_of(frame) is Layout.NATIVE:
        return [(24 + i * (SIDE[Layout.NATIVE] + 42), 4.0) for i in range(len(views))]
    return [(0.0, 0.0)]


def size_of(views: tuple[View, ...], frame: str) -> tuple[float, float]:
    """Width and height of all views of a panel."""
    scale, below = scale_of(views, frame), 28 if layout_of(frame) is Layout.NATIVE else 0
    ends = [
        (x + (view.high[0] - view.low[0]) * scale, y + (view.high[1] - view.low[1]) * scale + below)
        for (x, y), view in zip(offsets(views, frame), views, strict=True)
    ]
    return max(x for x, _ in ends), max(y for _, y in ends)
