"""Scores of units: how they change when the model is added, and where the units are."""

from __future__ import annotations

from functools import partial

import altair as alt
import numpy as np
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.deconstruct import tables
from lpact.analyses.deconstruct.config import options_of
from lpact.analyses.deconstruct.figures import common
from lpact.analyses.deconstruct.figures.common import PLACE
from lpact.analyses.deconstruct.fits import SIGNS
from lpact.analyses.deconstruct.jobs import BEYOND_SIMPLE, BOTH, LADDER, SIMPLE
from lpact.analyses.deconstruct.rows import CONTIGUOUS
from lpact.report import maps, panels
from lpact.report.figure import Drawing, Spec, figure, with_marks
from lpact.report.layout import Layout, layout_of
from lpact.report.panels import DASH, Classes, Look
from lpact.report.theme import RAMP
from lpact.tables import RECORDING_KEY
from lpact.wording import counted

ROBUST = (0.005, 0.995)
"""Quantiles of the scores that a histogram covers."""
MOST_BINS, FEWEST_BINS = 40, 8
MOST_VIEWS, MOST_MARKS = 64, 6000


def scores_of_units(material: Material) -> pl.DataFrame:
    """One row per recording, model and unit: unclipped R² of simple features, and with the model (``both``)."""
    rows = common.decided(material, tables.SCORES).filter(family=LADDER, split=CONTIGUOUS)
    n = pl.col("scores").list.len()
    rows = rows.with_columns(unit_index=pl.int_ranges(n, dtype=pl.Int64))
    keys = [*RECORDING_KEY, "stimulus", "model", "unit_index"]
    simple, both = (
        rows.filter(features=pool).select(*keys, pl.col("scores").alias(name)).explode("unit_index", name)
        for pool, name in ((SIMPLE, "simple"), (BOTH, "both"))
    )  # fmt: skip
    found = simple.join(both, on=keys, maintain_order="left")
    at = [*RECORDING_KEY, "unit_index"]
    return found.join(material.table(tables.UNITS.name), on=at, maintain_order="left")


@figure(
    "unit_histogram",
    "Units before and after the model is added",
    tables.SCORES,
    tables.UNITS,
    tables.COUNTS,
)
def unit_histogram(material: Material) -> Drawing | str:
    """Unclipped R² of simple features against these with the model."""
    options = options_of(material.config)
    units = scores_of_units(material).drop_nulls(["simple", "both"])
    units = units.filter(region=options.network) if options.network else units
    if units.is_empty():
        return common.no_ladder(material)
    tests = common.decided(material, tables.COUNTS)
    tests = tests.filter(family=LADDER, split=CONTIGUOUS, comparison=BEYOND_SIMPLE, test=SIGNS)
    found = [(name, own, *_squares(own)) for name, own in common.by_claim(units)]
    classes = _classes(max(max(squares["n"], default=1) for *_, squares, _ in found))
    made = []
    for name, own, squares, ends in found:
        n, n_above = own.height, own.filter(pl.col("both") > pl.col("simple")).height
        counts = tests.join(own, on=PLACE, how="semi")
        gain, after = (int(counts[column].sum()) for column in ("n_gaining", "n_after_fdr"))
        notes = [
            f"{n_above:,} of {n:,} above the diagonal, {n - int(squares['n'].sum()):,} outside",
            f"p ≤ {options.alpha:g}: {gain:,}; corrected for multiple tests: {after:,}",
        ]
        title = panels.panel_title(name, 240, subtitle=notes, subtitleFontSize=10)
        words = f"{name}: adding the model raises R² in {n_above:,} of {n:,} units, significantly in {after:,}."
        made.append((_histogram(squares, ends, classes, title), words))
    key = panels.key(("units", classes, [f"{bound:g}" for bound in classes.bounds]))
    caption = [
        f"Unclipped out-of-sample R² of {common.units_of(material)}, under contiguous splits: simple "
        f"features (x) against these with the model (y); '{options.sub_model}' chose the sub-models. Dashed: y = x; "
        "lines: x = 0 and y = 0.",
        f"Axes cover the quantiles from {100 * ROBUST[0]:g} to {100 * ROBUST[1]:g} % of both scores. Above each panel "
        "is how many units are outside, and how many gain in the test that flips signs of blocks, before and after "
        "multiple-testing correction within subject and network.",
        common.missing(material),
    ]
    return common.drawing(key, made, caption, 3)


def _squares(units: pl.DataFrame) -> tuple[pl.DataFrame, tuple[float, float]]:
    """Number of units in every square that holds any, and the ends of both axes; zero is an edge of squares."""
    x, y = units.select("simple", "both").to_numpy().T
    low, high = np.quantile([x, y], ROBUST)
    low, high = min(low, 0.0), max(high, low + 0.01, 0.0)
    side = (high - low) / int(np.clip(np.sqrt(units.height), FEWEST_BINS, MOST_BINS))
    edges = side * np.arange(np.floor(low / side), np.ceil(high / side) + 1)
    n = np.histogram2d(x, y, bins=(edges, edges))[0].astype(np.int64)
    i, j = n.nonzero()
    sides = {"x0": edges[i], "x1": edges[i + 1], "y0": edges[j], "y1": edges[j + 1], "n": n[i, j]}
    names = units.select(pl.col(PLACE).first())
    return pl.DataFrame(sides).join(names, how="cross"), (float(edges[0]), float(edges[-1]))


