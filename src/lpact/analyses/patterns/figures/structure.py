"""Alignment patterns against structural connectivity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.patterns import tables
from lpact.analyses.patterns.config import options_of
from lpact.analyses.patterns.figures import common
from lpact.report import maps, panels
from lpact.report.figure import Drawing, Spec, figure, with_marks
from lpact.report.panels import BOX, STAR, Look
from lpact.wording import counted, listed, p_value

if TYPE_CHECKING:
    from lpact.report.figure import Chart

WIDTH, STEP = 240, 18
SIGNIFICANT, OTHERWISE = Look("circle", "ink", "ink", 44), Look("circle", "paper", "ink", 44)
OUTSIDE = Look(STAR, "paper", "ink", 44)
MOST_MARKS = 1000


@figure("structure", "Do regions' patterns follow structural connectivity?", tables.STRUCTURE)
def structure(material: Material) -> Drawing | str:
    """Similarity of functional and structural patterns with its null, and a map where regions have coordinates."""
    options = options_of(material.config)
    if not options.connectivity:
        return "no structural connectivity was given (patterns.connectivity is empty)"
    rows = common.in_order(material, tables.STRUCTURE)
    if rows.is_empty():
        return "no dataset has structural connectivity"
    if rows["similarity"].is_null().all():
        return common.nothing(material)
    places = material.tables.get(tables.PLACES.name, pl.DataFrame())
    made: list[Chart] = []
    said, frames = [], set[str]()
    ends = panels.domain(rows["similarity"], rows["null_low"], rows["null_high"])
    for name, own in common.views(rows):
        chart: Chart = _dots(own, ends, panels.panel_title(name, WIDTH))
        sites = own.join(places, on=["dataset", "region"]) if places.height else pl.DataFrame()
        if sites.height:
            frames |= set(sites["coordinate_frame"])
            chart = panels.side_by_side(chart, maps.unit_map(sites, _on_map, MOST_MARKS, ""), spacing=130)
        made.append(chart)
        n, known = own.filter("significant").height, own.drop_nulls("similarity").height
        said.append(f"{name}: the pattern of {n} of {counted(known, 'region')} follows connectivity.")
    key = panels.key(
        ("significant after correction", SIGNIFICANT),
        ("not significant", OTHERWISE),
        ("95 % of random patterns", Look(BOX, "ramp1", "ramp1", 110)),
        ("outside of them, uncorrected, as in the paper", OUTSIDE),
        *([panels.class_entry("on the map: correlation", common.CORRELATION)] if frames else []),
    )
    caption = {
        "Correlation of the mean alignment pattern of brains with the region's structural connections to the same "
        "regions, without the region itself. Random patterns are connections to randomly drawn regions; p: one-sided; "
        f"q: p corrected over regions (level {options.alpha:g}).": True,
        **dict.fromkeys(maps.notes_on(frames), True),
        "Regions are at the mean place of their units on either side; those with a black edge are significant.": frames,
        "No map: units have no coordinates in a frame that all subjects share.": not frames,
    }
    return panels.stacked(key, panels.grid(made, 1 if frames else 2)), caption, listed(said, 6, " ")


def _dots(rows: pl.DataFrame, ends: tuple[float, float], title: alt.Title) -> alt.LayerChart:
    """A lane per region: random patterns, similarity and p-values."""
    text = (
        "{measure}, {region}: {similarity} ({null_low} to {null_high} at random), p = {p_higher}, q = {q_higher}"
        "[; outside of the range, as in the paper{outside_in_paper}]"
    )
    rows = with_marks(rows, text, "similarity").with_columns(
        p=pl.Series([p_value(value) for value in rows["p_higher"]]),
        q=pl.Series([p_value(value) for value in rows["q_higher"]]),
    )
    known, plain = rows.drop_nulls("similarity"), rows.drop("mark")
    looks = [SIGNIFICANT if own else OTHERWISE for own in known["significant"]]
    x = panels.axis("similarity", "correlation", ends, ticks=5)
    y = panels.lanes("region", rows["region"], limit=110)
    lacking = plain.filter(pl.col("similarity").is_null()).with_columns(words=pl.lit("not computed"))
    return panels.overlay(
        panels.layer(plain.drop_nulls("null_low"), "bar", {"fill": "ramp1", "height": 9}, x={**x, "field": "null_low"},
                     x2="null_high", y=y),
        panels.reference(0, "x"),
        panels.points(known, x, y, looks),
        *panels.notes(lacking, "words", {"value": 8}, y),
        panels.points(plain.filter("outside_in_paper"), {"value": WIDTH + 12}, y, OUTSIDE),
        *(panels.text(plain, name, {"value": WIDTH + at}, y, size=10) for name, at in (("p", 26), ("q", 76))),
        *(panels.heading(name, WIDTH + at) for name, at in (("p", 26), ("q", 76))),
        width=WIDTH,
        step=STEP,
        title=title,
    )  # fmt: skip


def _on_map(sites: pl.DataFrame, x: Spec, y: Spec) -> alt.Chart:
    """Regions in the colour of their similarity; those that are significant have an edge."""
    bounds, roles = common.CORRELATION.bounds, common.CORRELATION.roles
    looks = [
        Look(
            "circle",
            "missing" if value is None else roles[sum(value >= b for b in bounds)],
            "ink" if own else "line",
            40,
        )
        for value, own in sites.select("similarity", "significant").iter_rows()
    ]
    text = "{measure}, {region}, {side}: {similarity}, q = {q_higher}"
    return panels.points(with_marks(sites, text, "similarity"), x, y, looks, thick=1.4)
