"""Brain units at their places: how far the real features are ahead of the best control at each of them."""

from __future__ import annotations

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import LAYER, REAL, SUBJECT_RUN, place, primary_deltas
from lpact.analyses.lpact.tables.levels import BRAIN_UNIT_INDEX, CONTROL_DELTAS, UNIT_SCORES
from lpact.report import panels
from lpact.report.figure import Drawing, Spec, figure
from lpact.report.layout import Layout, layout_of
from lpact.report.maps import FORMS, PLACE_MM, PLACED, drawing_limits, notes_on, unit_map
from lpact.report.panels import DASH, Classes, Look
from lpact.tables import CONTEXT_KEY, RECORDING_KEY
from lpact.wording import counted, fixed, short

MOST_VIEWS = 96
MOST_MARKS = 5000
"""Views and units that are drawn; of more units in a view, evenly spaced ones."""
_NEAR = ("x_near", "y_near", "z_near")
"""Coordinates rounded to 0.1 mm: units of one name that agree in these are at the same place."""
_SITE = ("coordinate_frame", "unit", *_NEAR)
_PANEL = ["dataset", "coordinate_frame", "model", "layer", "panel"]


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
    sites, index = rows_of(material), material.table(BRAIN_UNIT_INDEX.name)
    known = sites.drop_nulls("value")
    if index.filter(PLACED).is_empty():
        return f"none of {counted(index.height, 'unit')} has coordinates"
    if known.is_empty():
        return "no unit with coordinates has a held-out score"
    metric, classes = common.metric_name(material), panels.diverging(known["value"])
    ordered = sites.sort("dataset", "coordinate_frame", "model", maintain_order=True)
    found = _with_tooltips(ordered, metric).partition_by(_PANEL, maintain_order=True)
    n_maps, most = drawing_limits([own["coordinate_frame"][0] for own in found], MOST_VIEWS, MOST_MARKS)
    key = panels.key(
        panels.class_entry(f"real minus best control, held-out {metric}", classes),
        ("real features ahead", Look("triangle-up", "paper", "line", 70)),
        ("behind", Look("triangle-down", "paper", "line", 70)),
    )
    groups = pl.concat(found[:n_maps]).partition_by("dataset", "coordinate_frame", maintain_order=True)
    chart = panels.stacked(key, *(_dataset(own, classes, most) for own in groups))
    counts = {
        f"of {counted(index.height, 'unit')} of all recordings have no coordinates": index.filter(~PLACED).height,
        "units have no finite difference and are drawn as dashes": sites["value"].null_count(),
        f"panels are left out for lack of space; {UNIT_SCORES.name} has their numbers": len(found) - n_maps,
    }
    caption = [
        f"Held-out {metric} of the real features minus that of the best counted control of the subject-run, at "
        "every unit with coordinates: mean over runs of a subject, then over subjects where the unit has the same name "
        "and place (to 0.1 mm).",
        "Triangles point up where the real features are ahead and down where they are not; size and shade show the "
        "difference. Each map shows the layer with the largest mean difference of its dataset and model.",
        *notes_on(sites["coordinate_frame"].unique()),
        *(f"{n:,} {words}." for words, n in counts.items() if n),
        "Where a view has too many units, evenly spaced ones are drawn.",
    ]
    ahead = pl.col("value") > 0
    by_layer = known.group_by(LAYER).agg(share=ahead.mean(), mean=pl.col("value").mean())
    top = common.top(by_layer, "share", "mean")
    summary = (
        f"In {known.filter(ahead).height:,} of {known.height:,} combinations of unit and model the real "
        f"features are ahead of the best control. The largest share is {top['share']:.0%} ({place(top)}; mean "
        f"difference in {metric} {fixed(top['mean'])})."
    )
    return chart, caption, summary


def best_layers(material: Material) -> pl.DataFrame:
    """For each dataset and model, the layer with the largest mean of real − best control; ties go to the first."""
    known = primary_deltas(material).drop_nulls("delta_control")
    means = known.group_by(LAYER, maintain_order=True).agg(pl.col("delta_control").mean())
    ranked = means.sort(["dataset", "model", "delta_control", "layer"], descending=[False, False, True, False])
    return ranked.unique(["dataset", "model"], keep="first", maintain_order=True).select(LAYER)