def _classes(most: int) -> Classes:
    """Classes of counts on a logarithmic scale."""
    bounds = sorted({round(most ** (k / 6)) for k in range(1, 6)} - {1})
    return Classes(RAMP[1 : len(bounds) + 2], tuple(float(bound) for bound in bounds))


def _histogram(squares: pl.DataFrame, ends: tuple[float, float], classes: Classes, title: alt.Title) -> alt.LayerChart:
    text = "{dataset}, {model}: {n:unit} with R² {x0} to {x1} before and {y0} to {y1} after"
    squares = with_marks(classes.paint(squares, "n"), text, "n")
    x = panels.axis("x0", "R² of simple features", ends)
    y = panels.axis("y0", "R² of simple features + model", ends, grid=False)
    dashed = {"color": "ink", "strokeDash": [4, 3], "strokeWidth": 1}
    diagonal = pl.DataFrame({"x0": ends, "y0": ends})
    return panels.overlay(
        *panels.cells(squares, x, y, gap=0, x2="x1", y2="y1"),
        panels.reference(0, "x"),
        panels.reference(0, "y"),
        panels.layer(diagonal, "line", dashed, x=x, y=y),
        width=220,
        height=220,
        title=title,
    )


@figure(
    "deconstructed_units",
    "Where simple features predict, and where with the model",
    tables.SCORES,
    tables.UNITS,
)
def deconstructed_units(material: Material) -> Drawing | str:
    """Two maps of every claim: simple features, and these with the model."""
    units = scores_of_units(material)
    if units.is_empty():
        return common.no_ladder(material)
    placed = units.filter(maps.PLACED)
    if placed.is_empty():
        return f"none of {counted(units.height, 'unit')} has coordinates"
    frames = placed["coordinate_frame"].unique(maintain_order=True).to_list()
    native = [frame for frame in frames if layout_of(frame) is Layout.NATIVE]
    alone = pl.when(pl.col("coordinate_frame").is_in(native)).then("subject")
    placed = placed.with_columns(alone=alone.otherwise(pl.lit("")))
    found = list(common.by_claim(placed, *PLACE, "coordinate_frame", "alone"))
    shown = [own["coordinate_frame"][0] for _, own in found for _ in range(2)]
    n_maps, most = maps.drawing_limits(shown, MOST_VIEWS, MOST_MARKS)
    n_kept = max(1, n_maps // 2)
    step = float(f"{max(placed['both'].quantile(0.95) or 0.0, 0.001) / 5:.1g}")
    classes = Classes(RAMP, tuple(round(k * step, 12) for k in range(6)))
    made = [_pair(name, own, classes, most) for name, own in found[:n_kept]]
    key = panels.key(("R² of a unit", classes, [f"{bound:g}" for bound in classes.bounds]))
    summary = " ".join(
        f"{name}: R² is above 0 in {own.filter(pl.col('simple') > 0).height:,} of {counted(own.height, 'unit')} with "
        f"simple features, and in {own.filter(pl.col('both') > 0).height:,} with the model."
        for name, own in common.by_claim(placed)
    )
    left_out, lost = len(found) - n_kept, units.height - placed.height
    caption = {
        "Unclipped out-of-sample R² of every unit under contiguous splits, of simple features and of these with the "
        f"model; sub-models were chosen by '{options_of(material.config).sub_model}'. High values are drawn last. "
        "Where a view has too many units, a selection evenly spaced in the order of R² is drawn.": True,
        **dict.fromkeys(maps.notes_on(frames), True),
        "Dashes: R² is undefined.": placed["both"].null_count(),
        f"{lost:,} of {counted(units.height, 'unit')} have no coordinates.": lost,
        f"For lack of space {counted(left_out, 'pair')} of maps are left out.": left_out,
        common.missing(material): True,
    }
    return panels.stacked(key, panels.grid(made, 1 if native else 2, spacing=30)), caption, summary


def _pair(name: str, units: pl.DataFrame, classes: Classes, most: int) -> alt.ConcatChart:
    """Maps of simple features, and of these with the model."""
    made = []
    for column, words in (("simple", "simple features"), ("both", "simple features + model")):
        text = f"{{dataset}}, {{model}}, subject {{subject}}, unit {{unit}}, {words}: R² {{value}}"
        sites = units.with_columns(value=pl.col(column)).sort("value", maintain_order=True)
        made.append(maps.unit_map(sites, partial(_symbols, classes, text), most, words))
    return panels.grid(made, 2, title=panels.title(name, limit=440, fontSize=12), spacing=20)


def _symbols(classes: Classes, text: str, units: pl.DataFrame, x: Spec, y: Spec) -> alt.Chart:
    size = float(np.clip(4000 / max(units.height, 1), 5, 22))
    looks = [Look("circle", role, RAMP[max(i, 2)], size) for i, role in enumerate(classes.roles)]
    missing = Look(DASH, None, "line", 36)
    drawn = [
        missing if value is None else looks[sum(value >= bound for bound in classes.bounds)] for value in units["value"]
    ]
    return panels.points(with_marks(units, text, "value"), x, y, drawn, thick=0.8)
