"""Panels of the figure of ceilings: a line of panels a dataset, with modes or models under each other."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.lpact.figures.ceiling_rows import (
    DELTA,
    NOISE_FREE,
    PREDICTIVE,
    REAL,
    RELATIONAL,
    TYPICAL,
)
from lpact.analyses.lpact.figures.common import MODES, ShortLayerNames
from lpact.analyses.lpact.figures.key import Key
from lpact.report.figure import DESCRIPTION, Spec, values, with_marks
from lpact.report.theme import colour
from lpact.report.wording import counted, letters_in, number, short_forms

_KINDS = {
    "profile": "relational patterns",
    "response": "responses, partner by partner",
    "response_to_mean": "responses, mean of partners",
}
_UPRIGHT = "M0,-1L0,1"
_LOOK = {
    REAL: ("circle", "real", 56),
    TYPICAL: (_UPRIGHT, "real", 110),
    DELTA: ("diamond", "winner", 56),
}
_LEVELS = {
    RELATIONAL: "relational patterns: fraction of the ceiling",
    PREDICTIVE: "responses: ratio to response reliability (no gate)",
}
_ALONG = {RELATIONAL: "fraction of the ceiling", PREDICTIVE: "ratio to response reliability"}
_REACH: Spec = {"thickness": 2, "color": colour("brain"), "opacity": 0.8}
_ROW, _GAP, _LABELS = 16, 18, 190
_NARROW, _WIDE = 205, 316


def reliability_lines(rows: pl.DataFrame, least: float) -> list[Spec]:
    """A line a dataset, with a panel a kind; modes from the strictest."""
    known = rows.drop_nulls("reliability")["reliability"]
    low = min(0.0, float(known.min() or 0.0))  # type: ignore[arg-type]
    scale = {"domain": [low * 1.05, max(1.0, float(known.max() or 0.0))], "nice": False}  # type: ignore[arg-type]
    datasets = rows["dataset"].unique(maintain_order=True).to_list()
    out = []
    for dataset in datasets:
        panels = [
            _reliability_panel(
                rows.filter((pl.col("dataset") == dataset) & (pl.col("kind") == kind)),
                scale,
                least,
                kind if dataset == datasets[0] else "",
                first=i == 0,
                last=dataset == datasets[-1],
            )
            for i, kind in enumerate(_KINDS)
        ]
        out.append({"title": _title(dataset), "hconcat": panels, "spacing": _GAP})
    return out


def _reliability_panel(
    rows: pl.DataFrame, scale: Spec, least: float, kind: str, *, first: bool, last: bool
) -> Spec:
    rows = rows.with_columns(name=pl.col("mode").replace(MODES))
    y = _names([*MODES.values()], first=first)
    x = _along("reliability", scale, "reliability" if last else None, labels=last)
    drawn = with_marks(rows, _told_reliability, "reliability")
    known = drawn.filter("valid")
    bars = with_marks(
        known.group_by("dataset", "name", maintain_order=True).agg(
            pl.col("reliability").mean(), n=pl.len()
        ),
        lambda row: (
            f"{row['dataset']}, {row['name']}: mean reliability {number(row['reliability'])} over "
            f"{counted(row['n'], 'recording')}"
        ),
        "reliability",
    )
    absent = with_marks(
        _absent(drawn), lambda row: f"{row['dataset']}, {row['name']}: {row['why']}"
    )
    layers: list[Spec] = [
        {"data": {"values": [{}]}, "mark": {"type": "rule"}, "encoding": {"x": {"datum": 0}}},
        _threshold(least),
        _marks(
            bars,
            "reliability",
            x,
            y,
            {"type": "tick", "thickness": 2.5, "size": 13} | _ink("brain"),
        ),
        _marks(
            known,
            "reliability",
            x,
            y,
            {"type": "point", "size": 20, "opacity": 0.65} | _ink("brain"),
        ),
        *_reasons(absent, y, scale["domain"][1], "right", _NARROW),
    ]
    panel: Spec = {"width": _NARROW, "height": {"step": _ROW}, "layer": layers}
    return panel | ({"title": _panel_title(_KINDS[kind])} if kind else {})


def _absent(rows: pl.DataFrame) -> pl.DataFrame:
    """Modes with recordings that have no reliability: the reason where none has, else how many have not."""
    counts = rows.group_by("dataset", "name", maintain_order=True).agg(
        n=(~pl.col("valid")).sum(),
        n_all=pl.len(),
        reason=pl.col("reason").filter(~pl.col("valid")).mode().sort().first(),
    )
    none = pl.col("n") == pl.col("n_all")
    some = pl.format("{} of {}: {}", "n", "n_all", "reason")
    why = (
        pl.when(none).then(pl.col("reason")).otherwise(some).str.replace_all("_", " ", literal=True)
    )
    return counts.filter(pl.col("n") > 0).with_columns(why=why)


def _told_reliability(row: dict[str, Any]) -> str:
    where = (
        f"{row['dataset']}, subject {row['subject']}, session {row['session']}, run {row['run']}"
    )
    kind = f"{_KINDS.get(row['kind'], row['kind'])}, {row['name']}"
    if not row["valid"]:
        return f"{where}: {kind} is not valid ({row['reason']})"
    over = counted(row["n_summaries"], "summary", "summaries")
    return f"{where}: {kind}, reliability {number(row['reliability'])} over {over}"


def fraction_lines(rows: pl.DataFrame, dots: pl.DataFrame, least: float) -> list[Spec]:
    """A line a dataset, with a panel a level; models and layers under each other."""
    drawn = [0.0, 1.0, *rows["value"].drop_nulls(), *dots["value"]]
    low, high = min(drawn), max(drawn)
    room = 0.03 * (high - low)
    scale = {"domain": [low - room, high + room], "nice": False}
    levels = [level for level in _LEVELS if level in set(rows["level"])]
    datasets = rows["dataset"].unique(maintain_order=True).to_list()
    by_layer = "subject" in dots.columns
    dots = named(dots, rows, by_layer=by_layer)
    rows = named(rows, rows, by_layer=by_layer)
    out = []
    for dataset in datasets:
        own = rows.filter(pl.col("dataset") == dataset)
        panels = [
            _fraction_panel(
                own.filter(pl.col("level") == level),
                dots.filter((pl.col("dataset") == dataset) & (pl.col("level") == level)),
                scale,
                least,
                _order(own),
                first=level == levels[0],
                last=dataset == datasets[-1],
                level=level,
                title=_LEVELS[level] if dataset == datasets[0] else "",
            )
            for level in levels
        ]
        out.append({"title": _title(dataset), "hconcat": panels, "spacing": _GAP})
    return out


def _order(rows: pl.DataFrame) -> list[str]:
    return [str(name) for name in rows.sort("model", "layer")["name"].unique(maintain_order=True)]


def named(rows: pl.DataFrame, lines: pl.DataFrame, *, by_layer: bool) -> pl.DataFrame:
    """Rows with the name of their line; long model names are shortened so that those of ``lines`` stay different."""
    letters = letters_in(_LABELS)
    if not by_layer:
        models = short_forms(lines["model"], letters)
        return rows.with_columns(
            name=pl.col("model").replace_strict(models, return_dtype=pl.String)
        )
    known, names = lines.select("model", "layer").unique(), ShortLayerNames(lines.sort("model"))
    made = [names.of_model(model, layer, letters) for model, layer in known.iter_rows()]
    known = known.with_columns(name=pl.Series(made, dtype=pl.String))
    return rows.join(known, on=["model", "layer"], how="left", maintain_order="left")


def _fraction_panel(
    rows: pl.DataFrame,
    dots: pl.DataFrame,
    scale: Spec,
    least: float,
    names: list[str],
    *,
    first: bool,
    last: bool,
    level: str,
    title: str,
) -> Spec:
    y = _names(names, first=first)
    x = _along("value", scale, _ALONG[level] if last else None, labels=last)
    drawn = with_marks(rows, _told_fraction, "value")
    faint = with_marks(dots, _told_dot, "value")
    absent = drawn.filter((pl.col("quantity") == REAL) & pl.col("value").is_null())
    absent = absent.with_columns(why=pl.col("reason").str.replace_all("_", " ", literal=True))
    layers: list[Spec] = [
        {"data": {"values": [{}]}, "mark": {"type": "rule"}, "encoding": {"x": {"datum": 0}}},
        *(_gated(least) if level == RELATIONAL else _reach(drawn, x, y)),
    ]
    for quantity, (shape, role, size) in _LOOK.items():
        own, its_dots = (
            frame.filter((pl.col("quantity") == quantity) & pl.col("value").is_not_null())
            for frame in (drawn, faint)
        )
        look = {"type": "point", "shape": shape, "size": size, **_paint(shape, role)}
        small = {"type": "point", "shape": shape, "size": 12, "opacity": 0.4, "yOffset": 4}
        layers.append(_marks(its_dots, "value", x, y, small | _ink(role)))
        layers.append(_marks(own, "value", x, y, look))
    layers += _reasons(absent, y, scale["domain"][0], "left", _WIDE)
    panel: Spec = {"width": _WIDE, "height": {"step": _ROW}, "layer": layers}
    return panel | ({"title": _panel_title(title)} if title else {})


def _gated(least: float) -> list[Spec]:
    """The ceiling and the least fraction that gate T asks for."""
    ceiling: Spec = {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "strokeWidth": 1.5} | _ink("brain"),
        "encoding": {"x": {"datum": 1}},
    }
    return [ceiling, _threshold(least)]


def _reach(rows: pl.DataFrame, x: Spec, y: Spec) -> list[Spec]:
    """What a model without noise could reach, in every line of its own; no gate reads these ratios."""
    own = rows.filter((pl.col("quantity") == NOISE_FREE) & pl.col("value").is_not_null())
    return [_marks(own, "value", x, y, {"type": "tick", "size": _ROW, **_REACH})]


_OF = {RELATIONAL: "of the ceiling", PREDICTIVE: "times the response reliability"}


def _told_fraction(row: dict[str, Any]) -> str:
    where = f"{row['dataset']}, {row['model']}, layer {row['layer']}, {row['level']}"
    if row["value"] is None:
        return f"{where}: {row['quantity']} has no {_ALONG[row['level']]} ({row['reason']})"
    over = f"mean over {counted(row['n'], 'subject-run')}"
    if row["quantity"] == NOISE_FREE:
        return f"{where}: a noise-free model could reach about {number(row['value'])} {_OF[row['level']]}, {over}"
    return f"{where}: {row['quantity']} is {number(row['value'])} {_OF[row['level']]}, {over}"


def _told_dot(row: dict[str, Any]) -> str:
    where = f"{row['dataset']}, {row['model']}, layer {row['layer']}, {row['level']}"
    if "subject" in row:
        where += f", subject {row['subject']}, session {row['session']}, run {row['run']}"
    return f"{where}: {row['quantity']} is {number(row['value'])} {_OF[row['level']]}"


def reliability_key(least: float) -> Spec:
    """What the marks of the reliabilities mean."""
    brain = colour("brain")
    return (
        Key(800)
        .symbol("one recording", shape="circle", size=20, opacity=0.65, color=brain)
        .symbol("mean", shape=_UPRIGHT, size=110, filled=False, stroke=brain, strokeWidth=2.5)
        .line(f"least reliability of a ceiling, {least:g}", role="fail", dash=(4, 3), thick=1)
        .spec()
    )


def fraction_key(least: float, levels: set[str], *, by_layer: bool) -> Spec:
    """What the marks of the fractions at these levels mean."""
    key = Key(800)
    for quantity, (shape, role, size) in _LOOK.items():
        key.symbol(quantity, shape=shape, size=size, **_paint(shape, role))
    small = "one subject-run" if by_layer else "one layer"
    key.symbol(small, shape="circle", size=12, opacity=0.4, color=colour("real"))
    if RELATIONAL in levels:
        key.line("relational patterns: the ceiling", role="brain", thick=1.5)
        key.line(f"least fraction for gate T, {least:g}", role="fail", dash=(4, 3), thick=1)
    if PREDICTIVE in levels:
        upright = {"shape": _UPRIGHT, "size": 190, "filled": False, "strokeWidth": 2}
        key.symbol("responses: a noise-free model", stroke=colour("brain"), **upright)
    return key.spec()


def _paint(shape: str, role: str) -> Spec:
    if shape == _UPRIGHT:
        return {"filled": False, "stroke": colour(role), "strokeWidth": 2}
    return {"filled": True, "fill": colour(role)}


def _marks(rows: pl.DataFrame, field: str, x: Spec, y: Spec, own: Spec) -> Spec:
    return {
        "data": values(rows.select("name", field, "mark")),
        "mark": own,
        "encoding": {"x": x, "y": y, "description": dict(DESCRIPTION)},
    }


def _reasons(rows: pl.DataFrame, y: Spec, at: float, align: str, room: int) -> list[Spec]:
    """Why there is no number, at one end of the line; on paper colour, so that the line does not cross it out."""
    own = {"type": "text", "align": align, "fontSize": 10, "limit": room - 8}
    own |= {"xOffset": 4 if align == "left" else -3, "color": colour("muted")}
    encoding = {"y": y, "x": {"datum": at}, "text": {"field": "why", "type": "nominal"}}
    shown = values(rows.select("name", "why", "mark"))
    halo = {"stroke": colour("paper"), "strokeWidth": 5, "color": colour("paper"), "aria": False}
    return [
        {"data": shown, "mark": own | halo, "encoding": encoding},
        {"data": shown, "mark": own, "encoding": {**encoding, "description": dict(DESCRIPTION)}},
    ]


def _threshold(value: float) -> Spec:
    return {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "strokeDash": [4, 3]} | _ink("fail"),
        "encoding": {"x": {"datum": value}},
    }


def _ink(role: str) -> Spec:
    return {"color": colour(role)}


def _along(field: str, scale: Spec, title: str | None, *, labels: bool) -> Spec:
    axis = {"title": title, "labels": labels, "tickCount": 5, "format": "~g", "labelLimit": 0}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}


def _names(names: list[str], *, first: bool) -> Spec:
    axis: Spec = {"title": None, "grid": True, "ticks": False, "domain": False}
    axis |= {"labelLimit": 0, "labelOverlap": False} if first else {"labels": False}
    return {"field": "name", "type": "nominal", "scale": {"domain": names}, "axis": axis}


def _title(dataset: str) -> Spec:
    return {"text": dataset, "limit": 600, "offset": 4, "fontSize": 12}


def _panel_title(text: str) -> Spec:
    return {"text": text, "fontSize": 11, "fontWeight": "normal", "offset": 4, "frame": "group"}
