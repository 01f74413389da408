"""Scores where models have one or two layers: a strip a model and layer, with all conditions under each other."""

from __future__ import annotations

import polars as pl

from lpact.report.figure import DESCRIPTION, Spec, mark, values, with_marks
from lpact.report.figures.layer_score_look import chunks, domain_of, kind_channels, legend, told
from lpact.report.figures.layer_score_rows import CEILING, KINDS, REAL
from lpact.report.figures.level_rows import mode_names, number, plural
from lpact.report.theme import colour

MOST_PANELS = 6
"""Panels beside each other; more continue below."""
_ROOM, _ROW, _GAP, _LABELS = 900, 14, 12, 170


def strips(rows: pl.DataFrame, dots: pl.DataFrame, ceilings: pl.DataFrame, metric: str) -> Spec:
    """Rows of panels, one or more a dataset; conditions from the highest to the lowest mean over all panels."""
    order = (
        rows.group_by("condition")
        .agg(pl.col("mean").mean())
        .sort(["mean", "condition"], descending=[True, False], nulls_last=True)
    )
    conditions = order["condition"].to_list()
    most = max(
        len(own.select("model", "layer").unique()) for own in rows.partition_by("dataset")
    )
    beside = len(chunks(range(most), MOST_PANELS)[0])
    width = min(260, (_ROOM - _LABELS) // beside - _GAP)
    lines = []
    for own in rows.partition_by("dataset", maintain_order=True):
        dataset = own["dataset"][0]
        its_dots = dots.filter(pl.col("dataset") == dataset)
        its_ceiling = ceilings.filter(pl.col("dataset") == dataset)
        domain = domain_of(own, its_dots, its_ceiling["reliability"].max())  # type: ignore[arg-type]
        panels = own.partition_by(["model", "layer"], maintain_order=True)
        for part_number, part in enumerate(chunks(panels, MOST_PANELS)):
            drawn = [
                _panel(panel, its_dots, its_ceiling, metric, conditions, domain, width, first=i == 0)
                for i, panel in enumerate(part)
            ]
            lines.append(_line(dataset, its_ceiling, own, drawn, continued=part_number > 0))
    kinds = [kind for kind in KINDS if kind in set(rows["kind"])]
    key = legend([*kinds, CEILING] if ceilings.height else kinds, max(480, (width + _GAP) * beside))
    return {"vconcat": [key, *lines], "spacing": 14}


def _line(
    dataset: str, ceiling: pl.DataFrame, own: pl.DataFrame, panels: list[Spec], *, continued: bool
) -> Spec:
    fewest, most = own["n_all"].min(), own["n_all"].max()
    n = plural(int(most), "subject-run") if fewest == most else f"{fewest} to {most} subject-runs"  # type: ignore[arg-type]
    told_ceiling = (
        f"; response reliability {number(ceiling['reliability'][0], 2)}, {mode_names(ceiling['modes'][0])}"
        if ceiling.height
        else "; no response reliability"
    )
    title = {
        "text": dataset + (" (continued)" if continued else ""),
        "subtitle": n + told_ceiling,
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
    width: int,
    *,
    first: bool,
) -> Spec:
    model, layer = rows["model"][0], rows["layer"][0]
    scale = {"domain": list(domain), "nice": False, "zero": False}
    axis = {"title": f"held-out {metric}", "tickCount": 4, "format": "~g"}
    x = {"field": "mean", "type": "quantitative", "scale": scale, "axis": axis}
    y = {
        "field": "condition",
        "type": "nominal",
        "scale": {"domain": conditions},
        "axis": {"title": None, "grid": True, "ticks": False, "domain": False, "labelLimit": _LABELS}
        if first
        else {"title": None, "labels": False, "grid": True, "ticks": False, "domain": False},
    }
    own = dots.filter((pl.col("model") == model) & (pl.col("layer") == layer)).with_columns(
        condition=pl.lit(REAL)
    )
    own = with_marks(
        own,
        lambda row: (
            f"{row['dataset']}, {model}, layer {layer}, subject {row['subject']}, session {row['session']}, "
            f"run {row['run']}: {metric} of the real features {number(row['score'])}"
        ),
        "score",
    )
    drawn = with_marks(rows, lambda row: told(row, metric), "mean")
    known, absent = drawn.filter(pl.col("mean").is_not_null()), drawn.filter(
        pl.col("mean").is_null()
    )
    real = known.filter(pl.col("condition") == REAL)
    y_only = {"y": y, "description": dict(DESCRIPTION)}
    layers: list[Spec] = [
        {"data": {"values": [{}]}, "mark": {"type": "rule"}, "encoding": {"x": {"datum": 0}}},
        {
            "data": values(real.select("mean")),
            "mark": {"type": "rule", "color": colour("real"), "opacity": 0.6},
            "encoding": {"x": x},
        },
        {
            "data": values(own.select("condition", "score", "mark")),
            "mark": {"type": "point", "size": 12, "color": colour("real"), "opacity": 0.45, "yOffset": 5},
            "encoding": {**y_only, "x": {**x, "field": "score"}},
        },
        {
            "data": values(real.select("condition", "low", "high", "mark")),
            "mark": {"type": "rule", "color": colour("real"), "strokeWidth": 1.5},
            "encoding": {**y_only, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
        },
        {
            "data": values(known.select("condition", "kind", "mean", "mark")),
            "mark": {"type": "point", "strokeWidth": 1.2},
            "encoding": {**y_only, "x": x, **kind_channels()},
        },
    ]
    if ceiling.height:
        layers.insert(1, _ceiling(ceiling, x))
    if absent.height:
        layers.append(
            {
                "data": values(absent.select("condition", "mark")),
                "mark": {"type": "text", "text": "not computed", "align": "left", "dx": 3}
                | {"color": colour("muted"), "fontSize": 9},
                "encoding": {**y_only, "x": {"datum": domain[0]}},
            }
        )
    return {
        "title": {"text": f"{model} · layer {layer}", "fontSize": 11, "limit": width, "offset": 4, "frame": "group"},
        "width": width,
        "height": {"step": _ROW},
        "layer": layers,
    }


def _ceiling(ceiling: pl.DataFrame, x: Spec) -> Spec:
    row = ceiling.row(0, named=True)
    text = (
        f"{row['dataset']}: {CEILING} {number(row['reliability'])}, {mode_names(row['modes'])}, "
        f"mean over {plural(row['n'], 'recording')}"
    )
    data = {"mean": row["reliability"]} | {
        "mark": mark(text, dataset=row["dataset"], value=row["reliability"])
    }
    return {
        "data": {"values": [data]},
        "mark": {"type": "rule", "color": colour("brain"), "strokeDash": [4, 3], "strokeWidth": 1.5},
        "encoding": {"x": x, "description": dict(DESCRIPTION)},
    }
