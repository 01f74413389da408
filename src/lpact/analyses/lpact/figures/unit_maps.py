"""Brain units at their places: how far the real features are ahead of the best control at each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import (
    LAYER,
    REAL,
    SUBJECT_RUN,
    ShortLayerNames,
    largest,
    metric_name,
    primary_deltas,
    where,
)
from lpact.analyses.lpact.tables.levels import BRAIN_UNIT_INDEX, CONTROL_DELTAS, UNIT_SCORES
from lpact.report import panels
from lpact.report.figure import MARK, Drawing, Spec, figure, mark
from lpact.report.layout import Layout, View, binned, has_outlines, layout_of, views_of
from lpact.report.panels import DASH, Look
from lpact.report.theme import DIVERGING
from lpact.report.wording import MINUS, counted, letters_in, number
from lpact.tables import CONTEXT_KEY, RECORDING_KEY

MOST_VIEWS = 96
MOST_MARKS, FEWEST_MARKS = 5000, 60
"""Views and units that are drawn; further panels are left out, more units of a view are averaged in squares."""


class _Form(NamedTuple):
    """How a kind of frame is drawn: side of a view in pixels, panels per row, views of a panel, views per row."""

    side: int
    columns: int
    n_views: int
    across: int
    seen: str


_FORMS = {
    Layout.SENSORS: _Form(140, 6, 1, 1, "from above"),
    Layout.BRAIN: _Form(102, 4, 4, 2, "glass brain"),
    Layout.NATIVE: _Form(96, 2, 3, 3, "projections in mm"),
}
_THINNEST = 24
"""Pixels that a view has at least, where all units lie in one plane."""

_PLACE = ("x_mm", "y_mm", "z_mm")
_NEAR = ("x_near", "y_near", "z_near")
"""Coordinates rounded to 0.1 mm: units of one name that agree in these are at the same place."""
_SITE = ("coordinate_frame", "unit", *_NEAR)


@dataclass(frozen=True)
class UnitRows:
    """What maps are drawn from.

    ``sites``: one row per dataset, model, panel and unit at a place, with ``value`` (null where undefined), ``real``,
    ``n_subjects`` and ``n_recordings``. ``panel`` is empty, or the subject where each has a space of its own.
    ``n_without_place`` and ``n_other_order`` count units of recordings that are left out: those without
    coordinates, and those whose scores are in another unit order than the index.
    """

    sites: pl.DataFrame
    n_units: int
    n_without_place: int
    n_other_order: int


@figure(
    "unit_maps",
    "Where the real features are ahead of the best control, and where behind",
    CONTROL_DELTAS,
    UNIT_SCORES,
    BRAIN_UNIT_INDEX,
)
def make(material: Material) -> Drawing | str:
    """Units on a brain or a sensor layout, in the best layer of every dataset and model."""
    if primary_deltas(material).drop_nulls("delta_control").is_empty():
        return "level 1 has no contrast with a severe control"
    rows = rows_of(material)
    if rows.sites.is_empty():
        if rows.n_other_order:
            n = counted(rows.n_other_order, "unit")
            return f"scores and coordinates are in different unit orders for {n}"
        return f"none of {counted(rows.n_units, 'unit')} has coordinates"
    if rows.sites["value"].drop_nulls().is_empty():
        return "no unit with coordinates has a held-out score"
    metric = metric_name(material.config.readout.primary_metric)
    ordered = rows.sites.sort("dataset", "coordinate_frame", "model", maintain_order=True)
    found = ordered.partition_by(
        ["dataset", "coordinate_frame", "model", "layer", "panel"], maintain_order=True
    )
    n_views = np.cumsum([_FORMS[layout_of(own["coordinate_frame"][0])].n_views for own in found])
    kept = [own for own, n in zip(found, n_views, strict=True) if n <= MOST_VIEWS]
    most = max(FEWEST_MARKS, MOST_MARKS // int(n_views[len(kept) - 1]))
    edges = edges_of(rows.sites["value"].drop_nulls().to_numpy())
    maps = _Maps(edges, metric, most, ShortLayerNames(rows.sites))
    groups = pl.concat(kept).partition_by("dataset", "coordinate_frame", maintain_order=True)
    chart = panels.stacked(_key(edges, metric), *(maps.of_dataset(own) for own in groups))
    caption = _caption(rows, maps, len(found) - len(kept), metric)
    return chart, caption, _summary(rows, metric)


# -- rows --------------------------------------------------------------------------------------------------------------


def best_layers(material: Material) -> pl.DataFrame:
    """For each dataset and model, the layer with the largest mean of real − best control; ties go to the first."""
    known = primary_deltas(material).drop_nulls("delta_control")
    means = known.group_by(LAYER, maintain_order=True).agg(pl.col("delta_control").mean())
    ranked = means.sort(
        ["dataset", "model", "delta_control", "layer"], descending=[False, False, True, False]
    )
    return ranked.unique(["dataset", "model"], keep="first", maintain_order=True).select(LAYER)


def rows_of(material: Material) -> UnitRows:
    """Contrast of every unit with a place, in the best layer of every dataset and model.

    value = mean over subjects of the mean over recordings of (real − best control of the subject-run), for units of the
    same name at the same place (to 0.1 mm); a random control's score is its mean over draws. ``real`` is the mean over
    the same recordings, those that have a contrast.
    """
    index = material.table(BRAIN_UNIT_INDEX.name)
    placed = pl.all_horizontal(pl.col(_PLACE).is_finite()).fill_null(value=False)
    units, other_order = _contrasts(material, index.filter(placed))
    by = ["dataset", "model", "layer", "panel", *_SITE]
    keep = pl.col("value").is_not_null()
    within = (
        _with_panels(_near(units))
        .sort([*by, *SUBJECT_RUN])
        .group_by([*by, "subject"], maintain_order=True)
        .agg(
            pl.col("value").mean(),
            pl.col("real").filter(keep).mean(),
            pl.col(_PLACE).first(),
            n_recordings=keep.sum(),
        )
    )
    sites = within.group_by(by, maintain_order=True).agg(
        pl.col("value").mean(),
        pl.col("real").filter(keep).mean(),
        pl.col(_PLACE).first(),
        n_subjects=keep.sum().cast(pl.Int64),
        n_recordings=pl.col("n_recordings").sum().cast(pl.Int64),
    )
    sites = sites.drop(_NEAR)
    return UnitRows(sites, index.height, index.filter(~placed).height, other_order)


def _near(units: pl.DataFrame) -> pl.DataFrame:
    """Adds the rounded coordinates; adding zero makes a negative zero a positive one."""
    rounded = {
        near: pl.col(place).round(1) + 0.0 for near, place in zip(_NEAR, _PLACE, strict=True)
    }
    return units.with_columns(**rounded)


def _contrasts(material: Material, index: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """One row per context and unit with a place; and how many of these units have scores in another order."""
    metric = material.config.readout.primary_metric
    layers = best_layers(material)
    chosen = primary_deltas(material).join(layers, on=LAYER, how="semi")
    rivals = chosen.select(*CONTEXT_KEY, condition="best_control")
    scores = material.table(UNIT_SCORES.name).filter(pl.col("metric") == metric)
    scores = scores.join(layers, on=LAYER, how="semi")
    real = _by_unit(scores.filter(pl.col("condition") == REAL), "real")
    best = _by_unit(scores.join(rivals, on=[*CONTEXT_KEY, "condition"], how="semi"), "best")
    key = [*CONTEXT_KEY, "unit_order_hash", "unit_index"]
    both = real.join(best, on=key, how="left").with_columns(value=pl.col("real") - pl.col("best"))
    place = [*RECORDING_KEY, "unit_index"]
    joined = both.join(index.rename({"unit_order_hash": "_order"}), on=place, how="inner")
    same = pl.col("_order") == pl.col("unit_order_hash")
    other = joined.filter(~same).select([*RECORDING_KEY, "unit"]).unique().height
    return joined.filter(same), other


def _by_unit(scores: pl.DataFrame, name: str) -> pl.DataFrame:
    """Scores of every unit, mean over draws; a draw without a score is left out."""
    key = [*CONTEXT_KEY, "unit_order_hash"]
    numbered = scores.sort([*key, "draw"]).with_columns(
        unit_index=pl.int_ranges(pl.col("scores").list.len(), dtype=pl.Int64)
    )
    return (
        numbered.explode("scores", "unit_index")
        .drop_nulls("unit_index")
        .group_by([*key, "unit_index"], maintain_order=True)
        .agg(pl.col("scores").mean().alias(name))
    )


def _with_panels(units: pl.DataFrame) -> pl.DataFrame:
    """One panel per subject where the frame is a subject's own, unless all have the same units at the same places."""
    frames = units["coordinate_frame"].unique().to_list()
    native = [frame for frame in frames if layout_of(frame) is Layout.NATIVE]
    by = ["dataset", "coordinate_frame"]
    sites = units.select([*by, *_SITE[1:], "subject"]).unique()
    subjects = pl.col("subject").n_unique()
    shared = sites.group_by([*by, *_SITE[1:]]).agg(n=subjects)
    shared = shared.group_by(by).agg(fewest=pl.col("n").min())
    total = sites.group_by(by).agg(n_subjects=subjects)
    own = shared.join(total, on=by).select(*by, alone=pl.col("fewest") < pl.col("n_subjects"))
    apart = pl.col("coordinate_frame").is_in(native) & pl.col("alone")
    panel = pl.when(apart).then(pl.col("subject")).otherwise(pl.lit(""))
    return units.join(own, on=by, how="left").with_columns(panel=panel).drop("alone")


