"""The shared panels of every figure, as Altair charts.

A panel takes a Polars frame and names of columns. Rows with a column `lpact.report.figure.MARK` become marks that know
what they represent: it is their description in the SVG and their tooltip in a notebook. Colours are palette roles
(`lpact.report.theme`). A figure layers panels with `overlay` and places them with `side_by_side`, `stacked` and `grid`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import altair as alt
import polars as pl

from lpact.report.figure import MARK, Spec
from lpact.report.theme import DIVERGING, RAMP, colour
from lpact.wording import short, spoken

if TYPE_CHECKING:
    from lpact.report.figure import Chart

Rows = pl.DataFrame | Sequence[Mapping[str, Any]]

CROSS = "M-0.7,-0.7L0.7,0.7M0.7,-0.7L-0.7,0.7"
DASH = "M-0.7,0L0.7,0"
TICK = "M0,-1L0,1"
LINE = "M-1,0L1,0"
BROKEN = "M-1,0L-0.3,0M0.3,0L1,0"
BOX = "M-1,-0.7L1,-0.7L1,0.7L-1,0.7Z"
STAR = "M0,-1L.24,-.32L.95,-.31L.38,.12L.59,.81L0,.4L-.59,.81L-.38,.12L-.95,-.31L-.24,-.32Z"
_STROKES = frozenset({CROSS, DASH, TICK, LINE, BROKEN})
"""Symbols that have an edge and no area."""


def wedge(share: float) -> str:
    """Symbol: the part ``share`` (between 0 and 1) of a disc, clockwise from twelve o'clock."""
    turn = 2 * math.pi * share
    x, y = math.sin(turn), -math.cos(turn)
    return f"M0,0L0,-1A1,1,0,{int(share > 0.5)},1,{x:.4f},{y:.4f}Z"


# -- one layer of marks ------------------------------------------------------------------------------------------------


def layer(rows: Rows, kind: str, look: Mapping[str, Any] | None = None, **channels: Any) -> alt.Chart:
    """Marks of one kind ("point", "rule", "bar", "text" …), one per row; only used columns enter the picture.

    ``look`` are properties of the mark, with palette roles as colours. ``channels`` are names of columns, or
    definitions as Vega-Lite has them (`axis`, `lanes`, `own`, ``{"datum": 0}``).
    """
    frame = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(rows, infer_schema_length=None)
    properties: Spec = {"type": kind, **(look or {})}
    for name in ("color", "fill", "stroke"):
        if name in properties and not properties[name].startswith(("#", "transparent")):
            properties[name] = colour(properties[name])
    if MARK in frame.columns:
        channels |= {"description": {"field": MARK, "type": "nominal"}, "tooltip": "tooltip"}
        texts = [json.loads(own)["text"] for own in frame[MARK]]
        frame = frame.with_columns(pl.Series("tooltip", texts, dtype=pl.String))
    else:
        properties["aria"] = False
    encoding = {name: _channel(name, own, frame) for name, own in channels.items()}
    used = {str(own["field"]) for own in _definitions(encoding) if "field" in own}
    fixed: dict[str, Any] = {name: Fixed(own) for name, own in encoding.items()}
    return alt.Chart(
        # Not `InlineData`, which Altair would hash and move to the top of the specification.
        alt.Data(values=Fixed(frame.select(sorted(used)))),  # type: ignore[no-untyped-call]
        mark=Fixed(properties),  # type: ignore[arg-type]
        encoding=alt.FacetedEncoding(**fixed),
    )


@dataclass(frozen=True, eq=False)
class Fixed:
    """Rows, mark or channel of a layer.

    Altair copies and walks dictionaries and lists whenever charts are put together, which takes most of the time of a
    figure. It leaves this object alone until the specification is written.
    """

    value: pl.DataFrame | Spec | list[Spec]
    # With a schema and `to_dict`, the object is an `altair.utils.schemapi.SchemaLike`.
    _schema: ClassVar[dict[str, str]] = {"type": "object"}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> Any:
        """As Vega-Lite takes it: numbers that are not finite are missing; marks without data have one empty row."""
        if not isinstance(self.value, pl.DataFrame):
            return self.value
        if not self.value.width:
            return [{}]
        floats = [name for name, kind in self.value.schema.items() if kind.is_float()]
        finite = (pl.when(pl.col(name).is_finite()).then(pl.col(name)) for name in floats)
        return self.value.with_columns(finite).to_dicts()


