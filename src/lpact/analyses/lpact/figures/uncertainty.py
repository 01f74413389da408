"""How sure the contrasts are: intervals over subject-runs, and how far one subject-run moves them."""

from __future__ import annotations

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import metric_name, names
from lpact.analyses.lpact.figures.key import Key
from lpact.analyses.lpact.figures.lanes import lane, separators
from lpact.analyses.lpact.figures.uncertainty_rows import (
    FEWEST,
    QUANTITIES,
    has_interval,
    has_range,
    is_brain,
    level_rows,
    level_words,
    mechanism_rows,
)
from lpact.analyses.lpact.tables.robustness import CAUSAL_UNCERTAINTY, UNCERTAINTY
from lpact.report.figure import DESCRIPTION, Figure, Missing, Spec, values
from lpact.report.theme import colour
from lpact.report.wording import short, span

NAME, TITLE = "uncertainty", "How sure the contrasts are"
COLUMNS, WIDTH, LANE = 3, 185, 30
MECHANISM_COLUMNS, MECHANISM_WIDTH, MECHANISM_LANE = 4, 140, 30
LABEL_LIMIT = 150
NOT_MEASURED, FLIPS = "not measured", "sign flips"
SHAPES = ("circle", "square", "triangle-up")
ROLES = ("real", "nuisance", "other")


def make(material: Material) -> Figure | Missing:
    """Forest plots by level and dataset, and by mechanism."""
    if not material.has(UNCERTAINTY.name):
        return Missing(NAME, TITLE, "the robustness tables were not given")
    levels, mechanisms = level_rows(material), mechanism_rows(material)
    if levels["mean"].is_null().all():
        return Missing(NAME, TITLE, "no contrast of any level has a number")
    metric = metric_name(material.config.readout.primary_metric)
    blocks = [_key(levels), _levels(levels, metric)]
    if not mechanisms.is_empty():
        blocks.append(_mechanisms(mechanisms, metric))
    own = dict.fromkeys(("shape", "fill", "stroke"), "independent")
    spec: Spec = {"vconcat": blocks, "spacing": 22, "resolve": {"scale": own}}
    return Figure(NAME, TITLE, _caption(levels, mechanisms), _summary(levels, metric), spec)