# -- drawing -----------------------------------------------------------------------------------------------------------


def edges_of(values: np.ndarray[Any, Any]) -> tuple[float, float, float]:
    """Round edges of the shades, each about three times the previous one.

    The last is the largest of 1, 3, 10, 30 … and their fractions that the 95th percentile of sizes reaches.
    """
    sizes = np.abs(values)
    reach = float(np.quantile(sizes, 0.95)) or float(sizes.max()) or 1.0
    power = int(np.floor(np.log10(reach)))
    three = reach >= float(f"3e{power}")
    texts = (f"3e{power - 1}", f"1e{power}", f"3e{power}")
    lower = (f"1e{power - 1}", f"3e{power - 1}", f"1e{power}")
    low, middle, high = (float(text) for text in (texts if three else lower))
    return low, middle, high


def shade_of(value: float, edges: tuple[float, float, float]) -> int:
    """Number of the shade, −3 to 3; the outermost are open."""
    size = sum(abs(value) > edge for edge in edges)
    return size if value > 0 else -size


def _look(shade: int, *, ahead: bool) -> Look:
    """Triangles: up where the real features are ahead; larger and stronger the farther."""
    role = DIVERGING[shade + 3]
    area = (19, 41, 70, 108)[abs(shade)]
    shape = "triangle-up" if ahead else "triangle-down"
    return Look(shape, role, "line" if abs(shade) < 2 else role, area)