def _channel(name: str, given: Any, frame: pl.DataFrame) -> Any:
    if isinstance(given, list):
        return [_channel(name, own, frame) for own in given]
    own: Spec = {"field": given} if isinstance(given, str) else dict(given)
    if "field" in own and "type" not in own and name not in ("x2", "y2"):
        numeric = own["field"] in frame.columns and frame.schema[own["field"]].is_numeric()
        own["type"] = "quantitative" if numeric else "nominal"
    return own


def _definitions(encoding: Mapping[str, Any]) -> Iterable[Spec]:
    for own in encoding.values():
        yield from own if isinstance(own, list) else [own]


# -- axes --------------------------------------------------------------------------------------------------------------


def axis(
    field: str,
    title: str | None = None,
    domain: Sequence[float] | None = None,
    *,
    ticks: int | Sequence[float] = 4,
    fmt: str = "~g",
    **more: Any,
) -> Spec:
    """A numeric channel with its axis; ``more`` are further properties of the axis."""
    scale: Spec = {"nice": False, "zero": False}
    if domain is not None:
        scale["domain"] = list(domain)
    at = {"tickCount": ticks} if isinstance(ticks, int) else {"values": list(ticks)}
    shown = {"title": title, "format": fmt, **at, **more}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": shown}


def bare(field: str, domain: Sequence[float]) -> Spec:
    """A numeric channel without an axis."""
    return {**axis(field, None, domain), "axis": None}


def lanes(field: str, order: Iterable[Any], *, shown: bool = True, limit: int = 240, **more: Any) -> Spec:
    """A channel with one band per name, in this order; ``more`` are properties of its axis.

    A label longer than ``limit`` pixels loses its middle; tooltips have it whole.
    """
    most = limit // 6
    cut = (
        f"length(datum.label) > {most} ? slice(datum.label, 0, {most // 2}) + '…' + "
        f"slice(datum.label, -{most // 2 - 1}) : datum.label"
    )
    look: Spec = {"title": None, "domain": False, "ticks": False, "grid": False, "labelPadding": 8}
    look |= {"labelLimit": 0, "labelExpr": cut, "labelOverlap": False, "labelAngle": 0}
    scale = {"type": "band", "domain": list(order)}
    made = {"field": field, "type": "nominal", "sort": None, "scale": scale}
    return {**made, "axis": {**look, **more} if shown else None}


def pixels(field: str) -> Spec:
    """A position in pixels from the left or top of the panel."""
    return {"field": field, "type": "quantitative", "scale": None, "axis": None}


def own(field: str) -> Spec:
    """A channel whose values are in the rows, such as colours or symbols."""
    return {"field": field, "scale": None, "legend": None}


def domain(*columns: pl.Series | Iterable[float | None]) -> tuple[float, float]:
    """Range of all finite numbers and zero, with a small margin where data end; zero itself needs none."""
    found = [float(value) for column in columns for value in column if value is not None and math.isfinite(value)]
    low, high = min([0.0, *found]), max([0.0, *found])
    margin = 0.05 * (high - low)
    return (low - margin if low else low, high + margin if high else high) if margin else (-0.01, 0.01)


# -- marks -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """How a symbol looks: a shape of Vega or of this module, palette roles, and area in square pixels."""

    shape: str = "circle"
    fill: str | None = None
    edge: str | None = None
    size: float = 60
    opacity: float = 1

    def changed(self, **properties: Any) -> Look:
        """The same look with other properties."""
        return replace(self, **properties)

    def columns(self) -> Spec:
        """The look as values of the channels of a point."""
        filled = self.fill is not None and self.shape not in _STROKES
        return {
            "shape": self.shape,
            "fill": colour(self.fill) if self.fill and filled else "transparent",
            "stroke": colour(self.edge or self.fill or "ink"),
            "size": float(self.size),
            "opacity": float(self.opacity),
        }


_LOOK: Spec = dict.fromkeys(("shape", "fill", "stroke"), pl.String)
_LOOK |= dict.fromkeys(("size", "opacity"), pl.Float64)


def points(
    rows: pl.DataFrame,
    x: Any,
    y: Any,
    look: Look | Mapping[Any, Look] | Iterable[Look],
    by: str = "",
    *,
    thick: float = 1.2,
    shift: tuple[float, float] = (0, 0),
    **more: Any,
) -> alt.Chart:
    """Symbols that look alike, by the kind in the column ``by``, or each by its own `Look`.

    They are moved by ``shift`` pixels; ``more`` are further channels.
    """
    if isinstance(look, Look):
        looks = [look] * rows.height
    else:
        looks = [look[kind] for kind in rows[by]] if isinstance(look, Mapping) else list(look)
    drawn = pl.DataFrame([look.columns() for look in looks], schema=_LOOK)
    rows = rows.select(pl.exclude(list(_LOOK))).hstack(drawn)
    style = {"strokeWidth": thick, "strokeCap": "round"}
    if any(shift):
        style |= {"xOffset": shift[0], "yOffset": shift[1]}
    return layer(rows, "point", style, x=x, y=y, **{name: own(name) for name in _LOOK}, **more)


