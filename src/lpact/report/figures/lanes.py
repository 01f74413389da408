"""Lanes: a named row a thing, with a fine line between rows, shared by pictures that lie on their side."""

from __future__ import annotations

from lpact.report.figure import Spec
from lpact.report.theme import colour


def lane(field: str, order: list[str], *, labelled: bool = True, limit: int = 240) -> Spec:
    """The channel ``y`` of lanes in the given order; a panel beside another one needs no labels."""
    axis = {
        "title": None,
        "domain": False,
        "ticks": False,
        "grid": False,
        "labels": labelled,
        "labelPadding": 8,
        "labelLimit": limit,
        "labelOverlap": False,
    }
    scale = {"type": "band", "domain": order}
    return {"field": field, "type": "nominal", "sort": None, "scale": scale, "axis": axis}


def separators(y: Spec) -> Spec:
    """A layer with a fine line below every lane."""
    mark = {"type": "rule", "color": colour("grid"), "strokeWidth": 1}
    return {"mark": mark, "encoding": {"y": {**y, "bandPosition": 1}}}