def _key(edges: tuple[float, float, float], metric: str) -> alt.LayerChart:
    entries: list[Any] = [f"real minus best control, held-out {metric}"]
    for shade in range(-3, 4):
        sign, size = MINUS if shade < 0 else "", abs(shade)
        if shade == 0:
            entries += [("", _look(0, ahead=False)), (f"within {edges[0]:g}", _look(0, ahead=True))]
            continue
        text = f"beyond {sign}{edges[2]:g}" if size == 3 else f"to {sign}{edges[size]:g}"
        entries.append((text, _look(shade, ahead=shade > 0)))
    return panels.key(*entries, width=900, thick=0.8)


@dataclass
class _Maps:
    """Draws maps on one scale of shades, with at most ``most`` marks per view.

    ``binned`` becomes true where units of a view are averaged.
    """

    edges: tuple[float, float, float]
    metric: str
    most: int
    names: ShortLayerNames
    binned: bool = False

    def of_dataset(self, sites: pl.DataFrame) -> alt.ConcatChart:
        """All panels of a dataset and coordinate frame."""
        dataset, frame = sites["dataset"][0], sites["coordinate_frame"][0]
        form = _FORMS[layout_of(frame)]
        made = sites.partition_by("model", "layer", "panel", maintain_order=True)
        n = sum(own.height for own in made if own["model"][0] == made[0]["model"][0])
        about = f"coordinate frame {frame or 'not known'}, {form.seen}; {counted(n, 'place')}"
        if subjects := int(largest(sites["n_subjects"])):
            about += f", up to {counted(subjects, 'subject')} each"
        return panels.grid(
            [self.panel(own, form) for own in made],
            form.columns,
            title=panels.title(dataset, about, limit=920),
            spacing=14,
        )

    def panel(self, sites: pl.DataFrame, form: _Form) -> alt.ConcatChart:
        """One model, in all views of its frame."""
        first = sites.row(0, named=True)
        places = sites.select(_PLACE).to_numpy().astype(np.float64)
        views = views_of(first["coordinate_frame"], places)
        scale = form.side / max(
            max(view.high[0] - view.low[0], view.high[1] - view.low[1]) for view in views
        )
        room = form.across * form.side
        name = self.names.of_model(
            first["model"], first["layer"], letters_in(room - (80 if first["panel"] else 0))
        )
        name += f" · subject {first['panel']}" if first["panel"] else ""
        title = alt.Title(name, fontSize=10, limit=room + 14, offset=6)
        units = sites.to_dicts()
        made = [self.view(units, view, scale, named=len(views) > 1) for view in views]
        gaps = {"row": 18, "column": 12}
        return panels.grid(made, form.across, title=title, spacing=gaps, center=True)

    def view(
        self, sites: list[dict[str, Any]], view: View, scale: float, *, named: bool
    ) -> alt.LayerChart:
        """One plane, in mm."""
        ends = [_stretched(view.low[i], view.high[i], _THINNEST / scale) for i in (0, 1)]
        width, height = ((high - low) * scale for low, high in ends)
        x, y = (_axis(name, ends[i], view, i) for i, name in enumerate("xy"))
        outline = [
            {"x": round(px, 2), "y": round(py, 2), "line": n, "step": i}
            for n, line in enumerate(view.outline)
            for i, (px, py) in enumerate(line)
        ]
        layers = []
        if outline:
            look = {"color": "missing", "strokeWidth": 0.8}
            path = {"detail": {"field": "line", "type": "nominal"}, "order": "step"}
            layers.append(panels.layer(outline, "line", look, x=x, y=y, **path))
        if units := self.units(sites, view, scale):
            layers.append(panels.points(pl.DataFrame(units), x, y, thick=0.8))
        if named and view.axes is None:
            layers.append(panels.heading(view.name, width / 2, y=-6, align="center", fontSize=9))
        return panels.overlay(*layers, width=width, height=height)

    def units(self, sites: list[dict[str, Any]], view: View, scale: float) -> list[Spec]:
        """One row per unit of a view, or per square of units; those with large differences are drawn last."""
        shown = np.flatnonzero(view.shown)
        members, middles = [[int(i)] for i in shown], view.places[shown]
        side = 4.0 / scale
        while len(members) > self.most:
            self.binned = True
            middles, index = binned(view.places[shown], side)
            members = [[] for _ in middles]
            for i, group in zip(shown, index, strict=True):
                members[group].append(int(i))
            side *= 1.25
        made: list[Spec] = []
        for (px, py), own in zip(middles, members, strict=True):
            known = [sites[i]["value"] for i in own if sites[i]["value"] is not None]
            value = sum(known) / len(known) if known else None
            shade = 0 if value is None else shade_of(value, self.edges)
            look = Look(DASH, None, "line", 64) if value is None else _look(shade, ahead=value > 0)
            first = sites[own[0]]
            text = self.tooltip([sites[i] for i in own], value)
            at = {name: first[name] for name in ("dataset", "model", "layer")}
            place = {"x": round(float(px), 2), "y": round(float(py), 2), "order": abs(shade)}
            made.append({**place, MARK: mark(text, **at, value=value), **look.columns()})
        return sorted(made, key=lambda own: own["order"])

    def tooltip(self, sites: list[dict[str, Any]], value: float | None) -> str:
        row = sites[0]
        if len(sites) > 1:
            return (
                f"{where(row)}: mean of {len(sites)} units, real minus best control {number(value)} in "
                f"{self.metric}"
            )
        text = f"{where(row)}, unit {row['unit']}"
        text += f", subject {row['panel']}" if row["panel"] else ""
        text += f" ({row['x_mm']:.0f}, {row['y_mm']:.0f}, {row['z_mm']:.0f} mm)"
        if value is None:
            return f"{text}: no finite difference"
        over = f"{counted(row['n_recordings'], 'recording')} of {counted(row['n_subjects'], 'subject')}"
        return f"{text}: real {number(row['real'])}, real minus best control {number(value)} ({self.metric}); {over}"