SHARES: dict[Any, Look] = {
    "all": Look("circle", "pass", "pass", 110),
    "some": Look("circle", "paper", "pass", 110),
    "none": Look(CROSS, None, "fail", 110),
    "unknown": Look(DASH, None, "line", 90),
}
"""Symbols of `shares`; `PART` is a part in keys."""
PART = Look(wedge(1 / 3), "pass", "pass", 110)


def shares(rows: pl.DataFrame, x: Any, y: Any, shift: tuple[float, float] = (0, 0)) -> list[alt.Chart]:
    """The column ``share`` as a full disc (1), a part of a disc, a cross (0), or a dash where it is null."""
    share = pl.col("share")
    kind = pl.when(share >= 1).then(pl.lit("all")).when(share > 0).then(pl.lit("some"))
    none = kind.when(share <= 0).then(pl.lit("none"))
    rows = rows.with_columns(kind=none.otherwise(pl.lit("unknown")))
    part = rows.filter(kind="some").drop(MARK, strict=False)
    wedges = [PART.changed(shape=wedge(own)) for own in part["share"]]
    return [
        points(rows, x, y, SHARES, "kind", thick=1.8, shift=shift),
        points(part, x, y, wedges, thick=0.5, shift=shift),
    ]


def dots(rows: Rows, x: Any, y: Any, role: str, *, size: float = 12, opacity: float = 0.45, **look: Any) -> alt.Chart:
    """Small dots of one colour, such as one per subject-run."""
    return layer(rows, "point", {"size": size, "opacity": opacity, "color": role, **look}, x=x, y=y)


def intervals(
    rows: pl.DataFrame,
    along: str,
    at: Any,
    scale: Spec,
    role: str = "ink",
    *,
    ends: tuple[str, str] = ("low", "high"),
    **look: Any,
) -> alt.Chart:
    """Lines between two columns along the channel "x" or "y"; rows without both ends have none."""
    low, high = ends
    channels = {along: {**scale, "field": low}, f"{along}2": {"field": high}}
    channels["y" if along == "x" else "x"] = at
    look = {"color": role, "strokeWidth": 1.5, **look}
    return layer(rows.drop_nulls([low, high]), "rule", look, **channels)


def bars(rows: pl.DataFrame, x: Spec, y: Any, role: str, *, hollow: bool = False, **look: Any) -> alt.Chart:
    """Horizontal bars from zero; hollow ones have an edge only."""
    paint = {"fill": "paper", "stroke": role} if hollow else {"fill": role}
    return layer(rows, "bar", {**paint, **look}, x=x, x2={"datum": 0}, y=y)


def reference(
    at: float, along: str = "x", role: str = "line", *, dash: Sequence[float] = (), thick: float = 1
) -> alt.Chart:
    """A line across the panel at a value of "x" or "y"."""
    look = {"color": role, "strokeWidth": thick, "strokeDash": list(dash)}
    return layer([{}], "rule", look, **{along: {"datum": at}})


def separators(y: Spec) -> alt.Chart:
    """Fine lines between lanes."""
    rows = pl.DataFrame({y["field"]: y["scale"]["domain"][:-1]})
    return layer(rows, "rule", {"color": "grid"}, y={**y, "bandPosition": 1})


def text(rows: Rows, column: str, x: Any, y: Any, *, size: int = 11, ink: str = "ink", **look: Any) -> alt.Chart:
    """Words at a place, vertically centred."""
    plain = {"align": "left", "baseline": "middle", "fontSize": size, "color": ink, "limit": 0}
    return layer(rows, "text", plain | look, x=x, y=y, text={"field": column, "type": "nominal"})


def notes(rows: pl.DataFrame, column: str, x: Any, y: Any, **look: Any) -> list[alt.Chart]:
    """Muted words in a lane, such as why it has no number; a halo keeps lines from crossing them out."""
    halo = {"stroke": "paper", "strokeWidth": 5}
    behind = rows.drop(MARK, strict=False)
    return [
        text(behind, column, x, y, size=10, ink="paper", **look, **halo),
        text(rows, column, x, y, size=10, ink="muted", **look),
    ]