def rows_of(material: Material) -> pl.DataFrame:
    """Contrast of every unit with a place, in the best layer of every dataset and model.

    One row per dataset, model, panel and unit at a place, with ``value`` (null where undefined), ``real``,
    ``n_subjects`` and ``n_recordings``. ``panel`` is empty, or the subject where each has a space of its own.

    value = mean over subjects of the mean over recordings of (real − best control of the subject-run), for units of the
    same name at the same place (to 0.1 mm); a random control's score is its mean over draws. ``real`` is the mean over
    the same recordings, those that have a contrast.
    """
    units = _contrasts(material, material.table(BRAIN_UNIT_INDEX.name).filter(PLACED))
    by = ["dataset", "model", "layer", "panel", *_SITE]
    keep = pl.col("value").is_not_null()
    # Adding zero makes a negative zero a positive one.
    near = (pl.col(place).round(1) + 0.0 for place in PLACE_MM)
    units = units.with_columns(own.alias(name) for own, name in zip(near, _NEAR, strict=True))
    means = pl.col("value").mean(), pl.col("real").filter(keep).mean(), pl.col(PLACE_MM).first()
    units = _with_panels(units).sort([*by, *SUBJECT_RUN])
    within = units.group_by([*by, "subject"], maintain_order=True)
    subjects = within.agg(*means, n_recordings=keep.sum())
    sites = subjects.group_by(by, maintain_order=True).agg(
        *means,
        n_subjects=keep.sum().cast(pl.Int64),
        n_recordings=pl.col("n_recordings").sum().cast(pl.Int64),
    )
    return sites.drop(_NEAR)


def _contrasts(material: Material, index: pl.DataFrame) -> pl.DataFrame:
    """One row per recording, layer and unit with a place, whose scores have the unit order of the index."""
    metric, layers = material.config.readout.primary_metric, best_layers(material)
    rivals = primary_deltas(material).select(*CONTEXT_KEY, condition="best_control")
    scores = material.table(UNIT_SCORES.name).filter(metric=metric)
    scores = scores.join(layers, on=LAYER, how="semi")
    real = _by_unit(scores.filter(condition=REAL), "real")
    best = _by_unit(scores.join(rivals, on=[*CONTEXT_KEY, "condition"], how="semi"), "best")
    key = [*CONTEXT_KEY, "unit_order_hash", "unit_index"]
    both = real.join(best, on=key, how="left").with_columns(value=pl.col("real") - pl.col("best"))
    return both.join(index, on=[*RECORDING_KEY, "unit_order_hash", "unit_index"], how="inner")


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
    by, subjects = ["dataset", "coordinate_frame"], pl.col("subject").n_unique()
    native = [own for own in units["coordinate_frame"].unique() if layout_of(own) is Layout.NATIVE]
    alone = subjects.over(["dataset", *_SITE]).min().over(by) < subjects.over(by)
    apart = pl.col("coordinate_frame").is_in(native) & alone
    return units.with_columns(panel=pl.when(apart).then("subject").otherwise(pl.lit("")))


def _with_tooltips(sites: pl.DataFrame, metric: str) -> pl.DataFrame:
    absent = pl.col("value").is_null()
    text = (
        "{at}, unit {unit}[, subject {panel}] ({x_mm:0}, {y_mm:0}, {z_mm:0} mm)[: no finite difference{absent}][: real "
        "{real}, real minus best control {value} ({metric}); {n_recordings:recording} of {n_subjects:subject}]"
    )
    return common.marked(sites.with_columns(metric=pl.lit(metric), absent=absent), text, "value")


def _look(value: float | None, classes: Classes) -> Look:
    """Triangles: up where the real features are ahead; larger and stronger the farther."""
    if value is None:
        return Look(DASH, None, "line", 64)
    place = sum(value >= bound for bound in classes.bounds)
    role, size = classes.roles[place], abs(place - 3)
    shape = "triangle-up" if value > 0 else "triangle-down"
    return Look(shape, role, "line" if size < 2 else role, (19, 41, 70, 108)[size])


def _dataset(sites: pl.DataFrame, classes: Classes, most: int) -> alt.ConcatChart:
    """All maps of a dataset and coordinate frame: one model each, in all views; large differences are drawn last."""

    def triangles(units: pl.DataFrame, x: Spec, y: Spec) -> alt.Chart:
        units = units.sort(pl.col("value").abs(), maintain_order=True, nulls_last=False)
        looks = [_look(value, classes) for value in units["value"]]
        return panels.points(units, x, y, looks, thick=0.8)

    dataset, frame = sites["dataset"][0], sites["coordinate_frame"][0]
    form, charts = FORMS[layout_of(frame)], []
    for own in sites.partition_by("model", "layer", "panel", maintain_order=True):
        first = own.row(0, named=True)
        subject = f" · subject {first['panel']}" if first["panel"] else ""
        letters = max(8, int(form.across * form.side / 5.9) - len(subject))
        name = short(f"{first['model']} · layer {first['layer']}", letters) + subject
        charts.append(unit_map(own, triangles, most, name))
    n = counted(sites.filter(model=sites["model"][0]).height, "place")
    subjects = counted(int(max(sites["n_subjects"])), "subject")
    about = f"coordinate frame {frame or 'not known'}, {form.seen}; {n}, up to {subjects} each"
    title = panels.title(dataset, about, limit=920)
    return panels.grid(charts, form.columns, title=title, spacing=14)
