"""Lanes: a named row a thing, with a fine line between rows, shared by pictures that lie on their side."""

from __future__ import annotations

from lpact.report.figure import Spec
from lpact.report.theme import colour


def lane(field: str, order: list[str], *, labelled: bool = True, limit: int = 240) -> Spec:
    """The channel ``y`` of lanes in the given order; a panel beside another one needs no labels.

    Labels have room for ``limit`` pixels; the middle of a longer one is left out, in full it is in the marks.
    """
    most = limit // 6
    axis = {
        "title": None,
        "domain": False,
        "ticks": False,
        "grid": False,
        "labels": labelled,
        "labelPadding": 8,
        "labelLimit": 0,
        "labelExpr": f"length(datum.label) > {most} ? slice(datum.label, 0, {most // 2}) + '…' + "
        f"slice(datum.label, -{most // 2 - 1}) : datum.label",
        "labelOverlap": False,
    }
    scale = {"type": "band", "domain": order}
    return {"field": field, "type": "nominal", "sort": None, "scale": scale, "axis": axis}


def separators(y: Spec) -> Spec:
    """A layer with a fine line below every lane."""
    mark = {"type": "rule", "color": colour("grid"), "strokeWidth": 1}
    return {"mark": mark, "encoding": {"y": {**y, "bandPosition": 1}}}