def column(
    rows: pl.DataFrame,
    name: str,
    y: Spec,
    width: float,
    *,
    step: float,
    align: str = "left",
    title: str = "",
    **look: Any,
) -> alt.LayerChart:
    """Words next to lanes, as a panel of fixed width; ``title`` is above it."""
    at = {"left": 0.0, "center": width / 2, "right": width}[align]
    most = max(4, int(width / 5.9))  # letters of the base size
    rows = rows.with_columns(pl.Series(name, [short(own, most) for own in rows[name]]))
    words = text(rows, name, {"value": at}, {**y, "axis": None}, align=align, **look)
    return overlay(words, heading(title, at, align=align), width=width, step=step)


def heading(words: str, x: float = 0, *, y: float = -8, **look: Any) -> alt.Chart:
    """Muted words above a panel, at pixels from its left and top; empty words draw nothing."""
    rows = pl.DataFrame({"text": [words] if words else []}, schema={"text": pl.String})
    return text(rows, "text", {"value": x}, {"value": y}, size=10, **{"ink": "muted", **look})


# -- cells of a heat map -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Classes:
    """Classes of numbers with a colour each: ``bounds`` between them, and one palette role more than bounds."""

    roles: tuple[str, ...]
    bounds: tuple[float, ...]

    def paint(self, rows: pl.DataFrame, column: str) -> pl.DataFrame:
        """The rows with columns ``fill`` and ``ink``: colours of the cell and of the text over it."""
        missing = {"fill": colour("missing"), "ink": colour("on_light")}
        made = [
            missing
            if value is None or not math.isfinite(value)
            else self._paint(sum(value >= bound for bound in self.bounds))
            for value in rows[column]
        ]
        colours = pl.DataFrame(made, schema=dict.fromkeys(missing, pl.String))
        return rows.select(pl.exclude(list(missing))).hstack(colours)

    def _paint(self, place: int) -> Spec:
        role = self.roles[place]
        return {"fill": colour(role), "ink": colour("on_strong" if role in _STRONG else "on_light")}


_STRONG = frozenset({*RAMP[4:], *DIVERGING[:2], *DIVERGING[5:]})


def diverging(values: pl.Series) -> Classes:
    """Seven classes around zero with bounds ±b/10, ±0.4 b and ±b, b about half the largest size.

    They widen outwards, so that one large value does not leave all others in the middle.
    """
    largest = max((abs(value) for value in values.drop_nulls()), default=0.0)
    widest = round_down(largest / 2)
    return Classes(DIVERGING, tuple(round(k * widest, 12) for k in (-1, -0.4, -0.1, 0.1, 0.4, 1)))


