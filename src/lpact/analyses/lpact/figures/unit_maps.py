"""Brain units where they lie: how far the real features are ahead of the best control at each of them."""

from __future__ import annotations

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import metric_name, primary_deltas
from lpact.analyses.lpact.figures.unit_map_panels import Drawn, draw
from lpact.analyses.lpact.figures.unit_map_rows import UnitRows, rows_of
from lpact.analyses.lpact.tables.predictive import CONTROL_DELTAS, UNIT_SCORES
from lpact.analyses.lpact.tables.relational import BRAIN_UNIT_INDEX
from lpact.report.figure import Figure, Missing
from lpact.report.layout import Layout, has_outlines, layout_of
from lpact.report.wording import counted, number

NAME = "unit_maps"
TITLE = "Where the real features are ahead of the best control, and where behind"


def make(material: Material) -> Figure | Missing:
    """Units on a brain or a sensor layout, in the best layer of every dataset and model."""
    lacking = material.lacks(CONTROL_DELTAS.name, UNIT_SCORES.name, BRAIN_UNIT_INDEX.name)
    if lacking:
        return Missing(NAME, TITLE, f"the run has no table {', '.join(lacking)}")
    if primary_deltas(material).drop_nulls("delta_control").is_empty():
        return Missing(NAME, TITLE, "level 1 has no contrast with a severe control")
    rows = rows_of(material)
    if rows.sites.is_empty():
        why = f"none of {counted(rows.n_units, 'unit')} has coordinates"
        if rows.n_other_order:
            why = f"scores and coordinates are in different unit orders for {counted(rows.n_other_order, 'unit')}"
        return Missing(NAME, TITLE, why)
    if rows.sites["value"].drop_nulls().is_empty():
        return Missing(NAME, TITLE, "no unit with coordinates has a held-out score")
    metric = metric_name(material.config.readout.primary_metric)
    drawn = draw(rows.sites, metric)
    return Figure(NAME, TITLE, _caption(rows, drawn, metric), _summary(rows, metric), drawn.spec)


def _caption(rows: UnitRows, drawn: Drawn, metric: str) -> str:
    sites = rows.sites
    frames = sorted({str(frame) for frame in sites["coordinate_frame"]})
    kinds = {layout_of(frame) for frame in frames}
    said = [
        f"Held-out {metric} of the real features minus that of the best counted control of the subject-run, at every "
        "unit with coordinates: mean over runs of a subject, then over subjects where the unit has the same name and "
        "place (to 0.1 mm).",
        "Triangles point up where the real features are ahead and down where they are not; size and shade say how far.",
        "Shown is the layer of each dataset and model with the largest mean difference.",
    ]
    if Layout.SENSORS in kinds:
        said.append(
            "Sensor frames are seen from above, the nose on top (azimuthal equidistant); the circle is level with the "
            "origin, so that units below it lie outside."
        )
    if Layout.BRAIN in kinds:
        said.append(
            "Brain frames are seen through the brain; left and right show the units of their own side."
        )
        if not has_outlines():
            said.append("Outlines of the brain need nilearn: pip install 'lpact[fmri]' adds it.")
    if Layout.NATIVE in kinds:
        said.append(
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
            "units have scores in another unit order than the index, and are not drawn",
        ),
        (n_undefined, "units have no finite difference and are drawn as dashes"),
        (
            drawn.n_left_out,
            "panels are left out for room; their numbers are in predictive_unit_scores",
        ),
    ):
        if n:
            said.append(f"{n:,} {words}.")
    if drawn.binned:
        said.append(
            "Where units lie too close to be told apart, a triangle is the mean of those in a small square."
        )
    return " ".join(said)


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
