"""Scores along layers: a panel a dataset and model, every control a grey line with its number."""

from __future__ import annotations

import polars as pl

from lpact.analyses.lpact.figures.canvas import Canvas
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
from lpact.analyses.lpact.figures.layer_score_rows import (
    BEST,
    BOTH,
    NOT_COUNTED,
    NUISANCE,
    REAL,
)
from lpact.analyses.lpact.figures.short_names import letters_in, short, told_apart
from lpact.report.figure import DESCRIPTION, Spec, values, with_marks
from lpact.report.theme import colour

MOST_PANELS = 6
_ROOM, _HEIGHT, _GAP = 880, 150, 26
_LABEL = 9
"""Height of the number at the end of a line, in pixels."""
_KEY_COLUMNS = 3


def lines(rows: pl.DataFrame, dots: pl.DataFrame, ceilings: pl.DataFrame, metric: str) -> Spec:
    """Rows of panels, one or more a dataset, and the key of the controls below."""
    controls = (
        rows.filter(~pl.col("condition").is_in([REAL, NUISANCE, BOTH]))
        .group_by("condition")
        .agg(pl.col("place").mean(), pl.col("counted").any())
        .sort(["place", "condition"], descending=[True, False], nulls_last=True)
        .with_row_index("number", offset=1)
    )
    rows = rows.join(
        controls.select("condition", "number"), on="condition", how="left", maintain_order="left"
    )
    most = max(own["model"].n_unique() for own in rows.partition_by("dataset"))
    beside = len(chunks(range(most), MOST_PANELS)[0])
    width = min(420, (_ROOM - 60) // beside - _GAP)
    out: list[Spec] = []
    models = told_apart(rows["model"].unique(maintain_order=True), letters_in(width))
    for own in rows.partition_by("dataset", maintain_order=True):
        dataset = own["dataset"][0]
        its_dots = dots.filter(pl.col("dataset") == dataset)
        ceiling = ceilings.filter(pl.col("dataset") == dataset)
        domain = domain_of(own, its_dots, ceiling["reliability"].max())  # type: ignore[arg-type]
        panels = own.partition_by("model", maintain_order=True)
        for part_number, part in enumerate(chunks(panels, MOST_PANELS)):
            drawn = [
                _panel(
                    panel,
                    its_dots,
                    ceiling,
                    metric,
                    domain,
                    (width, models[panel["model"][0]]),
                    first=i == 0,
                )
                for i, panel in enumerate(part)
            ]
            title = {
                "text": dataset + (" (continued)" if part_number else ""),
                "subtitle": about(own, ceiling),
                "limit": 600,
                "offset": 6,
            }
            out.append({"title": title, "hconcat": drawn, "spacing": _GAP + 14, "bounds": "flush"})
    shapes = legend(rows, ceilings, max(680, (width + _GAP) * beside), on_lines=True)
    return {"vconcat": [shapes, *out, _key(controls)], "spacing": 16}


def _panel(
    rows: pl.DataFrame,
    dots: pl.DataFrame,
    ceiling: pl.DataFrame,
    metric: str,
    domain: tuple[float, float],
    named: tuple[int, str],
    *,
    first: bool,
) -> Spec:
    """One model; ``named`` are width and title."""
    model, (width, title) = rows["model"][0], named
    rows, absent = with_stretches(rows), _absent(rows)
    shown = rows["layer"].unique().sort().to_list()
    y = {
        "field": "place",
        "type": "quantitative",
        "scale": {"domain": list(domain), "nice": False, "zero": False},
        "axis": {
            "title": f"held-out {metric}" if first else None,
            "tickCount": 4,
            "format": "~g",
            "labels": first,
        },
    }
    x = {
        "field": "layer",
        "type": "quantitative",
        "scale": {"domain": [shown[0], shown[-1]], "nice": False, "zero": False, "padding": 6},
        "axis": {"title": "layer", "values": ticks_of(shown), "format": "d"},
    }
    marked = with_marks(rows, lambda row: told(row, metric), "place")
    data = marked.select(
        "layer", "place", "low", "high", "condition", "kind", "number", "mark", "stretch"
    ).filter(pl.col("place").is_not_null())
    own = with_marks(
        dots.filter(pl.col("model") == model), lambda row: told_run(row, metric), "score"
    )
    control = data.filter(pl.col("number").is_not_null())
    return {
        "title": panel_title(title, width),
        "width": width,
        "height": _HEIGHT,
        "layer": [
            {"data": {"values": [{}]}, "mark": {"type": "rule"}, "encoding": {"y": {"datum": 0}}},
            *([ceiling_rule(ceiling, "y", {**y, "field": "mean"})] if ceiling.height else []),
            *_layers(data, control, own, {"x": x, "y": y}),
            *_numbers(control, domain, x, y),
            *_crosses(absent, x),
        ],
    }


def ticks_of(layers: list[int], most: int = 7) -> list[int]:
    """At most so many of the layers, evenly spaced in their order, from the first."""
    return layers[:: -(-len(layers) // most)]


def with_stretches(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of a panel, sorted; ``stretch`` rises at every layer where a condition is missing, and lines end there."""
    missing = pl.col("place").is_null().cast(pl.Int64)
    return rows.sort(["condition", "layer"]).with_columns(
        stretch=missing.cum_sum().over("condition")
    )


def _absent(rows: pl.DataFrame) -> pl.DataFrame:
    """One row a layer in which conditions have no place, with what hovering says of them."""
    found = rows.filter(pl.col("place").is_null()).sort(["layer", "condition"])
    each = pl.format("{} ({})", "condition", "reason")
    layers = found.group_by(["dataset", "model", "layer"], maintain_order=True).agg(
        why=each.str.join(", ")
    )
    return with_marks(
        layers,
        lambda row: (
            f"{row['dataset']}, {row['model']}, layer {row['layer']}: not computed: {row['why']}"
        ),
    )


def _crosses(absent: pl.DataFrame, x: Spec) -> list[Spec]:
    """A cross above the panel at every layer in which something was not computed."""
    if absent.is_empty():
        return []
    own = {"type": "point", "shape": "cross", "size": 26, "fill": colour("muted"), "opacity": 1}
    return [
        {
            "data": values(absent.select("layer", "mark")),
            "mark": {**own, "strokeWidth": 0},
            "encoding": {"x": x, "y": {"value": -7}, "description": dict(DESCRIPTION)},
        }
    ]


def _layers(
    data: pl.DataFrame, control: pl.DataFrame, dots: pl.DataFrame, both: Spec
) -> list[Spec]:
    """Lines of all conditions, from the least to the most important, and their points."""
    loose = control.filter(pl.col("kind") == NOT_COUNTED)["condition"].unique().to_list()
    named, best = pl.col("condition"), pl.col("kind") == BEST
    real = data.filter(named == REAL)
    described = {"description": dict(DESCRIPTION)}
    interval = {"y": {**both["y"], "field": "low"}, "y2": {"field": "high"}}
    return [
        _line(control.filter(~named.is_in(loose)), both, "control", 1.0, []),
        _line(control.filter(named.is_in(loose)), both, "control", 1.0, [2, 2]),
        _line(data.filter(named == NUISANCE), both, "nuisance", 1.4, []),
        _line(data.filter(named == BOTH), both, "nuisance", 1.4, [5, 2]),
        _points(dots.select("layer", "mark", place="score"), both, 9, 0.35),
        {
            "data": values(real.drop_nulls("low")),
            "mark": {"type": "rule", "color": colour("real"), "strokeWidth": 1.2},
            "encoding": {**both, **interval, **described},
        },
        _line(real, both, "real", 2.0, []),
        *(
            {
                "data": values(part),
                "mark": {"type": "point", "strokeWidth": 1},
                "encoding": {**both, **kind_channels(on_lines=True), **described},
            }
            for part in (data.filter(~best), data.filter(best))
        ),
    ]


def _line(rows: pl.DataFrame, both: Spec, role: str, thick: float, dash: list[int]) -> Spec:
    own: Spec = {"type": "line", "color": colour(role), "strokeWidth": thick}
    if dash:
        own["strokeDash"] = dash
    detail = {"detail": [{"field": name, "type": "nominal"} for name in ("condition", "stretch")]}
    return {
        "data": values(rows.select("layer", "place", "condition", "stretch")),
        "mark": own,
        "encoding": {**both, **detail},
    }


def _points(rows: pl.DataFrame, both: Spec, size: int, opacity: float) -> Spec:
    return {
        "data": values(rows),
        "mark": {"type": "point", "size": size, "color": colour("real"), "opacity": opacity},
        "encoding": {**both, "description": dict(DESCRIPTION)},
    }


def _numbers(control: pl.DataFrame, domain: tuple[float, float], x: Spec, y: Spec) -> list[Spec]:
    """Number of every control at the end of its line, moved apart where they would lie on each other."""
    last = control.sort(["condition", "layer"]).unique(
        "condition", keep="last", maintain_order=True
    )
    last = last.sort(["place", "number"])
    moved = spread(last["place"].to_list(), _LABEL * (domain[1] - domain[0]) / _HEIGHT, domain)
    rows = last.with_columns(moved=pl.Series(moved, dtype=pl.Float64))
    label = {"type": "text", "align": "left", "baseline": "middle", "dx": 14, "fontSize": _LABEL}
    return [
        {
            "data": values(rows.select("layer", "place", "moved")),
            "mark": {"type": "rule", "color": colour("missing"), "xOffset": 3, "x2Offset": 12},
            "encoding": {"x": x, "x2": {"field": "layer"}, "y": y, "y2": {"field": "moved"}},
        },
        {
            "data": values(rows.select("layer", "moved", "number", "mark")),
            "mark": {**label, "color": colour("muted")},
            "encoding": {
                "x": x,
                "y": {**y, "field": "moved"},
                "text": {"field": "number", "type": "quantitative"},
                "description": dict(DESCRIPTION),
            },
        },
    ]


def spread(places: list[float], apart: float, domain: tuple[float, float]) -> list[float]:
    """Rising places moved so that neighbours are at least ``apart``, as near to their own place as that allows.

    Neighbours that would overlap form a block around their mean place; blocks that meet are merged. What would leave
    ``domain`` is pushed back into it.
    """
    blocks: list[tuple[float, int]] = []  # middle, members
    for place in places:
        middle, n = place, 1
        while blocks and blocks[-1][0] + apart * (blocks[-1][1] + n) / 2 > middle:
            other, m = blocks.pop()
            middle, n = (other * m + middle * n) / (m + n), m + n
        blocks.append((middle, n))
    out = [middle + apart * (i - (n - 1) / 2) for middle, n in blocks for i in range(n)]
    for i in reversed(range(len(out))):
        out[i] = min(out[i], domain[1] - apart * (len(out) - 1 - i))
    for i in range(len(out)):
        out[i] = max(out[i], domain[0] + apart * i)
    return out


def _key(controls: pl.DataFrame) -> Spec:
    per_column = -(-controls.height // _KEY_COLUMNS)
    canvas = Canvas(_ROOM, 14 * per_column + 16)
    canvas.words([{"x": 0, "y": 4, "text": "Severe controls"}], bold=True)
    canvas.words(
        [
            {
                "x": (i // per_column) * (_ROOM / _KEY_COLUMNS),
                "y": 20 + 14 * (i % per_column),
                "text": f"{row['number']}  {short(row['condition'], 30)}"
                + ("" if row["counted"] else " (not counted)"),
            }
            for i, row in enumerate(controls.iter_rows(named=True))
        ],
        limit=_ROOM / _KEY_COLUMNS - 12,
    )
    return canvas.spec()