def round_down(value: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is not above the value; 0.001 where there is none."""
    if not math.isfinite(value) or value <= 0:
        return 0.001
    power = 10.0 ** math.floor(math.log10(value))
    return float(next((m * power for m in (5, 2, 1) if m * power <= value * (1 + 1e-9)), power))


def cells(
    rows: pl.DataFrame,
    x: Any,
    y: Any,
    *,
    label: str = "",
    size: int = 10,
    gap: float = 1,
    **more: Any,
) -> list[alt.Chart]:
    """Rectangles in the colours of `Classes.paint`, with the text of the column ``label`` over them."""
    look = {"stroke": "paper", "strokeWidth": gap} if gap else {}
    made = [layer(rows, "rect", look, x=x, y=y, fill=own("fill"), **more)]
    if label:
        words = {"align": "center", "baseline": "middle", "fontSize": size}
        over = {"x": x, "y": y, "text": {"field": label, "type": "nominal"}, "color": own("ink")}
        made.append(layer(rows.drop(MARK, strict=False), "text", words, **over, **more))
    return made


# -- keys --------------------------------------------------------------------------------------------------------------

_NARROW, _WIDE = " .,:;'|!()[]fijlrtI-", "mwMW%@"
_BOX_WIDTH = 34
_CLASS_BOX = "M-1.42,-0.5L1.42,-0.5L1.42,0.5L-1.42,0.5Z"
Entry = tuple[str, Look] | tuple[str, Classes, Sequence[str]] | str


def key(*entries: Entry, width: float = 800, thick: float = 1.5) -> alt.LayerChart:
    """What symbols and colours mean, from left to right in lines of ``width`` pixels.

    An entry is a label with its `Look`, words alone, or the title of `Classes` with the words at their bounds (one
    fewer than classes) or below their boxes (as many).
    """
    x, y, below, used = 0.0, 8.0, 8.0, 0.0
    places: list[tuple[float, float, Look]] = []
    words: list[Spec] = []
    for entry in entries:
        label, look = (entry, None) if isinstance(entry, str) else entry[:2]
        lead = 20 if isinstance(look, Look) else 0
        boxes = [Look(_CLASS_BOX, role, role, 24**2) for role in look.roles] if isinstance(look, Classes) else []
        needed = lead + _length(label) + (8 + _BOX_WIDTH * len(boxes) if boxes else 0)
        if x and x + needed > width:
            x, y, below = 0.0, y + below + 10, 8.0
        words.append({"x": x + lead, "y": y, "text": label, "align": "left"})
        if isinstance(look, Look):
            places.append((x + 8, y, look))
        left = x + _length(label) + 8
        places += [(left + (i + 0.5) * _BOX_WIDTH, y, box) for i, box in enumerate(boxes)]
        if boxes and len(entry) == 3:
            shift = 0.5 if len(entry[2]) == len(boxes) else 1.0
            words += [
                {"x": left + (i + shift) * _BOX_WIDTH, "y": y + 14, "text": at, "align": "center"}
                for i, at in enumerate(entry[2])
            ]
            below = 18.0
        used = max(used, x + needed)
        x += needed + 20
    at_x, at_y, frame = pixels("x"), pixels("y"), pl.DataFrame(words)
    symbols = pl.DataFrame({"x": [own[0] for own in places], "y": [own[1] for own in places]})
    return overlay(
        points(symbols, at_x, at_y, [own[2] for own in places], thick=thick),
        *(
            text(frame.filter(align=align), "text", at_x, at_y, size=size, align=align)
            for align, size in (("left", 11), ("center", 10))
        ),
        width=used,
        height=y + below,
    )


def entries(looks: Mapping[str, Look], kinds: Iterable[str]) -> list[tuple[str, Look]]:
    """Entries of a key for the kinds that occur, in the order of their looks."""
    found = set(kinds)
    return [(spoken(kind), look) for kind, look in looks.items() if kind in found]


def class_entry(label: str, classes: Classes) -> Entry:
    """Classes in a key, with their bounds."""
    return label, classes, [f"{bound:+g}".replace("-", "−") for bound in classes.bounds]


def _length(words: str) -> float:
    """About how wide words of the base size are, in pixels."""
    return sum(3.3 if c in _NARROW else 9.2 if c in _WIDE else 6.3 for c in words)


# -- composition -------------------------------------------------------------------------------------------------------


def title(words: str | Sequence[str], subtitle: str | Sequence[str] = "", **more: Any) -> alt.Title:
    """A title flush with the left edge of its panel."""
    if subtitle:
        more["subtitle"] = subtitle
    return alt.Title(words, **more)


def panel_title(words: str | Sequence[str], width: float, **more: Any) -> alt.Title:
    """The title of a small panel, no wider than the panel."""
    return title(words, **{"fontSize": 11, "limit": width, "offset": 4, "frame": "group", **more})


def overlay(*layers: alt.Chart, width: float, height: float = 0, step: float = 0, title: Any = None) -> alt.LayerChart:
    """Layers over each other, the first one lowest; those without rows still bring their axes.

    The height is in pixels, or ``step`` pixels for each lane.
    """
    # Properties are given at once: Altair copies a whole chart to add one.
    size: Any = {"step": step} if step else height
    return alt.LayerChart(layer=list(layers), width=width, height=size, **_titled(title))


def side_by_side(*panels: Chart, title: Any = None, spacing: float = 14) -> alt.HConcatChart:
    """Panels side by side, aligned at their plotting areas."""
    return alt.HConcatChart(hconcat=list(panels), spacing=spacing, bounds="flush", **_titled(title))


def stacked(*panels: Chart, title: Any = None, spacing: float = 14) -> alt.VConcatChart:
    """Panels below each other."""
    return alt.VConcatChart(vconcat=list(panels), spacing=spacing, **_titled(title))


def grid(
    panels: Sequence[Chart],
    columns: int,
    *,
    title: Any = None,
    spacing: Any = 24,
    center: bool = False,
) -> alt.ConcatChart:
    """Aligned panels in a grid; ``center``: smaller ones are in the middle of their cells."""
    return alt.ConcatChart(concat=list(panels), columns=columns, spacing=spacing, center=center, **_titled(title))


def _titled(title: alt.Title | str | None) -> Spec:
    return {} if title is None else {"title": title}
