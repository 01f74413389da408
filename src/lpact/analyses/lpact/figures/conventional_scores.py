"""Raw scores against the best control, with verdicts as shapes."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.lpact.figures.canvas import CROSS, DASH, Canvas
from lpact.analyses.lpact.figures.common import LABEL_RANK, PROFILES
from lpact.analyses.lpact.gates.wording import words
from lpact.report.figure import DESCRIPTION, MARK, Spec, values, with_marks
from lpact.report.theme import colour
from lpact.report.wording import counted, number

LOOKS: dict[str, tuple[str, str | None, str]] = {
    "integrated_candidate": ("diamond", "pass", "pass"),
    "mechanism_specific_candidate": ("triangle-right", "pass", "pass"),
    "relational_candidate": ("triangle-up", "pass", "pass"),
    "predictive_only": ("square", "pass", "pass"),
    "insufficient_brain_ceiling": ("triangle-down", None, "line"),
    "control_explained": (CROSS, None, "fail"),
    "null": (DASH, None, "fail"),
    "insufficient_coverage": ("triangle-left", None, "line"),
    "diagnostic_only": ("circle", None, "line"),
}
"""Shape, fill and edge of each verdict: filled where it is a positive one."""


def scores_spec(scores: pl.DataFrame, metric: str) -> Spec:
    """One panel a gate profile, both with the same square scale and the line of equality; the legend below."""
    drawn = with_marks(scores.filter(pl.col("real").is_not_null()), _told, value="real")
    both = drawn["real"].to_list() + drawn["control"].to_list()
    low, high = min(*both, 0.0), max(*both, 0.0)
    pad = 0.05 * (high - low) or 0.05
    labels = sorted(set(drawn["label"]), key=lambda own: (LABEL_RANK[own] < 2, LABEL_RANK[own]))
    profiles = [own for own in PROFILES if own in set(drawn["gate_profile"])]
    panels = [
        _panel(
            drawn.filter(gate_profile=profile),
            profile,
            [low - pad, high + pad],
            f"held-out {metric}",
            first=i == 0,
        )
        for i, profile in enumerate(profiles)
    ]
    return {"vconcat": [{"hconcat": panels, "spacing": 40}, _legend(labels)], "spacing": 12}


def _legend(labels: list[str]) -> Spec:
    """Symbols of the verdicts that occur, four in a line."""
    canvas = Canvas(4 * 200, 18 * -(-len(labels) // 4))
    for i, label in enumerate(labels):
        shape, fill, edge = LOOKS[label]
        x, y = 10 + 200 * (i % 4), 9 + 18 * (i // 4)
        radius = 5.5 if shape.startswith("M") else 4.7
        canvas.symbols(
            [{"x": x, "y": y}], shape, radius=radius, fill=fill, edge=edge, thick=_thick(fill)
        )
        canvas.words([{"x": x + 12, "y": y, "text": words(label)}])
    return canvas.spec()


def _thick(fill: str | None) -> float:
    return 0.5 if fill else 1.8


def _panel(
    rows: pl.DataFrame, profile: str, domain: list[float], unit: str, *, first: bool
) -> Spec:
    scale = {"domain": domain, "nice": False, "zero": False}
    shared: Spec = {"type": "quantitative", "scale": scale}
    x: Spec = {**shared, "axis": {"title": f"best severe control, {unit}", "tickCount": 6}}
    title = f"real features, {unit}" if first else None
    y: Spec = {**shared, "axis": {"title": title, "tickCount": 6, "grid": True}}
    ends = [{"x": end, "y": end} for end in domain]
    line: Spec = {
        "data": {"values": ends},
        "mark": {"type": "line", "color": colour("line"), "strokeDash": [4, 3], "aria": False},
        "encoding": {"x": {"field": "x", **x}, "y": {"field": "y", **y}},
    }
    zeros: list[Spec] = [
        {
            "data": {"values": [{"zero": 0}]},
            "mark": {"type": "rule", "color": colour("line"), "strokeWidth": 0.7, "aria": False},
            "encoding": {channel: {"field": "zero", **encoding}},
        }
        for channel, encoding in (("x", x), ("y", y))
    ]
    name: Spec = {
        "data": {"values": [{**ends[1], "text": "equal"}]},
        "mark": {
            "type": "text",
            "align": "right",
            "baseline": "top",
            "dx": -18,
            "dy": 2,
            "color": colour("muted"),
            "aria": False,
        },
        "encoding": {**line["encoding"], "text": {"field": "text", "type": "nominal"}},
    }
    points = [
        _points(own, str(label), x, y)
        for (label,), own in rows.group_by("label", maintain_order=True)
    ]
    return {
        "title": {"text": PROFILES[profile], "subtitle": f"gate profile {profile}", "offset": 6},
        "width": 340,
        "height": 340,
        "layer": [*zeros, line, name, *points],
    }


def _points(rows: pl.DataFrame, label: str, x: Spec, y: Spec) -> Spec:
    """The layers with one verdict."""
    shape, fill, edge = LOOKS[label]
    return {
        "data": values(rows.select("control", "real", MARK)),
        "mark": {
            "type": "point",
            "shape": shape,
            "size": 120 if shape.startswith("M") else 88,
            "filled": fill is not None,
            **({"fill": colour(fill)} if fill else {}),
            "stroke": colour(edge),
            "strokeWidth": _thick(fill),
        },
        "encoding": {
            "x": {"field": "control", **x},
            "y": {"field": "real", **y},
            "description": dict(DESCRIPTION),
        },
    }


def _told(row: dict[str, Any]) -> str:
    left = f", {row['n_left_out']} more not computed" if row["n_left_out"] else ""
    return (
        f"{row['dataset']}, {row['model']}, layer {row['layer']}; {PROFILES[row['gate_profile']]}: "
        f"{words(row['label'])}. Real features "
        f"{number(row['real'])}, best control {number(row['control'])} (mean over "
        f"{counted(row['n'], 'subject-run')}{left})"
    )
