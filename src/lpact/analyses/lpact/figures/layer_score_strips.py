"""Scores where models have one or two layers: a strip a model and layer, with all conditions under each other."""

from __future__ import annotations

import polars as pl

from lpact.analyses.lpact.figures.layer_score_look import (
    about,
    ceiling_rule,
    chunks,
    domain_of,
    kind_channels,
    legend,
    panel_title,
    told,
    told_run,
)
from lpact.analyses.lpact.figures.layer_score_rows import REAL
from lpact.analyses.lpact.figures.layers import ShortLayerNames
from lpact.analyses.lpact.figures.short_names import letters_in
from lpact.report.figure import DESCRIPTION, Spec, values, with_marks
from lpact.report.theme import colour

MOST_PANELS = 6
"""Panels beside each other; more continue below."""
_ROOM, _ROW, _GAP, _LABELS = 900, 14, 12, 170


def strips(rows: pl.DataFrame, dots: pl.DataFrame, ceilings: pl.DataFrame, metric: str) -> Spec:
    """Rows of panels, one or more a dataset; conditions from the highest to the lowest mean over all panels."""
    order = (
        rows.group_by("condition")
        .agg(pl.col("place").mean())
        .sort(["place", "condition"], descending=[True, False], nulls_last=True)
    )
    conditions = order["condition"].to_list()
    most = max(len(own.select("model", "layer").unique()) for own in rows.partition_by("dataset"))
    beside = len(chunks(range(most), MOST_PANELS)[0])
    width = min(260, (_ROOM - _LABELS) // beside - _GAP)
    short, lines = ShortLayerNames(rows), []
    for own in rows.partition_by("dataset", maintain_order=True):
        dataset = own["dataset"][0]
        its_dots = dots.filter(pl.col("dataset") == dataset)
        its_ceiling = ceilings.filter(pl.col("dataset") == dataset)
        domain = domain_of(own, its_dots, its_ceiling["reliability"].max())  # type: ignore[arg-type]
        panels = own.partition_by(["model", "layer"], maintain_order=True)
        for part_number, part in enumerate(chunks(panels, MOST_PANELS)):
            drawn = [
                _panel(
                    panel,
                    its_dots,
                    its_ceiling,
                    metric,
                    conditions,
                    domain,
                    panel_title(
                        short.of_model(panel["model"][0], panel["layer"][0], letters_in(width)),
                        width,
                    ),
                    first=i == 0,
                )
                for i, panel in enumerate(part)
            ]
            lines.append(_line(dataset, its_ceiling, own, drawn, continued=part_number > 0))
    key = legend(rows, ceilings, max(680, (width + _GAP) * beside))
    return {"vconcat": [key, *lines], "spacing": 14}


def _line(
    dataset: str, ceiling: pl.DataFrame, own: pl.DataFrame, panels: list[Spec], *, continued: bool
) -> Spec:
    title = {
        "text": dataset + (" (continued)" if continued else ""),
        "subtitle": about(own, ceiling),
        "limit": 600,
        "offset": 6,
    }
    return {"title": title, "hconcat": panels, "spacing": _GAP, "bounds": "flush"}


def _panel(
    rows: pl.DataFrame,
    dots: pl.DataFrame,
    ceiling: pl.DataFrame,
    metric: str,
    conditions: list[str],
    domain: tuple[float, float],
    title: Spec,
    *,
    first: bool,
) -> Spec:
    model, layer = rows["model"][0], rows["layer"][0]
    x = {
        "field": "place",
        "type": "quantitative",
        "scale": {"domain": list(domain), "nice": False, "zero": False},
        "axis": {"title": f"held-out {metric}", "tickCount": 4, "format": "~g", "labelLimit": 0},
    }
    bare: Spec = {"title": None, "grid": True, "ticks": False, "domain": False}
    y = {
        "field": "condition",
        "type": "nominal",
        "scale": {"domain": conditions},
        "axis": bare | ({"labelLimit": _LABELS} if first else {"labels": False}),
    }
    own = dots.filter((pl.col("model") == model) & (pl.col("layer") == layer))
    drawn = with_marks(rows, lambda row: told(row, metric), "place")
    known = drawn.filter(pl.col("place").is_not_null())
    absent = drawn.filter(pl.col("place").is_null())
    real = known.filter(pl.col("condition") == REAL)
    place = {"y": y, "description": dict(DESCRIPTION)}
    layers: list[Spec] = [
        {"data": {"values": [{}]}, "mark": {"type": "rule"}, "encoding": {"x": {"datum": 0}}},
        *([ceiling_rule(ceiling, "x", {**x, "field": "mean"})] if ceiling.height else []),
        *_real(real, with_marks(own, lambda row: told_run(row, metric), "score"), x, place),
        {
            "data": values(known.select("condition", "kind", "place", "mark")),
            "mark": {"type": "point", "strokeWidth": 1.2},
            "encoding": {**place, "x": x, **kind_channels()},
        },
    ]
    if absent.height:
        small = {"fontSize": 9, "color": colour("muted")}
        layers.append(
            {
                "data": values(absent.select("condition", "mark")),
                "mark": {"type": "text", "text": "not computed", "align": "left", "dx": 3, **small},
                "encoding": {**place, "x": {"datum": domain[0]}},
            }
        )
    return {
        "title": title,
        "width": title["limit"],
        "height": {"step": _ROW},
        "layer": layers,
    }


def _real(real: pl.DataFrame, dots: pl.DataFrame, x: Spec, place: Spec) -> list[Spec]:
    """The real features: a line through the panel, subject-runs as dots below, and the interval."""
    ink = {"color": colour("real")}
    return [
        {
            "data": values(real.select("place")),
            "mark": {"type": "rule", "opacity": 0.6, **ink},
            "encoding": {"x": x},
        },
        {
            "data": values(dots.select("score", "mark", condition=pl.lit(REAL))),
            "mark": {"type": "point", "size": 12, "opacity": 0.45, "yOffset": 5, **ink},
            "encoding": {**place, "x": {**x, "field": "score"}},
        },
        {
            "data": values(real.select("condition", "low", "high", "mark").drop_nulls("low")),
            "mark": {"type": "rule", "strokeWidth": 1.5, **ink},
            "encoding": {**place, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
        },
    ]