def _drawn(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the ends of their intervals, or of their units where few; intervals have filled points."""
    known, few = (
        [has(row) for row in rows.iter_rows(named=True)] for has in (has_interval, has_range)
    )
    rows = rows.with_columns(
        known=pl.Series(known, dtype=pl.Boolean), few=pl.Series(few, dtype=pl.Boolean)
    )
    return rows.with_columns(
        low=pl.when("known").then("ci_low"),
        high=pl.when("known").then("ci_high"),
        from_unit=pl.when("few").then("unit_min"),
        to_unit=pl.when("few").then("unit_max"),
        told=_or_nothing(pl.col("mean").is_null(), pl.lit(NOT_MEASURED)),
    )


def _or_nothing(when: pl.Expr, told: pl.Expr) -> pl.Expr:
    return pl.when(when).then(told).otherwise(pl.lit(""))


def _zero(title: str, n_ticks: int = 4) -> Spec:
    rule = {"type": "rule", "color": colour("ink"), "strokeWidth": 1}
    return {
        "data": {"values": [{"at": 0}]},
        "mark": rule,
        "encoding": {"x": _across("at", title, n_ticks)},
    }


def _across(field: str, title: str, n_ticks: int = 4) -> Spec:
    axis = {
        "title": title,
        "tickCount": n_ticks,
        "format": "~g",
        "grid": True,
        "labelFlush": False,
        "labelSeparation": 6,
    }
    return {
        "field": field,
        "type": "quantitative",
        "axis": axis,
        "scale": {"zero": True, "padding": 6},
    }


def _key(rows: pl.DataFrame) -> Spec:
    """What points, bars and brackets mean."""
    real, key = colour("real"), Key(760)
    key.symbol("mean, model", shape="circle", size=46, color=real)
    if any(is_brain(level) for level in rows["level"]):
        key.symbol("mean, brain as model", shape="circle", size=46, color=colour("brain"))
    key.line("95 % bootstrap interval", role="real", thick=3)
    key.line(f"range of the units, fewer than {FEWEST}", role="real", thick=1.2, dash=[3, 2])
    return key.line("range of the mean without one subject-run", role="muted", thick=1).spec()


def _levels(rows: pl.DataFrame, metric: str) -> Spec:
    """A panel a level, a lane a dataset."""
    datasets = sorted(set(rows["dataset"]))
    panels = [
        _level(rows.filter(level=level), datasets, metric, labelled=i % COLUMNS == 0)
        for i, level in enumerate(names(rows, "level"))
    ]
    return {"columns": COLUMNS, "concat": panels, "spacing": {"row": 18, "column": 14}}


def _level(rows: pl.DataFrame, datasets: list[str], metric: str, *, labelled: bool) -> Spec:
    level = rows["level"][0]
    title, axis = level_words(level, metric)
    own = colour("brain" if is_brain(level) else "real")
    drawn = _drawn(rows).with_columns(
        fill=pl.when("known").then(pl.lit(own)).otherwise(pl.lit(colour("paper"))),
        n_told=_or_nothing(pl.col("mean").is_not_null(), pl.format("n = {}", "n_units")),
        flip_told=_or_nothing(pl.col("sign_flip"), pl.lit(FLIPS)),
    )
    y = lane("dataset", datasets, labelled=labelled, limit=LABEL_LIMIT)
    fill = {"field": "fill", "type": "nominal", "scale": None, "legend": None}
    thin = {"color": colour("muted"), "yOffset": 9}
    right = {"type": "text", "align": "left", "fontSize": 10, "x": WIDTH + 6}
    text = {"type": "nominal"}
    one_out = {"x": _across("leave_one_min", axis), "x2": {"field": "leave_one_max"}}
    layers: list[Spec] = [
        separators(y),
        _zero(axis),
        {
            "mark": {"type": "rule", "strokeWidth": 1, **thin, "y2Offset": 9},
            "encoding": {"y": y, **one_out},
        },
        *(
            {
                "mark": {"type": "tick", "thickness": 1, "size": 6, **thin},
                "encoding": {"y": y, "x": _across(f"leave_one_{end}", axis)},
            }
            for end in ("min", "max")
        ),
        {
            "mark": {"type": "rule", "strokeWidth": 3, "color": own},
            "encoding": {
                "y": y,
                "x": _across("low", axis),
                "x2": {"field": "high"},
                "description": DESCRIPTION,
            },
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1.2, "strokeDash": [3, 2], "color": own},
            "encoding": {
                "y": y,
                "x": _across("from_unit", axis),
                "x2": {"field": "to_unit"},
                "description": DESCRIPTION,
            },
        },
        {
            "mark": {"type": "point", "size": 46, "stroke": own, "strokeWidth": 1.5},
            "encoding": {
                "y": y,
                "x": _across("mean", axis),
                "fill": fill,
                "description": DESCRIPTION,
            },
        },
        {"mark": right, "encoding": {"y": y, "text": {"field": "n_told", **text}}},
        {
            "transform": [{"filter": {"field": "flip_told", "equal": FLIPS}}],
            "mark": {**right, "fontWeight": "bold", "yOffset": 12},
            "encoding": {"y": y, "text": {"field": "flip_told", **text}},
        },
        _not_measured({"y": y}, WIDTH),
    ]
    return {
        "title": {"text": title, "fontSize": 12, "frame": "group", "offset": 6},
        "data": values(drawn),
        "width": WIDTH,
        "height": {"step": LANE},
        "layer": layers,
    }


def _not_measured(place: Spec, width: int) -> Spec:
    """Words where there is no number, on a strip of paper, so that lines do not run through them."""
    text = {"field": "told", "type": "nominal"}
    mark = {"type": "text", "align": "center", "x": width / 2, "fontSize": 10}
    encode = {**place, "text": text}
    under = {**mark, "stroke": colour("paper"), "strokeWidth": 5, "color": colour("paper")}
    return {
        "transform": [{"filter": {"field": "told", "equal": NOT_MEASURED}}],
        "layer": [
            {"mark": under, "encoding": encode},
            {
                "mark": {**mark, "color": colour("muted")},
                "encoding": {**encode, "description": DESCRIPTION},
            },
        ],
    }


def _mechanisms(rows: pl.DataFrame, metric: str) -> Spec:
    """A panel a dataset, a lane a stripped mechanism, three quantities in it."""
    mechanisms, axis = names(rows, "mechanism"), f"held-out {metric}"
    panels = [
        _mechanism(
            rows.filter(dataset=dataset), mechanisms, axis, labelled=i % MECHANISM_COLUMNS == 0
        )
        for i, dataset in enumerate(names(rows, "dataset"))
    ]
    return {
        "title": {"text": "Level 3 by stripped mechanism", "offset": 8},
        "columns": MECHANISM_COLUMNS,
        "concat": panels,
        "spacing": {"row": 18, "column": 18},
    }


def _mechanism(rows: pl.DataFrame, mechanisms: list[str], axis: str, *, labelled: bool) -> Spec:
    order = [QUANTITIES[name] for name in QUANTITIES]
    drawn = _drawn(rows)
    domain = {"field": "quantity_name", "type": "nominal", "legend": {"title": None}}
    own = {**domain, "scale": {"domain": order, "range": [colour(role) for role in ROLES]}}
    shape = {**domain, "scale": {"domain": order, "range": list(SHAPES)}}
    within = {"domain": order, "paddingOuter": 0.4}
    offset = {"field": "quantity_name", "type": "nominal", "sort": None, "scale": within}
    place: Spec = {
        "y": lane("mechanism", mechanisms, labelled=labelled, limit=LABEL_LIMIT),
        "yOffset": offset,
    }
    return {
        "title": {
            "text": short(rows["dataset"][0], 20),
            "subtitle": f"n = {span(rows['n_units'])} subject-runs",
            "fontSize": 12,
            "frame": "group",
            "offset": 6,
            "limit": MECHANISM_WIDTH,
        },
        "data": values(drawn),
        "width": MECHANISM_WIDTH,
        "height": {"step": MECHANISM_LANE, "for": "position"},
        "layer": [
            separators(place["y"]),
            _zero(axis, 3),
            *(
                {
                    "mark": {"type": "rule", **line},
                    "encoding": {
                        **place,
                        "x": _across(start, axis, 3),
                        "x2": {"field": end},
                        "stroke": own,
                        "description": DESCRIPTION,
                    },
                }
                for start, end, line in (
                    ("low", "high", {"strokeWidth": 1.8}),
                    ("from_unit", "to_unit", {"strokeWidth": 1.2, "strokeDash": [3, 2]}),
                )
            ),
            *(_points(place, shape, own, axis, known=known) for known in (True, False)),
            _not_measured(place, MECHANISM_WIDTH),
        ],
    }


def _points(place: Spec, shape: Spec, own: Spec, axis: str, *, known: bool) -> Spec:
    """Points of one quantity each: filled where they have an interval, open where they have none."""
    mark: Spec = {"type": "point", "size": 30, "strokeWidth": 1.3}
    encode: Spec = {**place, "x": _across("mean", axis, 3), "shape": shape, "stroke": own}
    if known:
        encode["fill"] = own
    else:
        mark["fill"] = colour("paper")
    return {
        "transform": [{"filter": {"field": "known", "equal": known}}],
        "mark": mark,
        "encoding": {**encode, "description": DESCRIPTION},
    }


def _caption(levels: pl.DataFrame, mechanisms: pl.DataFrame) -> str:
    known = levels.filter(pl.col("mean").is_not_null())
    draws = span(levels["n_draws"].drop_nulls())
    few = known.filter(pl.col("n_units") < FEWEST).height
    flips = int(known["sign_flip"].sum())
    parts = [
        "Means over n subject-runs (pairs of recordings where brains stand in the model's place), all models "
        "and layers "
        f"together; intervals over these n from {draws} draws."
    ]
    if few:
        parts.append(
            f"Bootstrap intervals over fewer than {FEWEST} units hold far less often than 95 %: {few} of "
            f"{known.height} contrasts have none; an open point, with the range of their units where there are several."
        )
    if any(is_brain(level) for level in known["level"]):
        parts.append(
            "Pairs of recordings share recordings and are not independent: intervals of brains as models are too "
            "narrow."
        )
    if "stripping_drop" in set(known["level"]):
        parts.append(
            "The drop over any target is above zero for every model that predicts, whatever is stripped; only margins "
            "of the matching target speak for a mechanism."
        )
    if flips:
        parts.append(f"“Sign flips”: leaving one out turns the sign ({flips} of {known.height}).")
    n_missing = levels.height - known.height
    if n_missing:
        parts.append(f"{n_missing} of {levels.height} contrasts were not measured.")
    if not mechanisms.is_empty():
        parts.append(
            "Level 3: what stripping a mechanism costs its own target, and by how much more than the largest of the "
            "other targets and than the mismatch controls; gate M asks for all three above zero (the drop over all "
            f"targets: {CAUSAL_UNCERTAINTY.name})."
        )
    return " ".join(parts)


def _summary(levels: pl.DataFrame, metric: str) -> str:
    told = []
    for (level,), own in levels.filter(pl.col("mean").is_not_null()).group_by(
        "level", maintain_order=True
    ):
        enough = own.filter(pl.col("n_units") >= FEWEST)
        above = enough.filter(pl.col("ci_low") > 0).height
        below = enough.filter(pl.col("ci_high") < 0).height
        title, _ = level_words(str(level), metric)
        narrow = " (too narrow, pairs share recordings)" if is_brain(str(level)) else ""
        said = f"interval{narrow} above zero in {above}, below zero in {below} of {enough.height} datasets"
        few = own.height - enough.height
        rest = f"{few} with fewer than {FEWEST} units, without an interval" if few else ""
        told.append(
            f"{title}: {', '.join(part for part in (said if enough.height else '', rest) if part)}"
        )
    return "; ".join(told) + "."
