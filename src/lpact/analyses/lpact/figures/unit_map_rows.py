"""Numbers of the unit maps: real minus best control for every unit that has a place."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import LAYER, SUBJECT_RUN, primary_deltas
from lpact.analyses.lpact.tables.predictive import UNIT_SCORES
from lpact.analyses.lpact.tables.relational import BRAIN_UNIT_INDEX
from lpact.report.layout import Layout, layout_of
from lpact.tables import CONTEXT_KEY, RECORDING_KEY

REAL = "real"
_PLACE = ("x_mm", "y_mm", "z_mm")
_NEAR = ("x_near", "y_near", "z_near")
"""Coordinates rounded to 0.1 mm: units of one name that agree in these are at the same place."""
_SITE = ("coordinate_frame", "unit", *_NEAR)


@dataclass(frozen=True)
class UnitRows:
    """What maps are drawn from.

    ``sites``: one row a dataset, model, panel and unit at a place, with ``value`` (null where undefined), ``real``,
    ``n_subjects`` and ``n_recordings``. ``panel`` is empty, or the subject where each has a space of its own.
    ``n_without_place`` and ``n_other_order`` count units of recordings that are left out: those without
    coordinates, and those whose scores are in another unit order than the index.
    """

    sites: pl.DataFrame
    n_units: int
    n_without_place: int
    n_other_order: int


def best_layers(material: Material) -> pl.DataFrame:
    """Of every dataset and model, the layer with the largest mean of real − best control; ties go to the first."""
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
    """One row a context and unit with a place; and how many of these units have scores in another order."""
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
    """A panel a subject where the frame is a subject's own, unless all have the same units at the same places."""
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