def _stretched(low: float, high: float, least: float) -> tuple[float, float]:
    """The range, made at least so long."""
    more = max(0.0, least - (high - low)) / 2
    return low - more, high + more


def _axis(field: str, ends: tuple[float, float], view: View, place: int) -> Spec:
    """Coordinates in mm, with an axis where a view has names for them."""
    if view.axes is None:
        return panels.bare(field, ends)
    title = f"{view.axes[place]} (mm)"
    small: Spec = {"labelFontSize": 9, "titleFontSize": 9, "labelFlush": False, "grid": False}
    return panels.axis(field, title, ends, ticks=ends, fmt=".0f", **small)


def _caption(rows: UnitRows, maps: _Maps, n_left_out: int, metric: str) -> str:
    sites = rows.sites
    frames = sorted({str(frame) for frame in sites["coordinate_frame"]})
    kinds = {layout_of(frame) for frame in frames}
    parts = [
        f"Held-out {metric} of the real features minus that of the best counted control of the subject-run, at every "
        "unit with coordinates: mean over runs of a subject, then over subjects where the unit has the same name and "
        "place (to 0.1 mm).",
        "Triangles point up where the real features are ahead and down where they are not; size and shade show the "
        "difference.",
        "Each map shows the layer with the largest mean difference of its dataset and model.",
    ]
    if Layout.SENSORS in kinds:
        parts.append(
            "Sensor frames are seen from above, the nose on top (azimuthal equidistant); the circle is level with the "
            "origin, so units below it lie outside."
        )
    if Layout.BRAIN in kinds:
        parts.append(
            "Brain frames are seen through the brain; left and right show the units of their own side."
        )
        if not has_outlines():
            parts.append("Outlines of the brain need nilearn: pip install 'lpact[fmri]' adds it.")
    if Layout.NATIVE in kinds:
        parts.append(
            "Where the frame is not known or is a subject's own, units are projected along the three axes, in mm; "
            "these places cannot be compared between subjects."
        )
    n_undefined = sites.filter(pl.col("value").is_null()).height
    for n, words in (
        (
            rows.n_without_place,
            f"of {counted(rows.n_units, 'unit')} of all recordings have no coordinates",
        ),
        (
            rows.n_other_order,
            "units have scores in another unit order than the index and are not drawn",
        ),
        (n_undefined, "units have no finite difference and are drawn as dashes"),
        (
            n_left_out,
            "panels are left out for lack of space; predictive_unit_scores has their numbers",
        ),
    ):
        if n:
            parts.append(f"{n:,} {words}.")
    if maps.binned:
        parts.append(
            "Where units lie too close together, a triangle is the mean of those in a small square."
        )
    return " ".join(parts)


def _summary(rows: UnitRows, metric: str) -> str:
    known = rows.sites.drop_nulls("value")
    ahead = known.filter(pl.col("value") > 0).height
    shares = known.group_by("dataset", "model", "layer").agg(
        share=(pl.col("value") > 0).mean(), mean=pl.col("value").mean()
    )
    top = shares.sort(["share", "mean", "dataset", "model"], descending=[True, True, False, False])
    best = top.row(0, named=True)
    return (
        f"In {ahead:,} of {known.height:,} combinations of unit and model the real features are ahead of the best "
        f"control. The largest share is {best['share']:.0%} ({best['model']}, layer {best['layer']}, in "
        f"{best['dataset']}; mean difference in {metric} {number(best['mean'])})."
    )
